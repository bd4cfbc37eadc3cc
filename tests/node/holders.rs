//! Who holds a chip, when a chip is free again, and that kubelet's mistakes give no chip twice.

use std::fs;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::pod::{Pod, Verdict, pod};
use super::relay::Relay;
use super::testbed::{Node, PATIENCE, always, eventually};

#[test]
fn l1_an_id_that_kubelet_grants_twice_is_refused_with_the_holders_name() {
    let node = Node::up();
    let stage = &node.stage;
    let kubelet = stage.kubelet().expect("kubelet");
    let a = pod("a", 1);
    assert!(node.admit(&a).is_admitted());
    node.holders_known(1);

    // A List during an Allocate makes kubelet rebuild its devices without the ids in flight.
    node.kubelet("hold_allocate", json!({ "at": "answer" }));
    let b = pod("b", 1);
    let admission = kubelet
        .begin("admit", json!({ "pod": b.json(node.resource) }))
        .expect("asked");
    let in_flight = node.kubelet("wait_held", json!({ "timeout_ms": 20_000 }));
    node.remove(&a);
    node.kubelet("pod_resources", json!({}));
    node.kubelet("release_allocate", json!({}));
    let b_verdict = Verdict(admission.wait().expect("a verdict"));
    assert!(b_verdict.is_admitted(), "{b_verdict:?}");
    let twice = b_verdict.ids();
    assert_eq!(json!(twice), in_flight["device_ids"]);

    // Kubelet takes the id for free: a pod that asks for all others and this one is given it.
    let c = node.admit(&pod("c", 8));
    assert!(!c.is_admitted(), "{c:?}");
    let refusal = c.message();
    assert!(refusal.contains(&twice[0]), "{refusal}");
    assert!(
        refusal.contains("held by default/b container main"),
        "{refusal}"
    );

    let held = node.holders_known_of("b", 1);
    assert_eq!(held[0]["plugin_device_id"], twice[0].as_str());
    let tenures = node.audit_of("b");
    assert_eq!(tenures.len(), 1);
    assert_eq!(tenures[0]["until"], "");
    let c_holds = node.held().iter().any(|held| held["pod"] == "c");
    assert!(!c_holds);
}

#[test]
fn l1_without_an_answer_of_pod_resources_a_contested_id_is_refused_and_later_granted() {
    let mut node = Node::of("910b3-8x1").flag("owner-proof-seconds", "3600");
    let behind = node.stage.path("pr-kubelet.sock");
    node.start_kubelet(&json!({ "pod_resources_socket": behind }));
    let relay = Relay::start(&node.stage.path("pr.sock"), &behind);
    node.start_agent();
    node.allocatable(8);
    node.admitted("a", 8);
    node.holders_known(8);
    node.remove_named("a");

    relay.silence(true);
    let refused = node.admit(&pod("b", 8));
    assert!(!refused.is_admitted());
    assert!(
        refused
            .message()
            .contains("last held by default/a container main"),
        "{refused:?}"
    );
    assert!(refused.message().contains("gave no answer"), "{refused:?}");
    assert!(refused.admission_us() < 2_000_000, "{refused:?}");

    drop(relay);
    let gone = node.admit(&pod("c", 8));
    assert!(
        !gone.is_admitted(),
        "a socket that is gone answers nothing either"
    );
    assert!(gone.message().contains("is gone"), "{gone:?}");

    let relay = Relay::start(&node.stage.path("pr.sock"), &behind);
    node.admitted("d", 8);
    assert!(relay.calls() > 0);
    for tenure in node.audit_of("a") {
        assert_eq!(tenure["ended_by"], "gone at the next grant");
    }
    node.holders_known_of("d", 8);
}

#[test]
fn l2_a_removed_pods_chip_is_free_only_after_the_proof() {
    let node = Node::of("910b3-8x1")
        .flag("owner-proof-seconds", "3")
        .ready(8);
    node.admitted("stays", 1);
    let gone = node.admitted("gone", 1);
    node.holders_known(2);
    let updates = node.updates();

    let begun = Instant::now();
    node.remove_named("gone");
    let unlisted = eventually("kubelet does not show it any more", PATIENCE, || {
        node.holding(&gone[0])
            .filter(|held| held["state"] == "unlisted")
    });
    assert_eq!(unlisted["pod"], "gone", "still held in its name");
    node.freed(&gone[0]);
    assert!(
        begun.elapsed() >= Duration::from_secs(3),
        "{:?}",
        begun.elapsed()
    );
    assert!(
        node.updates() > updates,
        "kubelet was made to write its checkpoint anew"
    );
    let tenure = &node.audit_of("gone")[0];
    assert_eq!(tenure["ended_by"], "proven gone");
    assert_eq!(tenure["confirmed"], true);
    assert_eq!(node.allocatable_ids().len(), 8);
    assert_eq!(node.held().len(), 1);
}

#[test]
fn l2_a_chip_with_a_living_process_is_not_free() {
    let node = Node::up();
    node.admitted("stays", 1);
    let busy = node.admitted("busy", 1);
    let control = node.admitted("control", 1);
    node.holders_known(3);
    let phy = busy[0].rsplit('-').next().expect("a number");
    node.sim(&["processes", phy, "1"]);
    node.sampled(6);
    node.remove_named("busy");
    node.remove_named("control");
    node.freed(&control[0]);
    assert!(node.holding(&busy[0]).is_some(), "its process lives");
    node.sim(&["processes", phy, "0"]);
    node.freed(&busy[0]);
}

/// What the driver calls its list of processes.
const PROCESSES: &str = "dcmi_get_device_resource_info";

/// A restarted agent, a pod whose processes outlive it, and a driver that cannot tell them of one chip,
/// until it is repaired.
fn a_chip_is_kept_while_its_processes_cannot_be_read(broken: &[&str], repaired: &[&str]) {
    let mut node = Node::up();
    node.admitted("stays", 1);
    let gone = node.admitted("gone", 7);
    node.holders_known(8);
    node.stage.kill_agent();
    let unclear = gone[0].as_str();
    let phy = unclear.rsplit('-').next().expect("a number");
    node.sim(&["processes", phy, "2"]);
    node.sim(&[broken, &["--chip", phy]].concat());
    node.start_agent();
    node.remove_named("gone");
    for id in &gone[1..] {
        node.freed(id);
    }
    always("it stays held", Duration::from_secs(8), || {
        node.holding(unclear).is_some()
    });
    node.sim(&[repaired, &["--chip", phy]].concat());
    let told = node.calls_of(PROCESSES) + 3 * 8;
    eventually("every chip's processes are told", PATIENCE, || {
        (node.calls_of(PROCESSES) >= told).then_some(())
    });
    always("its processes live", Duration::from_secs(8), || {
        node.holding(unclear).is_some()
    });
    node.sim(&["processes", phy, "0"]);
    node.freed(unclear);
}

#[test]
fn l2_a_chip_whose_processes_the_driver_fails_to_tell_is_not_free() {
    a_chip_is_kept_while_its_processes_cannot_be_read(
        &["return-code", PROCESSES, "-8005"],
        &["return-code", PROCESSES, "0"],
    );
}

#[test]
fn l2_a_chip_whose_list_of_processes_hangs_is_not_free() {
    a_chip_is_kept_while_its_processes_cannot_be_read(
        &["hang", PROCESSES],
        &["release", PROCESSES],
    );
}

#[test]
fn l2_a_driver_that_has_no_list_of_processes_keeps_nobody() {
    let node = Node::of("910b3-8x1");
    node.sim(&["return-code", PROCESSES, "-8255"]);
    let node = node.ready(8);
    node.admitted("stays", 1);
    let gone = node.admitted("gone", 1);
    node.holders_known(2);
    node.remove_named("gone");
    node.freed(&gone[0]);
    let asked = node.calls_of(PROCESSES);
    node.sampled(12);
    assert_eq!(node.calls_of(PROCESSES), asked, "asked once");
}

#[test]
fn l2_an_ordinary_init_containers_chip_is_kept_while_its_pod_lives() {
    let node = Node::up();
    // Pod-resources shows no ordinary init containers; kubelet's checkpoint alone has this one.
    let pod = Pod::new("with-init")
        .init("prepare", 2)
        .container("main", 1);
    let verdict = node.admit(&pod);
    assert!(verdict.is_admitted(), "{verdict:?}");
    let main = verdict.container("main").ids();
    let prepare = verdict.container("prepare").ids();
    let spare = prepare
        .iter()
        .find(|id| !main.contains(id))
        .expect("one chip more");
    let control = node.admitted("control", 1);
    node.remove_named("control");
    node.freed(&control[0]);
    // The control went the whole way of a proof; this one began it no later.
    let kept = node.holding(spare).expect("held");
    assert_eq!(kept["container"], "prepare");
    let other = node.admitted("other", 6);
    assert!(!other.contains(spare));
    node.remove(&pod);
    node.freed(spare);
}

#[test]
fn l2_c19_while_pod_resources_is_away_nothing_is_taken_for_free() {
    let node = Node::up();
    node.admitted("stays", 1);
    let gone = node.admitted("gone", 1);
    node.holders_known(2);
    let (there, away) = (node.stage.path("pr.sock"), node.stage.path("pr.away"));
    fs::rename(&there, &away).expect("the socket goes");
    node.remove_named("gone");
    always("it stays held", Duration::from_secs(8), || {
        node.holding(&gone[0]).is_some()
    });
    fs::rename(&away, &there).expect("the socket comes back");
    node.freed(&gone[0]);
}

#[test]
fn c19_pod_resources_is_listed_at_most_every_five_seconds_by_ourselves() {
    let mut node = Node::of("910b3-8x1");
    let behind = node.stage.path("pr-kubelet.sock");
    node.start_kubelet(&json!({ "pod_resources_socket": behind }));
    let relay = Relay::start(&node.stage.path("pr.sock"), &behind);
    node.start_agent();
    node.allocatable(8);
    let begun = Instant::now();
    let before = relay.calls();
    // Each pod gets an id that nobody held, so that no Allocate has to ask.
    let mut number = 0;
    always("grants go on", Duration::from_secs(9), || {
        if number < 8 {
            node.admitted(&format!("pod-{number}"), 1);
            number += 1;
        }
        true
    });
    let allowed = usize::try_from(begun.elapsed().as_secs() / 5).expect("few") + 1;
    let calls = relay.calls() - before;
    assert!(
        (1..=allowed).contains(&calls),
        "{calls} calls in {:?}",
        begun.elapsed()
    );
}

#[test]
fn a_rejected_pod_leaves_a_grant_that_ends_by_proof() {
    let node = Node::up();
    node.admitted("stays", 1);
    // The first container is granted a chip, the second asks for more than there is.
    let pod = Pod::new("rejected")
        .container("first", 2)
        .container("second", 7);
    let verdict = node.admit(&pod);
    assert!(!verdict.is_admitted());
    eventually("its grant has ended", PATIENCE, || {
        (node.held().len() == 1).then_some(())
    });
    let tenures = node.audit(&[]);
    let ended: Vec<_> = tenures
        .iter()
        .filter(|tenure| tenure["until"] != "")
        .collect();
    assert!(
        ended
            .iter()
            .all(|tenure| tenure["ended_by"] == "proven gone"),
        "{ended:?}"
    );
    assert_eq!(node.admitted("next", 7).len(), 7);
}

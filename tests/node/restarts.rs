//! Agent and kubelet end and come back, with and without their records.

use std::fs;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use tonic::Code;

use super::plugin::allocate;
use super::pod::pod;
use super::testbed::{Node, PATIENCE, eventually, files_in};

#[test]
fn l10_ids_that_kubelet_forgot_are_withheld_while_their_pod_lives() {
    let mut node = Node::up();
    let (a, b) = (pod("a", 2), pod("b", 1));
    let kept = node.admit(&a).ids();
    let other = node.admit(&b).ids();
    node.holders_known(3);

    node.stage.kill_kubelet();
    node.forget_checkpoint();
    node.start_kubelet_below(&[&a, &b]);
    node.allocatable(5);
    for id in kept.iter().chain(&other) {
        assert_eq!(node.listed_health(id).as_deref(), Some("Unhealthy"), "{id}");
    }
    let held = node.held();
    assert_eq!(held.len(), 3);
    assert!(
        held.iter().all(|held| held["state"] == "withheld"),
        "{held:?}"
    );

    // Kubelet counts the two pods' three chips as used, beside those it may not grant.
    let new = node.admitted("new", 2);
    assert!(kept.iter().chain(&other).all(|id| !new.contains(id)));
    let (code, text) = allocate(&node, &[kept[0].as_str()]).expect_err("withheld");
    assert_eq!(code, Code::FailedPrecondition);
    assert!(
        text.contains(&kept[0]) && text.contains("default/a container main"),
        "{text}"
    );

    node.remove(&a);
    node.allocatable(7);
    assert_eq!(node.holding(&other[0]).expect("held")["pod"], "b");
    let more = node.admitted("more", 4);
    assert!(
        kept.iter().all(|id| more.contains(id)),
        "free after the proof: {more:?}"
    );
    for tenure in node.audit_of("a") {
        assert_eq!(tenure["ended_by"], "proven gone");
    }
}

#[test]
fn l10_ff14_ids_stay_withheld_when_the_agent_restarts_as_well() {
    let mut node = Node::up();
    let a = pod("a", 2);
    let kept = node.admit(&a).ids();
    node.holders_known(2);
    node.stage.kill_agent();
    node.stage.kill_kubelet();
    node.forget_checkpoint();
    node.start_kubelet_below(&[&a]);
    node.start_agent();
    node.allocatable(6);
    assert!(kept.iter().all(|id| !node.allocatable_ids().contains(id)));
    let new = node.admitted("new", 4);
    assert!(kept.iter().all(|id| !new.contains(id)));
    assert_eq!(node.holders_known_of("new", 4).len(), 4);
}

#[test]
fn l11_a_grant_that_kubelet_never_recorded_ends_by_proof_and_is_not_given_twice_before() {
    let mut node = Node::of("910b3-8x1")
        .flag("owner-proof-seconds", "3")
        .ready(8);
    let stays = pod("stays", 1);
    assert!(node.admit(&stays).is_admitted());
    node.holders_known(1);

    node.kubelet("hold_allocate", json!({ "at": "answer" }));
    let lost = pod("lost", 2).json(node.resource);
    let kubelet = node.stage.kubelet().expect("kubelet");
    let admission = kubelet
        .begin("admit", json!({ "pod": lost }))
        .expect("asked");
    let ids = node.kubelet("wait_held", json!({ "timeout_ms": 20_000 }))["device_ids"].clone();
    let ids: Vec<String> = serde_json::from_value(ids).expect("ids");
    node.stage.kill_kubelet();
    assert!(
        admission.wait().is_err(),
        "kubelet died before it could tell"
    );
    assert_eq!(
        node.held().len(),
        3,
        "the grant was durable before the answer"
    );

    let begun = Instant::now();
    node.start_kubelet_below(&[&stays]);
    node.allocatable(6);
    let new = node.admitted("new", 5);
    assert!(
        ids.iter().all(|id| !new.contains(id)),
        "not given twice: {new:?}"
    );
    node.allocatable(8);
    assert!(
        begun.elapsed() >= Duration::from_secs(3),
        "{:?}",
        begun.elapsed()
    );
    for id in &ids {
        node.freed(id);
    }
    let tenures = node.audit(&[]);
    let ended: Vec<_> = tenures
        .iter()
        .filter(|tenure| tenure["until"] != "")
        .collect();
    assert_eq!(ended.len(), 2);
    for tenure in ended {
        assert_eq!(
            (&tenure["confirmed"], &tenure["ended_by"]),
            (&json!(false), &json!("proven gone"))
        );
    }
    assert_eq!(node.admitted("next", 2).len(), 2);
}

#[test]
fn l12_c21_a_lost_store_is_rebuilt_from_kubelets_records_before_the_first_list() {
    let mut node = Node::up();
    let a = node.admitted("a", 2);
    node.admitted("b", 1);
    let before = node.holders_known(3);
    node.stage.kill_agent();
    fs::remove_dir_all(node.stage.path("state")).expect("the state goes");
    node.start_agent();
    eventually("registered", PATIENCE, || {
        (node.lists()["registrations"] == 2).then_some(())
    });
    let held = node.held();
    assert_eq!(held.len(), 3, "known as soon as registered: {held:?}");
    for (record, old) in held.iter().zip(&before) {
        assert_eq!(record["origin"], "adopted");
        for fact in [
            "plugin_device_id",
            "die",
            "namespace",
            "pod",
            "pod_uid",
            "container",
        ] {
            assert_eq!(record[fact], old[fact], "{fact}");
        }
    }
    node.allocatable(8);
    let c = node.admitted("c", 5);
    assert!(a.iter().all(|id| !c.contains(id)));
    node.remove_named("a");
    node.freed(&a[0]);
    assert_eq!(node.audit_of("a")[0]["origin"], "adopted");
}

#[test]
fn l12_ff13_a_cut_store_is_set_aside_and_rebuilt() {
    let mut node = Node::up();
    node.admitted("a", 2);
    node.holders_known(2);
    node.stage.kill_agent();
    let store = node.stage.path("state/state.redb");
    let length = fs::metadata(&store).expect("the store").len();
    let file = fs::File::options()
        .write(true)
        .open(&store)
        .expect("the store");
    file.set_len(length / 2).expect("cut");
    node.start_agent();
    node.allocatable(8);
    let held = node.holders_known(2);
    assert!(held.iter().all(|held| held["origin"] == "adopted"));
    let names = files_in(&node.stage.path("state"));
    let aside = names.iter().filter(|name| name.contains("damaged")).count();
    assert_eq!(aside, 1, "{names:?}");
    assert_eq!(node.status()["store"]["state"], "durable");
    node.admitted("b", 6);
}

#[test]
fn l12_without_a_state_folder_holders_come_from_kubelets_records() {
    let mut node = Node::of("910b3-8x1");
    // The stage names a folder; a file in its place cannot become one.
    fs::write(node.stage.path("state"), "in the way").expect("a file");
    node = node.ready(8);
    let a = node.admitted("a", 2);
    node.holders_known(2);
    let status = node.status();
    assert_eq!(status["store"]["state"], "none");
    assert_eq!(status["ready"], false, "it says what it cannot promise");
    node.stage.kill_agent();
    node.start_agent();
    node.allocatable(8);
    let held = node.holders_known(2);
    assert!(
        held.iter()
            .all(|held| held["origin"] == "adopted" && held["pod"] == "a")
    );
    let b = node.admitted("b", 6);
    assert!(a.iter().all(|id| !b.contains(id)));
}

#[test]
fn l13_a_restart_of_the_agent_starts_the_wait_anew() {
    let mut node = Node::of("910b3-8x1")
        .flag("owner-proof-seconds", "4")
        .ready(8);
    node.admitted("stays", 1);
    let gone = node.admitted("gone", 1);
    node.holders_known(2);
    node.remove_named("gone");
    eventually("the proof has begun", PATIENCE, || {
        node.holding(&gone[0])
            .filter(|held| held["state"] == "unlisted")
    });
    node.stage.kill_agent();
    let begun = Instant::now();
    node.start_agent();
    node.freed(&gone[0]);
    assert!(
        begun.elapsed() >= Duration::from_secs(4),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn ff14_ff03_a_killed_agent_knows_every_holder_before_it_registers_again() {
    let mut node = Node::up();
    let mut given = Vec::new();
    for name in ["a", "b", "c"] {
        given.extend(node.admitted(name, 2));
    }
    let held = node.holders_known(6);
    for round in 2..5 {
        node.stage.kill_agent();
        node.start_agent();
        eventually("registered again", PATIENCE, || {
            (node.lists()["registrations"] == round).then_some(())
        });
        let now = node.held();
        assert_eq!(now.len(), 6, "known at once: {now:?}");
        for (now, before) in now.iter().zip(&held) {
            for fact in ["id", "grant", "die", "pod", "since"] {
                assert_eq!(now[fact], before[fact], "{fact}");
            }
        }
        node.allocatable(8);
    }
    let last = node.admitted("d", 2);
    assert!(last.iter().all(|id| !given.contains(id)));
    assert_eq!(node.held().len(), 8);
}

#[test]
fn l10_a_checkpoint_that_kubelet_refused_to_read_gives_no_chip_twice() {
    let mut node = Node::up();
    let a = pod("a", 2);
    let kept = node.admit(&a).ids();
    node.holders_known(2);

    node.stage.kill_kubelet();
    // Kubelet compares the checksum and goes on without its records; the file stays as it is.
    let file = node.stage.path("dp/kubelet_internal_checkpoint");
    let mut checkpoint: serde_json::Value =
        serde_json::from_slice(&fs::read(&file).expect("readable")).expect("JSON");
    checkpoint["Checksum"] = json!(1);
    fs::write(&file, checkpoint.to_string()).expect("writable");
    node.start_kubelet_below(&[&a]);
    node.allocatable(6);

    let new = node.admitted("new", 4);
    assert!(kept.iter().all(|id| !new.contains(id)), "{new:?}");
    assert!(
        kept.iter()
            .all(|id| node.holding(id).expect("held")["pod"] == "a")
    );
}

#[test]
fn a_kubelet_killed_and_started_again_loses_no_holder_and_no_chip() {
    let mut node = Node::up();
    let pods = [pod("a", 3), pod("b", 2)];
    for pod in &pods {
        assert!(node.admit(pod).is_admitted());
    }
    let held = node.holders_known(5);
    for _ in 0..3 {
        node.restart_kubelet_below(&[&pods[0], &pods[1]]);
        node.allocatable_within(8, Duration::from_secs(2));
        assert_eq!(node.holders_known(5), held);
    }
    node.admitted("c", 3);
}

#[test]
fn l11_a_reboot_that_recreates_pods_under_new_names_frees_the_old_grants() {
    let mut node = Node::up();
    node.admitted("before", 4);
    node.holders_known(4);
    node.stage.kill_agent();
    node.stage.kill_kubelet();
    node.sim(&["reboot"]);
    node.start_kubelet(&json!({}));
    node.start_agent();
    node.admit_eventually("after", 1);
    node.allocatable(8);
    eventually("the old grants have ended", PATIENCE, || {
        node.held()
            .iter()
            .all(|held| held["pod"] == "after")
            .then_some(())
    });
    for tenure in node.audit_of("before") {
        let ended = tenure["ended_by"].as_str().expect("a cause");
        assert!(
            ["proven gone", "gone at the next grant"].contains(&ended),
            "{tenure}"
        );
    }
}

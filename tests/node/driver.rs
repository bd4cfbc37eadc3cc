//! The driver comes late, chips come late or go, calls hang, the driver's process dies.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::time::Instant;

use super::plugin::preferred;
use super::pod::pod;
use super::testbed::{Node, PATIENCE, eventually, programs};

/// Longest answer to kubelet while something else goes wrong.
const ANSWER_US: u64 = 5_000_000;

#[test]
fn ff04_a_driver_library_that_comes_later_is_found_without_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut late = programs();
    let built = std::mem::replace(&mut late.library, folder.path().join("libdcmi.so"));
    let mut node = Node::with(late, "910b3-8x1");
    node.start_kubelet(&json!({}));
    node.start_agent();
    let waiting = eventually("the agent waits for the driver", PATIENCE, || {
        node.status_now()
            .filter(|status| status["driver"]["trouble"] != "")
    });
    assert_eq!(waiting["driver"]["state"], "waiting");
    assert_eq!(waiting["ready"], false);
    node.too_early(1);
    eventually("its age is told", PATIENCE, || {
        (node.status()["driver"]["for_seconds"].as_u64() >= Some(1)).then_some(())
    });

    fs::copy(built, folder.path().join("arriving")).expect("a copy");
    fs::rename(
        folder.path().join("arriving"),
        folder.path().join("libdcmi.so"),
    )
    .expect("there");
    node.allocatable(8);
    assert!(node.stage.agent_ended().is_none());
    assert!(node.audit(&[]).is_empty(), "nothing was granted meanwhile");
    node.admitted("later", 8);
}

#[test]
fn ff04_chips_that_come_one_by_one_and_bad_at_first_are_offered_as_they_get_well() {
    let mut node = Node::of("910b3-8x1")
        .flag("device-wait-seconds", "1")
        .flag("hold-down-seconds", "0");
    for chip in 0..8 {
        node.sim(&["health", &chip.to_string(), "3"]);
    }
    node.sim(&["hide-cards", "8"]);
    node.start_kubelet(&json!({}));
    node.start_agent();
    let mut offered = 0;
    for chip in 0..4_u32 {
        node.too_early(offered + 1);
        node.sim(&["show", &chip.to_string()]);
        eventually("the chip is seen, and is bad", PATIENCE, || {
            let status = node.status();
            let chips = status["chips"].as_array()?;
            let arrived = chips.iter().find(|known| known["phy"] == chip)?;
            (arrived["healthy"] == false).then_some(())
        });
        node.sim(&["heal", &chip.to_string()]);
        offered += 1;
        node.allocatable(offered.into());
    }
    node.sim(&["hide-cards", "0"]);
    for chip in 4..8 {
        node.sim(&["heal", &chip.to_string()]);
    }
    node.allocatable(8);
    assert!(node.stage.agent_ended().is_none());
    assert_eq!(node.status()["ready"], true);
    node.admitted("all", 8);
}

#[test]
fn ff04_with_an_incomplete_node_the_start_goes_on_after_the_wait_and_a_mended_card_joins() {
    let mut node = Node::of("910b3-8x1").flag("device-wait-seconds", "1");
    node.sim(&["fail-init", "3"]);
    node.start_kubelet(&json!({}));
    node.start_agent();
    node.allocatable(7);
    let status = node.status();
    assert_eq!(status["driver"]["cards_failed"], 1);
    assert_eq!(status["ready"], false);
    let pod = node.admitted("early", 7);
    assert!(!pod.contains(&"Ascend910-3".to_owned()));
    node.sim(&["heal-init", "3"]);
    node.allocatable(8);
    assert_eq!(node.admitted("late", 1), ["Ascend910-3"]);
    assert_eq!(node.holders_known(8).len(), 8);
}

#[test]
fn ff06_one_lost_and_one_failing_chip_leave_six_that_serve_every_pod() {
    let mut node = Node::up();
    node.sim(&["lose", "3"]);
    node.sim(&["return-code", "*", "-8005", "--chip", "5"]);
    node.allocatable(6);
    node.admitted("anchor", 1);
    let offered = node.allocatable_ids();
    for round in 0..50 {
        let name = format!("single-{round}");
        let verdict = node.admit(&pod(&name, 1));
        assert!(verdict.is_admitted(), "round {round}: {verdict:?}");
        assert!(verdict.admission_us() < ANSWER_US, "{verdict:?}");
        assert!(verdict.ids().iter().all(|id| offered.contains(id)));
        node.remove_named(&name);
    }
    node.remove_named("anchor");
    for round in 0..10 {
        let name = format!("six-{round}");
        let verdict = node.admit(&pod(&name, 6));
        assert!(verdict.is_admitted(), "round {round}: {verdict:?}");
        node.remove_named(&name);
    }
    assert!(node.stage.agent_ended().is_none());
    for (phy, why) in [(3, "lost"), (5, "-8005")] {
        let chip = node.chip(phy);
        assert!(
            chip["reason"]
                .as_str()
                .is_some_and(|reason| reason.contains(why)),
            "{chip}"
        );
    }
    node.sim(&["return", "3"]);
    node.sim(&["return-code", "*", "0", "--chip", "5"]);
    node.allocatable(8);
}

#[test]
fn ff06_with_every_chip_broken_kubelet_is_told_so_instead_of_failing_pods() {
    let node = Node::up();
    for chip in 0..8 {
        node.sim(&["health", &chip.to_string(), "2"]);
    }
    node.allocatable(0);
    let verdict = node.admit(&pod("hopeless", 1));
    assert!(!verdict.is_admitted());
    assert!(node.audit(&[]).is_empty());
}

#[test]
fn a_hung_health_call_takes_out_its_chip_and_delays_nobody_else() {
    let node = Node::up();
    node.sim(&["hang", "dcmi_get_device_health", "--chip", "4"]);
    for round in 0..20 {
        let name = format!("during-{round}");
        let verdict = node.admit(&pod(&name, 2));
        assert!(verdict.is_admitted(), "{verdict:?}");
        assert!(verdict.admission_us() < ANSWER_US, "{verdict:?}");
        node.remove_named(&name);
    }
    node.allocatable(7);
    let chip = node.chip(4);
    assert!(
        chip["reason"]
            .as_str()
            .is_some_and(|why| why.contains("does not return")),
        "{chip}"
    );
    node.sim(&["health", "1", "3"]);
    node.allocatable_within(6, Duration::from_secs(3));
    node.sim(&["heal", "1"]);
    node.sim(&["release"]);
    node.allocatable(8);
}

#[test]
fn c23_a_preferred_set_is_answered_while_every_call_of_the_driver_hangs() {
    let node = Node::of("910b3-8x1")
        .flag("driver-grace-seconds", "2")
        .ready(8);
    let ids: Vec<String> = (0..8).map(|phy| format!("Ascend910-{phy}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    node.sim(&["hang", "*"]);
    node.allocatable(0);
    for (must, size, answer) in [
        (vec![], 2, vec!["Ascend910-0", "Ascend910-1"]),
        (vec!["Ascend910-6"], 2, vec!["Ascend910-0", "Ascend910-6"]),
        (vec![], 8, ids.clone()),
        // No set of nine can be had of eight.
        (vec![], 9, vec![]),
    ] {
        let preferred = preferred(&node, &ids, &must, size).expect("an answer");
        assert_eq!(preferred, answer, "{must:?}, {size}");
    }
    node.sim(&["release"]);
    node.allocatable(8);
}

#[test]
fn a_killed_driver_host_is_back_within_a_second_and_nothing_changed() {
    let node = Node::up();
    node.admitted("a", 2);
    let held = node.holders_known(2);
    let (list, updates) = (node.lists()["last"].clone(), node.updates());
    let host = driver_host(&node).expect("a driver host");
    let pid = i32::try_from(host)
        .ok()
        .and_then(Pid::from_raw)
        .expect("a process");
    let begun = Instant::now();
    kill_process(pid, Signal::KILL).expect("killed");
    eventually("another driver host answers", PATIENCE, || {
        driver_host(&node).filter(|now| *now != host)
    });
    // The look itself takes a while on a busy machine.
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
    node.sampled(3);
    assert_eq!(node.lists()["last"], list);
    assert_eq!(node.updates(), updates, "kubelet noticed nothing");
    assert_eq!(node.held(), held);
    node.admitted("b", 6);
}

#[test]
fn a_driver_that_is_silent_as_a_whole_keeps_its_chips_for_the_grace_time_only() {
    let node = Node::of("910b3-8x1")
        .flag("driver-grace-seconds", "2")
        .ready(8);
    let held = node.admitted("a", 2);
    node.holders_known(2);
    node.sim(&["hang", "*"]);
    node.allocatable(0);
    assert_eq!(node.held().len(), 2, "holders are kept");
    assert_eq!(node.listed_health(&held[0]).as_deref(), Some("Unhealthy"));
    let verdict = node.admit(&pod("b", 1));
    assert!(
        !verdict.is_admitted() && verdict.admission_us() < ANSWER_US,
        "{verdict:?}"
    );
    node.sim(&["release"]);
    node.allocatable(8);
}

#[test]
fn ff03_a_driver_upgrade_below_the_agent_takes_the_chips_out_and_back() {
    let node = Node::up();
    node.sim(&["upgrade", "on"]);
    node.allocatable(0);
    let chip = node.chip(0);
    let why = chip["reason"].as_str().expect("a reason");
    assert!(why.contains("-8017"), "{chip}");
    node.sim(&["upgrade", "off"]);
    node.allocatable(8);
}

/// The process that is attached to the simulated driver.
pub(crate) fn driver_host(node: &Node) -> Option<u64> {
    let calls = node.calls();
    let processes = calls["processes"].as_array()?;
    let attached = processes
        .iter()
        .find(|it| it["connections"].as_u64() > Some(0))?;
    attached["pid"].as_u64()
}

/// Ends the driver host and waits until the next one has told the node's chips.
pub(crate) fn enumerated_again(node: &Node) {
    let old = eventually("a driver host", PATIENCE, || driver_host(node));
    let told = |log: &str| log.matches("driver host started").count();
    let before = told(&node.stage.log_text("agent.log"));
    let pid = i32::try_from(old).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process"), Signal::KILL).expect("a signal");
    eventually("a new driver host", PATIENCE, || {
        (told(&node.stage.log_text("agent.log")) > before).then_some(())
    });
    node.sampled(1);
}

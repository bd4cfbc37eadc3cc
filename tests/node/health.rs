//! Health: from the driver's fact to kubelet's list, and back again.

use std::time::Duration;

use tokio::time::Instant;

use super::testbed::{Node, PATIENCE, always, eventually};

const FAULT: &str = "0x80E01801";

#[test]
fn a_fault_event_reaches_kubelet_within_a_second_without_any_polling() {
    let node = Node::of("910b3-8x1")
        .flag("health-poll-ms", "60000")
        .ready(8);
    node.sim(&["code", "add", "2", FAULT, "--event", "--severity", "3"]);
    node.allocatable_within(7, Duration::from_secs(1));
    assert_eq!(
        node.listed_health("Ascend910-2").as_deref(),
        Some("Unhealthy")
    );
    let chip = node.chip(2);
    assert_eq!(chip["codes"][0], "80E01801", "{chip}");
    assert!(
        chip["reason"]
            .as_str()
            .is_some_and(|why| why.contains("80E01801")),
        "{chip}"
    );
}

#[test]
fn a_bad_health_level_reaches_kubelet_by_polling_within_the_period_and_a_second() {
    let node = Node::of("910b3-8x1")
        .flag("health-poll-ms", "1000")
        .ready(8);
    for level in ["2", "3", "4", "absent"] {
        node.sim(&["health", "6", level]);
        node.allocatable_within(7, Duration::from_secs(2));
        node.sim(&["heal", "6"]);
        node.allocatable(8);
    }
}

#[test]
fn minor_health_and_minor_events_leave_a_chip_in_the_offer() {
    let node = Node::up();
    let updates = node.updates();
    node.sim(&["health", "1", "1"]);
    node.sim(&["code", "add", "1", FAULT, "--event", "--severity", "1"]);
    eventually("the code is known", PATIENCE, || {
        (node.chip(1)["codes"][0] == "80E01801").then_some(())
    });
    node.sampled(3);
    assert_eq!(node.updates(), updates);
    assert_eq!(node.allocatable_ids().len(), 8);
}

#[test]
fn c10_c11_a_held_chip_that_fails_stays_in_the_list_and_comes_back_by_itself() {
    let node = Node::of("910b3-8x1")
        .flag("hold-down-seconds", "2")
        .ready(8);
    let held = node.admitted("a", 1);
    assert_eq!(held, ["Ascend910-0"]);
    node.holders_known(1);
    node.sim(&["health", "0", "3"]);
    node.allocatable_within(7, Duration::from_secs(2));
    let list = node.lists()["last"].clone();
    assert_eq!(
        list.as_array().map(Vec::len),
        Some(8),
        "it never leaves the list"
    );
    assert_eq!(node.holding("Ascend910-0").expect("held")["pod"], "a");

    node.sim(&["heal", "0"]);
    let healed = Instant::now();
    node.allocatable(8);
    // The hold-down counts from the last bad sign, at most one poll before the healing.
    assert!(
        healed.elapsed() >= Duration::from_millis(1700),
        "{:?}",
        healed.elapsed()
    );
    assert_eq!(node.holding("Ascend910-0").expect("held")["pod"], "a");
}

#[test]
fn c12_a_flapping_chip_costs_two_list_updates_not_one_each_time() {
    let node = Node::of("910b3-8x1")
        .flag("hold-down-seconds", "3")
        .ready(8);
    let updates = node.updates();
    for _ in 0..10 {
        node.sim(&["health", "3", "3"]);
        node.sampled(1);
        node.sim(&["heal", "3"]);
        node.sampled(1);
    }
    assert_eq!(node.allocatable_ids().len(), 7);
    node.allocatable(8);
    assert_eq!(node.updates() - updates, 2, "out once, back once");
}

#[test]
fn an_event_without_a_recovery_event_is_cleared_by_good_samples() {
    let node = Node::up();
    node.sim(&["event", "7", FAULT, "--severity", "3"]);
    node.allocatable(7);
    node.allocatable(8);
    always("it stays", Duration::from_millis(500), || {
        node.allocatable_ids().len() == 8
    });
    assert_eq!(node.chip(7)["codes"].as_array().map(Vec::len), Some(0));
}

#[test]
fn health_and_holder_of_a_chip_are_told_by_one_status() {
    let node = Node::up();
    node.admitted("a", 1);
    node.holders_known(1);
    node.sim(&["health", "0", "2"]);
    node.allocatable(7);
    let chip = node.chip(0);
    assert_eq!(chip["healthy"], false);
    assert_eq!(chip["reason"], "driver health 2 (major)");
    assert_eq!(chip["holder"], "default/a container main");
    assert_eq!(node.hardware(0)["health"], 2);
}

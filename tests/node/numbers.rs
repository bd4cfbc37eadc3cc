//! Numbers move: a chip's identity is its die.

use std::collections::BTreeMap;

use serde_json::Value;

use super::pod::{numbers_of, pod};
use super::testbed::{Node, PATIENCE, eventually};

/// Number to die, by the agent's word.
fn dies(node: &Node) -> BTreeMap<String, String> {
    let status = node.status();
    let chips = status["chips"].as_array().expect("chips");
    chips
        .iter()
        .map(|chip| (chip["phy"].to_string(), word(chip, "die")))
        .collect()
}

fn word(value: &Value, name: &str) -> String {
    value[name].as_str().expect("a text").to_owned()
}

/// Number to die, by the simulator's word.
fn truth(node: &Node) -> BTreeMap<String, String> {
    let status: Value = serde_json::from_str(&node.sim(&["status", "--json"])).expect("JSON");
    let chips = status["chips"].as_array().expect("chips");
    chips
        .iter()
        .filter(|chip| chip["removed"] == false)
        .map(|chip| (chip["phy"].to_string(), word(chip, "die")))
        .collect()
}

#[test]
fn l14_ff20_when_numbers_move_a_held_id_goes_unhealthy_and_new_pods_get_their_own_die() {
    let mut node = Node::up();
    // Chip 0 stays free and is the one that goes; the pod holds 1, 2 and 3.
    node.sim(&["health", "0", "3"]);
    node.allocatable(7);
    let holder = node.admitted("holder", 3);
    assert_eq!(holder, ["Ascend910-1", "Ascend910-2", "Ascend910-3"]);
    let before = dies(&node);
    assert_eq!(before, truth(&node));
    let held_before = node.holders_known(3);

    node.stage.kill_agent();
    node.sim(&["remove", "0"]);
    node.start_agent();
    // Seven chips are left. The dies of the holder are 0 to 2 now; the ids 1 to 3 are in its name.
    node.allocatable(3);
    let log = node.stage.log_text("agent.log");
    for (told, field) in [
        ("chip vanished", "phy=0"),
        ("chip moved to another number", "from=1 to=0"),
    ] {
        let is_told = |line: &str| line.contains(told) && line.contains(field);
        let line = log.lines().find(|line| is_told(line));
        assert!(line.is_some_and(|line| line.contains("WARN")), "{log}");
    }
    let now = dies(&node);
    assert_eq!(now, truth(&node));
    for id in &holder {
        assert_eq!(node.listed_health(id).as_deref(), Some("Unhealthy"), "{id}");
    }
    assert_eq!(
        node.listed_health("Ascend910-0").as_deref(),
        Some("Unhealthy"),
        "its die is held"
    );
    let held: Vec<String> = node.held().iter().map(|held| word(held, "die")).collect();
    let expected: Vec<String> = held_before.iter().map(|held| word(held, "die")).collect();
    assert_eq!(held, expected, "the holder keeps its dies");

    let verdict = node.admit(&pod("new", 2));
    assert!(verdict.is_admitted(), "{verdict:?}");
    let container = verdict.container("main");
    assert_eq!(container.chips(), numbers_of(&verdict.ids()));
    let given = node.holders_known_of("new", 2);
    let truth = truth(&node);
    for number in container.chips() {
        let phy: u32 = number.parse().expect("a number");
        let record = given.iter().find(|held| held["phy"] == phy);
        assert_eq!(
            word(record.expect("the new grant"), "die"),
            truth[&number],
            "the node's die"
        );
        assert!(
            !expected.contains(&truth[&number]),
            "not one of the holder's dies"
        );
    }

    node.remove_named("holder");
    node.allocatable(7);
}

#[test]
fn l14_ff20_when_every_serial_is_new_the_old_holder_ends_by_proof_and_all_chips_come_back() {
    let mut node = Node::up();
    node.admitted("old", 2);
    node.holders_known(2);
    let before = dies(&node);
    node.stage.kill_agent();
    for chip in 0..8 {
        node.sim(&["replace", &chip.to_string()]);
    }
    node.start_agent();
    node.allocatable(6);
    let now = dies(&node);
    assert_eq!(now, truth(&node));
    assert!(
        now.values()
            .all(|die| !before.values().any(|old| old == die))
    );
    let other = node.admitted("new", 6);
    assert_eq!(other.len(), 6);
    assert_eq!(node.held().len(), 8);

    node.remove_named("old");
    node.allocatable(8);
    eventually("only the new pod holds chips", PATIENCE, || {
        node.held()
            .iter()
            .all(|held| held["pod"] == "new")
            .then_some(())
    });
    for tenure in node.audit_of("old") {
        assert_eq!(tenure["ended_by"], "proven gone");
        assert!(before.values().any(|die| tenure["die"] == die.as_str()));
    }
}

#[test]
fn ff20_two_chips_that_change_places_change_places_in_the_status_too() {
    let mut node = Node::up();
    let before = dies(&node);
    node.stage.kill_agent();
    node.sim(&["swap-serials", "2", "5"]);
    node.start_agent();
    node.allocatable(8);
    let now = dies(&node);
    assert_eq!(now, truth(&node));
    assert_eq!((&now["2"], &now["5"]), (&before["5"], &before["2"]));
}

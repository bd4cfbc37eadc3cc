//! A3: two dies on a card, and the driver's policy for them.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::driver::driver_host;
use super::testbed::{Node, PATIENCE, always, eventually};

const SET: &str = "dcmi_set_multi_die_policy";

/// Sixteen dies on eight cards.
fn a3() -> Node {
    Node::of("a3-8x2").flag("device-wait-seconds", "1")
}

/// The simulator's word.
fn policy(node: &Node) -> Value {
    let status: Value = serde_json::from_str(&node.sim(&["status", "--json"])).expect("JSON");
    status["multi_die_policy"].clone()
}

fn kill_driver_host(node: &Node) {
    let host = driver_host(node).expect("a driver host");
    let host = i32::try_from(host).ok().and_then(Pid::from_raw);
    kill_process(host.expect("a process id"), Signal::KILL).expect("killed");
}

#[test]
fn d02_the_start_waits_for_a_card_of_two_dies_and_a_mended_one_brings_both() {
    let mut node = a3();
    node.sim(&["fail-init", "3"]);
    node.start_kubelet(&serde_json::json!({}));
    node.start_agent();
    node.allocatable(14);
    let driver = node.status()["driver"].clone();
    assert_eq!(
        (&driver["cards_counted"], &driver["cards_failed"]),
        (&8.into(), &1.into())
    );
    node.sim(&["heal-init", "3"]);
    node.allocatable(16);
    assert_eq!(node.status()["driver"]["cards_failed"], 0);
}

#[test]
fn d02_a_node_that_waits_says_how_many_cards_are_up() {
    let mut node = a3().flag("device-wait-seconds", "3600");
    node.sim(&["fail-init", "3"]);
    node.start_kubelet(&serde_json::json!({}));
    node.start_agent();
    eventually("the wait is told", PATIENCE, || {
        let status = node.status_now()?;
        let trouble = status["driver"]["trouble"].as_str()?;
        trouble
            .starts_with("7 of 8 cards are up, 14 chips can be read")
            .then_some(())
    });
    node.too_early(1);
    node.sim(&["heal-init", "3"]);
    node.allocatable(16);
}

#[test]
fn the_second_die_of_a_card_falls_ill_and_recovers_by_itself() {
    let node = a3().ready(16);
    let FaultyDie { phy, id } = FaultyDie::at(&node, 2, 1);
    node.sim(&["health", &phy, "3"]);
    node.allocatable(15);
    assert_eq!(node.listed_health(&id).as_deref(), Some("Unhealthy"));
    node.sim(&["heal", &phy]);
    node.allocatable(16);
    node.sim(&[
        "code",
        "add",
        &phy,
        "0x80E01801",
        "--event",
        "--severity",
        "3",
    ]);
    node.allocatable(15);
    assert_eq!(node.listed_health(&id).as_deref(), Some("Unhealthy"));
}

struct FaultyDie {
    phy: String,
    id: String,
}

impl FaultyDie {
    fn at(node: &Node, card: i32, device: i32) -> Self {
        let status = node.status();
        let chips = status["chips"].as_array().expect("chips");
        let there = chips
            .iter()
            .find(|chip| chip["card"] == card && chip["device"] == device)
            .expect("the die");
        Self {
            phy: there["phy"].to_string(),
            id: there["plugin_device_id"]
                .as_str()
                .expect("an id")
                .to_owned(),
        }
    }
}

#[test]
fn d11_single_die_mode_sets_the_independent_policy_once_under_each_driver_host() {
    let mut node = a3().flag("single-die-mode", "true").ready(16);
    eventually("the policy is set", PATIENCE, || {
        (policy(&node) == 1).then_some(())
    });
    node.sampled(3);
    assert_eq!(node.calls_of(SET), 1);
    kill_driver_host(&node);
    eventually("the next host is told too", PATIENCE, || {
        (node.calls_of(SET) == 2).then_some(())
    });
    node.stage.signal_agent(Signal::TERM).expect("the agent");
    eventually("the agent ends", PATIENCE, || node.stage.agent_ended());
    node = node.flag("single-die-mode", "false");
    node.start_agent();
    eventually("the default is the union of both dies", PATIENCE, || {
        (policy(&node) == 0).then_some(())
    });
}

#[test]
fn d11_a_refused_policy_is_a_warning_with_its_code_and_every_die_is_offered() {
    let node = a3().flag("single-die-mode", "true");
    node.sim(&["return-code", SET, "-8002"]);
    let node = node.ready(16);
    let log = eventually("the warning", PATIENCE, || {
        let log = node.stage.log_text("agent.log");
        log.contains("single_die_mode stays without effect")
            .then_some(log)
    });
    let line = log
        .lines()
        .find(|line| line.contains("single_die_mode stays"))
        .expect("a line");
    assert!(line.contains("WARN") && line.contains("-8002"), "{line}");
    assert_eq!(node.allocatable_ids().len(), 16);
}

#[test]
fn d11_single_die_mode_on_other_chips_is_said_once_to_do_nothing() {
    let node = Node::of("910b3-8x1")
        .flag("single-die-mode", "true")
        .ready(8);
    let inits = node.calls_of("dcmi_init");
    kill_driver_host(&node);
    eventually("a new driver host", PATIENCE, || {
        (node.calls_of("dcmi_init") > inits).then_some(())
    });
    node.sampled(3);
    let told = || {
        let log = node.stage.log_text("agent.log");
        log.matches("single_die_mode has no effect").count()
    };
    eventually("the word", PATIENCE, || (told() == 1).then_some(()));
    always("once only", Duration::from_millis(500), || told() == 1);
    assert_eq!(node.calls_of(SET), 0);
}

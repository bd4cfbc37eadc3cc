//! A3: two dies on a card.

use std::fs;
use std::path::Path;

use super::testbed::{Node, PATIENCE, eventually};

/// Sixteen dies on eight cards.
fn a3() -> Node {
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("sim/profiles/910b3-8x1.toml");
    let mut text = fs::read_to_string(built_in).expect("a profile");
    for (from, to) in [
        ("count = 8", "count = 16"),
        ("devices_per_card = 1", "devices_per_card = 2"),
        ("chip_name = \"910B3\"", "chip_name = \"Ascend910\""),
        ("board_id = 0x32", "board_id = 0xB1"),
    ] {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    let file = tempfile::Builder::new().suffix(".toml").tempfile();
    let file = file.expect("a file");
    fs::write(file.path(), text).expect("a profile");
    let profile = file.path().to_str().expect("plain text");
    Node::of(profile).flag("device-wait-seconds", "1")
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

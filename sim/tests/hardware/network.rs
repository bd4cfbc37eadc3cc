//! Network ports, their addresses, and the links between chips.

use serde_json::json;

use crate::bench::{Hardware, Probe};

#[test]
fn network_health_follows_the_reading_of_its_chip() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("network 3 0"), "0 0");
    hardware.control(&json!({"op": "reading", "chip": 3, "name": "network_health", "value": 6}));
    assert_eq!(probe.ask("network 3 0"), "0 6");
    assert_eq!(probe.ask("network 4 0"), "0 0");
    hardware.control(&json!({"op": "reading", "chip": 3, "name": "network_health"}));
    assert_eq!(probe.ask("network 3 0"), "0 0");
}

#[test]
fn a_query_of_network_health_hangs_after_a_card_is_lost_until_it_is_released() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    hardware.control(&json!({"op": "lose", "unit": 2}));
    hardware.control(&json!({
        "op": "hang", "symbol": "dcmi_get_device_network_health", "chip": 2
    }));
    probe.begin("network 2 0");
    crate::bench::eventually(|| !hardware.calls()["held"].as_array().unwrap().is_empty());
    assert_eq!(probe.ask("network 1 0"), "0 0");
    assert!(!probe.finished());
    hardware.control(&json!({"op": "release"}));
    assert_eq!(probe.finish(), "-8012 0");
}

#[test]
fn addresses_come_by_version_with_their_masks() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("ip 0 0 1 0 0"), "0 10.20.0.11 255.255.255.0");
    assert_eq!(probe.ask("ip 7 0 1 0 0"), "0 10.20.0.18 255.255.255.0");
    assert_eq!(
        probe.ask("ip 7 0 1 0 1"),
        "0 fd00:20::18 ffff:ffff:ffff:ffff::"
    );
    assert_eq!(probe.ask("ip 7 0 1 0 2"), "0 10.20.0.18 255.255.255.0");
    assert_eq!(probe.ask("ip 0 0 1 0 3"), "-8001  ");
    assert_eq!(probe.ask("ip 0 0 2 0 0"), "-8001  ");
    assert_eq!(probe.ask("ip 0 0 1 1 0"), "-8001  ");
    assert_eq!(probe.ask("ip 0 0 0 0 0"), "-8023  ");
}

#[test]
fn an_address_taken_away_is_not_configured_and_stays_so() {
    let mut hardware = Hardware::start("910b3-8x1");
    assert!(hardware.ctl(&["address", "2", "v4"]).status.success());
    let moved = hardware.ctl(&["address", "3", "v4", "192.168.7.9/16"]);
    assert!(moved.status.success());
    let refused = hardware.ctl(&["address", "3", "v6", "192.168.7.9/16"]);
    assert_eq!(refused.status.code(), Some(1));
    hardware.kill_and_restart();
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("ip 2 0 1 0 0"), "-8023  ");
    assert_eq!(
        probe.ask("ip 2 0 1 0 2"),
        "0 fd00:20::13 ffff:ffff:ffff:ffff::"
    );
    assert_eq!(probe.ask("ip 3 0 1 0 0"), "0 192.168.7.9 255.255.0.0");
}

#[test]
fn links_follow_card_group_and_numa_node() {
    let a3 = Hardware::start("a3-8x2");
    let mut probe = Probe::ready(&a3);
    assert_eq!(probe.ask("link 0 0 0 0"), "0 0");
    assert_eq!(probe.ask("link 0 0 0 1"), "0 6");
    assert_eq!(probe.ask("link 0 1 7 0"), "0 7");
    assert_eq!(probe.ask("link 0 0 8 0"), "-8001");
    assert_eq!(probe.ask("link 8 0 0 0"), "-8001");
    a3.control(&json!({"op": "lose", "unit": "7,0"}));
    assert_eq!(probe.ask("link 0 1 7 0"), "0 9");

    let cards = Hardware::start_edited("910b4-2x1", |text| {
        text.replace("\ncount = 2", "\ncount = 3")
            .replace("cards = [1, 4]", "cards = [1, 4, 5]")
            .replace("[0x01, 0x81]", "[0x01, 0x02, 0x81]")
    });
    let mut probe = Probe::ready(&cards);
    assert_eq!(probe.ask("link 1 0 4 0"), "0 2");
    assert_eq!(probe.ask("link 1 0 5 0"), "0 1");

    let halves = Hardware::start_edited("910b3-8x1", |text| {
        text.replace("# group_size = 4", "group_size = 4")
    });
    let mut probe = Probe::ready(&halves);
    assert_eq!(probe.ask("link 0 0 3 0"), "0 3");
    assert_eq!(probe.ask("link 3 0 4 0"), "0 1");

    let pod = Hardware::start("a5-8x1");
    let mut probe = Probe::start(&pod);
    assert_eq!(probe.ask("init2"), "0");
    assert_eq!(probe.ask("link2 0 7"), "0 8");
    assert_eq!(probe.ask("network2 0"), "0 0");
}

//! What chips are and what they measure, family by family.

use serde_json::json;

use crate::bench::{Hardware, Probe};

#[test]
fn a_910b3_server_answers_as_its_family_does() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("chip 0 0"), "0 Ascend 910B3 V1 910B3 20 20");
    assert_eq!(probe.ask("board 5 0"), "0 0x32 5");
    assert_eq!(probe.ask("mainboard 5 0"), "0 0x2");
    assert_eq!(
        probe.ask("die 0 0 0"),
        "-8255 00000000-00000000-00000000-00000000-00000000"
    );
    assert_eq!(probe.ask("die 0 0 2"), probe.ask("die 0 0 1"));
    assert_eq!(probe.ask("pcie 1 0"), "0 19e5 d802 0000:23:00.0");
    assert_eq!(probe.ask("product 0 0 64"), "-8255 ");
    assert_eq!(probe.ask("affinity 0 0"), "0 0-31 4");
    assert_eq!(probe.ask("affinity 7 0"), "0 32-63 5");
    assert_eq!(probe.ask("brother 0 0"), "-8255");
    assert_eq!(probe.ask("label 2"), "0 NA SIM910B30002");
    assert_eq!(probe.ask("version 64"), "0 25.2.0");
    assert_eq!(probe.ask("version 15"), "-8001 ");
    assert_eq!(probe.ask("memory 0 0"), "-8255 0 0 0 0");
    assert_eq!(probe.ask("multi 0 0"), "0 1");
    assert_eq!(probe.ask("mcupower 0"), "-8255");
    assert_eq!(probe.ask("oldcodes 0 0"), "-8255 0 0 0");
    assert_eq!(probe.ask("frequency 0 0 9"), "0 1800");
    assert_eq!(probe.ask("frequency 0 0 1"), "-8255 0");
    assert_eq!(probe.ask("frequency 0 0 13"), "-8001 0");
    assert_eq!(probe.ask("utilization 0 0 3"), "0 5");
    assert_eq!(probe.ask("utilization 0 0 1"), "-8255 0");
    assert_eq!(probe.ask("voltage 0 0"), "0 90");
}

#[test]
fn a_310p3_server_answers_as_its_family_does() {
    let hardware = Hardware::start("310p3-4x1");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("chip 2 0"), "0 Ascend 310P3 V1 310P3 8 8");
    assert_eq!(probe.ask("product 2 0 64"), "0 Atlas 300I Pro");
    assert_eq!(probe.ask("product 2 0 31"), "-8001 ");
    assert_eq!(probe.ask("mainboard 2 0"), "-8255 0");
    assert_eq!(probe.ask("hbm 2 0"), "-8255 0 0 0");
    assert_eq!(probe.ask("memory 2 0"), "0 21527 19804 2048 8");
    assert_eq!(probe.ask("utilization 2 0 1"), "0 8");
    assert_eq!(probe.ask("multi 2 0"), "-8255 1");
    assert_eq!(probe.ask("ecc 2 0 0"), "0 12");
    assert_eq!(probe.ask("oldcodes 2 0"), "0 0 4 0");
    assert!(probe.ask("mcupower 2").starts_with("0 2"));
    assert_ne!(probe.ask("die 2 0 0"), probe.ask("die 2 0 1"));
}

#[test]
fn a_950_server_answers_as_its_family_does() {
    let hardware = Hardware::start("a5-8x1");
    let mut probe = Probe::start(&hardware);
    assert_eq!(probe.ask("init2"), "0");
    assert_eq!(probe.ask("chip2 0"), "0 Ascend950PR 9589 32");
    assert!(probe.ask("die2 0 2").starts_with("0 "));
    assert!(probe.ask("die2 0 1").starts_with("-8255 "));
    assert_eq!(probe.ask("hbm2 0"), "0 131072");
    assert!(probe.ask("utilization2 0 14").starts_with("0 "));
    assert!(!hardware.path("dev/devmm_svm").exists());
    assert!(hardware.path("dev/uburma/uburma0").exists());
}

#[test]
fn identities_are_unique_and_survive_everything_but_a_swap() {
    let mut hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    let dies: Vec<String> = (0..8)
        .map(|card| probe.ask(&format!("die {card} 0 1")))
        .collect();
    let distinct: std::collections::BTreeSet<&String> = dies.iter().collect();
    assert_eq!(distinct.len(), 8);
    hardware.control(&json!({"op": "reboot"}));
    hardware.kill_and_restart();
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("die 2 0 1"), dies[2]);
    hardware.control(&json!({"op": "swap-serials", "first": 2, "second": 5}));
    assert_eq!(probe.ask("die 2 0 1"), dies[5]);
    assert_eq!(probe.ask("die 5 0 1"), dies[2]);
    hardware.control(&json!({"op": "replace", "chip": 0}));
    assert!(!dies.contains(&probe.ask("die 0 0 1")));
    assert_eq!(probe.ask("label 0"), "0 NA SIM910B3R0001");
}

#[test]
fn readings_can_be_fixed_also_to_sentinels() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    let fix = |name: &str, value: i64| {
        hardware.control(&json!({"op": "reading", "chip": 1, "name": name, "value": value}));
    };
    fix("temperature", -300);
    fix("voltage", 0xFFFF_FFFF);
    fix("utilization_2", 130);
    assert_eq!(probe.ask("temperature 1 0"), "0 -300");
    assert_eq!(probe.ask("voltage 1 0"), "0 4294967295");
    assert_eq!(probe.ask("utilization 1 0 2"), "0 0");
    hardware.control(&json!({"op": "reading", "chip": 1, "name": "temperature"}));
    let celsius: i32 = probe.ask("temperature 1 0")[2..].parse().unwrap();
    assert!((41..=49).contains(&celsius));
}

#[test]
fn holders_are_listed_up_to_sixty_four() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("processes 2 0"), "0 0 0 0");
    hardware.control(&json!({"op": "processes", "chip": 2, "count": 64}));
    assert_eq!(probe.ask("processes 2 0"), "0 64 10200 67108864");
    assert_eq!(probe.ask("processes 1 0"), "0 0 0 0");
    let refused = hardware.try_control(&json!({"op": "processes", "chip": 2, "count": 65}));
    assert_eq!(refused["ok"], false);
}

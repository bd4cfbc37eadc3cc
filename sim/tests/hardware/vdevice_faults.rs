//! vNPUs that others use or made, and what goes wrong with them.

use serde_json::{Value, json};

use crate::bench::{Hardware, Probe, eventually};

const ANY: &str = "-1 -1";

#[test]
fn what_a_container_uses_is_not_destroyed() {
    let hardware = Hardware::start("310p3-4x1");
    let mut probe = Probe::ready(&hardware);
    probe.ask(&format!("create 2 0 vir02 {ANY}"));
    probe.ask(&format!("create 2 0 vir01 {ANY}"));
    let used = |switch| json!({"op": "vdev", "action": "use", "id": 100, "switch": switch});
    hardware.control(&used("on"));
    assert!(probe.ask("vdev 2 0 100").contains(" used 1 "));
    assert_eq!(probe.ask("destroy 2 0 100"), "-8020");
    assert_eq!(probe.ask("destroy 2 0 0xffff"), "-8020");
    assert_eq!(probe.ask("vdev 2 0 101"), "-8008 264");
    hardware.control(&used("off"));
    assert_eq!(probe.ask("destroy 2 0 100"), "0");
}

#[test]
fn activity_follows_the_chip_while_a_container_uses_the_vnpu() {
    let hardware = Hardware::start("310p3-4x1");
    let mut probe = Probe::ready(&hardware);
    probe.ask(&format!("create 2 0 vir02 {ANY}"));
    assert_eq!(probe.ask("activity 2 0 100"), "0 100 0 6291456 6291456");
    hardware.control(&json!({"op": "vdev", "action": "use", "id": 100, "switch": "on"}));
    for (name, value) in [
        ("utilization_2", 60),
        ("memory_size_mb", 20_000),
        ("memory_available_mb", 5000),
    ] {
        hardware.control(&json!({"op": "reading", "chip": 0, "name": name, "value": value}));
    }
    assert_eq!(probe.ask("activity 2 0 100"), "0 100 60 6291456 1572864");
    assert_eq!(probe.ask("activity 2 0 101"), "-8008 264");
    assert!(
        hardware
            .ctl(&["vdev", "activity", "0", "off"])
            .status
            .success()
    );
    assert_eq!(probe.ask("activity 2 0 100"), "-8255 264");
    assert!(
        hardware
            .ctl(&["vdev", "activity", "0", "on"])
            .status
            .success()
    );
    hardware.control(&json!({"op": "caller", "caller": "container"}));
    assert_eq!(probe.ask("activity 2 0 100"), "-8002 264");
}

#[test]
fn another_program_makes_vnpus_too() {
    let hardware = Hardware::start("310p3-4x1");
    let mut probe = Probe::ready(&hardware);
    let made = hardware.ctl(&["vdev", "create", "1", "vir02", "--id", "118"]);
    assert_eq!(String::from_utf8(made.stdout).unwrap(), "118\n");
    assert!(hardware.nodes().contains(&"vdavinci118".to_owned()));
    assert!(probe.ask("vdev 3 0 118").starts_with("0 264 118 vir02 "));
    let strange = json!({"op": "vdev", "action": "create", "chip": 1, "template": "vir01",
        "shown_as": "vir99_new"});
    assert_eq!(hardware.control(&strange), json!(116));
    assert!(
        probe
            .ask("vdev 3 0 116")
            .starts_with("0 264 116 vir99_new used 0 ")
    );
    let refused = hardware.ctl(&["vdev", "create", "1", "vir04_4c_dvpp"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("-8020"));
    let listed: Value = serde_json::from_slice(&hardware.ctl(&["vdev", "list"]).stdout).unwrap();
    assert_eq!(listed[1]["id"], 118);
    assert_eq!(hardware.status()["chips"][1]["vdevices"], listed);
    let text = String::from_utf8(hardware.ctl(&["status"]).stdout).unwrap();
    assert!(text.contains("vNPU 118 on phy 1: vir02"));
    assert!(hardware.ctl(&["vdev", "destroy", "118"]).status.success());
    assert_eq!(probe.ask("vdev 3 0 118"), "-8008 264");
    assert_eq!(
        hardware.ctl(&["vdev", "destroy", "118"]).status.code(),
        Some(1)
    );
}

#[test]
fn a_destroy_may_succeed_and_leave_the_vnpu() {
    let hardware = Hardware::start("310p3-4x1");
    let mut probe = Probe::ready(&hardware);
    probe.ask(&format!("create 2 0 vir02 {ANY}"));
    assert!(
        hardware
            .ctl(&["vdev", "stuck", "100", "on"])
            .status
            .success()
    );
    assert_eq!(probe.ask("destroy 2 0 100"), "0");
    assert_eq!(probe.ask("destroy 2 0 0xffff"), "0");
    assert!(probe.ask("vdev 2 0 100").starts_with("0 264 100 "));
    assert!(hardware.nodes().contains(&"vdavinci100".to_owned()));
    assert!(
        hardware
            .ctl(&["vdev", "stuck", "100", "off"])
            .status
            .success()
    );
    assert_eq!(probe.ask("destroy 2 0 100"), "0");
    assert_eq!(probe.ask("vdev 2 0 100"), "-8008 264");
}

#[test]
fn a_create_may_be_carried_out_while_its_answer_is_held() {
    let hardware = Hardware::start("310p3-4x1");
    let mut probe = Probe::ready(&hardware);
    let symbol = "dcmi_create_vdevice";
    assert!(hardware.ctl(&["hang", symbol, "--answer"]).status.success());
    probe.begin(&format!("create 2 0 vir02 {ANY}"));
    eventually(|| hardware.calls()["held"].as_array().unwrap().len() == 1);
    assert!(hardware.nodes().contains(&"vdavinci100".to_owned()));
    assert!(probe.ask("vdev 2 0 100").starts_with("0 264 100 vir02 "));
    assert!(!probe.finished());
    assert!(hardware.ctl(&["release", symbol]).status.success());
    assert_eq!(probe.finish(), "0 100 0");
    // A caller that is gone before the answer leaves what it made.
    hardware.control(&json!({"op": "hang", "symbol": symbol, "answer": true}));
    probe.begin(&format!("create 2 0 vir01 {ANY}"));
    eventually(|| hardware.nodes().contains(&"vdavinci101".to_owned()));
    probe.kill();
    assert!(
        Probe::ready(&hardware)
            .ask("vdev 2 0 101")
            .starts_with("0 264 101 vir01 ")
    );
    hardware.control(&json!({"op": "return-code", "symbol": symbol, "code": -8006, "times": 1}));
    hardware.control(&json!({"op": "release"}));
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask(&format!("create 2 0 vir01 {ANY}")), "-8006 0 -");
    assert_eq!(probe.ask("vdev 2 0 102"), "-8008 264");
}

#[test]
fn a_lost_card_takes_its_vnpus_out_of_sight() {
    let hardware = Hardware::start("310p3-4x1");
    let mut probe = Probe::ready(&hardware);
    probe.ask(&format!("create 2 0 vir02 {ANY}"));
    hardware.control(&json!({"op": "lose", "unit": 2}));
    assert_eq!(probe.ask("vdev 2 0 100"), "-8012 264");
    assert_eq!(probe.ask(&format!("create 2 0 vir01 {ANY}")), "-8012 0 -");
    assert!(!hardware.nodes().contains(&"vdavinci100".to_owned()));
    hardware.control(&json!({"op": "return", "unit": 2}));
    assert!(hardware.nodes().contains(&"vdavinci100".to_owned()));
}

//! Faults made on purpose, and that they stay where they were put.

use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::json;

use crate::bench::{Hardware, Probe, eventually, timed};

fn held(hardware: &Hardware) -> usize {
    hardware.calls()["held"].as_array().unwrap().len()
}

#[test]
fn a_return_code_holds_for_so_many_calls_of_one_chip() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    let symbol = "dcmi_get_device_health";
    let set = hardware.ctl(&[
        "return-code",
        symbol,
        "-8011",
        "--chip",
        "2",
        "--times",
        "2",
    ]);
    assert!(set.status.success());
    assert_eq!(probe.ask("health 1 0"), "0 0");
    assert_eq!(probe.ask("health 2 0"), "-8011 4");
    assert_eq!(probe.ask("health 2 0"), "-8011 4");
    assert_eq!(probe.ask("health 2 0"), "0 0");
    hardware.control(&json!({"op": "return-code", "symbol": symbol, "code": -8006}));
    assert_eq!(probe.ask("health 1 0"), "-8006 4");
    hardware.control(&json!({"op": "return-code", "symbol": symbol, "code": 0}));
    assert_eq!(probe.ask("health 1 0"), "0 0");
}

#[test]
fn a_return_code_holds_for_a_period() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    assert!(
        hardware
            .ctl(&["return-code", "*", "-8017", "--for", "300"])
            .status
            .success()
    );
    assert_eq!(probe.ask("temperature 1 0"), "-8017");
    eventually(|| probe.ask("temperature 1 0").starts_with("0 "));
}

#[test]
fn a_misspelt_symbol_or_chip_is_refused() {
    let hardware = Hardware::start("910b3-8x1");
    let refused = hardware.ctl(&["hang", "dcmi_get_health"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        String::from_utf8(refused.stderr)
            .unwrap()
            .contains("dcmi_get_health")
    );
    assert_eq!(hardware.ctl(&["health", "8", "1"]).status.code(), Some(1));
    assert_eq!(hardware.ctl(&["health", "0", "7"]).status.code(), Some(2));
    assert_eq!(
        hardware.try_control(&json!({"op": "nonsense"}))["ok"],
        false
    );
}

#[test]
fn latency_delays_one_symbol_of_one_chip() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    let symbol = "dcmi_get_device_temperature";
    assert!(
        hardware
            .ctl(&["latency", symbol, "300", "--chip", "1"])
            .status
            .success()
    );
    let slow = timed(|| assert!(probe.ask("temperature 1 0").starts_with("0 ")));
    assert!(slow >= Duration::from_millis(300));
    probe.begin("temperature 1 0");
    eventually(|| held(&hardware) == 1);
    assert!(probe.ask("temperature 2 0").starts_with("0 "));
    assert!(!probe.finished());
    assert!(probe.finish().starts_with("0 "));
}

#[test]
fn latency_may_exceed_the_time_limit_of_the_socket() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    hardware.control(&json!({"op": "latency", "symbol": "dcmi_get_device_health", "ms": 2500}));
    assert_eq!(probe.ask("health 0 0"), "0 0");
}

#[test]
fn a_hang_holds_its_chip_only_and_until_released() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    assert!(
        hardware
            .ctl(&["hang", "dcmi_get_device_health", "--chip", "5"])
            .status
            .success()
    );
    probe.begin("health 5 0");
    eventually(|| held(&hardware) == 1);
    assert_eq!(probe.ask("health 4 0"), "0 0");
    assert_eq!(
        hardware.calls()["held"][0]["symbol"],
        "dcmi_get_device_health"
    );
    hardware.control(&json!({"op": "health", "chip": 5, "level": 2}));
    assert!(hardware.ctl(&["release"]).status.success());
    assert_eq!(probe.finish(), "0 2");
    assert_eq!(held(&hardware), 0);
    assert_eq!(probe.ask("health 5 0"), "0 2");
}

#[test]
fn init_and_enumeration_can_hang() {
    let hardware = Hardware::start("910b3-8x1");
    hardware.control(&json!({"op": "hang", "symbol": "dcmi_init"}));
    let mut probe = Probe::start(&hardware);
    probe.begin("init");
    eventually(|| held(&hardware) == 1);
    assert_eq!(probe.ask("list 64"), "-8005");
    hardware.control(&json!({"op": "release", "symbol": "dcmi_init"}));
    assert_eq!(probe.finish(), "0");
    hardware.control(&json!({"op": "hang", "symbol": "dcmi_get_card_list"}));
    probe.begin("list 64");
    eventually(|| held(&hardware) == 1);
    hardware.control(&json!({"op": "release"}));
    assert_eq!(probe.finish(), "0 0 1 2 3 4 5 6 7");
}

#[test]
fn during_an_upgrade_every_call_says_so() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    assert!(hardware.ctl(&["upgrade", "on"]).status.success());
    assert_eq!(probe.ask("health 0 0"), "-8017 4");
    assert_eq!(probe.ask("list 64"), "-8017");
    assert_eq!(Probe::start(&hardware).ask("init"), "-8017");
    assert!(hardware.ctl(&["upgrade", "off"]).status.success());
    assert_eq!(probe.ask("list 64"), "0 0 1 2 3 4 5 6 7");
}

#[test]
fn killed_processes_leave_nothing_behind() {
    let hardware = Hardware::start("910b3-8x1");
    hardware.control(&json!({"op": "hang", "symbol": "dcmi_get_device_power_info"}));
    let mut probes: Vec<Probe> = (0..3).map(|_| Probe::ready(&hardware)).collect();
    for probe in &mut probes {
        assert_eq!(probe.ask("subscribe -1 -1"), "0");
        probe.begin("power 0 0");
    }
    eventually(|| held(&hardware) == 3);
    assert_eq!(hardware.calls()["processes"].as_array().unwrap().len(), 3);
    for probe in &mut probes {
        probe.kill();
    }
    eventually(|| {
        let calls = hardware.calls();
        calls["held"].as_array().unwrap().is_empty()
            && calls["processes"].as_array().unwrap().is_empty()
    });
}

#[test]
fn calls_are_counted_by_symbol_and_can_be_reset() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    for _ in 0..5 {
        probe.ask("health 0 0");
    }
    let calls = hardware.control(&json!({"op": "calls", "reset": true}));
    assert_eq!(
        calls["symbols"],
        json!({"dcmi_get_device_health": 5, "dcmi_init": 1})
    );
    assert_eq!(calls["processes"][0]["calls"], 6);
    assert_eq!(hardware.calls()["symbols"], json!({}));
}

#[test]
fn connections_beyond_the_bound_are_closed_and_those_before_go_on() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    let crowd: Vec<UnixStream> = (0..600)
        .map(|_| UnixStream::connect(hardware.socket()).unwrap())
        .collect();
    assert_eq!(probe.ask("health 0 0"), "0 0");
    drop(crowd);
    eventually(|| {
        let mut late = Probe::start(&hardware);
        late.ask("init") == "0"
    });
}

//! Start, restart, reboot and end of the hardware.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::bench::{Hardware, Probe, daemon_command};

#[test]
fn sixteen_chips_take_one_changed_line() {
    let hardware =
        Hardware::start_edited("910b3-8x1", |text| text.replace("count = 8", "count = 16"));
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("count"), "0 16");
    assert_eq!(probe.ask("byphy 15"), "0 15 0");
    assert!(hardware.nodes().contains(&"davinci15".to_owned()));
}

#[test]
fn what_happened_to_the_chips_survives_a_killed_daemon() {
    let mut hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    hardware.control(&json!({"op": "lose", "unit": 1}));
    hardware.control(&json!({"op": "health", "chip": 2, "level": 3}));
    hardware.control(&json!({"op": "code", "action": "add", "chip": 2, "code": 0x8C1F_8608_u32}));
    hardware.control(&json!({"op": "replace", "chip": 3}));
    hardware.control(&json!({"op": "remove", "chip": 7}));
    let before = hardware.status();
    hardware.kill_and_restart();
    let after = hardware.status();
    assert_eq!(after["chips"], before["chips"]);
    assert_eq!(after["boot"], before["boot"]);
    assert_eq!(probe.ask("health 2 0"), "0 3");
    assert_eq!(probe.ask("health 1 0"), "-8012 4");
    assert!(!hardware.nodes().contains(&"davinci1".to_owned()));
}

#[test]
fn a_reboot_clears_faults_and_makes_old_processes_stale() {
    let hardware = Hardware::start("910b3-8x1");
    let boot = fs::read_to_string(hardware.path("boot_id")).unwrap();
    hardware.control(&json!({"op": "health", "chip": 2, "level": 3}));
    hardware.control(&json!({"op": "lose", "unit": 1}));
    hardware.control(&json!({"op": "upgrade", "switch": "on"}));
    hardware.control(&json!({"op": "hang", "symbol": "*"}));
    hardware.control(&json!({"op": "release"}));
    hardware.control(&json!({"op": "upgrade", "switch": "off"}));
    let mut before = Probe::ready(&hardware);
    assert_eq!(before.ask("subscribe -1 -1"), "0");
    assert!(hardware.ctl(&["reboot"]).status.success());
    assert_ne!(fs::read_to_string(hardware.path("boot_id")).unwrap(), boot);
    assert_eq!(before.ask("health 2 0"), "-8005 4");
    assert_eq!(before.ask("list 64"), "0 -1 0 2 3 4 5 6 7");
    let mut after = Probe::ready(&hardware);
    assert_eq!(after.ask("list 64"), "0 0 1 2 3 4 5 6 7");
    assert_eq!(after.ask("health 2 0"), "0 0");
    assert_eq!(hardware.status()["boots"], 2);
    assert_eq!(before.ask("init"), "0");
    assert_eq!(before.ask("health 2 0"), "0 0");
}

#[test]
fn an_orderly_end_removes_what_was_made_and_nothing_else() {
    let mut hardware = Hardware::start("910b3-8x1");
    fs::write(hardware.path("dev/foreign"), "").unwrap();
    let killed = Command::new("kill")
        .arg(hardware.pid().to_string())
        .status()
        .unwrap();
    assert!(killed.success());
    assert!(hardware.wait_for_end());
    let left: Vec<_> = fs::read_dir(hardware.path("dev")).unwrap().collect();
    assert_eq!(left.len(), 1);
    assert!(!hardware.socket().exists());
    assert!(hardware.path("state").exists());
}

#[test]
fn a_shutdown_request_ends_the_daemon() {
    let mut hardware = Hardware::start("a5-8x1");
    assert!(hardware.ctl(&["shutdown"]).status.success());
    assert!(hardware.wait_for_end());
    assert_eq!(fs::read_dir(hardware.path("dev")).unwrap().count(), 0);
}

#[test]
fn a_second_daemon_on_the_same_socket_is_refused() {
    let hardware = Hardware::start("910b3-8x1");
    let refused = daemon_command(&hardware.path(""), "910b3-8x1")
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        String::from_utf8(refused.stderr)
            .unwrap()
            .contains("served by another daemon")
    );
    assert_eq!(Probe::ready(&hardware).ask("health 0 0"), "0 0");
}

#[test]
fn the_state_of_another_machine_is_refused() {
    let mut hardware = Hardware::start("910b3-8x1");
    hardware.kill();
    let refused = daemon_command(&hardware.path(""), "a5-8x1")
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        String::from_utf8(refused.stderr)
            .unwrap()
            .contains("belongs to profile 910b3-8x1")
    );
}

#[test]
fn numa_facts_are_laid_out_like_sysfs() {
    let hardware = Hardware::start("310p3-4x1");
    let read = |name: &str| fs::read_to_string(hardware.path(name)).unwrap();
    assert_eq!(read("sys/bus/pci/devices/0000:3b:00.0/numa_node"), "1\n");
    assert_eq!(read("sys/devices/system/node/node1/cpulist"), "24-47\n");
    hardware.control(&json!({"op": "lose", "unit": 15104}));
    assert!(!hardware.path("sys/bus/pci/devices/0000:3b:00.0").exists());
}

#[test]
fn reports_are_readable_and_also_json() {
    let hardware = Hardware::start("310p3-4x1");
    hardware.control(&json!({"op": "lose", "unit": 6}));
    let text = String::from_utf8(hardware.ctl(&["status"]).stdout).unwrap();
    assert!(
        text.lines()
            .any(|line| line.contains("15104") && line.contains("present"))
    );
    assert!(text.lines().any(|line| line.contains("lost")));
    let json = hardware.ctl(&["status", "--json"]).stdout;
    let parsed: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(parsed["chips"][2]["lost"], true);
    let calls = hardware.ctl(&["calls", "--json"]).stdout;
    assert!(serde_json::from_slice::<serde_json::Value>(&calls).is_ok());
}

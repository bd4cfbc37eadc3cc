//! Health, codes and events.

use serde_json::json;

use crate::bench::{Hardware, Probe, eventually};

#[test]
fn health_and_codes_are_independent() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    assert!(hardware.ctl(&["health", "4", "3"]).status.success());
    assert_eq!(probe.ask("health 4 0"), "0 3");
    assert_eq!(probe.ask("codes 4 0 128"), "0");
    assert!(hardware.ctl(&["health", "4", "absent"]).status.success());
    assert_eq!(probe.ask("health 4 0"), "0 4294967295");
    assert!(hardware.ctl(&["health", "4", "0"]).status.success());
    assert!(
        hardware
            .ctl(&["code", "add", "4", "0x80E01801"])
            .status
            .success()
    );
    assert!(
        hardware
            .ctl(&["code", "add", "4", "0x80CB8009"])
            .status
            .success()
    );
    assert_eq!(probe.ask("health 4 0"), "0 0");
    assert_eq!(probe.ask("codes 4 0 128"), "0 0x80e01801 0x80cb8009");
    assert_eq!(probe.ask("codes 4 0 1"), "-8001");
    assert_eq!(probe.ask("codes 4 0 0"), "-8001");
    assert!(
        hardware
            .ctl(&["code", "clear", "4", "0x80E01801"])
            .status
            .success()
    );
    assert_eq!(probe.ask("codes 4 0 128"), "0 0x80cb8009");
}

#[test]
fn a_lost_card_answers_not_ready_and_its_codes_inner_error() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    assert!(hardware.ctl(&["lose", "3"]).status.success());
    assert_eq!(probe.ask("health 3 0"), "-8012 4");
    assert_eq!(probe.ask("codes 3 0 128"), "-8005");
    assert_eq!(probe.ask("voltage 3 0"), "-8005 0");
    assert_eq!(probe.ask("temperature 3 0"), "-8012");
    assert_eq!(probe.ask("health 2 0"), "0 0");
    assert_eq!(probe.ask("list 64"), "0 0 1 2 3 4 5 6 7");
    assert!(!hardware.nodes().contains(&"davinci3".to_owned()));
    assert_eq!(Probe::ready(&hardware).ask("list 64"), "0 -1 0 1 2 4 5 6 7");
    assert!(hardware.ctl(&["return", "3,0"]).status.success());
    assert_eq!(probe.ask("health 3 0"), "0 0");
    assert!(hardware.nodes().contains(&"davinci3".to_owned()));
    assert!(!hardware.ctl(&["lose", "3,1"]).status.success());
}

#[test]
fn an_event_reaches_the_callback_with_all_its_fields() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("subscribe -1 -1"), "0");
    assert!(
        hardware
            .ctl(&["code", "add", "6", "0x80E01801", "--event"])
            .status
            .success()
    );
    assert_eq!(probe.event(), "0 0x80e01801 6 2 1 simulated fault");
    assert_eq!(probe.ask("codes 6 0 128"), "0 0x80e01801");
    assert!(
        hardware
            .ctl(&["code", "clear", "6", "0x80E01801", "--event"])
            .status
            .success()
    );
    assert_eq!(probe.event(), "0 0x80e01801 6 2 0 simulated fault");
    let once = [
        "event",
        "1",
        "0",
        "--assertion",
        "oneoff",
        "--severity",
        "3",
    ];
    assert!(hardware.ctl(&once).status.success());
    assert_eq!(probe.event(), "0 0 1 3 2 simulated fault");
    assert_eq!(probe.ask("codes 1 0 128"), "0");
}

#[test]
fn an_event_can_come_twice_and_after_a_later_one() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("subscribe -1 -1"), "0");
    for (serial, count) in [(70, 2), (12, 1)] {
        hardware.control(&json!({
            "op": "event", "chip": 1, "code": 8, "count": count, "serial": serial
        }));
        for _ in 0..count {
            assert_eq!(probe.event(), "0 0x8 1 2 1 simulated fault");
        }
        assert_eq!(probe.ask("serial"), serial.to_string());
    }
}

#[test]
fn the_filter_passed_by_value_is_honoured() {
    let hardware = Hardware::start("910b3-8x1");
    let mut by_id = Probe::ready(&hardware);
    let mut by_severity = Probe::ready(&hardware);
    let mut by_chip = Probe::ready(&hardware);
    assert_eq!(by_id.ask("subscribe -1 -1 1 0x77"), "0");
    assert_eq!(by_severity.ask("subscribe -1 -1 2 0 3"), "0");
    assert_eq!(by_chip.ask("subscribe 5 0 0"), "0");
    let emit = |chip: u32, code: u32, severity: u8| {
        let event = json!({"op": "event", "chip": chip, "code": code, "severity": severity});
        hardware.control(&event);
    };
    emit(0, 0x76, 1);
    emit(5, 0x78, 2);
    emit(1, 0x77, 0);
    emit(2, 0x79, 3);
    assert_eq!(by_id.event(), "0 0x77 1 0 1 simulated fault");
    assert_eq!(by_severity.event(), "0 0x79 2 3 1 simulated fault");
    assert_eq!(by_chip.event(), "0 0x78 5 2 1 simulated fault");
    assert!(!by_id.has_event() && !by_severity.has_event() && !by_chip.has_event());
}

#[test]
fn the_second_subscription_of_a_process_is_refused() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("subscribe-null"), "-8001");
    assert_eq!(probe.ask("subscribe 9 9"), "-8001");
    assert_eq!(probe.ask("subscribe -1 -1"), "0");
    assert_eq!(probe.ask("subscribe 2 0"), "-8020");
    assert_eq!(probe.ask("getevent -1 -1 0"), "-8020 0 0 0 0 0 ");
    assert_eq!(Probe::ready(&hardware).ask("subscribe -1 -1"), "0");
}

#[test]
fn a_failed_first_subscription_poisons_the_process() {
    let hardware = Hardware::start("910b3-8x1");
    let rule = json!({
        "op": "return-code", "symbol": "dcmi_subscribe_fault_event", "code": -8005, "times": 1,
    });
    hardware.control(&rule);
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("subscribe -1 -1"), "-8005");
    assert_eq!(probe.ask("subscribe -1 -1"), "-8020");
    assert_eq!(hardware.calls()["symbols"]["dcmi_subscribe_fault_event"], 2);
}

#[test]
fn the_second_generation_subscribes_too() {
    let hardware = Hardware::start("a5-8x1");
    let mut probe = Probe::start(&hardware);
    assert_eq!(probe.ask("init2"), "0");
    assert_eq!(probe.ask("subscribe2 -1"), "0");
    hardware.control(&json!({"op": "code", "action": "add", "chip": 7, "code": 5, "event": true}));
    assert_eq!(probe.event(), "0 0x5 7 2 1 simulated fault");
    assert_eq!(probe.ask("codes2 7 128"), "0 0x5");
}

#[test]
fn events_can_come_before_subscribe_returns() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    let early = json!({"op": "event", "chip": 2, "code": 9, "count": 2, "on_subscribe": true});
    hardware.control(&early);
    assert_eq!(probe.ask("subscribe -1 -1"), "0");
    assert!(probe.has_event() && probe.has_event());
}

#[test]
fn a_storm_of_duplicates_arrives_whole() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("subscribe -1 -1"), "0");
    assert!(
        hardware
            .ctl(&["event", "0", "0x1", "--count", "5000"])
            .status
            .success()
    );
    for _ in 0..5000 {
        assert_eq!(probe.event(), "0 0x1 0 2 1 simulated fault");
    }
    assert_eq!(hardware.status()["events_dropped"], 0);
}

#[test]
fn events_can_be_read_one_by_one_with_a_time_limit() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("getevent -1 -1 30001"), "-8001 0 0 0 0 0 ");
    assert_eq!(probe.ask("getevent -1 -1 0"), "-8006 0 0 0 0 0 ");
    hardware.control(&json!({"op": "event", "chip": 3, "code": 7}));
    hardware.control(&json!({"op": "event", "chip": 3, "code": 8}));
    assert_eq!(
        probe.ask("getevent -1 -1 1000 1 8"),
        "0 0 0x8 3 2 1 simulated fault"
    );
    probe.begin("getevent -1 -1 -1");
    eventually(|| hardware.calls()["symbols"]["dcmi_get_fault_event"] == 3);
    assert_eq!(probe.ask("health 0 0"), "0 0");
    hardware.control(&json!({"op": "event", "chip": 1, "code": 6}));
    assert_eq!(probe.finish(), "0 0 0x6 1 2 1 simulated fault");
}

#[test]
fn a_subscription_outlives_a_restart_of_the_daemon() {
    let mut hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("subscribe -1 -1"), "0");
    hardware.kill_and_restart();
    eventually(|| {
        let calls = hardware.calls();
        calls["processes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|user| user["subscribed"] == true)
    });
    hardware.control(&json!({"op": "event", "chip": 1, "code": 6}));
    assert_eq!(probe.event(), "0 0x6 1 2 1 simulated fault");
    assert_eq!(probe.ask("health 0 0"), "0 0");
}

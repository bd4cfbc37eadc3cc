//! Callers the driver distrusts, libraries of other builds, drivers that come up late.

use std::fs;

use serde_json::{Value, json};

use crate::bench::{Hardware, Probe};

fn caller(kind: &str) -> Value {
    json!({"op": "caller", "caller": kind})
}

fn quirk(name: &str, switch: &str) -> Value {
    json!({"op": "quirk", "quirk": name, "switch": switch})
}

#[test]
fn a_plain_container_is_refused_counts_partners_and_the_holders_of_others() {
    let hardware = Hardware::start("a3-8x2");
    let mut probe = Probe::ready(&hardware);
    hardware.control(&json!({"op": "processes", "chip": 0, "count": 2}));
    assert_eq!(probe.ask("brother 1 0"), "0 5");
    assert_eq!(probe.ask("count"), "0 16");
    hardware.control(&caller("container"));
    assert_eq!(probe.ask("brother 1 0"), "-8002");
    assert_eq!(probe.ask("count"), "-8002");
    assert_eq!(probe.ask("processes 0 0"), "0 0 0 0");
    assert_eq!(probe.ask("health 0 0"), "0 0");
    hardware.control(&caller("privileged"));
    assert_eq!(probe.ask("brother 1 0"), "0 5");
    assert_eq!(hardware.status()["rules"], json!(["caller Privileged"]));
}

#[test]
fn only_a_plain_user_in_a_container_may_not_subscribe() {
    let hardware = Hardware::start("910b3-8x1");
    for (kind, answer) in [
        ("root", "0"),
        ("user", "0"),
        ("container", "0"),
        ("container-user", "-8002"),
    ] {
        hardware.control(&caller(kind));
        let mut probe = Probe::ready(&hardware);
        assert_eq!(probe.ask("subscribe -1 -1 0 0 0"), answer, "{kind}");
    }
}

#[test]
fn a_refused_first_subscription_spoils_the_next_ones() {
    let hardware = Hardware::start("910b3-8x1");
    hardware.control(&caller("container-user"));
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("subscribe -1 -1 0 0 0"), "-8002");
    hardware.control(&caller("root"));
    assert_eq!(probe.ask("subscribe -1 -1 0 0 0"), "-8020");
}

#[test]
fn ecc_counters_take_thirty_six_bytes_in_some_builds() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("ecc 0 0 2"), "0 12");
    hardware.control(&quirk("ecc-36", "on"));
    assert_eq!(probe.ask("ecc 0 0 2"), "0 4");
    assert_eq!(hardware.status()["rules"], json!(["quirk ecc-36"]));
    hardware.control(&quirk("ecc-36", "off"));
    assert_eq!(probe.ask("ecc 0 0 2"), "0 12");
}

#[test]
fn names_without_an_end_mark_fill_their_fields() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("rawchip 0 0"), "0 910B3 0 0 0 0");
    hardware.control(&quirk("unterminated", "on"));
    assert_eq!(
        probe.ask("rawchip 0 0"),
        format!("0 910B3{} 95 95 95 95", "_".repeat(27))
    );
}

#[test]
fn reserved_fields_can_hold_garbage() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("reserved 0 0"), "0 0 0");
    hardware.control(&quirk("garbage", "on"));
    assert_eq!(probe.ask("reserved 0 0"), "32 0 32");
    let memory = Hardware::start("310p3-4x1");
    memory.control(&quirk("garbage", "on"));
    assert_eq!(Probe::ready(&memory).ask("reserved 2 0"), "32 60 0");
}

#[test]
fn the_second_generation_may_fail_to_initialise_before_it_succeeds() {
    let hardware = Hardware::start("a5-8x1");
    hardware.control(&json!({
        "op": "return-code", "symbol": "dcmiv2_init", "code": -8005, "times": 2
    }));
    let mut probe = Probe::start(&hardware);
    assert_eq!(probe.ask("init2"), "-8005");
    assert_eq!(probe.ask("reload"), "0");
    assert_eq!(probe.ask("init2"), "-8005");
    assert_eq!(probe.ask("list2 64"), "-8005");
    assert_eq!(probe.ask("init2"), "0");
    assert_eq!(probe.ask("list2 64"), "0 0 1 2 3 4 5 6 7");
}

#[test]
fn a_busy_device_answers_its_code_for_a_while() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    hardware.control(&json!({
        "op": "return-code", "symbol": "*", "code": -8013, "chip": 1, "for_ms": 300
    }));
    assert_eq!(probe.ask("temperature 1 0"), "-8013");
    assert!(probe.ask("temperature 2 0").starts_with("0 "));
    crate::bench::eventually(|| probe.ask("temperature 1 0").starts_with("0 "));
}

#[test]
fn no_more_is_written_than_there_is_room_for() {
    let mut hardware = Hardware::start("310p3-4x1");
    hardware.control(&json!({"op": "processes", "chip": 1, "count": 64}));
    for code in 1..=128 {
        hardware.control(&json!({"op": "code", "action": "add", "chip": 1, "code": code}));
    }
    hardware.kill();
    let mut state: Value =
        serde_json::from_slice(&fs::read(hardware.path("state")).unwrap()).unwrap();
    let chip = &mut state["chips"][1];
    let holder = chip["processes"][0].clone();
    chip["processes"].as_array_mut().unwrap().push(holder);
    chip["codes"].as_array_mut().unwrap().push(json!(129));
    fs::write(hardware.path("state"), state.to_string()).unwrap();
    hardware.restart();
    assert_eq!(hardware.status()["chips"][1]["processes"], 65);
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("processes 3 0"), "0 64 10100 67108864");
    assert_eq!(probe.ask("oldcodes 3 0"), "0 128 4 0x1");
    assert_eq!(probe.ask("codes 3 0 128"), "-8001");
}

#[test]
fn process_ids_can_be_chosen_and_come_again() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    let hold = |count: u32| {
        hardware.control(&json!({
            "op": "processes", "chip": 2, "count": count, "first_pid": 4321
        }));
    };
    hold(3);
    assert_eq!(probe.ask("processes 2 0"), "0 3 4321 67108864");
    hold(0);
    assert_eq!(probe.ask("processes 2 0"), "0 0 0 0");
    hold(1);
    assert_eq!(probe.ask("processes 2 0"), "0 1 4321 67108864");
}

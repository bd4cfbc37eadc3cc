//! Init, lists, numbers.

use serde_json::json;

use crate::bench::{Hardware, Probe};

#[test]
fn before_init_lists_and_conversions_have_their_own_codes() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::start(&hardware);
    assert_eq!(probe.ask("list 64"), "-8005");
    assert_eq!(probe.ask("num 0"), "-8005");
    assert_eq!(probe.ask("logic 0 0"), "-8012");
    assert_eq!(probe.ask("type 0 0"), "0 255");
    assert_eq!(probe.ask("health 0 0"), "-8001 4");
}

#[test]
fn the_generations_exclude_each_other() {
    let first = Hardware::start("910b3-8x1");
    let mut probe = Probe::start(&first);
    assert_eq!(probe.ask("init2"), "-8255");
    assert_eq!(probe.ask("init"), "0");
    assert_eq!(probe.ask("list2 64"), "-8255");

    let second = Hardware::start("a5-8x1");
    let mut probe = Probe::start(&second);
    assert_eq!(probe.ask("init"), "-8255");
    assert_eq!(probe.ask("version 64"), "-8255 ");
    assert_eq!(probe.ask("init2"), "0");
    assert_eq!(probe.ask("list2 64"), "0 0 1 2 3 4 5 6 7");
    assert_eq!(probe.ask("count2"), "0 8");
    assert_eq!(probe.ask("phy2 5"), "0 5 5");
    assert_eq!(probe.ask("health2 7"), "0 0");
    assert_eq!(probe.ask("health2 8"), "-8001 4");
    assert_eq!(probe.ask("list 64"), "-8255");
}

#[test]
fn a_server_counts_cards_from_zero() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("list 64"), "0 0 1 2 3 4 5 6 7");
    assert_eq!(probe.ask("list 8"), "0 0 1 2 3 4 5 6 7");
    assert_eq!(probe.ask("list 7"), "-8001");
    assert_eq!(probe.ask("list 0"), "-8001");
    assert_eq!(probe.ask("count"), "0 8");
    assert_eq!(probe.ask("ids 3"), "0 1 -1 -1");
    assert_eq!(probe.ask("num 8"), "-8001");
}

#[test]
fn sparse_and_large_card_ids_and_microcontrollers() {
    let hardware = Hardware::start("310p3-4x1");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("list 64"), "0 2 3 6 15104");
    assert_eq!(probe.ask("ids 15104"), "0 1 1 -1");
    assert_eq!(probe.ask("type 15104 0"), "0 0");
    assert_eq!(probe.ask("type 15104 1"), "0 1");
    assert_eq!(probe.ask("type 15104 2"), "-8001 0");
    assert_eq!(probe.ask("logic 15104 0"), "0 3");
    assert_eq!(probe.ask("logic 15104 1"), "-8255");
    assert_eq!(probe.ask("bylogic 3"), "0 15104 0");
    assert_eq!(probe.ask("byphy 1"), "0 3 0");
    assert_eq!(probe.ask("bylogic 4"), "-8008");
    assert_eq!(probe.ask("temperature 2 1"), "0 40");
    assert_eq!(probe.ask("num 0"), "-8001");
}

#[test]
fn numbers_may_differ_from_each_other() {
    let hardware = Hardware::start_edited("910b3-8x1", |text| {
        text.replace(
            "count = 8",
            "count = 4\nphy = [3, 2, 1, 0]\nlogic = [1, 0, 3, 2]",
        )
    });
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("logic 0 0"), "0 1");
    assert_eq!(probe.ask("phy 1"), "0 3 1");
    assert_eq!(probe.ask("byphy 0"), "0 3 0");
}

#[test]
fn a_card_that_fails_to_initialise_is_minus_one_but_counted() {
    let hardware = Hardware::start("910b3-8x1");
    hardware.control(&json!({"op": "fail-init", "card": 3}));
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("list 64"), "0 -1 0 1 2 4 5 6 7");
    assert_eq!(probe.ask("count"), "0 8");
    assert_eq!(probe.ask("num 3"), "-8001");
    assert_eq!(probe.ask("num -1"), "-8001");
    assert_eq!(probe.ask("logic 4 0"), "0 4");
    hardware.control(&json!({"op": "heal-init", "card": 3}));
    assert_eq!(probe.ask("list 64"), "0 -1 0 1 2 4 5 6 7");
    assert_eq!(probe.ask("reload"), "0");
    assert_eq!(probe.ask("init"), "0");
    assert_eq!(probe.ask("list 64"), "0 0 1 2 3 4 5 6 7");
}

#[test]
fn the_second_generation_leaves_failed_chips_out_of_the_list_but_counts_them() {
    let hardware = Hardware::start("a5-8x1");
    hardware.control(&json!({"op": "fail-init", "card": 7}));
    let mut probe = Probe::start(&hardware);
    assert_eq!(probe.ask("init2"), "0");
    assert_eq!(probe.ask("list2 64"), "0 0 1 2 3 4 5 6");
    assert_eq!(probe.ask("count2"), "0 8");
}

#[test]
fn late_cards_are_seen_by_the_next_init_only() {
    let hardware = Hardware::start("910b3-8x1");
    hardware.control(&json!({"op": "hide-cards", "count": 6}));
    assert_eq!(
        hardware.nodes(),
        ["davinci0", "davinci1", "davinci_manager"]
    );
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("list 64"), "0 0 1");
    assert_eq!(probe.ask("count"), "0 2");
    hardware.control(&json!({"op": "hide-cards", "count": 0}));
    assert_eq!(probe.ask("list 64"), "0 0 1");
    assert_eq!(Probe::ready(&hardware).ask("list 64"), "0 0 1 2 3 4 5 6 7");
    assert_eq!(hardware.nodes().len(), 9);
}

#[test]
fn numbers_move_down_when_a_card_is_taken_out_but_not_in_a_running_process() {
    let hardware = Hardware::start("910b3-8x1");
    let mut before = Probe::ready(&hardware);
    let die = before.ask("die 4 0 1");
    hardware.control(&json!({"op": "remove", "chip": 3}));
    assert_eq!(before.ask("phy 4"), "0 4 4");
    assert_eq!(before.ask("health 3 0"), "-8012 4");
    assert_eq!(before.ask("die 4 0 1"), die);
    let mut after = Probe::ready(&hardware);
    assert_eq!(after.ask("list 64"), "0 0 1 2 4 5 6 7");
    assert_eq!(after.ask("logic 4 0"), "0 3");
    assert_eq!(after.ask("byphy 3"), "0 4 0");
    assert_eq!(after.ask("die 4 0 1"), die);
    assert!(!hardware.nodes().contains(&"davinci7".to_owned()));
}

#[test]
fn the_numbers_of_a_process_outlive_the_hardware() {
    let mut hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    hardware.kill();
    assert_eq!(probe.ask("list 64"), "0 0 1 2 3 4 5 6 7");
    assert_eq!(probe.ask("health 0 0"), "-8012 4");
    assert_eq!(probe.ask("temperature 0 0"), "-8005");
    assert_eq!(probe.ask("codes 0 0 128"), "-8005");
    assert_eq!(Probe::start_on(&hardware.socket()).ask("init"), "-8005");
}

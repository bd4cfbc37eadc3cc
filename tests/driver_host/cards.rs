//! Cards with several chips, and what only A3 and A5 chips say of themselves.

use super::beside::{A3, start_beside};
use super::*;

/// Two cards with two 310P chips each.
const DUO: &[(&str, &str)] = &[
    ("devices_per_card = 1", "devices_per_card = 2"),
    ("cards = [2, 3, 6, 15104]", "cards = [3, 15104]"),
    ("board_id = 0x64", "board_id = 0x97"),
    (
        "product_type = \"Atlas 300I Pro\"",
        "product_type = \"Atlas 300I Duo\"",
    ),
];

/// One card with four 310 chips, whose driver leaves the count of AI cores at zero.
const FOUR_310: &[(&str, &str)] = &[
    ("devices_per_card = 1", "devices_per_card = 4"),
    ("cards = [2, 3, 6, 15104]", "cards = [5]"),
    ("chip_name = \"310P3\"", "chip_name = \"310\""),
    ("aicore_count = 8", "aicore_count = 0"),
    ("board_id = 0x64", "board_id = 0x02"),
];

/// Numbers that tell logic id, phy id and place apart, so that no one can pass for another.
const A3_NUMBERS: (&str, &str) = (
    "# phy = [0, 1, ...]",
    "phy = [15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]\n\
     logic = [4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11]\n\
     cards = [0, 1, 2, 3, 4, 5, 6, 7] #",
);

fn places(inventory: &Inventory) -> BTreeSet<(CardId, DeviceId)> {
    let place = |chip: &Chip| (chip.card, chip.device);
    inventory.chips.iter().map(place).collect()
}

fn all_places(cards: &[i32], devices: i32) -> BTreeSet<(CardId, DeviceId)> {
    let on = |card: &i32| {
        let card = CardId(*card);
        (0..devices).map(move |device| (card, DeviceId(device)))
    };
    cards.iter().flat_map(on).collect()
}

fn chip_at(inventory: &Inventory, card: i32, device: i32) -> &Chip {
    let place = (CardId(card), DeviceId(device));
    let found = inventory
        .chips
        .iter()
        .find(|chip| (chip.card, chip.device) == place);
    found.unwrap()
}

#[tokio::test]
async fn reads_sixteen_dies_on_eight_a3_cards() {
    let sim = Sim::start_changed("910b3-8x1", &[A3, &[A3_NUMBERS]].concat());
    let node = start_beside(&sim, &[("ASCEND_TEST_POD_TYPE", "2")]);
    let inventory = node.inventory().await;
    assert!(inventory.is_complete(), "{:?}", inventory.problems);
    assert_eq!((inventory.cards_counted, inventory.cards_failed), (8, 0));
    assert_eq!(places(&inventory), all_places(&[0, 1, 2, 3, 4, 5, 6, 7], 2));
    let phys: Vec<_> = inventory.chips.iter().map(|chip| chip.phy).collect();
    assert_eq!(phys, (0..16).map(PhyId).collect::<Vec<_>>());
    for chip in &inventory.chips {
        assert_eq!(chip.family, ChipFamily::Ascend910A3);
        assert_eq!(chip.product, Product::AtlasA3);
        assert_eq!(chip.mainboard_id, Some(0x1C));
        assert_eq!(chip.super_pod_type, Some(2));
    }
    let second = chip_at(&inventory, 0, 1);
    assert_eq!((second.phy, second.logic), (PhyId(14), LogicId(5)));
}

#[tokio::test]
async fn reads_two_duo_cards_and_one_card_of_four_310_chips() {
    let sim = Sim::start_changed("310p3-4x1", DUO);
    let inventory = start(&sim).inventory().await;
    assert!(inventory.is_complete(), "{:?}", inventory.problems);
    assert_eq!((inventory.cards_counted, inventory.cards_failed), (2, 0));
    assert_eq!(places(&inventory), all_places(&[3, 15104], 2));
    for chip in &inventory.chips {
        assert_eq!(chip.product, Product::Atlas300IDuo);
        assert_eq!((chip.mainboard_id, chip.super_pod_type), (None, None));
    }

    let sim = Sim::start_changed("310p3-4x1", FOUR_310);
    let inventory = start(&sim).inventory().await;
    assert!(inventory.is_complete(), "{:?}", inventory.problems);
    assert_eq!((inventory.cards_counted, inventory.cards_failed), (1, 0));
    assert_eq!(places(&inventory), all_places(&[5], 4));
    for chip in &inventory.chips {
        assert_eq!(chip.family, ChipFamily::Ascend310);
        assert_eq!(chip.ai_cores, None);
    }
}

#[tokio::test]
async fn a_failed_card_takes_all_its_chips_along_and_counts_once() {
    for (profile, changes, card, cards, devices) in [
        ("910b3-8x1", A3, "3", 8, 2),
        ("310p3-4x1", DUO, "15104", 2, 2),
    ] {
        let sim = Sim::start_changed(profile, changes);
        sim.ctl(&["fail-init", card]);
        let node = start(&sim);
        let inventory = node.inventory().await;
        assert_eq!(
            (inventory.cards_counted, inventory.cards_failed),
            (cards, 1)
        );
        let chips = usize::try_from(cards).unwrap() * devices;
        assert_eq!(inventory.chips.len(), chips - devices);
        assert_eq!(inventory.problems, [""; 0]);
        assert!(!inventory.is_complete());
        sim.ctl(&["heal-init", card]);
        let fresh = node.driver.inventory(true).await.unwrap();
        assert!(fresh.is_complete(), "{:?}", fresh.problems);
        assert_eq!(fresh.chips.len(), chips);
    }
}

#[tokio::test]
async fn the_only_card_failing_leaves_a_count_and_no_chip() {
    let sim = Sim::start_changed("310p3-4x1", FOUR_310);
    sim.ctl(&["fail-init", "5"]);
    let inventory = start(&sim).inventory().await;
    assert_eq!((inventory.cards_counted, inventory.cards_failed), (1, 1));
    assert!(inventory.chips.is_empty() && !inventory.is_complete());
}

#[tokio::test]
async fn a_chip_gone_from_a_card_at_the_start_hides_none_of_its_neighbours() {
    let sim = Sim::start_changed("910b3-8x1", A3);
    sim.ctl(&["lose", "2,0"]);
    let inventory = start(&sim).inventory().await;
    assert!(!inventory.is_complete());
    let others = all_places(&[0, 1, 3, 4, 5, 6, 7], 2);
    assert!(places(&inventory).is_superset(&others));
    assert!(
        inventory.problems[0].starts_with("card 2 device 0: "),
        "{:?}",
        inventory.problems
    );
}

#[tokio::test]
async fn health_codes_processes_and_loss_are_told_of_the_second_chip_of_a_card() {
    for (profile, changes) in [
        ("910b3-8x1", [A3, &[A3_NUMBERS]].concat()),
        ("310p3-4x1", DUO.to_vec()),
        ("310p3-4x1", FOUR_310.to_vec()),
    ] {
        let sim = Sim::start_changed(profile, &changes);
        let mut node = start(&sim);
        let inventory = node.inventory().await;
        node.host_started().await;
        let second = inventory.chips.iter().find(|chip| chip.device.0 == 1);
        let second = second.unwrap();
        let phy = second.phy.to_string();
        sim.ctl(&["health", &phy, "2"]);
        sim.ctl(&["code", "add", &phy, "0x80E01801"]);
        sim.ctl(&["processes", &phy, "3"]);
        let samples = node.driver.sample(true).await.unwrap();
        assert_eq!(samples.len(), inventory.chips.len());
        for sample in &samples {
            let sick = sample.logic == second.logic;
            let level = if sick {
                HealthLevel::Major
            } else {
                HealthLevel::Normal
            };
            assert_eq!(sample.health, HealthReading::Level(level), "{sample:?}");
            assert_eq!(sample.codes.len(), usize::from(sick));
            let processes = sample.processes.as_ref().unwrap();
            assert_eq!(processes.len(), if sick { 3 } else { 0 });
        }
        sim.ctl(&["lose", &format!("{},1", second.card)]);
        let samples = node.sample().await;
        for sample in &samples {
            let gone = sample.logic == second.logic;
            assert_eq!(
                sample.health == HealthReading::Lost,
                gone,
                "{profile}: {sample:?}"
            );
        }
    }
}

#[tokio::test]
async fn an_event_of_the_second_chip_of_a_card_is_told_of_it() {
    for (profile, changes) in [
        ("910b3-8x1", [A3, &[A3_NUMBERS]].concat()),
        ("310p3-4x1", DUO.to_vec()),
    ] {
        let sim = Sim::start_changed(profile, &changes);
        let mut node = start(&sim);
        let inventory = node.inventory().await;
        node.host_started().await;
        for chip in inventory.chips.iter().filter(|chip| chip.device.0 > 0) {
            sim.ctl(&["event", &chip.phy.to_string(), "0x80E01801"]);
            let HardwareNotice::Fault(event) = node.notice().await else {
                panic!("no fault event")
            };
            assert_eq!(event.logic, chip.logic, "{profile}");
        }
    }
}

#[tokio::test]
async fn a_chip_that_hangs_delays_not_even_the_other_one_on_its_card() {
    let sim = Sim::start_changed("910b3-8x1", A3);
    let node = start(&sim);
    let inventory = node.inventory().await;
    let stuck = chip_at(&inventory, 2, 1);
    let phy = stuck.phy.to_string();
    sim.ctl(&["hang", "dcmi_get_device_health", "--chip", &phy]);
    let samples = node.sample().await;
    for sample in &samples {
        let expected = if sample.logic == stuck.logic {
            HealthReading::NoAnswer
        } else {
            HealthReading::Level(HealthLevel::Normal)
        };
        assert_eq!(sample.health, expected, "{sample:?}");
    }
    sim.ctl(&["release"]);
}

#[tokio::test]
async fn samples_and_events_follow_a_die_that_moved_to_another_place_of_another_card() {
    let sim = Sim::start_changed("910b3-8x1", A3);
    let mut node = start(&sim);
    let before = node.inventory().await;
    let (_, pid) = node.host_started().await;
    let (from, to) = (chip_at(&before, 1, 1), chip_at(&before, 6, 0));
    sim.ctl(&["swap-serials", &from.phy.to_string(), &to.phy.to_string()]);
    sim.ctl(&["health", &to.phy.to_string(), "3"]);
    signal("-KILL", pid);
    node.host_started().await;
    // The asker still means the die that was at card 1 device 1 and now is at card 6 device 0.
    let samples = node.sample().await;
    let critical = HealthReading::Level(HealthLevel::Critical);
    assert_eq!(health_of(&samples, from.logic.0), critical);
    assert_eq!(
        health_of(&samples, to.logic.0),
        HealthReading::Level(HealthLevel::Normal)
    );
    sim.ctl(&["event", &to.phy.to_string(), "0x80C98009"]);
    let HardwareNotice::Fault(event) = node.notice().await else {
        panic!("no fault event")
    };
    assert_eq!(event.logic, from.logic);
    let after = node.inventory().await;
    assert_eq!(chip_at(&after, 6, 0).die, from.die);
    assert_eq!(health_of(&node.sample().await, to.logic.0), critical);
}

#[tokio::test]
async fn the_mainboard_is_read_of_a_910b_and_an_a5_server_and_missing_elsewhere() {
    for (profile, mainboard) in [
        ("910b3-8x1", Some(0x02)),
        ("a5-8x1", Some(0x25)),
        ("310p3-4x1", None),
    ] {
        let sim = Sim::start(profile);
        let inventory = start(&sim).inventory().await;
        assert!(inventory.is_complete(), "{:?}", inventory.problems);
        for chip in &inventory.chips {
            assert_eq!(chip.mainboard_id, mainboard, "{profile}");
        }
    }
}

#[tokio::test]
async fn families_without_mainboard_and_super_pod_are_not_asked_for_them() {
    let sim = Sim::start("310p3-4x1");
    start(&sim).inventory().await;
    let calls = sim.ctl(&["calls", "--json"]);
    assert!(calls.contains("dcmi_get_device_board_info"), "{calls}");
    assert!(!calls.contains("dcmi_get_mainboard_id"), "{calls}");
    assert!(!calls.contains("dcmi_get_device_info"), "{calls}");
}

#[tokio::test]
async fn an_a5_card_is_told_from_a_server_by_super_pod_type_or_mainboard() {
    let card_mainboard = [("mainboard_id = 0x25", "mainboard_id = 0x68")];
    for (changes, kind, product) in [
        (&[][..], Some("0"), Product::AtlasA5),
        (&[][..], Some("5"), Product::Atlas350),
        (&card_mainboard[..], None, Product::Atlas350),
        (&card_mainboard[..], Some("1"), Product::AtlasA5),
    ] {
        let sim = Sim::start_changed("a5-8x1", changes);
        let variables: Vec<_> = kind
            .map(|kind| ("ASCEND_TEST_POD_TYPE", kind))
            .into_iter()
            .collect();
        let inventory = start_beside(&sim, &variables).inventory().await;
        assert!(inventory.is_complete(), "{:?}", inventory.problems);
        for chip in &inventory.chips {
            assert_eq!(chip.product, product, "{changes:?} {kind:?}");
            assert_eq!(
                chip.super_pod_type.map(|kind| kind.to_string()).as_deref(),
                kind
            );
        }
    }
}

#[tokio::test]
async fn a_super_pod_answer_too_short_for_the_type_is_no_answer() {
    let sim = Sim::start_changed("910b3-8x1", A3);
    for (bytes, kind) in [("16", None), ("23", None), ("24", Some(4))] {
        let variables = [
            ("ASCEND_TEST_POD_TYPE", "4"),
            ("ASCEND_TEST_POD_BYTES", bytes),
        ];
        let node = start_beside(&sim, &variables);
        let inventory = node.inventory().await;
        assert!(inventory.is_complete(), "{:?}", inventory.problems);
        assert_eq!(inventory.chips[1].super_pod_type, kind, "{bytes} bytes");
    }
}

#[tokio::test]
async fn every_simulated_machine_with_several_chips_on_a_card_is_read_whole() {
    for (profile, cards, devices, mainboard, product) in [
        ("a3-8x2", 8, 2, Some(0x15), Product::AtlasA3),
        ("a3-8x2-arm", 8, 2, Some(0x1C), Product::AtlasA3),
        ("310p-duo-2x2", 2, 2, None, Product::Atlas300IDuo),
        ("310-1x4", 1, 4, None, Product::Ascend310),
    ] {
        let sim = Sim::start(profile);
        let inventory = start(&sim).inventory().await;
        assert!(inventory.is_complete(), "{:?}", inventory.problems);
        assert_eq!(inventory.cards_counted, cards, "{profile}");
        let chips = usize::try_from(cards).unwrap() * devices;
        assert_eq!(places(&inventory).len(), chips, "{profile}");
        for chip in &inventory.chips {
            assert_eq!(chip.mainboard_id, mainboard, "{profile}");
            assert_eq!(chip.product, product, "{profile}");
        }
    }
}

#[tokio::test]
async fn the_kind_of_super_pod_is_read_of_a3_and_a5_chips_and_says_more_than_the_mainboard() {
    for (profile, changes, kind, product) in [
        ("a3-8x2", &[][..], 0, Product::AtlasA3),
        ("a5-8x1", &[][..], 0, Product::AtlasA5),
        ("a5-8x1", &[("kind = 0", "kind = 6")], 6, Product::Atlas350),
        ("a5-350-4x1", &[], 5, Product::Atlas350),
        (
            "a5-350-4x1",
            &[("kind = 5", "kind = 2")],
            2,
            Product::AtlasA5,
        ),
    ] {
        let sim = Sim::start_changed(profile, changes);
        let inventory = start(&sim).inventory().await;
        assert!(inventory.is_complete(), "{:?}", inventory.problems);
        for chip in &inventory.chips {
            assert_eq!(chip.super_pod_type, Some(kind), "{profile}");
            assert_eq!(chip.product, product, "{profile} {kind}");
        }
    }
}

#[tokio::test]
async fn where_the_super_pod_cannot_be_read_the_mainboard_decides() {
    let sim = Sim::start("a5-350-4x1");
    sim.ctl(&["return-code", "dcmiv2_get_device_info", "-8002"]);
    let inventory = start(&sim).inventory().await;
    assert!(inventory.is_complete(), "{:?}", inventory.problems);
    for chip in &inventory.chips {
        assert_eq!(chip.super_pod_type, None);
        assert_eq!(chip.product, Product::Atlas350);
    }
}

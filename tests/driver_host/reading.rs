//! What the driver host reads of a node and its chips.

use super::*;

#[tokio::test]
async fn reads_a_910b_server_whole() {
    let sim = Sim::start("910b3-8x1");
    let inventory = start(&sim).inventory().await;
    assert_eq!(inventory.api, DcmiApi::V1);
    assert!(inventory.is_complete(), "{:?}", inventory.problems);
    assert_eq!(inventory.dcmi_version, "25.2.0");
    assert_eq!(inventory.driver_version, "25.2.0");
    assert_eq!(inventory.missing_symbols, [""; 0]);
    assert_eq!(
        inventory.library,
        sim::library().canonicalize().unwrap().to_str().unwrap()
    );
    assert_eq!(inventory.chips.len(), 8);
    let dies: BTreeSet<_> = inventory.chips.iter().map(|chip| chip.die).collect();
    assert_eq!(dies.len(), 8);
    for (number, chip) in (0..).zip(&inventory.chips) {
        assert_eq!((chip.phy.0, chip.logic.0), (number, number));
        assert_eq!(chip.family, ChipFamily::Ascend910B);
        assert_eq!(chip.chip_name, "910B3");
        assert_eq!(chip.ai_cores, Some(20));
        assert_eq!(chip.board_id, Some(0x32));
        assert_eq!(chip.product_type, None);
        assert_eq!(
            chip.numa_nodes,
            BTreeSet::from([number / 4]),
            "chip {number}"
        );
    }
}

#[tokio::test]
async fn reads_a_310p_server_with_sparse_and_large_card_ids() {
    let sim = Sim::start("310p3-4x1");
    let inventory = start(&sim).inventory().await;
    assert!(inventory.is_complete(), "{:?}", inventory.problems);
    let cards: Vec<_> = inventory.chips.iter().map(|chip| chip.card).collect();
    assert_eq!(cards, [2, 3, 6, 15104].map(CardId));
    let numa: Vec<_> = inventory
        .chips
        .iter()
        .map(|chip| chip.numa_nodes.clone())
        .collect();
    assert_eq!(numa, [0, 0, 1, 1].map(|node| BTreeSet::from([node])));
    for chip in &inventory.chips {
        assert_eq!(chip.family, ChipFamily::Ascend310P);
        assert_eq!(chip.product_type.as_deref(), Some("Atlas 300I Pro"));
    }
}

#[tokio::test]
async fn reads_an_a5_server_by_the_second_interface() {
    let sim = Sim::start("a5-8x1");
    let inventory = start(&sim).inventory().await;
    assert_eq!(inventory.api, DcmiApi::V2);
    assert!(inventory.is_complete(), "{:?}", inventory.problems);
    assert_eq!(inventory.chips.len(), 8);
    for (number, chip) in (0..).zip(&inventory.chips) {
        assert_eq!(chip.family, ChipFamily::Ascend950);
        assert_eq!(chip.card, CardId(number));
        assert!(!chip.die.is_blank());
        assert!(chip.pci.is_some());
    }
}

#[tokio::test]
async fn a_card_that_failed_to_come_up_is_counted_and_a_fresh_look_finds_it_mended() {
    let sim = Sim::start("910b3-8x1");
    sim.ctl(&["fail-init", "5"]);
    let mut node = start(&sim);
    let inventory = node.inventory().await;
    assert_eq!((inventory.cards_counted, inventory.cards_failed), (8, 1));
    assert_eq!(inventory.chips.len(), 7);
    assert!(!inventory.is_complete());
    let (_, first) = node.host_started().await;
    sim.ctl(&["heal-init", "5"]);
    let fresh = node.driver.inventory(true).await.unwrap();
    assert!(fresh.is_complete(), "{:?}", fresh.problems);
    assert_eq!(fresh.chips.len(), 8);
    let (epoch, second) = node.host_started().await;
    assert_eq!(epoch, 2);
    assert_ne!(first, second);
    eventually("the first host's end", async || !is_running(first)).await;
}

#[tokio::test]
async fn a_chip_that_cannot_be_read_is_one_problem_and_spoils_no_other() {
    let sim = Sim::start("910b3-8x1");
    sim.ctl(&[
        "return-code",
        "dcmi_get_device_die_v2",
        "-8005",
        "--chip",
        "2",
    ]);
    let inventory = start(&sim).inventory().await;
    assert_eq!(inventory.chips.len(), 7);
    assert_eq!(
        inventory.problems,
        ["card 2 device 0: dcmi_get_device_die_v2 returned -8005 (inner error)"]
    );
}

#[tokio::test]
async fn falls_back_to_the_older_chip_info_call() {
    let sim = Sim::start("910b3-8x1");
    sim.ctl(&["return-code", "dcmi_get_device_chip_info_v2", "-8255"]);
    let inventory = start(&sim).inventory().await;
    assert!(inventory.is_complete(), "{:?}", inventory.problems);
    assert_eq!(inventory.chips[0].chip_name, "910B3");
}

#[tokio::test]
async fn a_name_that_fills_its_buffer_is_read_without_a_terminator() {
    let name = format!("910B3{}", "x".repeat(27));
    let changed = format!("chip_name = \"{name}\"");
    let sim = Sim::start_changed("910b3-8x1", &[("chip_name = \"910B3\"", &changed)]);
    let inventory = start(&sim).inventory().await;
    assert!(inventory.is_complete(), "{:?}", inventory.problems);
    assert!(inventory.chips.iter().all(|chip| chip.chip_name == name));
}

#[tokio::test]
async fn a_blank_die_and_an_unknown_family_are_problems_of_their_chips() {
    let sim = Sim::start_changed(
        "910b3-8x1",
        &[
            ("count = 8", "count = 2"),
            ("# [[chips]]", "[[chips]]\ndie = [0, 0, 0, 0, 0]"),
        ],
    );
    let inventory = start(&sim).inventory().await;
    assert_eq!(inventory.chips.len(), 1);
    assert!(
        inventory.problems[0].contains("blank die serial"),
        "{:?}",
        inventory.problems
    );
    let sim = Sim::start_changed(
        "910b3-8x1",
        &[("chip_name = \"910B3\"", "chip_name = \"X1\"")],
    );
    let inventory = start(&sim).inventory().await;
    assert!(inventory.chips.is_empty() && !inventory.is_complete());
    assert!(
        inventory.problems[7].contains("\"X1\" is of no family"),
        "{:?}",
        inventory.problems
    );
}

#[tokio::test]
async fn samples_tell_health_codes_processes_and_loss() {
    let sim = Sim::start("910b3-8x1");
    let node = start(&sim);
    node.inventory().await;
    sim.ctl(&["health", "1", "2"]);
    sim.ctl(&["code", "add", "1", "0x80E01801"]);
    sim.ctl(&["processes", "2", "40"]);
    sim.ctl(&["lose", "3"]);
    let samples = node.driver.sample(true).await.unwrap();
    assert_eq!(samples.len(), 8);
    assert_eq!(
        health_of(&samples, 0),
        HealthReading::Level(HealthLevel::Normal)
    );
    assert_eq!(samples[0].processes, Some(Vec::new()));
    assert_eq!(
        health_of(&samples, 1),
        HealthReading::Level(HealthLevel::Major)
    );
    assert_eq!(samples[1].codes, [FaultCode(0x80E0_1801)]);
    assert_eq!(samples[2].processes.as_ref().unwrap().len(), 40);
    assert_eq!(health_of(&samples, 3), HealthReading::Lost);
    assert!(samples[3].codes.is_empty());
    assert!(
        node.sample()
            .await
            .iter()
            .all(|sample| sample.processes.is_none())
    );
}

#[tokio::test]
async fn a_sample_before_any_inventory_brings_the_driver_up() {
    let sim = Sim::start("310p3-4x1");
    let node = start_with(&sim, |config| config.call_deadline = PATIENCE);
    assert_eq!(node.sample().await.len(), 4);
}

#[tokio::test]
async fn samples_follow_the_die_when_numbers_moved_behind_the_askers_back() {
    let sim = Sim::start("910b3-8x1");
    let mut node = start(&sim);
    let before = node.inventory().await;
    let (_, pid) = node.host_started().await;
    sim.ctl(&["swap-serials", "0", "7"]);
    sim.ctl(&["health", "0", "3"]);
    signal("-KILL", pid);
    node.host_started().await;
    // The asker still means the die that was chip 7 and now sits where chip 0 was.
    let samples = node.sample().await;
    assert_eq!(
        health_of(&samples, 7),
        HealthReading::Level(HealthLevel::Critical)
    );
    assert_eq!(
        health_of(&samples, 0),
        HealthReading::Level(HealthLevel::Normal)
    );
    sim.ctl(&["event", "0", "0x80C98009"]);
    let HardwareNotice::Fault(event) = node.notice().await else {
        panic!("no fault event")
    };
    assert_eq!(event.logic, LogicId(7));
    let after = node.inventory().await;
    assert_eq!(after.chips[0].die, before.chips[7].die);
    assert_eq!(
        health_of(&node.sample().await, 0),
        HealthReading::Level(HealthLevel::Critical)
    );
}

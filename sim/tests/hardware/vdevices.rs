//! vNPUs: templates, ids, capacity, and what survives.

use std::fs;

use serde_json::json;

use crate::bench::{Hardware, Probe};
use crate::machines::{on_910b, with};

const ANY: &str = "-1 -1";

#[test]
fn a_vnpu_has_id_template_and_share_and_a_node() {
    let hardware = Hardware::start("310p3-4x1");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(
        probe.ask("total 2 0"),
        "0 360 vdevs 0 0 vgroups 4 0xf: 8 24576 7 12 3 12 16 8 0"
    );
    assert_eq!(probe.ask(&format!("create 3 0 vir02 {ANY}")), "0 116 0");
    assert_eq!(
        probe.ask("vdev 3 0 116"),
        "0 264 116 vir02 used 0 vgroup 0: 2 6144 2 3 1 3 4 2 0"
    );
    assert_eq!(
        probe.ask("total 3 0"),
        "0 360 vdevs 1 116 vgroups 4 0xf: 8 24576 7 12 3 12 16 8 0"
    );
    assert_eq!(
        probe.ask("free 3 0"),
        "0 224 vgroups 3 0xe: 6 18432 5 9 2 9 12 6 0"
    );
    assert!(hardware.nodes().contains(&"vdavinci116".to_owned()));
    assert_eq!(probe.ask("destroy 3 0 116"), "0");
    assert!(!hardware.nodes().contains(&"vdavinci116".to_owned()));
    assert_eq!(probe.ask("vdev 3 0 116"), "-8008 264");
}

#[test]
fn a_buffer_too_small_is_refused_and_left_alone() {
    let hardware = Hardware::start("310p3-4x1");
    let mut probe = Probe::ready(&hardware);
    probe.ask(&format!("create 2 0 vir01 {ANY}"));
    assert_eq!(probe.ask("vdev 2 0 100 263"), "-8001 263");
    assert!(
        probe
            .ask("vdev 2 0 100 400")
            .starts_with("0 264 100 vir01 ")
    );
    assert_eq!(probe.ask("total 2 0 359"), "-8001 359");
    assert_eq!(probe.ask("free 2 0 223"), "-8001 223");
    assert!(probe.ask("free 2 0 300").starts_with("0 224 "));
    assert_eq!(probe.ask("activity 2 0 100 8"), "-8001 8");
}

#[test]
fn every_template_of_a_310p_has_its_dimensions_and_more_memory_on_a_larger_chip() {
    let large = Hardware::start_edited("310p3-4x1", |text| {
        text.replace("memory_size_mb = 21527", "memory_size_mb = 44054")
    });
    for (hardware, factor) in [(Hardware::start("310p3-4x1"), 1), (large, 2)] {
        let mut probe = Probe::ready(&hardware);
        for (name, cores, memory, rest) in [
            ("vir01", 1, 3072, "1 1 0 1 2 1 0"),
            ("vir02", 2, 6144, "2 3 1 3 4 2 0"),
            ("vir02_1c", 2, 6144, "1 3 0 3 4 2 0"),
            ("vir04", 4, 12_288, "4 6 2 6 8 4 0"),
            ("vir04_3c", 4, 12_288, "3 6 1 6 8 4 0"),
            ("vir04_3c_ndvpp", 4, 12_288, "3 0 0 0 0 0 0"),
            ("vir04_4c_dvpp", 4, 12_288, "4 12 3 12 16 8 0"),
        ] {
            assert_eq!(probe.ask(&format!("create 2 0 {name} {ANY}")), "0 100 0");
            let memory = memory * factor;
            let answer = probe.ask("vdev 2 0 100");
            let expected = format!("{name} used 0 vgroup 0: {cores} {memory} {rest}");
            assert_eq!(answer, format!("0 264 100 {expected}"));
            assert_eq!(probe.ask("destroy 2 0 100"), "0");
        }
    }
}

#[test]
fn two_smallest_vnpus_share_a_vgroup_and_the_chip_runs_out() {
    let hardware = Hardware::start("310p3-4x1");
    let mut probe = Probe::ready(&hardware);
    for (id, vgroup) in [
        (100, 0),
        (101, 0),
        (102, 1),
        (103, 1),
        (104, 2),
        (105, 2),
        (106, 3),
    ] {
        let made = probe.ask(&format!("create 2 0 vir01 {ANY}"));
        assert_eq!(made, format!("0 {id} {vgroup}"));
    }
    // Seven AI CPUs are all there are.
    assert_eq!(probe.ask(&format!("create 2 0 vir01 {ANY}")), "-8020 0 -");
    assert_eq!(probe.ask("destroy 2 0 103"), "0");
    assert_eq!(probe.ask(&format!("create 2 0 vir01 {ANY}")), "0 103 1");
    assert_eq!(probe.ask("destroy 2 0 0xffff"), "0");
    assert_eq!(
        hardware.control(&json!({"op": "vdev", "action": "list"})),
        json!([])
    );
    // One core binds a vgroup of two.
    for template in ["vir01", "vir02_1c", "vir04_3c"] {
        assert!(
            probe
                .ask(&format!("create 2 0 {template} {ANY}"))
                .starts_with("0 ")
        );
    }
    assert_eq!(
        probe.ask(&format!("create 2 0 vir02_1c {ANY}")),
        "-8020 0 -"
    );
    assert_eq!(probe.ask(&format!("create 2 0 vir01 {ANY}")), "0 103 0");
}

#[test]
fn ids_and_vgroups_asked_for_are_honoured_or_refused() {
    let hardware = Hardware::start("310p3-4x1");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("create 3 0 vir01 120 2"), "0 120 2");
    assert_eq!(probe.ask("create 3 0 vir01 120 -1"), "-8020 0 -");
    assert_eq!(probe.ask("create 3 0 vir01 124 -1"), "-8001 0 -");
    assert_eq!(probe.ask("create 3 0 vir01 100 -1"), "-8001 0 -");
    assert_eq!(probe.ask("create 3 0 vir02 -1 2"), "-8020 0 -");
    assert_eq!(probe.ask("create 3 0 vir02 -1 4"), "-8001 0 -");
    assert_eq!(probe.ask("create 3 0 vir01 -1 2"), "0 116 2");
    assert_eq!(probe.ask("create 3 0 vir01 -1 2"), "-8020 0 -");
    assert_eq!(probe.ask("create 3 0 vir03 -1 -1"), "-8001 0 -");
    assert_eq!(probe.ask("create 9 0 vir01 -1 -1"), "-8001 0 -");
    assert_eq!(probe.ask("destroy 3 0 132"), "-8001");
    assert_eq!(probe.ask("destroy 3 0 117"), "-8008");
    // The microcontroller of the card has nothing to cut.
    assert_eq!(probe.ask("create 3 1 vir01 -1 -1"), "-8255 0 -");
}

#[test]
fn the_templates_of_a_910b_follow_its_board_and_its_cores() {
    for (hardware, name, share) in [
        (
            on_910b("0x30", 24),
            "vir12_3c_32g",
            "12 30720 3 5 0 1 14 2 0",
        ),
        (on_910b("0x30", 24), "vir06_1c_16g", "6 15360 1 2 0 0 7 1 0"),
        (
            on_910b("0x32", 20),
            "vir10_3c_32g",
            "10 30720 3 4 0 1 12 2 0",
        ),
        (on_910b("0x32", 20), "vir05_1c_16g", "5 15360 1 2 0 0 6 1 0"),
        (
            on_910b("0x28", 20),
            "vir10_3c_16g",
            "10 14336 3 4 0 1 12 2 0",
        ),
        (
            on_910b("0x28", 20),
            "vir10_4c_16g_m",
            "10 14336 4 9 0 2 24 4 0",
        ),
        (
            on_910b("0x28", 20),
            "vir10_3c_16g_nm",
            "10 14336 3 0 0 0 0 0 0",
        ),
        (on_910b("0x28", 20), "vir05_1c_8g", "5 7168 1 2 0 0 6 1 0"),
    ] {
        let mut probe = Probe::ready(&hardware);
        assert_eq!(probe.ask(&format!("create 1 0 {name} {ANY}")), "0 116 -");
        let answer = probe.ask("vdev 1 0 116");
        assert_eq!(
            answer,
            format!("0 264 116 {name} used 0 vgroup -1: {share}")
        );
        assert_eq!(probe.ask(&format!("create 1 0 vir02 {ANY}")), "-8001 0 -");
    }
}

#[test]
fn two_halves_fill_a_910b_and_sixteen_ids_are_a_chips_own() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("create 0 0 vir10_3c_32g 115 -1"), "0 115 -");
    assert_eq!(probe.ask("create 0 0 vir10_3c_32g 116 -1"), "-8001 0 -");
    assert_eq!(probe.ask("create 0 0 vir10_3c_32g -1 -1"), "0 100 -");
    assert_eq!(probe.ask("create 0 0 vir05_1c_16g -1 -1"), "-8020 0 -");
    assert_eq!(
        probe.ask("free 0 0"),
        "0 224 vgroups 0 0: 0 4096 1 1 0 0 0 0 0"
    );
    assert_eq!(
        probe.ask("total 0 0"),
        "0 360 vdevs 2 100 vgroups 0 0: 20 65536 7 9 0 2 24 4 0"
    );
    assert_eq!(probe.ask("activity 0 0 100"), "-8255 264");
}

#[test]
fn a_910_is_cut_in_amp_mode_only() {
    let hardware = Hardware::start("910a-8x1");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("workmode 0"), "0 0");
    for (id, name, share) in [
        (100, "vir02", "2 2048 1 1 0 1 1 0 1.5"),
        (101, "vir04", "4 4096 1 2 0 2 2 1 3"),
        (102, "vir08", "8 8192 3 4 0 4 4 2 6"),
        (103, "vir16", "16 16384 7 8 0 8 8 4 12"),
    ] {
        assert_eq!(
            probe.ask(&format!("create 0 0 {name} {ANY}")),
            format!("0 {id} -")
        );
        let answer = probe.ask(&format!("vdev 0 0 {id}"));
        assert_eq!(
            answer,
            format!("0 264 {id} {name} used 0 vgroup -1: {share}")
        );
    }
    let smp = Hardware::start_edited("910a-8x1", |text| {
        text.replace("mcu = false", "mcu = false\nwork_mode = \"smp\"")
    });
    let mut probe = Probe::ready(&smp);
    assert_eq!(probe.ask("workmode 0"), "0 1");
    assert_eq!(probe.ask(&format!("create 0 0 vir02 {ANY}")), "-8255 0 -");
    assert_eq!(
        Probe::ready(&Hardware::start("910b3-8x1")).ask("workmode 0"),
        "-8255 99"
    );
}

#[test]
fn both_chips_of_a_duo_are_cut_and_other_products_are_not() {
    let hardware = Hardware::start("310p-duo-2x2");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask(&format!("create 1 1 vir04 {ANY}")), "0 116 0");
    let a3 = Hardware::start("a3-8x2");
    let mut probe = Probe::ready(&a3);
    assert_eq!(
        probe.ask(&format!("create 0 0 vir06_1c_16g {ANY}")),
        "-8255 0 -"
    );
    assert_eq!(probe.ask("total 0 0"), "-8255 360");
    assert_eq!(probe.ask("vmode"), "-8255 -1");
    let cut_a3 = with("a3-8x2", "[vnpu]\na3 = true");
    let mut probe = Probe::ready(&cut_a3);
    assert_eq!(
        probe.ask(&format!("create 0 1 vir06_1c_16g {ANY}")),
        "0 116 -"
    );
    assert!(
        probe
            .ask("vdev 0 1 116")
            .ends_with(": 6 16384 1 2 0 0 7 1 0")
    );
}

#[test]
fn vnpus_are_seen_by_every_process_and_survive_a_killed_daemon() {
    let mut hardware = Hardware::start("310p3-4x1");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask(&format!("create 2 0 vir02 {ANY}")), "0 100 0");
    probe.kill();
    let mut other = Probe::ready(&hardware);
    assert!(other.ask("total 2 0").starts_with("0 360 vdevs 1 100 "));
    let before = hardware.status();
    hardware.kill_and_restart();
    assert_eq!(hardware.status()["chips"], before["chips"]);
    assert!(hardware.nodes().contains(&"vdavinci100".to_owned()));
    assert!(other.ask("vdev 2 0 100").starts_with("0 264 100 vir02 "));
}

#[test]
fn recover_mode_decides_what_a_reboot_leaves() {
    let hardware = Hardware::start("310p3-4x1");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("recover"), "0 1");
    probe.ask(&format!("create 3 0 vir02 {ANY}"));
    probe.ask("create 2 0 vir04_3c 104 1");
    let record = || fs::read_to_string(hardware.path("vnpu.cfg")).unwrap();
    assert_eq!(
        record(),
        "vnpu_config_recover:enable\n[vnpu-config start]\n\
         0:104:npu-smi set -t create-vnpu -i 2 -c 0 -f vir04_3c -v 104 -g 1\n\
         1:116:npu-smi set -t create-vnpu -i 3 -c 0 -f vir02 -v 116 -g 0\n\
         [vnpu-config end]\n"
    );
    assert!(hardware.ctl(&["vdev", "use", "116", "on"]).status.success());
    hardware.control(&json!({"op": "reboot"}));
    let mut probe = Probe::ready(&hardware);
    assert!(
        probe
            .ask("vdev 3 0 116")
            .starts_with("0 264 116 vir02 used 0 ")
    );
    assert_eq!(probe.ask("set-recover 2"), "-8001");
    assert_eq!(probe.ask("set-recover 0"), "0");
    assert!(record().starts_with("vnpu_config_recover:disable\n"));
    hardware.control(&json!({"op": "reboot"}));
    assert_eq!(Probe::ready(&hardware).ask("vdev 3 0 116"), "-8008 264");
    assert!(
        !hardware
            .nodes()
            .iter()
            .any(|name| name.starts_with("vdavinci"))
    );
}

#[test]
fn vnpus_move_with_their_chip_and_go_with_it() {
    let hardware = Hardware::start("310p3-4x1");
    let mut probe = Probe::ready(&hardware);
    for card in [3, 6, 15104] {
        assert!(
            probe
                .ask(&format!("create {card} 0 vir02 {ANY}"))
                .starts_with("0 ")
        );
    }
    let ids = || -> Vec<u64> {
        let listed = hardware.control(&json!({"op": "vdev", "action": "list"}));
        let vdevices = listed.as_array().unwrap();
        vdevices
            .iter()
            .map(|one| one["id"].as_u64().unwrap())
            .collect()
    };
    assert_eq!(ids(), [116, 132, 148]);
    hardware.control(&json!({"op": "remove", "chip": 1}));
    assert_eq!(ids(), [116, 132]);
    hardware.control(&json!({"op": "replace", "chip": 1}));
    assert_eq!(ids(), [132]);
    let vdevices = hardware
        .nodes()
        .into_iter()
        .filter(|name| name.starts_with('v'));
    assert_eq!(vdevices.collect::<Vec<_>>(), ["vdavinci132"]);
}

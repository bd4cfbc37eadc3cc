//! vNPUs: templates, ids, capacity, who may do what, and what survives.

use std::fs;

use serde_json::{Value, json};

use crate::bench::{Hardware, Probe, eventually};

const ANY: &str = "-1 -1";

fn on_910(extra: &'static str) -> Hardware {
    Hardware::start_edited("910b3-8x1", move |text| {
        let text = text
            .replace("name = \"910B3\"", "name = \"910A\"")
            .replace("aicore_count = 20", "aicore_count = 32")
            .replace("board_id = 0x32", "board_id = 0x1")
            .replace("hbm_size_mb = 65536", "hbm_size_mb = 32768");
        text.replacen("unsupported", &format!("{extra}\nunsupported"), 1)
    })
}

fn on_a3(extra: &'static str) -> Hardware {
    Hardware::start_edited("910b3-8x1", move |text| {
        let text = text
            .replace("count = 8", "count = 16")
            .replace("devices_per_card = 1", "devices_per_card = 2")
            .replace("chip_name = \"910B3\"", "chip_name = \"Ascend910\"")
            .replace("npu_name = \"910B3\"", "npu_name = \"9392\"")
            .replace("board_id = 0x32", "board_id = 0xb0\nbrothers = true")
            .replace("mainboard_id = 0x02", "mainboard_id = 0x15");
        format!("{text}\n{extra}")
    })
}

fn duo() -> Hardware {
    Hardware::start_edited("310p3-4x1", |text| {
        text.replace("count = 4", "count = 8")
            .replace("devices_per_card = 1", "devices_per_card = 2")
            .replace("buses = [0x02, 0x04, 0x39, 0x3b]", "")
            .replace("board_id = 0x64", "board_id = 0x97")
    })
}

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
    let board = |id: &'static str, cores: u32| {
        Hardware::start_edited("910b3-8x1", move |text| {
            text.replace("board_id = 0x32", &format!("board_id = {id}"))
                .replace("aicore_count = 20", &format!("aicore_count = {cores}"))
        })
    };
    for (hardware, name, share) in [
        (board("0x30", 24), "vir12_3c_32g", "12 30720 3 5 0 1 14 2 0"),
        (board("0x30", 24), "vir06_1c_16g", "6 15360 1 2 0 0 7 1 0"),
        (board("0x32", 20), "vir10_3c_32g", "10 30720 3 4 0 1 12 2 0"),
        (board("0x32", 20), "vir05_1c_16g", "5 15360 1 2 0 0 6 1 0"),
        (board("0x28", 20), "vir10_3c_16g", "10 14336 3 4 0 1 12 2 0"),
        (
            board("0x28", 20),
            "vir10_4c_16g_m",
            "10 14336 4 9 0 2 24 4 0",
        ),
        (
            board("0x28", 20),
            "vir10_3c_16g_nm",
            "10 14336 3 0 0 0 0 0 0",
        ),
        (board("0x28", 20), "vir05_1c_8g", "5 7168 1 2 0 0 6 1 0"),
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
    let hardware = on_910("");
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
    let smp = on_910("work_mode = \"smp\"");
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
    let hardware = duo();
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask(&format!("create 2 1 vir04 {ANY}")), "0 116 0");
    let a3 = on_a3("");
    let mut probe = Probe::ready(&a3);
    assert_eq!(
        probe.ask(&format!("create 0 0 vir05_1c_16g {ANY}")),
        "-8255 0 -"
    );
    assert_eq!(probe.ask("total 0 0"), "-8255 360");
    assert_eq!(probe.ask("vmode"), "-8255 -1");
    let cut_a3 = on_a3("[vnpu]\na3 = true");
    let mut probe = Probe::ready(&cut_a3);
    assert_eq!(
        probe.ask(&format!("create 0 1 vir05_1c_16g {ANY}")),
        "0 116 -"
    );
    assert!(
        probe
            .ask("vdev 0 1 116")
            .ends_with(": 5 16384 1 2 0 0 6 1 0")
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
fn the_mode_cannot_change_while_there_are_vnpus() {
    let hardware = Hardware::start("310p3-4x1");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("vmode"), "0 0");
    assert_eq!(probe.ask("set-vmode 2"), "-8001");
    probe.ask(&format!("create 2 0 vir01 {ANY}"));
    assert_eq!(probe.ask("set-vmode 1"), "-8020");
    assert_eq!(probe.ask("set-vmode 0"), "0");
    probe.ask("destroy 2 0 100");
    assert_eq!(probe.ask("set-vmode 1"), "0");
    assert_eq!(probe.ask("vmode"), "0 1");
}

#[test]
fn who_may_cut_depends_on_the_product() {
    let may = |hardware: &Hardware, template: &str| -> Vec<String> {
        let mut probe = Probe::ready(hardware);
        ["root", "user", "privileged", "container", "vm"]
            .into_iter()
            .filter(|caller| {
                hardware.control(&json!({"op": "caller", "caller": caller}));
                let made = probe.ask(&format!("create 2 0 {template} {ANY}"));
                assert!(
                    made.starts_with("0 ") || made.starts_with("-8002 "),
                    "{made}"
                );
                probe.ask("destroy 2 0 0xffff");
                made.starts_with("0 ")
            })
            .map(str::to_owned)
            .collect()
    };
    let inference = Hardware::start("310p3-4x1");
    let everybody_root = ["root", "privileged", "container", "vm"];
    assert_eq!(may(&inference, "vir01"), everybody_root);
    assert_eq!(
        may(&on_910(""), "vir02"),
        ["root", "privileged", "container"]
    );
    let server = Hardware::start("910b3-8x1");
    assert_eq!(may(&server, "vir05_1c_16g"), ["root", "privileged"]);
    let mut probe = Probe::ready(&server);
    server.control(&json!({"op": "caller", "caller": "container"}));
    assert!(probe.ask("total 2 0").starts_with("0 360 "));
    server.control(&json!({"op": "caller", "caller": "user"}));
    assert_eq!(probe.ask("total 2 0"), "-8002 360");
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

#[test]
fn the_policy_of_dies_belongs_to_a3() {
    let hardware = on_a3("");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("policy"), "0 0");
    assert_eq!(probe.ask("set-policy 2"), "-8001");
    assert_eq!(probe.ask("set-policy 1"), "0");
    assert_eq!(probe.ask("policy"), "0 1");
    assert_eq!(hardware.status()["multi_die_policy"], 1);
    hardware.control(&json!({"op": "caller", "caller": "container"}));
    assert_eq!(probe.ask("policy"), "-8002 0");
    assert_eq!(probe.ask("set-policy 0"), "-8002");
    let server = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&server);
    assert_eq!(probe.ask("policy"), "-8255 0");
    assert_eq!(probe.ask("set-policy 0"), "-8255");
    assert_eq!(server.status()["multi_die_policy"], Value::Null);
}

#[test]
fn a_super_pod_tells_where_each_die_is() {
    let hardware = on_a3("[super_pod]\nid = 4\nsize = 384\nserver = 3\nchassis = 2\nkind = 0");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("spod 2 1"), "0 0xc90005 384 4 3 2 0");
    assert_eq!(
        Probe::ready(&on_a3("")).ask("spod 0 0"),
        "-8255 0 0 0 0 0 0"
    );
    let a5 = Hardware::start_edited("a5-8x1", |text| {
        format!("{text}\n[super_pod]\nid = 1\nsize = 64\nserver = 2\nkind = 3")
    });
    let mut probe = Probe::start(&a5);
    assert_eq!(probe.ask("init2"), "0");
    assert_eq!(probe.ask("spod2 5"), "0 0x940005 64 1 2 0 3");
}

#[test]
fn an_unknown_command_is_invalid_and_an_unsimulated_one_not_supported() {
    let hardware = Hardware::start("310p3-4x1");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("rawinfo 99 0"), "-8001");
    let server = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&server);
    assert_eq!(probe.ask("rawinfo 99 0"), "-8001");
    assert_eq!(probe.ask("rawinfo 16 5"), "-8255");
    assert_eq!(probe.ask("rawinfo 52 9"), "-8255");
    assert_eq!(probe.ask("spod 0 0"), "-8255 0 0 0 0 0 0");
}

//! Resets: what is reset together, how chips come back, and what goes wrong.

use serde_json::json;

use crate::bench::{Hardware, Probe, eventually};
use crate::machines::{on_910b, on_a3, with};

const EVENT_RESET_FINISHED: &str = "0x8c2fa009";

fn boot_time(hardware: &Hardware, ms: u64) {
    hardware.control(&json!({"op": "boot-time", "ms": ms}));
}

/// Phy ids of the chips that are not serving.
fn starting(hardware: &Hardware) -> Vec<u64> {
    let status = hardware.status();
    let chips = status["chips"].as_array().unwrap();
    let starts = chips.iter().filter(|chip| chip["boot_status"] != 16);
    starts.map(|chip| chip["phy"].as_u64().unwrap()).collect()
}

fn all_serve(hardware: &Hardware) {
    eventually(|| starting(hardware).is_empty());
}

/// What a reset of that chip, in a machine that will not come back before the test is over, resets.
fn reset_with(hardware: &Hardware, unit: &str) -> Vec<u64> {
    boot_time(hardware, 600_000);
    let mut probe = Probe::ready(hardware);
    assert_eq!(probe.ask(&format!("reset {unit} 1")), "0");
    starting(hardware)
}

#[test]
fn a_chip_starts_through_every_status_and_says_when_it_is_back() {
    let hardware = Hardware::start("310p3-4x1");
    boot_time(&hardware, 600_000);
    let mut probe = Probe::ready(&hardware);
    let mut other = Probe::ready(&hardware);
    assert_eq!(probe.ask("subscribe -1 -1"), "0");
    assert_eq!(probe.ask("boot 2 0"), "0 16");
    for code in [0x80C9_8009_u32, 0x8C1F_8608] {
        hardware.control(&json!({"op": "code", "action": "add", "chip": 0, "code": code}));
    }
    hardware.control(&json!({"op": "health", "chip": 0, "level": 3}));
    hardware.control(&json!({"op": "processes", "chip": 0, "count": 2}));
    assert_eq!(other.ask("reset 2 0 1"), "0");
    assert_eq!(probe.ask("health 2 0"), "-8012 4");
    assert_eq!(probe.ask("codes 2 0 128"), "-8005");
    assert_eq!(probe.ask("temperature 2 0"), "-8012");
    assert_eq!(probe.ask("reset 2 0 1"), "-8013");
    assert_eq!(probe.ask("health 3 0"), "0 0");
    assert_eq!(probe.ask("boot 2 0"), "0 0");
    boot_time(&hardware, 300);
    let mut order: Vec<u32> = Vec::new();
    eventually(|| {
        let status = probe.ask("boot 2 0");
        order.push(status.strip_prefix("0 ").unwrap().parse().unwrap());
        order.last() == Some(&16)
    });
    order.pop();
    assert!(
        order.is_sorted() && order.iter().all(|status| *status <= 3),
        "{order:?}"
    );
    assert_eq!(
        probe.event(),
        format!("0 {EVENT_RESET_FINISHED} 0 0 2 simulated fault")
    );
    assert_eq!(probe.ask("health 2 0"), "0 0");
    assert_eq!(probe.ask("codes 2 0 128"), "0");
    assert_eq!(probe.ask("processes 2 0"), "0 0 0 0");
    let chip = &hardware.status()["chips"][0];
    assert_eq!(
        (&chip["resets"], &chip["resets_in_use"]),
        (&json!(1), &json!(1))
    );
}

#[test]
fn some_codes_stay_and_with_them_the_health() {
    let hardware = with("310p3-4x1", "[reset]\nboot_ms = 20\nsticky = [0x80E01801]");
    let mut probe = Probe::ready(&hardware);
    let add = |code: &str, sticky: &[&str]| {
        let args = [&["code", "add", "0", code][..], sticky].concat();
        assert!(hardware.ctl(&args).status.success());
    };
    add("0x80E01801", &[]);
    add("0x80C98009", &["--sticky"]);
    add("0x8C1F8608", &[]);
    hardware.control(&json!({"op": "health", "chip": 0, "level": 2}));
    assert_eq!(probe.ask("reset 2 0 1"), "0");
    all_serve(&hardware);
    assert_eq!(probe.ask("codes 2 0 128"), "0 0x80e01801 0x80c98009");
    assert_eq!(probe.ask("health 2 0"), "0 2");
    assert!(
        hardware
            .ctl(&["code", "clear", "0", "0x80C98009"])
            .status
            .success()
    );
    add("0x80C98009", &[]);
    assert_eq!(probe.ask("reset 2 0 1"), "0");
    all_serve(&hardware);
    assert_eq!(probe.ask("codes 2 0 128"), "0 0x80e01801");
}

#[test]
fn what_is_reset_together_depends_on_the_product() {
    let linked: Vec<u64> = (0..8).collect();
    assert_eq!(reset_with(&Hardware::start("910b3-8x1"), "3 0"), linked);
    assert_eq!(reset_with(&on_910b("0x28", 20), "3 0"), [3]);
    assert_eq!(reset_with(&Hardware::start("910b4-2x1"), "4 0"), [1]);
    assert_eq!(
        reset_with(&Hardware::start("910a-8x1"), "5 0"),
        [4, 5, 6, 7]
    );
    assert_eq!(reset_with(&Hardware::start("310p3-4x1"), "3 0"), [1]);
    assert_eq!(reset_with(&Hardware::start("310p-duo-2x2"), "5 0"), [2, 3]);
    assert_eq!(
        reset_with(&Hardware::start("a3-8x2"), "1 1"),
        [2, 3, 10, 11]
    );
    assert_eq!(reset_with(&Hardware::start("a3-8x2-arm"), "1 0"), [2, 3]);
    let pairs = Hardware::start("310p-duo-2x2");
    assert_eq!(Probe::ready(&pairs).ask("reset 5 1 1"), "-8255");
    let edge = Hardware::start("310b-1x1");
    assert_eq!(Probe::ready(&edge).ask("reset 0 0 1"), "-8255");
}

#[test]
fn one_number_stands_for_every_chip_on_a3_and_a5() {
    let a3 = Hardware::start("a3-8x2");
    boot_time(&a3, 600_000);
    let mut probe = Probe::ready(&a3);
    assert_eq!(probe.ask("reset 0xff 0 0"), "-8001");
    assert_eq!(probe.ask("reset 0xff 0 1"), "0");
    assert_eq!(starting(&a3).len(), 16);
    let a5 = Hardware::start("a5-8x1");
    boot_time(&a5, 600_000);
    let mut probe = Probe::start(&a5);
    assert_eq!(probe.ask("init2"), "0");
    assert_eq!(probe.ask("reset2 3 1"), "0");
    assert_eq!(starting(&a5), [3]);
    assert_eq!(probe.ask("boot2 3"), "0 0");
    assert_eq!(probe.ask("boot2 4"), "0 16");
    assert_eq!(probe.ask("reset2 0xff 1"), "-8013");
    a5.control(&json!({"op": "heal", "chip": 3}));
    assert_eq!(probe.ask("reset2 0xff 1"), "0");
    assert_eq!(starting(&a5).len(), 8);
    let server = Hardware::start("910b3-8x1");
    assert_eq!(Probe::ready(&server).ask("reset 0xff 0 1"), "-8001");
    assert_eq!(Probe::ready(&server).ask("reset 0 0 2"), "-8001");
}

#[test]
fn out_of_band_a_card_leaves_and_comes_back_when_told() {
    let hardware = Hardware::start("310p3-4x1");
    boot_time(&hardware, 20);
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("outband 3 0"), "0 1");
    assert_eq!(probe.ask("prereset 3 0"), "0");
    assert!(!hardware.nodes().contains(&"davinci1".to_owned()));
    assert_eq!(probe.ask("health 3 0"), "-8012 4");
    assert_eq!(probe.ask("boot 3 0"), "-8012 0");
    assert_eq!(probe.ask("reset 3 0 1"), "-8012");
    assert_eq!(Probe::ready(&hardware).ask("list 64"), "0 -1 2 6 15104");
    assert_eq!(probe.ask("reset 3 0 0"), "0");
    assert_eq!(probe.ask("rescan 3 0"), "0");
    assert!(hardware.nodes().contains(&"davinci1".to_owned()));
    eventually(|| probe.ask("boot 3 0") == "0 16");
    assert_eq!(probe.ask("health 3 0"), "0 0");
    assert_eq!(probe.ask("oldprereset 3 0"), "0");
    assert_eq!(probe.ask("oldrescan 3 0"), "0");
    assert_eq!(probe.ask("health 3 0"), "0 0");
}

#[test]
fn a_lost_card_comes_back_only_after_an_out_of_band_reset() {
    let hardware = Hardware::start("310p3-4x1");
    boot_time(&hardware, 20);
    let mut probe = Probe::ready(&hardware);
    hardware.control(&json!({"op": "lose", "unit": 3}));
    assert_eq!(probe.ask("reset 3 0 1"), "-8012");
    assert_eq!(probe.ask("rescan 3 0"), "0");
    assert_eq!(probe.ask("health 3 0"), "-8012 4");
    assert_eq!(probe.ask("prereset 3 0"), "0");
    assert_eq!(probe.ask("reset 3 0 0"), "0");
    assert_eq!(probe.ask("rescan 3 0"), "0");
    eventually(|| probe.ask("boot 3 0") == "0 16");
    assert_eq!(probe.ask("health 3 0"), "0 0");
}

#[test]
fn a_board_whose_controller_is_silent_is_not_reset_by_it() {
    let hardware = Hardware::start("310p3-4x1");
    let mut probe = Probe::ready(&hardware);
    assert!(hardware.ctl(&["outband", "1", "off"]).status.success());
    assert_eq!(probe.ask("outband 3 0"), "0 0");
    assert_eq!(probe.ask("reset 3 0 0"), "-8015");
    assert!(starting(&hardware).is_empty());
    let server = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&server);
    for command in ["outband 3 0", "prereset 3 0", "reset 3 0 0", "rescan 3 0"] {
        assert!(probe.ask(command).starts_with("-8255"), "{command}");
    }
}

#[test]
fn a_second_generation_resets_out_of_band_too() {
    let a5 = Hardware::start("a5-8x1");
    boot_time(&a5, 20);
    let mut probe = Probe::start(&a5);
    assert_eq!(probe.ask("init2"), "0");
    assert_eq!(probe.ask("outband2 2"), "0 1");
    assert_eq!(probe.ask("prereset2 2"), "0");
    assert_eq!(probe.ask("reset2 2 0"), "0");
    assert_eq!(probe.ask("rescan2 2"), "0");
    eventually(|| probe.ask("boot2 2") == "0 16");
    let cards = Hardware::start("a5-350-4x1");
    let mut probe = Probe::start(&cards);
    assert_eq!(probe.ask("init2"), "0");
    assert_eq!(probe.ask("outband2 2"), "-8255 0");
}

#[test]
fn a_split_card_is_not_unbound() {
    let hardware = Hardware::start("310p3-4x1");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("create 3 0 vir02 -1 -1"), "0 116 0");
    assert_eq!(probe.ask("prereset 3 0"), "-8002");
    assert_eq!(probe.ask("prereset 2 0"), "0");
}

#[test]
fn the_partner_of_an_a3_card_is_remembered_by_the_process_that_unbound_it() {
    let arm = || {
        let hardware = on_a3("0x18");
        boot_time(&hardware, 600_000);
        hardware
    };
    let hardware = arm();
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("prereset 1 0"), "0");
    assert_eq!(probe.ask("health 5 0"), "-8012 4");
    assert_eq!(probe.ask("reset 1 0 0"), "0");
    assert_eq!(starting(&hardware), [2, 3, 10, 11]);
    assert_eq!(probe.ask("rescan 1 0"), "0");
    assert_eq!(probe.ask("boot 5 0"), "0 0");

    // Another process knows the numbers, but not who the partner was.
    let hardware = arm();
    let mut probe = Probe::ready(&hardware);
    let mut successor = Probe::ready(&hardware);
    assert_eq!(probe.ask("prereset 1 0"), "0");
    probe.kill();
    assert_eq!(successor.ask("reset 1 0 0"), "0");
    assert_eq!(starting(&hardware), [2, 3]);
    assert_eq!(successor.ask("rescan 1 0"), "0");
    assert_eq!(successor.ask("boot 1 0"), "0 0");
    assert_eq!(successor.ask("boot 5 0"), "-8012 0");
}

#[test]
fn what_goes_wrong_with_a_reset_stays_until_told_otherwise() {
    let hardware = Hardware::start("310p3-4x1");
    boot_time(&hardware, 40);
    let mut probe = Probe::ready(&hardware);
    let mut fault = |fault: &str| {
        let set = json!({"op": "reset-fault", "chip": 1, "fault": fault});
        hardware.control(&set);
        assert_eq!(probe.ask("reset 3 0 1"), "0");
    };
    let mut observer = Probe::ready(&hardware);
    fault("ignored");
    assert_eq!(observer.ask("boot 3 0"), "0 16");
    assert_eq!(hardware.status()["chips"][1]["resets"], 0);
    fault("no-boot");
    eventually(|| is_stopped(&hardware));
    assert_eq!(observer.ask("boot 3 0"), "0 0");
    assert_eq!(observer.ask("health 3 0"), "-8012 4");
    fault("stuck");
    eventually(|| observer.ask("boot 3 0") == "0 2" && is_stopped(&hardware));
    fault("status-error");
    // It ends all the same, only nobody can see it.
    eventually(|| observer.ask("boot 3 0") == "0 16");
    hardware.control(&json!({"op": "boot-time", "ms": 600_000}));
    fault("status-error");
    assert_eq!(observer.ask("boot 3 0"), "-8005 0");
    hardware.control(&json!({"op": "heal", "chip": 1}));
    assert_eq!(observer.ask("boot 3 0"), "0 16");
    for code in [-8015, -8016] {
        let symbol = "dcmi_set_device_reset";
        let rule = json!({"op": "return-code", "symbol": symbol, "code": code, "times": 1});
        hardware.control(&rule);
        assert_eq!(observer.ask("reset 3 0 1"), code.to_string());
        assert_eq!(observer.ask("boot 3 0"), "0 16");
    }
}

/// The second chip has stopped on its way, which a further reset shows by being allowed.
fn is_stopped(hardware: &Hardware) -> bool {
    hardware.status()["chips"][1]["stopped"] == true
}

#[test]
fn the_partner_may_not_come_back() {
    let hardware = Hardware::start("a3-8x2");
    boot_time(&hardware, 40);
    let mut probe = Probe::ready(&hardware);
    assert!(
        hardware
            .ctl(&["reset-fault", "2", "brother-missing"])
            .status
            .success()
    );
    assert_eq!(probe.ask("reset 1 0 1"), "0");
    eventually(|| probe.ask("boot 1 0") == "0 16" && probe.ask("boot 1 1") == "0 16");
    assert_eq!(starting(&hardware), [10, 11]);
    assert_eq!(probe.ask("boot 5 0"), "0 0");
}

#[test]
fn who_may_reset_depends_on_the_product() {
    let may = |hardware: &Hardware, command: &str| -> Vec<&str> {
        let mut probe = Probe::ready(hardware);
        boot_time(hardware, 0);
        ["root", "user", "privileged", "container", "vm"]
            .into_iter()
            .filter(|caller| {
                all_serve(hardware);
                hardware.control(&json!({"op": "caller", "caller": caller}));
                let code = probe.ask(command);
                assert!(code == "0" || code == "-8002", "{code}");
                code == "0"
            })
            .collect()
    };
    let privileged = ["root", "privileged"];
    let cards = Hardware::start("310p3-4x1");
    assert_eq!(
        may(&cards, "reset 2 0 1"),
        ["root", "privileged", "container", "vm"]
    );
    assert_eq!(may(&cards, "reset 2 0 0"), privileged);
    assert_eq!(may(&cards, "rescan 2 0"), privileged);
    assert_eq!(may(&Hardware::start("a3-8x2"), "reset 2 0 1"), privileged);
    let server = Hardware::start("910b3-8x1");
    assert_eq!(may(&server, "reset 2 0 1"), ["root", "privileged", "vm"]);
    let unlinked = on_910b("0x28", 20);
    assert_eq!(may(&unlinked, "reset 2 0 1"), ["root"]);
}

#[test]
fn vnpus_go_through_a_reset_as_through_a_reboot() {
    let hardware = Hardware::start("310p3-4x1");
    boot_time(&hardware, 600_000);
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("create 3 0 vir02 -1 -1"), "0 116 0");
    hardware.control(&json!({"op": "vdev", "action": "use", "id": 116, "switch": "on"}));
    assert_eq!(probe.ask("reset 3 0 1"), "0");
    assert!(!hardware.nodes().contains(&"vdavinci116".to_owned()));
    assert_eq!(probe.ask("vdev 3 0 116"), "-8012 264");
    boot_time(&hardware, 20);
    all_serve(&hardware);
    eventually(|| hardware.nodes().contains(&"vdavinci116".to_owned()));
    assert!(
        probe
            .ask("vdev 3 0 116")
            .starts_with("0 264 116 vir02 used 0 ")
    );
    assert_eq!(hardware.status()["chips"][1]["resets_in_use"], 1);
    assert_eq!(probe.ask("set-recover 0"), "0");
    assert_eq!(probe.ask("reset 3 0 1"), "0");
    all_serve(&hardware);
    assert_eq!(probe.ask("vdev 3 0 116"), "-8008 264");
}

#[test]
fn a_start_goes_on_after_the_daemon_was_killed() {
    let mut hardware = Hardware::start("310p3-4x1");
    boot_time(&hardware, 600_000);
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("reset 3 0 1"), "0");
    hardware.kill_and_restart();
    assert_eq!(starting(&hardware), [1]);
    assert_eq!(probe.ask("boot 3 0"), "0 0");
    boot_time(&hardware, 20);
    all_serve(&hardware);
    assert_eq!(probe.ask("health 3 0"), "0 0");
}

#[test]
fn a_reset_may_be_carried_out_while_its_answer_is_held() {
    let hardware = Hardware::start("310p3-4x1");
    boot_time(&hardware, 20);
    let mut probe = Probe::ready(&hardware);
    let symbol = "dcmi_set_device_reset";
    hardware.control(&json!({"op": "hang", "symbol": symbol, "answer": true}));
    probe.begin("reset 3 0 1");
    let resets = || hardware.status()["chips"][1]["resets"].clone();
    eventually(|| resets() == 1 && starting(&hardware).is_empty());
    assert!(!probe.finished());
    hardware.control(&json!({"op": "release"}));
    assert_eq!(probe.finish(), "0");
}

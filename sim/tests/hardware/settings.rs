//! Settings of the node, the place in a super pod, and who may do what.

use serde_json::{Value, json};

use crate::bench::{Hardware, Probe};

const ANY: &str = "-1 -1";

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
        may(&Hardware::start("910a-8x1"), "vir02"),
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
fn the_policy_of_dies_belongs_to_a3() {
    let hardware = Hardware::start("a3-8x2");
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
    let hardware = Hardware::start("a3-8x2");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("spod 2 1"), "0 0xc90005 384 1 3 0 0");
    let alone = Hardware::start_edited("a3-8x2", |text| {
        let section = "[super_pod]\nid = 1\nsize = 384\nserver = 3\nchassis = 0\nkind = 0";
        text.replace(section, "")
    });
    assert_eq!(Probe::ready(&alone).ask("spod 0 0"), "-8255 0 0 0 0 0 0");
    for (profile, answer) in [
        ("a5-8x1", "0 0xc0003 8 0 0 0 0"),
        ("a5-350-4x1", "0 0xc0003 4 0 0 0 5"),
    ] {
        let a5 = Hardware::start(profile);
        let mut probe = Probe::start(&a5);
        assert_eq!(probe.ask("init2"), "0");
        assert_eq!(probe.ask("spod2 3"), answer);
    }
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

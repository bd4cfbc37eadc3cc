//! Shares, custom names and modes that do not fit, as kubelet and operators see them.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tonic::Code;

use super::driver::enumerated_again;
use super::plugin::{allocate, preferred};
use super::pod::pod;
use super::testbed::{Node, PATIENCE, eventually, files_in, make_pipe, programs, strings, text};

const ASCEND310P: &str = "huawei.com/Ascend310P";

/// Kubelet's receive limit, and ours.
const MESSAGE_MAX_BYTES: usize = 4 << 20;

fn shared(count: &str) -> Node {
    Node::of("310p3-4x1")
        .resource(ASCEND310P)
        .flag("share-count", count)
}

/// The chip of `Ascend310P-<phy>-<slot>`.
fn chip_of(id: &str) -> &str {
    id.rsplit_once('-').expect("a share").0
}

#[test]
fn shares_of_one_chip_go_to_several_pods_and_come_back_one_by_one() {
    let node = shared("2").ready(8);
    let spread = node.admitted("spread", 4);
    let chips: BTreeSet<&str> = spread.iter().map(|id| chip_of(id)).collect();
    assert_eq!(chips.len(), 4, "different chips first: {spread:?}");
    let beside = node.admitted("beside", 4);
    assert!(spread.iter().all(|id| !beside.contains(id)));
    node.holders_known(8);
    let chip = node.chip(0);
    let devices = chip["devices"].as_array().expect("devices");
    let told: Vec<(&str, &str)> = devices
        .iter()
        .map(|device| {
            let id = device["plugin_device_id"].as_str().expect("an id");
            (id, device["state"].as_str().expect("a state"))
        })
        .collect();
    let expected = [
        ("Ascend310P-0-0", "confirmed"),
        ("Ascend310P-0-1", "confirmed"),
    ];
    assert_eq!(told, expected);
    let table = text(&node.run(&["status"]).stdout);
    assert!(table.contains("Ascend310P-3-1"), "{table}");

    // A process runs on, somebody's: the other pod's, as far as anyone can tell.
    node.sim(&["processes", "0", "1"]);
    node.remove_named("spread");
    for id in &spread {
        node.freed(id);
    }
    assert_eq!(node.held().len(), 4);
    assert_eq!(node.admitted("next", 4).len(), 4);
    let too_much = node.admit(&pod("too-much", 1));
    assert!(!too_much.is_admitted());
    assert_eq!(node.audit_of("spread").len(), 4);
}

#[test]
fn two_shares_of_one_chip_bring_its_device_node_once() {
    let node = shared("2").ready(8);
    let answer = allocate(&node, &["Ascend310P-1-0", "Ascend310P-1-1"]).expect("granted");
    let davinci1: Vec<_> = answer
        .nodes
        .iter()
        .filter(|(host, _, _)| host.ends_with("/davinci1"))
        .collect();
    assert_eq!(davinci1.len(), 1, "{answer:?}");
    let (code, said) = allocate(&node, &["Ascend310P-1"]).expect_err("no whole chip");
    assert_eq!(code, Code::InvalidArgument, "{said}");
}

#[test]
fn l14_a_change_of_the_mode_gives_no_chip_with_a_holder_away() {
    let mut node = shared("2").ready(8);
    let running = pod("running", 1);
    node.admitted("bystander", 0);
    let id = node.admit(&running).ids().remove(0);
    node.holders_known(1);
    node.stage.stop_agent().expect("stopped");
    let mut node = node.flag("share-count", "1");
    node.start_agent();
    node.allocatable(3);
    let whole = chip_of(&id).to_owned();
    for listed in [id.as_str(), &whole] {
        let health = node.listed_health(listed);
        assert_eq!(health.as_deref(), Some("Unhealthy"), "{listed}");
    }
    let (code, said) = allocate(&node, &[&whole]).expect_err("held in part");
    assert_eq!(code, Code::FailedPrecondition, "{said}");
    assert!(said.contains("default/running"), "{said}");
    node.remove(&running);
    node.allocatable(4);
    assert_eq!(node.listed_health(&id), None, "a share of a former mode");
}

#[test]
fn c33_four_thousand_ids_are_listed_far_below_the_message_limit_and_again_after_a_restart() {
    let printed = Command::new(programs().sim)
        .args(["profiles", "310p3-4x1"])
        .output()
        .expect("a profile");
    let numbers = |first: u32| {
        (first..first + 64)
            .map(|n| n.to_string())
            .collect::<Vec<_>>()
    };
    let profile: String = text(&printed.stdout)
        .lines()
        .map(|line| match line.split(" =").next() {
            Some("count") => "count = 64\n".to_owned(),
            Some("cards") => format!("cards = [{}]\n", numbers(1).join(", ")),
            Some("buses") => format!("buses = [{}]\n", numbers(1).join(", ")),
            _ => format!("{line}\n"),
        })
        .collect();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("large.toml");
    fs::write(&file, profile).expect("a profile");
    let mut node = Node::of(file.to_str().expect("plain"))
        .resource(ASCEND310P)
        .flag("share-count", "64")
        .ready(4096);
    let lists = node.lists();
    let listed = lists["last"].as_array().expect("a list").len();
    assert_eq!(listed, 4096);
    assert!(lists.to_string().len() < MESSAGE_MAX_BYTES);

    let ids = node.admitted("wide", 64);
    let chips: BTreeSet<&str> = ids.iter().map(|id| chip_of(id)).collect();
    assert_eq!(chips.len(), 64, "a share of each chip");
    let verdict = node.admit(&pod("deep", 800));
    assert!(verdict.is_admitted(), "{verdict:?}");
    node.holders_known(864);

    // How long a kubelet that starts waits for its first list is a figure of `make bench`.
    node.restart_kubelet_below(&[]);
    eventually("the first list", PATIENCE, || {
        let count = node.lists()["last"].as_array().map_or(0, Vec::len);
        (count == 4096).then_some(())
    });
}

#[test]
fn custom_names_hold_from_registration_to_release() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("names.json");
    let names = json!([{
        "ResourceType": "Ascend310P",
        "DevicePublicType": "example.com/npu310p",
        "DevicePublicNamePre": "acme-npu",
        "PodConfigurationName": "example.com/pod-config",
    }]);
    fs::write(&file, names.to_string()).expect("a file");
    let mut node = Node::of("310p3-4x1")
        .resource("example.com/npu310p")
        .flag("names-file", file.to_str().expect("plain"))
        .ready(4);
    node.admitted("bystander", 0);
    let log = node.stage.log_text("agent.log");
    let read = log
        .lines()
        .find(|line| line.contains("custom names were read"));
    let read = read.unwrap_or_else(|| panic!("{log}"));
    assert!(read.contains("names.json"), "{read}");
    let ids = node.admitted("custom", 2);
    assert!(ids.iter().all(|id| id.starts_with("acme-npu-")), "{ids:?}");
    node.holders_known_of("custom", 2);
    let sockets = files_in(&node.stage.path("dp"));
    assert!(
        sockets.iter().any(|name| name.starts_with("npu310p-")),
        "{sockets:?}"
    );
    node.stage.kill_agent();
    node.start_agent();
    node.allocatable(4);
    let ids_held = node.holders_known_of("custom", 2);
    assert_eq!(ids_held[0]["resource"], "example.com/npu310p");
    node.remove_named("custom");
    for id in &ids {
        node.freed(id);
    }
    assert_eq!(node.audit_of("custom").len(), 2);

    // Another start without the names: a held id stays under its old resource, and is proven gone there.
    node.admitted("old", 1);
    node.holders_known(1);
    node.stage.stop_agent().expect("stopped");
    let mut node = node.flag("names-file", "").resource(ASCEND310P);
    node.start_agent();
    node.allocatable(3);
    node.remove_named("old");
    node.allocatable(4);
    assert!(node.held().is_empty());
}

#[test]
fn a_holder_under_a_former_name_is_adopted_when_the_store_is_lost() {
    for delivery in ["docker-runtime", "cdi"] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("names.json");
        let names = json!([{
            "ResourceType": "Ascend310P",
            "DevicePublicType": "example.com/former",
            "DevicePublicNamePre": "acme-npu",
            "PodConfigurationName": "example.com/pod-config",
        }]);
        fs::write(&file, names.to_string()).expect("a file");
        let former = "example.com/former";
        let node = shared("2")
            .resource(former)
            .flag("names-file", file.to_str().expect("plain"))
            .flag("delivery", delivery);
        let cdi = node.stage.path("cdi").display().to_string();
        let mut node = node.flag("cdi-dir", &cdi).ready(8);
        node.admitted("bystander", 0);
        let ids = node.admitted("old", 3);
        node.stage.kill_agent();
        fs::remove_file(node.stage.path("state/state.redb")).expect("a store");
        fs::remove_file(&file).expect("gone");
        let node = node.resource(ASCEND310P).flag("share-count", "1");
        let mut node = node.flag("names-file", "");
        node.start_agent();
        node.allocatable(1);
        for id in &ids {
            let held = node.holding(id).expect("adopted");
            assert_eq!(held["resource"], former, "{delivery}");
        }
        assert!(!node.admit(&pod("other", 2)).is_admitted(), "{delivery}");
        node.remove_named("old");
        node.allocatable(4);
        assert!(node.held().is_empty());
    }
}

#[test]
fn a_bad_names_file_and_settings_that_exclude_each_other_are_exit_code_two() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("names.json");
    fs::write(
        &file,
        r#"[{"ResourceType": "Ascend910", "DevicePublicType": "example.com/npu910",
             "DevicePublicNamePre": "acme-3", "PodConfigurationName": "example.com/x"}]"#,
    )
    .expect("a file");
    let path = file.to_str().expect("plain");
    for (words, told) in [
        (
            &["--names-file", path][..],
            "entry 1: DevicePublicNamePre is \"acme-3\"",
        ),
        (
            &["--names-file", "/nonexistent.json"],
            "names_file = \"/nonexistent.json\" (from --names-file): the file does not exist",
        ),
        (&["--share-count", "101"], "1 to 100"),
        (
            &["--share-count", "2", "--mixed-insert", "true"],
            "exclude each other",
        ),
        (
            &["--share-count", "2", "--fusion-director", "true"],
            "exclude each other",
        ),
    ] {
        let output = Command::new(programs().agent)
            .arg("run")
            .args(words)
            .output()
            .expect("the program");
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        let said = text(&output.stderr);
        assert!(said.contains(told), "{words:?}: {said}");
    }
}

#[test]
fn a_names_file_that_is_a_pipe_is_refused_and_not_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("names.json");
    make_pipe(&pipe);
    for flag in ["--names-file", "--config"] {
        let mut started = Command::new(programs().agent)
            .args(["config", "check", flag])
            .arg(&pipe)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program");
        eventually("it ends", PATIENCE, || started.try_wait().expect("a look"));
        let said = text(&started.wait_with_output().expect("an end").stderr);
        assert!(said.contains("not a plain file"), "{flag}: {said}");
    }
}

#[test]
fn a_mixed_card_whose_type_cannot_be_read_again_stays_offered() {
    let mut node = Node::of("mixed-310p-4x1")
        .resource("huawei.com/Ascend310P-IPro")
        .flag("mixed-insert", "true")
        .ready(2);
    node.sim(&["return-code", "dcmi_get_product_type", "-8005"]);
    enumerated_again(&node);
    assert_eq!(node.allocatable_ids().len(), 2);
    let chips = node.status()["chips"].clone();
    for chip in chips.as_array().expect("chips") {
        assert_eq!(chip["healthy"], true, "{chip}");
    }
    // The store knows what each die is, too.
    node.stage.kill_agent();
    node.start_agent();
    node.allocatable(2);
}

#[test]
fn preferences_that_make_no_sense_are_answered_with_shares_that_do() {
    let node = shared("2").ready(8);
    let all: Vec<String> = (0..4)
        .flat_map(|phy| (0..2).map(move |slot| format!("Ascend310P-{phy}-{slot}")))
        .collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let nothing: [&str; 0] = [];
    let ask = |available: &[&str], must: &[&str], size: i32| {
        preferred(&node, available, must, size).expect("an answer")
    };
    for size in [0, -1, i32::MIN, 9, i32::MAX] {
        assert_eq!(ask(&all, &nothing, size), nothing, "{size}");
    }
    assert_eq!(ask(&nothing, &nothing, 1), nothing);
    assert_eq!(ask(&all, &["Ascend310P-0"], 2), nothing, "no id of ours");
    assert_eq!(ask(&all[1..], &all[..1], 2), nothing, "not available");
    assert_eq!(ask(&all, &all[..3], 2), nothing, "more than the size");
    let strange = ["Ascend310P-0-0", "gpu-1", "Ascend310P-9-0", "Ascend310P-0"];
    assert_eq!(ask(&strange, &nothing, 1), ["Ascend310P-0-0"]);
    assert_eq!(ask(&strange, &nothing, 2), nothing, "only one is known");
    let twice = ["Ascend310P-1-1", "Ascend310P-1-1"];
    assert_eq!(ask(&twice, &nothing, 2), nothing, "one id twice is one");
    assert_eq!(ask(&twice, &twice, 1), ["Ascend310P-1-1"]);
    let chosen = ask(&all, &all[..1], 4);
    let chips: BTreeSet<&str> = chosen.iter().map(|id| chip_of(id)).collect();
    assert_eq!((chosen.len(), chips.len()), (4, 4), "{chosen:?}");
}

#[test]
fn a_mode_that_does_not_fit_the_chips_ends_the_start_with_its_reason() {
    let mut node = Node::of("910b3-8x1").flag("mixed-insert", "true");
    node.start_kubelet(&json!({}));
    node.start_agent();
    let ended = eventually("the agent ends", PATIENCE, || node.stage.agent_ended());
    assert_eq!(ended.code(), Some(1));
    let log = node.stage.log_text("agent.log");
    assert!(
        log.contains("mixed_insert = true takes Atlas 300V"),
        "{log}"
    );
    assert!(log.contains("chip 0"), "{log}");
    assert_eq!(node.lists()["registrations"], 0);
}

#[test]
fn a_setting_without_effect_is_told_and_changes_nothing() {
    let node = Node::of("910b3-8x1").flag("share-count", "2").ready(8);
    assert_eq!(node.admitted("whole", 1), ["Ascend910-0"]);
    let log = node.stage.log_text("agent.log");
    assert!(log.contains("share_count = 2 has no effect"), "{log}");
}

#[test]
fn a_resource_that_is_no_longer_offered_has_nothing_to_give_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("names.json");
    let names = json!([{
        "ResourceType": "Ascend310P",
        "DevicePublicType": "huawei.com/Former310P",
        "DevicePublicNamePre": "former",
        "PodConfigurationName": "example.com/pod-config",
    }]);
    fs::write(&file, names.to_string()).expect("a file");
    let former = "huawei.com/Former310P";
    let mut node = Node::of("310p3-4x1")
        .resource(former)
        .flag("names-file", file.to_str().expect("plain"))
        .ready(4);
    node.stage.kill_agent();
    fs::write(&file, "[]").expect("emptied");
    let mut node = node.resource(ASCEND310P);
    node.start_agent();
    node.allocatable(4);
    // Kubelet keeps the devices of a plugin that ended for five minutes, none of them to be given.
    let told = node.kubelet("capacity", json!({}));
    assert_eq!(told["capacity"][former], 4, "{told}");
    assert_eq!(told["allocatable"][former], 0, "{told}");
    assert_eq!(told["allocatable"][ASCEND310P], 4, "{told}");
    let ids: Value = node.kubelet("allocatable_ids", json!({}))["resources"][former].clone();
    assert_eq!(strings(&ids), [""; 0]);
}

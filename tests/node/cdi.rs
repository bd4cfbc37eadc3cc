//! Chips by CDI name: the spec on the disk and the names in kubelet's hands.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use serde_json::{Value, json};

use super::delivery::answer_of;
use super::pod::pod;
use super::products::nothing_is_granted;
use super::testbed::{Node, PATIENCE, eventually, make_pipe};

fn node() -> Node {
    let node = Node::of("910b3-8x1").flag("delivery", "cdi");
    let folder = node.stage.path("cdi").display().to_string();
    node.flag("cdi-dir", &folder)
}

fn file(node: &Node) -> PathBuf {
    node.stage.path("cdi").join("huawei.com-npu.json")
}

fn spec(node: &Node) -> Option<Value> {
    serde_json::from_slice(&fs::read(file(node)).ok()?).ok()
}

fn names(spec: &Value) -> Vec<&str> {
    let devices = spec["devices"].as_array().expect("devices");
    devices
        .iter()
        .map(|device| device["name"].as_str().expect("a name"))
        .collect()
}

#[test]
fn a_container_gets_names_that_the_spec_on_the_disk_explains() {
    let node = node().ready(8);
    let spec = spec(&node).expect("the spec is there before kubelet has the list");
    let mode = fs::metadata(file(&node))
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o644);
    assert_eq!(spec["cdiVersion"], "0.5.0");
    assert_eq!(spec["kind"], "huawei.com/npu");
    assert_eq!(names(&spec), ["0", "1", "2", "3", "4", "5", "6", "7"]);
    let dev = node.stage.path("dev");
    let edit = |name: &str| {
        json!({
            "path": format!("/dev/{name}"),
            "hostPath": dev.join(name),
            "permissions": "rw",
        })
    };
    let shared: Vec<Value> = ["davinci_manager", "devmm_svm", "hisi_hdc", "dvpp_cmdlist"]
        .into_iter()
        .map(edit)
        .collect();
    assert_eq!(spec["containerEdits"], json!({ "deviceNodes": shared }));
    assert_eq!(
        spec["devices"][3]["containerEdits"],
        json!({ "deviceNodes": [edit("davinci3")] })
    );

    let answer = answer_of(&node, 2);
    assert_eq!(
        answer["cdi"],
        json!(["huawei.com/npu=0", "huawei.com/npu=1"])
    );
    assert_eq!(answer["devices"], json!([]));
    assert_eq!(answer["mounts"], json!([]));
    assert_eq!(answer["envs"], json!({}));
}

#[test]
fn the_spec_is_written_anew_only_when_it_has_to_say_something_else() {
    let mut node = node().ready(8);
    let inode = |node: &Node| fs::metadata(file(node)).map(|meta| meta.ino());
    let first = inode(&node).expect("the spec");
    node.stage.kill_agent();
    node.start_agent();
    node.allocatable(8);
    assert_eq!(inode(&node).expect("the spec"), first);

    fs::remove_file(node.stage.path("dev/dvpp_cmdlist")).expect("a node goes");
    eventually("the spec follows the host", PATIENCE, || {
        let spec = spec(&node)?;
        let shared = spec["containerEdits"]["deviceNodes"].as_array()?.len();
        (shared == 3).then_some(())
    });
    fs::remove_file(file(&node)).expect("somebody removes the spec");
    eventually("the spec is back", PATIENCE, || spec(&node));
}

#[test]
fn every_known_chip_keeps_its_name_while_the_driver_shows_fewer_or_none() {
    let mut node = node().flag("device-wait-seconds", "0").ready(8);
    let whole = spec(&node).expect("the spec");
    for (what, words) in [
        ("one chip is gone", ["remove", "7"]),
        ("no card comes up", ["hide-cards", "8"]),
    ] {
        node.stage.kill_agent();
        node.sim(&words);
        fs::remove_file(file(&node)).expect("a reboot empties the folder");
        node.start_agent();
        let found = eventually(what, PATIENCE, || spec(&node));
        assert_eq!(names(&found), names(&whole), "{what}");
    }
}

#[test]
fn while_the_spec_cannot_be_written_nothing_is_granted_and_the_reason_is_told() {
    let mut node = node();
    let blocked = node.stage.path("cdi");
    fs::write(&blocked, "").expect("a file where the folder should be");
    node.start_kubelet(&json!({}));
    node.start_agent();
    let status = eventually("the reason is told", PATIENCE, || {
        let status = node.status_now()?;
        let reason = status["chips"][0]["reason"].as_str()?;
        reason.contains("huawei.com-npu.json").then_some(status)
    });
    let told = status["shortcomings"].to_string();
    assert!(told.contains("no chip is granted: the CDI spec"), "{told}");
    nothing_is_granted(&node);
    fs::remove_file(&blocked).expect("it goes away");
    node.allocatable(8);
    assert!(node.admit(&pod("pod", 1)).is_admitted());
}

#[test]
fn a_pipe_in_the_place_of_the_spec_is_replaced() {
    let node = node();
    fs::create_dir_all(node.stage.path("cdi")).expect("a folder");
    make_pipe(&file(&node));
    let node = node.ready(8);
    assert!(spec(&node).is_some());
}

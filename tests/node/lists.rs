//! What kubelet is told: ids, health, topology, and what it makes of it.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::pod::pod;
use super::testbed::{Node, PATIENCE, eventually, strings};

/// Two NUMA nodes as the kernel shows them, with the CPUs that the profiles name.
fn lay_out_numa(folder: &Path) {
    for (node, cpus) in ["0-31", "32-63"].iter().enumerate() {
        let path = folder.join(format!("devices/system/node/node{node}"));
        fs::create_dir_all(&path).expect("a folder");
        fs::write(path.join("cpulist"), format!("{cpus}\n")).expect("a file");
    }
}

/// A built-in profile with another number of chips.
pub(crate) fn profile_with(name: &str, count: u32) -> tempfile::NamedTempFile {
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("sim/profiles/{name}.toml"));
    let text = fs::read_to_string(built_in).expect("a profile");
    let changed: Vec<String> = text
        .lines()
        .map(|line| {
            if line.starts_with("count = ") {
                format!("count = {count}")
            } else {
                line.to_owned()
            }
        })
        .collect();
    let file = tempfile::Builder::new()
        .suffix(".toml")
        .tempfile()
        .expect("a file");
    fs::write(file.path(), changed.join("\n")).expect("a profile");
    file
}

#[test]
fn c09_the_list_is_complete_sorted_and_unique_and_silence_means_no_change() {
    let node = Node::up();
    let last = node.lists()["last"].clone();
    let ids: Vec<&str> = last
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|device| device["id"].as_str())
        .collect();
    let expected: Vec<String> = (0..8).map(|phy| format!("Ascend910-{phy}")).collect();
    assert_eq!(ids, expected);
    let updates = node.updates();
    node.sampled(10);
    assert_eq!(node.updates(), updates, "ten quiet rounds send nothing");
}

#[test]
fn c24_a_single_numa_node_pod_gets_the_chips_of_one_node() {
    let mut node = Node::of("910b3-8x1");
    let sysfs = node.stage.path("sys");
    lay_out_numa(&sysfs);
    let mut node = {
        let path = sysfs.to_str().expect("plain text").to_owned();
        node.start_kubelet(&json!({ "topology_policy": "single-numa-node", "numa_nodes": 2 }));
        node.flag("sysfs-dir", &path)
    };
    node.start_agent();
    node.allocatable(8);
    let numa = node.kubelet("allocatable_ids", json!({}))["numa"][node.resource].clone();
    for phy in 0..8 {
        let expected = json!([phy / 4]);
        assert_eq!(numa[format!("Ascend910-{phy}")], expected, "chip {phy}");
    }
    node.admitted("one", 1);
    let four = node.admitted("four", 4);
    assert_eq!(
        four,
        (4..8)
            .map(|phy| format!("Ascend910-{phy}"))
            .collect::<Vec<_>>()
    );
    let refused = node.admit(&pod("across", 4));
    assert!(
        !refused.is_admitted(),
        "three chips are left on the other node"
    );
    assert!(
        refused.reason().contains("TopologyAffinityError"),
        "{refused:?}"
    );
}

#[test]
fn c24_without_numa_facts_no_topology_is_sent() {
    let node = Node::of("910b3-8x1");
    let nothing = node
        .stage
        .path("sys")
        .to_str()
        .expect("plain text")
        .to_owned();
    let node = node.flag("sysfs-dir", &nothing).ready(8);
    let numa = node.kubelet("allocatable_ids", json!({}))["numa"][node.resource].clone();
    for nodes in numa.as_object().expect("ids").values() {
        assert_eq!(nodes, &json!([]));
    }
    assert!(
        node.lists()["last"]
            .as_array()
            .expect("a list")
            .iter()
            .all(no_numa)
    );
}

fn no_numa(device: &Value) -> bool {
    device["numa"].as_array().is_none_or(Vec::is_empty)
}

#[test]
fn c23_kubelet_follows_the_preference_for_the_tightest_mesh() {
    let profile = profile_with("910b3-8x1", 16);
    let node = Node::of(profile.path().to_str().expect("plain text")).ready(16);
    let ids = |range: std::ops::Range<u32>| -> Vec<String> {
        let mut ids: Vec<String> = range.map(|phy| format!("Ascend910-{phy}")).collect();
        ids.sort();
        ids
    };
    assert_eq!(
        node.admitted("three", 3),
        ids(0..3),
        "the lowest numbers of the first mesh"
    );
    assert_eq!(
        node.admitted("four", 4),
        ids(3..7),
        "the fuller mesh, where it still fits"
    );
    assert_eq!(
        node.admitted("eight", 8),
        ids(8..16),
        "the whole second mesh"
    );
    assert_eq!(node.admitted("last", 1), ids(7..8));
}

#[test]
fn c23_the_choice_is_the_same_every_time() {
    let node = Node::up();
    let anchor = node.admitted("anchor", 1);
    assert_eq!(anchor, ["Ascend910-0"]);
    for round in 0..3 {
        let name = format!("round-{round}");
        assert_eq!(node.admitted(&name, 2), ["Ascend910-1", "Ascend910-2"]);
        node.remove_named(&name);
    }
}

#[test]
fn c33_as_many_chips_as_a_node_can_have_are_listed_and_granted() {
    let profile = profile_with("910b3-8x1", 64);
    let node = Node::of(profile.path().to_str().expect("plain text")).ready(64);
    let half = node.admitted("half", 32);
    assert_eq!(half.len(), 32);
    let rest = node.admitted("rest", 32);
    assert!(half.iter().all(|id| !rest.contains(id)));
}

#[test]
fn c32_a_node_without_chips_registers_nothing_until_some_come() {
    let mut node = Node::of("910b3-8x1").flag("device-wait-seconds", "0");
    node.sim(&["hide-cards", "8"]);
    node.start_kubelet(&json!({}));
    node.start_agent();
    let status = eventually("the driver is waited for", PATIENCE, || {
        node.status_now().filter(|status| {
            status["driver"]["state"] == "waiting" && status["driver"]["trouble"] != ""
        })
    });
    assert_eq!(status["ready"], false);
    node.too_early(1);
    assert_eq!(node.lists()["registrations"], 0);
    node.sim(&["hide-cards", "0"]);
    node.allocatable(8);
    assert_eq!(strings(&json!(node.allocatable_ids())).len(), 8);
    assert_eq!(node.lists()["registrations"], 1);
}

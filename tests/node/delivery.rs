//! What a container is made with, per family and runtime.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use super::plugin::{Answer, allocate};
use super::pod::pod;
use super::products::programs_with;
use super::testbed::Node;

/// Nodes as kubelet hands them to the runtime.
pub(crate) fn nodes(node: &Node, names: &[&str]) -> Value {
    let nodes: Vec<Value> = names
        .iter()
        .map(|name| {
            json!({
                "host": node.stage.path("dev").join(name),
                "container": format!("/dev/{name}"),
                "permissions": "rw",
            })
        })
        .collect();
    Value::Array(nodes)
}

pub(crate) fn answer_of(node: &Node, chips: u32) -> Value {
    let verdict = node.admit(&pod("pod", chips));
    assert!(verdict.is_admitted(), "{verdict:?}");
    verdict.container("main").json().clone()
}

#[test]
fn a_910b_container_gets_its_device_nodes_and_nothing_else() {
    let node = Node::up();
    let answer = answer_of(&node, 2);
    let expected = nodes(
        &node,
        &[
            "davinci_manager",
            "devmm_svm",
            "hisi_hdc",
            "dvpp_cmdlist",
            "davinci0",
            "davinci1",
        ],
    );
    assert_eq!(answer["devices"], expected);
    assert_eq!(answer["envs"], json!({}));
    assert_eq!(answer["mounts"], json!([]));
    assert_eq!(answer["annotations"], json!({}));
    assert_eq!(answer["cdi"], json!([]));
}

#[test]
fn a_310p_container_gets_its_device_nodes_under_its_own_resource() {
    let node = Node::of("310p3-4x1")
        .resource("huawei.com/Ascend310P")
        .ready(4);
    assert_eq!(
        node.allocatable_ids(),
        [
            "Ascend310P-0",
            "Ascend310P-1",
            "Ascend310P-2",
            "Ascend310P-3"
        ]
    );
    let answer = answer_of(&node, 1);
    assert_eq!(
        answer["device_ids"],
        json!({ "huawei.com/Ascend310P": ["Ascend310P-0"] })
    );
    let expected = nodes(
        &node,
        &[
            "davinci_manager",
            "devmm_svm",
            "hisi_hdc",
            "dvpp_cmdlist",
            "davinci0",
        ],
    );
    assert_eq!(answer["devices"], expected);
    assert_eq!(answer["envs"], json!({}));
}

#[test]
fn an_a5_container_gets_bus_nodes_and_the_topology_file() {
    let node = Node::of("a5-8x1").resource("huawei.com/npu").ready(8);
    assert_eq!(node.status()["driver"]["api"], "v2");
    let answer = answer_of(&node, 2);
    assert_eq!(
        answer["device_ids"],
        json!({ "huawei.com/npu": ["npu-0", "npu-1"] })
    );
    let expected = nodes(
        &node,
        &[
            "davinci_manager",
            "hisi_hdc",
            "dvpp_cmdlist",
            "davinci0",
            "davinci1",
            "uburma/uburma0",
            "ummu/ummu0",
        ],
    );
    assert_eq!(answer["devices"], expected);
    let topology = "/usr/local/Ascend/driver/topo/950/atlas_850_1.json";
    assert_eq!(answer["envs"], json!({ "HCCL_TOPO_FILE_PATH": topology }));
}

#[test]
fn with_docker_runtime_a_container_gets_variables_only() {
    for (profile, resource, chips) in [
        ("910b3-8x1", "huawei.com/Ascend910", 8),
        ("310p3-4x1", "huawei.com/Ascend310P", 4),
    ] {
        let node = Node::of(profile)
            .resource(resource)
            .flag("delivery", "docker-runtime")
            .ready(chips);
        let answer = answer_of(&node, 3);
        let variables = json!({ "ASCEND_VISIBLE_DEVICES": "0,1,2", "ASCEND_RUNTIME_OPTIONS": "" });
        assert_eq!(answer["envs"], variables, "{profile}");
        assert_eq!(
            (&answer["devices"], &answer["mounts"]),
            (&json!([]), &json!([]))
        );
    }
}

#[test]
fn with_docker_runtime_an_a5_container_gets_logic_ids() {
    let built_in =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("sim/profiles/a5-8x1.toml");
    let profile = tempfile::Builder::new()
        .suffix(".toml")
        .tempfile()
        .expect("a file");
    let text = fs::read_to_string(built_in).expect("a profile");
    let reversed = "numa_cpus = [\"0-47\", \"48-95\"]\nlogic = [7, 6, 5, 4, 3, 2, 1, 0]";
    let text = text.replace("numa_cpus = [\"0-47\", \"48-95\"]", reversed);
    assert!(text.contains("logic = "));
    fs::write(profile.path(), text).expect("a profile");
    let node = Node::of(profile.path().to_str().expect("plain text"))
        .resource("huawei.com/npu")
        .flag("delivery", "docker-runtime")
        .flag("hccl-topo-file", "/opt/topology.json")
        .ready(8);
    let answer = answer_of(&node, 2);
    assert_eq!(
        answer["device_ids"]["huawei.com/npu"],
        json!(["npu-0", "npu-1"])
    );
    let variables = json!({
        "ASCEND_VISIBLE_DEVICES": "6,7", "ASCEND_RUNTIME_OPTIONS": "",
        "HCCL_TOPO_FILE_PATH": "/opt/topology.json",
    });
    assert_eq!(answer["envs"], variables);
    assert_eq!(answer["devices"], json!([]));
}

#[test]
fn docker_runtime_is_found_by_the_mark_in_our_own_environment() {
    let folder = tempfile::tempdir().expect("a folder");
    let programs = programs_with(folder.path(), "ASCEND_DOCKER_RUNTIME=True");
    let mut node = Node::with(programs, "910b3-8x1").ready(8);
    let found = allocate(&node, &["Ascend910-7", "Ascend910-4"]).expect("granted");
    let variables = |list: &str| {
        BTreeMap::from([
            ("ASCEND_VISIBLE_DEVICES".to_owned(), list.to_owned()),
            ("ASCEND_RUNTIME_OPTIONS".to_owned(), String::new()),
        ])
    };
    let expected = Answer {
        envs: variables("4,7"),
        ..Answer::default()
    };
    assert_eq!(found, expected);

    node.stage.kill_agent();
    let mut node = node.flag("delivery", "devicespec");
    node.start_agent();
    node.allocatable(6);
    let verdict = node.admit(&pod("explicit", 1));
    assert!(
        verdict.container("main").envs().is_empty(),
        "the configuration's word is stronger"
    );
}

//! What sets the containers of one product apart, and what the agent says about its own environment.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;

use super::delivery::{answer_of, nodes};
use super::driver::enumerated_again;
use super::pod::pod;
use super::stage::Programs;
use super::testbed::{Node, PATIENCE, eventually, programs};

const SOC_A1_NODES: [&str; 13] = [
    "davinci_manager",
    "vpc",
    "vdec",
    "sys",
    "spi_smbus",
    "user_config",
    "ts_aisle",
    "svm0",
    "log_drv",
    "memory_bandwidth",
    "upgrade",
    "event_sched",
    "xsmem_dev",
];

/// The programs, the agent with a variable of its own, written like `NAME=value`.
pub(crate) fn programs_with(folder: &Path, variable: &str) -> Programs {
    let marked = folder.join("ascend-agent");
    let mut programs = programs();
    let script = format!(
        "#!/bin/sh\nexport {variable}\nexec '{}' \"$@\"\n",
        programs.agent.display()
    );
    fs::write(&marked, script).expect("a script");
    fs::set_permissions(&marked, fs::Permissions::from_mode(0o755)).expect("a program");
    programs.agent = marked;
    programs
}

/// Kubelet knows the resource and grants nothing of it.
pub(crate) fn nothing_is_granted(node: &Node) {
    eventually("the resource is registered", PATIENCE, || {
        (node.lists()["registrations"] == 1).then_some(())
    });
    let verdict = node.admit(&pod("early", 1));
    assert!(!verdict.is_admitted(), "{verdict:?}");
    assert!(node.held().is_empty());
}

#[test]
fn a_310b_container_gets_the_manager_node_for_containers_and_the_media_nodes_in_order() {
    let node = Node::of("310b-1x1");
    for absent in ["venc", "ai", "ao", "vo"] {
        fs::remove_file(node.stage.path("dev").join(absent)).expect("a node of the profile");
    }
    let node = node.resource("huawei.com/Ascend310").ready(1);
    let answer = answer_of(&node, 1);
    let names = [
        "davinci_manager_docker",
        "dvpp_cmdlist",
        "pngd",
        "upgrade",
        "sys",
        "svm0",
        "vdec",
        "vpc",
        "ts_aisle",
        "log_drv",
        "acodec",
        "hdmi",
        "davinci0",
    ];
    let mut expected = nodes(&node, &names);
    expected[0]["container"] = json!("/dev/davinci_manager");
    assert_eq!(answer["devices"], expected);
    assert_eq!(answer["envs"], json!({}));
}

#[test]
fn a_310b_container_under_docker_runtime_may_follow_links_to_driver_files() {
    let node = Node::of("310b-1x1")
        .resource("huawei.com/Ascend310")
        .flag("delivery", "docker-runtime")
        .ready(1);
    let variables = json!({
        "ASCEND_VISIBLE_DEVICES": "0",
        "ASCEND_RUNTIME_OPTIONS": "",
        "ASCEND_ALLOW_LINK": "True",
    });
    let answer = answer_of(&node, 1);
    assert_eq!(answer["envs"], variables);
    assert_eq!(answer["devices"], json!([]));
}

#[test]
fn an_atlas_200i_soc_a1_container_gets_nodes_even_where_docker_runtime_was_detected() {
    let folder = tempfile::tempdir().expect("a folder");
    let programs = programs_with(folder.path(), "ASCEND_DOCKER_RUNTIME=True");
    let node = Node::with(programs, "310p-soc-1x1")
        .resource("huawei.com/Ascend310P")
        .ready(1);
    let answer = answer_of(&node, 1);
    let names = [&SOC_A1_NODES[..], &["davinci0"]].concat();
    assert_eq!(answer["devices"], nodes(&node, &names));
    assert_eq!(answer["envs"], json!({}));
}

#[test]
fn a_chip_whose_product_cannot_be_read_again_stays_the_product_it_is() {
    let node = Node::of("310p-soc-1x1")
        .resource("huawei.com/Ascend310P")
        .ready(1);
    for symbol in ["dcmi_get_product_type", "dcmi_get_device_board_info"] {
        node.sim(&["return-code", symbol, "-8005"]);
    }
    enumerated_again(&node);
    let answer = answer_of(&node, 1);
    let names = [&SOC_A1_NODES[..], &["davinci0"]].concat();
    assert_eq!(answer["devices"], nodes(&node, &names));
}

#[test]
fn an_atlas_200i_soc_a1_that_lacks_required_nodes_is_offered_once_they_are_there() {
    let mut node = Node::of("310p-soc-1x1").resource("huawei.com/Ascend310P");
    for name in ["user_config", "upgrade"] {
        fs::remove_file(node.stage.path("dev").join(name)).expect("a node of the profile");
    }
    node.start_kubelet(&json!({}));
    node.start_agent();
    let reason = eventually("the reason is told", PATIENCE, || {
        let status = node.status_now()?;
        let reason = status["chips"][0]["reason"].as_str()?.to_owned();
        reason.contains("required_device_missing").then_some(reason)
    });
    let dev = node.stage.path("dev").display().to_string();
    let both = format!("{dev}/user_config, {dev}/upgrade do not exist");
    assert!(reason.contains(&both), "{reason}");
    nothing_is_granted(&node);
    for name in ["user_config", "upgrade"] {
        fs::write(node.stage.path("dev").join(name), "").expect("the node appears");
    }
    node.allocatable(1);
}

#[test]
fn a_310_under_fusion_director_gets_the_nodes_of_its_board() {
    let node = Node::of("310-1x4");
    for name in ["upgrade", "hi_dvpp", "event_sched"] {
        fs::write(node.stage.path("dev").join(name), "").expect("a node");
    }
    let node = node
        .resource("huawei.com/davinci-mini")
        .flag("fusion-director", "true")
        .ready(4);
    let answer = answer_of(&node, 1);
    let expected = nodes(
        &node,
        &[
            "davinci_manager",
            "devmm_svm",
            "hisi_hdc",
            "dvpp_cmdlist",
            "event_sched",
            "hi_dvpp",
            "upgrade",
            "davinci0",
        ],
    );
    assert_eq!(answer["devices"], expected);
}

#[test]
fn mixed_cards_get_nodes_even_where_docker_runtime_was_detected() {
    let folder = tempfile::tempdir().expect("a folder");
    let programs = programs_with(folder.path(), "ASCEND_DOCKER_RUNTIME=True");
    let mut node = Node::with(programs, "mixed-310p-4x1")
        .resource("huawei.com/Ascend310P-V")
        .flag("mixed-insert", "true");
    node.start_kubelet(&json!({}));
    node.start_agent();
    eventually("a card is offered", PATIENCE, || {
        (!node.allocatable_ids().is_empty()).then_some(())
    });
    let answer = answer_of(&node, 1);
    assert_eq!(answer["envs"], json!({}));
    assert_eq!(
        answer["devices"][0],
        nodes(&node, &["davinci_manager"])[0],
        "{answer}"
    );
}

#[test]
fn other_plugins_variable_comes_in_every_delivery_only_when_asked_for() {
    for delivery in ["devicespec", "docker-runtime", "cdi"] {
        let mut node = Node::of("910b3-8x1").flag("delivery", delivery);
        let cdi = node.stage.path("cdi").display().to_string();
        node = node
            .flag("cdi-dir", &cdi)
            .flag("compat-env", "true")
            .ready(8);
        let answer = answer_of(&node, 2);
        assert_eq!(answer["envs"]["NPU_DEVICE_ID"], "0,1", "{delivery}");
        assert!(answer["envs"].get("RANK_TABLE_FILE").is_none());
        assert_eq!(answer["mounts"], json!([]), "{delivery}");
    }
}

#[test]
fn a_list_of_chips_in_the_agents_own_environment_is_told_at_the_start() {
    for (variable, told) in [
        ("ASCEND_VISIBLE_DEVICES=0-1", Some("{0, 1}")),
        ("ASCEND_VISIBLE_DEVICES=0,Ascend910-1", Some("mixes")),
        ("ASCEND_VISIBLE_DEVICES=void", None),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let programs = programs_with(folder.path(), variable);
        let node = Node::with(programs, "910b3-8x1").ready(8);
        let log = node.stage.log_text("agent.log");
        assert_eq!(
            log.contains("set for the agent itself"),
            told.is_some(),
            "{variable}"
        );
        if let Some(told) = told {
            assert!(log.contains(told), "{variable}: {log}");
        }
        let verdict = node.admit(&pod("pod", 1));
        assert!(verdict.container("main").envs().is_empty(), "{variable}");
    }
}

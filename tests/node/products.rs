//! What sets the containers of one product apart, and what the agent says about its own environment.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;

use super::delivery::{answer_of, nodes};
use super::pod::pod;
use super::stage::Programs;
use super::testbed::{Node, PATIENCE, eventually, programs};

const ASCEND310P: &str = "huawei.com/Ascend310P";

/// The shared nodes of the built-in 310P profile.
const SHARED: &str = r#"["davinci_manager", "hisi_hdc", "devmm_svm", "dvpp_cmdlist"]"#;

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

/// A built-in profile with some text replaced.
pub(crate) fn changed_profile(name: &str, changes: &[(&str, &str)]) -> tempfile::NamedTempFile {
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("sim/profiles/{name}.toml"));
    let mut text = fs::read_to_string(built_in).expect("a profile");
    for (from, to) in changes {
        assert!(text.contains(from), "{from:?} is not in profile {name}");
        text = text.replacen(from, to, 1);
    }
    let file = tempfile::Builder::new()
        .suffix(".toml")
        .tempfile()
        .expect("a file");
    fs::write(file.path(), text).expect("a profile");
    file
}

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

fn ascend310b() -> tempfile::NamedTempFile {
    let names = r#"["davinci_manager", "davinci_manager_docker", "vdec", "pngd", "sys", "hdmi"]"#;
    changed_profile(
        "310p3-4x1",
        &[
            (SHARED, names),
            ("chip_name = \"310P3\"", "chip_name = \"310B4\""),
        ],
    )
}

fn soc_a1(names: &[&str]) -> tempfile::NamedTempFile {
    changed_profile(
        "310p3-4x1",
        &[
            (SHARED, &json!(names).to_string()),
            (
                "product_type = \"Atlas 300I Pro\"",
                "product_type = \"Atlas 200I SoC A1\"",
            ),
        ],
    )
}

fn path_of(profile: &tempfile::NamedTempFile) -> &str {
    profile.path().to_str().expect("plain text")
}

#[test]
fn a_310b_container_gets_the_manager_node_for_containers_and_the_media_nodes_in_order() {
    let profile = ascend310b();
    let node = Node::of(path_of(&profile))
        .resource("huawei.com/Ascend310")
        .ready(4);
    let answer = answer_of(&node, 1);
    let mut expected = nodes(
        &node,
        &[
            "davinci_manager_docker",
            "pngd",
            "sys",
            "vdec",
            "hdmi",
            "davinci0",
        ],
    );
    expected[0]["container"] = json!("/dev/davinci_manager");
    assert_eq!(answer["devices"], expected);
    assert_eq!(answer["envs"], json!({}));
}

#[test]
fn a_310b_container_under_docker_runtime_may_follow_links_to_driver_files() {
    let profile = ascend310b();
    let node = Node::of(path_of(&profile))
        .resource("huawei.com/Ascend310")
        .flag("delivery", "docker-runtime")
        .ready(4);
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
    let profile = soc_a1(&SOC_A1_NODES);
    let folder = tempfile::tempdir().expect("a folder");
    let programs = programs_with(folder.path(), "ASCEND_DOCKER_RUNTIME=True");
    let node = Node::with(programs, path_of(&profile))
        .resource(ASCEND310P)
        .ready(4);
    let answer = answer_of(&node, 1);
    let names = [&SOC_A1_NODES[..], &["davinci0"]].concat();
    assert_eq!(answer["devices"], nodes(&node, &names));
    assert_eq!(answer["envs"], json!({}));
}

#[test]
fn an_atlas_200i_soc_a1_that_lacks_required_nodes_is_offered_once_they_are_there() {
    let few: Vec<&str> = SOC_A1_NODES
        .into_iter()
        .filter(|name| !["user_config", "upgrade"].contains(name))
        .collect();
    let profile = soc_a1(&few);
    let mut node = Node::of(path_of(&profile)).resource(ASCEND310P);
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
    node.allocatable(4);
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

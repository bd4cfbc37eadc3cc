//! Manifests that were written for the vendor's device plugin start the agent unchanged.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

use super::testbed::{Node, PATIENCE, eventually, programs, text};

const PLAIN: &str = include_str!("../articles/plain.yaml");
const BY_FAMILY: &str = include_str!("../articles/by-family.yaml");

/// What the files hold: one key a line, lists in the form that YAML shares with JSON.
struct Manifest(&'static str);

impl Manifest {
    fn list(&self, key: &str) -> Vec<String> {
        let line = self.0.lines().find_map(|line| line.strip_prefix(key));
        serde_json::from_str(line.expect("the key")).expect("a list")
    }

    fn mounts(&self, path: &str) -> bool {
        self.0.contains(&format!("mountPath: {path}\n"))
    }

    fn command(&self) -> Command {
        let words = [self.list("command:"), self.list("args:")].concat();
        let (program, args) = words.split_first().expect("a program");
        let mut command = Command::new(programs().agent);
        command.arg0(program).args(args);
        command
    }
}

/// The agent in such a container: nothing but paths is different from the manifest.
struct Agent(Child);

impl Agent {
    fn start(node: &Node, manifest: &Manifest) -> Self {
        Self::start_with(node, manifest, &[])
    }

    fn start_with(node: &Node, manifest: &Manifest, words: &[String]) -> Self {
        let log = File::options()
            .create(true)
            .append(true)
            .open(node.stage.path("agent.log"))
            .expect("a log");
        let pod_resources = if manifest.mounts("/var/lib/kubelet/pod-resources") {
            node.stage.path("pr.sock")
        } else {
            node.stage.path("not-mounted/kubelet.sock")
        };
        let store = Path::new("/var/lib/ascend/state.redb");
        assert!(
            !store.exists(),
            "an agent of this machine keeps its store at {}: it must not be used for a test",
            store.display()
        );
        let child = manifest
            .command()
            .args(words)
            .env("KUBERNETES_SERVICE_HOST", "10.0.0.1")
            .env("ASCEND_AGENT_DEVICE_PLUGIN_DIR", node.stage.path("dp"))
            .env("ASCEND_AGENT_POD_RESOURCES_SOCKET", pod_resources)
            .env("ASCEND_AGENT_ADMIN_SOCKET", node.stage.path("admin.sock"))
            .env("ASCEND_AGENT_DEV_DIR", node.stage.path("dev"))
            .env("ASCEND_AGENT_HOST_DEV_DIR", node.stage.path("dev"))
            .env("ASCEND_AGENT_TRUSTED_LIBRARY", programs().library)
            .env("ASCEND_SIM_SOCKET", node.stage.path("sim.sock"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the agent");
        Self(child)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn logged(node: &Node, part: &str) {
    eventually(part, PATIENCE, || {
        node.stage
            .log_text("agent.log")
            .contains(part)
            .then_some(())
    });
}

fn starts_unchanged(manifest: &Manifest) -> Node {
    let mut node = Node::of("910b3-8x1");
    node.start_kubelet(&json!({}));
    let agent = Agent::start(&node, manifest);
    node.allocatable(8);
    let store = node.status()["store"].clone();
    let beside = node.stage.path("dp/ascend-agent");
    assert_eq!(store["state"], "durable", "{store}");
    assert_eq!(
        store["path"],
        beside.to_str().expect("plain text"),
        "unless this machine has a volume at /var or /var/lib"
    );
    let held = node.admitted("training", 2);

    // Kubelet empties its folder at its start; what is in a folder below stays.
    node.stage.kill_kubelet();
    drop(agent);
    node.start_kubelet(&json!({}));
    let _agent = Agent::start(&node, manifest);
    node.allocatable(8);
    let known: Vec<Value> = node.held();
    assert_eq!(known.len(), 2, "{known:?}");
    for id in held {
        assert!(
            known.iter().any(|held| held["plugin_device_id"] == *id),
            "{id}"
        );
    }
    for lack in [
        "a volume for the state",
        "pod-resources socket",
        "the host's /dev",
    ] {
        logged(&node, lack);
    }
    logged(&node, "NODE_NAME is not set");
    node
}

#[test]
fn a_manifest_with_nothing_but_kubelets_folder_starts_unchanged() {
    starts_unchanged(&Manifest(PLAIN));
}

#[test]
fn a_manifest_with_flags_of_an_early_release_starts_unchanged() {
    let node = starts_unchanged(&Manifest(BY_FAMILY));
    logged(
        &node,
        "-mode has no effect any more: the family of each chip is detected",
    );
}

/// Runs the program under the vendor's name.
fn vendor(words: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(programs().agent)
        .arg0("/usr/local/bin/device-plugin")
        .args(words)
        .envs(variables.iter().copied())
        .output()
        .expect("the program")
}

#[test]
fn w19_nothing_that_keeps_the_plugin_from_starting_is_exit_code_zero() {
    for (words, variables, told) in [
        (&["-volcano"][..], &[][..], "did you mean -volcanoType?"),
        (&["-hotReset=7"], &[], "-hotReset=7"),
        (&["-presetVirtualDevice=false"], &[], "-volcanoType=true"),
        (&["-deviceResetTimeout"], &[], "needs a value"),
        (&[], &[("NODE_NAME", "No Name")], "NODE_NAME"),
        (&[], &[("KUBELET_PORT", "x")], "KUBELET_PORT"),
        (&[], &[("ASCEND_AGENT_DELIVERY", "none")], "devicespec"),
    ] {
        let output = vendor(words, variables);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        let said = text(&output.stderr);
        assert!(said.contains(told), "{words:?}: {said}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("a file");
    let below_a_file = file.join("agent.sock");
    let failed = vendor(
        &[],
        &[
            ("ASCEND_AGENT_STATE_DIR", "none"),
            ("ASCEND_AGENT_ADMIN_SOCKET", path_text(&below_a_file)),
        ],
    );
    assert_eq!(failed.status.code(), Some(1), "{}", text(&failed.stderr));
}

fn path_text(path: &Path) -> &str {
    path.to_str().expect("plain text")
}

#[test]
fn a_stray_word_after_our_own_command_starts_nothing() {
    let output = Command::new(programs().agent)
        .args(["device-plugin", "-volcanoType", "status"])
        .output()
        .expect("the program");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("\"status\""), "{output:?}");
}

#[test]
fn a_mistyped_command_under_the_plugins_name_starts_nothing() {
    let output = vendor(&["statsu"], &[]);
    assert_eq!(output.status.code(), Some(2));
    let told = text(&output.stderr);
    assert!(told.contains("did you mean status?"), "{told}");
}

#[test]
fn version_and_help_print_and_end_well() {
    let version = vendor(&["-version"], &[]);
    assert_eq!(version.status.code(), Some(0));
    assert!(text(&version.stdout).starts_with("ascend-agent version: "));
    for word in ["-h", "--help"] {
        let help = vendor(&[word], &[]);
        assert_eq!(help.status.code(), Some(0));
        assert!(text(&help.stdout).contains("-shareDevCount=VALUE"));
    }
    let command = Command::new(programs().agent)
        .args(["device-plugin", "-version"])
        .output()
        .expect("the program");
    assert_eq!(command.stdout, version.stdout);
}

#[test]
fn config_show_and_check_know_the_flags_of_the_plugin() {
    let show = |words: &[&str]| {
        let line = [&["config", "show", "-o", "json", "--"], words].concat();
        let output = vendor(&line, &[("ASCEND_AGENT_DEVICE_WAIT_SECONDS", "7")]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    let shown = show(&["-deviceResetTimeout=90"]);
    assert_eq!(shown["device_wait_seconds"]["value"], "90");
    assert_eq!(
        shown["device_wait_seconds"]["source"],
        "flag -deviceResetTimeout"
    );
    let shown = show(&["-volcanoType"]);
    assert_eq!(
        shown["device_wait_seconds"]["value"], "7",
        "variables apply below the flags"
    );
    let bad = vendor(&["config", "check", "--", "-hotReset=7"], &[]);
    assert_eq!(bad.status.code(), Some(2));
}

#[test]
fn l5_l6_under_the_vendors_flags_health_is_served_and_the_log_file_written() {
    let mut node = Node::of("910b3-8x1");
    node.start_kubelet(&json!({}));
    let port = free_port();
    let log = node.stage.path("log/devicePlugin.log");
    let words = [
        "-enable-healthz=true".to_owned(),
        format!("-healthz-address={port}"),
        format!("-logFile={}", path_text(&log)),
        "-logLevel=-1".to_owned(),
    ];
    let agent = Agent::start_with(&node, &Manifest(PLAIN), &words);
    // It answers before it is ready, and it is not ready before kubelet reads its lists.
    eventually("it lives", PATIENCE, || {
        (probe(port, "/")?.0 == 200).then_some(())
    });
    node.allocatable(8);
    assert_eq!(probe(port, "/healthz"), Some((200, "ok".to_owned())));
    // Without pod-resources it promises less than all.
    eventually("what is missing is named", PATIENCE, || {
        let (status, said) = probe(port, "/readyz")?;
        (status == 503 && said.contains("pod-resources") && said.lines().count() == 1).then_some(())
    });
    let mode = fs::metadata(&log)
        .expect("the log file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o640);
    let written = fs::read_to_string(&log).expect("the log file");
    assert!(written.contains("ascend-agent starts"), "{written}");

    // One port is one agent's.
    let second = Manifest(PLAIN)
        .command()
        .args(&words[..2])
        .env("ASCEND_AGENT_STATE_DIR", "none")
        .output()
        .expect("the program");
    assert_eq!(second.status.code(), Some(1));
    assert!(text(&second.stderr).contains("free the port"), "{second:?}");
    drop(agent);
    assert_eq!(probe(port, "/"), None);
}

#[test]
fn a_certificate_that_cannot_be_used_is_bad_usage() {
    let output = vendor(
        &[
            "-enable-healthz",
            "-tls-cert-file=/nonexistent/c",
            "-tls-private-key-file=/nonexistent/k",
        ],
        &[],
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("/nonexistent/c"),
        "{output:?}"
    );
}

/// A port that was free a moment ago, of those the flag takes.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its address").port()
}

/// Status and body; `None` when nobody answers.
fn probe(port: u16, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

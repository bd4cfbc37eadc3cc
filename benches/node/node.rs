//! The measured node: 16 chips, the agent, kubelet, and what is asked of them again and again.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::runtime::Runtime;
use tonic::transport::{Channel, Endpoint};

use super::api::deviceplugin::device_plugin_client::DevicePluginClient;
use super::now;
use super::stage::{Programs, Stage};

pub(crate) const RESOURCE: &str = "huawei.com/Ascend910";
pub(crate) const CHIPS: u32 = 16;

/// Pause between two looks at something that has no event of its own.
const LOOK: Duration = Duration::from_millis(1);

/// Longest wait for anything; beyond it the benchmark fails.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Node {
    pub(crate) stage: Stage,
    /// The simulator reads it at its start; deleted with the node.
    _profile: NamedTempFile,
}

impl Node {
    /// Sixteen chips, no kubelet and no agent yet.
    pub(crate) fn set(programs: &Programs) -> Self {
        let eight = include_str!("../../sim/profiles/910b3-8x1.toml");
        Self::like(programs, eight, CHIPS)
    }

    /// A built-in machine with another number of cards, one chip each; no kubelet and no agent yet.
    pub(crate) fn like(programs: &Programs, machine: &str, cards: u32) -> Self {
        let mut profile = NamedTempFile::new().expect("a temporary file");
        let numbers: Vec<u32> = (1..=cards).collect();
        for line in machine.lines() {
            let written = match line.split(" =").next() {
                Some("count") => writeln!(profile, "count = {cards}"),
                Some(list @ ("cards" | "buses")) => writeln!(profile, "{list} = {numbers:?}"),
                _ => writeln!(profile, "{line}"),
            };
            written.expect("a profile");
        }
        let path = profile.path().to_str().expect("a path in plain characters");
        let stage = Stage::set(programs.clone(), path).expect("simulated hardware");
        Self {
            stage,
            _profile: profile,
        }
    }

    /// The same with kubelet and the agent running and registered.
    pub(crate) fn registered(programs: &Programs, flags: &[&str]) -> Self {
        let mut node = Self::set(programs);
        node.start_kubelet(&[]);
        node.stage.start_agent(flags).expect("the agent");
        node.allocatable(CHIPS);
        node
    }

    pub(crate) fn start_kubelet(&mut self, pods: &[Value]) {
        let request = self.kubelet_start(pods);
        let kubelet = self.stage.start_kubelet().expect("kubelet");
        kubelet.call("start", request).expect("kubelet's start");
    }

    pub(crate) fn kubelet_start(&self, pods: &[Value]) -> Value {
        json!({
            "dir": self.stage.path("dp"),
            "pod_resources_socket": self.stage.path("pr.sock"),
            "pods": pods,
        })
    }

    pub(crate) fn call(&self, op: &str, request: Value) -> Value {
        let kubelet = self.stage.kubelet().expect("kubelet runs");
        kubelet.call(op, request).expect("kubelet's answer")
    }

    /// Waits until kubelet may give out so many chips.
    pub(crate) fn allocatable(&self, count: u32) {
        self.allocatable_of(RESOURCE, count);
    }

    pub(crate) fn allocatable_of(&self, resource: &str, count: u32) {
        let request = json!({ "resource": resource, "count": count, "timeout_ms": 30_000 });
        self.call("wait_allocatable", request);
    }

    /// Admits a pod; with no chips it is a pod like any other, which keeps kubelet's list non-empty.
    pub(crate) fn admit(&self, name: &str, chips: u32) -> Value {
        let verdict = self.call("admit", json!({ "pod": pod(name, chips) }));
        let admitted = verdict.get("admitted").and_then(Value::as_bool);
        assert_eq!(admitted, Some(true), "{verdict}");
        verdict
    }

    pub(crate) fn remove(&self, name: &str) {
        self.call("remove", json!({ "uid": uid(name) }));
    }

    pub(crate) fn status(&self) -> Value {
        let output = self.stage.command(&["status", "-o", "json"]);
        let output = output.expect("the agent's program");
        serde_json::from_slice(&output.stdout).expect("a status in JSON")
    }

    /// A client of the plugin's socket, connected.
    pub(crate) fn plugin(&self, runtime: &Runtime) -> DevicePluginClient<Channel> {
        let status = self.status();
        let socket = status
            .pointer("/kubelet/huawei.com~1Ascend910/socket")
            .and_then(Value::as_str)
            .expect("a registered socket");
        DevicePluginClient::new(connect(Path::new(socket), runtime))
    }

    /// One command to the simulated hardware, without a process of its own.
    pub(crate) fn hardware(&self, command: &Value) -> Value {
        let mut stream = UnixStream::connect(self.stage.path("sim.sock")).expect("the simulator");
        writeln!(stream, "{command}").expect("a command");
        let mut line = String::new();
        BufReader::new(stream)
            .read_line(&mut line)
            .expect("an answer");
        let answer: Value = serde_json::from_str(&line).expect("an answer in JSON");
        let done = answer.get("ok").and_then(Value::as_bool);
        assert_eq!(done, Some(true), "{answer}");
        answer.get("data").cloned().unwrap_or_default()
    }

    /// How much of the agent's log there is.
    pub(crate) fn log_length(&self) -> usize {
        self.stage.log_text("agent.log").len()
    }
}

pub(crate) fn connect(socket: &Path, runtime: &Runtime) -> Channel {
    let endpoint = Endpoint::try_from(format!("unix:{}", socket.display())).expect("an address");
    runtime.block_on(endpoint.connect()).expect("a connection")
}

/// Looks until `found` has something, and gives it.
pub(crate) fn eventually<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let began: Instant = now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(
            began.elapsed() < PATIENCE,
            "not reached within {PATIENCE:?}: {what}"
        );
        sleep(LOOK);
    }
}

pub(crate) fn pod(name: &str, chips: u32) -> Value {
    let limits = if chips == 0 {
        json!({})
    } else {
        json!({ RESOURCE: chips.to_string() })
    };
    json!({
        "name": name, "namespace": "bench", "uid": uid(name),
        "containers": [{ "name": "main", "limits": limits }],
    })
}

/// As [`pod`], of a pod that ran before kubelet was killed.
pub(crate) fn running_pod(name: &str, chips: u32) -> Value {
    let mut pod = pod(name, chips);
    if let Some(fields) = pod.as_object_mut() {
        fields.insert("running".to_owned(), json!(true));
    }
    pod
}

fn uid(name: &str) -> String {
    format!("uid-of-{name}")
}

pub(crate) fn chip_ids() -> Vec<String> {
    (0..CHIPS).map(|chip| format!("Ascend910-{chip}")).collect()
}

/// Removes a folder that may not be there.
pub(crate) fn clear(folder: PathBuf) {
    if folder.exists() {
        fs::remove_dir_all(folder).expect("an empty place");
    }
}

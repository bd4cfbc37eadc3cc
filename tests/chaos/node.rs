//! The node under test: the demo's stage, plus what every attack needs to know about it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use ascend_agent::domain::status::StatusDocument;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::stage::{Programs, Stage, StageError};

pub(crate) const RESOURCE: &str = "huawei.com/Ascend910";

/// Far more than any healthy step takes, so that a slow machine fails no test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// A node; its folder stays behind when a test fails.
pub(crate) struct Node {
    pub(crate) stage: Stage,
    /// What lies here decides how the agent runs, see `agent.sh`.
    link: tempfile::TempDir,
    flags: Vec<&'static str>,
}

/// What one container got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) ids: BTreeSet<String>,
    pub(crate) device_nodes: BTreeSet<String>,
}

/// Kubelet's word on a pod.
#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    Admitted(Granted, Duration),
    Refused(String),
}

impl Node {
    /// A node with the simulated hardware of a built-in profile or of a file; nothing else runs yet.
    pub(crate) fn set(profile: &str) -> Self {
        let link = tempfile::tempdir().unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chaos/agent.sh");
        let agent = PathBuf::from(env!("CARGO_BIN_EXE_ascend-agent"));
        symlink(script, link.path().join("run-agent")).unwrap();
        symlink(&agent, link.path().join("agent")).unwrap();
        let mut programs = Programs::beside(&agent, harness()).unwrap();
        programs.agent = link.path().join("run-agent");
        let mut stage = Stage::set(programs, profile).unwrap();
        stage.keep();
        Self {
            stage,
            link,
            flags: vec!["--hold-down-seconds", "0"],
        }
    }

    /// Eight 910B3 chips and kubelet.
    pub(crate) fn with_kubelet() -> Self {
        let mut node = Self::set("910b3-8x1");
        node.start_kubelet(&[]).unwrap();
        node
    }

    /// Eight 910B3 chips, kubelet and a registered agent.
    pub(crate) fn running() -> Self {
        let mut node = Self::with_kubelet();
        node.start_agent();
        node.allocatable(8);
        node
    }

    /// Runs the agent with these flags from now on.
    pub(crate) fn with_flags(mut self, flags: &[&'static str]) -> Self {
        self.flags.extend_from_slice(flags);
        self
    }

    /// Where `agent.sh` looks.
    pub(crate) fn beside_agent(&self, name: &str) -> PathBuf {
        self.link.path().join(name)
    }

    /// Starts the agent, killing the one before.
    pub(crate) fn start_agent(&mut self) -> u32 {
        self.stage.start_agent(&self.flags).unwrap()
    }

    /// Starts a kubelet that is handed these pods.
    pub(crate) fn start_kubelet(&mut self, pods: &[Value]) -> Result<Value, StageError> {
        let start = json!({
            "dir": self.stage.path("dp"),
            "pod_resources_socket": self.stage.path("pr.sock"),
            "pods": pods,
        });
        self.stage.start_kubelet()?.call("start", start)
    }

    pub(crate) fn call(&self, op: &str, request: Value) -> Value {
        self.stage.kubelet().unwrap().call(op, request).unwrap()
    }

    /// Waits until kubelet may grant so many chips.
    #[track_caller]
    pub(crate) fn allocatable(&self, count: u32) {
        let timeout_ms = u64::try_from(PATIENCE.as_millis()).unwrap();
        let request = json!({ "resource": RESOURCE, "count": count, "timeout_ms": timeout_ms });
        let waited = self
            .stage
            .kubelet()
            .unwrap()
            .call("wait_allocatable", request);
        if let Err(error) = waited {
            panic!("{error}\n{}", self.last_words());
        }
    }

    /// Waits until kubelet may grant so many chips or more.
    #[track_caller]
    pub(crate) fn allocatable_at_least(&self, count: usize) {
        self.eventually(&format!("{count} chips to be had"), PATIENCE, || {
            let ids = self.call("allocatable_ids", json!({}));
            ids["resources"][RESOURCE]
                .as_array()
                .is_some_and(|ids| ids.len() >= count)
        });
    }

    /// Asks kubelet for a pod of one container and waits for its word.
    pub(crate) fn admit(&self, name: &str, chips: u32) -> Verdict {
        verdict_of(&self.call("admit", json!({ "pod": pod(name, chips) })))
    }

    /// The same, and it must be granted.
    #[track_caller]
    pub(crate) fn grant(&self, name: &str, chips: u32) -> Granted {
        match self.admit(name, chips) {
            Verdict::Admitted(granted, _) => granted,
            Verdict::Refused(reason) => panic!("{name}: {reason}\n{}", self.last_words()),
        }
    }

    /// The same, and it must be refused; returns kubelet's text.
    #[track_caller]
    pub(crate) fn refusal(&self, name: &str, chips: u32) -> String {
        match self.admit(name, chips) {
            Verdict::Refused(reason) => reason,
            Verdict::Admitted(granted, _) => panic!("{name} was granted {granted:?}"),
        }
    }

    pub(crate) fn remove(&self, name: &str) {
        self.call("remove", json!({ "uid": uid(name) }));
    }

    /// What the agent says of itself; `None` while none answers.
    pub(crate) fn status(&self) -> Option<StatusDocument> {
        let output = self.stage.command(&["status", "-o", "json"]).unwrap();
        serde_json::from_slice(&output.stdout).ok()
    }

    /// Waits until the agent's status is as wished, and returns it.
    #[track_caller]
    pub(crate) fn status_when(
        &self,
        what: &str,
        within: Duration,
        wished: impl Fn(&StatusDocument) -> bool,
    ) -> StatusDocument {
        let began = Instant::now();
        let mut last = None;
        while began.elapsed() < within {
            match self.status() {
                Some(status) if wished(&status) => return status,
                other => last = other.or(last),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!(
            "not within {within:?}: {what}\nstatus {last:#?}\n{}",
            self.last_words()
        );
    }

    /// Waits for a condition.
    #[track_caller]
    pub(crate) fn eventually(&self, what: &str, within: Duration, mut holds: impl FnMut() -> bool) {
        let began = Instant::now();
        while !holds() {
            let late = began.elapsed() >= within;
            assert!(
                !late,
                "not within {within:?}: {what}\n{}",
                self.last_words()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until the agent's status is as wished (true) or the agent ended (false).
    #[track_caller]
    pub(crate) fn comes_before_end(&mut self, wished: impl Fn(&StatusDocument) -> bool) -> bool {
        let began = Instant::now();
        loop {
            if self.status().is_some_and(|status| wished(&status)) {
                return true;
            }
            if self.stage.agent_ended().is_some() {
                return false;
            }
            assert!(began.elapsed() < PATIENCE, "{}", self.last_words());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for words in the agent's log.
    #[track_caller]
    pub(crate) fn logged(&self, words: &str, within: Duration) {
        self.eventually(&format!("{words:?} in the log"), within, || {
            self.stage.log_text("agent.log").contains(words)
        });
    }

    /// The ends of both logs, for failures.
    pub(crate) fn last_words(&self) -> String {
        let mut text = format!("node in {}", self.stage.path("").display());
        for name in ["agent.log", "kubelet.log"] {
            let log = self.stage.log_text(name);
            let lines: Vec<&str> = log.lines().collect();
            let tail = &lines[lines.len().saturating_sub(40)..];
            write!(text, "\n--- {name}\n{}", tail.join("\n")).unwrap();
        }
        text
    }

    /// The test went well: nothing stays behind.
    pub(crate) fn done(self) {
        let folder = self.stage.path("");
        drop(self);
        fs::remove_dir_all(folder).unwrap();
    }
}

/// `true` when the status knows a holder for each id.
pub(crate) fn knows(status: &StatusDocument, ids: &BTreeSet<String>) -> bool {
    let held: BTreeSet<&str> = status
        .allocations
        .iter()
        .map(|held| held.plugin_device_id.as_str())
        .collect();
    ids.iter().all(|id| held.contains(id.as_str()))
}

/// `true` when kubelet reads the agent's list.
pub(crate) fn registered(status: &StatusDocument) -> bool {
    status
        .kubelet
        .get(RESOURCE)
        .is_some_and(|kubelet| kubelet.registered)
}

pub(crate) fn uid(name: &str) -> String {
    format!("uid-{name}")
}

/// A pod with one container.
pub(crate) fn pod(name: &str, chips: u32) -> Value {
    json!({
        "name": name,
        "uid": uid(name),
        "containers": [{ "name": "main", "limits": { RESOURCE: chips.to_string() } }],
    })
}

/// Reads kubelet's verdict on a pod with one container.
pub(crate) fn verdict_of(verdict: &Value) -> Verdict {
    if verdict["admitted"] != json!(true) {
        return Verdict::Refused(format!(
            "{}: {}",
            verdict["reason"].as_str().unwrap_or_default(),
            verdict["message"].as_str().unwrap_or_default()
        ));
    }
    let container = &verdict["containers"][0];
    let texts = |list: &Value| -> BTreeSet<String> {
        let texts = list.as_array().into_iter().flatten();
        texts
            .filter_map(|text| text.as_str().map(str::to_owned))
            .collect()
    };
    let nodes = container["devices"].as_array().into_iter().flatten();
    let granted = Granted {
        ids: texts(&container["device_ids"][RESOURCE]),
        device_nodes: nodes
            .filter_map(|node| node["container"].as_str())
            .filter(|path| is_chip(path))
            .map(str::to_owned)
            .collect(),
    };
    let took = Duration::from_micros(verdict["admission_us"].as_u64().unwrap_or_default());
    Verdict::Admitted(granted, took)
}

/// `/dev/davinci0`, not `/dev/davinci_manager`.
fn is_chip(path: &str) -> bool {
    path.rsplit("davinci")
        .next()
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Processes that the agent started and that still run.
pub(crate) fn children(pid: u32) -> BTreeSet<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter();
    tasks
        .flatten()
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|line| {
            line.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<u32>>()
        })
        .collect()
}

/// Ends a process that belongs to this node.
pub(crate) fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    // It may have ended by itself.
    let _gone = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

/// Ids of each pod by kubelet's own file; one id may stand there for a pod that is gone.
pub(crate) fn kubelet_books(node: &Node) -> BTreeMap<String, BTreeSet<String>> {
    let file = node.call("checkpoint", json!({}));
    let mut books: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in file["entries"].as_array().into_iter().flatten() {
        let pod = entry["pod_uid"].as_str().unwrap_or_default();
        let groups = entry["device_ids"].as_object().into_iter().flatten();
        let ids = groups.flat_map(|(_, ids)| ids.as_array().into_iter().flatten());
        let ids = ids.filter_map(|id| id.as_str().map(str::to_owned));
        books.entry(pod.to_owned()).or_default().extend(ids);
    }
    books
}

/// The kubelet of these tests: as given, or built (once for each machine).
fn harness() -> &'static Path {
    static HARNESS: OnceLock<PathBuf> = OnceLock::new();
    HARNESS.get_or_init(|| {
        if let Some(given) = std::env::var_os("ASCEND_TEST_KUBELET_HARNESS") {
            return given.into();
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubelet/build.sh");
        let built = Command::new(script).output().unwrap();
        let path = String::from_utf8(built.stdout).unwrap();
        let said = String::from_utf8_lossy(&built.stderr);
        assert!(built.status.success(), "{said}");
        path.trim().into()
    })
}

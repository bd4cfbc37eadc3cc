//! A node for one test: simulator, kubelet and agent, with short times, and what tests ask them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::pod::{Pod, Verdict, pod};
use super::stage::{Programs, Stage};

/// Far more than anything healthy takes, so that a slow machine fails no test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// Pause between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// Lines of the agent's log shown when a test fails.
const LAST_WORDS: usize = 60;

pub(crate) const ASCEND910: &str = "huawei.com/Ascend910";

/// The node. Dropped, everything ends; with `ASCEND_TEST_KEEP` set its folder stays.
pub(crate) struct Node {
    pub(crate) stage: Stage,
    pub(crate) resource: &'static str,
    flags: BTreeMap<String, String>,
}

impl Node {
    /// Hardware without agent and kubelet; `profile` is a name or a file.
    pub(crate) fn of(profile: &str) -> Self {
        Self::with(programs(), profile)
    }

    pub(crate) fn with(programs: Programs, profile: &str) -> Self {
        let mut stage = Stage::set(programs, profile).expect("the stage");
        if std::env::var_os("ASCEND_TEST_KEEP").is_some() {
            stage.keep();
            println!("the node's folder stays: {}", stage.path("").display());
        }
        let node = Self {
            stage,
            resource: ASCEND910,
            flags: BTreeMap::new(),
        };
        node.flag("records-poll-seconds", "5")
            .flag("owner-proof-seconds", "1")
            .flag("hold-down-seconds", "1")
            .flag("health-poll-ms", "200")
    }

    /// Eight 910B3 chips, kubelet and agent, everything registered.
    pub(crate) fn up() -> Self {
        Self::of("910b3-8x1").ready(8)
    }

    /// A flag of the agent, for its next start.
    pub(crate) fn flag(mut self, name: &str, value: &str) -> Self {
        self.flags.insert(format!("--{name}"), value.to_owned());
        self
    }

    pub(crate) fn resource(mut self, resource: &'static str) -> Self {
        self.resource = resource;
        self
    }

    /// Starts kubelet and agent and waits until kubelet may grant so many chips.
    pub(crate) fn ready(mut self, chips: u64) -> Self {
        self.start_kubelet(&json!({}));
        self.start_agent();
        self.allocatable(chips);
        self
    }

    pub(crate) fn start_kubelet(&mut self, more: &Value) -> Value {
        let mut request = json!({
            "dir": self.stage.path("dp"),
            "pod_resources_socket": self.stage.path("pr.sock"),
        });
        for (name, value) in more.as_object().expect("parameters") {
            request[name] = value.clone();
        }
        let kubelet = self.stage.start_kubelet().expect("kubelet");
        kubelet.call("start", request).expect("kubelet starts")
    }

    /// The start of a kubelet below running pods.
    pub(crate) fn start_kubelet_below(&mut self, pods: &[&Pod]) -> Value {
        let pods: Vec<Value> = pods.iter().map(|pod| pod.running(self.resource)).collect();
        self.start_kubelet(&json!({ "pods": pods }))
    }

    /// SIGKILL, and a new kubelet that is told of the running pods.
    pub(crate) fn restart_kubelet_below(&mut self, pods: &[&Pod]) -> Value {
        self.stage.kill_kubelet();
        self.start_kubelet_below(pods)
    }

    pub(crate) fn forget_checkpoint(&self) {
        std::fs::remove_file(self.stage.path("dp/kubelet_internal_checkpoint"))
            .expect("kubelet's checkpoint");
    }

    pub(crate) fn start_agent(&mut self) -> u32 {
        let flags: Vec<&str> = self
            .flags
            .iter()
            .flat_map(|(name, value)| [name.as_str(), value.as_str()])
            .collect();
        self.stage.start_agent(&flags).expect("the agent")
    }

    pub(crate) fn kubelet(&self, op: &str, request: Value) -> Value {
        let kubelet = self.stage.kubelet().expect("kubelet");
        kubelet.call(op, request).expect("an answer")
    }

    pub(crate) fn allocatable(&self, chips: u64) {
        self.allocatable_within(chips, PATIENCE);
    }

    pub(crate) fn allocatable_within(&self, chips: u64, within: Duration) {
        let timeout_ms = u64::try_from(within.as_millis()).expect("a short time");
        self.kubelet(
            "wait_allocatable",
            json!({ "resource": self.resource, "count": chips, "timeout_ms": timeout_ms }),
        );
    }

    /// What kubelet may grant now.
    pub(crate) fn allocatable_ids(&self) -> Vec<String> {
        strings(&self.kubelet("allocatable_ids", json!({}))["resources"][self.resource])
    }

    /// What kubelet received on our lists in its present life.
    pub(crate) fn lists(&self) -> Value {
        self.kubelet("list_updates", json!({ "resource": self.resource }))
    }

    pub(crate) fn updates(&self) -> u64 {
        self.lists()["updates"].as_u64().expect("a number")
    }

    /// Health of one id in the list that kubelet received last.
    pub(crate) fn listed_health(&self, id: &str) -> Option<String> {
        let lists = self.lists();
        let last = lists["last"].as_array()?;
        let device = last.iter().find(|device| device["id"] == id)?;
        device["health"].as_str().map(str::to_owned)
    }

    pub(crate) fn admit(&self, pod: &Pod) -> Verdict {
        Verdict(self.kubelet("admit", json!({ "pod": pod.json(self.resource) })))
    }

    /// Admits a pod with one container and returns the ids it got.
    pub(crate) fn admitted(&self, name: &str, chips: u32) -> Vec<String> {
        let verdict = self.admit(&pod(name, chips));
        assert!(verdict.is_admitted(), "{verdict:?}");
        verdict.ids()
    }

    /// Admits a pod before chips are offered: kubelet refuses it for lack of capacity or, while nothing
    /// is registered, knows of no such resource and gives nothing. It is never granted and then failed.
    pub(crate) fn too_early(&self, chips: u32) {
        self.status();
        let verdict = self.admit(&pod("early", chips));
        if verdict.is_admitted() {
            assert_eq!(verdict.ids(), [""; 0]);
            assert_eq!(self.lists()["registrations"], 0);
            self.remove_named("early");
        } else {
            let short = verdict.message().contains("number of devices unavailable");
            assert!(
                short || verdict.reason().starts_with("OutOf"),
                "{verdict:?}"
            );
        }
        assert!(self.audit_of("early").is_empty());
    }

    /// Admits a pod as a controller does: a refused one is replaced by the next.
    pub(crate) fn admit_eventually(&self, name: &str, chips: u32) -> Vec<String> {
        eventually("the pod is admitted", PATIENCE, || {
            let verdict = self.admit(&pod(name, chips));
            verdict.is_admitted().then(|| verdict.ids())
        })
    }

    pub(crate) fn remove(&self, pod: &Pod) {
        self.remove_named(pod.name());
    }

    pub(crate) fn remove_named(&self, name: &str) {
        self.kubelet("remove", json!({ "uid": Pod::uid_of(name) }));
    }

    /// The answer of `ascend-agent status -o json`, when an agent answers.
    pub(crate) fn status_now(&self) -> Option<Value> {
        serde_json::from_slice(&self.run(&["status", "-o", "json"]).stdout).ok()
    }

    pub(crate) fn status(&self) -> Value {
        eventually("status is answered", PATIENCE, || self.status_now())
    }

    pub(crate) fn chip(&self, phy: u32) -> Value {
        let status = self.status();
        let chips = status["chips"].as_array().expect("chips");
        chips
            .iter()
            .find(|chip| chip["phy"] == phy)
            .expect("the chip")
            .clone()
    }

    pub(crate) fn held(&self) -> Vec<Value> {
        self.status()["allocations"]
            .as_array()
            .expect("allocations")
            .clone()
    }

    /// The record of one held id.
    pub(crate) fn holding(&self, id: &str) -> Option<Value> {
        self.held()
            .into_iter()
            .find(|held| held["plugin_device_id"] == id)
    }

    /// Waits until every holder is confirmed and known by name.
    pub(crate) fn holders_known(&self, chips: usize) -> Vec<Value> {
        eventually("every holder is known", PATIENCE, || {
            let held = self.held();
            let known = held.iter().all(|held| {
                held["state"] == "confirmed" && held["pod"] != "" && held["pod_uid"] != ""
            });
            (known && held.len() == chips).then_some(held)
        })
    }

    /// Waits until so many chips of one pod are confirmed.
    pub(crate) fn holders_known_of(&self, pod: &str, chips: usize) -> Vec<Value> {
        eventually("the pod's chips are known", PATIENCE, || {
            let held: Vec<Value> = self
                .held()
                .into_iter()
                .filter(|held| held["pod"] == pod && held["state"] == "confirmed")
                .collect();
            (held.len() == chips).then_some(held)
        })
    }

    /// Waits until nobody holds the id any more.
    pub(crate) fn freed(&self, id: &str) {
        eventually(&format!("{id} is free"), PATIENCE, || {
            self.holding(id).is_none().then_some(())
        });
    }

    /// `audit allocations` as JSON.
    pub(crate) fn audit(&self, more: &[&str]) -> Vec<Value> {
        let words: Vec<&str> = ["audit", "allocations", "-o", "json"]
            .iter()
            .chain(more)
            .copied()
            .collect();
        let output = self.run(&words);
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// The history of one pod's chips.
    pub(crate) fn audit_of(&self, pod: &str) -> Vec<Value> {
        self.audit(&["--pod", &format!("default/{pod}")])
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.stage.command(words).expect("the program")
    }

    pub(crate) fn sim(&self, words: &[&str]) -> String {
        self.stage.sim(words).expect("the simulator")
    }

    /// The simulator's counters.
    pub(crate) fn calls(&self) -> Value {
        serde_json::from_str(&self.sim(&["calls", "--json"])).expect("JSON")
    }

    pub(crate) fn calls_of(&self, symbol: &str) -> u64 {
        self.calls()["symbols"][symbol].as_u64().unwrap_or(0)
    }

    /// The simulator's truth about one chip.
    pub(crate) fn hardware(&self, phy: u32) -> Value {
        let status: Value = serde_json::from_str(&self.sim(&["status", "--json"])).expect("JSON");
        let chips = status["chips"].as_array().expect("chips");
        chips
            .iter()
            .find(|chip| chip["phy"] == phy && chip["removed"] == false)
            .expect("the chip")
            .clone()
    }

    /// Waits until the chips were sampled so many times more.
    pub(crate) fn sampled(&self, times: u64) {
        let symbol = "dcmi_get_device_health";
        let target = self.calls_of(symbol) + times * 8;
        eventually("the chips are sampled", PATIENCE, || {
            (self.calls_of(symbol) >= target).then_some(())
        });
    }

    /// Names in kubelet's folder.
    pub(crate) fn plugin_dir(&self) -> Vec<String> {
        files_in(&self.stage.path("dp"))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        if let Some(ended) = self.stage.agent_ended() {
            eprintln!("the agent ended with {ended}");
        }
        let log = self.stage.log_text("agent.log");
        let lines: Vec<&str> = log.lines().collect();
        let first = lines.len().saturating_sub(LAST_WORDS);
        eprintln!("the agent's last words:\n{}", lines[first..].join("\n"));
    }
}

/// The programs of this build, and the program around kubelet's device manager: the one named by
/// the environment, else the one that its script builds.
pub(crate) fn programs() -> Programs {
    static KUBELET: OnceLock<PathBuf> = OnceLock::new();
    let kubelet = KUBELET.get_or_init(|| {
        if let Some(given) = std::env::var_os("ASCEND_TEST_KUBELET_HARNESS") {
            return given.into();
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubelet/build.sh");
        let built = Command::new(script).output().expect("the build script");
        assert!(built.status.success(), "{built:?}");
        PathBuf::from(String::from_utf8(built.stdout).expect("a path").trim())
    });
    Programs::beside(Path::new(env!("CARGO_BIN_EXE_ascend-agent")), kubelet).expect("all built")
}

/// The simulated library of an old driver, built beside the present one.
pub(crate) fn old_driver(library: &Path) -> PathBuf {
    let folder = library.parent().expect("a folder");
    let path = folder.join("libdcmi_old.so");
    assert!(path.is_file(), "{} is not built", path.display());
    path
}

/// Looks until something is found; too late is a failure.
pub(crate) fn eventually<T>(
    what: &str,
    within: Duration,
    mut look: impl FnMut() -> Option<T>,
) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < within, "not within {within:?}: {what}");
        std::thread::sleep(LOOK);
    }
}

/// Looks again and again for so long; a single exception is a failure.
pub(crate) fn always(what: &str, for_long: Duration, mut look: impl FnMut() -> bool) {
    let begun = Instant::now();
    while begun.elapsed() < for_long {
        assert!(look(), "not always, after {:?}: {what}", begun.elapsed());
        std::thread::sleep(LOOK);
    }
}

pub(crate) fn strings(list: &Value) -> Vec<String> {
    let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
    items
        .iter()
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}

pub(crate) fn files_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A pipe nobody ever writes to, so a reader waits for ever.
pub(crate) fn make_pipe(path: &Path) {
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .expect("a pipe");
}

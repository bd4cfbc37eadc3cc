//! `demo`: the agent at work on simulated hardware, under the real kubelet device manager.

mod kubelet;
mod stage;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use clap::ArgMatches;
use serde_json::{Value, json};

use stage::{Programs, Stage, StageError};

use super::exit::Outcome;
use super::output::print;

const RESOURCE: &str = "huawei.com/Ascend910";

/// Quiet time of the demo's agent; the default of a minute would make a dull show.
const HOLD_DOWN: &str = "3";

pub(super) fn demo(given: &ArgMatches) -> Outcome {
    let kubelet = given
        .get_one::<PathBuf>("kubelet-harness")
        .cloned()
        .unwrap_or_default();
    match play(&kubelet, given.get_flag("verbose")) {
        Ok(()) => Outcome::Done,
        Err(error) => Outcome::failed(&error),
    }
}

fn play(kubelet: &std::path::Path, verbose: bool) -> Result<(), StageError> {
    let agent = std::env::current_exe().map_err(|source| StageError::System {
        what: "own path".to_owned(),
        source,
    })?;
    let mut show = Show {
        stage: Stage::set(Programs::beside(&agent, kubelet)?, "910b3-8x1")?,
    };
    if verbose {
        show.stage.keep();
        say(&format!(
            "logs and state stay in {}\n",
            show.stage.path("").display()
        ));
    }
    let played = show.play();
    if played.is_err() {
        if let Some(ended) = show.stage.agent_ended() {
            say(&format!("\nthe agent ended with {ended}\n"));
        }
        say(&format!(
            "\nthe agent's last words:\n{}\n",
            tail(&show.stage.log_text("agent.log"))
        ));
    }
    played
}

struct Show {
    stage: Stage,
}

impl Show {
    fn play(&mut self) -> Result<(), StageError> {
        say(
            "This node is simulated, its kubelet is real. Eight Ascend 910B3 chips stand behind a\n\
             simulated libdcmi.so; kubelet's own device manager admits the pods; nothing else is mocked.\n",
        );
        heading(
            1,
            "Kubelet starts, the agent finds the chips and registers them",
        );
        let start = json!({
            "dir": self.stage.path("dp"),
            "pod_resources_socket": self.stage.path("pr.sock"),
        });
        self.stage.start_kubelet()?.call("start", start)?;
        self.stage
            .start_agent(&["--hold-down-seconds", HOLD_DOWN])?;
        self.allocatable(8)?;

        heading(2, "Three pods ask for 2, 1 and 4 chips");
        self.admit("trainer", 2)?;
        self.admit("notebook", 1)?;
        self.admit("server", 4)?;
        self.wait_for("every holder known", |status| {
            held(status)
                .iter()
                .all(|held| !word(held, "pod").is_empty())
        })?;

        heading(3, "The agent is killed with SIGKILL and started again");
        self.stage.kill_agent();
        say("   killed; the three pods keep running\n");
        self.stage
            .start_agent(&["--hold-down-seconds", HOLD_DOWN])?;
        self.allocatable(8)?;
        let status = self.status()?;
        say(&format!(
            "   back, and it still knows the holders of {} chips\n",
            held(&status).len()
        ));

        heading(
            4,
            "A fourth pod asks for one chip: it gets the only free one",
        );
        self.admit("latecomer", 1)?;
        heading(5, "A fifth pod asks for one more: kubelet has none left");
        self.admit("unlucky", 1)?;

        heading(6, "Chip 3 breaks (driver health 3, critical)");
        self.stage.sim(&["health", "3", "3"])?;
        self.allocatable(7)?;
        say("   nobody new gets chip 3; the pod that holds it keeps it\n");
        heading(
            7,
            "Chip 3 is mended, and offered again after it stayed well for 3 s",
        );
        self.stage.sim(&["heal", "3"])?;
        self.allocatable(8)?;

        heading(8, "The pod `server` ends; its four chips go to `trainer-2`");
        self.call("remove", json!({ "uid": uid("server") }))?;
        self.admit("trainer-2", 4)?;
        self.wait_for("every holder known", |status| {
            held(status)
                .iter()
                .all(|held| !word(held, "pod").is_empty())
        })?;

        heading(
            9,
            "Kubelet is killed and started again below the running pods",
        );
        self.stage.kill_kubelet();
        let pods: Vec<Value> = [
            ("trainer", 2),
            ("notebook", 1),
            ("latecomer", 1),
            ("trainer-2", 4),
        ]
        .into_iter()
        .map(|(name, chips)| pod(name, chips, true))
        .collect();
        let start = json!({
            "dir": self.stage.path("dp"),
            "pod_resources_socket": self.stage.path("pr.sock"),
            "pods": pods,
        });
        self.stage.start_kubelet()?.call("start", start)?;
        self.allocatable(8)?;

        heading(10, "$ ascend-agent status");
        self.show(&["status"])?;
        heading(11, "$ ascend-agent audit allocations");
        self.show(&["audit", "allocations"])?;
        let ended = self.stage.stop_agent()?;
        say(&format!(
            "\nThe agent was told to stop and ended with {ended}. That was the demo.\n"
        ));
        Ok(())
    }

    fn call(&self, op: &str, request: Value) -> Result<Value, StageError> {
        self.stage.kubelet()?.call(op, request)
    }

    fn allocatable(&mut self, count: u32) -> Result<(), StageError> {
        let request = json!({ "resource": RESOURCE, "count": count, "timeout_ms": 20_000 });
        self.call("wait_allocatable", request)?;
        say(&format!("   kubelet: {RESOURCE} allocatable {count}\n"));
        Ok(())
    }

    fn admit(&self, name: &str, chips: u32) -> Result<(), StageError> {
        let verdict = self.call("admit", json!({ "pod": pod(name, chips, false) }))?;
        let mut text = format!("   pod demo/{name}, {RESOURCE}: {chips}\n");
        if at(&verdict, "admitted") == &Value::Bool(true) {
            for container in list(at(&verdict, "containers")) {
                describe(container, &mut text);
            }
        } else {
            append(&mut text, "refused", word(&verdict, "reason"));
            append(&mut text, "because", word(&verdict, "message"));
        }
        say(&text);
        Ok(())
    }

    fn status(&self) -> Result<Value, StageError> {
        let output = self.stage.command(&["status", "-o", "json"])?;
        serde_json::from_slice(&output.stdout)
            .map_err(|_| StageError::Program(String::from_utf8_lossy(&output.stderr).into_owned()))
    }

    fn wait_for(&self, what: &str, done: impl Fn(&Value) -> bool) -> Result<(), StageError> {
        for _ in 0..200 {
            if done(&self.status()?) {
                return Ok(());
            }
            sleep(Duration::from_millis(100));
        }
        Err(StageError::Program(format!(
            "not reached within 20 s: {what}"
        )))
    }

    fn show(&self, words: &[&str]) -> Result<(), StageError> {
        let output = self.stage.command(words)?;
        say(&String::from_utf8_lossy(&output.stdout));
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr);
        Err(StageError::Program(format!(
            "{}: {} {text}",
            words.join(" "),
            output.status
        )))
    }
}

fn describe(container: &Value, text: &mut String) {
    for (resource, ids) in at(container, "device_ids")
        .as_object()
        .into_iter()
        .flatten()
    {
        let ids: Vec<&str> = list(ids).iter().filter_map(Value::as_str).collect();
        append(text, "gets", &format!("{} of {resource}", ids.join(", ")));
    }
    let nodes: Vec<&str> = list(at(container, "devices"))
        .iter()
        .map(|node| word(node, "container"))
        .collect();
    append(text, "device nodes", &nodes.join(" "));
    for (name, value) in at(container, "envs").as_object().into_iter().flatten() {
        append(
            text,
            "environment",
            &format!("{name}={}", value.as_str().unwrap_or_default()),
        );
    }
}

fn append(text: &mut String, name: &str, value: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "      {name:<13} {value}");
}

fn at<'a>(value: &'a Value, name: &str) -> &'a Value {
    value.get(name).unwrap_or(&Value::Null)
}

fn word<'a>(value: &'a Value, name: &str) -> &'a str {
    at(value, name).as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn held(status: &Value) -> &[Value] {
    list(at(status, "allocations"))
}

fn pod(name: &str, chips: u32, running: bool) -> Value {
    let mut pod = json!({
        "name": name, "namespace": "demo", "uid": uid(name),
        "containers": [{ "name": "main", "limits": { RESOURCE: chips.to_string() } }],
    });
    if let (true, Some(fields)) = (running, pod.as_object_mut()) {
        fields.insert("running".to_owned(), json!(true));
    }
    pod
}

fn uid(name: &str) -> String {
    format!("uid-of-{name}")
}

fn heading(number: u32, text: &str) {
    say(&format!("\n{number:>2}. {text}\n"));
}

fn say(text: &str) {
    // A closed output ends the show at its next step anyway.
    let _ = print(text);
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines
        .get(lines.len().saturating_sub(15)..)
        .unwrap_or_default()
        .join("\n")
}

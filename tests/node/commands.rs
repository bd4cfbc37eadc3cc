//! The commands people and scripts use, with a running agent and without one.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

use super::testbed::{Node, PATIENCE, eventually, files_in, programs, text};

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

/// Runs the program without any node.
fn program(words: &[&str]) -> Output {
    Command::new(programs().agent)
        .args(words)
        .output()
        .expect("the program")
}

/// Two pods, and one that ended when its chip was given to the last.
fn with_history() -> Node {
    let node = Node::up();
    node.admitted("a", 2);
    node.admitted("b", 1);
    node.admitted("gone", 1);
    node.holders_known(4);
    node.remove_named("gone");
    node.admitted("next", 4);
    node.admitted("last", 1);
    node.holders_known(8);
    node
}

#[test]
fn status_tells_everything_in_three_forms_and_its_exit_code_says_whether_all_is_well() {
    let mut node = with_history();
    eventually("the agent is ready", PATIENCE, || {
        (node.status()["ready"] == true).then_some(())
    });
    let table = node.run(&["status"]);
    assert_eq!(code(&table), Some(0), "{}", text(&table.stderr));
    let shown = text(&table.stdout);
    for part in [
        "ready",
        "driver   up",
        "api v1",
        "registered",
        "default/a container main",
        "default/last container main",
    ] {
        assert!(shown.contains(part), "{part:?} is missing in\n{shown}");
    }
    let status = node.status();
    assert_eq!(status["schema"], 1);
    assert_eq!(status["chips"].as_array().map(Vec::len), Some(8));
    assert_eq!(status["store"]["state"], "durable");
    assert_eq!(status["allocations"].as_array().map(Vec::len), Some(8));
    let csv = node.run(&["status", "-o", "csv"]);
    let csv = text(&csv.stdout);
    assert!(
        csv.starts_with("chip,id,name,die,health,held_by,state,why\n"),
        "{csv}"
    );
    assert_eq!(csv.lines().count(), 9);

    node.stage.kill_kubelet();
    fs::remove_file(node.stage.path("dp/kubelet.sock")).expect("kubelet's socket goes");
    eventually("it is not ready", PATIENCE, || {
        (node.status()["ready"] == false).then_some(())
    });
    assert_eq!(code(&node.run(&["status"])), Some(1));
    node.stage.kill_agent();
    let without = node.run(&["status"]);
    assert_eq!(code(&without), Some(1));
    assert!(without.stdout.is_empty());
    assert!(
        text(&without.stderr).contains("agent"),
        "{}",
        text(&without.stderr)
    );
}

#[test]
fn audit_answers_by_chip_pod_and_time_and_the_same_without_an_agent() {
    let mut node = with_history();
    let all = node.audit(&[]);
    assert_eq!(all.len(), 9);
    let gone: Vec<&Value> = all.iter().filter(|row| row["pod"] == "gone").collect();
    assert_eq!(gone[0]["ended_by"], "gone at the next grant");
    assert_eq!(gone[0]["namespace"], "default");
    assert_eq!(gone[0]["pod_uid"], "uid-of-gone");

    assert_eq!(node.audit(&["--pod", "a"]).len(), 2);
    assert_eq!(node.audit(&["--pod", "default/a"]).len(), 2);
    assert!(node.audit(&["--pod", "other/a"]).is_empty());
    let chip = node.audit(&["--chip", "2"]);
    assert_eq!(chip.len(), 1);
    assert_eq!(chip[0]["chip"], "Ascend910-2");
    assert_eq!(node.audit(&["--chip", "2", "--pod", "a"]).len(), 0);
    assert_eq!(node.audit(&["--since", "1h"]).len(), 9);
    assert_eq!(node.audit(&["--until", "1h"]).len(), 0);
    let ended = gone[0]["until"].as_str().expect("a time");
    let after: Vec<String> = node
        .audit(&["--since", "0s"])
        .iter()
        .map(|row| row["pod"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(after.len(), 8, "only those who hold on");
    assert!(!after.contains(&"gone".to_owned()));
    assert_eq!(
        node.audit(&["--since", ended]).len(),
        9,
        "up to that moment it was held"
    );
    assert_eq!(
        node.audit(&["--since", "2020-01-01", "--until", "2020-01-02"])
            .len(),
        0
    );

    let csv = text(&node.run(&["audit", "allocations", "-o", "csv"]).stdout);
    assert!(
        csv.starts_with("id,namespace,pod,container,from,until,ended_by,"),
        "{csv}"
    );
    assert_eq!(csv.lines().count(), 10);
    let table = text(&node.run(&["audit", "allocations"]).stdout);
    assert!(
        table.contains("gone at the next grant") && table.contains("held"),
        "{table}"
    );
    assert!(table.starts_with("ID "), "{table}");

    for words in [
        &["audit", "allocations", "--since", "yesterday"][..],
        &["audit", "allocations", "--chip", "x"],
        &["audit", "allocations", "-o", "xml"],
        &["audit", "allocations", "--since", "1h", "--until", "2h"],
        &[
            "audit",
            "allocations",
            "--since",
            "2026-11-29",
            "--until",
            "2026-11-29",
        ],
        &["audit", "allocations", "--pod", "demo/"],
        &["audit", "allocations", "--pod", "/x"],
        &["audit", "allocations", "--pod", "a/b/c"],
        &["audit", "allocations", "--pod", ""],
        &["audit"],
    ] {
        assert_eq!(code(&node.run(words)), Some(2), "{words:?}");
    }
    explains_silence(&node);

    node.stage.kill_agent();
    assert_eq!(node.audit(&[]), all, "read from a copy of the store");
    explains_silence(&node);
    let copies = files_in(&node.stage.path("state"));
    assert!(node.stage.stop_agent().is_err(), "no agent runs");
    node.start_agent();
    node.allocatable(8);
    assert_eq!(node.audit(&[]), all);
    assert!(
        copies.iter().all(|name| !name.contains("copy")),
        "no copy is left: {copies:?}"
    );
}

fn explains_silence(node: &Node) {
    for (words, told) in [
        (
            &["--until", "2020-01-01"][..],
            "no allocation in this time; the history begins at 20",
        ),
        (&["--pod", "other"], "no allocation in this time"),
        (&["--chip", "99"], "no chip 99 is known"),
        (&["--chip", "99", "-o", "json"], ""),
        (&["--chip", "99", "-o", "csv"], ""),
        (&["--chip", "2"], ""),
    ] {
        let output = node.run(&[&["audit", "allocations"], words].concat());
        assert_eq!(code(&output), Some(0), "{words:?}");
        let said = text(&output.stderr);
        assert!(said.starts_with(told), "{words:?}: {said}");
        assert_eq!(
            said.lines().count(),
            usize::from(!told.is_empty()),
            "{said}"
        );
    }
}

#[test]
fn audit_without_any_store_is_a_problem_and_not_an_empty_answer() {
    let node = Node::of("910b3-8x1");
    let output = node.run(&["audit", "allocations"]);
    assert_eq!(code(&output), Some(1));
    assert!(output.stdout.is_empty());
    assert!(!output.stderr.is_empty());
}

#[test]
fn store_check_and_backup_work_beside_a_running_agent_and_without_one() {
    let mut node = with_history();
    let check = node.run(&["store", "check", "-o", "json"]);
    assert_eq!(code(&check), Some(0), "{}", text(&check.stderr));
    let report: Value = serde_json::from_slice(&check.stdout).expect("JSON");
    assert_eq!(report["clean"], true);
    assert_eq!(report["allocations"], 8);
    assert_eq!(report["chips"], 8);
    let store = node.stage.path("state/state.redb");
    assert_eq!(report["file"], store.to_str().expect("plain text"));
    let left = files_in(&node.stage.path("state"));
    assert!(
        left.iter().all(|name| !name.contains("copy")),
        "no copy is left: {left:?}"
    );

    let first = node.stage.path("first.redb");
    let backup = |node: &Node, to: &std::path::Path| {
        node.run(&["store", "backup", to.to_str().expect("plain text")])
    };
    assert_eq!(code(&backup(&node, &first)), Some(0));
    assert!(fs::metadata(&first).expect("the copy").len() > 0);
    let again = backup(&node, &first);
    assert_eq!(
        code(&again),
        Some(1),
        "an existing file is never overwritten"
    );
    assert_eq!(code(&node.run(&["store", "backup"])), Some(2));

    node.stage.kill_agent();
    assert_eq!(code(&node.run(&["store", "check"])), Some(0));
    let second = node.stage.path("second.redb");
    assert_eq!(code(&backup(&node, &second)), Some(0));

    // Either copy can take the store's place; holders are compared with kubelet's records then.
    for copy in [first, second] {
        let store = node.stage.path("state/state.redb");
        fs::remove_dir_all(node.stage.path("state")).expect("the state goes");
        fs::create_dir(node.stage.path("state")).expect("a folder");
        fs::rename(copy, store).expect("the copy");
        node.start_agent();
        node.allocatable(8);
        assert_eq!(node.holders_known(8).len(), 8);
        assert_eq!(node.audit(&[]).len(), 9);
        node.stage.kill_agent();
    }
}

#[test]
fn store_check_of_a_damaged_or_missing_store_is_a_problem() {
    let mut node = Node::up();
    node.admitted("a", 1);
    node.stage.kill_agent();
    let store = node.stage.path("state/state.redb");
    let mut bytes = fs::read(&store).expect("the store");
    for byte in &mut bytes[4096..12_288] {
        *byte ^= 0xff;
    }
    fs::write(&store, &bytes).expect("damage");
    let check = node.run(&["store", "check"]);
    assert_eq!(code(&check), Some(1), "{}", text(&check.stdout));
    assert_eq!(
        fs::read(&store).expect("the store"),
        bytes,
        "a check changes nothing"
    );
    fs::remove_file(&store).expect("the store goes");
    let missing = node.run(&["store", "check"]);
    assert_eq!(code(&missing), Some(1));
    assert!(
        text(&missing.stderr).contains("state"),
        "{}",
        text(&missing.stderr)
    );
}

#[test]
fn config_check_and_show_name_every_value_its_source_and_the_mistake() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("agent.toml");
    let path = file.to_str().expect("plain text");
    fs::write(&file, "hold_down_seconds = 90\n").expect("a file");
    assert_eq!(
        code(&program(&["config", "check", "--config", path])),
        Some(0)
    );
    let shown = program(&[
        "config",
        "show",
        "--config",
        path,
        "--log-level",
        "warn",
        "-o",
        "json",
    ]);
    assert_eq!(code(&shown), Some(0));
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    assert_eq!(shown["hold_down_seconds"]["value"], "90");
    assert_eq!(shown["hold_down_seconds"]["source"], path);
    assert_eq!(shown["log_level"]["source"], "--log-level");
    assert_eq!(shown["state_dir"]["source"], "default");
    let by_variable = Command::new(programs().agent)
        .args(["config", "show", "-o", "json"])
        .env("ASCEND_AGENT_LOG_LEVEL", "debug")
        .output()
        .expect("the program");
    let by_variable: Value = serde_json::from_slice(&by_variable.stdout).expect("JSON");
    assert_eq!(by_variable["log_level"]["source"], "ASCEND_AGENT_LOG_LEVEL");

    for (written, told) in [
        ("hold_down_second = 1", "hold_down_seconds"),
        ("hold_down_seconds = -1", "0 to 86400"),
        ("state_dir = \"here\"", "absolute"),
        ("delivery = \"nodes\"", "devicespec"),
        ("state_dir = [", "TOML"),
        ("resource_domain = \"not a domain\"", "resource_domain"),
        (
            "health_address = \"127.0.0.1:21999\"\nhealth_tls_cert = \"/absent/cert\"\n\
             health_tls_key = \"/absent/key\"",
            "/absent/cert cannot be read",
        ),
    ] {
        fs::write(&file, format!("{written}\n")).expect("a file");
        let check = program(&["config", "check", "--config", path]);
        assert_eq!(code(&check), Some(1), "{written}");
        let said = text(&check.stderr);
        assert!(said.contains(told), "{written}: {said}");
        let run = program(&["run", "--config", path]);
        assert_eq!(code(&run), Some(2), "{written}");
        assert!(text(&run.stderr).contains(told), "{written}");
    }
}

#[test]
fn bad_usage_is_exit_code_two_with_the_nearest_word() {
    for (words, told) in [
        (&["run", "--state-dri", "/x"][..], "--state-dir"),
        (&["stauts"], "status"),
        (&["run", "--health-poll-ms", "1"], "100 to 60000"),
        (&["status", "--owner-proof-seconds", "0"], "1 to 86400"),
        (
            &["run", "--resource-domain", "UPPER CASE"],
            "resource_domain",
        ),
        (&["store", "check", "--state-dir", "none"], "no store"),
        (
            &["status", "--config", "/nonexistent.toml"],
            "/nonexistent.toml",
        ),
        (&[], "Usage"),
    ] {
        let output = program(words);
        assert_eq!(code(&output), Some(2), "{words:?}");
        let said = text(&output.stderr);
        assert!(said.contains(told), "{words:?}: {said}");
    }
    assert_eq!(code(&program(&["--version"])), Some(0));
    assert_eq!(code(&program(&["run", "--help"])), Some(0));
}

#[test]
fn an_unknown_variable_of_ours_is_refused_by_name() {
    let output = Command::new(programs().agent)
        .arg("run")
        .env("ASCEND_AGENT_STATEDIR", "/x")
        .output()
        .expect("the program");
    assert_eq!(code(&output), Some(2));
    let said = text(&output.stderr);
    assert!(
        said.contains("ASCEND_AGENT_STATEDIR") && said.contains("state_dir"),
        "{said}"
    );
}

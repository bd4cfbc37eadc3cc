//! Registering with kubelet, and again whenever that is lost.

use std::fs;
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use super::pod::pod;
use super::testbed::{Node, PATIENCE, always, eventually, programs};

/// The rule for being registered again.
const AGAIN: Duration = Duration::from_secs(2);

fn generation(node: &Node) -> u64 {
    node.status()["kubelet"][node.resource]["generation"]
        .as_u64()
        .expect("a number")
}

fn socket(node: &Node) -> String {
    node.status()["kubelet"][node.resource]["socket"]
        .as_str()
        .expect("a path")
        .to_owned()
}

/// Sockets that kubelet was told of in its present life.
fn endpoints(node: &Node) -> usize {
    node.lists()["endpoints"].as_array().expect("a list").len()
}

/// Waits until the newest generation's list was delivered and kubelet holds its stream.
fn connected(node: &Node) {
    eventually("the stream is open", PATIENCE, || {
        let registered = node.status()["kubelet"][node.resource]["registered"] == true;
        (registered && node.lists()["connected"] == true).then_some(())
    });
}

#[test]
fn ff01_c02_a_kubelet_that_comes_late_gets_the_chips_within_two_seconds() {
    let mut node = Node::of("910b3-8x1");
    node.start_agent();
    let status = eventually("the agent has found the chips", PATIENCE, || {
        node.status_now().filter(|status| {
            status["chips"]
                .as_array()
                .is_some_and(|chips| chips.len() == 8)
        })
    });
    assert_eq!(status["ready"], false);
    let absent = json!("kubelet's registry socket is not there");
    let told = status["shortcomings"].as_array().expect("lines");
    assert!(told.contains(&absent), "{told:?}");

    node.start_kubelet(&json!({}));
    node.allocatable_within(8, AGAIN);
    connected(&node);
    assert!(node.stage.agent_ended().is_none());
    assert_eq!(node.status()["ready"], true);
}

#[test]
fn ff01_a_kubelet_socket_replaced_again_and_again_ends_with_one_registration() {
    let mut node = Node::of("910b3-8x1");
    let agent = node.start_agent();
    node.start_kubelet(&json!({}));
    for _ in 0..5 {
        node.kubelet("restart", json!({}));
    }
    node.allocatable(8);
    connected(&node);
    assert_eq!(endpoints(&node), 1);
    assert!(node.stage.agent_ended().is_none(), "process {agent} lives");
    let ours: Vec<String> = node
        .plugin_dir()
        .into_iter()
        .filter(|name| name.starts_with("Ascend910-"))
        .collect();
    assert_eq!(ours.len(), 1, "one socket is left: {ours:?}");
}

#[test]
fn c03_a_registration_that_fails_is_tried_again_and_shown_as_not_ready() {
    let mut node = Node::of("910b3-8x1");
    let registry = node.stage.path("dp/kubelet.sock");
    let refusing = UnixListener::bind(&registry).expect("a socket");
    let hung_up = std::thread::spawn(move || {
        for _ in 0..3 {
            refusing.accept().expect("the agent dials");
        }
    });
    node.start_agent();
    hung_up.join().expect("three tries came");
    let status = eventually("the trouble is told", PATIENCE, || {
        let status = node.status();
        let trouble = status["kubelet"][node.resource]["trouble"]
            .as_str()?
            .to_owned();
        (!trouble.is_empty()).then_some(status)
    });
    assert_eq!(status["ready"], false);
    assert_eq!(node.run(&["status"]).status.code(), Some(1));

    fs::remove_file(&registry).expect("the socket goes");
    node.start_kubelet(&json!({}));
    node.allocatable(8);
    assert!(node.stage.agent_ended().is_none());
}

#[test]
fn c04_c28_c31_ff03_a_kubelet_restart_with_its_records_changes_nothing() {
    let mut node = Node::up();
    let (a, b) = (pod("a", 2), pod("b", 1));
    assert!(node.admit(&a).is_admitted() && node.admit(&b).is_admitted());
    let held = node.holders_known(3);
    let list = node.lists()["last"].clone();
    let socket_before = socket(&node);
    let inits = node.calls_of("dcmi_init");

    node.stage.kill_kubelet();
    // Kubelet itself wipes its folder of sockets at the start; its record stays.
    let verdicts = node.start_kubelet_below(&[&a, &b]);
    for verdict in verdicts["pods"].as_array().expect("verdicts") {
        assert_eq!(verdict["admitted"], true, "{verdict}");
    }
    node.allocatable_within(8, AGAIN);
    connected(&node);
    assert_eq!(node.lists()["last"], list, "the same ids and health");
    assert_ne!(socket(&node), socket_before, "a newly made socket");
    assert_eq!(
        node.calls_of("dcmi_init"),
        inits,
        "the driver was left alone"
    );
    assert_eq!(
        node.holders_known(3),
        held,
        "no Allocate came and no holder changed"
    );
    let names = node.plugin_dir();
    let known =
        |name: &String| name.starts_with("kubelet") || socket(&node).ends_with(name.as_str());
    assert!(
        names.iter().all(known),
        "nothing of ours but a socket: {names:?}"
    );

    node.sim(&["health", "5", "3"]);
    node.allocatable(7);
    assert_eq!(endpoints(&node), 1, "later news reach the new stream only");
}

#[test]
fn c05_a_deleted_socket_of_ours_is_made_again() {
    let node = Node::up();
    let before = socket(&node);
    fs::remove_file(&before).expect("our socket goes");
    eventually("registered under a new name", AGAIN, || {
        let now = socket(&node);
        (now != before && node.lists()["registrations"] == 2).then_some(())
    });
    node.allocatable_within(8, AGAIN);
    connected(&node);
}

#[test]
fn c06_ff02_a_hundred_ends_of_the_stream_lose_nothing_and_leave_nothing_behind() {
    let mut node = Node::of("910b3-8x1");
    let agent = node.start_agent();
    node.start_kubelet(&json!({}));
    node.allocatable(8);
    connected(&node);
    let before = resources_of(agent);
    for round in 0..100_u32 {
        let broken = round % 2 == 1;
        // Kubelet may hang up once more on what registered while it took in the end before.
        let registrations = eventually("an open stream is ended", PATIENCE, || {
            let registrations = node.lists()["registrations"].as_u64();
            let kubelet = node.stage.kubelet().expect("kubelet");
            let ended = kubelet.call("end_stream", json!({ "resource": node.resource }));
            ended.ok().map(|_| registrations)
        });
        if broken {
            node.sim(&["health", "6", "3"]);
        } else {
            node.sim(&["heal", "6"]);
        }
        eventually("registered again", PATIENCE, || {
            let lists = node.lists();
            let more = lists["registrations"].as_u64() > registrations;
            (more && lists["connected"] == true).then_some(())
        });
        // The pauses between losses grow; a new kubelet starts them over.
        if round % 3 == 2 {
            node.kubelet("restart", json!({}));
            eventually("connected again", PATIENCE, || {
                (node.lists()["connected"] == true).then_some(())
            });
        }
    }
    node.allocatable(7);
    node.sim(&["heal", "6"]);
    node.allocatable(8);
    connected(&node);
    assert!(node.stage.agent_ended().is_none());
    // Threads for blocking work, at most eight, come and go.
    eventually("open files and threads are as before", PATIENCE, || {
        let (files, threads) = resources_of(agent);
        (files <= before.0 && threads <= before.1 + 8).then_some(())
    });
}

#[test]
fn c06_the_first_lost_stream_is_repaired_within_two_seconds() {
    let node = Node::up();
    node.kubelet("end_stream", json!({ "resource": node.resource }));
    eventually("registered again", AGAIN, || {
        let lists = node.lists();
        (lists["registrations"] == 2 && lists["connected"] == true).then_some(())
    });
    node.allocatable_within(8, AGAIN);
}

#[test]
fn c07_a_second_agent_waits_says_so_and_takes_over() {
    let mut node = Node::up();
    // With the same state it waits for the store, with its own for kubelet's folder.
    for (state, words) in [
        ("state", "waiting"),
        ("state2", "another agent serves kubelet"),
    ] {
        let mut second = Second(
            second(&node, state, "admin2.sock")
                .spawn()
                .expect("a second agent"),
        );
        eventually("it says that it waits", PATIENCE, || {
            node.stage
                .log_text("second.log")
                .contains(words)
                .then_some(())
        });
        assert_eq!(node.lists()["registrations"], 1, "it registered nothing");
        assert!(node.stage.stop_agent().expect("an end").success());
        node.allocatable_within(8, Duration::from_secs(5));
        always("all chips stay", Duration::from_secs(1), || {
            node.allocatable_ids().len() == 8
        });
        assert!(second.0.try_wait().expect("a process").is_none());
        drop(second);
        node.restart_kubelet_below(&[]);
        node.start_agent();
        node.allocatable(8);
    }
}

#[test]
fn a_second_agent_leaves_the_admin_socket_of_the_first_alone() {
    let node = Node::up();
    let mut second = second(&node, "state2", "admin.sock");
    assert_eq!(second.status().expect("an agent").code(), Some(1));
    let said = node.stage.log_text("second.log");
    assert!(said.contains("another agent serves"), "{said}");
    assert_eq!(node.status()["ready"], true);
}

fn second(node: &Node, state: &str, admin: &str) -> Command {
    let log = node.stage.path("second.log");
    let mut command = Command::new(programs().agent);
    command
        .arg("run")
        .args(["--state-dir".into(), node.stage.path(state)])
        .args(["--admin-socket".into(), node.stage.path(admin)])
        .args(["--device-plugin-dir".into(), node.stage.path("dp")])
        .args(["--pod-resources-socket".into(), node.stage.path("pr.sock")])
        .args(["--dev-dir".into(), node.stage.path("dev")])
        .args(["--host-dev-dir".into(), node.stage.path("dev")])
        .args(["--trusted-library".into(), programs().library])
        .env("ASCEND_SIM_SOCKET", node.stage.path("sim.sock"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(log).expect("a log"));
    command
}

#[test]
fn sighup_registers_anew_under_a_new_socket() {
    let node = Node::up();
    let (before, generation_before) = (socket(&node), generation(&node));
    node.stage.signal_agent(Signal::HUP).expect("a signal");
    eventually("a new generation", PATIENCE, || {
        (generation(&node) > generation_before && socket(&node) != before).then_some(())
    });
    connected(&node);
    node.allocatable(8);
    assert_eq!(node.lists()["registrations"], 2);
    assert!(!std::path::Path::new(&before).exists());
}

/// An agent beside the stage's; killed at the end.
struct Second(Child);

impl Drop for Second {
    fn drop(&mut self) {
        // One that ended by itself cannot be killed, and is reaped all the same.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Open files and threads of a process.
fn resources_of(process: u32) -> (usize, usize) {
    let count = |what: &str| {
        fs::read_dir(format!("/proc/{process}/{what}"))
            .expect("the process lives")
            .count()
    };
    (count("fd"), count("task"))
}

//! Ends, orderly and not.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::Instant;

use super::pod::pod;
use super::testbed::{Node, PATIENCE, eventually, make_pipe};

#[test]
fn c08_sigterm_ends_the_agent_within_five_seconds_and_removes_only_its_own_sockets() {
    let mut node = Node::up();
    let pod = pod("stays", 2);
    assert!(node.admit(&pod).is_admitted());
    let held = node.holders_known(2);
    let foreign = UnixListener::bind(node.stage.path("dp/other.sock")).expect("a socket");
    let mut left = node.plugin_dir();
    let ours = node.status()["kubelet"][node.resource]["socket"]
        .as_str()
        .expect("a path")
        .to_owned();
    left.retain(|name| !ours.ends_with(name.as_str()));

    let begun = Instant::now();
    let ended = node.stage.stop_agent().expect("an end");
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert!(ended.success(), "{ended}");
    assert_eq!(node.plugin_dir(), left, "all but our socket is left");
    drop(foreign);
    assert!(!node.stage.path("admin.sock").exists());
    node.allocatable(0);

    node.start_agent();
    node.allocatable(8);
    assert_eq!(node.holders_known(2), held, "the holders are as before");
}

#[test]
fn sigint_and_sigquit_end_the_agent_as_sigterm_does() {
    let mut node = Node::up();
    for signal in [Signal::INT, Signal::QUIT] {
        node.stage.signal_agent(signal).expect("a signal");
        let ended = eventually("the agent ends", PATIENCE, || node.stage.agent_ended());
        assert!(ended.success(), "{ended}");
        node.start_agent();
        node.allocatable(8);
    }
}

#[test]
fn a_killed_agent_leaves_a_socket_that_its_successor_removes() {
    let mut node = Node::up();
    let before = node.status()["kubelet"][node.resource]["socket"]
        .as_str()
        .expect("a path")
        .to_owned();
    node.stage.kill_agent();
    assert!(fs::exists(&before).expect("a look"));
    node.start_agent();
    node.allocatable(8);
    eventually("the dead socket is gone", PATIENCE, || {
        (!fs::exists(&before).expect("a look")).then_some(())
    });
}

#[test]
fn sigterm_ends_an_agent_that_still_waits_for_kubelet_and_driver() {
    let mut node = Node::of("910b3-8x1");
    node.sim(&["hide-cards", "8"]);
    node.start_agent();
    node.status();
    let begun = Instant::now();
    let ended = node.stage.stop_agent().expect("an end");
    assert!(ended.success(), "{ended}");
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn a_file_that_hangs_does_not_keep_the_agent_from_ending() {
    let mut node = Node::up();
    let file = node.stage.path("dp/kubelet_internal_checkpoint");
    let pipe = node.stage.path("pipe");
    eventually("the file hangs", PATIENCE, || {
        // Kubelet may write its own once more.
        if !file
            .metadata()
            .is_ok_and(|found| found.file_type().is_fifo())
        {
            make_pipe(&pipe);
            fs::rename(&pipe, &file).expect("a pipe in its place");
        }
        let log = node.stage.log_text("agent.log");
        log.contains("not read within").then_some(())
    });
    node.stage.signal_agent(Signal::TERM).expect("a signal");
    let ended = eventually("the agent ends", PATIENCE, || node.stage.agent_ended());
    assert!(ended.success(), "{ended}");
}

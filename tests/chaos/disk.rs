//! A state folder on a disk that is full, read-only or failing while the agent runs (FF-13).

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::crash_points::preload_faults;
use crate::node::{Granted, Node, PATIENCE, RESOURCE, Verdict, knows, registered};

/// How soon a mended disk must be in use again.
const HEALED_WITHIN: Duration = Duration::from_secs(5);

/// A node whose state folder has a file system of its own.
fn on_tmpfs(size: &str) -> Node {
    let node = Node::with_kubelet();
    fs::write(node.beside_agent("tmpfs"), size).unwrap();
    node
}

/// The state folder as the agent sees it.
fn state_of(node: &Node, agent: u32) -> PathBuf {
    let state = node.stage.path("state");
    PathBuf::from(format!("/proc/{agent}/root{}", state.display()))
}

fn remount(node: &Node, agent: u32, option: &str) {
    let done = Command::new("nsenter")
        .args(["--target", &agent.to_string(), "--mount"])
        .args(if rustix::process::geteuid().is_root() {
            &[][..]
        } else {
            &["--user", "--preserve-credentials"][..]
        })
        .args(["mount", "-o", &format!("remount,{option}")])
        .arg(node.stage.path("state"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
}

/// The store refuses: nobody new gets a chip, everybody keeps theirs, everything else lives on.
#[track_caller]
fn refuses_and_lives(node: &mut Node, holder: &Granted, cause: &str) {
    node.allocatable(u32::try_from(holder.ids.len()).unwrap());
    let status = node.status_when("a failing store", PATIENCE, |status| {
        status.store.state == "failing"
    });
    assert!(!status.ready);
    assert!(
        status.store.trouble.contains(cause),
        "{}",
        status.store.trouble
    );
    assert!(knows(&status, &holder.ids), "{status:#?}");
    assert!(registered(&status));
    let free = status.chips.iter().filter(|chip| chip.holder.is_empty());
    for chip in free {
        assert!(
            !chip.healthy && chip.reason.contains("refuses writes"),
            "{chip:?}"
        );
    }
    let text = node.refusal("late", 1);
    // An id whose last holder is gone for kubelet, and not yet for us, is still on the list.
    let known = text.contains(RESOURCE) || text.contains("the allocation store refuses writes");
    assert!(known, "{text}");
    // Health is followed all the same.
    node.stage.sim(&["health", "7", "3"]).unwrap();
    node.status_when("chip 7 is known to be ill", PATIENCE, |status| {
        status
            .chips
            .iter()
            .any(|chip| chip.phy == 7 && !chip.healthy)
    });
    node.stage.sim(&["heal", "7"]).unwrap();
    assert_eq!(node.stage.agent_ended(), None);
}

#[track_caller]
fn heals(node: &Node, holder: &Granted, since: Instant) {
    node.status_when("the store takes writes again", HEALED_WITHIN, |status| {
        status.store.state == "durable" && knows(status, &holder.ids)
    });
    println!("healed after {:?}", since.elapsed());
    node.allocatable(8);
    let granted = node.grant("next", 2);
    assert!(granted.ids.is_disjoint(&holder.ids));
}

#[test]
fn a_full_disk_stops_grants_and_nothing_else_and_heals_by_itself() {
    let mut node = on_tmpfs("6m");
    let agent = node.start_agent();
    node.allocatable(8);
    let holder = node.grant("holder", 2);
    let filler = state_of(&node, agent).join("filler");
    let mut file = File::create(&filler).unwrap();
    for size in [1 << 16, 1 << 12, 1] {
        while file.write_all(&vec![1; size]).is_ok() {}
    }
    // The store has room inside its file for a while.
    let mut refused = None;
    for turn in 0..400 {
        let name = format!("pod{turn}");
        let verdict = node.admit(&name, 4);
        if let Verdict::Refused(reason) = verdict {
            refused = Some(reason);
            break;
        }
        node.remove(&name);
    }
    let refused = refused.unwrap();
    assert!(
        refused.contains("the allocation store refuses writes")
            || refused.contains("OutOf")
            || refused.contains("no healthy devices"),
        "{refused}"
    );
    let holders = holder_of(&node, &holder);
    refuses_and_lives(&mut node, &holders, "no space left");
    let mended = Instant::now();
    drop(file);
    fs::remove_file(&filler).unwrap();
    heals(&node, &holder, mended);
    node.stage.kill_agent();
    node.done();
}

/// Pods that came and went before the disk was full may still be on the books.
fn holder_of(node: &Node, holder: &Granted) -> Granted {
    let status = node.status().unwrap();
    let held = status.allocations.iter();
    Granted {
        ids: held.map(|held| held.plugin_device_id.clone()).collect(),
        device_nodes: holder.device_nodes.clone(),
    }
}

#[test]
fn a_disk_that_turns_read_only_stops_grants_and_nothing_else_and_heals_by_itself() {
    let mut node = Node::with_kubelet();
    preload_faults(&node);
    node.start_agent();
    node.allocatable(8);
    let holder = node.grant("holder", 2);
    node.status_when("the holder is on record", PATIENCE, |status| {
        let mut held = status.allocations.iter();
        held.all(|held| !held.pod.is_empty())
    });
    for (errno, cause) in [(30, "Read-only file system"), (5, "Input/output error")] {
        fs::write(node.beside_agent("faults"), format!("errno {errno}")).unwrap();
        let text = node.refusal("first", 2);
        assert!(
            text.contains("the allocation store refuses writes"),
            "{text}"
        );
        let holders = holder_of(&node, &holder);
        refuses_and_lives(&mut node, &holders, cause);
        let mended = Instant::now();
        fs::remove_file(node.beside_agent("faults")).unwrap();
        heals(&node, &holder, mended);
        node.remove("next");
    }
    node.done();
}

#[test]
fn a_folder_that_is_read_only_at_the_start_is_said_and_used_once_it_is_writable() {
    let mut node = on_tmpfs("16m");
    fs::write(node.beside_agent("readonly"), "").unwrap();
    let agent = node.start_agent();
    let status = node.status_when("registered", PATIENCE, registered);
    assert_eq!(status.store.state, "failing");
    assert!(
        status.store.trouble.contains("Read-only file system"),
        "{}",
        status.store.trouble
    );
    let capacity = node.call("capacity", json!({}));
    assert_eq!(capacity["capacity"][RESOURCE], 8);
    assert_eq!(capacity["allocatable"][RESOURCE], 0);
    let text = node.refusal("early", 1);
    assert!(
        text.contains("no healthy devices") || text.contains("OutOf"),
        "{text}"
    );
    let mended = Instant::now();
    remount(&node, agent, "rw");
    heals(&node, &Granted::default(), mended);
    assert!(state_of(&node, agent).join("state.redb").exists());
    node.stage.kill_agent();
    node.done();
}

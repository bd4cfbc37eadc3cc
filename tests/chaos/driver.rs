//! A driver that dies, hangs, lies, is not to be trusted, or is being replaced.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ascend_agent::domain::status::StatusDocument;
use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;
use serde_json::json;
use tokio::time::Instant;

use crate::node::{Node, PATIENCE, RESOURCE, Verdict, children, kill, registered};

/// No other chip's request may wait longer for a hung driver call.
const ONE_CALL: Duration = Duration::from_secs(1);

fn updates(node: &Node) -> u64 {
    let seen = node.call("list_updates", json!({ "resource": RESOURCE }));
    seen["updates"].as_u64().unwrap()
}

fn chip(status: &StatusDocument, phy: u32) -> (bool, String) {
    let mut chips = status.chips.iter();
    let chip = chips.find(|chip| chip.phy == phy).unwrap();
    (chip.healthy, chip.reason.clone())
}

#[test]
fn a_killed_driver_host_is_back_within_a_second_and_kubelet_hears_nothing() {
    let mut node = Node::with_kubelet();
    let agent = node.start_agent();
    node.allocatable(8);
    node.grant("holder", 2);
    let before = node.status_when("the holder is on record", PATIENCE, |status| {
        let mut held = status.allocations.iter();
        held.all(|held| !held.pod.is_empty())
    });
    let updates_before = updates(&node);
    for turn in 0..3 {
        let old = children(agent);
        assert_eq!(old.len(), 1, "{old:?}");
        let killed = Instant::now();
        old.iter().copied().for_each(kill);
        let mut new = BTreeSet::new();
        node.eventually("another host runs", PATIENCE, || {
            new = children(agent);
            !new.is_empty() && new.is_disjoint(&old)
        });
        let back = killed.elapsed();
        // The first death costs no pause, each further one a growing one.
        assert!(turn > 0 || back < ONE_CALL, "{back:?}");
        println!("driver host back after {back:?}");
        let status = node.status().unwrap();
        assert_eq!(status.chips, before.chips);
        assert_eq!(status.allocations, before.allocations);
    }
    // It is of use again: it sees a chip fail.
    assert_eq!(updates(&node), updates_before);
    node.stage.sim(&["health", "5", "3"]).unwrap();
    node.allocatable(7);
    node.done();
}

#[test]
fn a_hung_health_call_delays_no_other_chip_and_costs_only_its_own() {
    let node = Node::running();
    let order = ["hang", "dcmi_get_device_health", "--chip", "3"];
    node.stage.sim(&order).unwrap();
    let hung = Instant::now();
    let mut slowest = Duration::ZERO;
    let mut turn = 0;
    let mut ill = None;
    while ill.is_none() || turn < 20 {
        turn += 1;
        let name = format!("pod{turn}");
        match node.admit(&name, 2) {
            Verdict::Admitted(_, took) => slowest = slowest.max(took),
            Verdict::Refused(reason) => panic!("{reason}"),
        }
        node.remove(&name);
        let status = node.status().unwrap();
        if ill.is_none() && !chip(&status, 3).0 {
            ill = Some(hung.elapsed());
        }
        assert!(hung.elapsed() < PATIENCE, "chip 3 stayed healthy");
    }
    println!("chip 3 unhealthy after {ill:?}, slowest admission {slowest:?}");
    assert!(slowest < ONE_CALL, "{slowest:?}");
    assert!(
        ill.is_some_and(|ill| ill < Duration::from_secs(5)),
        "{ill:?}"
    );
    let status = node.status().unwrap();
    for phy in [0, 1, 2, 4, 5, 6, 7] {
        assert!(chip(&status, phy).0, "chip {phy}: {}", chip(&status, phy).1);
    }
    node.allocatable(7);
    node.stage.sim(&["release"]).unwrap();
    node.allocatable(8);
    node.done();
}

#[test]
fn a_driver_that_hangs_in_its_start_is_named_and_the_chips_come_once_it_lets_go() {
    let mut node = Node::with_kubelet();
    for symbol in ["dcmi_init", "dcmiv2_init"] {
        node.stage.sim(&["hang", symbol]).unwrap();
    }
    node.start_agent();
    let status = node.status_when("an answer", PATIENCE, |_| true);
    assert_eq!(status.driver.state, "waiting");
    assert!(!status.ready);
    let mut lines = status.shortcomings.iter();
    assert!(
        lines.any(|line| line.contains("driver waiting")),
        "{:?}",
        status.shortcomings
    );
    assert_eq!(node.stage.agent_ended(), None);
    let released = Instant::now();
    node.stage.sim(&["release"]).unwrap();
    node.allocatable(8);
    println!(
        "registered {:?} after the driver let go",
        released.elapsed()
    );
    node.done();
}

#[test]
fn an_orphan_of_a_killed_agent_is_waited_for_named_and_then_done_without() {
    let mut node = Node::with_kubelet();
    let state = node.stage.path("state");
    fs::create_dir(&state).unwrap();
    fs::set_permissions(&state, Permissions::from_mode(0o700)).unwrap();
    // An orphan that hangs inside the kernel keeps exactly this: the lock.
    let orphan = File::open(&state).unwrap();
    flock(&orphan, FlockOperation::LockExclusive).unwrap();
    node.start_agent();
    node.status_when("the lock is named", PATIENCE, |status| {
        let mut lines = status.shortcomings.iter();
        lines.any(|line| line.contains("another driver host"))
    });
    assert!(
        !node
            .status()
            .is_some_and(|status| registered(&status) && status.ready)
    );
    let released = Instant::now();
    drop(orphan);
    node.allocatable(8);
    let took = released.elapsed();
    println!("registered {took:?} after the orphan's end");
    assert!(took < Duration::from_secs(20), "{took:?}");
    node.done();
}

#[test]
fn a_killed_agent_leaves_no_driver_host_even_when_the_driver_hangs() {
    let mut node = Node::with_kubelet();
    let agent = node.start_agent();
    node.allocatable(8);
    node.stage.sim(&["hang", "dcmi_get_device_health"]).unwrap();
    node.allocatable(0);
    let hosts = children(agent);
    assert!(!hosts.is_empty());
    node.stage.signal_agent(Signal::KILL).unwrap();
    node.eventually("its hosts ended", Duration::from_secs(5), || {
        hosts.iter().all(|host| !runs(*host))
    });
    node.stage.sim(&["release"]).unwrap();
    let restarted = Instant::now();
    node.start_agent();
    node.allocatable(8);
    println!("registered {:?} after the start", restarted.elapsed());
    node.done();
}

fn runs(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
    !state.is_empty() && !state.starts_with('Z')
}

/// The simulated library in a folder of its own, searched for instead of trusted.
fn searched_library(node: &Node) -> PathBuf {
    let folder = node.stage.path("lib");
    fs::create_dir(&folder).unwrap();
    let library = PathBuf::from(env!("CARGO_BIN_EXE_ascend-agent")).with_file_name("libdcmi.so");
    fs::copy(library, folder.join("libdcmi.so")).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(folder.join("libdcmi.so"), Permissions::from_mode(0o555)).unwrap();
    symlink(&folder, node.beside_agent("untrusted")).unwrap();
    folder
}

#[track_caller]
fn is_refused(node: &mut Node, words: &[&str]) {
    node.start_agent();
    let status = node.status_when("the library is refused", PATIENCE, |status| {
        let mut words = words.iter();
        words.all(|word| status.driver.trouble.contains(word))
    });
    println!("{}", status.driver.trouble);
    assert!(!status.ready && status.chips.is_empty());
    assert!(!registered(&status));
    for word in words {
        node.logged(word, PATIENCE);
    }
    let capacity = node.call("capacity", json!({}));
    assert_eq!(capacity["capacity"][RESOURCE], json!(null));
    assert_eq!(node.stage.agent_ended(), None);
}

#[test]
fn a_library_others_may_write_to_is_refused_by_name() {
    let mut node = Node::with_kubelet();
    let folder = searched_library(&node);
    let library = folder.join("libdcmi.so");
    let name = library.display().to_string();
    fs::set_permissions(&library, Permissions::from_mode(0o777)).unwrap();
    is_refused(&mut node, &[&name]);
    fs::set_permissions(&library, Permissions::from_mode(0o555)).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
    is_refused(&mut node, &[&folder.display().to_string()]);
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&library, Some(65_534), None).unwrap();
    }
    is_refused(&mut node, &[&name, "must belong to uid 0"]);
    node.done();
}

#[test]
fn a_chip_of_no_known_family_is_named_and_not_registered() {
    let sim = Path::new(env!("CARGO_BIN_EXE_ascend-agent")).with_file_name("ascend-sim");
    let output = Command::new(sim)
        .args(["profiles", "910b3-8x1"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let profile = tempfile::NamedTempFile::new().unwrap();
    fs::write(profile.path(), text.replace("\"910B3\"", "\"770X9\"")).unwrap();
    let mut node = Node::set(profile.path().to_str().unwrap());
    node.start_kubelet(&[]).unwrap();
    node.start_agent();
    let status = node.status_when("the chip is named", PATIENCE, |status| {
        let mut lines = status.shortcomings.iter();
        lines.any(|line| line.contains("770X9"))
    });
    println!("{:?}", status.shortcomings);
    assert!(!registered(&status) && status.chips.is_empty());
    node.logged("770X9", PATIENCE);
    assert_eq!(node.stage.agent_ended(), None);
    node.done();
}

#[test]
fn a_storm_of_events_costs_one_chip_and_nothing_else() {
    let mut node = Node::running();
    let storm = [
        "event",
        "2",
        "0x80e01801",
        "--severity",
        "3",
        "--count",
        "5000",
    ];
    node.stage.sim(&storm).unwrap();
    let began = Instant::now();
    node.allocatable(7);
    assert!(!chip(&node.status().unwrap(), 2).0);
    let mut slowest = Duration::ZERO;
    for turn in 0..20 {
        let name = format!("pod{turn}");
        match node.admit(&name, 2) {
            Verdict::Admitted(_, took) => slowest = slowest.max(took),
            Verdict::Refused(reason) => panic!("{reason}"),
        }
        node.remove(&name);
    }
    assert!(slowest < ONE_CALL, "{slowest:?}");
    node.allocatable(8);
    println!(
        "over after {:?}, slowest admission {slowest:?}",
        began.elapsed()
    );
    assert_eq!(node.stage.agent_ended(), None);
    node.done();
}

#[test]
fn a_driver_upgrade_makes_chips_unhealthy_and_removes_none() {
    let node = Node::running();
    let holder = node.grant("holder", 2);
    node.stage.sim(&["upgrade", "on"]).unwrap();
    let began = Instant::now();
    node.allocatable(0);
    while began.elapsed() < Duration::from_secs(3) {
        let capacity = node.call("capacity", json!({}));
        assert_eq!(capacity["capacity"][RESOURCE], 8);
        let status = node.status().unwrap();
        assert_eq!(status.chips.len(), 8);
        assert!(crate::node::knows(&status, &holder.ids));
    }
    node.stage.sim(&["upgrade", "off"]).unwrap();
    node.allocatable(8);
    let next = node.grant("next", 6);
    assert!(next.ids.is_disjoint(&holder.ids));
    node.done();
}

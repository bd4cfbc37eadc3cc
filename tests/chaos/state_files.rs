//! State folders that are wrong from the start, damaged files, two agents at one folder.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::node::{Node, PATIENCE, Verdict, knows, registered};
use crate::stage::StageError;

fn damaged(node: &Node) -> usize {
    let entries = fs::read_dir(node.stage.path("state")).unwrap();
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().contains("damaged"))
        .count()
}

/// Waits for the agent's own end.
fn ended(node: &mut Node) -> Option<i32> {
    let mut code = None;
    let ended = !node.comes_before_end(|_| false);
    if ended {
        code = node.stage.agent_ended().and_then(|status| status.code());
    }
    code
}

#[test]
fn a_newer_schema_ends_the_start_with_a_clear_text_and_nothing_is_touched() {
    let mut node = Node::running();
    let status = node.stage.stop_agent().unwrap();
    assert!(status.success(), "{status}");
    let state = node.stage.path("state");
    fs::write(state.join("schema"), "99\n").unwrap();
    let before = content(&state);
    node.start_agent();
    assert_eq!(ended(&mut node), Some(1));
    node.logged("has schema 99, this agent knows up to 1", PATIENCE);
    assert_eq!(content(&state), before);
    node.done();
}

#[test]
fn a_folder_of_somebody_else_ends_the_start_with_a_clear_text() {
    let mut node = Node::with_kubelet();
    let state = node.stage.path("state");
    let owner = if rustix::process::geteuid().is_root() {
        fs::create_dir(&state).unwrap();
        std::os::unix::fs::chown(&state, Some(65_534), None).unwrap();
        65_534
    } else {
        std::os::unix::fs::symlink("/", &state).unwrap();
        0
    };
    node.start_agent();
    assert_eq!(ended(&mut node), Some(1));
    node.logged(&format!("belongs to uid {owner}"), PATIENCE);
    node.done();
}

#[test]
fn a_file_in_place_of_the_folder_is_no_folder_and_the_agent_says_what_it_cannot_promise() {
    let mut node = Node::with_kubelet();
    let state = node.stage.path("state");
    fs::write(&state, "precious").unwrap();
    node.start_agent();
    let status = node.status_when("registered", PATIENCE, registered);
    assert_eq!(status.store.state, "none");
    let says = |words: &str| {
        let mut lines = status.shortcomings.iter();
        lines.any(|line| line.contains(words))
    };
    assert!(says("no durable state"), "{:?}", status.shortcomings);
    node.allocatable(8);
    let granted = node.grant("pod", 2);
    // Kubelet's records alone must do after a kill.
    node.eventually("kubelet wrote the grant down", PATIENCE, || {
        crate::node::kubelet_books(&node)
            .values()
            .any(|ids| *ids == granted.ids)
    });
    node.start_agent();
    node.status_when("the holder is known", PATIENCE, |status| {
        registered(status) && knows(status, &granted.ids)
    });
    assert_eq!(fs::read(&state).unwrap(), b"precious");
    node.done();
}

#[test]
fn a_store_that_cannot_be_opened_grants_nothing_until_it_can() {
    let mut node = Node::with_kubelet();
    let state = node.stage.path("state");
    fs::create_dir_all(state.join("state.redb")).unwrap();
    node.start_agent();
    let status = node.status_when("registered", PATIENCE, registered);
    assert_eq!(status.store.state, "failing", "{:?}", status.store);
    node.allocatable(0);
    assert!(matches!(node.admit("early", 1), Verdict::Refused(_)));
    fs::remove_dir(state.join("state.redb")).unwrap();
    node.status_when("the store is in use", PATIENCE, |status| {
        status.store.state == "durable"
    });
    node.allocatable(8);
    node.grant("late", 1);
    node.done();
}

/// A way to spoil the file.
#[derive(Clone, Copy, Debug)]
enum Damage {
    /// A flip may hit a place that nothing uses, or a page the library repairs from its twin.
    Flip(usize),
    Cut(usize),
    Append(usize),
    Smear(usize),
}

impl Damage {
    fn apply(self, bytes: &mut Vec<u8>) {
        match self {
            Self::Flip(at) => {
                let last = bytes.len() - 1;
                bytes[at.min(last)] ^= 0x5a;
            }
            Self::Cut(length) => bytes.truncate(length),
            Self::Append(count) => bytes.extend(std::iter::repeat_n(0xa5, count)),
            Self::Smear(at) => bytes
                .iter_mut()
                .skip(at)
                .take(65_536)
                .for_each(|byte| *byte = 0xff),
        }
    }

    fn may_pass_unnoticed(self) -> bool {
        matches!(self, Self::Flip(1..) | Self::Append(_))
    }
}

fn damages() -> Vec<Damage> {
    let flips = [
        0,
        64,
        128,
        4096,
        4200,
        8192,
        12_288,
        20_480,
        65_536,
        1 << 20,
    ];
    let cuts = [0, 1, 100, 4096, 10_000, 100_000];
    let mut damages: Vec<Damage> = flips.into_iter().map(Damage::Flip).collect();
    damages.extend(cuts.into_iter().map(Damage::Cut));
    damages.extend([
        Damage::Append(10_000),
        Damage::Smear(0),
        Damage::Smear(4096),
    ]);
    damages
}

#[test]
fn a_damaged_store_is_rebuilt_and_every_living_holder_adopted() {
    let mut node = Node::running();
    let first = node.grant("first", 2);
    let second = node.grant("second", 1);
    let ids: BTreeSet<String> = first.ids.union(&second.ids).cloned().collect();
    let file = node.stage.path("state").join("state.redb");
    let mut unnoticed = Vec::new();
    for damage in damages() {
        let what = format!("{damage:?}");
        node.status_when("every holder is confirmed", PATIENCE, |status| {
            let held = status.allocations.iter();
            let mut ours = held.filter(|held| ids.contains(&held.plugin_device_id));
            knows(status, &ids) && ours.all(|held| held.state == "confirmed")
        });
        node.stage.kill_agent();
        let before = damaged(&node);
        let mut bytes = fs::read(&file).unwrap();
        damage.apply(&mut bytes);
        fs::write(&file, bytes).unwrap();
        node.start_agent();
        let status = node.status_when(&what, PATIENCE, |status| {
            registered(status) && knows(status, &ids)
        });
        assert_eq!(status.store.state, "durable", "{what}: {:?}", status.store);
        // The last five damaged files are kept, so the number stops growing there.
        if damaged(&node) == before && before < 5 {
            assert!(
                damage.may_pass_unnoticed(),
                "{what} passed unnoticed: {}",
                node.last_words()
            );
            unnoticed.push(what);
        }
        // The third pod of the turn before may count as a holder for a while.
        node.allocatable_at_least(7);
        let third = node.grant("third", 1);
        assert!(third.ids.is_disjoint(&ids), "{third:?}");
        node.remove("third");
        for entry in fs::read_dir(node.stage.path("state")).unwrap().flatten() {
            if entry.file_name().to_string_lossy().contains("damaged") {
                fs::remove_file(entry.path()).unwrap();
            }
        }
    }
    println!("repaired or in unused places: {unnoticed:?}");
    node.done();
}

#[test]
fn a_second_agent_waits_says_so_and_takes_over_when_the_first_is_killed() {
    let mut node = Node::running();
    let holder = node.grant("holder", 2);
    let second = Second(second_agent(&node).unwrap());
    node.eventually("the second agent says that it waits", PATIENCE, || {
        node.stage
            .log_text("second.log")
            .contains("waiting for the store")
    });
    let status = node.status().unwrap();
    assert!(registered(&status) && knows(&status, &holder.ids));
    let next = node.grant("next", 1);
    node.stage.kill_agent();
    node.status_when("the second agent took over", PATIENCE, |status| {
        registered(status) && knows(status, &holder.ids) && knows(status, &next.ids)
    });
    node.allocatable(8);
    let after = node.grant("after", 5);
    assert!(after.ids.is_disjoint(&holder.ids) && after.ids.is_disjoint(&next.ids));
    drop(second);
    node.done();
}

/// An agent beside the stage's own.
struct Second(Child);

impl Drop for Second {
    fn drop(&mut self) {
        // It may have ended by itself; what matters is that nothing is left behind.
        let _killed = self.0.kill();
        let _reaped = self.0.wait();
    }
}

fn second_agent(node: &Node) -> Result<Child, StageError> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ascend-agent"));
    command.arg("run");
    for (flag, name) in [
        ("--state-dir", "state"),
        ("--admin-socket", "admin.sock"),
        ("--device-plugin-dir", "dp"),
        ("--pod-resources-socket", "pr.sock"),
        ("--dev-dir", "dev"),
        ("--host-dev-dir", "dev"),
    ] {
        command.arg(flag).arg(node.stage.path(name));
    }
    let log = fs::File::create(node.stage.path("second.log")).unwrap();
    command
        .arg("--trusted-library")
        .arg(library())
        .env("ASCEND_SIM_SOCKET", node.stage.path("sim.sock"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .map_err(|source| StageError::System {
            what: "a second agent cannot be started".to_owned(),
            source,
        })
}

fn library() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_ascend-agent")).with_file_name("libdcmi.so")
}

fn content(folder: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    let mut content: Vec<(String, Vec<u8>)> = fs::read_dir(folder)
        .unwrap()
        .flatten()
        .filter(|entry| entry.path().is_file())
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).unwrap())
        })
        // The lock file names its last holder.
        .filter(|(name, _)| name != "agent.lock")
        .collect();
    content.sort();
    content
}

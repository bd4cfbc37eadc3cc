//! A kill at every write and every sync of a grant, of its confirmation and of a release: before the
//! commit, inside it, after it and before the answer, after the answer.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::node::{Node, PATIENCE, RESOURCE, Verdict, knows, registered};

/// More steps than one grant and its confirmation take.
const STEPS_MAX: u32 = 120;

/// Builds what `agent.sh` preloads.
pub(crate) fn preload_faults(node: &Node) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chaos/faults.c");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(node.beside_agent("faults.so"))
        .arg(source)
        .status()
        .unwrap();
    assert!(
        built.success(),
        "a C compiler is needed (apt-get install gcc)"
    );
}

#[test]
fn a_kill_at_any_write_of_a_grant_gives_no_chip_twice_and_loses_no_holder() {
    let mut node = Node::with_kubelet().with_flags(&[
        "--owner-proof-seconds",
        "1",
        "--records-poll-seconds",
        "5",
    ]);
    preload_faults(&node);
    let order = node.beside_agent("faults");
    node.start_agent();
    node.allocatable(8);
    let keeper = node.grant("keeper", 1);
    let (mut before_answer, mut after_answer) = (0, 0);
    for step in 1..=STEPS_MAX {
        node.status_when("the keeper is known", PATIENCE, |status| {
            registered(status) && knows(status, &keeper.ids)
        });
        // Grants cut short are withheld until proven ownerless.
        node.allocatable_at_least(4);
        std::fs::write(&order, format!("kill {step}")).unwrap();
        let name = format!("pod{step}");
        let verdict = node.admit(&name, 1);
        let mut whole = false;
        if let Verdict::Admitted(granted, _) = &verdict {
            assert!(
                granted.ids.is_disjoint(&keeper.ids),
                "step {step}: {granted:?}"
            );
            assert!(
                granted.device_nodes.is_disjoint(&keeper.device_nodes),
                "step {step}"
            );
            // The agent goes on until it has made the confirmation durable, or dies on the way.
            whole = node.comes_before_end(|status| {
                let held = status.allocations.iter();
                let mut ours = held.filter(|held| granted.ids.contains(&held.plugin_device_id));
                knows(status, &granted.ids) && ours.all(|held| held.state == "confirmed")
            });
        }
        std::fs::remove_file(&order).unwrap();
        match (&verdict, whole) {
            (_, true) => {}
            (Verdict::Admitted(..), false) => after_answer += 1,
            (Verdict::Refused(_), false) => before_answer += 1,
        }
        node.start_agent();
        if let Verdict::Admitted(granted, _) = &verdict {
            node.status_when("the new holder is known too", PATIENCE, |status| {
                knows(status, &granted.ids)
            });
            node.remove(&name);
        }
        let state = std::fs::read_dir(node.stage.path("state")).unwrap();
        for entry in state.flatten() {
            let file = entry.file_name().to_string_lossy().into_owned();
            assert!(
                !file.contains("damaged"),
                "step {step}: {}",
                node.last_words()
            );
        }
        if whole {
            break;
        }
        assert!(step < STEPS_MAX, "no grant was ever completed");
    }
    println!("killed {before_answer} times before the answer, {after_answer} times after it");
    assert!(
        before_answer >= 5 && after_answer >= 5,
        "the kills missed the grant"
    );
    node.done();
}

#[test]
fn a_kill_while_a_new_holder_is_adopted_loses_nobody() {
    let mut node = Node::with_kubelet();
    preload_faults(&node);
    let order = node.beside_agent("faults");
    node.start_agent();
    node.allocatable(8);
    let granted = node.grant("keeper", 3);
    node.status_when("kubelet's records were seen", PATIENCE, |status| {
        status
            .allocations
            .iter()
            .all(|held| held.state == "confirmed")
    });
    let mut kills = 0;
    for step in (1..STEPS_MAX).step_by(4) {
        node.stage.kill_agent();
        // The state volume is lost: kubelet alone knows the holders.
        std::fs::remove_dir_all(node.stage.path("state")).unwrap();
        std::fs::write(&order, format!("kill {step}")).unwrap();
        node.start_agent();
        let whole = node.comes_before_end(registered);
        std::fs::remove_file(&order).unwrap();
        if whole {
            break;
        }
        kills += 1;
        node.start_agent();
        node.status_when(
            "the holder is known again",
            Duration::from_secs(20),
            |status| registered(status) && knows(status, &granted.ids),
        );
        let text = node.refusal("greedy", 6);
        assert!(text.contains("Requested: 6, Available: 5"), "{text}");
    }
    assert!(kills >= 3, "the kills missed the start");
    node.done();
}

#[test]
fn l10_holders_not_known_by_name_outlive_an_agent_and_a_kubelet_that_lost_its_records() {
    let mut node = Node::with_kubelet();
    node.start_agent();
    node.allocatable(8);
    // Kubelet's List is 1 s away, so the name is not known yet.
    let granted = node.grant("holder", 2);
    node.stage.kill_agent();
    node.call("restart", json!({ "keep_checkpoint": false }));
    node.start_agent();
    node.status_when("registered, the holder known", PATIENCE, |status| {
        registered(status) && knows(status, &granted.ids)
    });
    // Two looks at kubelet's list of pods, 5 s apart at the least, change nothing.
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(8) {
        let ids = node.call("allocatable_ids", json!({}));
        let mut ids = ids["resources"][RESOURCE].as_array().into_iter().flatten();
        let offered = ids.find(|id| granted.ids.contains(id.as_str().unwrap()));
        assert_eq!(offered, None, "{}", node.last_words());
    }
    let others = node.grant("others", 4);
    assert!(others.ids.is_disjoint(&granted.ids), "{others:?}");
    node.done();
}

//! Views of kubelet that have nothing to do with each other or with the truth. What must hold even so:
//! one holder per chip, or per share of it, and per id, every held id stays in the list, and no id is granted while the
//! pod-resources answer at hand lists it.

use std::collections::BTreeSet;
use std::time::Duration;

use ascend_agent::domain::ids::PhyId;
use ascend_agent::domain::kubelet_view::{
    CheckpointEntry, CheckpointVersion, CheckpointView, Holding, PodCensus, PodName,
};
use ascend_agent::domain::time::BootTime;
use ascend_agent::ledger::{Asked, Decision};

use super::node::{CHIPS, Fate, Node, Offered, clash, die_of, resource, unknown_id};

pub(crate) fn run(steps: &[[u8; 4]], offered: Offered) {
    let mut node = Node::new(offered);
    for step in steps {
        perform(&mut node, *step);
        node.check();
    }
}

fn perform(node: &mut Node, [kind, first, second, third]: [u8; 4]) {
    match kind % 8 {
        0 => node.inventory(first, second),
        1..=3 => allocate(node, first, second, third),
        4 | 5 => look(node, first, second, third),
        6 if first % 2 == 0 => node.ledger.kubelet_restarted(),
        6 => node.restart_agent(),
        _ => node.pass(Duration::from_secs(u64::from(first))),
    }
}

fn allocate(node: &mut Node, wanted: u8, asked: u8, view: u8) {
    let ids = node.ids_of(wanted);
    let begun = node.now();
    let census = census_of(node, view, asked, begun);
    let written = CheckpointView {
        version: VERSION_ZERO,
        read: begun,
        entries: entries_of(node, view),
    };
    let told = match asked % 8 {
        0 => Asked::NotYet,
        1 => Asked::Silent("no answer".to_owned()),
        2 | 3 => Asked::Told(&census),
        7 => Asked::NoSource,
        _ => Asked::ToldAndWritten(&census, &written),
    };
    let decision = node.decide(&ids, &told);
    if told != Asked::NotYet {
        assert_ne!(decision, Decision::AskKubelet, "asked already");
    }
    let Decision::Grant(plan) = decision else {
        return;
    };
    for granted in &plan.steps {
        let holder = node.ledger.holder(&resource(), &granted.id);
        let listed = census
            .holdings
            .iter()
            .any(|holding| holding.resource == resource() && holding.ids.contains(&granted.id));
        match &told {
            Asked::Told(_) | Asked::ToldAndWritten(..) => {
                assert!(holder.is_none() || !listed, "granted while listed");
            }
            Asked::NotYet | Asked::Silent(_) => assert!(holder.is_none(), "granted unasked"),
            Asked::NoSource => {}
        }
        for other in node.ledger.holders_of_die(granted.die) {
            let other = &other.record.plugin_device_id;
            assert!(
                *other == granted.id || !clash((other, granted.die), (&granted.id, granted.die)),
                "the chip is held as {other} and granted as {}",
                granted.id
            );
        }
    }
    // A refused commit is an answer like any other here.
    let checkpoint_then = version_of(view);
    let _ = node.grant(&plan, checkpoint_then, Fate::of(asked / 8));
}

fn look(node: &mut Node, listed: u8, filed: u8, how: u8) {
    let begun = node.now();
    let census = census_of(node, listed, how, begun);
    let file = CheckpointView {
        version: version_of(how).unwrap_or(VERSION_ZERO),
        read: begun,
        entries: entries_of(node, filed),
    };
    let checkpoint = match how % 4 {
        0 => None,
        1 => Some(None),
        _ => Some(Some(&file)),
    };
    let occupied: BTreeSet<_> = (0..CHIPS)
        .filter(|chip| (filed & listed) & (1 << chip) != 0)
        .map(die_of)
        .collect();
    if filed & 64 == 0 {
        node.read_processes(&occupied);
    }
    let census = (how & 4 == 0).then_some(&census);
    node.look(census, checkpoint, version_of(filed), Fate::of(how / 8));
}

/// The low half says which ids are held, the high half which pods exist.
fn census_of(node: &Node, listed: u8, who: u8, begun: BootTime) -> PodCensus {
    let pods = (0..4).filter(|pod| listed & (16 << pod) != 0).map(pod_of);
    let holdings = node
        .any_ids_of(listed, who >> 2)
        .into_iter()
        .enumerate()
        .map(|(place, id)| Holding {
            pod: pod_of(who.wrapping_add(u8::try_from(place).unwrap_or(0)) % 4),
            container: "main".to_owned(),
            resource: resource(),
            ids: BTreeSet::from([id]),
        });
    PodCensus {
        begun,
        pods: pods.collect(),
        holdings: holdings.collect(),
    }
}

/// The low half says which ids are held, the last of them sometimes one that no chip has; the high half
/// names a device node, sometimes another chip's.
fn entries_of(node: &Node, filed: u8) -> Vec<CheckpointEntry> {
    let davinci = (filed >> 4) % (CHIPS * 2);
    let mut ids = node.any_ids_of(filed, filed >> 5);
    if filed & 128 != 0 && ids.pop().is_some() {
        ids.push(unknown_id());
    }
    ids.into_iter()
        .map(|id| CheckpointEntry {
            pod_uid: format!("uid-{}", filed >> 6),
            container: "main".to_owned(),
            resource: resource(),
            ids: BTreeSet::from([id]),
            device_nodes: (davinci < CHIPS)
                .then_some(PhyId(u32::from(davinci)))
                .into_iter()
                .collect(),
            visible_devices: None,
        })
        .collect()
}

fn pod_of(number: u8) -> PodName {
    PodName {
        namespace: "default".to_owned(),
        name: format!("pod-{number}"),
    }
}

const VERSION_ZERO: CheckpointVersion = CheckpointVersion {
    inode: 0,
    modified_ns: 0,
    size_bytes: 0,
};

fn version_of(number: u8) -> Option<CheckpointVersion> {
    let inode = u64::from(number % 4);
    (inode > 0).then_some(CheckpointVersion {
        inode,
        ..VERSION_ZERO
    })
}

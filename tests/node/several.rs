//! Several resources on one node, each with a registration of its own, and what former plugins leave.

use std::os::unix::net::UnixListener;

use serde_json::{Value, json};
use tonic::Code;

use super::plugin::allocate;
use super::pod::pod;
use super::testbed::{ASCEND910, Node, PATIENCE, eventually, files_in, strings};

const ASCEND310P: &str = "huawei.com/Ascend310P";

fn ids_of(node: &Node, resource: &str) -> Vec<String> {
    strings(&node.kubelet("allocatable_ids", json!({}))["resources"][resource])
}

fn wait(node: &Node, resource: &str, count: u64) {
    let request = json!({ "resource": resource, "count": count, "timeout_ms": 40_000 });
    node.kubelet("wait_allocatable", request);
}

#[test]
fn two_families_are_offered_side_by_side_and_never_under_each_others_name() {
    let mut node = Node::of("two-families").ready(2);
    wait(&node, ASCEND310P, 2);
    let status = node.status();
    let registered = |resource: &str| status["kubelet"][resource]["registered"] == true;
    assert!(registered(ASCEND910) && registered(ASCEND310P), "{status}");
    let (of_910, of_310p) = (ids_of(&node, ASCEND910), ids_of(&node, ASCEND310P));
    for (resource, wrong) in [(ASCEND910, &of_310p), (ASCEND310P, &of_910)] {
        node = node.resource(resource);
        let (code, text) = allocate(&node, &[&wrong[0]]).expect_err("the other's id");
        assert_eq!(code, Code::InvalidArgument, "{text}");
        assert!(text.contains("doesn't have device"), "{text}");
    }
    for resource in [ASCEND910, ASCEND310P] {
        node = node.resource(resource);
        assert_eq!(
            node.admitted(&format!("on-{}", &resource[17..].to_lowercase()), 2)
                .len(),
            2
        );
    }
    node.holders_known(4);

    node.stage.kill_agent();
    node.start_agent();
    wait(&node, ASCEND910, 2);
    wait(&node, ASCEND310P, 2);
    assert_eq!(node.holders_known(4).len(), 4);
    assert!(!node.admit(&pod("too-much", 1)).is_admitted());
}

#[test]
fn mixed_cards_are_offered_by_kind() {
    let mut node = Node::of("mixed-310p-4x1").flag("mixed-insert", "true");
    node.start_kubelet(&json!({}));
    node.start_agent();
    let hardware: Value = serde_json::from_str(&node.sim(&["status", "--json"])).expect("JSON");
    let chips = hardware["chips"].as_array().expect("chips").len();
    let kinds = ["V", "VPro", "IPro"].map(|kind| format!("{ASCEND310P}-{kind}"));
    let ids = eventually("every card is offered", PATIENCE, || {
        let ids = kinds.each_ref().map(|kind| ids_of(&node, kind));
        (ids.iter().map(Vec::len).sum::<usize>() == chips).then_some(ids)
    });
    for (kind, ids) in kinds.iter().zip(&ids) {
        let base = kind.rsplit('/').next().expect("a name");
        assert!(!ids.is_empty(), "{kind}");
        assert!(
            ids.iter().all(|id| id.starts_with(&format!("{base}-"))),
            "{kind}: {ids:?}"
        );
    }
    assert_eq!(ids_of(&node, ASCEND310P), [""; 0]);
    node = node.resource("huawei.com/Ascend310P-VPro");
    assert_eq!(node.admitted("video", 1).len(), 1);
    assert_eq!(
        node.holders_known(1)[0]["resource"],
        "huawei.com/Ascend310P-VPro"
    );
}

#[test]
fn shares_of_a_310_are_refused_at_the_start() {
    let mut node = Node::of("310-1x4").flag("share-count", "2");
    node.start_kubelet(&json!({}));
    node.start_agent();
    let ended = eventually("the agent ends", PATIENCE, || node.stage.agent_ended());
    assert_eq!(ended.code(), Some(1));
    let log = node.stage.log_text("agent.log");
    assert!(log.contains("is a 310, which cannot be shared"), "{log}");
}

#[test]
fn fusion_director_finds_a_310_under_its_name() {
    let node = Node::of("310-1x4")
        .resource("huawei.com/davinci-mini")
        .flag("fusion-director", "true")
        .ready(4);
    let ids = node.admitted("edge", 1);
    assert!(ids[0].starts_with("davinci-mini-"), "{ids:?}");
}

#[test]
fn on_a5_the_dead_socket_of_the_vendors_plugin_goes_and_a_live_one_stays() {
    let mut node = Node::of("a5-8x1").resource("huawei.com/npu");
    node.start_kubelet(&json!({}));
    let folder = node.stage.path("dp");
    drop(UnixListener::bind(folder.join("Ascend910.sock")).expect("a socket"));
    drop(UnixListener::bind(folder.join("nvidia-gpu.sock")).expect("a socket"));
    let _live = UnixListener::bind(folder.join("Ascend310.sock")).expect("a socket");
    node.start_agent();
    node.allocatable(8);
    let left = files_in(&folder);
    assert!(!left.contains(&"Ascend910.sock".to_owned()), "{left:?}");
    for stays in ["Ascend310.sock", "nvidia-gpu.sock"] {
        assert!(left.contains(&stays.to_owned()), "{left:?}");
    }
}

#[test]
fn a_card_that_comes_later_and_does_not_fit_the_mode_is_named_and_not_offered() {
    let kind = "huawei.com/Ascend310P-IPro";
    let mut node = Node::of("two-families")
        .resource(kind)
        .flag("mixed-insert", "true")
        .flag("device-wait-seconds", "0");
    for card in ["1", "4"] {
        node.sim(&["fail-init", card]);
    }
    node.start_kubelet(&json!({}));
    node.start_agent();
    node.allocatable(2);
    let ids = node.admitted("early", 1);
    for card in ["1", "4"] {
        node.sim(&["heal-init", card]);
    }
    eventually("the cards are named", PATIENCE, || {
        let status = node.status();
        let lines = strings(&status["shortcomings"]);
        let named = lines
            .iter()
            .filter(|line| line.starts_with("not offered: "));
        (named.count() == 2).then_some(())
    });
    node.allocatable(2);
    assert_eq!(ids_of(&node, ASCEND910), [""; 0]);
    assert!(node.holding(&ids[0]).is_some());
    assert!(node.stage.agent_ended().is_none());
}

//! Answers to Allocate: what containers get, what is refused, what a repeated call does.

use std::collections::BTreeMap;

use serde_json::json;
use tonic::Code;

use super::plugin::{allocate, allocate_at_once};
use super::pod::{Pod, Verdict, numbers_of, pod};
use super::testbed::Node;

/// Every container's device nodes are those of its own ids.
fn own_nodes_only(verdict: &Verdict, containers: &[(&str, usize)]) {
    for (name, chips) in containers {
        let container = verdict.container(name);
        assert_eq!(container.ids().len(), *chips, "{name}: {verdict:?}");
        assert_eq!(container.chips(), numbers_of(&container.ids()), "{name}");
    }
}

#[test]
fn ff12_every_container_gets_the_nodes_of_its_own_chips_in_any_position() {
    let node = Node::up();
    let shapes: [&[(&str, usize)]; 5] = [
        &[("none", 0)],
        &[("first", 1), ("second", 0)],
        &[("first", 0), ("second", 2)],
        &[("first", 1), ("second", 2)],
        &[("injected", 0), ("first", 1), ("second", 1)],
    ];
    let mut container_of = BTreeMap::new();
    for (number, shape) in shapes.iter().enumerate() {
        let name = format!("shape-{number}");
        let pod = shape
            .iter()
            .fold(Pod::new(&name), |pod, (container, chips)| {
                pod.container(container, u32::try_from(*chips).expect("few"))
            });
        let verdict = node.admit(&pod);
        assert!(verdict.is_admitted(), "{verdict:?}");
        own_nodes_only(&verdict, shape);
        for (container, _) in *shape {
            for id in verdict.container(container).ids() {
                container_of.insert(id, (name.clone(), (*container).to_owned()));
            }
        }
    }
    for held in node.holders_known(8) {
        let id = held["plugin_device_id"].as_str().expect("an id");
        let (pod, container) = &container_of[id];
        assert_eq!(
            (&held["pod"], &held["container"]),
            (&json!(pod), &json!(container)),
            "{id}"
        );
    }
}

#[test]
fn ff12_c14_an_init_container_hands_its_chips_to_the_containers_after_it() {
    let node = Node::up();
    let pod = Pod::new("with-init")
        .init("prepare", 2)
        .container("main", 2);
    let verdict = node.admit(&pod);
    assert!(verdict.is_admitted(), "{verdict:?}");
    assert_eq!(
        verdict.container("prepare").ids(),
        verdict.container("main").ids()
    );
    own_nodes_only(&verdict, &[("prepare", 2), ("main", 2)]);
    let held = node.holders_known(2);
    assert!(
        held.iter().all(|held| held["container"] == "main"),
        "{held:?}"
    );
    assert_eq!(node.allocatable_ids().len(), 8);
}

#[test]
fn ff12_a_sidecar_keeps_its_chip_beside_the_main_container() {
    let node = Node::up();
    let pod = Pod::new("with-sidecar")
        .sidecar("helper", 1)
        .container("main", 2);
    let verdict = node.admit(&pod);
    assert!(verdict.is_admitted(), "{verdict:?}");
    own_nodes_only(&verdict, &[("helper", 1), ("main", 2)]);
    let held = node.holders_known(3);
    let of = |name: &str| held.iter().filter(|held| held["container"] == name).count();
    assert_eq!((of("helper"), of("main")), (1, 2));
}

#[test]
fn ff12_c14_a_repeated_allocate_gives_the_same_answer_and_one_record() {
    let node = Node::up();
    // Pod-resources must list some pod, else it proves nothing.
    node.admitted("present", 1);
    let first = allocate(&node, &["Ascend910-5", "Ascend910-4"]).expect("granted");
    for _ in 0..3 {
        assert_eq!(
            allocate(&node, &["Ascend910-4", "Ascend910-5"]),
            Ok(first.clone())
        );
    }
    assert_eq!(node.held().len(), 3, "one record a chip");
}

#[test]
fn ff12_c30_the_same_allocate_from_eight_threads_at_once_is_one_grant() {
    let node = Node::up();
    node.admitted("present", 1);
    let requests = vec![vec!["Ascend910-3".to_owned(), "Ascend910-6".to_owned()]; 8];
    let answers = allocate_at_once(&node, &requests);
    let first = answers[0].clone().expect("granted");
    for answer in answers {
        assert_eq!(answer, Ok(first.clone()));
    }
    assert_eq!(node.held().len(), 3);
    let commits = node.status()["store"]["last_commit"].as_u64();
    assert!(commits.is_some_and(|last| last > 0));
}

#[test]
fn c30_different_requests_at_once_each_get_their_own_chip() {
    let node = Node::up();
    let requests: Vec<Vec<String>> = (0..8).map(|phy| vec![format!("Ascend910-{phy}")]).collect();
    for (phy, answer) in allocate_at_once(&node, &requests).into_iter().enumerate() {
        let nodes = answer.expect("granted").nodes;
        let chips: Vec<&str> = nodes
            .iter()
            .map(|(_, container, _)| container.as_str())
            .filter(|path| path.ends_with(|last: char| last.is_ascii_digit()))
            .collect();
        assert_eq!(chips, [format!("/dev/davinci{phy}")]);
    }
    let held = node.held();
    assert_eq!(held.len(), 8);
    let mut dies: Vec<String> = held.iter().map(|held| held["die"].to_string()).collect();
    dies.sort();
    dies.dedup();
    assert_eq!(dies.len(), 8);
}

#[test]
fn c13_an_unknown_or_unhealthy_id_is_refused_by_name_and_changes_nothing() {
    let node = Node::up();
    node.sim(&["health", "2", "3"]);
    node.allocatable(7);
    let cases = [
        ("Ascend910-99", "doesn't have device Ascend910-99"),
        ("Ascend310P-0", "doesn't have device Ascend310P-0"),
        (
            "Ascend910-2",
            "device Ascend910-2 is unhealthy: driver health 3",
        ),
    ];
    for (id, expected) in cases {
        let (code, text) = allocate(&node, &["Ascend910-0", id]).expect_err("refused");
        assert!(
            matches!(code, Code::InvalidArgument | Code::FailedPrecondition),
            "{code:?}: {text}"
        );
        assert!(text.contains(expected), "{text}");
    }
    for (ids, expected) in [
        (vec![], "names no device"),
        (vec!["Ascend910-0", "Ascend910-0"], "named twice"),
        (vec![""], "length of device name 0"),
    ] {
        let (code, text) = allocate(&node, &ids).expect_err("refused");
        assert_eq!(code, Code::InvalidArgument, "{text}");
        assert!(text.contains(expected), "{text}");
    }
    assert!(node.held().is_empty());
    assert!(node.audit(&[]).is_empty());
    assert_eq!(node.admitted("after", 1), ["Ascend910-0"]);
}

#[test]
fn a_container_without_its_device_node_is_refused_with_the_path() {
    let node = Node::of("910b3-8x1")
        .flag("health-poll-ms", "60000")
        .ready(8);
    std::fs::remove_file(node.stage.path("dev/davinci_manager")).expect("the node goes");
    let verdict = node.admit(&pod("unlucky", 1));
    assert!(!verdict.is_admitted());
    assert!(
        verdict.message().contains("required_device_missing"),
        "{verdict:?}"
    );
    assert!(verdict.message().contains("davinci_manager"), "{verdict:?}");
    assert!(node.held().is_empty());
}

#[test]
fn a_chip_whose_device_node_is_missing_is_not_offered_until_it_is_there() {
    let node = Node::up();
    let path = node.stage.path("dev/davinci3");
    let aside = node.stage.path("davinci3");
    std::fs::rename(&path, &aside).expect("the node goes");
    node.allocatable(7);
    let chip = node.chip(3);
    assert!(
        chip["reason"]
            .as_str()
            .is_some_and(|why| why.contains("davinci3 does not exist")),
        "{chip}"
    );
    std::fs::rename(&aside, &path).expect("the node comes back");
    node.allocatable(8);
}

#[test]
fn a_pod_beyond_the_capacity_is_refused_by_kubelet_without_any_grant() {
    let node = Node::up();
    node.admitted("most", 7);
    let verdict = node.admit(&pod("too-much", 2));
    assert!(!verdict.is_admitted());
    assert_eq!(node.held().len(), 7);
    assert_eq!(node.admitted("fits", 1).len(), 1);
}

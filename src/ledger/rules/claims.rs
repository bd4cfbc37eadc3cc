//! A grant by kubelet is a claim: rules L-1 and L-3.

use super::*;

#[test]
fn l1_a_held_id_is_not_granted_before_pod_resources_was_asked() {
    let mut desk = Desk::new();
    desk.grant(&[0, 1]);
    assert_eq!(desk.decide(&[1, 2], &Asked::NotYet), Decision::AskKubelet);
}

#[test]
fn l1_an_id_that_pod_resources_lists_is_refused_with_its_holder() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    let census = desk.census(&[("a", &[0]), ("b", &[])]);
    let Decision::Refuse(refusal) = desk.decide(&[0], &Asked::Told(&census)) else {
        panic!("a second holder");
    };
    assert_eq!(
        refusal,
        Refusal::Held {
            id: id(0),
            holder: "ns/a container main".to_owned()
        }
    );
}

#[test]
fn l1_no_answer_and_an_answer_without_pods_are_refusals() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    let silent = Asked::Silent("no answer".to_owned());
    let empty = desk.census(&[]);
    for asked in [silent, Asked::Told(&empty)] {
        let decision = desk.decide(&[0], &asked);
        assert!(
            matches!(decision, Decision::Refuse(Refusal::HolderUnproven { .. })),
            "{decision:?}"
        );
    }
}

#[test]
fn l1_an_id_that_nobody_is_listed_with_goes_to_the_new_holder() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    desk.observe(&[("a", &[0])]);
    let before = desk.holder(0).id;
    let census = desk.census(&[("b", &[])]);
    let decision = desk.decide(&[0], &Asked::Told(&census));
    let events = desk.apply(decision);
    assert!(
        matches!(events.first(), Some(HistoryEvent::Released { .. })),
        "{events:?}"
    );
    assert_ne!(desk.holder(0).id, before);
    assert_eq!(desk.ledger.held().len(), 1);
}

#[test]
fn l1_without_pod_resources_on_the_node_kubelets_claim_stands_alone() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    assert!(matches!(
        desk.decide(&[0], &Asked::NoSource),
        Decision::Grant(_)
    ));
}

#[test]
fn l1_a_chip_that_an_init_container_alone_holds_is_not_given_to_another_pod() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    desk.file += 1;
    let shown = desk.checkpoint(&[("a", &[0])]);
    desk.look(None, Ok(Some(&shown)), None);
    // Pod a is still under admission: its next container may be given the same chip.
    let census = desk.census(&[("a", &[])]);
    assert!(matches!(
        desk.decide(&[0], &Asked::Told(&census)),
        Decision::Grant(_)
    ));
    desk.second += 10;
    desk.look(None, Ok(Some(&shown)), None);
    let census = desk.census(&[("a", &[]), ("b", &[])]);
    assert_eq!(
        desk.decide(&[0], &Asked::Told(&census)),
        Decision::AskCheckpoint
    );
    let refused = desk.decide(&[0], &Asked::ToldAndWritten(&census, &shown));
    assert!(
        matches!(refused, Decision::Refuse(Refusal::Held { .. })),
        "{refused:?}"
    );
    let gone = desk.checkpoint(&[]);
    let granted = desk.decide(&[0], &Asked::ToldAndWritten(&census, &gone));
    assert!(matches!(granted, Decision::Grant(_)), "{granted:?}");
}

#[test]
fn l3_a_grant_that_was_never_started_is_bound_again_under_its_own_record() {
    let mut desk = Desk::new();
    desk.grant(&[0, 1]);
    let before = desk.holder(1).id;
    let census = desk.census(&[("a", &[])]);
    let decision = desk.decide(&[1], &Asked::Told(&census));
    let events = desk.apply(decision);
    assert!(
        matches!(events.as_slice(), [HistoryEvent::GrantRepeated { .. }]),
        "{events:?}"
    );
    assert_eq!(desk.holder(1).id, before);
    assert_eq!(desk.ledger.held().len(), 2);
}

#[test]
fn a_request_is_granted_whole_or_not_at_all() {
    let mut desk = Desk::new();
    desk.grant(&[1]);
    let census = desk.census(&[("a", &[1]), ("b", &[])]);
    let decision = desk.decide(&[0, 1], &Asked::Told(&census));
    assert!(matches!(decision, Decision::Refuse(Refusal::Held { .. })));
    assert_eq!(desk.held(), BTreeSet::from([id(1)]));
}

#[test]
fn unknown_foreign_unhealthy_and_repeated_ids_are_refused_by_name() {
    let desk = Desk::new();
    let refused = |resource: &ResourceName, ids: &[PluginDeviceId], verdict: ChipVerdict| match desk
        .ledger
        .decide(resource, ids, |_| verdict.clone(), &Asked::NotYet)
    {
        Decision::Refuse(refusal) => refusal.to_string(),
        Decision::Grant(_) | Decision::AskKubelet | Decision::AskCheckpoint => {
            panic!("not refused")
        }
    };
    let other = ResourceName::new("huawei.com/Ascend310P").expect("valid");
    let sick = ChipVerdict::Unhealthy("driver health 3".to_owned());
    for (text, part) in [
        (
            refused(&resource(), &[id(9)], ChipVerdict::Healthy),
            "doesn't have device Ascend910-9",
        ),
        (
            refused(&other, &[id(0)], ChipVerdict::Healthy),
            "doesn't have device Ascend910-0",
        ),
        (
            refused(&resource(), &[id(0)], sick),
            "Ascend910-0 is unhealthy: driver health 3",
        ),
        (
            refused(&resource(), &[id(0), id(0)], ChipVerdict::Healthy),
            "named twice",
        ),
        (
            refused(&resource(), &[], ChipVerdict::Healthy),
            "names no device",
        ),
    ] {
        assert!(text.contains(part), "{text}");
    }
}

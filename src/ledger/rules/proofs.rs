//! When a holder counts as gone, and when it does not: rules L-2, L-11 and L-13.

use super::*;

#[test]
fn l2_a_holder_is_released_only_after_thirty_seconds_of_agreeing_absence() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    desk.observe(&[("a", &[0])]);
    let begun = desk.second;
    while desk.ledger.held().len() == 1 {
        let passed = desk.second - begun;
        let released = desk.observe(&[("other", &[])]).released;
        assert_eq!(!released.is_empty(), passed >= 30, "after {passed} s");
    }
}

#[test]
fn l2_a_list_alone_proves_nothing_and_asks_for_a_fresh_checkpoint() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    desk.observe(&[("a", &[0])]);
    let stale = desk.checkpoint(&[]);
    for look in 0..100 {
        let census = desk.census(&[("other", &[])]);
        let before = Some(desk.version());
        let findings = desk.look(Some(&census), Ok(Some(&stale)), before);
        assert_eq!(findings.released, [], "look {look}");
        assert!(look > 0 || findings.refresh);
    }
    assert_eq!(desk.ledger.held().len(), 1);
}

#[test]
fn l2_requests_for_a_fresh_checkpoint_become_rare() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    desk.observe(&[("a", &[0])]);
    let mut requests = 0;
    for _ in 0..360 {
        let census = desk.census(&[("a", &[])]);
        let checkpoint = desk.checkpoint(&[("a", &[0])]);
        let before = Some(desk.version());
        requests += usize::from(
            desk.look(Some(&census), Ok(Some(&checkpoint)), before)
                .refresh,
        );
        desk.second += 9;
    }
    assert!((2..=16).contains(&requests), "{requests} in an hour");
}

#[test]
fn l2_a_list_begun_before_the_answer_proves_nothing() {
    let mut desk = Desk::new();
    let early = desk.census(&[("other", &[])]);
    desk.second += 1;
    desk.grant(&[0]);
    desk.file += 1;
    for _ in 0..50 {
        desk.file += 1;
        let checkpoint = desk.checkpoint(&[]);
        let findings = desk.look(Some(&early), Ok(Some(&checkpoint)), None);
        assert_eq!(findings.released, []);
    }
}

#[test]
fn l2_a_silent_or_missing_view_proves_nothing() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    desk.observe(&[("a", &[0])]);
    for _ in 0..50 {
        desk.file += 1;
        let checkpoint = desk.checkpoint(&[]);
        assert_eq!(desk.look(None, Ok(Some(&checkpoint)), None).released, []);
        let census = desk.census(&[("other", &[])]);
        assert_eq!(desk.look(Some(&census), Err(Unread), None).released, []);
    }
}

#[test]
fn l2_a_chip_with_a_living_process_is_not_released() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    desk.observe(&[("a", &[0])]);
    desk.occupied.insert(die(0));
    assert_eq!(desk.observe_for_proof(&[("other", &[])]), []);
    desk.occupied.clear();
    assert_eq!(desk.observe_for_proof(&[("other", &[])]).len(), 1);
}

#[test]
fn l2_a_chip_whose_processes_cannot_be_read_is_not_released() {
    let mut desk = Desk::new();
    desk.grant(&[0, 1]);
    desk.observe(&[("a", &[0, 1])]);
    // Chip 0 was idle before the pod went, and nobody can tell since.
    desk.unreadable.insert(die(0));
    for _ in 0..10 {
        desk.observe_for_proof(&[("other", &[])]);
    }
    assert_eq!(desk.held(), BTreeSet::from([id(0)]));
    desk.unreadable.clear();
    assert_eq!(desk.observe(&[("other", &[])]).released.len(), 1);
}

#[test]
fn l2_after_a_restart_of_the_agent_a_chip_is_not_idle_before_the_driver_said_so() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    desk.observe(&[("a", &[0])]);
    let mut restarted = desk.restarted();
    restarted.unreadable.insert(die(0));
    assert_eq!(restarted.observe_for_proof(&[("other", &[])]), []);
    restarted.unreadable.clear();
    assert_eq!(restarted.observe_for_proof(&[("other", &[])]).len(), 1);
}

#[test]
fn l2_one_reading_after_the_absence_began_is_enough() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    desk.observe(&[("a", &[0])]);
    desk.observe(&[("other", &[])]);
    desk.unreadable.insert(die(0));
    assert_eq!(desk.observe_for_proof(&[("other", &[])]).len(), 1);
}

#[test]
fn l2_a_card_that_a_complete_enumeration_lacks_needs_no_reading() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    desk.observe(&[("a", &[0])]);
    desk.occupied.insert(die(0));
    desk.observe(&[("a", &[0])]);
    desk.unreadable.insert(die(0));
    // One card does not come up: that tells nothing of who went.
    let mut seen = inventory(vec![chip(1, 1), chip(2, 2), chip(3, 3)]);
    seen.cards_failed = 1;
    desk.processes.take_inventory(&seen);
    assert_eq!(desk.observe_for_proof(&[("other", &[])]), []);
    seen.cards_failed = 0;
    desk.processes.take_inventory(&seen);
    assert_eq!(desk.observe_for_proof(&[("other", &[])]).len(), 1);
}

#[test]
fn l2_a_node_that_lists_no_pod_at_all_needs_ten_minutes() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    desk.observe(&[("a", &[0])]);
    assert_eq!(desk.observe_for_proof(&[]), []);
    desk.second += 600;
    assert_eq!(desk.observe(&[]).released.len(), 1);
}

#[test]
fn l2_an_init_container_that_stands_in_the_checkpoint_alone_keeps_its_chip() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    for _ in 0..20 {
        desk.file += 1;
        let census = desk.census(&[("a", &[])]);
        let checkpoint = desk.checkpoint(&[("a", &[0])]);
        let before = Some(desk.version());
        desk.file += 1;
        assert_eq!(
            desk.look(Some(&census), Ok(Some(&checkpoint)), before)
                .released,
            []
        );
        desk.second += 9;
    }
}

#[test]
fn l11_a_grant_is_confirmed_by_the_checkpoint_or_by_pod_resources() {
    for by_checkpoint in [true, false] {
        let mut desk = Desk::new();
        desk.grant(&[0]);
        assert!(!desk.holder(0).confirmed);
        if by_checkpoint {
            desk.file += 1;
            let checkpoint = desk.checkpoint(&[("a", &[0])]);
            desk.look(None, Ok(Some(&checkpoint)), None);
            assert_eq!(desk.holder(0).owner.pod_uid.as_deref(), Some("uid-a"));
        } else {
            let census = desk.census(&[("a", &[0])]);
            desk.look(Some(&census), Err(Unread), None);
            assert_eq!(desk.holder(0).owner.pod.as_deref(), Some("a"));
        }
        assert!(desk.holder(0).confirmed);
    }
}

#[test]
fn l11_a_checkpoint_older_than_the_grant_confirms_nobody() {
    let mut desk = Desk::new();
    let stale = desk.checkpoint(&[("gone", &[0])]);
    desk.grant(&[0]);
    assert_eq!(desk.look(None, Ok(Some(&stale)), None).confirmed, []);
    assert!(!desk.holder(0).confirmed);
}

#[test]
fn l11_an_unconfirmed_grant_of_a_dead_kubelet_ends_by_proof_and_not_by_age() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    desk.ledger.kubelet_restarted();
    desk.second += 100_000;
    assert_eq!(desk.observe(&[("other", &[])]).released, []);
    assert_eq!(desk.healthy(), [1, 2, 3]);
    assert_eq!(desk.observe_for_proof(&[("other", &[])]).len(), 1);
    assert_eq!(desk.healthy(), [0, 1, 2, 3]);
}

#[test]
fn l13_a_restart_of_the_agent_begins_every_wait_anew() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    desk.observe(&[("a", &[0])]);
    desk.observe(&[("other", &[])]);
    desk.second += 29;
    let mut restarted = desk.restarted();
    assert_eq!(restarted.observe(&[("other", &[])]).released, []);
    assert_eq!(restarted.observe_for_proof(&[("other", &[])]).len(), 1);
}

#[test]
fn the_proof_time_of_the_rules_is_thirty_seconds() {
    assert_eq!(OWNER_PROOF, Duration::from_secs(30));
}

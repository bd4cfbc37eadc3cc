//! Kubelet, store and numbers that changed below the ledger: rules L-10, L-12, L-14 and L-15.

use super::*;

#[test]
fn l10_an_id_that_a_restarted_kubelet_forgot_is_withheld_while_its_pod_lives() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    desk.observe(&[("a", &[0])]);
    desk.ledger.kubelet_restarted();
    desk.observe(&[("a", &[])]);
    assert_eq!(desk.healthy(), [1, 2, 3]);
    assert_eq!(desk.observe_for_proof(&[("a", &[])]), []);
    assert_eq!(desk.healthy(), [1, 2, 3]);
    let Decision::Refuse(Refusal::Unhealthy { .. }) = desk.decide(&[0], &Asked::NotYet) else {
        panic!("granted below a living pod");
    };
    assert_eq!(desk.observe_for_proof(&[("other", &[])]).len(), 1);
    assert_eq!(desk.healthy(), [0, 1, 2, 3]);
}

#[test]
fn l10_a_pod_of_the_same_name_that_was_given_other_chips_is_a_successor() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    desk.observe(&[("web-0", &[0])]);
    desk.ledger.kubelet_restarted();
    desk.grant(&[2]);
    desk.observe(&[("web-0", &[2])]);
    assert_eq!(desk.observe_for_proof(&[("web-0", &[2])]).len(), 1);
    assert_eq!(desk.held(), BTreeSet::from([id(2)]));
}

#[test]
fn l10_a_restarted_kubelet_that_kept_its_records_changes_no_offer() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    desk.observe(&[("a", &[0])]);
    desk.ledger.kubelet_restarted();
    // Right after its start kubelet's List omits pods it has not admitted again yet.
    let census = desk.census(&[]);
    let checkpoint = desk.checkpoint(&[("a", &[0])]);
    desk.look(Some(&census), Ok(Some(&checkpoint)), None);
    assert_eq!(desk.healthy(), [0, 1, 2, 3]);
}

#[test]
fn l10_a_file_that_the_restarted_kubelet_did_not_read_proves_nothing_about_its_records() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    desk.observe(&[("a", &[0])]);
    desk.ledger.kubelet_restarted();
    // The file is damaged: kubelet starts without its records, and writes its own upon our list.
    let census = desk.census(&[("a", &[])]);
    let left_behind = desk.checkpoint(&[("a", &[0])]);
    desk.look(Some(&census), Ok(Some(&left_behind)), None);
    desk.second += 1;
    let census = desk.census(&[("a", &[]), ("b", &[])]);
    let decision = desk.decide(&[0], &Asked::Told(&census));
    assert!(
        matches!(decision, Decision::Refuse(Refusal::HolderUnproven { .. })),
        "{decision:?}"
    );
    let census = desk.census(&[("b", &[])]);
    assert_eq!(
        desk.decide(&[0], &Asked::Told(&census)),
        Decision::AskCheckpoint
    );
    let own = desk.checkpoint(&[]);
    let decision = desk.decide(&[0], &Asked::ToldAndWritten(&census, &own));
    assert!(
        matches!(decision, Decision::Refuse(Refusal::HolderUnproven { .. })),
        "{decision:?}"
    );
    desk.file += 1;
    let own = desk.checkpoint(&[]);
    desk.look(None, Ok(Some(&own)), None);
    assert_eq!(desk.healthy(), [1, 2, 3]);
    assert_eq!(desk.observe_for_proof(&[("a", &[])]), []);
    assert_eq!(desk.healthy(), [1, 2, 3]);
    assert_eq!(desk.observe_for_proof(&[("other", &[])]).len(), 1);
    assert_eq!(desk.healthy(), [0, 1, 2, 3]);
}

#[test]
fn l10_a_file_that_the_restarted_kubelet_writes_again_shows_that_it_kept_its_records() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    desk.observe(&[("a", &[0])]);
    desk.ledger.kubelet_restarted();
    for _ in 0..2 {
        let checkpoint = desk.checkpoint(&[("a", &[0])]);
        desk.look(None, Ok(Some(&checkpoint)), None);
        assert_eq!(desk.healthy(), [0, 1, 2, 3]);
        desk.file += 1;
    }
    // The pod ends, and kubelet grants its chip again.
    desk.second += 1;
    let census = desk.census(&[("other", &[])]);
    let decision = desk.decide(&[0], &Asked::Told(&census));
    assert!(matches!(decision, Decision::Grant(_)), "{decision:?}");
}

#[test]
fn l10_without_an_answer_of_pod_resources_a_forgotten_id_stays_withheld() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    desk.observe(&[("a", &[0])]);
    desk.ledger.kubelet_restarted();
    desk.look(None, Ok(None), None);
    assert_eq!(desk.healthy(), [1, 2, 3]);
}

#[test]
fn l10_after_our_restart_a_kubelet_that_shows_none_of_our_holders_is_not_believed() {
    let mut desk = Desk::new();
    desk.grant(&[0, 1]);
    desk.observe(&[("a", &[0, 1])]);
    let mut desk = desk.restarted();
    // Kubelet lost its checkpoint while nobody looked, and has not been handed pod a yet.
    desk.observe(&[("other", &[])]);
    assert_eq!(desk.healthy(), [2, 3]);
}

#[test]
fn l10_after_our_restart_what_a_continuous_kubelet_released_is_free() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    desk.grant(&[1]);
    desk.observe(&[("a", &[0]), ("b", &[1])]);
    let mut desk = desk.restarted();
    desk.observe(&[("a", &[0])]);
    assert_eq!(desk.healthy(), [0, 1, 2, 3]);
}

#[test]
fn l10_after_our_restart_only_a_holder_as_old_speaks_for_kubelets_records() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    desk.second += 100;
    desk.grant(&[1]);
    desk.observe(&[("b", &[1])]);
    let mut desk = desk.restarted();
    // Kubelet lost its checkpoint between the two grants; pod a is not handed over yet.
    desk.observe(&[("b", &[1])]);
    assert_eq!(desk.healthy(), [1, 2, 3]);
}

#[test]
fn l10_a_holder_whose_name_no_run_learned_is_withheld_until_it_is_proven_gone() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    let mut desk = desk.restarted();
    desk.observe(&[("a", &[])]);
    assert_eq!(desk.healthy(), [1, 2, 3]);
    assert_eq!(desk.observe_for_proof(&[("a", &[])]).len(), 1);
    assert_eq!(desk.healthy(), [0, 1, 2, 3]);
}

#[test]
fn l10_a_claim_on_a_chip_whose_pod_is_listed_without_its_devices_is_refused() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    desk.observe(&[("a", &[0])]);
    let desk = desk.restarted();
    let census = desk.census(&[("a", &[]), ("b", &[])]);
    let decision = desk.decide(&[0], &Asked::Told(&census));
    assert!(
        matches!(decision, Decision::Refuse(Refusal::HolderUnproven { .. })),
        "{decision:?}"
    );
}

#[test]
fn a_grant_whose_commit_came_through_unnoticed_replaces_the_record_it_superseded() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    desk.observe(&[("a", &[0])]);
    let successor = Allocation {
        id: AllocationId(Uuid::from_u128(600)),
        confirmed: false,
        ..desk.holder(0).clone()
    };
    let now = desk.at().boot_time;
    desk.ledger.take_stored([], [successor.clone()], now, None);
    assert_eq!(desk.holder(0).id, successor.id);
    assert_eq!(desk.ledger.held().len(), 1);
}

#[test]
fn l10_a_checkpoint_alone_withholds_only_what_an_earlier_run_granted() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    // The pod was removed before anybody looked, and another one's grant rewrote the file.
    let checkpoint = desk.checkpoint(&[]);
    desk.look(None, Ok(Some(&checkpoint)), None);
    assert_eq!(desk.healthy(), [0, 1, 2, 3]);

    let record = desk.holder(0).clone();
    let mut next_run = Desk::new();
    let now = next_run.at().boot_time;
    next_run.ledger.take_stored([], [record], now, None);
    let checkpoint = next_run.checkpoint(&[]);
    next_run.look(None, Ok(Some(&checkpoint)), None);
    assert_eq!(next_run.healthy(), [1, 2, 3]);
}

#[test]
fn l12_holders_are_adopted_from_kubelets_records_when_the_store_is_lost() {
    let mut desk = Desk::new();
    let findings = desk.observe(&[("a", &[0, 1]), ("b", &[3])]);
    assert_eq!(findings.adopted.len(), 3);
    let adopted = desk.holder(0);
    assert_eq!(adopted.origin, Origin::Adopted);
    assert_eq!(adopted.owner.pod_uid.as_deref(), Some("uid-a"));
    assert_eq!(adopted.owner.pod.as_deref(), Some("a"));
    assert_eq!(desk.observe(&[("a", &[0, 1]), ("b", &[3])]).adopted, []);
    assert_eq!(desk.decide(&[3], &Asked::NotYet), Decision::AskKubelet);
}

#[test]
fn l12_a_holder_is_adopted_even_when_the_store_refuses_and_written_later() {
    let mut desk = Desk::new();
    let census = desk.census(&[("a", &[0])]);
    let at = desk.at();
    let context = ObserveContext {
        scope: &RecordScope::domain("huawei.com"),
        offering: &offering(),
        at,
        proof: OWNER_PROOF,
        census: Some(&census),
        checkpoint: None,
        checkpoint_before: None,
        processes: &ProcessReadings::default(),
    };
    let ids = || {
        (
            AllocationId(Uuid::from_u128(9)),
            GrantId(Uuid::from_u128(9)),
        )
    };
    let findings = desk.ledger.observe(&context, ids);
    desk.ledger.apply_findings(&findings, false, at.boot_time);
    assert_eq!(desk.held(), BTreeSet::from([id(0)]));
    let (put, _, _) = desk.ledger.findings_to_batch(&Findings::default());
    assert_eq!(put.len(), 1);
}

#[test]
fn l14_a_held_id_whose_number_moved_to_another_die_is_not_offered() {
    let mut desk = Desk::new();
    desk.grant(&[2]);
    // Chip 0 is gone and the others moved down by one.
    let chips = vec![chip(1, 0), chip(2, 1), chip(3, 2)];
    let taken = desk.ledger.take_inventory(&inventory(chips), &offering());
    assert!(
        taken
            .events
            .iter()
            .any(|event| matches!(event, HistoryEvent::ChipMoved { .. }))
    );
    let offer = desk.ledger.offer(|_| ChipVerdict::Healthy);
    let devices = offer.get(&resource()).expect("offered");
    let healthy: Vec<&str> = devices
        .iter()
        .filter(|device| device.healthy)
        .map(|device| device.id.as_str())
        .collect();
    // Ascend910-1 is the held die under a new number, Ascend910-2 another die under the held id,
    // Ascend910-3 nobody's.
    assert_eq!(healthy, ["Ascend910-0"]);
    assert_eq!(devices.len(), 4);
}

#[test]
fn l14_a_held_id_whose_chip_vanished_stays_on_the_list() {
    let mut desk = Desk::new();
    desk.grant(&[3]);
    desk.ledger
        .take_inventory(&inventory(vec![chip(0, 0)]), &offering());
    let offer = desk.ledger.offer(|_| ChipVerdict::Healthy);
    let device = offer
        .get(&resource())
        .and_then(|devices| devices.iter().find(|device| device.id == id(3)))
        .expect("still listed");
    assert!(!device.healthy);
}

#[test]
fn l15_a_broken_invariant_withholds_the_chip_and_keeps_everything() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    let twin = Allocation {
        id: AllocationId(Uuid::from_u128(77)),
        ..desk.holder(0).clone()
    };
    let now = desk.at().boot_time;
    let first = desk.holder(0).clone();
    desk.ledger.take_stored([], [first, twin], now, None);
    assert_eq!(desk.ledger.freeze_violations().len(), 1);
    assert_eq!(desk.ledger.freeze_violations().len(), 0);
    assert_eq!(desk.healthy(), [1, 2, 3]);
    assert_eq!(desk.ledger.held().len(), 2);
}

#[test]
fn what_was_lost_between_memory_and_journal_is_found_on_reload() {
    let mut desk = Desk::new();
    desk.grant(&[0]);
    let missed = Allocation {
        id: AllocationId(Uuid::from_u128(500)),
        plugin_device_id: id(1),
        die: die(1),
        phy: PhyId(1),
        ..desk.holder(0).clone()
    };
    let now = desk.at().boot_time;
    desk.ledger.take_stored([], [missed.clone()], now, None);
    desk.ledger.mark_unsaved(&BTreeSet::from([missed.id]));
    assert_eq!(desk.held(), BTreeSet::from([id(0), id(1)]));
    let unsaved: Vec<_> = desk
        .ledger
        .unsaved()
        .into_iter()
        .map(|record| record.id)
        .collect();
    assert_eq!(unsaved, [desk.holder(0).id]);
}

//! Comparing the ledger with kubelet's records: who is confirmed, who is gone, who was missed.
//!
//! Kubelet's views lag behind its grants and are partial while it starts, so one look proves
//! presence but never absence. Proof of absence (rule L-2) takes: a List begun after the answer, a
//! checkpoint written after that List, a list of the chip's processes that was asked for after it and
//! is empty, and 30 s of boot time within this run without a contrary sign. A process on a shared chip does not tell whose it is: it counts against a
//! share only while kubelet shows no other share of the chip whose process it may be. A view that could not be had neither proves nor disproves.

mod sights;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::domain::allocation::{Allocation, Origin, Owner, ReleaseCause};
use crate::domain::history::HistoryEvent;
use crate::domain::ids::{AllocationId, DieId, GrantId, PhyId, PluginDeviceId};
use crate::domain::kubelet_view::{CheckpointVersion, CheckpointView, PodCensus, RecordScope};
use crate::domain::time::{BootTime, Stamp};
use crate::offering::Offering;

use super::book::{Absence, Held, Ledger, Sighting, Withheld};
use super::processes::{ProcessReadings, ProcessSign};
use sights::{Sight, Sights};

/// How long a holder must stay absent before its chip counts as free.
pub const OWNER_PROOF: Duration = Duration::from_secs(30);

/// Longest admission of one pod: kubelet admits without pause, container after container, and an
/// answer of ours takes at most as long.
const ADMISSION: Duration = Duration::from_secs(10);

/// First pause between two requests to kubelet to write its checkpoint anew; doubles up to the cap,
/// because an ordinary init container may rightly stand in the checkpoint alone for hours.
const REFRESH_FIRST: Duration = Duration::from_secs(2);
const REFRESH_CAP: Duration = Duration::from_secs(600);

/// Proof time while pod-resources lists no pod at all, which is also what kubelet answers before its
/// sources are ready; long enough for any start of kubelet.
const EMPTY_LIST_PROOF: Duration = Duration::from_secs(600);

/// What one comparison needs to know.
#[derive(Clone, Copy, Debug)]
pub struct ObserveContext<'a> {
    /// What was read of kubelet's records: they say nothing about holders of other resources.
    pub scope: &'a RecordScope,
    /// How chips are offered in this run.
    pub offering: &'a Offering,
    /// Now.
    pub at: Stamp,
    /// Owner proof time, normally [`OWNER_PROOF`].
    pub proof: Duration,
    /// Pod-resources, when it answered.
    pub census: Option<&'a PodCensus>,
    /// The checkpoint: outer `None` when it could not be read, inner `None` when there is no file.
    pub checkpoint: Option<Option<&'a CheckpointView>>,
    /// Version of the checkpoint file just before the List was begun.
    pub checkpoint_before: Option<CheckpointVersion>,
    /// What was read of the processes on the chips.
    pub processes: &'a ProcessReadings,
}

/// What a comparison found; to be made durable, then applied.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// Grants that kubelet's records show, with what is known of the owner now.
    pub confirmed: Vec<(AllocationId, Owner)>,
    /// Holders kubelet knows and the ledger did not.
    pub adopted: Vec<Allocation>,
    /// Holders proven gone.
    pub released: Vec<AllocationId>,
    /// Kubelet should be made to write its checkpoint anew.
    pub refresh: bool,
    /// Ids whose withholding changed, so that the list must be published.
    pub offer_changed: bool,
    /// Holders that could not be adopted because no chip answers to their id: one line each.
    pub unplaced: Vec<String>,
}

impl Findings {
    /// True when nothing has to be made durable.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.confirmed.is_empty() && self.adopted.is_empty() && self.released.is_empty()
    }
}

impl Ledger {
    /// Kubelet restarted: what the former one knew proves nothing about this one, and every wait
    /// starts anew (rules L-10, L-11, L-13).
    pub fn kubelet_restarted(&mut self) {
        self.held.for_each(|_, held| {
            held.sighting = Sighting::NotSinceRestart;
            held.absence = None;
        });
    }

    /// Compares with kubelet's records. Evidence is noted at once; changes of records come back as
    /// findings.
    pub fn observe(
        &mut self,
        context: &ObserveContext<'_>,
        mut new_ids: impl FnMut() -> (AllocationId, GrantId),
    ) -> Findings {
        let sights = Sights::of(context, self);
        let mut findings = Findings::default();
        let shown = self.dies_with_shown_shares(&sights);
        self.held.for_each(|key, held| {
            if !context.scope.covers(held.record.resource.as_str()) {
                return;
            }
            let sight = sights.sight(held);
            let withheld_before = held.withheld;
            held.admission_over |= context.at.boot_time.since(held.answered) >= ADMISSION;
            if sight.is_shown() {
                note_presence(held, &sight, context, key, &mut findings);
            } else {
                let die = held.record.die;
                let sign = if held.record.share_slot().is_some() && shown.contains(&die) {
                    ProcessSign::Idle
                } else {
                    context.processes.sign(die)
                };
                note_absence(held, &sights, context, (key, sign), &mut findings);
            }
            findings.offer_changed |= held.withheld != withheld_before;
        });
        self.find_unknown_holders(&sights, context, &mut new_ids, &mut findings);
        findings
    }

    /// Chips of which kubelet shows a share now, whose processes those on the chip may be.
    fn dies_with_shown_shares(&self, sights: &Sights<'_>) -> BTreeSet<DieId> {
        let shares = self
            .held
            .values()
            .filter(|held| held.record.share_slot().is_some() && sights.sight(held).is_shown());
        shares.map(|held| held.record.die).collect()
    }

    fn find_unknown_holders(
        &self,
        sights: &Sights<'_>,
        context: &ObserveContext<'_>,
        new_ids: &mut impl FnMut() -> (AllocationId, GrantId),
        findings: &mut Findings,
    ) {
        for (key, owner) in sights.holders() {
            let (resource, id) = key;
            if self.holder(resource, id).is_some() {
                continue;
            }
            let die = sights
                .device_node(resource, id)
                .and_then(|phy| self.die_of_phy(phy))
                .or_else(|| self.place(resource, id).and_then(|place| place.die))
                .or_else(|| self.die_of_name(id, context.offering))
                .or_else(|| {
                    let phy = sights.number_given(resource, id)?;
                    self.die_of_phy(phy)
                });
            let Some(entry) = die.and_then(|die| self.chips.get(&die)) else {
                findings
                    .unplaced
                    .push(format!("{id} of {resource}, held by {owner}"));
                continue;
            };
            let (id_new, grant) = new_ids();
            let record = Allocation {
                id: id_new,
                grant,
                resource: resource.clone(),
                plugin_device_id: id.clone(),
                die: entry.chip.die,
                phy: entry.chip.phy,
                origin: Origin::Adopted,
                granted: context.at,
                confirmed: true,
                owner,
            };
            // Who is proven gone now leaves with this very step and keeps nobody out.
            let holders = self
                .holders_of_die(record.die)
                .map(|held| &held.record)
                .filter(|held| !findings.released.contains(&held.id));
            if holders
                .chain(&findings.adopted)
                .any(|other| other.conflicts_with(&record))
            {
                findings
                    .unplaced
                    .push(format!("{id} of {resource}, held by {}", record.owner));
                continue;
            }
            findings.adopted.push(record);
        }
    }

    /// The chip whose id this would be in another mode.
    fn die_of_name(&self, id: &PluginDeviceId, offering: &Offering) -> Option<DieId> {
        self.chips
            .values()
            .find(|entry| entry.present && offering.may_name(id, &entry.chip))
            .map(|entry| entry.chip.die)
    }

    fn die_of_phy(&self, phy: PhyId) -> Option<DieId> {
        self.chips
            .values()
            .find(|entry| entry.present && entry.chip.phy == phy)
            .map(|entry| entry.chip.die)
    }

    /// The durable form of findings: records to write, records to remove, history.
    #[must_use]
    pub fn findings_to_batch(
        &self,
        findings: &Findings,
    ) -> (Vec<Allocation>, Vec<AllocationId>, Vec<HistoryEvent>) {
        let mut put = Vec::new();
        let mut events = Vec::new();
        for (id, owner) in &findings.confirmed {
            let Some(record) = self.record(*id) else {
                continue;
            };
            put.push(Allocation {
                confirmed: true,
                owner: owner.clone(),
                ..record.clone()
            });
            events.push(HistoryEvent::Confirmed {
                allocation: *id,
                die: record.die,
                owner: owner.clone(),
            });
        }
        for record in &findings.adopted {
            put.push(record.clone());
            events.push(HistoryEvent::Adopted {
                allocation: record.clone(),
            });
        }
        for id in &findings.released {
            let Some(record) = self.record(*id) else {
                continue;
            };
            events.push(HistoryEvent::Released {
                allocation: record.clone(),
                cause: ReleaseCause::ProvenGone,
            });
        }
        put.extend(
            self.held
                .values()
                .filter(|held| !held.durable)
                .map(|held| held.record.clone()),
        );
        (put, findings.released.clone(), events)
    }

    /// Applies findings. When the store refused them (`durable` false), holders are still taken on,
    /// because forgetting one is worse than an unwritten record; nothing is released or confirmed.
    pub fn apply_findings(&mut self, findings: &Findings, durable: bool, now: BootTime) {
        for record in &findings.adopted {
            // Planned to follow a holder that stays now.
            let kept_out = self
                .holders_of_die(record.die)
                .any(|held| held.record.conflicts_with(record));
            if kept_out && !durable {
                continue;
            }
            let mut held = Held::new(record.clone(), now, None);
            held.sighting = Sighting::Shown;
            held.durable = durable;
            self.keep_listed(record);
            self.held.insert(held);
        }
        if !durable {
            return;
        }
        self.all_saved();
        for (id, owner) in &findings.confirmed {
            self.held.change(*id, |held| {
                held.record.confirmed = true;
                held.record.owner = owner.clone();
            });
        }
        for id in &findings.released {
            if let Some(held) = self.held.remove(*id) {
                self.forget_leftover(&held.record);
            }
        }
    }
}

fn note_presence(
    held: &mut Held,
    sight: &Sight<'_>,
    context: &ObserveContext<'_>,
    key: AllocationId,
    findings: &mut Findings,
) {
    held.sighting = held.seen(
        sight.listed.is_some(),
        sight.checkpointed.map(|seen| seen.1),
    );
    held.withheld = None;
    let owner = sight.owner(&held.record.owner);
    if !held.record.confirmed || owner != held.record.owner {
        findings.confirmed.push((key, owner));
    }
    let fresh = context.census.filter(|census| census.begun > held.answered);
    let Some(census) = fresh.filter(|_| sight.listed.is_none()) else {
        held.absence = None;
        return;
    };
    // The checkpoint alone still shows it: an ordinary init container, or an entry kubelet has not
    // rewritten since the pod went. Only a rewrite tells, and the proof begins anew with it.
    let absence = held
        .absence
        .get_or_insert_with(|| first_absence(census.begun, context));
    absence.checkpoint_agrees = false;
    absence.since = census.begun;
    absence.checkpoint_then = context.checkpoint_before;
    request_refresh(absence, context.at.boot_time, findings);
}

fn note_absence(
    held: &mut Held,
    sights: &Sights<'_>,
    context: &ObserveContext<'_>,
    (key, sign): (AllocationId, ProcessSign),
    findings: &mut Findings,
) {
    if matches!(held.sighting, Sighting::OnFile(_)) && sights.reach_back_to(&held.record) {
        // The file was written again without it and still shows others as old: kubelet released it.
        held.sighting = Sighting::Shown;
    }
    if held.sighting != Sighting::Shown {
        withhold_forgotten(held, sights, context);
    }
    let fresh = context.census.filter(|census| census.begun > held.answered);
    let Some(census) = fresh else { return };
    let alive = held.withheld == Some(Withheld::OwnerAlive);
    if alive || sign == ProcessSign::Living {
        held.absence = None;
        return;
    }
    let Some(file) = context.checkpoint else {
        return;
    };
    let absence = held
        .absence
        .get_or_insert_with(|| first_absence(census.begun, context));
    if file.map(|view| view.version) != absence.checkpoint_then {
        absence.checkpoint_agrees = true;
    }
    if !absence.checkpoint_agrees {
        request_refresh(absence, context.at.boot_time, findings);
        return;
    }
    let needed = if census.pods.is_empty() {
        context.proof.max(EMPTY_LIST_PROOF)
    } else {
        context.proof
    };
    let over = context.at.boot_time.since(absence.since) >= needed;
    if over && sign.agrees_since(absence.since) {
        findings.released.push(key);
    }
}

/// Rule L-10: this kubelet has not shown the grant. It may have restarted without its records while
/// the container runs on, and would then take the id for free. That cannot be of a grant of this run,
/// which the same kubelet asked for; of one from an earlier run it can, unless kubelet shows a holder
/// that is as old, so that it has its records since before the grant.
fn withhold_forgotten(held: &mut Held, sights: &Sights<'_>, context: &ObserveContext<'_>) {
    let forgotten = match held.sighting {
        Sighting::NotSinceRestart => true,
        Sighting::Shown | Sighting::NotYet if !held.taken_over => false,
        // The checkpoint would prove the holder gone; one that cannot be read never does.
        _ if context.checkpoint.is_none() => held.withheld.is_some(),
        Sighting::Shown | Sighting::NotYet | Sighting::OnFile(_) => {
            !sights.reach_back_to(&held.record)
        }
    };
    held.withheld = if sights.owner_is_alive(&held.record) {
        Some(Withheld::OwnerAlive)
    } else {
        forgotten.then_some(Withheld::OwnerUnknown)
    };
}

fn first_absence(since: BootTime, context: &ObserveContext<'_>) -> Absence {
    Absence {
        since,
        checkpoint_then: context.checkpoint_before,
        checkpoint_agrees: false,
        next_refresh: context.at.boot_time,
        refresh_pause: REFRESH_FIRST,
    }
}

fn request_refresh(absence: &mut Absence, now: BootTime, findings: &mut Findings) {
    if now < absence.next_refresh {
        return;
    }
    findings.refresh = true;
    absence.next_refresh = now.plus(absence.refresh_pause);
    absence.refresh_pause = (absence.refresh_pause * 2).min(REFRESH_CAP);
}

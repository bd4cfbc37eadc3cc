//! The ledger's state, its invariants and the list it offers to kubelet.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::domain::allocation::Allocation;
use crate::domain::chip::Chip;
use crate::domain::ids::{AllocationId, DieId, PluginDeviceId, ResourceName};
use crate::domain::kubelet_view::{CheckpointVersion, CheckpointView};
use crate::domain::offer::OfferedDevice;
use crate::domain::time::{BootTime, Stamp};

/// The ledger. One task owns it.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    pub(super) chips: BTreeMap<DieId, ChipEntry>,
    pub(super) places: BTreeMap<PluginDeviceId, Place>,
    pub(super) held: BTreeMap<AllocationId, Held>,
    pub(super) frozen: BTreeMap<DieId, String>,
}

/// A chip this agent has met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChipEntry {
    /// Facts of the last inventory that had it.
    pub chip: Chip,
    /// False while the last complete inventory lacked it.
    pub present: bool,
}

/// A plugin device id of this run, and the chip behind it now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Resource it is offered under.
    pub resource: ResourceName,
    /// The chip; `None` while no chip answers to the number.
    pub die: Option<DieId>,
}

/// A held chip with what this run saw of its holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The durable record.
    pub record: Allocation,
    /// When the grant was answered, or when this run took the record over: older views prove nothing.
    pub answered: BootTime,
    /// The checkpoint file's version at that moment: the same version cannot show the grant.
    pub checkpoint_then: Option<CheckpointVersion>,
    /// Whether the records of the running kubelet showed the grant.
    pub sighting: Sighting,
    /// Why the id is not offered although its chip may be well: kubelet does not know of the grant.
    pub withheld: Option<Withheld>,
    /// False while the pod that was given the id may still be under admission, during which kubelet
    /// grants an init container's ids again to the containers that follow.
    pub admission_over: bool,
    /// Since when kubelet's records lack it, without a gap.
    pub absence: Option<Absence>,
    /// False for a record that the store refused to take; it is written with the next batch.
    pub durable: bool,
    /// True for a record of an earlier run: kubelet may have restarted while no agent watched.
    pub taken_over: bool,
}

/// Whether the running kubelet has shown a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sighting {
    /// Not in this run of the agent.
    NotYet,
    /// Only in this version of the checkpoint, which may be a former kubelet's file: a kubelet that finds
    /// it damaged starts without any records and leaves it in place until it writes its own.
    OnFile(CheckpointVersion),
    /// Yes.
    Shown,
    /// Not since kubelet restarted.
    NotSinceRestart,
}

/// Why a held id that kubelet does not know of is not offered (rule L-10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withheld {
    /// Pod-resources lists the holder's pod.
    OwnerAlive,
    /// The holder is not proven gone yet.
    OwnerUnknown,
}

/// Evidence, so far, that a holder is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absence {
    /// Begin of the first List that lacked it.
    pub since: BootTime,
    /// Version of the checkpoint when that List was begun: a later version was written after it.
    pub checkpoint_then: Option<CheckpointVersion>,
    /// True once a later version of the checkpoint lacked it too.
    pub checkpoint_agrees: bool,
    /// When kubelet may next be asked to write its checkpoint anew.
    pub next_refresh: BootTime,
    /// Pause after that request; doubles.
    pub refresh_pause: Duration,
}

impl Held {
    pub(super) fn new(
        record: Allocation,
        answered: BootTime,
        checkpoint_then: Option<CheckpointVersion>,
    ) -> Self {
        Self {
            record,
            answered,
            checkpoint_then,
            sighting: Sighting::NotYet,
            withheld: None,
            admission_over: true,
            absence: None,
            durable: true,
            taken_over: false,
        }
    }
}

impl Held {
    /// What a look at kubelet's records, that shows the grant in the List or in this version of the
    /// checkpoint, tells about the running kubelet. A grant of this run was written into the file by it,
    /// and so was one that stands in two versions.
    pub(super) fn seen(&self, listed: bool, file: Option<CheckpointVersion>) -> Sighting {
        match (self.sighting, file) {
            (Sighting::NotYet, Some(file)) if self.taken_over && !listed => Sighting::OnFile(file),
            (Sighting::NotSinceRestart, Some(file)) if !listed => Sighting::OnFile(file),
            (Sighting::OnFile(first), Some(file)) if first == file && !listed => {
                Sighting::OnFile(file)
            }
            _ => Sighting::Shown,
        }
    }

    /// True while only a file that may be a former kubelet's shows the grant.
    pub(super) fn on_file_only(&self) -> bool {
        matches!(self.sighting, Sighting::OnFile(_))
    }

    /// True for a holder that kubelet's checkpoint showed and pod-resources never did, which is how an
    /// ordinary init container looks.
    pub(super) fn may_be_init_container(&self) -> bool {
        self.admission_over && self.record.confirmed && self.record.owner.pod.is_none()
    }
}

/// Health's word on a chip, as the offer needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChipVerdict {
    /// May be granted.
    Healthy,
    /// Must not be granted, with the reason for people.
    Unhealthy(String),
}

impl Ledger {
    /// The chips met so far.
    #[must_use]
    pub fn chips(&self) -> &BTreeMap<DieId, ChipEntry> {
        &self.chips
    }

    /// The held chips.
    #[must_use]
    pub fn held(&self) -> &BTreeMap<AllocationId, Held> {
        &self.held
    }

    /// The plugin device ids of this run.
    #[must_use]
    pub fn places(&self) -> &BTreeMap<PluginDeviceId, Place> {
        &self.places
    }

    /// Chips for which nothing is granted because an invariant broke.
    #[must_use]
    pub fn frozen(&self) -> &BTreeMap<DieId, String> {
        &self.frozen
    }

    /// Who holds a plugin device id.
    #[must_use]
    pub fn holder_of_id(&self, id: &PluginDeviceId) -> Option<&Held> {
        self.held
            .values()
            .find(|held| held.record.plugin_device_id == *id)
    }

    /// Who holds a chip.
    #[must_use]
    pub fn holder_of_die(&self, die: DieId) -> Option<&Held> {
        self.held.values().find(|held| held.record.die == die)
    }

    /// When the oldest grant was made that this checkpoint shows with the holder the ledger knows:
    /// kubelet has its records since then.
    pub(super) fn oldest_shown(&self, view: &CheckpointView) -> Option<Stamp> {
        self.held
            .values()
            .map(|held| &held.record)
            .filter(|record| {
                view.holder(&record.resource, &record.plugin_device_id)
                    .is_some_and(|entry| Some(&entry.pod_uid) == record.owner.pod_uid.as_ref())
            })
            .map(|record| record.granted)
            .reduce(|one, other| {
                if other.is_no_later_than(&one) {
                    other
                } else {
                    one
                }
            })
    }

    /// Dies in use by the ledger's word.
    #[must_use]
    pub fn held_dies(&self) -> BTreeSet<DieId> {
        self.held.values().map(|held| held.record.die).collect()
    }

    /// The complete list for kubelet. A held id never leaves it; an id follows its die, so that a held
    /// id whose number now belongs to another die is not granted again.
    #[must_use]
    pub fn offer(
        &self,
        verdict: impl Fn(DieId) -> ChipVerdict,
    ) -> BTreeMap<ResourceName, Vec<OfferedDevice>> {
        let holder_by_id: BTreeMap<&PluginDeviceId, &Held> = self
            .held
            .values()
            .map(|held| (&held.record.plugin_device_id, held))
            .collect();
        let holder_by_die: BTreeMap<DieId, &Held> = self
            .held
            .values()
            .map(|held| (held.record.die, held))
            .collect();
        let mut resources: BTreeMap<ResourceName, Vec<OfferedDevice>> = BTreeMap::new();
        for (id, place) in &self.places {
            let holder = holder_by_id.get(id).copied();
            let fault = match (place.die, holder) {
                (None, None) => Some("the driver does not list this chip".to_owned()),
                (None, Some(held)) => Some(format!(
                    "the driver does not list this chip; held by {}",
                    held.record.owner
                )),
                (Some(die), Some(held)) if held.record.die != die => Some(format!(
                    "held by {} for chip {}, which has another number now",
                    held.record.owner, held.record.die
                )),
                (Some(_), Some(held)) if held.withheld.is_some() => Some(format!(
                    "last held by {}, which kubelet no longer knows and which is not proven gone",
                    held.record.owner
                )),
                (Some(die), None) => holder_by_die.get(&die).map(|held| {
                    format!(
                        "its chip is held by {} as {}",
                        held.record.owner, held.record.plugin_device_id
                    )
                }),
                (Some(_), Some(_)) => None,
            };
            let fault = fault.or_else(|| {
                let die = place.die?;
                if let Some(why) = self.frozen.get(&die) {
                    return Some(format!("withheld: {why}"));
                }
                match verdict(die) {
                    ChipVerdict::Healthy => None,
                    ChipVerdict::Unhealthy(reason) => Some(reason),
                }
            });
            let numa_nodes = place
                .die
                .and_then(|die| self.chips.get(&die))
                .map(|entry| entry.chip.numa_nodes.clone())
                .unwrap_or_default();
            resources
                .entry(place.resource.clone())
                .or_default()
                .push(OfferedDevice {
                    id: id.clone(),
                    healthy: fault.is_none(),
                    numa_nodes,
                    reason: fault.unwrap_or_default(),
                });
        }
        resources
    }

    /// Every broken invariant, as text per die. Empty in any state this room can reach by itself.
    #[must_use]
    pub fn violations(&self) -> BTreeMap<DieId, String> {
        let mut found = BTreeMap::new();
        let mut by_die: BTreeMap<DieId, AllocationId> = BTreeMap::new();
        let mut by_id: BTreeMap<&PluginDeviceId, AllocationId> = BTreeMap::new();
        for (key, held) in &self.held {
            let record = &held.record;
            if let Some(other) = by_die.insert(record.die, *key) {
                found.insert(
                    record.die,
                    format!("allocations {other} and {key} both hold it"),
                );
            }
            if let Some(other) = by_id.insert(&record.plugin_device_id, *key) {
                found.insert(
                    record.die,
                    format!(
                        "allocations {other} and {key} both hold the id {}",
                        record.plugin_device_id
                    ),
                );
            }
        }
        found
    }

    /// Stops grants for chips with a broken invariant, keeping everything; returns the new ones. A
    /// frozen chip is never repaired by destroying: a person looks at it, or a restart rebuilds.
    pub fn freeze_violations(&mut self) -> BTreeMap<DieId, String> {
        let fresh: BTreeMap<DieId, String> = self
            .violations()
            .into_iter()
            .filter(|(die, _)| !self.frozen.contains_key(die))
            .collect();
        self.frozen.extend(fresh.clone());
        fresh
    }
}

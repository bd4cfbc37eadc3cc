//! The ledger's state and its invariants.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::domain::allocation::Allocation;
use crate::domain::chip::Chip;
use crate::domain::ids::{AllocationId, DieId, PluginDeviceId, ResourceName, ShareSlot};
use crate::domain::kubelet_view::{CheckpointVersion, CheckpointView};
use crate::domain::time::{BootTime, Stamp};

use super::holders::Holders;

/// The ids of each resource.
pub type Places = BTreeMap<ResourceName, BTreeMap<PluginDeviceId, Place>>;

/// The ledger. One task owns it.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    pub(super) chips: BTreeMap<DieId, ChipEntry>,
    pub(super) places: Places,
    pub(super) held: Holders,
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
    /// The chip; `None` while no chip answers to the id.
    pub die: Option<DieId>,
    /// The slot, when it is a share of the chip and not the whole of it.
    pub share: Option<ShareSlot>,
    /// True for an id that is listed for the sake of its holder alone: this run offers its chip, if it is
    /// there, otherwise.
    pub leftover: bool,
}

impl Place {
    /// The place of a holder whose id this run has not offered so far.
    pub(super) fn leftover(record: &Allocation) -> Self {
        Self {
            die: None,
            share: record.share_slot(),
            leftover: true,
        }
    }
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

    /// The held chips and shares.
    #[must_use]
    pub fn held(&self) -> &BTreeMap<AllocationId, Held> {
        self.held.records()
    }

    /// The plugin device ids of this run, by resource.
    #[must_use]
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// One of them.
    #[must_use]
    pub fn place(&self, resource: &ResourceName, id: &PluginDeviceId) -> Option<&Place> {
        self.places.get(resource)?.get(id)
    }

    /// Chips for which nothing is granted because an invariant broke.
    #[must_use]
    pub fn frozen(&self) -> &BTreeMap<DieId, String> {
        &self.frozen
    }

    /// Who holds a plugin device id of a resource.
    #[must_use]
    pub fn holder(&self, resource: &ResourceName, id: &PluginDeviceId) -> Option<&Held> {
        self.held.of_id(resource, id)
    }

    /// Who holds a chip or shares of it.
    pub fn holders_of_die(&self, die: DieId) -> impl Iterator<Item = &Held> {
        self.held.of_die(die)
    }

    /// When the oldest grant was made that this checkpoint shows with the holder the ledger knows:
    /// kubelet has its records since then.
    pub(super) fn oldest_shown(&self, view: &CheckpointView) -> Option<Stamp> {
        view.entries
            .iter()
            .flat_map(|entry| entry.ids.iter().map(move |id| (entry, id)))
            .filter_map(|(entry, id)| {
                let record = &self.holder(&entry.resource, id)?.record;
                (Some(&entry.pod_uid) == record.owner.pod_uid.as_ref()).then_some(record.granted)
            })
            .reduce(|one, other| {
                if other.is_no_later_than(&one) {
                    other
                } else {
                    one
                }
            })
    }

    /// Every broken invariant, as text per die. Empty in any state this room can reach by itself.
    #[must_use]
    pub fn violations(&self) -> BTreeMap<DieId, String> {
        let mut found = BTreeMap::new();
        for (die, keys) in self.held.dies() {
            let mut slots = BTreeMap::new();
            for key in keys {
                let Some(held) = self.held.get(*key) else {
                    continue;
                };
                let slot = held.record.share_slot();
                let other = match slot {
                    None => slots.values().next().copied(),
                    Some(_) => slots.get(&slot).or(slots.get(&None)).copied(),
                };
                slots.insert(slot, *key);
                if let Some(other) = other {
                    found.insert(*die, format!("allocations {other} and {key} both hold it"));
                }
            }
        }
        for ((_, id), keys) in self.held.ids() {
            let mut keys = keys.iter();
            let (Some(one), Some(other)) = (keys.next(), keys.next()) else {
                continue;
            };
            for key in [one, other] {
                if let Some(held) = self.held.get(*key) {
                    found.insert(
                        held.record.die,
                        format!("allocations {one} and {other} both hold the id {id}"),
                    );
                }
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

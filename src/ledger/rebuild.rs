//! Building the ledger from the journal and the hardware, and keeping its numbers current.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::allocation::Allocation;
use crate::domain::chip::Inventory;
use crate::domain::history::HistoryEvent;
use crate::domain::ids::{AllocationId, DieId};
use crate::domain::kubelet_view::CheckpointVersion;
use crate::domain::time::BootTime;
use crate::offering::{ChipRefused, Offering};

use super::book::{ChipEntry, Held, Ledger, Place};

/// What a new enumeration changed.
#[derive(Clone, Debug, Default)]
pub struct InventoryTaken {
    /// Chips to write.
    pub changed: Vec<ChipEntry>,
    /// History.
    pub events: Vec<HistoryEvent>,
    /// Chips that the mode does not fit; they are known and not offered.
    pub refused: Vec<ChipRefused>,
}

impl Ledger {
    /// Takes over what the journal holds. Called once, and again after a commit whose outcome is not
    /// known: records that are there and not in memory are held from then on.
    pub fn take_stored(
        &mut self,
        chips: impl IntoIterator<Item = ChipEntry>,
        allocations: impl IntoIterator<Item = Allocation>,
        now: BootTime,
        checkpoint_then: Option<CheckpointVersion>,
    ) {
        for stored in chips {
            self.chips.entry(stored.chip.die).or_insert(stored);
        }
        let allocations: Vec<Allocation> = allocations.into_iter().collect();
        let stored: BTreeSet<AllocationId> = allocations.iter().map(|record| record.id).collect();
        for record in allocations {
            let overtaken: Vec<AllocationId> = self
                .holders_of_die(record.die)
                .chain(self.holder(&record.resource, &record.plugin_device_id))
                .map(|held| &held.record)
                .filter(|known| !stored.contains(&known.id) && known.conflicts_with(&record))
                .map(|known| known.id)
                .collect();
            for id in overtaken {
                self.held.remove(id);
            }
            if self.held.get(record.id).is_some() {
                continue;
            }
            self.keep_listed(&record);
            let mut held = Held::new(record, now, checkpoint_then);
            held.taken_over = true;
            self.held.insert(held);
        }
    }

    /// A held id is in the list, whether or not this run would offer it.
    pub(super) fn keep_listed(&mut self, record: &Allocation) {
        let ids = self.places.entry(record.resource.clone()).or_default();
        ids.entry(record.plugin_device_id.clone())
            .or_insert_with(|| Place::leftover(record));
    }

    /// An id that was listed for the sake of its holder alone goes with it.
    pub(super) fn forget_leftover(&mut self, record: &Allocation) {
        let (resource, id) = (&record.resource, &record.plugin_device_id);
        if self.holder(resource, id).is_some() {
            return;
        }
        if let Some(ids) = self.places.get_mut(resource)
            && ids.get(id).is_some_and(|place| place.leftover)
        {
            ids.remove(id);
        }
    }

    /// After a commit whose outcome was not known: every held record that the journal lacks is written
    /// with the next batch.
    pub fn mark_unsaved(&mut self, stored: &BTreeSet<AllocationId>) {
        self.held
            .for_each(|id, held| held.durable = stored.contains(&id));
    }

    /// Records that the journal refused so far.
    #[must_use]
    pub fn unsaved(&self) -> Vec<Allocation> {
        self.held
            .values()
            .filter(|held| !held.durable)
            .map(|held| held.record.clone())
            .collect()
    }

    /// The journal took every record.
    pub fn all_saved(&mut self) {
        self.held.for_each(|_, held| held.durable = true);
    }

    /// Takes over a new enumeration: numbers follow their dies, new chips get their ids, chips that are
    /// gone keep theirs without a chip behind it until the agent restarts. A chip that the mode does not
    /// fit is known and gets none.
    pub fn take_inventory(&mut self, inventory: &Inventory, offering: &Offering) -> InventoryTaken {
        let mut taken = InventoryTaken::default();
        let listed: BTreeSet<DieId> = inventory.chips.iter().map(|chip| chip.die).collect();
        for entry in self.chips.values_mut() {
            if entry.present && !listed.contains(&entry.chip.die) {
                entry.present = false;
                taken.changed.push(entry.clone());
                taken.events.push(HistoryEvent::ChipVanished {
                    die: entry.chip.die,
                    phy: entry.chip.phy,
                });
            }
        }
        for place in self.places.values_mut().flat_map(BTreeMap::values_mut) {
            place.die = None;
        }
        for chip in &inventory.chips {
            let before = self.chips.get(&chip.die);
            match before {
                Some(entry) if entry.chip.phy != chip.phy => {
                    taken.events.push(HistoryEvent::ChipMoved {
                        die: chip.die,
                        from: entry.chip.phy,
                        to: chip.phy,
                    });
                }
                Some(entry) if entry.present => {}
                Some(_) | None => taken.events.push(HistoryEvent::ChipAppeared {
                    die: chip.die,
                    phy: chip.phy,
                    chip_name: chip.chip_name.clone(),
                }),
            }
            let entry = ChipEntry {
                chip: chip.clone(),
                present: true,
            };
            if before != Some(&entry) {
                taken.changed.push(entry.clone());
            }
            self.chips.insert(chip.die, entry);
            match offering.places(chip) {
                Ok(places) => {
                    for place in places {
                        let ids = self.places.entry(place.resource).or_default();
                        let now = Place {
                            die: Some(chip.die),
                            share: place.share,
                            leftover: false,
                        };
                        ids.insert(place.id, now);
                    }
                }
                Err(refused) => taken.refused.push(refused),
            }
        }
        taken
    }
}

//! Building the ledger from the journal and the hardware, and keeping its numbers current.

use std::collections::BTreeSet;

use crate::domain::allocation::Allocation;
use crate::domain::chip::{Chip, Inventory};
use crate::domain::history::HistoryEvent;
use crate::domain::ids::{AllocationId, DieId, IdError, PluginDeviceId, ResourceName};
use crate::domain::kubelet_view::CheckpointVersion;
use crate::domain::time::BootTime;

use super::book::{ChipEntry, Held, Ledger, Place};

/// How resources are named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Naming {
    /// Domain of the resource names, `huawei.com` unless configured.
    pub domain: String,
}

impl Naming {
    /// Resource of a whole chip.
    ///
    /// # Errors
    /// When the configured domain does not make a name kubelet accepts.
    pub fn whole_chip(&self, chip: &Chip) -> Result<ResourceName, IdError> {
        ResourceName::new(format!("{}/{}", self.domain, chip.family.base_name()))
    }
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
            self.held.retain(|id, held| {
                stored.contains(id)
                    || (held.record.die != record.die
                        && held.record.plugin_device_id != record.plugin_device_id)
            });
            if self.held.contains_key(&record.id) {
                continue;
            }
            self.places
                .entry(record.plugin_device_id.clone())
                .or_insert_with(|| Place {
                    resource: record.resource.clone(),
                    die: None,
                });
            let id = record.id;
            let mut held = Held::new(record, now, checkpoint_then);
            held.taken_over = true;
            self.held.insert(id, held);
        }
    }

    /// After a commit whose outcome was not known: every held record that the journal lacks is written
    /// with the next batch.
    pub fn mark_unsaved(&mut self, stored: &BTreeSet<AllocationId>) {
        for (id, held) in &mut self.held {
            held.durable = stored.contains(id);
        }
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
        for held in self.held.values_mut() {
            held.durable = true;
        }
    }

    /// Takes over a new enumeration: numbers follow their dies, new chips get an id, chips that are
    /// gone keep theirs without a chip behind it until the agent restarts. Returns the changed chips
    /// and the history.
    ///
    /// # Errors
    /// When a resource name cannot be made; nothing is changed then.
    pub fn take_inventory(
        &mut self,
        inventory: &Inventory,
        naming: &Naming,
    ) -> Result<(Vec<ChipEntry>, Vec<HistoryEvent>), IdError> {
        let mut named = Vec::with_capacity(inventory.chips.len());
        for chip in &inventory.chips {
            named.push((naming.whole_chip(chip)?, chip));
        }
        let mut changed = Vec::new();
        let mut events = Vec::new();
        let listed: BTreeSet<DieId> = inventory.chips.iter().map(|chip| chip.die).collect();
        for entry in self.chips.values_mut() {
            if entry.present && !listed.contains(&entry.chip.die) {
                entry.present = false;
                changed.push(entry.clone());
                events.push(HistoryEvent::ChipVanished {
                    die: entry.chip.die,
                    phy: entry.chip.phy,
                });
            }
        }
        for place in self.places.values_mut() {
            place.die = None;
        }
        for (resource, chip) in named {
            let before = self.chips.get(&chip.die);
            match before {
                Some(entry) if entry.chip.phy != chip.phy => {
                    events.push(HistoryEvent::ChipMoved {
                        die: chip.die,
                        from: entry.chip.phy,
                        to: chip.phy,
                    });
                }
                Some(entry) if entry.present => {}
                Some(_) | None => events.push(HistoryEvent::ChipAppeared {
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
                changed.push(entry.clone());
            }
            self.chips.insert(chip.die, entry);
            let id = PluginDeviceId::whole_chip(chip.family.base_name(), chip.phy);
            self.places.insert(
                id,
                Place {
                    resource,
                    die: Some(chip.die),
                },
            );
        }
        Ok((changed, events))
    }
}

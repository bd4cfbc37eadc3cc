//! What survives a restart of the daemon: everything about chips and cards, no rules, no users.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Hardware;
use super::reset::{Boot, ResetState};
use super::settings::Settings;
use super::vdevices::Vdevice;
use crate::wire::{Address, Process};

const VERSION: u32 = 3;

/// Why a saved state cannot be taken over.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SavedError {
    /// Written by another version of this program.
    #[error("state has version {found}, this program reads {VERSION}; remove the state file")]
    Version {
        /// Version found.
        found: u32,
    },
    /// Of another machine.
    #[error("state belongs to profile {found}, not {wanted}; remove it or use that profile")]
    Profile {
        /// Profile of the state.
        found: String,
        /// Profile wanted.
        wanted: String,
    },
    /// The profile was changed since.
    #[error(
        "state has {found_chips} chips on {found_cards} cards, the profile {chips} on {cards}; \
         remove the state file"
    )]
    Shape {
        /// Chips of the state.
        found_chips: usize,
        /// Cards of the state.
        found_cards: usize,
        /// Chips of the profile.
        chips: usize,
        /// Cards of the profile.
        cards: usize,
    },
}

/// The saved state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Saved {
    version: u32,
    profile: String,
    boot: String,
    boots: u32,
    upgrading: bool,
    replacements: u32,
    settings: Settings,
    cards: Vec<SavedCard>,
    chips: Vec<SavedChip>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedCard {
    removed: bool,
    hidden: bool,
    init_fails: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedChip {
    phy: u32,
    serial: String,
    die: [u32; 5],
    lost: bool,
    health: u32,
    codes: Vec<u32>,
    processes: Vec<Process>,
    fixed: BTreeMap<String, i64>,
    addresses: [Option<Address>; 2],
    vdevices: Vec<Vdevice>,
    reset: SavedReset,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedReset {
    boot: SavedBoot,
    unbound: bool,
    cycled: bool,
    sticky: BTreeSet<u32>,
    count: u32,
    count_in_use: u32,
}

/// A start that was going on begins anew, since the clock it followed is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SavedBoot {
    Serving,
    Starting(Option<u32>),
    Stopped(u32),
}

impl SavedReset {
    fn of(state: &ResetState) -> Self {
        Self {
            boot: match state.boot {
                Boot::Serving => SavedBoot::Serving,
                Boot::Starting { stops_at, .. } => SavedBoot::Starting(stops_at),
                Boot::Stopped(status) => SavedBoot::Stopped(status),
            },
            unbound: state.unbound,
            cycled: state.cycled,
            sticky: state.sticky.clone(),
            count: state.count,
            count_in_use: state.count_in_use,
        }
    }

    fn give_back(self, state: &mut ResetState) {
        state.boot = match self.boot {
            SavedBoot::Serving => Boot::Serving,
            SavedBoot::Starting(stops_at) => Boot::Starting {
                since: None,
                stops_at,
            },
            SavedBoot::Stopped(status) => Boot::Stopped(status),
        };
        state.unbound = self.unbound;
        state.cycled = self.cycled;
        state.sticky = self.sticky;
        state.count = self.count;
        state.count_in_use = self.count_in_use;
    }
}

impl Hardware {
    /// The state to keep.
    pub(crate) fn save(&self) -> Saved {
        let cards = self.cards.iter().map(|card| SavedCard {
            removed: card.removed,
            hidden: card.hidden,
            init_fails: card.init_fails,
        });
        let chips = self.chips.iter().map(|chip| SavedChip {
            phy: chip.phy,
            serial: chip.serial.clone(),
            die: chip.die,
            lost: chip.lost,
            health: chip.health,
            codes: chip.codes.clone(),
            processes: chip.processes.clone(),
            fixed: chip.fixed.clone(),
            addresses: chip.addresses,
            vdevices: chip.vdevices.clone(),
            reset: SavedReset::of(&chip.reset),
        });
        Saved {
            version: VERSION,
            profile: self.profile.name.clone(),
            boot: self.boot.clone(),
            boots: self.boots,
            upgrading: self.upgrading,
            replacements: self.replacements,
            settings: self.settings.clone(),
            cards: cards.collect(),
            chips: chips.collect(),
        }
    }

    /// Takes a kept state over.
    ///
    /// # Errors
    /// The state is of another version or another machine; nothing has changed.
    pub(crate) fn restore(&mut self, saved: Saved) -> Result<(), SavedError> {
        if saved.version != VERSION {
            return Err(SavedError::Version {
                found: saved.version,
            });
        }
        if saved.profile != self.profile.name {
            return Err(SavedError::Profile {
                found: saved.profile,
                wanted: self.profile.name.clone(),
            });
        }
        if saved.chips.len() != self.chips.len() || saved.cards.len() != self.cards.len() {
            return Err(SavedError::Shape {
                found_chips: saved.chips.len(),
                found_cards: saved.cards.len(),
                chips: self.chips.len(),
                cards: self.cards.len(),
            });
        }
        self.boot = saved.boot;
        self.boots = saved.boots;
        self.upgrading = saved.upgrading;
        self.replacements = saved.replacements;
        self.settings = saved.settings;
        for (card, saved) in self.cards.iter_mut().zip(saved.cards) {
            card.removed = saved.removed;
            card.hidden = saved.hidden;
            card.init_fails = saved.init_fails;
        }
        for (chip, saved) in self.chips.iter_mut().zip(saved.chips) {
            chip.phy = saved.phy;
            chip.serial = saved.serial;
            chip.die = saved.die;
            chip.lost = saved.lost;
            chip.health = saved.health;
            chip.codes = saved.codes;
            chip.processes = saved.processes;
            chip.fixed = saved.fixed;
            chip.addresses = saved.addresses;
            chip.vdevices = saved.vdevices;
            saved.reset.give_back(&mut chip.reset);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use crate::profile::Profile;
    use crate::wire::{Control, IpVersion};

    fn machine(name: &str) -> Hardware {
        Hardware::build(Profile::load(name).unwrap(), "one".to_owned()).unwrap()
    }

    #[test]
    fn a_saved_state_comes_back_whole() {
        let mut before = machine("910b3-8x1");
        for request in [
            Control::Health { chip: 2, level: 3 },
            Control::Replace { chip: 1 },
            Control::Remove { chip: 5 },
            Control::Processes {
                chip: 0,
                count: 3,
                first_pid: None,
            },
            Control::Address {
                chip: 4,
                version: IpVersion::V4,
                address: None,
            },
        ] {
            before
                .control(request, "two".to_owned(), clock::now())
                .unwrap();
        }
        let saved = before.save();
        let mut after = machine("910b3-8x1");
        after.restore(saved.clone()).unwrap();
        assert_eq!(after.save(), saved);
        assert_eq!(after.snapshot(), before.snapshot());
    }

    #[test]
    fn the_state_of_another_machine_is_refused() {
        let saved = machine("a5-8x1").save();
        let refused = machine("910b3-8x1").restore(saved);
        assert!(matches!(refused, Err(SavedError::Profile { .. })));
    }
}

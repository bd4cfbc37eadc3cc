//! What the driver last said of the processes on each chip, as one of the signs that a holder is gone.
//!
//! Invariant: a chip whose processes were not read in this run is `Unread`, never idle. Only a chip
//! that a complete enumeration lacks needs no reading, because nobody can give one.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::chip::Inventory;
use crate::domain::ids::DieId;
use crate::domain::time::BootTime;

/// The readings of this run.
#[derive(Clone, Debug, Default)]
pub struct ProcessReadings {
    last: BTreeMap<DieId, Reading>,
    /// Chips of the last complete enumeration, and those that came since.
    chips: Option<BTreeSet<DieId>>,
}

#[derive(Clone, Copy, Debug)]
enum Reading {
    Living,
    Idle(BootTime),
}

/// What the processes of a chip say about a holder that looks gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessSign {
    /// Somebody is on the chip.
    Living,
    /// Nobody was, when the driver was asked at this time.
    IdleAt(BootTime),
    /// The driver has not told yet.
    Unread,
    /// Processes decide nothing here.
    Idle,
}

impl ProcessSign {
    /// True when no process stands against an absence that began at `since`.
    pub(super) fn agrees_since(self, since: BootTime) -> bool {
        match self {
            Self::Idle => true,
            Self::IdleAt(asked) => asked >= since,
            Self::Living | Self::Unread => false,
        }
    }
}

impl ProcessReadings {
    /// Takes over one list of a chip's processes, for which the driver was asked at `asked`. A list that
    /// could not be had is not a reading, and the last one stays.
    pub fn read(&mut self, die: DieId, asked: BootTime, idle: bool) {
        let reading = if idle {
            Reading::Idle(asked)
        } else {
            Reading::Living
        };
        self.last.insert(die, reading);
    }

    /// Takes over which chips there are. An enumeration that is not complete shows chips that came and
    /// none that went.
    pub fn take_inventory(&mut self, inventory: &Inventory) {
        let listed = inventory.chips.iter().map(|chip| chip.die);
        if inventory.is_complete() {
            let chips = listed.collect::<BTreeSet<_>>();
            self.last.retain(|die, _| chips.contains(die));
            self.chips = Some(chips);
        } else if let Some(chips) = &mut self.chips {
            chips.extend(listed);
        }
    }

    pub(super) fn sign(&self, die: DieId) -> ProcessSign {
        if self
            .chips
            .as_ref()
            .is_some_and(|chips| !chips.contains(&die))
        {
            return ProcessSign::Idle;
        }
        match self.last.get(&die) {
            Some(Reading::Living) => ProcessSign::Living,
            Some(Reading::Idle(asked)) => ProcessSign::IdleAt(*asked),
            None => ProcessSign::Unread,
        }
    }
}

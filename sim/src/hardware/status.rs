//! The whole truth about the machine, for people and tests.

use serde::{Deserialize, Serialize};

use super::Hardware;
use crate::wire::{EventRecord, Generation};

/// The answer to `status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Status {
    /// Profile name.
    pub(crate) profile: String,
    /// Generation answered.
    pub(crate) api: Generation,
    /// Present boot.
    pub(crate) boot: String,
    /// Boots so far.
    pub(crate) boots: u32,
    /// Every call returns "upgrading".
    pub(crate) upgrading: bool,
    /// Every chip the machine was built with.
    pub(crate) chips: Vec<ChipStatus>,
    /// Fault rules, a line each.
    pub(crate) rules: Vec<String>,
    /// Events that slow listeners lost.
    pub(crate) events_dropped: u64,
    /// Last events, oldest first.
    pub(crate) events: Vec<EventRecord>,
}

/// A chip in `status`.
#[expect(
    clippy::struct_excessive_bools,
    reason = "four facts that are true or false each"
)]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChipStatus {
    /// Slot number, never changes.
    pub(crate) slot: usize,
    /// Phy id; absent once removed.
    pub(crate) phy: Option<u32>,
    /// Logic id; absent while hidden or removed.
    pub(crate) logic: Option<u32>,
    /// Card id.
    pub(crate) card: i32,
    /// Device id.
    pub(crate) device: i32,
    /// Serial number.
    pub(crate) serial: String,
    /// Identity, five words in hexadecimal joined by `-`.
    pub(crate) die: String,
    /// PCI address.
    pub(crate) bdf: String,
    /// NUMA node.
    pub(crate) numa: u32,
    /// Off the bus.
    pub(crate) lost: bool,
    /// Its card is hidden.
    pub(crate) hidden: bool,
    /// Its card fails to initialise.
    pub(crate) init_fails: bool,
    /// Its card was taken out.
    pub(crate) removed: bool,
    /// Health level.
    pub(crate) health: u32,
    /// Fault codes, hexadecimal.
    pub(crate) codes: Vec<String>,
    /// Holding processes.
    pub(crate) processes: usize,
}

impl Hardware {
    pub(super) fn status(&self) -> Status {
        Status {
            profile: self.profile.name.clone(),
            api: self.profile.api,
            boot: self.boot.clone(),
            boots: self.boots,
            upgrading: self.upgrading,
            chips: (0..self.chips.len())
                .filter_map(|slot| self.chip_status(slot))
                .collect(),
            rules: self.injection.describe(),
            events_dropped: self.events.dropped(),
            events: self.events.history().cloned().collect(),
        }
    }

    fn chip_status(&self, slot: usize) -> Option<ChipStatus> {
        let chip = self.chips.get(slot)?;
        let card = self.cards.get(chip.card)?;
        let words: Vec<String> = chip.die.iter().map(|word| format!("{word:08X}")).collect();
        Some(ChipStatus {
            slot,
            phy: (!card.removed).then_some(chip.phy),
            logic: self.is_enumerated(slot).then(|| self.logic_of(chip)),
            card: card.id,
            device: chip.device,
            serial: chip.serial.clone(),
            die: words.join("-"),
            bdf: chip.address(),
            numa: chip.numa,
            lost: chip.lost,
            hidden: card.hidden,
            init_fails: card.init_fails,
            removed: card.removed,
            health: chip.health,
            codes: chip
                .codes
                .iter()
                .map(|code| format!("{code:#010X}"))
                .collect(),
            processes: chip.processes.len(),
        })
    }
}

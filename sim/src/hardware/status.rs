//! The whole truth about the machine, for people and tests.

use serde::{Deserialize, Serialize};

use super::Hardware;
use super::vdevices::Vdevice;
use crate::clock::Moment;
use crate::wire::{Caller, EventRecord, Generation};

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
    /// Who the callers are taken for.
    pub(crate) caller: Caller,
    /// vNPUs are for virtual machines.
    pub(crate) vdevices_for_machines: bool,
    /// vNPUs come back after a reboot.
    pub(crate) vdevices_recover: bool,
    /// 0 both dies of a card together, 1 each by itself; absent but on A3.
    pub(crate) multi_die_policy: Option<u32>,
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
    reason = "facts that are true or false each"
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
    /// Boot status; 16 once it serves.
    pub(crate) boot_status: u32,
    /// It stays at this status.
    pub(crate) stopped: bool,
    /// Unbound from the driver.
    pub(crate) unbound: bool,
    /// Resets so far.
    pub(crate) resets: u32,
    /// Resets that met a holder or a vNPU in use.
    pub(crate) resets_in_use: u32,
    /// vNPUs by id.
    pub(crate) vdevices: Vec<Vdevice>,
}

impl Hardware {
    pub(super) fn status(&self, now: Moment) -> Status {
        Status {
            profile: self.profile.name.clone(),
            api: self.profile.api,
            boot: self.boot.clone(),
            boots: self.boots,
            upgrading: self.upgrading,
            caller: self.injection.caller(),
            vdevices_for_machines: self.settings.for_machines,
            vdevices_recover: self.settings.recover,
            multi_die_policy: self.has_a3().then_some(self.settings.multi_die_policy),
            chips: (0..self.chips.len())
                .filter_map(|slot| self.chip_status(slot, now))
                .collect(),
            rules: self.injection.describe(),
            events_dropped: self.events.dropped(),
            events: self.events.history().cloned().collect(),
        }
    }

    fn chip_status(&self, slot: usize, now: Moment) -> Option<ChipStatus> {
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
            boot_status: chip.reset.status(self.settings.boot_ms, now),
            stopped: chip.reset.is_stopped(),
            unbound: chip.reset.unbound,
            resets: chip.reset.count,
            resets_in_use: chip.reset.count_in_use,
            vdevices: chip.vdevices.clone(),
        })
    }
}

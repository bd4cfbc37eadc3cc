//! The numbers of one boot as this process took them at init.

use crate::wire::{CardEntry, ChipEntry, ReturnCode, Snapshot, Unit};

/// How a C caller names hardware.
#[derive(Debug, Clone, Copy)]
pub(crate) enum At {
    /// The whole node.
    Node,
    /// A card id.
    Card(i32),
    /// Card id and device id.
    Device(i32, i32),
    /// Logic id, as the second generation does.
    Logic(i32),
}

/// The tables.
#[derive(Debug)]
pub(crate) struct Tables {
    snapshot: Snapshot,
}

impl Tables {
    pub(super) fn new(snapshot: Snapshot) -> Self {
        Self { snapshot }
    }

    /// Boot they belong to.
    pub(crate) fn boot(&self) -> &str {
        &self.snapshot.boot
    }

    /// Chips the driver saw, failed ones included.
    pub(crate) fn devices(&self) -> u32 {
        self.snapshot.devices
    }

    /// Card ids in list order, -1 for each card that failed.
    pub(crate) fn card_ids(&self) -> Vec<i32> {
        self.snapshot.cards.iter().map(|card| card.id).collect()
    }

    /// Logic ids in ascending order.
    pub(crate) fn logic_ids(&self) -> Vec<i32> {
        let mut ids: Vec<i32> = self
            .chips()
            .filter_map(|(_, chip)| i32::try_from(chip.logic).ok())
            .collect();
        ids.sort_unstable();
        ids
    }

    /// The card of that id; failed cards have none.
    pub(crate) fn card(&self, id: i32) -> Option<&CardEntry> {
        self.snapshot
            .cards
            .iter()
            .find(|card| card.id == id && id >= 0)
    }

    /// The chip with that logic id and its card.
    pub(crate) fn by_logic(&self, logic: u32) -> Option<(&CardEntry, &ChipEntry)> {
        self.chips().find(|(_, chip)| chip.logic == logic)
    }

    /// The chip with that phy id and its card.
    pub(crate) fn by_phy(&self, phy: u32) -> Option<(&CardEntry, &ChipEntry)> {
        self.chips().find(|(_, chip)| chip.phy == phy)
    }

    /// The chip in that slot.
    pub(crate) fn by_slot(&self, slot: usize) -> Option<&ChipEntry> {
        self.chips()
            .map(|(_, chip)| chip)
            .find(|chip| chip.slot == slot)
    }

    /// The chip at card and device id.
    pub(crate) fn chip(&self, card: i32, device: i32) -> Option<&ChipEntry> {
        self.card(card)?
            .chips
            .iter()
            .find(|chip| chip.device == device)
    }

    /// What the caller's numbers stand for.
    pub(crate) fn resolve(&self, at: At) -> Result<Option<Unit>, ReturnCode> {
        let found = match at {
            At::Node => return Ok(None),
            At::Card(id) => self.card(id).map(|card| Unit::Card(card.slot)),
            At::Device(card, device) => match self.chip(card, device) {
                Some(chip) => Some(Unit::Chip(chip.slot)),
                None => self.mcu(card, device),
            },
            At::Logic(logic) => u32::try_from(logic)
                .ok()
                .and_then(|logic| self.by_logic(logic))
                .map(|(_, chip)| Unit::Chip(chip.slot)),
        };
        found.map(Some).ok_or(ReturnCode::INVALID_PARAMETER)
    }

    fn mcu(&self, card: i32, device: i32) -> Option<Unit> {
        let card = self.card(card)?;
        let behind_chips = usize::try_from(device).ok() == Some(card.chips.len());
        (card.mcu && behind_chips).then_some(Unit::Mcu(card.slot))
    }

    fn chips(&self) -> impl Iterator<Item = (&CardEntry, &ChipEntry)> {
        self.snapshot
            .cards
            .iter()
            .flat_map(|card| card.chips.iter().map(move |chip| (card, chip)))
    }
}

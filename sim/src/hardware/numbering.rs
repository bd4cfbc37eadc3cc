//! Which chip has which number now, and the table a library takes at init.

use super::{Card, Chip, Hardware};
use crate::wire::{CardEntry, ChipEntry, Snapshot, Unit};

impl Hardware {
    /// The numbers of this boot as `dcmi_init` finds them: hidden cards are not there at all,
    /// cards that fail (lost ones among them) are counted but have no id.
    pub(super) fn snapshot(&self) -> Snapshot {
        let mut cards: Vec<CardEntry> = self
            .cards
            .iter()
            .enumerate()
            .filter(|(_, card)| card.is_there())
            .map(|(slot, card)| self.card_entry(slot, card))
            .collect();
        cards.sort_by_key(|card| card.id);
        Snapshot {
            boot: self.boot.clone(),
            generation: self.profile.api,
            cards,
            devices: self.device_count(),
        }
    }

    fn card_entry(&self, slot: usize, card: &Card) -> CardEntry {
        let of_card = || {
            self.chips
                .iter()
                .enumerate()
                .filter(|(_, chip)| chip.card == slot)
        };
        let failed = card.init_fails || of_card().all(|(_, chip)| !chip.is_bound());
        let mut chips: Vec<ChipEntry> = of_card()
            .filter(|(_, chip)| !failed && chip.is_bound())
            .map(|(slot, chip)| ChipEntry {
                slot,
                device: chip.device,
                logic: self.logic_of(chip),
                phy: chip.phy,
            })
            .collect();
        chips.sort_by_key(|chip| chip.device);
        CardEntry {
            id: if failed { -1 } else { card.id },
            slot,
            mcu: of_card().any(|(_, chip)| self.kind(chip).mcu) && !failed,
            chips,
        }
    }

    /// Chips the driver sees, failed ones included.
    pub(super) fn device_count(&self) -> u32 {
        let seen = (0..self.chips.len())
            .filter(|slot| self.is_enumerated(*slot))
            .count();
        u32::try_from(seen).unwrap_or(u32::MAX)
    }

    /// The chip is part of the machine as the driver sees it.
    pub(super) fn is_enumerated(&self, slot: usize) -> bool {
        self.chips
            .get(slot)
            .and_then(|chip| self.cards.get(chip.card))
            .is_some_and(Card::is_there)
    }

    /// Logic ids count the chips that are there, in the order the profile gives.
    pub(super) fn logic_of(&self, chip: &Chip) -> u32 {
        let before = self
            .chips
            .iter()
            .enumerate()
            .filter(|(slot, other)| other.logic_rank < chip.logic_rank && self.is_enumerated(*slot))
            .count();
        u32::try_from(before).unwrap_or(u32::MAX)
    }

    /// Slot of the chip that has this phy id now, hidden chips included.
    pub(super) fn slot_of_phy(&self, phy: u32) -> Option<usize> {
        self.chips.iter().position(|chip| {
            chip.phy == phy && self.cards.get(chip.card).is_some_and(|card| !card.removed)
        })
    }

    /// Chips a unit consists of.
    pub(super) fn chips_of(&self, unit: Option<Unit>) -> Vec<usize> {
        match unit {
            None => Vec::new(),
            Some(Unit::Chip(slot)) => vec![slot],
            Some(Unit::Card(card) | Unit::Mcu(card)) => self
                .chips
                .iter()
                .enumerate()
                .filter(|(_, chip)| chip.card == card)
                .map(|(slot, _)| slot)
                .collect(),
        }
    }

    /// Takes a card out for good. Phy ids above those of its chips move down, vdev ids with them.
    pub(super) fn remove_card(&mut self, card: usize) {
        let mut gone: Vec<u32> = self
            .chips
            .iter()
            .filter(|chip| chip.card == card)
            .map(|chip| chip.phy)
            .collect();
        gone.sort_unstable();
        if let Some(card) = self.cards.get_mut(card) {
            card.removed = true;
        }
        for chip in self.chips.iter_mut().filter(|chip| chip.card == card) {
            chip.vdevices.clear();
        }
        for chip in self.chips.iter_mut().filter(|chip| chip.card != card) {
            let below = gone.iter().filter(|phy| **phy < chip.phy).count();
            chip.move_down(u32::try_from(below).unwrap_or(0));
        }
    }
}

impl Card {
    fn is_there(&self) -> bool {
        !self.removed && !self.hidden
    }
}

#[cfg(test)]
mod tests {
    use crate::hardware::Hardware;
    use crate::profile::Profile;

    fn machine(name: &str) -> Hardware {
        Hardware::build(Profile::load(name).unwrap(), "boot".to_owned()).unwrap()
    }

    fn ids(machine: &Hardware) -> Vec<i32> {
        machine
            .snapshot()
            .cards
            .iter()
            .map(|card| card.id)
            .collect()
    }

    #[test]
    fn sparse_card_ids_come_sorted() {
        assert_eq!(ids(&machine("310p3-4x1")), [2, 3, 6, 15104]);
    }

    #[test]
    fn a_failed_card_is_counted_and_comes_first() {
        let mut machine = machine("310p3-4x1");
        machine.cards[2].init_fails = true;
        assert_eq!(ids(&machine), [-1, 2, 3, 15104]);
        assert_eq!(machine.snapshot().devices, 4);
    }

    #[test]
    fn a_hidden_card_is_not_counted_and_keeps_phy_ids_but_not_logic_ids() {
        let mut machine = machine("310p3-4x1");
        machine.cards[1].hidden = true;
        let snapshot = machine.snapshot();
        let numbers: Vec<(u32, u32)> = snapshot
            .cards
            .iter()
            .map(|card| (card.chips[0].logic, card.chips[0].phy))
            .collect();
        assert_eq!(numbers, [(0, 0), (1, 2), (2, 3)]);
        assert_eq!(snapshot.devices, 3);
    }

    #[test]
    fn numbers_above_a_removed_card_move_down() {
        let mut machine = machine("910b3-8x1");
        machine.remove_card(3);
        let snapshot = machine.snapshot();
        let phys: Vec<u32> = snapshot
            .cards
            .iter()
            .map(|card| card.chips[0].phy)
            .collect();
        assert_eq!(phys, [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(ids(&machine), [0, 1, 2, 4, 5, 6, 7]);
        assert_eq!(machine.slot_of_phy(3), Some(4));
    }
}

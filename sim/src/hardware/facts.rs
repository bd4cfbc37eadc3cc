//! What the machine knows about a chip besides what it measures: place, identity, neighbours.

use super::answers::{Answered, INVALID_PARAMETER, NOT_SUPPORTED};
use super::{Chip, Hardware};
use crate::profile::Profile;
use crate::wire::{Answer, Failure, ReturnCode};

const DIE_NDIE: u32 = 0;
const DIE_DDIE: u32 = 2;
/// Mainboards whose cards have no partner.
const MAINBOARDS_WITHOUT_BROTHERS: [u32; 2] = [0x1C, 0x1D];
const PORT_VNIC: u32 = 0;
const PORT_ROCE: u32 = 1;
const IP_V4: u32 = 0;
const IP_V6: u32 = 1;
const IP_ANY: u32 = 2;
/// Types of links that every driver tells alike.
const LINK_SELF: u32 = 0;
const LINK_SYS: u32 = 1;
const LINK_PHB: u32 = 2;

impl Hardware {
    /// The facts of the chip's kind.
    pub(super) fn kind(&self, chip: &Chip) -> &Profile {
        self.profile.kind(chip.like.as_deref())
    }

    pub(super) fn board_info(&self, chip: &Chip) -> Answer {
        let board = &self.kind(chip).board;
        let slot = self
            .cards
            .get(chip.card)
            .map_or(0, |card| i64::from(card.id));
        Answer::Numbers(vec![
            i64::from(chip.board_id),
            i64::from(board.pcb_id),
            i64::from(board.bom_id),
            slot,
        ])
    }

    /// DDIE reads the same source as VDIE; NDIE is an identity of its own.
    pub(super) fn die_id(&self, chip: &Chip, kind: u32) -> Answered {
        if kind > DIE_DDIE {
            return Err(INVALID_PARAMETER);
        }
        if !self.kind(chip).die_types.contains(&kind) {
            return Err(NOT_SUPPORTED);
        }
        let die = chip.die;
        Ok(Answer::Die(if kind == DIE_NDIE {
            die.map(|word| word.rotate_left(8))
        } else {
            die
        }))
    }

    pub(super) fn pcie_info(&self, chip: &Chip) -> Answer {
        let pci = &self.kind(chip).pci;
        let ids = [pci.vendor, pci.subvendor, pci.device, pci.subdevice];
        Answer::Numbers(ids.into_iter().chain(chip.bdf).map(i64::from).collect())
    }

    pub(super) fn label(&self, chip: &Chip) -> Answer {
        let label = &self.kind(chip).label;
        Answer::Label([
            label.product.clone(),
            label.model.clone(),
            label.manufacturer.clone(),
            label.date.clone(),
            chip.serial.clone(),
        ])
    }

    pub(super) fn affinity(&self, chip: &Chip) -> Answered {
        let node = usize::try_from(chip.numa).unwrap_or(usize::MAX);
        let cpus = self
            .profile
            .numa_cpus
            .get(node)
            .ok_or(Failure(ReturnCode::INNER_ERROR))?;
        Ok(Answer::Text(cpus.clone()))
    }

    /// Card id of the chip's partner card, -1 where cards have none.
    pub(super) fn brother_id(&self, chip: &Chip) -> Result<i32, Failure> {
        if !self.kind(chip).board.brothers {
            return Err(NOT_SUPPORTED);
        }
        let mainboard = chip.mainboard_id.unwrap_or_default();
        if MAINBOARDS_WITHOUT_BROTHERS.contains(&mainboard) {
            return Ok(-1);
        }
        match self.cards.get(chip.card).map(|card| card.id) {
            Some(id @ 0..=3) => Ok(id + 4),
            Some(id @ 4..=7) => Ok(id - 4),
            _ => Err(INVALID_PARAMETER),
        }
    }

    /// How the two chips are joined. A query that fails inside still succeeds, with "unknown".
    pub(super) fn link(&self, chip: &Chip, other: usize) -> Answered {
        let links = self.kind(chip).links.as_ref().ok_or(NOT_SUPPORTED)?;
        let other = self.chip(other).ok_or(INVALID_PARAMETER)?;
        let group = |chip: &Chip| chip.phy.checked_div(links.group_size.unwrap_or(u32::MAX));
        let link = if chip.lost || other.lost {
            links.unknown
        } else if chip.phy == other.phy {
            LINK_SELF
        } else if let (Some(link), true) = (links.card, chip.card == other.card) {
            link
        } else if let (Some(link), true) = (
            links.group,
            chip.like == other.like && group(chip) == group(other),
        ) {
            link
        } else if chip.numa == other.numa {
            LINK_PHB
        } else {
            LINK_SYS
        };
        Ok(Answer::Number(i64::from(link)))
    }
}

/// The address of a chip's port. The virtual port never has one here.
pub(super) fn address(chip: &Chip, port: u32, number: i32, version: u32) -> Answered {
    if !matches!(port, PORT_VNIC | PORT_ROCE) || number != 0 {
        return Err(INVALID_PARAMETER);
    }
    let [v4, v6] = chip.addresses;
    let found = match version {
        IP_V4 => v4,
        IP_V6 => v6,
        IP_ANY => v4.or(v6),
        _ => return Err(INVALID_PARAMETER),
    };
    found
        .filter(|_| port == PORT_ROCE)
        .map(Answer::Address)
        .ok_or(Failure(ReturnCode::NOT_CONFIGURED))
}

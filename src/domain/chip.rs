//! A chip: what it is (facts read once per driver initialisation) and how it is (samples).

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::family::ChipFamily;
use super::fault::{FaultCode, HealthLevel};
use super::ids::{CardId, DeviceId, DieId, LogicId, PhyId};
use super::product::Product;

/// Which of the two mutually exclusive driver interfaces answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DcmiApi {
    /// `dcmi_*`, addressed by card and device.
    V1,
    /// `dcmiv2_*`, addressed by logic id.
    V2,
}

impl fmt::Display for DcmiApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        })
    }
}

/// How the driver treats the two dies of an A3 card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DiePolicy {
    /// Both dies are healthy together and mounted together.
    Union,
    /// Each die stands for itself.
    Independent,
}

impl fmt::Display for DiePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Union => "union",
            Self::Independent => "independent",
        })
    }
}

/// PCI address of a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PciAddress {
    /// PCI domain.
    pub domain: u32,
    /// Bus.
    pub bus: u32,
    /// Device on the bus.
    pub device: u32,
    /// Function.
    pub function: u32,
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:04X}:{:02X}:{:02X}.{:X}",
            self.domain, self.bus, self.device, self.function
        )
    }
}

/// What a chip is. Numbers are attributes of one driver initialisation; the die is the identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chip {
    /// Lasting identity.
    pub die: DieId,
    /// Card number; on the second API, where cards have no number, the logic id.
    pub card: CardId,
    /// Chip on the card.
    pub device: DeviceId,
    /// Number in this OS.
    pub logic: LogicId,
    /// Number of the device node.
    pub phy: PhyId,
    /// Family.
    pub family: ChipFamily,
    /// Product within the family.
    pub product: Product,
    /// Name as the driver gives it, for example `910B3`.
    pub chip_name: String,
    /// AI cores; `None` where the driver does not fill the count.
    pub ai_cores: Option<u32>,
    /// Board id, where readable.
    pub board_id: Option<u32>,
    /// Id of the board the cards sit on; 910B, A3 and A5 only. Not kept across restarts.
    pub mainboard_id: Option<u32>,
    /// Kind of super pod the node belongs to; A3 and A5 only. Not kept across restarts.
    pub super_pod_type: Option<u32>,
    /// PCI address, where readable.
    pub pci: Option<PciAddress>,
    /// NUMA nodes the chip is near to; empty when unknown.
    pub numa_nodes: BTreeSet<u32>,
    /// Product text such as `Atlas 300I Pro`, on the families that have one.
    pub product_type: Option<String>,
}

impl Chip {
    /// Takes over what an earlier look at the same die told and this one could not read. What a chip is
    /// never changes, so a call that fails for a moment must not make another product of it.
    pub fn recall(&mut self, before: &Self) {
        if self.die != before.die || self.family != before.family {
            return;
        }
        let mut recalled = fill(&mut self.product_type, before.product_type.as_ref());
        recalled |= fill(&mut self.board_id, before.board_id.as_ref());
        recalled |= fill(&mut self.mainboard_id, before.mainboard_id.as_ref());
        recalled |= fill(&mut self.super_pod_type, before.super_pod_type.as_ref());
        if recalled {
            self.product = before.product;
        }
    }
}

/// True when the fact was missing and is known.
fn fill<T: Clone>(fact: &mut Option<T>, known: Option<&T>) -> bool {
    let missing = fact.is_none() && known.is_some();
    if missing {
        *fact = known.cloned();
    }
    missing
}

/// Everything the driver says about the node in one enumeration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    /// Interface in use.
    pub api: DcmiApi,
    /// DCMI version text; empty when unreadable.
    pub dcmi_version: String,
    /// Driver version text; empty when unreadable.
    pub driver_version: String,
    /// Path of the library in use, symlinks resolved.
    pub library: String,
    /// Cards the driver counts, failed ones included.
    pub cards_counted: u32,
    /// Cards that failed to initialise (-1 in the driver's list).
    pub cards_failed: u32,
    /// Chips that could be read whole, sorted by phy id.
    pub chips: Vec<Chip>,
    /// Chips that exist but could not be read: one line each, for people.
    pub problems: Vec<String>,
    /// Symbols the library lacks, each of which disables one ability.
    pub missing_symbols: Vec<String>,
}

impl Inventory {
    /// True when every counted card came up and every chip could be read.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.cards_failed == 0 && self.problems.is_empty() && !self.chips.is_empty()
    }
}

/// The driver's word on one chip's health at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HealthReading {
    /// The health call answered.
    Level(HealthLevel),
    /// The driver says the card is gone (-8012).
    Lost,
    /// The call failed with this return code.
    Failed(i32),
    /// The call did not come back in time, or an earlier one still hangs.
    NoAnswer,
}

/// One sample of one chip.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChipSample {
    /// The chip.
    pub logic: LogicId,
    /// Health.
    pub health: HealthReading,
    /// Active fault codes; empty when none or when the list could not be read.
    pub codes: Vec<FaultCode>,
    /// Host pids of processes on the chip; `None` when they were not asked for or could not be read,
    /// empty also where the driver has no such call for the chip.
    pub processes: Option<Vec<u32>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soc() -> Chip {
        Chip {
            die: DieId([1; 5]),
            card: CardId(0),
            device: DeviceId(0),
            logic: LogicId(0),
            phy: PhyId(0),
            family: ChipFamily::Ascend310P,
            product: Product::Atlas200ISocA1,
            chip_name: "310P3".to_owned(),
            ai_cores: None,
            board_id: Some(0x1c7),
            mainboard_id: None,
            super_pod_type: None,
            pci: None,
            numa_nodes: BTreeSet::new(),
            product_type: Some("Atlas 200I SoC A1".to_owned()),
        }
    }

    #[test]
    fn facts_that_could_not_be_read_again_are_those_of_the_die() {
        let mut unread = Chip {
            product: Product::Ascend310P,
            board_id: None,
            product_type: None,
            phy: PhyId(3),
            ..soc()
        };
        unread.recall(&soc());
        let expected = Chip {
            phy: PhyId(3),
            ..soc()
        };
        assert_eq!(unread, expected);
    }

    #[test]
    fn facts_of_another_die_or_that_differ_are_not_taken_over() {
        let other = Chip {
            die: DieId([2; 5]),
            product: Product::Ascend310P,
            product_type: None,
            ..soc()
        };
        let mut chip = other.clone();
        chip.recall(&soc());
        assert_eq!(chip, other);
        let told = Chip {
            product: Product::Atlas300IDuo,
            product_type: Some("Atlas 300I Duo".to_owned()),
            ..soc()
        };
        let mut chip = told.clone();
        chip.recall(&soc());
        assert_eq!(chip, told);
    }
}

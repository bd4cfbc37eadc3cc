//! What the node has: which interface answers, which cards exist, what each chip is.
//!
//! One chip that cannot be read becomes one line for people and spoils no other. The steps are apart
//! so that the caller can run each chip's on a thread of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::call::{Address, ChipNames, Dcmi, DieType};
use super::code::{CallError, ReturnCode};
use super::numa;
use crate::domain::chip::{Chip, DcmiApi, Inventory, PciAddress};
use crate::domain::family::ChipFamily;
use crate::domain::ids::{CardId, DeviceId, DieId, LogicId, PhyId};
use crate::domain::product::{Product, ProductFacts};

/// Neither interface came up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("neither interface of the driver came up: {first}; {second}")]
pub struct InitError {
    /// The first interface's failure.
    pub first: CallError,
    /// The second one's.
    pub second: CallError,
}

/// Initialises the driver: the first interface, and if it does not answer, the second. They exclude
/// each other, so exactly one answers on a healthy machine.
///
/// # Errors
/// Neither answered.
pub fn probe(dcmi: &Dcmi) -> Result<DcmiApi, InitError> {
    let Err(first) = dcmi.init(DcmiApi::V1) else {
        return Ok(DcmiApi::V1);
    };
    match dcmi.init(DcmiApi::V2) {
        Ok(()) => Ok(DcmiApi::V2),
        Err(second) => Err(InitError { first, second }),
    }
}

/// Cards and chips that the driver lists, not yet read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Version of the library; empty when unreadable.
    pub dcmi_version: String,
    /// Version of the driver; empty when unreadable.
    pub driver_version: String,
    /// Cards counted, failed ones included.
    pub cards_counted: u32,
    /// Cards counted but not listed.
    pub cards_failed: u32,
    /// Every chip to read.
    pub chips: Vec<Address>,
    /// Cards whose chips could not be listed.
    pub problems: Vec<String>,
}

/// Lists the node's chips. `devices_on_card` asks one card, within a deadline, so that a card that hangs
/// is one line among the problems and hides no other.
///
/// # Errors
/// The list itself could not be had.
pub fn list(
    dcmi: &Dcmi,
    api: DcmiApi,
    devices_on_card: impl Fn(CardId) -> Result<i32, String>,
) -> Result<Listing, CallError> {
    let list = dcmi.list(api)?;
    let present: Vec<i32> = list.ids.iter().copied().filter(|id| *id >= 0).collect();
    let listed = u32::try_from(present.len()).unwrap_or(u32::MAX);
    // The second interface may leave failed devices out of its list, so its count is asked apart.
    // The count is not permitted in a plain container; then the list is all there is to go by.
    let counted = match api {
        DcmiApi::V1 => list.counted,
        DcmiApi::V2 => dcmi
            .device_count()
            .map_or(list.counted, |all| all.max(list.counted)),
    };
    let mut listing = Listing {
        dcmi_version: dcmi.dcmi_version(api).unwrap_or_default(),
        driver_version: dcmi.driver_version(api).unwrap_or_default(),
        cards_counted: counted,
        cards_failed: counted.saturating_sub(listed),
        ..Listing::default()
    };
    for id in present {
        match api {
            DcmiApi::V2 => listing.chips.push(Address::Logic { device: id }),
            DcmiApi::V1 => match devices_on_card(CardId(id)) {
                Ok(devices) => listing
                    .chips
                    .extend((0..devices).map(|device| Address::Card {
                        card: CardId(id),
                        device: DeviceId(device),
                    })),
                Err(error) => listing.problems.push(format!("card {id}: {error}")),
            },
        }
    }
    Ok(listing)
}

/// What one chip says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChipFacts {
    /// Where it was asked.
    pub at: Address,
    /// Its number in this OS.
    pub logic: LogicId,
    /// Its device node.
    pub phy: PhyId,
    /// Its die.
    pub die: DieId,
    /// Its names.
    pub names: ChipNames,
    /// Its board, where readable.
    pub board_id: Option<u32>,
    /// The board its card sits on, where readable.
    pub mainboard_id: Option<u32>,
    /// Kind of super pod, where readable.
    pub super_pod_type: Option<u32>,
    /// Its PCI address, where readable.
    pub pci: Option<PciAddress>,
    /// Its NUMA nodes; empty when unknown.
    pub numa_nodes: BTreeSet<u32>,
    /// Its product text, where it has one.
    pub product_type: Option<String>,
}

/// Reads one chip. `sysfs` is where NUMA facts are read that the driver does not give.
///
/// # Errors
/// A call without which the chip cannot be used failed.
pub fn read_chip(
    dcmi: &Dcmi,
    api: DcmiApi,
    at: Address,
    sysfs: &Path,
) -> Result<ChipFacts, CallError> {
    let logic = dcmi.logic_id(at)?;
    let phy = dcmi.phy_id(api, logic)?;
    let names = dcmi.chip_names(at)?;
    let board_id = dcmi.board_id(at).ok();
    let family = ChipFamily::detect(board_id, &names.chip_name);
    let die = dcmi.die_id(at, die_type_of(family))?;
    let mainboard_id = has_mainboard(family)
        .then(|| dcmi.mainboard_id(at).ok())
        .flatten();
    let super_pod_type = has_super_pod(family)
        .then(|| dcmi.super_pod_type(at).ok())
        .flatten();
    let pci = dcmi.pci_address(at).ok();
    let product_type = match at {
        Address::Card { card, device } => dcmi.product_type(card, device).ok(),
        Address::Logic { .. } => None,
    };
    let near = dcmi
        .near_cpus(at)
        .map(|cpus| numa::nodes_of_cpus(sysfs, &cpus));
    let numa_nodes = match (near, pci) {
        (Ok(nodes), _) if !nodes.is_empty() => nodes,
        (_, Some(pci)) => numa::node_of_device(sysfs, pci),
        (_, None) => BTreeSet::new(),
    };
    Ok(ChipFacts {
        at,
        logic,
        phy,
        die,
        names,
        board_id,
        mainboard_id,
        super_pod_type,
        pci,
        numa_nodes,
        product_type: product_type.filter(|text| !text.is_empty()),
    })
}

fn die_type_of(family: Option<ChipFamily>) -> DieType {
    if family == Some(ChipFamily::Ascend950) {
        DieType::Ddie
    } else {
        DieType::Vdie
    }
}

/// The library writes a log line for each unsupported call, so families that never had an answer are
/// not asked. A chip of no family may be an A3 whose board could not be read.
fn has_mainboard(family: Option<ChipFamily>) -> bool {
    family.is_none_or(|family| {
        matches!(
            family,
            ChipFamily::Ascend910B | ChipFamily::Ascend910A3 | ChipFamily::Ascend950
        )
    })
}

fn has_super_pod(family: Option<ChipFamily>) -> bool {
    family.is_none_or(|family| matches!(family, ChipFamily::Ascend910A3 | ChipFamily::Ascend950))
}

/// Why a listed chip is not in the inventory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChipError {
    /// A call failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The chip's thread did not answer.
    #[error("no answer in time")]
    NoAnswer,
}

/// Puts the whole node together. A chip that is unreadable, nameless, unknown, or claims an identity
/// or number that another chip has, becomes a problem line instead.
#[must_use]
pub fn assemble(
    api: DcmiApi,
    listing: Listing,
    read: Vec<(Address, Result<ChipFacts, ChipError>)>,
    library: String,
    missing_symbols: Vec<String>,
) -> Inventory {
    let mut problems = listing.problems;
    // The vendor takes one readable board for the whole node.
    let board_of_node = read
        .iter()
        .find_map(|(_, facts)| facts.as_ref().ok().and_then(|facts| facts.board_id));
    let chips_on_node = listing.chips.len();
    let mut chips_by_card: BTreeMap<CardId, usize> = BTreeMap::new();
    for card in listing.chips.iter().filter_map(Address::card) {
        *chips_by_card.entry(card).or_default() += 1;
    }
    let mut chips: Vec<Chip> = Vec::new();
    for (at, facts) in read {
        let facts = match facts {
            Ok(facts) => facts,
            Err(error) => {
                problems.push(format!("{at}: {error}"));
                continue;
            }
        };
        let around = Surroundings {
            board_of_node,
            chips_on_card: at
                .card()
                .and_then(|card| chips_by_card.get(&card).copied())
                .unwrap_or(1),
            chips_on_node,
        };
        match chip_of(facts, around) {
            Err(problem) => problems.push(format!("{at}: {problem}")),
            Ok(chip) => match chips.iter().find(|other| clash(other, &chip)) {
                None => chips.push(chip),
                Some(other) => problems.push(format!(
                    "{at}: die {}, logic id {}, phy id {} clash with card {} device {}",
                    chip.die, chip.logic, chip.phy, other.card, other.device
                )),
            },
        }
    }
    chips.sort_by_key(|chip| chip.phy);
    Inventory {
        api,
        dcmi_version: listing.dcmi_version,
        driver_version: listing.driver_version,
        library,
        cards_counted: listing.cards_counted,
        cards_failed: listing.cards_failed,
        chips,
        problems,
        missing_symbols,
    }
}

fn clash(one: &Chip, other: &Chip) -> bool {
    one.die == other.die || one.logic == other.logic || one.phy == other.phy
}

/// What a chip's product depends on besides the chip.
#[derive(Clone, Copy, Debug)]
struct Surroundings {
    board_of_node: Option<u32>,
    chips_on_card: usize,
    chips_on_node: usize,
}

fn chip_of(facts: ChipFacts, around: Surroundings) -> Result<Chip, String> {
    let ChipNames {
        chip_type,
        chip_name,
        ai_cores,
    } = facts.names;
    if chip_type.is_empty() || chip_name.is_empty() {
        return Err(format!(
            "the driver names neither type ({chip_type:?}) nor chip ({chip_name:?})"
        ));
    }
    if facts.die.is_blank() {
        return Err("the driver gives a blank die serial, so the chip has no identity".to_owned());
    }
    let board_id = facts.board_id.or(around.board_of_node);
    let family = ChipFamily::detect(board_id, &chip_name)
        .ok_or_else(|| format!("chip {chip_name:?} is of no family this agent knows"))?;
    let product = Product::detect(&ProductFacts {
        family,
        board_id,
        mainboard_id: facts.mainboard_id,
        product_type: facts.product_type.as_deref(),
        super_pod_type: facts.super_pod_type,
        chips_on_card: around.chips_on_card,
        chips_on_node: around.chips_on_node,
    });
    let (card, device) = match facts.at {
        Address::Card { card, device } => (card, device),
        Address::Logic { device } => (CardId(device), DeviceId(0)),
    };
    Ok(Chip {
        die: facts.die,
        card,
        device,
        logic: facts.logic,
        phy: facts.phy,
        family,
        product,
        chip_name,
        ai_cores,
        board_id: facts.board_id,
        mainboard_id: facts.mainboard_id,
        super_pod_type: facts.super_pod_type,
        pci: facts.pci,
        numa_nodes: facts.numa_nodes,
        product_type: facts.product_type,
    })
}

/// True for the code by which the health call says that the card is gone.
#[must_use]
pub fn means_lost(error: &CallError) -> bool {
    error.code() == Some(ReturnCode::NotReady)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(card: i32, number: u32) -> ChipFacts {
        ChipFacts {
            at: Address::Card {
                card: CardId(card),
                device: DeviceId(0),
            },
            logic: LogicId(number),
            phy: PhyId(number),
            die: DieId([1, 2, 3, 4, number]),
            names: ChipNames {
                chip_type: "Ascend".to_owned(),
                chip_name: "910B3".to_owned(),
                ai_cores: Some(20),
            },
            board_id: Some(0x32),
            mainboard_id: None,
            super_pod_type: None,
            pci: None,
            numa_nodes: BTreeSet::new(),
            product_type: None,
        }
    }

    fn assembled(read: Vec<ChipFacts>) -> Inventory {
        let read = read
            .into_iter()
            .map(|facts| (facts.at, Ok(facts)))
            .collect();
        assemble(
            DcmiApi::V1,
            Listing::default(),
            read,
            String::new(),
            Vec::new(),
        )
    }

    #[test]
    fn an_unreadable_chip_is_one_line_and_spoils_no_other() {
        let lost = Address::Card {
            card: CardId(9),
            device: DeviceId(0),
        };
        let error = CallError::Returned {
            symbol: "dcmi_get_x",
            code: ReturnCode::Inner,
        };
        let read = vec![
            (lost, Err(ChipError::Call(error))),
            (facts(1, 3).at, Ok(facts(1, 3))),
            (facts(2, 0).at, Ok(facts(2, 0))),
        ];
        let listing = Listing {
            cards_counted: 3,
            ..Listing::default()
        };
        let inventory = assemble(DcmiApi::V1, listing, read, String::new(), Vec::new());
        let phys: Vec<_> = inventory.chips.iter().map(|chip| chip.phy.0).collect();
        assert_eq!(phys, [0, 3]);
        assert_eq!(
            inventory.problems,
            ["card 9 device 0: dcmi_get_x returned -8005 (inner error)"]
        );
        assert!(!inventory.is_complete());
    }

    #[test]
    fn a_blank_die_a_nameless_chip_and_an_unknown_family_are_problems() {
        let mut blank = facts(1, 0);
        blank.die = DieId([0; 5]);
        let mut nameless = facts(2, 1);
        nameless.names.chip_type.clear();
        let mut unknown = facts(3, 2);
        unknown.names.chip_name = "H100".to_owned();
        let inventory = assembled(vec![blank, nameless, unknown]);
        assert!(inventory.chips.is_empty());
        assert_eq!(inventory.problems.len(), 3);
        assert!(
            inventory.problems[0].contains("blank die"),
            "{:?}",
            inventory.problems
        );
        assert!(
            inventory.problems[2].contains("H100"),
            "{:?}",
            inventory.problems
        );
    }

    #[test]
    fn two_chips_with_one_identity_are_not_both_taken() {
        let mut twin = facts(2, 1);
        twin.die = facts(1, 0).die;
        let inventory = assembled(vec![facts(1, 0), twin]);
        assert_eq!(inventory.chips.len(), 1);
        assert!(
            inventory.problems[0].contains("clash"),
            "{:?}",
            inventory.problems
        );
    }

    #[test]
    fn a_chip_without_board_id_borrows_the_nodes() {
        let mut a3 = facts(1, 0);
        a3.board_id = Some(0xb1);
        a3.names.chip_name = "Ascend910".to_owned();
        let mut boardless = a3.clone();
        (boardless.board_id, boardless.logic, boardless.phy) = (None, LogicId(1), PhyId(1));
        boardless.die = DieId([9; 5]);
        let inventory = assembled(vec![a3, boardless]);
        let families: Vec<_> = inventory.chips.iter().map(|chip| chip.family).collect();
        assert_eq!(families, [ChipFamily::Ascend910A3; 2]);
        assert_eq!(inventory.chips[1].board_id, None);
    }
}

//! What a machine is: facts of its chip family and the chips in it, read from TOML.
//!
//! Invariant: a `Profile` that exists was checked. Ids, phy numbers and logic numbers are unique,
//! identities too, and every unsupported call named is one the library exports.

mod builtin;
mod chips;
mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::wire::{Address, Generation, Identity, SYMBOLS};
pub use builtin::BUILT_IN;
pub(crate) use chips::phase_of;
pub use chips::{ChipPlan, identity_of};
pub use rows::{Reset, SuperPod, Vnpu, WorkMode};

/// Most chips a machine may have.
pub const MAX_CHIPS: usize = 64;

/// Why a profile cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// Neither a built-in name nor a readable file.
    #[error(
        "cannot read profile {path:?}, and no built-in profile has that name; \
         `ascend-sim profiles` lists them"
    )]
    Unreadable {
        /// What was given.
        path: PathBuf,
        /// Why the file cannot be read.
        #[source]
        source: std::io::Error,
    },
    /// Not the TOML expected.
    #[error("profile {path:?} is malformed")]
    Malformed {
        /// What was given.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// The machine has no chip or too many.
    #[error("a profile has 1 to {MAX_CHIPS} chips, not {count}; set `count` or list `[[chips]]`")]
    ChipCount {
        /// Chips asked for.
        count: usize,
    },
    /// A list that gives one value for each card or chip is too short.
    #[error("`{list}` has {given} entries but {needed} are needed; lengthen it or leave it out")]
    ShortList {
        /// Name of the list.
        list: &'static str,
        /// Its entries.
        given: usize,
        /// Entries needed.
        needed: usize,
    },
    /// Two chips share a number that must be unique.
    #[error("{what} {value} is given to two chips; make it unique")]
    Duplicate {
        /// Kind of number.
        what: &'static str,
        /// The value.
        value: String,
    },
    /// A number is out of its range.
    #[error("{what} must be {range}, not {value}")]
    OutOfRange {
        /// Kind of number.
        what: &'static str,
        /// The value.
        value: i64,
        /// What is allowed.
        range: &'static str,
    },
    /// A call that the library does not export.
    #[error("`unsupported` names {symbol}, which the library does not export")]
    UnknownSymbol {
        /// The name.
        symbol: String,
    },
    /// A chip is like no built-in machine.
    #[error("`like` names '{name}', no built-in profile; `ascend-sim profiles` lists them")]
    UnknownLike {
        /// The name.
        name: String,
    },
    /// A chip is like those of a machine whose driver is of the other generation.
    #[error("`like` names '{name}', whose chips answer the other API generation; choose another")]
    ForeignGeneration {
        /// The name.
        name: String,
    },
    /// An address of the wrong version.
    #[error("`{key}` has {address}, which is of the other version; exchange `v4` and `v6`")]
    AddressVersion {
        /// Key.
        key: &'static str,
        /// Its value.
        address: Address,
    },
    /// A PCI address that is not of the form 0000:c1:00.0.
    #[error("PCI address '{bdf}' is not of the form 0000:c1:00.0")]
    PciAddress {
        /// The text.
        bdf: String,
    },
}

/// A machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Name, also kept in the state file.
    pub name: String,
    /// Generation the driver answers.
    pub api: Generation,
    /// Number of chips; may be left out when every chip is listed.
    pub count: Option<usize>,
    /// Chips on one card.
    #[serde(default = "one")]
    pub devices_per_card: usize,
    /// Every card has a microcontroller.
    #[serde(default)]
    pub mcu: bool,
    /// Card ids in slot order; 0, 1, 2... when left out.
    pub cards: Option<Vec<i32>>,
    /// Phy ids in slot order; 0, 1, 2... when left out.
    pub phy: Option<Vec<u32>>,
    /// Logic ids in slot order; 0, 1, 2... when left out.
    pub logic: Option<Vec<u32>>,
    /// Start of each generated serial number.
    pub serial: String,
    /// Names of the chip.
    pub chip: Identity,
    /// Board facts.
    pub board: Board,
    /// PCI facts.
    pub pci: Pci,
    /// CPU list of each NUMA node; chips are spread evenly over the nodes.
    pub numa_cpus: Vec<String>,
    /// Versions.
    pub versions: Versions,
    /// Label texts; serial numbers come from the chips.
    pub label: Label,
    /// Device nodes.
    pub nodes: Nodes,
    /// Die types `die_v2` answers.
    pub die_types: Vec<u32>,
    /// Device types for which ECC counters exist.
    pub ecc_types: Vec<u32>,
    /// Calls this family answers with -8255.
    #[serde(default)]
    pub unsupported: Vec<String>,
    /// Addresses of the network ports.
    #[serde(default)]
    pub network: Network,
    /// Links between chips; without them the call is not supported.
    pub links: Option<Links>,
    /// How chips can be cut.
    #[serde(default)]
    pub vnpu: Vnpu,
    /// What a reset is like.
    #[serde(default)]
    pub reset: Reset,
    /// Place in a super pod; without it that question is not supported.
    pub super_pod: Option<SuperPod>,
    /// How the chips of a 910 server work together.
    #[serde(default)]
    pub work_mode: WorkMode,
    /// Readings by name.
    pub readings: BTreeMap<String, Reading>,
    /// Chips listed one by one; entry n overrides what was generated for chip n.
    #[serde(default)]
    pub chips: Vec<ChipOverride>,
    /// Built-in profiles that chips are like, by name.
    #[serde(skip)]
    likes: BTreeMap<String, Profile>,
}

/// Board facts.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Board {
    /// Board id.
    pub board_id: u32,
    /// PCB id.
    #[serde(default)]
    pub pcb_id: u32,
    /// BOM id.
    #[serde(default)]
    pub bom_id: u32,
    /// Mainboard id; without it the call is not supported.
    pub mainboard_id: Option<u32>,
    /// Product name; without it the call is not supported.
    pub product_type: Option<String>,
    /// Cards are paired, as on machines with two dies a card.
    #[serde(default)]
    pub brothers: bool,
}

/// PCI facts.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pci {
    /// Vendor id.
    pub vendor: u32,
    /// Device id.
    pub device: u32,
    /// Subsystem vendor id.
    #[serde(default)]
    pub subvendor: u32,
    /// Subsystem device id.
    #[serde(default)]
    pub subdevice: u32,
    /// Bus number of each chip in slot order; generated when left out.
    pub buses: Option<Vec<u32>>,
}

/// Versions.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Versions {
    /// Version of the library.
    pub dcmi: String,
    /// Version of the driver.
    pub driver: String,
}

/// Label texts.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Label {
    /// Product name.
    pub product: String,
    /// Model.
    pub model: String,
    /// Manufacturer.
    pub manufacturer: String,
    /// Manufacturing date.
    pub date: String,
}

/// Device nodes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nodes {
    /// A chip's node is this text followed by its phy id.
    pub chip_prefix: String,
    /// Nodes all chips share; may lie in a directory, as `uburma/uburma0`.
    pub shared: Vec<String>,
}

/// Addresses of the network ports, as the first chip has them. Each further chip counts up.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Of the fourth version of the protocol; nothing is configured when left out.
    pub v4: Option<Address>,
    /// Of the sixth version.
    pub v6: Option<Address>,
}

/// Links between chips, in the driver's numbers for their types.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Links {
    /// Between the chips of a card.
    pub card: Option<u32>,
    /// Between the chips of a group.
    pub group: Option<u32>,
    /// Chips of a group, which are neighbours by phy id; all chips when left out.
    pub group_size: Option<u32>,
    /// What the driver tells when it cannot find out.
    pub unknown: u32,
}

/// A reading: fixed, or a wave around a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Reading {
    /// Always this.
    Fixed(i64),
    /// A sine wave whose phase depends on the chip's serial.
    Wave(Wave),
}

/// A wave around a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wave {
    /// Middle.
    pub middle: i64,
    /// Greatest distance from the middle.
    pub swing: i64,
    /// Length of one period in seconds.
    pub period_s: u32,
}

/// Facts of one chip that differ from what is generated.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChipOverride {
    /// Card id.
    pub card: Option<i32>,
    /// Device id in the card.
    pub device: Option<i32>,
    /// Phy id.
    pub phy: Option<u32>,
    /// Logic id.
    pub logic: Option<u32>,
    /// Serial number.
    pub serial: Option<String>,
    /// Identity; derived from the serial when left out.
    pub die: Option<[u32; 5]>,
    /// PCI address such as 0000:c1:00.0.
    pub bdf: Option<String>,
    /// NUMA node.
    pub numa: Option<u32>,
    /// Address of the network port, fourth version.
    pub v4: Option<Address>,
    /// Address of the network port, sixth version.
    pub v6: Option<Address>,
    /// Built-in profile that tells what the chip is: names, board, readings, unsupported calls.
    pub like: Option<String>,
    /// Chip name.
    pub chip_name: Option<String>,
    /// Name of the NPU inside.
    pub npu_name: Option<String>,
    /// AI cores.
    pub aicore_count: Option<u32>,
    /// Board id.
    pub board_id: Option<u32>,
    /// Mainboard id.
    pub mainboard_id: Option<u32>,
    /// Product name of the card.
    pub product_type: Option<String>,
}

impl Profile {
    /// Reads the built-in profile of that name, or the file.
    ///
    /// # Errors
    /// There is no such profile, or it does not describe a possible machine.
    pub fn load(name_or_path: &str) -> Result<Self, ProfileError> {
        let path = PathBuf::from(name_or_path);
        let built_in = BUILT_IN.iter().find(|(name, _)| *name == name_or_path);
        match built_in {
            Some((_, text)) => Self::parse(&path, text),
            None => match std::fs::read_to_string(&path) {
                Ok(text) => Self::parse(&path, &text),
                Err(source) => Err(ProfileError::Unreadable { path, source }),
            },
        }
    }

    /// Reads a profile from its text; `path` only names it in errors.
    ///
    /// # Errors
    /// The text is malformed or does not describe a possible machine.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ProfileError> {
        let mut profile = Self::read(path, text)?;
        profile.find_likes()?;
        profile.check()?;
        Ok(profile)
    }

    /// The facts of a chip's kind: those of the profile it is like, or this one's.
    pub(crate) fn kind(&self, like: Option<&str>) -> &Self {
        like.and_then(|name| self.likes.get(name)).unwrap_or(self)
    }

    /// Device nodes that chips share, those of every kind of chip here.
    pub(crate) fn shared_nodes(&self) -> impl Iterator<Item = &String> {
        let kinds = std::iter::once(self).chain(self.likes.values());
        kinds.flat_map(|kind| kind.nodes.shared.iter())
    }

    fn read(path: &Path, text: &str) -> Result<Self, ProfileError> {
        toml::from_str(text).map_err(|source| ProfileError::Malformed {
            path: path.to_path_buf(),
            source: Box::new(source),
        })
    }

    /// Only what the named profile says at its top is taken, so nothing is followed further.
    fn find_likes(&mut self) -> Result<(), ProfileError> {
        for name in self.chips.iter().filter_map(|chip| chip.like.as_ref()) {
            let (known, text) = BUILT_IN
                .iter()
                .find(|(known, _)| known == name)
                .ok_or_else(|| ProfileError::UnknownLike { name: name.clone() })?;
            let kind = Self::read(Path::new(known), text)?;
            if kind.api != self.api {
                return Err(ProfileError::ForeignGeneration { name: name.clone() });
            }
            self.likes.insert(name.clone(), kind);
        }
        Ok(())
    }

    /// The level of a reading: its value, or the middle of its wave.
    pub(crate) fn level_of(&self, reading: &str) -> Option<i64> {
        self.readings.get(reading).map(|reading| match reading {
            Reading::Fixed(value) => *value,
            Reading::Wave(wave) => wave.middle,
        })
    }

    fn check(&self) -> Result<(), ProfileError> {
        let symbols: BTreeSet<&str> = SYMBOLS.iter().copied().collect();
        match self
            .unsupported
            .iter()
            .find(|symbol| !symbols.contains(symbol.as_str()))
        {
            Some(symbol) => {
                return Err(ProfileError::UnknownSymbol {
                    symbol: symbol.clone(),
                });
            }
            None => self.plan_chips()?,
        };
        Ok(())
    }
}

fn one() -> usize {
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_profile_is_a_possible_machine() {
        for (name, text) in BUILT_IN {
            let profile = Profile::parse(Path::new(name), text).unwrap();
            assert_eq!(&profile.name, name);
        }
    }

    #[test]
    fn a_chip_is_like_a_built_in_machine_of_its_generation_or_refused() {
        let with = |like: &str| {
            let (name, text) = BUILT_IN[0];
            Profile::parse(
                Path::new(name),
                &format!("{text}\n[[chips]]\nlike = '{like}'\n"),
            )
        };
        assert_eq!(with("310p3-4x1").unwrap().likes.len(), 1);
        let unknown = with("310p3");
        assert!(matches!(unknown, Err(ProfileError::UnknownLike { .. })));
        let foreign = with("a5-8x1");
        assert!(matches!(
            foreign,
            Err(ProfileError::ForeignGeneration { .. })
        ));
    }

    #[test]
    fn an_unknown_key_is_refused() {
        let (name, text) = BUILT_IN[0];
        let text = text.replace("count =", "conut =");
        let refused = Profile::parse(Path::new(name), &text);
        assert!(matches!(refused, Err(ProfileError::Malformed { .. })));
    }

    #[test]
    fn a_missing_file_names_the_list_of_profiles() {
        let refused = Profile::load("no-such-profile").unwrap_err();
        assert!(refused.to_string().contains("ascend-sim profiles"));
    }
}

//! From the short form of a profile to one plan for each chip.

use std::collections::BTreeSet;

use super::{ChipOverride, MAX_CHIPS, Profile, ProfileError};
use crate::wire::{Address, Identity};

const MAX_DEVICES_PER_CARD: usize = 16;
const HIGHEST_ID: u32 = 255;
const FIRST_GENERATED_BUS: u32 = 0x21;

/// One chip as the machine is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChipPlan {
    /// Card id.
    pub card: i32,
    /// Device id in the card.
    pub device: i32,
    /// Phy id.
    pub phy: u32,
    /// Logic id while all chips are present.
    pub logic: u32,
    /// Serial number.
    pub serial: String,
    /// Identity.
    pub die: [u32; 5],
    /// PCI domain, bus, device and function.
    pub bdf: [u32; 4],
    /// NUMA node.
    pub numa: u32,
    /// Built-in profile that tells what the chip is.
    pub like: Option<String>,
    /// Names and AI cores.
    pub identity: Identity,
    /// Board id.
    pub board_id: u32,
    /// Mainboard id, where the driver tells it.
    pub mainboard_id: Option<u32>,
    /// Product name, where the driver tells it.
    pub product_type: Option<String>,
    /// Addresses of the network port, fourth and sixth version of the protocol.
    pub addresses: [Option<Address>; 2],
}

/// The identity a serial number stands for: five words, stable across runs and machines.
#[must_use]
pub fn identity_of(serial: &str) -> [u32; 5] {
    let seed = hash(serial);
    std::array::from_fn(|word| {
        let mixed = mix(seed.wrapping_add(u64::try_from(word).unwrap_or(0)));
        u32::try_from(mixed >> 32).unwrap_or(0) | 1
    })
}

/// Where in its period the wave of a reading starts, for a chip of this serial number.
pub(crate) fn phase_of(serial: &str, reading: &str) -> u64 {
    hash(serial).rotate_left(17) ^ hash(reading)
}

/// A 64-bit hash (FNV-1a, then mixed) that does not change between versions of this program.
fn hash(text: &str) -> u64 {
    let fnv = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    mix(fnv)
}

fn mix(seed: u64) -> u64 {
    let step = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let step = (step ^ (step >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let step = (step ^ (step >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    step ^ (step >> 31)
}

impl Profile {
    /// One plan for each chip in slot order.
    ///
    /// # Errors
    /// The profile does not describe a possible machine.
    pub fn plan_chips(&self) -> Result<Vec<ChipPlan>, ProfileError> {
        let count = self.count.unwrap_or(0).max(self.chips.len());
        if count == 0 || count > MAX_CHIPS {
            return Err(ProfileError::ChipCount { count });
        }
        if self.devices_per_card == 0 || self.devices_per_card > MAX_DEVICES_PER_CARD {
            return Err(ProfileError::OutOfRange {
                what: "devices_per_card",
                value: i64::try_from(self.devices_per_card).unwrap_or(i64::MAX),
                range: "1 to 16",
            });
        }
        let plans = (0..count)
            .map(|slot| self.plan_chip(slot, count))
            .collect::<Result<Vec<_>, _>>()?;
        check_unique(&plans)?;
        Ok(plans)
    }

    fn plan_chip(&self, slot: usize, count: usize) -> Result<ChipPlan, ProfileError> {
        let given = self.chips.get(slot).cloned().unwrap_or_default();
        let card_slot = slot / self.devices_per_card;
        let card = match given.card {
            Some(card) => card,
            None => self.listed("cards", self.cards.as_deref(), card_slot)?,
        };
        let device = given
            .device
            .unwrap_or_else(|| narrow(slot % self.devices_per_card));
        let phy = match given.phy {
            Some(phy) => phy,
            None => self.listed("phy", self.phy.as_deref(), slot)?,
        };
        let logic = match given.logic {
            Some(logic) => logic,
            None => self.listed("logic", self.logic.as_deref(), slot)?,
        };
        for (what, value) in [("phy id", phy), ("logic id", logic)] {
            if value > HIGHEST_ID {
                return Err(ProfileError::OutOfRange {
                    what,
                    value: i64::from(value),
                    range: "0 to 255",
                });
            }
        }
        if card < 0 || device < 0 {
            return Err(ProfileError::OutOfRange {
                what: "card or device id",
                value: i64::from(card.min(device)),
                range: "0 or more",
            });
        }
        let kind = self.kind(given.like.as_deref());
        let serial = given
            .serial
            .clone()
            .unwrap_or_else(|| format!("{}{slot:04}", kind.serial));
        Ok(ChipPlan {
            card,
            device,
            phy,
            logic,
            die: given.die.unwrap_or_else(|| identity_of(&serial)),
            serial,
            bdf: self.plan_address(slot, &given)?,
            numa: given.numa.unwrap_or_else(|| self.plan_numa(slot, count)),
            identity: plan_identity(&kind.chip, &given),
            board_id: given.board_id.unwrap_or(kind.board.board_id),
            mainboard_id: given.mainboard_id.or(kind.board.mainboard_id),
            product_type: given
                .product_type
                .or_else(|| kind.board.product_type.clone()),
            addresses: [
                plan_port("v4", given.v4, kind.network.v4, slot)?,
                plan_port("v6", given.v6, kind.network.v6, slot)?,
            ],
            like: given.like,
        })
    }

    fn listed<T>(
        &self,
        list: &'static str,
        values: Option<&[T]>,
        slot: usize,
    ) -> Result<T, ProfileError>
    where
        T: Copy + TryFrom<usize> + Default,
    {
        match values {
            None => Ok(T::try_from(slot).unwrap_or_default()),
            Some(values) => values
                .get(slot)
                .copied()
                .ok_or_else(|| ProfileError::ShortList {
                    list,
                    given: values.len(),
                    needed: self.count.unwrap_or(0).max(self.chips.len()),
                }),
        }
    }

    fn plan_address(&self, slot: usize, given: &ChipOverride) -> Result<[u32; 4], ProfileError> {
        match &given.bdf {
            Some(bdf) => {
                parse_address(bdf).ok_or_else(|| ProfileError::PciAddress { bdf: bdf.clone() })
            }
            None => match &self.pci.buses {
                Some(buses) => Ok([0, self.listed("pci.buses", Some(buses), slot)?, 0, 0]),
                None => Ok([0, FIRST_GENERATED_BUS + narrow::<u32>(slot * 2), 0, 0]),
            },
        }
    }

    fn plan_numa(&self, slot: usize, count: usize) -> u32 {
        narrow(slot * self.numa_cpus.len() / count)
    }
}

fn plan_identity(kind: &Identity, given: &ChipOverride) -> Identity {
    Identity {
        chip_name: given.chip_name.as_ref().unwrap_or(&kind.chip_name).clone(),
        npu_name: given.npu_name.as_ref().unwrap_or(&kind.npu_name).clone(),
        aicore_count: given.aicore_count.unwrap_or(kind.aicore_count),
        ..kind.clone()
    }
}

fn plan_port(
    key: &'static str,
    given: Option<Address>,
    first: Option<Address>,
    slot: usize,
) -> Result<Option<Address>, ProfileError> {
    let planned = given.or_else(|| first.map(|first| first.after(narrow(slot))));
    match planned {
        Some(address) if address.is_v6() != (key == "v6") => {
            Err(ProfileError::AddressVersion { key, address })
        }
        planned => Ok(planned),
    }
}

/// Slots are below `MAX_CHIPS`, so this never loses a value.
fn narrow<T: TryFrom<usize> + Default>(slot: usize) -> T {
    T::try_from(slot).unwrap_or_default()
}

fn parse_address(bdf: &str) -> Option<[u32; 4]> {
    let (domain, rest) = bdf.split_once(':')?;
    let (bus, rest) = rest.split_once(':')?;
    let (device, function) = rest.split_once('.')?;
    let hex = |text: &str| u32::from_str_radix(text, 16).ok();
    Some([hex(domain)?, hex(bus)?, hex(device)?, hex(function)?])
}

fn check_unique(plans: &[ChipPlan]) -> Result<(), ProfileError> {
    refuse_twins("phy id", plans.iter().map(|plan| plan.phy.to_string()))?;
    refuse_twins("logic id", plans.iter().map(|plan| plan.logic.to_string()))?;
    refuse_twins(
        "card and device",
        plans.iter().map(|p| format!("{},{}", p.card, p.device)),
    )?;
    refuse_twins("serial", plans.iter().map(|plan| plan.serial.clone()))?;
    refuse_twins(
        "die id",
        plans.iter().map(|plan| format!("{:08X?}", plan.die)),
    )?;
    refuse_twins(
        "PCI address",
        plans.iter().map(|plan| format!("{:X?}", plan.bdf)),
    )
}

fn refuse_twins(
    what: &'static str,
    values: impl Iterator<Item = String>,
) -> Result<(), ProfileError> {
    let mut seen = BTreeSet::new();
    for value in values {
        if !seen.insert(value.clone()) {
            return Err(ProfileError::Duplicate { what, value });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::profile::BUILT_IN;

    fn with(change: impl Fn(&mut Profile)) -> Result<Vec<ChipPlan>, ProfileError> {
        let (name, text) = BUILT_IN[0];
        let mut profile = Profile::parse(Path::new(name), text).unwrap();
        change(&mut profile);
        profile.plan_chips()
    }

    #[test]
    fn sixteen_chips_take_one_changed_line() {
        let (name, text) = BUILT_IN[0];
        let text = text.replace("count = 8", "count = 16");
        let plans = Profile::parse(Path::new(name), &text)
            .unwrap()
            .plan_chips()
            .unwrap();
        assert_eq!(plans.len(), 16);
        assert_eq!(plans[15].phy, 15);
        assert_eq!(plans[7].numa + 1, plans[8].numa);
    }

    #[test]
    fn identities_are_stable_and_differ() {
        assert_eq!(identity_of("A"), identity_of("A"));
        assert_ne!(identity_of("A"), identity_of("B"));
    }

    #[test]
    fn numbers_may_be_permuted_but_not_shared() {
        let permuted = with(|profile| profile.phy = Some((0..8).rev().collect())).unwrap();
        assert_eq!(permuted[0].phy, 7);
        let shared = with(|profile| profile.phy = Some(vec![0; 8]));
        assert!(matches!(
            shared,
            Err(ProfileError::Duplicate { what: "phy id", .. })
        ));
        let short = with(|profile| profile.cards = Some(vec![4]));
        assert!(matches!(
            short,
            Err(ProfileError::ShortList { list: "cards", .. })
        ));
    }

    #[test]
    fn addresses_count_up_and_keep_their_version() {
        let plans = with(|_| ()).unwrap();
        assert_eq!(plans[7].addresses[0].unwrap().to_string(), "10.20.0.18/24");
        assert_eq!(plans[7].addresses[1].unwrap().to_string(), "fd00:20::18/64");
        let swapped = with(|profile| profile.network.v4 = profile.network.v6);
        assert!(matches!(
            swapped,
            Err(ProfileError::AddressVersion { key: "v4", .. })
        ));
    }

    #[test]
    fn a_listed_chip_overrides_what_is_generated() {
        let plans = with(|profile| {
            profile.chips = vec![ChipOverride {
                card: Some(15104),
                bdf: Some("0001:3b:02.1".to_owned()),
                ..ChipOverride::default()
            }];
        })
        .unwrap();
        assert_eq!(plans[0].card, 15104);
        assert_eq!(plans[0].bdf, [1, 0x3b, 2, 1]);
    }
}

//! Safe calls: one method for each thing that can be asked.
//!
//! Every buffer is zeroed first and at least as large as any known driver writes; counts are checked
//! against capacity; texts need no terminating zero.

use std::fmt;
use std::os::raw::c_int;
use std::path::Path;

use super::code::{CallError, ReturnCode};
use super::symbols::{LoadError, Symbols};
use crate::domain::chip::DcmiApi;
use crate::domain::ids::{CardId, DeviceId, LogicId, PhyId};

/// Calls a function of the library and turns its code into a result.
macro_rules! call {
    ($self:ident.$name:ident($($argument:expr),* $(,)?)) => {
        match $self.symbols.$name {
            None => Err(CallError::Missing { symbol: stringify!($name) }),
            Some(function) => {
                // SAFETY: the function has the type declared in `symbols` and its library is never
                // unloaded. Each pointer argument comes from a local that outlives the call, is
                // borrowed by nothing else, and is at least as large as any driver writes.
                let code = unsafe { function($($argument),*) };
                returned(stringify!($name), code)
            }
        }
    };
}

mod identity;
mod state;

pub use identity::{ChipNames, DieType};

/// The driver serves at most 64 cards; the surplus shows a count beyond that as what it is.
const CARD_CAPACITY: usize = 128;

/// The driver's own bound of devices on one card.
const DEVICES_PER_CARD_MAX: c_int = 16;

/// Logic and phy ids beyond this are garbage by the vendor's own rule.
const ID_MAX: u32 = 255;

/// Versions and product names; the calls want at least 16 and 32.
const LINE_BYTES: usize = 64;

/// Where a chip is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Address {
    /// First interface.
    Card {
        /// Card.
        card: CardId,
        /// Chip on it.
        device: DeviceId,
    },
    /// Second interface.
    Logic {
        /// The driver's number, never negative.
        device: i32,
    },
}

impl Address {
    /// The card, on the interface that has cards.
    #[must_use]
    pub fn card(&self) -> Option<CardId> {
        match self {
            Self::Card { card, .. } => Some(*card),
            Self::Logic { .. } => None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Card { card, device } => write!(f, "card {card} device {device}"),
            Self::Logic { device } => write!(f, "device {device}"),
        }
    }
}

/// The list of cards or, on the second interface, of devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdList {
    /// What the driver counts.
    pub counted: u32,
    /// What it lists; negative ids failed to initialise.
    pub ids: Vec<i32>,
}

/// The loaded library.
#[derive(Debug)]
pub struct Dcmi {
    symbols: Symbols,
}

impl Dcmi {
    /// Loads the library for the life of this process.
    ///
    /// # Errors
    /// The file is no loadable library, or a library it needs is missing.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        Symbols::load(path).map(|symbols| Self { symbols })
    }

    /// Functions of one interface that the library lacks.
    #[must_use]
    pub fn missing_symbols(&self, api: DcmiApi) -> Vec<String> {
        let of_api = |name: &&&str| name.starts_with("dcmiv2_") == (api == DcmiApi::V2);
        self.symbols
            .missing()
            .iter()
            .filter(of_api)
            .map(|name| (*name).to_owned())
            .collect()
    }

    /// Initialises one interface. Forks shells: call it once, before other threads exist.
    ///
    /// # Errors
    /// The driver refused; "not supported" means that the other interface serves this machine.
    pub fn init(&self, api: DcmiApi) -> Result<(), CallError> {
        match api {
            DcmiApi::V1 => call!(self.dcmi_init()),
            DcmiApi::V2 => call!(self.dcmiv2_init()),
        }
    }

    /// Lists cards (first interface) or devices (second).
    ///
    /// # Errors
    /// The call failed or counts what cannot be.
    pub fn list(&self, api: DcmiApi) -> Result<IdList, CallError> {
        let mut ids: [c_int; CARD_CAPACITY] = [0; CARD_CAPACITY];
        let mut count: c_int = 0;
        let capacity = CARD_CAPACITY.try_into().unwrap_or(c_int::MAX);
        let symbol = match api {
            DcmiApi::V1 => {
                call!(self.dcmi_get_card_list(&raw mut count, ids.as_mut_ptr(), capacity))?;
                "dcmi_get_card_list"
            }
            DcmiApi::V2 => {
                call!(self.dcmiv2_get_device_list(ids.as_mut_ptr(), &raw mut count, capacity))?;
                "dcmiv2_get_device_list"
            }
        };
        let listed = taken(symbol, "number of cards", count, &ids)?;
        Ok(IdList {
            counted: non_negative(symbol, "number of cards", count)?,
            ids: listed,
        })
    }

    /// Devices the second interface counts, those that failed to come up included.
    ///
    /// # Errors
    /// The call failed; it is not permitted in a plain container.
    pub fn device_count(&self) -> Result<u32, CallError> {
        let mut count: c_int = 0;
        call!(self.dcmiv2_get_all_device_count(&raw mut count))?;
        non_negative("dcmiv2_get_all_device_count", "number of devices", count)
    }

    /// Chips on one card.
    ///
    /// # Errors
    /// The call failed or gave a number outside 1 to 16.
    pub fn devices_on_card(&self, card: CardId) -> Result<i32, CallError> {
        let mut count: c_int = 0;
        call!(self.dcmi_get_device_num_in_card(card.0, &raw mut count))?;
        if (1..=DEVICES_PER_CARD_MAX).contains(&count) {
            return Ok(count);
        }
        Err(CallError::Implausible {
            symbol: "dcmi_get_device_num_in_card",
            what: "number of devices",
            value: count.into(),
        })
    }

    /// The chip's number in this OS.
    ///
    /// # Errors
    /// The call failed or gave a number outside 0 to 255.
    pub fn logic_id(&self, at: Address) -> Result<LogicId, CallError> {
        let mut logic: c_int = -1;
        let symbol = match at {
            Address::Logic { device } => {
                logic = device;
                "dcmiv2_get_device_list"
            }
            Address::Card { card, device } => {
                call!(self.dcmi_get_device_logic_id(&raw mut logic, card.0, device.0))?;
                "dcmi_get_device_logic_id"
            }
        };
        plausible_id(symbol, "logic id", i64::from(logic)).map(LogicId)
    }

    /// The number of the chip's device node.
    ///
    /// # Errors
    /// The call failed or gave a number outside 0 to 255.
    pub fn phy_id(&self, api: DcmiApi, logic: LogicId) -> Result<PhyId, CallError> {
        let mut phy = u32::MAX;
        let symbol = match api {
            DcmiApi::V1 => {
                call!(self.dcmi_get_device_phyid_from_logicid(logic.0, &raw mut phy))?;
                "dcmi_get_device_phyid_from_logicid"
            }
            DcmiApi::V2 => {
                let device = c_int::try_from(logic.0).unwrap_or(-1);
                call!(self.dcmiv2_get_chip_phy_id_by_dev_id(device, &raw mut phy))?;
                "dcmiv2_get_chip_phy_id_by_dev_id"
            }
        };
        plausible_id(symbol, "phy id", i64::from(phy)).map(PhyId)
    }

    /// Version of the library.
    ///
    /// # Errors
    /// The call failed.
    pub fn dcmi_version(&self, api: DcmiApi) -> Result<String, CallError> {
        let mut text = [0_u8; LINE_BYTES];
        let pointer = text.as_mut_ptr().cast();
        let bytes = length(&text);
        match api {
            DcmiApi::V1 => call!(self.dcmi_get_dcmi_version(pointer, bytes))?,
            DcmiApi::V2 => call!(self.dcmiv2_get_dcmi_version(pointer, bytes))?,
        }
        Ok(lossy(&text))
    }

    /// Version of the driver.
    ///
    /// # Errors
    /// The call failed.
    pub fn driver_version(&self, api: DcmiApi) -> Result<String, CallError> {
        let mut text = [0_u8; LINE_BYTES];
        let pointer = text.as_mut_ptr().cast();
        let bytes = length(&text);
        match api {
            DcmiApi::V1 => call!(self.dcmi_get_driver_version(pointer, bytes))?,
            DcmiApi::V2 => call!(self.dcmiv2_get_driver_version(pointer, bytes))?,
        }
        Ok(lossy(&text))
    }
}

fn returned(symbol: &'static str, code: c_int) -> Result<(), CallError> {
    match code {
        0 => Ok(()),
        raw => Err(CallError::Returned {
            symbol,
            code: ReturnCode::from(raw),
        }),
    }
}

/// The first `count` entries; a count beyond the buffer is cut to it.
fn taken<T: Copy>(
    symbol: &'static str,
    what: &'static str,
    count: c_int,
    buffer: &[T],
) -> Result<Vec<T>, CallError> {
    let count = non_negative(symbol, what, count)?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    Ok(buffer.iter().take(count).copied().collect())
}

fn non_negative(symbol: &'static str, what: &'static str, value: c_int) -> Result<u32, CallError> {
    u32::try_from(value).map_err(|_| CallError::Implausible {
        symbol,
        what,
        value: value.into(),
    })
}

fn plausible_id(symbol: &'static str, what: &'static str, value: i64) -> Result<u32, CallError> {
    u32::try_from(value)
        .ok()
        .filter(|id| *id <= ID_MAX)
        .ok_or(CallError::Implausible {
            symbol,
            what,
            value,
        })
}

fn length(text: &[u8]) -> u32 {
    u32::try_from(text.len()).unwrap_or(0)
}

/// Text up to a zero or the end of the buffer.
fn lossy(text: &[u8]) -> String {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_fills_its_buffer_is_taken_whole() {
        assert_eq!(lossy(&[b'A'; 32]), "A".repeat(32));
        assert_eq!(lossy(b"910B3\0garbage"), "910B3");
        assert_eq!(lossy(b"\xFF9\0"), "\u{FFFD}9");
        assert_eq!(lossy(b""), "");
    }

    #[test]
    fn a_count_beyond_the_buffer_is_cut_and_a_negative_one_refused() {
        assert_eq!(taken("f", "count", 9, &[1, 2, 3]), Ok(vec![1, 2, 3]));
        assert_eq!(taken("f", "count", 2, &[1, 2, 3]), Ok(vec![1, 2]));
        assert!(taken("f", "count", -1, &[1, 2, 3]).is_err());
    }

    #[test]
    fn an_id_beyond_255_is_refused_with_its_value() {
        assert_eq!(plausible_id("f", "phy id", 255), Ok(255));
        let refused = plausible_id("f", "phy id", 256).unwrap_err();
        assert_eq!(refused.to_string(), "f gave 256 as phy id");
    }
}

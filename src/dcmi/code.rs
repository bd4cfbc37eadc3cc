//! Return codes of the library as typed values, unknown ones kept.

use std::fmt;

use crate::domain::driver_code::words;

/// What a call returned, 0 excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnCode {
    /// -8001: invalid parameter; also an unknown card or device.
    InvalidParameter,
    /// -8002: not permitted for this user, virtual machine or container.
    NotPermitted,
    /// -8003: memory operation failed.
    Memory,
    /// -8004: secure function failed.
    SecureFunction,
    /// -8005: the library's word for every cause it has no name for.
    Inner,
    /// -8006: timeout inside the driver.
    Timeout,
    /// -8007: invalid device id.
    InvalidDevice,
    /// -8008: no such device.
    NoDevice,
    /// -8009: ioctl failed.
    Ioctl,
    /// -8010: send failed.
    Send,
    /// -8011: receive failed.
    Receive,
    /// -8012: not ready; from the health call it means that the card is gone.
    NotReady,
    /// -8013: documented as "not supported in a container", returned for a busy device.
    Busy,
    /// -8014: file operation failed.
    File,
    /// -8015: reset failed.
    ResetFailed,
    /// -8016: reset cancelled.
    ResetCancelled,
    /// -8017: an upgrade is running.
    Upgrading,
    /// -8020: resource occupied; also a second subscription.
    Occupied,
    /// -8022: wrong partition.
    Partition,
    /// -8023: configuration absent.
    NotConfigured,
    /// -8255: not supported.
    NotSupported,
    /// A number the driver's manual does not list.
    Unlisted(i32),
}

const LISTED: [(i32, ReturnCode); 21] = [
    (-8001, ReturnCode::InvalidParameter),
    (-8002, ReturnCode::NotPermitted),
    (-8003, ReturnCode::Memory),
    (-8004, ReturnCode::SecureFunction),
    (-8005, ReturnCode::Inner),
    (-8006, ReturnCode::Timeout),
    (-8007, ReturnCode::InvalidDevice),
    (-8008, ReturnCode::NoDevice),
    (-8009, ReturnCode::Ioctl),
    (-8010, ReturnCode::Send),
    (-8011, ReturnCode::Receive),
    (-8012, ReturnCode::NotReady),
    (-8013, ReturnCode::Busy),
    (-8014, ReturnCode::File),
    (-8015, ReturnCode::ResetFailed),
    (-8016, ReturnCode::ResetCancelled),
    (-8017, ReturnCode::Upgrading),
    (-8020, ReturnCode::Occupied),
    (-8022, ReturnCode::Partition),
    (-8023, ReturnCode::NotConfigured),
    (-8255, ReturnCode::NotSupported),
];

impl ReturnCode {
    /// The number.
    #[must_use]
    pub fn raw(self) -> i32 {
        if let Self::Unlisted(raw) = self {
            return raw;
        }
        LISTED
            .iter()
            .find(|(_, code)| *code == self)
            .map_or(0, |(raw, _)| *raw)
    }
}

impl From<i32> for ReturnCode {
    fn from(raw: i32) -> Self {
        LISTED
            .iter()
            .find(|(listed, _)| *listed == raw)
            .map_or(Self::Unlisted(raw), |(_, code)| *code)
    }
}

impl fmt::Display for ReturnCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let raw = self.raw();
        write!(f, "{raw} ({})", words(raw))
    }
}

/// Why a call gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The library has no such function.
    #[error("the driver library lacks {symbol}; a newer driver may have it")]
    Missing {
        /// The function.
        symbol: &'static str,
    },
    /// The function failed.
    #[error("{symbol} returned {code}")]
    Returned {
        /// The function.
        symbol: &'static str,
        /// Its return code.
        code: ReturnCode,
    },
    /// The function succeeded with a value that cannot be.
    #[error("{symbol} gave {value} as {what}")]
    Implausible {
        /// The function.
        symbol: &'static str,
        /// Meaning of the value.
        what: &'static str,
        /// The value.
        value: i64,
    },
}

impl CallError {
    /// The return code, where the function gave one.
    #[must_use]
    pub fn code(&self) -> Option<ReturnCode> {
        match self {
            Self::Returned { code, .. } => Some(*code),
            Self::Missing { .. } | Self::Implausible { .. } => None,
        }
    }

    /// True when asking again cannot help on this driver and chip.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        matches!(
            self,
            Self::Missing { .. }
                | Self::Returned {
                    code: ReturnCode::NotSupported,
                    ..
                }
        )
    }

    /// The function.
    #[must_use]
    pub fn symbol(&self) -> &'static str {
        match self {
            Self::Missing { symbol }
            | Self::Returned { symbol, .. }
            | Self::Implausible { symbol, .. } => symbol,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_and_unlisted_codes_keep_their_number() {
        for raw in [-8001, -8012, -8255, -1, -99_999, 7] {
            assert_eq!(ReturnCode::from(raw).raw(), raw);
        }
        assert_eq!(ReturnCode::from(-8012), ReturnCode::NotReady);
        assert_eq!(ReturnCode::from(-8019), ReturnCode::Unlisted(-8019));
    }

    #[test]
    fn a_code_prints_its_number_and_meaning() {
        assert_eq!(
            ReturnCode::NotSupported.to_string(),
            "-8255 (not supported)"
        );
        assert!(ReturnCode::Unlisted(-9).to_string().starts_with("-9 ("));
    }
}

//! Fault codes, events and health readings as the driver gives them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ids::LogicId;

/// A driver fault code, printed as the vendor prints it (`80E01801`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FaultCode(pub u32);

impl fmt::Display for FaultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08X}", self.0)
    }
}

/// Severity of an event: 0 suggestion, 1 minor, 2 major, 3 critical; other numbers are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Severity(pub u8);

impl Severity {
    /// Lowest severity that takes a chip out of the pool.
    pub const MAJOR: Self = Self(2);
}

/// What an event says about its fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Assertion {
    /// The fault is over.
    Recovered,
    /// The fault began.
    Occurred,
    /// It happened once and has no end.
    OneOff,
    /// A number the driver's manual does not list.
    Unknown(u8),
}

impl From<u8> for Assertion {
    fn from(raw: u8) -> Self {
        match raw {
            0 => Self::Recovered,
            1 => Self::Occurred,
            2 => Self::OneOff,
            other => Self::Unknown(other),
        }
    }
}

/// One fault event of the driver's subscription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultEvent {
    /// The chip it speaks of.
    pub logic: LogicId,
    /// Its code; 0 is meaningless and dropped.
    pub code: FaultCode,
    /// How bad.
    pub severity: Severity,
    /// Begin, end or single.
    pub assertion: Assertion,
}

/// DCMI's health of a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HealthLevel {
    /// 0.
    Normal,
    /// 1: an alarm that leaves the chip usable.
    Minor,
    /// 2.
    Major,
    /// 3.
    Critical,
    /// 4: the driver could not tell.
    Unknown,
    /// `0xFFFFFFFF`: no such chip.
    Absent,
    /// A number the driver's manual does not list.
    Unlisted(u32),
}

impl From<u32> for HealthLevel {
    fn from(raw: u32) -> Self {
        match raw {
            0 => Self::Normal,
            1 => Self::Minor,
            2 => Self::Major,
            3 => Self::Critical,
            4 => Self::Unknown,
            u32::MAX => Self::Absent,
            other => Self::Unlisted(other),
        }
    }
}

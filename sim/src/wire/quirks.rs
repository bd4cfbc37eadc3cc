//! Ways in which libraries of other driver builds write their answers.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// One way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Quirk {
    /// ECC counters take 36 bytes, not 28
    #[value(name = "ecc-36")]
    #[serde(rename = "ecc-36")]
    LongEcc,
    /// Reserved fields hold 0xA5, not zero
    Garbage,
    /// Names fill their 32 bytes, with underscores behind them and without an end mark
    Unterminated,
}

/// The ways in force.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quirks {
    /// ECC counters take 36 bytes.
    pub long_ecc: bool,
    /// Reserved fields hold garbage.
    pub garbage: bool,
    /// Names have no end mark.
    pub unterminated: bool,
}

impl Quirks {
    /// None; what a library assumes before it has heard from the hardware.
    pub const NONE: Self = Self {
        long_ecc: false,
        garbage: false,
        unterminated: false,
    };

    /// The same with one of them changed.
    #[must_use]
    pub fn with(self, quirk: Quirk, on: bool) -> Self {
        match quirk {
            Quirk::LongEcc => Self {
                long_ecc: on,
                ..self
            },
            Quirk::Garbage => Self {
                garbage: on,
                ..self
            },
            Quirk::Unterminated => Self {
                unterminated: on,
                ..self
            },
        }
    }
}

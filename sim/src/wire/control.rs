//! Control requests. The command line and the JSON form are one type, so neither can drift.

use std::fmt;
use std::str::FromStr;

use clap::{Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};

use super::{Address, Caller, Quirk, ResetFault, VdevControl};

/// A control request; in JSON `{"op": "<command>", ...}` with the arguments as fields.
/// CHIP is a phy id of the present numbering, CARD a card id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Subcommand)]
#[serde(tag = "op", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Control {
    /// Drop a card, or one device of it, from the bus
    Lose {
        /// CARD or CARD,DEVICE
        unit: CardUnit,
    },
    /// Bring a lost card or device back
    Return {
        /// CARD or CARD,DEVICE
        unit: CardUnit,
    },
    /// From the next init on, list the card as -1 while still counting it
    FailInit {
        /// Card id
        card: i32,
    },
    /// Undo fail-init
    HealInit {
        /// Card id
        card: i32,
    },
    /// Take a card out of list and count, as if it had not arrived yet
    Hide {
        /// Card id
        card: i32,
    },
    /// Undo hide
    Show {
        /// Card id
        card: i32,
    },
    /// Hide exactly the last so many cards; 0 shows all
    HideCards {
        /// Number of cards
        count: u32,
    },
    /// Set the health level of a chip
    Health {
        /// Phy id
        chip: u32,
        /// 0 to 4, or `absent`
        #[arg(value_parser = parse_level)]
        level: u32,
    },
    /// Add or clear a fault code of a chip; health stays as it is
    Code {
        /// What to do
        action: CodeAction,
        /// Phy id
        chip: u32,
        /// Fault code, hexadecimal with 0x or decimal
        #[arg(value_parser = parse_number)]
        code: u32,
        /// Also emit the matching event
        #[arg(long)]
        #[serde(default)]
        event: bool,
        /// Severity of that event
        #[arg(long, default_value_t = DEFAULT_SEVERITY)]
        #[serde(default = "default_severity")]
        severity: u8,
        /// No reset clears the code
        #[arg(long)]
        #[serde(default)]
        sticky: bool,
    },
    /// Emit fault events without touching the code list
    Event {
        /// Phy id
        chip: u32,
        /// Event id, hexadecimal with 0x or decimal
        #[arg(value_parser = parse_number)]
        code: u32,
        /// What happened
        #[arg(long, default_value = "occurred")]
        #[serde(default)]
        assertion: Assertion,
        /// 0 suggestion, 1 minor, 2 major, 3 critical
        #[arg(long, default_value_t = DEFAULT_SEVERITY)]
        #[serde(default = "default_severity")]
        severity: u8,
        /// How many
        #[arg(long, default_value_t = 1)]
        #[serde(default = "one")]
        count: u32,
        /// Keep them for the next subscriber, who gets them before its call returns
        #[arg(long)]
        #[serde(default)]
        on_subscribe: bool,
        /// Serial number of all of them, as in a repeated or late event; counted up when left out
        #[arg(long)]
        #[serde(default)]
        serial: Option<i32>,
    },
    /// Delay a call; 0 removes the delay
    Latency {
        /// Exported name or *
        symbol: String,
        /// Milliseconds
        ms: u64,
        /// Phy id
        #[arg(long)]
        #[serde(default)]
        chip: Option<u32>,
    },
    /// Hold a call until released
    Hang {
        /// Exported name or *
        symbol: String,
        /// Phy id
        #[arg(long)]
        #[serde(default)]
        chip: Option<u32>,
        /// Carry the call out first and hold only its answer
        #[arg(long)]
        #[serde(default)]
        answer: bool,
    },
    /// Let held calls go: all, or those of one symbol or chip
    Release {
        /// Exported name or *
        #[serde(default)]
        symbol: Option<String>,
        /// Phy id
        #[arg(long)]
        #[serde(default)]
        chip: Option<u32>,
    },
    /// Make a call return a code; 0 removes the rule
    ReturnCode {
        /// Exported name or *
        symbol: String,
        /// Return code
        #[arg(allow_negative_numbers = true)]
        code: i32,
        /// Phy id
        #[arg(long)]
        #[serde(default)]
        chip: Option<u32>,
        /// So many calls, then normal again
        #[arg(long, conflicts_with = "for_ms")]
        #[serde(default)]
        times: Option<u32>,
        /// So many milliseconds, then normal again
        #[arg(long = "for", value_name = "MS")]
        #[serde(default)]
        for_ms: Option<u64>,
    },
    /// Set how many processes hold a chip
    Processes {
        /// Phy id
        chip: u32,
        /// 0 to 64
        count: u32,
        /// Process id of the first; the others count up. Made from the phy id when left out
        #[arg(long)]
        #[serde(default)]
        first_pid: Option<u32>,
    },
    /// Set or take away the address of a chip's network port
    Address {
        /// Phy id
        chip: u32,
        /// Version of the protocol
        version: IpVersion,
        /// Address and prefix, such as 10.20.0.11/24; without it none is configured
        #[serde(default)]
        address: Option<Address>,
    },
    /// Who the driver takes its callers for
    Caller {
        /// Kind of caller
        caller: Caller,
    },
    /// Let the library answer as one of another driver build
    Quirk {
        /// What differs
        quirk: Quirk,
        /// on or off
        switch: Switch,
    },
    /// Fix a reading of a chip, or let it follow the profile again
    Reading {
        /// Phy id
        chip: u32,
        /// Name as in the profile
        name: String,
        /// Raw value; without it the profile rules again
        #[arg(allow_negative_numbers = true)]
        #[serde(default)]
        value: Option<i64>,
    },
    /// Clear codes, health, holders and fixed readings of a chip
    Heal {
        /// Phy id
        chip: u32,
    },
    /// Exchange the serials, and so the identities, of two chips
    SwapSerials {
        /// Phy id
        first: u32,
        /// Phy id
        second: u32,
    },
    /// Put a new chip, with an identity of its own, in the place of this one
    Replace {
        /// Phy id
        chip: u32,
    },
    /// Take the card of this chip out for good; higher numbers move down
    Remove {
        /// Phy id
        chip: u32,
    },
    /// Start a new boot: faults, holders, rules and subscriptions are gone
    Reboot,
    /// While on, every call returns -8017
    Upgrade {
        /// on or off
        switch: Switch,
    },
    /// Look at vNPUs and change them
    #[command(subcommand)]
    Vdev(VdevControl),
    /// What goes wrong with the next resets of a chip, until `none`
    ResetFault {
        /// Phy id
        chip: u32,
        /// Kind of fault
        fault: ResetFault,
    },
    /// How long a chip takes to start after a reset
    BootTime {
        /// Milliseconds
        ms: u64,
    },
    /// Whether the board's controller answers for a chip
    Outband {
        /// Phy id
        chip: u32,
        /// on or off
        switch: Switch,
    },
    /// Everything the hardware knows about itself
    Status {
        /// As one JSON document
        #[arg(long)]
        #[serde(default)]
        json: bool,
    },
    /// How often each symbol was called, who is attached, what is held
    Calls {
        /// As one JSON document
        #[arg(long)]
        #[serde(default)]
        json: bool,
        /// Set the counters to zero after reading
        #[arg(long)]
        #[serde(default)]
        reset: bool,
    },
    /// End the daemon
    Shutdown,
}

/// A card or one device of it: `3` or `3,1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "UnitText", try_from = "UnitText")]
pub struct CardUnit {
    /// Card id.
    pub card: i32,
    /// Device id; all devices when absent.
    pub device: Option<i32>,
}

impl FromStr for CardUnit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || format!("'{text}' is not CARD or CARD,DEVICE, for example 3 or 3,1");
        let (card, device) = match text.split_once(',') {
            Some((card, device)) => (card, Some(device.parse().map_err(|_| refuse())?)),
            None => (text, None),
        };
        Ok(Self {
            card: card.parse().map_err(|_| refuse())?,
            device,
        })
    }
}

impl fmt::Display for CardUnit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.device {
            Some(device) => write!(out, "{},{device}", self.card),
            None => write!(out, "{}", self.card),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum UnitText {
    Card(i32),
    Text(String),
}

impl TryFrom<UnitText> for CardUnit {
    type Error = String;

    fn try_from(text: UnitText) -> Result<Self, Self::Error> {
        match text {
            UnitText::Card(card) => Ok(Self { card, device: None }),
            UnitText::Text(text) => text.parse(),
        }
    }
}

impl From<CardUnit> for UnitText {
    fn from(unit: CardUnit) -> Self {
        match unit.device {
            None => Self::Card(unit.card),
            Some(_) => Self::Text(unit.to_string()),
        }
    }
}

/// Change of a code list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum CodeAction {
    /// Put the code on the list
    Add,
    /// Take the code off the list
    Clear,
}

/// What an event says about its fault.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Assertion {
    /// The fault is over
    Recovered,
    /// The fault has come
    #[default]
    Occurred,
    /// It happened once and has no end
    #[value(name = "oneoff")]
    OneOff,
}

/// Version of the internet protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum IpVersion {
    /// Fourth
    V4,
    /// Sixth
    V6,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Switch {
    /// On
    On,
    /// Off
    Off,
}

/// The answer to a control request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ControlReply {
    /// The request was carried out.
    pub ok: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
}

const DEFAULT_SEVERITY: u8 = 2;

fn default_severity() -> u8 {
    DEFAULT_SEVERITY
}

fn one() -> u32 {
    1
}

fn parse_number(text: &str) -> Result<u32, String> {
    let number = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => text.parse(),
    };
    number.map_err(|_| format!("'{text}' is not a 32-bit number such as 0x80E01801"))
}

fn parse_level(text: &str) -> Result<u32, String> {
    match text {
        "absent" => Ok(u32::MAX),
        _ => text
            .parse()
            .ok()
            .filter(|level| *level <= 4)
            .ok_or_else(|| format!("'{text}' is not a health level: give 0 to 4 or absent")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_unit_reads_from_number_and_text() {
        let whole: Control = serde_json::from_str(r#"{"op":"lose","unit":3}"#).unwrap();
        let part: Control = serde_json::from_str(r#"{"op":"lose","unit":"3,1"}"#).unwrap();
        assert_eq!(
            whole,
            Control::Lose {
                unit: CardUnit {
                    card: 3,
                    device: None
                }
            }
        );
        assert_eq!(
            part,
            Control::Lose {
                unit: CardUnit {
                    card: 3,
                    device: Some(1)
                }
            }
        );
        assert!(serde_json::from_str::<Control>(r#"{"op":"lose","unit":"x"}"#).is_err());
    }

    #[test]
    fn unknown_fields_are_refused() {
        assert!(serde_json::from_str::<Control>(r#"{"op":"heal","chip":1,"chp":2}"#).is_err());
    }

    #[test]
    fn codes_read_in_both_bases() {
        assert_eq!(parse_number("0x80E01801"), Ok(0x80E0_1801));
        assert_eq!(parse_number("12"), Ok(12));
        assert!(parse_number("80E0").is_err());
    }
}

//! The state of the simulated machine and every rule by which it changes or answers.
//!
//! No input or output here: the daemon locks one `Hardware`, passes calls, control requests and
//! the time in, and takes answers, wanted device nodes and the state to save out.
//! Invariants: a chip is known by its slot for as long as the machine exists, and phy numbers are
//! unique among the chips not removed. Logic numbers are dense and computed, never stored.

mod answers;
mod calls;
mod changes;
mod control;
mod control_rows;
mod events;
mod facts;
mod injection;
mod machine;
mod numbering;
mod permission;
mod product;
mod readings;
mod reset;
mod saved;
mod settings;
mod status;
mod templates;
mod vdevices;

use std::collections::BTreeMap;

pub(crate) use calls::CallReport;
pub(crate) use control::ControlError;
pub(crate) use events::{Inbox, ReadEvent};
pub(crate) use reset::STATUS_SERVING;
pub(crate) use saved::{Saved, SavedError};
pub(crate) use status::Status;

use crate::profile::Profile;
use crate::wire::{Address, Identity, Process};
use calls::Calls;
use events::Events;
use injection::Injection;
use product::Product;
use reset::{Prepared, ResetState};
use settings::Settings;
use templates::Cutting;
use vdevices::Vdevice;

/// The machine.
#[derive(Debug)]
pub(crate) struct Hardware {
    profile: Profile,
    boot: String,
    boots: u32,
    cards: Vec<Card>,
    chips: Vec<Chip>,
    upgrading: bool,
    replacements: u32,
    settings: Settings,
    prepared: Prepared,
    injection: Injection,
    /// Counters and attached processes.
    pub(crate) calls: Calls,
    /// Subscribers, readers and the last events.
    pub(crate) events: Events,
}

#[derive(Debug)]
struct Card {
    id: i32,
    removed: bool,
    hidden: bool,
    init_fails: bool,
}

#[derive(Debug)]
struct Chip {
    card: usize,
    device: i32,
    phy: u32,
    logic_rank: u32,
    serial: String,
    die: [u32; 5],
    bdf: [u32; 4],
    numa: u32,
    /// Built-in profile that tells what the chip is.
    like: Option<String>,
    identity: Identity,
    board_id: u32,
    mainboard_id: Option<u32>,
    product_type: Option<String>,
    /// Of the fourth and the sixth version of the protocol.
    addresses: [Option<Address>; 2],
    product: Product,
    cutting: Option<Cutting>,
    lost: bool,
    health: u32,
    codes: Vec<u32>,
    processes: Vec<Process>,
    fixed: BTreeMap<String, i64>,
    vdevices: Vec<Vdevice>,
    hides_activity: bool,
    reset: ResetState,
}

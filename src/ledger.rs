//! The truth in memory: which container holds which chip, rebuilt from the journal and compared with
//! what the driver and kubelet say.
//!
//! Pure: imports `domain` and level 1 only; time, ids and views are arguments. Every change is first
//! a value (`GrantPlan`, `Findings`), which the owner task makes durable before it is applied.
//! Invariants: a chip is held whole by at most one holder, or in shares of which each has at most one
//! holder; a plugin device id has at most one holder; both hold after every step (`violations`). The drawback of values before effects is that each change
//! is written twice, once as a plan and once as its application.

mod book;
mod grant;
mod holders;
mod observe;
mod offer;
mod processes;
mod rebuild;
#[cfg(test)]
mod rules;

pub use book::{ChipEntry, ChipVerdict, Held, Ledger, Place, Places, Sighting, Withheld};
pub use grant::{Asked, Decision, GrantPlan, GrantStep};
pub use observe::{Findings, OWNER_PROOF, ObserveContext};
pub use processes::ProcessReadings;
pub use rebuild::InventoryTaken;

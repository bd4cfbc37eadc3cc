//! The running agent: ordered start, the owner task, supervision, drain.
//!
//! The only place that names concrete adapters. One task owns ledger and health and takes commands
//! from one queue; watchers of the driver and of kubelet's records feed it; kubelet's side and
//! operators reach it through `Front`. The price of one owner is that its decisions queue behind a
//! commit to the disk; the price of the alternatives is that nobody could say which state is true.

mod command;
mod delivery;
mod die_policy;
mod front;
mod host_paths;
mod late_store;
mod owner;
mod pulse;
mod settle;
mod start;
mod watch_chips;
mod watch_records;

pub use settle::{places, settle};
pub use start::{StartError, run};

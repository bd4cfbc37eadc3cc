//! The durable record: who holds which chip, which chips are known, and what happened.
//!
//! One redb file `state.redb` in the state directory (0700, files 0600), owned by one thread. A commit
//! is on the disk when it returns. Beside the file lie `agent.lock`, held for the life of the process
//! that uses the directory, and `schema`, the schema number as text, since redb must write to open a
//! file that was not closed and a newer schema is to be left untouched. `last-commit` tells a file that
//! lost commits (a flipped bit, a restored copy) from one that never had them.
//!
//! What the callers may rest on:
//! - A damaged, cut, empty or missing file never ends in a panic or a loop: it is set aside (the last
//!   five are kept), a new one is begun with `StoreRebuilt` as its first record, and [`Opened`] or
//!   [`StoreStatus`] tells. One damaged history record costs that record alone.
//! - After any failed commit the truth is what [`Journal::load`](crate::ports::Journal::load) says: the
//!   commit is there whole or not at all. Until `load` was called every commit is refused with
//!   `ReloadFirst`. Putting or removing an allocation again changes nothing, so a repeated batch does
//!   no harm; only its history appears twice.
//! - Every page is checked at every opening, at most 16 MiB are cached, and history is bounded by
//!   [`Retention`]. Files do not shrink by themselves.
//!
//! Price: one fsync per commit, and a check of the whole file per opening, which is why the bound of
//! the history also bounds the time a start takes.

mod backup;
mod codec;
mod connection;
mod contents;
mod door;
mod events;
mod fault;
mod journal;
mod mark;
mod migrate;
mod names;
mod offline;
mod open_error;
mod outbox;
mod place;
mod records;
mod retention;
#[path = "../migrations/0001_initial.rs"]
mod schema_1;
mod waiting;
mod worker;

pub use connection::{Medium, Rebuilt};
pub use journal::{Opened, Settings, Store};
pub use offline::{AgentCopy, CheckReport, OfflineStore, check, open_copy};
pub use open_error::OpenError;
pub use retention::Retention;
pub use waiting::open_waiting;
pub use worker::StoreStatus;

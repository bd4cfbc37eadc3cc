//! What stands behind the exported functions: a session with the daemon, the tables of numbers
//! taken at init, and the thread that receives events.
//!
//! Invariants: the tables of a session never change, a new init makes a new session; every socket
//! call has a timeout until the daemon says that it holds the answer back on purpose.

mod link;
mod quirks;
mod session;
mod subscription;
mod tables;

pub(crate) use quirks::quirks;
pub(crate) use session::{close, initialise, session};
pub(crate) use subscription::{read_event, subscribe};
pub(crate) use tables::{At, Tables};

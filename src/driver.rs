//! The driver host: the child process that alone loads the vendor's library, and its client.
//!
//! Killing the child is the one sure way out of a call that hangs, of id tables frozen at init and
//! of a library that cannot be unloaded. May import `domain`, `ports` and `dcmi`. Invariants: the
//! host holds a file lock for life and sees no hardware without it, so two never work at once; it
//! dies with its parent; every request has a deadline; a call that overran is not made again on its
//! thread before it came back. The drawback: each answer crosses a socket as JSON, which costs tens
//! of microseconds, and a second process costs memory.

pub mod client;
pub mod host;
mod moment;
mod protocol;

//! Simulated Ascend hardware in two halves that share this crate.
//!
//! The daemon half (`profile`, `hardware`, `daemon`, `cli`) is the node's hardware and outlives
//! every driver user. The library half (`client`, `exports`) becomes `libdcmi.so`: the true C ABI,
//! a table of numbers taken at init, and one round trip to the daemon for each call. Both meet in
//! `wire`. Unsafe code lives in `exports` only.
//!
//! `old_driver.rs` is no module of this crate but the root of another, in `old-driver/`: the same
//! library half without `exports/newer.rs`.
//!
//! Drawback: one crate carries the daemon's dependencies into the library's build. The linker
//! drops what the library does not use, and one build command yields both artefacts.

mod abi;
pub mod cli;
mod client;
mod clock;
mod daemon;
mod exports;
mod hardware;
pub mod profile;
pub mod wire;

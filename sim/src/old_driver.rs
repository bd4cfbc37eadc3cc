//! The library half of the simulator, built as an old driver has it: root of the crate in
//! `old-driver/`, which sees the modules beside this file.
//!
//! It is the source of `libdcmi.so` without `exports/newer.rs`, so the newer functions are not
//! there at all: a caller meets a missing symbol, not a code. A feature of one crate cannot do
//! this, because cargo unites features and both libraries are needed side by side.
#![expect(
    dead_code,
    reason = "the shared source has parts that only the newer functions use"
)]

mod abi;
mod client;
mod exports;
pub mod wire;

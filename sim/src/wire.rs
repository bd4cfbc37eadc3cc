//! What travels over the daemon's socket: one JSON value a line, in both directions.
//!
//! A line with the key `call` is a driver call made by `libdcmi.so`; any other line is a control
//! request, told apart by its `op`. Invariant: a line longer than the reader's bound ends the
//! connection, so no peer can make the other side grow.

mod address;
mod call;
mod caller;
mod code;
mod control;
mod control_rows;
mod frame;
mod quirks;
mod symbols;
mod vdevice;

pub use address::Address;
pub use call::{
    Answer, Call, CallReply, CardEntry, ChipEntry, ChipQuery, EccCounts, EventFilter, Failure,
};
pub use call::{EventRecord, Identity, Process, Query, Snapshot, Unit};
pub use caller::Caller;
pub use code::ReturnCode;
pub use control::{Assertion, CardUnit, CodeAction, Control, ControlReply, IpVersion, Switch};
pub use control_rows::{ResetFault, VdevControl};
pub use frame::{FrameError, LineReader, MAX_REPLY_BYTES, MAX_REQUEST_BYTES, write_line};
pub use quirks::{Quirk, Quirks};
pub use symbols::{Generation, NEWER_SYMBOLS, SYMBOLS, generation_of};
pub use vdevice::{
    Capacity, Change, ChipCapacity, CreatedVdevice, NodeQuery, ResetChannel, SuperPodPlace,
    VdeviceActivity, VdeviceAnswer,
};

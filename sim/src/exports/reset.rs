//! Resets and what is asked while one goes on.

use std::ffi::{c_int, c_uint};

use super::out::Out;
use super::{ask, ask_node, export, int, number, word};
use crate::client::{self, At};
use crate::wire::{Change, ChipQuery, Failure, Query, ResetChannel, ReturnCode};

/// Stands for all chips of the node.
const ALL: c_int = 0xFF;

export! {
    fn dcmi_get_device_boot_status(card: c_int, device: c_int, status: Out<c_uint>) =
        |symbol| write_boot_status(symbol, At::Device(card, device), status);
    fn dcmiv2_get_device_boot_status(device: c_int, status: Out<c_uint>) =
        |symbol| write_boot_status(symbol, At::Logic(device), status);

    fn dcmi_get_device_outband_channel_state(card: c_int, device: c_int, state: Out<c_int>) =
        |symbol| write_channel_state(symbol, At::Device(card, device), state);
    fn dcmiv2_get_device_outband_channel_state(device: c_int, state: Out<c_int>) =
        |symbol| write_channel_state(symbol, At::Logic(device), state);

    fn dcmi_pre_reset_soc(card: c_int, device: c_int) =
        |symbol| change(symbol, At::Device(card, device), Change::PreReset);
    fn dcmi_set_device_pre_reset(card: c_int, device: c_int) =
        |symbol| change(symbol, At::Device(card, device), Change::PreReset);
    fn dcmiv2_pre_reset_device(device: c_int) =
        |symbol| change(symbol, At::Logic(device), Change::PreReset);

    fn dcmi_set_device_reset(card: c_int, device: c_int, channel: c_uint) =
        |symbol| reset(symbol, At::Device(card, device), card == ALL, channel);
    fn dcmiv2_reset_device(device: c_int, channel: c_uint) =
        |symbol| reset(symbol, At::Logic(device), device == ALL, channel);

    fn dcmi_rescan_soc(card: c_int, device: c_int) =
        |symbol| change(symbol, At::Device(card, device), Change::Rescan);
    fn dcmi_set_device_rescan(card: c_int, device: c_int) =
        |symbol| change(symbol, At::Device(card, device), Change::Rescan);
    fn dcmiv2_rescan_device(device: c_int) =
        |symbol| change(symbol, At::Logic(device), Change::Rescan);
}

fn write_boot_status(symbol: &'static str, at: At, status: Out<c_uint>) -> Result<(), Failure> {
    let place = status.place()?;
    place.write(word(number(&ask(symbol, at, ChipQuery::BootStatus)?)?));
    Ok(())
}

fn write_channel_state(symbol: &'static str, at: At, state: Out<c_int>) -> Result<(), Failure> {
    let place = state.place()?;
    place.write(int(number(&ask(symbol, at, ChipQuery::OutbandChannel)?)?));
    Ok(())
}

fn change(symbol: &'static str, at: At, change: Change) -> Result<(), Failure> {
    ask_node(symbol, at, Query::Change(change)).map(drop)
}

/// The number of all chips may also be that of one, which is then meant.
fn reset(symbol: &'static str, at: At, may_mean_all: bool, channel: c_uint) -> Result<(), Failure> {
    let channel = match channel {
        0 => ResetChannel::OutOfBand,
        1 => ResetChannel::InBand,
        _ => return Err(Failure(ReturnCode::INVALID_PARAMETER)),
    };
    let session = client::session();
    let is_known = session
        .tables()
        .is_none_or(|tables| tables.resolve(at).is_ok());
    if may_mean_all && !is_known {
        change(symbol, At::Node, Change::ResetAll(channel))
    } else {
        change(symbol, at, Change::Reset(channel))
    }
}

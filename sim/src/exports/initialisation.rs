//! Init and versions.

use std::ffi::{c_char, c_uint};

use super::out::Out;
use super::{ask_node, at_least, export, text};
use crate::client::{self, At};
use crate::wire::{Failure, Query};

const LEAST_VERSION_LENGTH: usize = 16;

export! {
    fn dcmi_init() = client::initialise;
    fn dcmiv2_init() = client::initialise;

    fn dcmi_get_dcmi_version(version: Out<c_char>, length: c_uint) =
        |symbol| write_version(symbol, Query::LibraryVersion, version, length);
    fn dcmiv2_get_dcmi_version(version: Out<c_char>, length: c_uint) =
        |symbol| write_version(symbol, Query::LibraryVersion, version, length);
    fn dcmi_get_driver_version(version: Out<c_char>, length: c_uint) =
        |symbol| write_version(symbol, Query::DriverVersion, version, length);
    fn dcmiv2_get_driver_version(version: Out<c_char>, length: c_uint) =
        |symbol| write_version(symbol, Query::DriverVersion, version, length);
}

fn write_version(
    symbol: &'static str,
    query: Query,
    version: Out<c_char>,
    length: c_uint,
) -> Result<(), Failure> {
    let place = version.place()?;
    let capacity = usize::try_from(length).unwrap_or(usize::MAX);
    at_least(capacity, LEAST_VERSION_LENGTH)?;
    place.write_text(&text(ask_node(symbol, At::Node, query)?)?, capacity);
    Ok(())
}

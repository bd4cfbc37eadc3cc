//! Functions that libraries of older drivers do not have. The library of an old driver is built
//! from the same source without this file.

use std::ffi::{c_char, c_int, c_uint};

use super::identity::write_chip_info;
use super::out::{Out, reserved_words};
use super::{ask, export, int, number, numbers, text, word};
use crate::abi::{ChipInfoV2, MultiUtilization};
use crate::client::{self, At};
use crate::wire::{ChipQuery, Failure};

/// Room the interface promises for a CPU list; it has no length argument.
const CPU_LIST_LENGTH: usize = 1024;

export! {
    fn dcmi_get_device_chip_info_v2(card: c_int, device: c_int, info: Out<ChipInfoV2>) =
        |symbol| write_chip_info(symbol, At::Device(card, device), info);

    fn dcmi_get_mainboard_id(card: c_int, device: c_int, id: Out<c_uint>) =
        |symbol| write_mainboard_id(symbol, At::Device(card, device), id);
    fn dcmiv2_get_mainboard_id(device: c_int, id: Out<c_uint>) =
        |symbol| write_mainboard_id(symbol, At::Logic(device), id);

    fn dcmi_get_affinity_cpu_info_by_device_id(
        card: c_int,
        device: c_int,
        cpus: Out<c_char>,
        length: Out<c_int>,
    ) = |symbol| write_affinity(symbol, At::Device(card, device), cpus, length);
    fn dcmiv2_get_affinity_cpu_info_by_dev_id(
        device: c_int,
        cpus: Out<c_char>,
        length: Out<c_int>,
    ) = |symbol| write_affinity(symbol, At::Logic(device), cpus, length);

    fn dcmi_get_device_multi_utilization_rate(
        card: c_int,
        device: c_int,
        rates: Out<MultiUtilization>,
    ) = |symbol| write_rates(symbol, At::Device(card, device), rates);
    fn dcmiv2_get_device_multi_utilization_rate(device: c_int, rates: Out<MultiUtilization>) =
        |symbol| write_rates(symbol, At::Logic(device), rates);

    fn dcmi_get_topo_info_by_device_id(
        card: c_int,
        device: c_int,
        other_card: c_int,
        other_device: c_int,
        link: Out<c_int>,
    ) = |symbol| {
        let (at, other) = (At::Device(card, device), At::Device(other_card, other_device));
        write_link(symbol, at, other, link)
    };
    fn dcmiv2_get_topo_info_by_device_id(device: c_int, other: c_int, link: Out<c_int>) =
        |symbol| write_link(symbol, At::Logic(device), At::Logic(other), link);
}

fn write_mainboard_id(symbol: &'static str, at: At, id: Out<c_uint>) -> Result<(), Failure> {
    let place = id.place()?;
    place.write(word(number(&ask(symbol, at, ChipQuery::MainboardId)?)?));
    Ok(())
}

fn write_affinity(
    symbol: &'static str,
    at: At,
    cpus: Out<c_char>,
    length: Out<c_int>,
) -> Result<(), Failure> {
    let (place, length) = (cpus.place()?, length.place()?);
    let cpus = text(ask(symbol, at, ChipQuery::Affinity)?)?;
    place.write_text(&cpus, CPU_LIST_LENGTH);
    length.write(c_int::try_from(cpus.len().min(CPU_LIST_LENGTH - 1)).unwrap_or(c_int::MAX));
    Ok(())
}

fn write_rates(symbol: &'static str, at: At, rates: Out<MultiUtilization>) -> Result<(), Failure> {
    let place = rates.place()?;
    let [aic, aiv, aicore, npu] = numbers(ask(symbol, at, ChipQuery::MultiUtilization)?)?.map(word);
    place.write(MultiUtilization {
        aic,
        aiv,
        aicore,
        npu,
        reserved: reserved_words(),
    });
    Ok(())
}

fn write_link(symbol: &'static str, at: At, other: At, link: Out<c_int>) -> Result<(), Failure> {
    let place = link.place()?;
    place.write(int(number(
        &client::session().ask_link(symbol, at, other)?,
    )?));
    Ok(())
}

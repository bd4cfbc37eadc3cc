//! Sensors, utilisation, memory, holders.

use std::ffi::{c_int, c_uint, c_ulong, c_ulonglong};

use super::out::{Out, reserved};
use super::{INNER_ERROR, ask, export, int, number, numbers, word};
use crate::abi::{EccInfo, HbmInfo, LongEccInfo, MemoryInfo, ProcMemInfo};
use crate::client::{self, At};
use crate::wire::{Answer, ChipQuery, Failure};

/// Room the interface promises for holders.
const MOST_PROCESSES: usize = 64;

export! {
    fn dcmi_get_device_power_info(card: c_int, device: c_int, power: Out<c_int>) =
        |symbol| write_int(symbol, At::Device(card, device), ChipQuery::Power, power);
    fn dcmiv2_get_device_power_info(device: c_int, power: Out<c_int>) =
        |symbol| write_int(symbol, At::Logic(device), ChipQuery::Power, power);
    fn dcmi_mcu_get_power_info(card: c_int, power: Out<c_int>) =
        |symbol| write_int(symbol, At::Card(card), ChipQuery::McuPower, power);

    fn dcmi_get_device_temperature(card: c_int, device: c_int, celsius: Out<c_int>) =
        |symbol| write_int(symbol, At::Device(card, device), ChipQuery::Temperature, celsius);
    fn dcmiv2_get_device_temperature(device: c_int, celsius: Out<c_int>) =
        |symbol| write_int(symbol, At::Logic(device), ChipQuery::Temperature, celsius);

    fn dcmi_get_device_voltage(card: c_int, device: c_int, voltage: Out<c_uint>) =
        |symbol| write_word(symbol, At::Device(card, device), ChipQuery::Voltage, voltage);
    fn dcmiv2_get_device_voltage(device: c_int, voltage: Out<c_uint>) =
        |symbol| write_word(symbol, At::Logic(device), ChipQuery::Voltage, voltage);

    fn dcmi_get_device_frequency(card: c_int, device: c_int, kind: c_uint, mhz: Out<c_uint>) =
        |symbol| write_word(symbol, At::Device(card, device), ChipQuery::Frequency(kind), mhz);
    fn dcmiv2_get_device_frequency(device: c_int, kind: c_uint, mhz: Out<c_uint>) =
        |symbol| write_word(symbol, At::Logic(device), ChipQuery::Frequency(kind), mhz);

    fn dcmi_get_device_utilization_rate(
        card: c_int,
        device: c_int,
        kind: c_int,
        percent: Out<c_uint>,
    ) = |symbol| write_utilization(symbol, At::Device(card, device), kind, percent);
    fn dcmiv2_get_device_utilization_rate(device: c_int, kind: c_int, percent: Out<c_uint>) =
        |symbol| write_utilization(symbol, At::Logic(device), kind, percent);

    fn dcmi_get_device_hbm_info(card: c_int, device: c_int, info: Out<HbmInfo>) =
        |symbol| write_hbm(symbol, At::Device(card, device), info);
    fn dcmiv2_get_device_hbm_info(device: c_int, info: Out<HbmInfo>) =
        |symbol| write_hbm(symbol, At::Logic(device), info);

    fn dcmi_get_device_memory_info_v3(card: c_int, device: c_int, info: Out<MemoryInfo>) =
        |symbol| {
            let place = info.place()?;
            let values: [i64; 7] =
                numbers(ask(symbol, At::Device(card, device), ChipQuery::Memory)?)?;
            let [size, available, frequency, page_kb, pages, pages_free, percent] = values;
            place.write(MemoryInfo {
                memory_size: bits(size),
                memory_available: bits(available),
                freq: word(frequency),
                hugepagesize: long_bits(page_kb),
                hugepages_total: long_bits(pages),
                hugepages_free: long_bits(pages_free),
                utiliza: word(percent),
                reserved: reserved(),
            });
            Ok(())
        };

    fn dcmi_get_device_ecc_info(card: c_int, device: c_int, kind: c_uint, info: Out<EccInfo>) =
        |symbol| write_ecc(symbol, At::Device(card, device), kind, info);
    fn dcmiv2_get_device_ecc_info(device: c_int, kind: c_uint, info: Out<EccInfo>) =
        |symbol| write_ecc(symbol, At::Logic(device), kind, info);

    fn dcmi_get_device_resource_info(
        card: c_int,
        device: c_int,
        processes: Out<ProcMemInfo>,
        count: Out<c_int>,
    ) = |symbol| write_processes(symbol, At::Device(card, device), processes, count);
    fn dcmiv2_get_device_proc_mem_info(
        device: c_int,
        processes: Out<ProcMemInfo>,
        count: Out<c_int>,
    ) = |symbol| write_processes(symbol, At::Logic(device), processes, count);
}

fn write_int(
    symbol: &'static str,
    at: At,
    query: ChipQuery,
    out: Out<c_int>,
) -> Result<(), Failure> {
    let place = out.place()?;
    place.write(int(number(&ask(symbol, at, query)?)?));
    Ok(())
}

fn write_word(
    symbol: &'static str,
    at: At,
    query: ChipQuery,
    out: Out<c_uint>,
) -> Result<(), Failure> {
    let place = out.place()?;
    place.write(word(number(&ask(symbol, at, query)?)?));
    Ok(())
}

/// A type the family does not have leaves 0 besides the code.
fn write_utilization(
    symbol: &'static str,
    at: At,
    kind: c_int,
    percent: Out<c_uint>,
) -> Result<(), Failure> {
    let place = percent.place()?;
    place.write(0);
    place.write(word(number(&ask(
        symbol,
        at,
        ChipQuery::Utilization(kind),
    )?)?));
    Ok(())
}

fn write_hbm(symbol: &'static str, at: At, info: Out<HbmInfo>) -> Result<(), Failure> {
    let place = info.place()?;
    let values: [i64; 5] = numbers(ask(symbol, at, ChipQuery::Hbm)?)?;
    let [size, frequency, used, celsius, percent] = values;
    place.write(HbmInfo {
        memory_size: bits(size),
        freq: word(frequency),
        memory_usage: bits(used),
        temp: int(celsius),
        bandwidth_util_rate: word(percent),
    });
    Ok(())
}

fn write_ecc(
    symbol: &'static str,
    at: At,
    kind: c_uint,
    info: Out<EccInfo>,
) -> Result<(), Failure> {
    let place = info.place()?;
    let Answer::Ecc(counts) = ask(symbol, at, ChipQuery::Ecc(kind))? else {
        return Err(INNER_ERROR);
    };
    let info = EccInfo {
        enable_flag: int(counts.enabled),
        counters: counts.counters.map(word),
    };
    if client::quirks().long_ecc {
        place.longer().write(LongEccInfo {
            info,
            next_isolated: [0; 2],
        });
    } else {
        place.write(info);
    }
    Ok(())
}

/// The interface has no length argument, so nothing may make this write more than promised.
fn write_processes(
    symbol: &'static str,
    at: At,
    processes: Out<ProcMemInfo>,
    count: Out<c_int>,
) -> Result<(), Failure> {
    let (place, count) = (processes.place()?, count.place()?);
    let Answer::Processes(processes) = ask(symbol, at, ChipQuery::Processes)? else {
        return Err(INNER_ERROR);
    };
    let list: Vec<ProcMemInfo> = processes
        .iter()
        .take(MOST_PROCESSES)
        .map(|process| ProcMemInfo {
            proc_id: process.pid,
            proc_mem_usage: c_ulong::try_from(process.memory_bytes).unwrap_or(c_ulong::MAX),
        })
        .collect();
    place.write_list(&list);
    count.write(c_int::try_from(list.len()).unwrap_or(c_int::MAX));
    Ok(())
}

/// The same bits without a sign, so that -1 becomes the greatest value.
fn bits(value: i64) -> c_ulonglong {
    value.cast_unsigned()
}

fn long_bits(value: i64) -> c_ulong {
    c_ulong::try_from(bits(value)).unwrap_or(c_ulong::MAX)
}

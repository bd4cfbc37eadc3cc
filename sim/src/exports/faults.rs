//! Health, fault codes and fault events.

use std::ffi::{c_char, c_int, c_uint};

use super::out::{Out, char_field, reserved};
use super::{ask, ask_node, at_least, capacity, export, list, number, text, word};
use crate::abi::{DmsFaultEvent, Event, Filter};
use crate::client::{self, At};
use crate::wire::{ChipQuery, EventFilter, EventRecord, Failure, Query, ReturnCode};

/// Preset before the hardware is asked.
const HEALTH_UNKNOWN: c_uint = 4;
const LEAST_ERROR_TEXT_LENGTH: usize = 48;
/// Bytes of one code, as the old call reports them.
const CODE_WIDTH: c_int = 4;
/// Room the interface promises where it has no length argument.
const MOST_CODES: usize = 128;
const LONGEST_EVENT_WAIT_MS: c_int = 30_000;
const EVERY_UNIT: c_int = -1;
const EVENT_KIND_DMS: c_uint = 0;

type Callback = unsafe extern "C" fn(*mut Event);

export! {
    fn dcmi_get_device_health(card: c_int, device: c_int, health: Out<c_uint>) =
        |symbol| write_health(symbol, At::Device(card, device), health);
    fn dcmiv2_get_device_health(device: c_int, health: Out<c_uint>) =
        |symbol| write_health(symbol, At::Logic(device), health);

    fn dcmi_get_device_errorcode_v2(
        card: c_int,
        device: c_int,
        count: Out<c_int>,
        codes: Out<c_uint>,
        length: c_uint,
    ) = |symbol| write_codes(symbol, At::Device(card, device), count, codes, length);
    fn dcmiv2_get_device_error_code_list(
        device: c_int,
        count: Out<c_int>,
        codes: Out<c_uint>,
        length: c_uint,
    ) = |symbol| write_codes(symbol, At::Logic(device), count, codes, length);
    fn dcmi_get_device_errorcode(
        card: c_int,
        device: c_int,
        count: Out<c_int>,
        codes: Out<c_uint>,
        width: Out<c_int>,
    ) = |symbol| {
        let (count, place, width) = (count.place()?, codes.place()?, width.place()?);
        let mut codes = codes_of(symbol, At::Device(card, device))?;
        codes.truncate(MOST_CODES);
        place.write_list(&codes);
        count.write(c_int::try_from(codes.len()).unwrap_or(c_int::MAX));
        width.write(CODE_WIDTH);
        Ok(())
    };

    fn dcmi_get_device_errorcode_string(
        card: c_int,
        device: c_int,
        code: c_uint,
        info: Out<c_char>,
        length: c_int,
    ) = |symbol| write_error_text(symbol, At::Device(card, device), code, info, length);
    fn dcmiv2_get_device_error_info(
        device: c_int,
        code: c_uint,
        info: Out<c_char>,
        length: c_int,
    ) = |symbol| write_error_text(symbol, At::Logic(device), code, info, length);

    fn dcmi_subscribe_fault_event(
        card: c_int,
        device: c_int,
        filter: Filter,
        callback: Option<Callback>,
    ) = |symbol| subscribe(symbol, at_device(card, device), filter, callback);
    fn dcmiv2_subscribe_fault_event(device: c_int, filter: Filter, callback: Option<Callback>) =
        |symbol| subscribe(symbol, at_logic(device), filter, callback);

    fn dcmi_get_fault_event(
        card: c_int,
        device: c_int,
        timeout_ms: c_int,
        filter: Filter,
        event: Out<Event>,
    ) = |symbol| write_event(symbol, at_device(card, device), timeout_ms, filter, event);
    fn dcmiv2_get_fault_event(
        device: c_int,
        timeout_ms: c_int,
        filter: Filter,
        event: Out<Event>,
    ) = |symbol| write_event(symbol, at_logic(device), timeout_ms, filter, event);
}

fn write_health(symbol: &'static str, at: At, health: Out<c_uint>) -> Result<(), Failure> {
    let place = health.place()?;
    place.write(HEALTH_UNKNOWN);
    place.write(word(number(&ask(symbol, at, ChipQuery::Health)?)?));
    Ok(())
}

fn write_codes(
    symbol: &'static str,
    at: At,
    count: Out<c_int>,
    codes: Out<c_uint>,
    length: c_uint,
) -> Result<(), Failure> {
    let (count, place) = (count.place()?, codes.place()?);
    let capacity = usize::try_from(length).unwrap_or(usize::MAX);
    at_least(capacity, 1)?;
    let codes = codes_of(symbol, at)?;
    at_least(capacity, codes.len())?;
    place.write_list(&codes);
    count.write(c_int::try_from(codes.len()).unwrap_or(c_int::MAX));
    Ok(())
}

fn codes_of(symbol: &'static str, at: At) -> Result<Vec<c_uint>, Failure> {
    Ok(list(ask(symbol, at, ChipQuery::ErrorCodes)?)?
        .into_iter()
        .map(word)
        .collect())
}

fn write_error_text(
    symbol: &'static str,
    at: At,
    code: c_uint,
    info: Out<c_char>,
    length: c_int,
) -> Result<(), Failure> {
    let place = info.place()?;
    let capacity = capacity(length)?;
    at_least(capacity, LEAST_ERROR_TEXT_LENGTH)?;
    place.write_text(
        &text(ask_node(symbol, at, Query::ErrorText(code))?)?,
        capacity,
    );
    Ok(())
}

fn subscribe(
    symbol: &'static str,
    at: At,
    filter: Filter,
    callback: Option<Callback>,
) -> Result<(), Failure> {
    let callback = callback.ok_or(Failure(ReturnCode::INVALID_PARAMETER))?;
    client::subscribe(symbol, at, filter_of(filter), move |record| {
        let mut event = event_of(record);
        // SAFETY: the caller handed the function over for this use, and the interface demands
        // that it stays loaded for the life of the process. The event outlives the call.
        unsafe { callback(&raw mut event) };
    })
}

fn write_event(
    symbol: &'static str,
    at: At,
    timeout_ms: c_int,
    filter: Filter,
    event: Out<Event>,
) -> Result<(), Failure> {
    let place = event.place()?;
    if !(EVERY_UNIT..=LONGEST_EVENT_WAIT_MS).contains(&timeout_ms) {
        return Err(Failure(ReturnCode::INVALID_PARAMETER));
    }
    place.write(event_of(&client::read_event(
        symbol,
        at,
        timeout_ms,
        filter_of(filter),
    )?));
    Ok(())
}

fn at_device(card: c_int, device: c_int) -> At {
    if (card, device) == (EVERY_UNIT, EVERY_UNIT) {
        At::Node
    } else {
        At::Device(card, device)
    }
}

fn at_logic(device: c_int) -> At {
    if device == EVERY_UNIT {
        At::Node
    } else {
        At::Logic(device)
    }
}

fn filter_of(filter: Filter) -> EventFilter {
    EventFilter {
        flag: filter.filter_flag,
        event_id: filter.event_id,
        severity: filter.severity,
        node_type: filter.node_type,
    }
}

/// The chip is named by the number this process knows it by.
fn event_of(record: &EventRecord) -> Event {
    let session = client::session();
    let known = session
        .tables()
        .and_then(|tables| tables.by_slot(record.chip));
    let logic = known.map_or(record.logic, |chip| chip.logic);
    Event {
        kind: EVENT_KIND_DMS,
        dms: DmsFaultEvent {
            event_id: record.event_id,
            deviceid: u16::try_from(logic).unwrap_or(u16::MAX),
            node_type: record.node_type,
            node_id: 0,
            sub_node_type: 0,
            sub_node_id: 0,
            severity: record.severity,
            assertion: record.assertion,
            event_serial_num: record.serial,
            notify_serial_num: record.serial,
            alarm_raised_time: record.raised_ms,
            event_name: char_field(&record.name),
            additional_info: [0; 32],
            reserved: reserved(),
        },
    }
}

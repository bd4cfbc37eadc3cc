//! Lists, counts and conversions of numbers. All answers come from the tables taken at init.

use std::ffi::{c_int, c_uint};

use super::out::Out;
use super::{capacity, export};
use crate::client::{self, At, Tables};
use crate::wire::{CardEntry, ChipEntry, Failure, ReturnCode, Unit};

const TYPE_NPU: c_uint = 0;
const TYPE_MCU: c_uint = 1;
const TYPE_INVALID: c_uint = 0xff;
/// Stands for a microcontroller or CPU a card does not have.
const NO_UNIT: c_int = -1;

export! {
    fn dcmi_get_card_list(number: Out<c_int>, list: Out<c_int>, length: c_int) =
        |symbol| write_list(symbol, number, list, length, Tables::card_ids);
    fn dcmi_get_card_num_list(number: Out<c_int>, list: Out<c_int>, length: c_int) =
        |symbol| write_list(symbol, number, list, length, Tables::card_ids);
    fn dcmiv2_get_device_list(list: Out<c_int>, number: Out<c_int>, length: c_int) =
        |symbol| write_list(symbol, number, list, length, Tables::logic_ids);

    fn dcmi_get_all_device_count(count: Out<c_int>) = |symbol| write_count(symbol, count);
    fn dcmiv2_get_all_device_count(count: Out<c_int>) = |symbol| write_count(symbol, count);

    fn dcmi_get_device_num_in_card(card: c_int, number: Out<c_int>) = |symbol| {
        let place = number.place()?;
        place.write(chips_in(&find_card(symbol, card)?));
        Ok(())
    };
    fn dcmi_get_device_id_in_card(
        card: c_int,
        id_max: Out<c_int>,
        mcu_id: Out<c_int>,
        cpu_id: Out<c_int>,
    ) = |symbol| {
        let (id_max, mcu_id, cpu_id) = (id_max.place()?, mcu_id.place()?, cpu_id.place()?);
        let card = find_card(symbol, card)?;
        id_max.write(chips_in(&card));
        mcu_id.write(if card.mcu { chips_in(&card) } else { NO_UNIT });
        cpu_id.write(NO_UNIT);
        Ok(())
    };

    fn dcmi_get_device_type(card: c_int, device: c_int, kind: Out<c_uint>) =
        |symbol| write_type(symbol, At::Device(card, device), kind);
    fn dcmiv2_get_device_type(device: c_int, kind: Out<c_uint>) =
        |symbol| write_type(symbol, At::Logic(device), kind);

    fn dcmi_get_device_logic_id(logic: Out<c_int>, card: c_int, device: c_int) = |symbol| {
        let place = logic.place()?;
        let at = At::Device(card, device);
        let found = client::session().look_up(symbol, at, ReturnCode::NOT_READY, |tables| {
            if tables.devices() == 0 {
                return Err(ReturnCode::INVALID_DEVICE_ID);
            }
            match (tables.chip(card, device), tables.resolve(at)) {
                (Some(chip), _) => Ok(signed(chip.logic)),
                (None, Ok(_)) => Err(ReturnCode::NOT_SUPPORTED),
                (None, Err(code)) => Err(code),
            }
        })?;
        place.write(found);
        Ok(())
    };

    fn dcmi_get_card_id_device_id_from_logicid(
        card: Out<c_int>,
        device: Out<c_int>,
        logic: c_uint,
    ) = |symbol| {
        write_card_and_device(symbol, card, device, |tables| tables.by_logic(logic).map(numbers))
    };
    fn dcmi_get_card_id_device_id_from_phyid(
        card: Out<c_int>,
        device: Out<c_int>,
        phy: c_uint,
    ) = |symbol| {
        write_card_and_device(symbol, card, device, |tables| tables.by_phy(phy).map(numbers))
    };

    fn dcmi_get_device_phyid_from_logicid(logic: c_uint, phy: Out<c_uint>) =
        |symbol| convert(symbol, phy, |tables| tables.by_logic(logic).map(|(_, chip)| chip.phy));
    fn dcmi_get_device_logicid_from_phyid(phy: c_uint, logic: Out<c_uint>) =
        |symbol| convert(symbol, logic, |tables| tables.by_phy(phy).map(|(_, chip)| chip.logic));
    fn dcmiv2_get_chip_phy_id_by_dev_id(logic: c_int, phy: Out<c_uint>) = |symbol| {
        let logic = logic.cast_unsigned();
        convert(symbol, phy, |tables| tables.by_logic(logic).map(|(_, chip)| chip.phy))
    };
    fn dcmiv2_get_dev_id_by_chip_phy_id(phy: c_uint, logic: Out<c_uint>) =
        |symbol| convert(symbol, logic, |tables| tables.by_phy(phy).map(|(_, chip)| chip.logic));
}

fn write_list(
    symbol: &'static str,
    number: Out<c_int>,
    list: Out<c_int>,
    length: c_int,
    ids: impl FnOnce(&Tables) -> Vec<i32>,
) -> Result<(), Failure> {
    let (number, list) = (number.place()?, list.place()?);
    let capacity = capacity(length)?;
    let session = client::session();
    let ids = session.look_up(symbol, At::Node, ReturnCode::INNER_ERROR, |tables| {
        let ids = ids(tables);
        if ids.len() > capacity {
            Err(ReturnCode::INVALID_PARAMETER)
        } else {
            Ok(ids)
        }
    })?;
    list.write_list(&ids);
    number.write(length_of(&ids));
    Ok(())
}

fn write_count(symbol: &'static str, count: Out<c_int>) -> Result<(), Failure> {
    let place = count.place()?;
    let session = client::session();
    place.write(
        session.look_up(symbol, At::Node, ReturnCode::INNER_ERROR, |tables| {
            Ok(signed(tables.devices()))
        })?,
    );
    Ok(())
}

/// Before init the type is "invalid", but the call succeeds.
fn write_type(symbol: &'static str, at: At, kind: Out<c_uint>) -> Result<(), Failure> {
    let place = kind.place()?;
    let session = client::session();
    let ready = session.tables().is_some();
    let found = session.look_up(symbol, at, ReturnCode::OK, |tables| {
        match tables.resolve(at)? {
            Some(Unit::Mcu(_)) => Ok(TYPE_MCU),
            Some(Unit::Chip(_) | Unit::Card(_)) | None => Ok(TYPE_NPU),
        }
    });
    place.write(match found {
        Ok(kind) => kind,
        Err(Failure(ReturnCode::OK)) if !ready => TYPE_INVALID,
        Err(failure) => return Err(failure),
    });
    Ok(())
}

fn find_card(symbol: &'static str, id: c_int) -> Result<CardEntry, Failure> {
    client::session().look_up(symbol, At::Card(id), ReturnCode::INNER_ERROR, |tables| {
        tables
            .card(id)
            .cloned()
            .ok_or(ReturnCode::INVALID_PARAMETER)
    })
}

fn write_card_and_device(
    symbol: &'static str,
    card: Out<c_int>,
    device: Out<c_int>,
    find: impl FnOnce(&Tables) -> Option<(i32, i32)>,
) -> Result<(), Failure> {
    let (card, device) = (card.place()?, device.place()?);
    let session = client::session();
    let found = session.look_up(symbol, At::Node, ReturnCode::NOT_READY, |tables| {
        find(tables).ok_or(ReturnCode::NO_SUCH_DEVICE)
    })?;
    card.write(found.0);
    device.write(found.1);
    Ok(())
}

fn convert(
    symbol: &'static str,
    out: Out<c_uint>,
    find: impl FnOnce(&Tables) -> Option<u32>,
) -> Result<(), Failure> {
    let place = out.place()?;
    let session = client::session();
    place.write(
        session.look_up(symbol, At::Node, ReturnCode::NOT_READY, |tables| {
            find(tables).ok_or(ReturnCode::NO_SUCH_DEVICE)
        })?,
    );
    Ok(())
}

fn numbers((card, chip): (&CardEntry, &ChipEntry)) -> (i32, i32) {
    (card.id, chip.device)
}

fn chips_in(card: &CardEntry) -> c_int {
    length_of(&card.chips)
}

fn length_of<T>(list: &[T]) -> c_int {
    c_int::try_from(list.len()).unwrap_or(c_int::MAX)
}

fn signed(number: u32) -> c_int {
    c_int::try_from(number).unwrap_or(c_int::MAX)
}

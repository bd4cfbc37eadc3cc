//! What a chip is: names, ids, places, labels.

use std::ffi::{c_char, c_int, c_uint};

use super::out::{Out, field, name_field, reserved};
use super::{INNER_ERROR, ask, at_least, capacity, export, int, number, numbers, text, word};
use crate::abi::{BoardInfo, ChipInfo, ChipInfoV2, DieId, Elabel, PcieInfo};
use crate::client::At;
use crate::wire::{Answer, ChipQuery, Failure, Identity};

const LEAST_PRODUCT_TYPE_LENGTH: usize = 32;

export! {
    fn dcmi_get_device_chip_info(card: c_int, device: c_int, info: Out<ChipInfo>) = |symbol| {
        let place = info.place()?;
        let identity = identity(symbol, At::Device(card, device))?;
        place.write(ChipInfo {
            chip_type: name_field(&identity.chip_type),
            chip_name: name_field(&identity.chip_name),
            chip_ver: name_field(&identity.chip_version),
            aicore_cnt: identity.aicore_count,
        });
        Ok(())
    };
    fn dcmiv2_get_device_chip_info(device: c_int, info: Out<ChipInfoV2>) =
        |symbol| write_chip_info(symbol, At::Logic(device), info);

    fn dcmi_get_device_board_info(card: c_int, device: c_int, info: Out<BoardInfo>) =
        |symbol| write_board_info(symbol, At::Device(card, device), info);
    fn dcmiv2_get_device_board_info(device: c_int, info: Out<BoardInfo>) =
        |symbol| write_board_info(symbol, At::Logic(device), info);

    fn dcmi_get_device_die_v2(card: c_int, device: c_int, kind: c_uint, die: Out<DieId>) =
        |symbol| write_die(symbol, At::Device(card, device), kind, die);
    fn dcmiv2_get_device_die_id(device: c_int, kind: c_uint, die: Out<DieId>) =
        |symbol| write_die(symbol, At::Logic(device), kind, die);

    fn dcmi_get_device_pcie_info_v2(card: c_int, device: c_int, info: Out<PcieInfo>) =
        |symbol| write_pcie_info(symbol, At::Device(card, device), info);
    fn dcmiv2_get_device_pcie_info(device: c_int, info: Out<PcieInfo>) =
        |symbol| write_pcie_info(symbol, At::Logic(device), info);

    fn dcmi_get_product_type(card: c_int, device: c_int, name: Out<c_char>, length: c_int) =
        |symbol| {
            let place = name.place()?;
            let capacity = capacity(length)?;
            at_least(capacity, LEAST_PRODUCT_TYPE_LENGTH)?;
            let answer = ask(symbol, At::Device(card, device), ChipQuery::ProductType)?;
            place.write_text(&text(answer)?, capacity);
            Ok(())
        };

    fn dcmi_get_card_elabel_v2(card: c_int, label: Out<Elabel>) =
        |symbol| write_label(symbol, At::Card(card), label);
    fn dcmiv2_get_device_elabel_info(device: c_int, label: Out<Elabel>) =
        |symbol| write_label(symbol, At::Logic(device), label);

    fn dcmi_get_netdev_brother_device(card: c_int, device: c_int, brother: Out<c_int>) =
        |symbol| {
            let place = brother.place()?;
            place.write(int(number(&ask(symbol, At::Device(card, device), ChipQuery::Brother)?)?));
            Ok(())
        };
}

fn identity(symbol: &'static str, at: At) -> Result<Identity, Failure> {
    let Answer::Identity(identity) = ask(symbol, at, ChipQuery::ChipInfo)? else {
        return Err(INNER_ERROR);
    };
    Ok(identity)
}

pub(super) fn write_chip_info(
    symbol: &'static str,
    at: At,
    info: Out<ChipInfoV2>,
) -> Result<(), Failure> {
    let place = info.place()?;
    let identity = identity(symbol, at)?;
    place.write(ChipInfoV2 {
        chip_type: name_field(&identity.chip_type),
        chip_name: name_field(&identity.chip_name),
        chip_ver: name_field(&identity.chip_version),
        aicore_cnt: identity.aicore_count,
        npu_name: name_field(&identity.npu_name),
    });
    Ok(())
}

fn write_board_info(symbol: &'static str, at: At, info: Out<BoardInfo>) -> Result<(), Failure> {
    let place = info.place()?;
    let [board_id, pcb_id, bom_id, slot_id] =
        numbers(ask(symbol, at, ChipQuery::BoardInfo)?)?.map(word);
    place.write(BoardInfo {
        board_id,
        pcb_id,
        bom_id,
        slot_id,
    });
    Ok(())
}

fn write_die(symbol: &'static str, at: At, kind: c_uint, die: Out<DieId>) -> Result<(), Failure> {
    let place = die.place()?;
    let Answer::Die(words) = ask(symbol, at, ChipQuery::DieId(kind))? else {
        return Err(INNER_ERROR);
    };
    place.write(DieId { words });
    Ok(())
}

fn write_pcie_info(symbol: &'static str, at: At, info: Out<PcieInfo>) -> Result<(), Failure> {
    let place = info.place()?;
    let [
        vendor,
        subvendor,
        device,
        subdevice,
        domain,
        bdf_bus,
        bdf_device,
        bdf_function,
    ] = numbers(ask(symbol, at, ChipQuery::PcieInfo)?)?.map(word);
    place.write(PcieInfo {
        vendor,
        subvendor,
        device,
        subdevice,
        domain: domain.cast_signed(),
        bdf_bus,
        bdf_device,
        bdf_function,
        reserved: reserved(),
    });
    Ok(())
}

/// Every text is filled with `NA` before the hardware is asked, and stays so when it fails.
fn write_label(symbol: &'static str, at: At, label: Out<Elabel>) -> Result<(), Failure> {
    let place = label.place()?;
    let fill = |texts: [&str; 5]| {
        let [product, model, manufacturer, date, serial] = texts;
        place.write(Elabel {
            product_name: field(product),
            model: field(model),
            manufacturer: field(manufacturer),
            manufacturer_date: field(date),
            serial_number: field(serial),
        });
    };
    fill(["NA"; 5]);
    let Answer::Label(texts) = ask(symbol, at, ChipQuery::Elabel)? else {
        return Err(INNER_ERROR);
    };
    fill(texts.each_ref().map(String::as_str));
    Ok(())
}

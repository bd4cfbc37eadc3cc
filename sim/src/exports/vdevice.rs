//! Making and removing vNPUs, and the settings of the node around them.

use std::ffi::{c_int, c_uint};

use super::device_info::NO_VGROUP;
use super::out::{Out, reserved};
use super::{INNER_ERROR, ask, ask_node, export, int, number, word};
use crate::abi::{CreateVdevice, CreatedVdevice};
use crate::client::At;
use crate::wire::{Answer, Change, ChipQuery, Failure, NodeQuery, Query, ReturnCode};

/// Leaves the choice of an id to the driver.
const ANY: c_uint = c_uint::MAX;

export! {
    fn dcmi_create_vdevice(
        card: c_int,
        device: c_int,
        wanted: Out<CreateVdevice>,
        made: Out<CreatedVdevice>,
    ) = |symbol| {
        let (wanted, place) = (wanted.place()?.read(), made.place()?);
        let change = Change::CreateVdevice {
            vdev: (wanted.vdev_id != ANY).then_some(wanted.vdev_id),
            vgroup: (wanted.vfg_id != ANY).then_some(wanted.vfg_id),
            template: template_name(&wanted)?,
        };
        let at = At::Device(card, device);
        let Answer::Created(created) = ask_node(symbol, at, Query::Change(change))? else {
            return Err(INNER_ERROR);
        };
        let [pcie_bus, pcie_device, pcie_func] = created.pcie;
        place.write(CreatedVdevice {
            vdev_id: created.vdev,
            pcie_bus,
            pcie_device,
            pcie_func,
            vfg_id: created.vgroup.unwrap_or(NO_VGROUP),
            reserved: reserved(),
        });
        Ok(())
    };
    fn dcmi_set_destroy_vdevice(card: c_int, device: c_int, vdev: c_uint) =
        |symbol| change(symbol, At::Device(card, device), Change::DestroyVdevice(vdev));

    fn dcmi_get_vdevice_mode(mode: Out<c_int>) = |symbol| {
        let place = mode.place()?;
        place.write(int(setting(symbol, NodeQuery::VdeviceMode)?));
        Ok(())
    };
    fn dcmi_set_vdevice_mode(mode: c_int) =
        |symbol| change(symbol, At::Node, Change::SetVdeviceMode(i64::from(mode)));

    fn dcmi_get_vnpu_config_recover_mode(mode: Out<c_uint>) =
        |symbol| write_setting(symbol, NodeQuery::RecoverMode, mode);
    fn dcmi_set_vnpu_config_recover_mode(mode: c_uint) =
        |symbol| change(symbol, At::Node, Change::SetRecoverMode(mode));

    fn dcmi_get_multi_die_policy(policy: Out<c_uint>) =
        |symbol| write_setting(symbol, NodeQuery::MultiDiePolicy, policy);
    fn dcmi_set_multi_die_policy(policy: c_uint) =
        |symbol| change(symbol, At::Node, Change::SetMultiDiePolicy(policy));

    fn dcmi_get_npu_work_mode(card: c_int, mode: Out<u8>) = |symbol| {
        let place = mode.place()?;
        let mode = number(&ask(symbol, At::Card(card), ChipQuery::WorkMode)?)?;
        place.write(u8::try_from(mode).unwrap_or(u8::MAX));
        Ok(())
    };
}

fn change(symbol: &'static str, at: At, change: Change) -> Result<(), Failure> {
    ask_node(symbol, at, Query::Change(change)).map(drop)
}

fn setting(symbol: &'static str, query: NodeQuery) -> Result<i64, Failure> {
    number(&ask_node(symbol, At::Node, Query::Node(query))?)
}

fn write_setting(symbol: &'static str, query: NodeQuery, out: Out<c_uint>) -> Result<(), Failure> {
    let place = out.place()?;
    place.write(word(setting(symbol, query)?));
    Ok(())
}

/// The text up to its end mark, or all of the field.
fn template_name(wanted: &CreateVdevice) -> Result<String, Failure> {
    let bytes = wanted.template_name.iter().copied();
    let text: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    String::from_utf8(text).map_err(|_| Failure(ReturnCode::INVALID_PARAMETER))
}

//! The C structs, field by field. Sizes and offsets are proved when this file compiles.

use std::ffi::{c_char, c_int, c_uint, c_ulong, c_ulonglong};
use std::mem::{offset_of, size_of};

/// Proves the size of a struct and the offsets of the fields named.
macro_rules! layout {
    ($name:ty, $size:expr, $($field:ident $offset:expr),+ $(,)?) => {
        const _: () = assert!(size_of::<$name>() == $size);
        $(const _: () = assert!(offset_of!($name, $field) == $offset);)+
    };
}

mod vdevice;

pub(crate) use vdevice::{
    BasicResource, ComputingResource, CreateVdevice, CreatedVdevice, FreeResource, MediaResource,
    SpodInfo, TotalResource, VdeviceInfo, VdeviceQuery,
};

#[repr(C)]
pub(crate) struct ChipInfo {
    pub(crate) chip_type: [u8; 32],
    pub(crate) chip_name: [u8; 32],
    pub(crate) chip_ver: [u8; 32],
    pub(crate) aicore_cnt: c_uint,
}
layout!(ChipInfo, 100, chip_type 0, chip_name 32, chip_ver 64, aicore_cnt 96);

#[repr(C)]
pub(crate) struct ChipInfoV2 {
    pub(crate) chip_type: [u8; 32],
    pub(crate) chip_name: [u8; 32],
    pub(crate) chip_ver: [u8; 32],
    pub(crate) aicore_cnt: c_uint,
    pub(crate) npu_name: [u8; 32],
}
layout!(ChipInfoV2, 132, chip_type 0, chip_name 32, chip_ver 64, aicore_cnt 96, npu_name 100);

#[expect(clippy::struct_field_names, reason = "names of the C interface")]
#[repr(C)]
pub(crate) struct BoardInfo {
    pub(crate) board_id: c_uint,
    pub(crate) pcb_id: c_uint,
    pub(crate) bom_id: c_uint,
    pub(crate) slot_id: c_uint,
}
layout!(BoardInfo, 16, board_id 0, pcb_id 4, bom_id 8, slot_id 12);

#[repr(C)]
pub(crate) struct PcieInfo {
    pub(crate) vendor: c_uint,
    pub(crate) subvendor: c_uint,
    pub(crate) device: c_uint,
    pub(crate) subdevice: c_uint,
    pub(crate) domain: c_int,
    pub(crate) bdf_bus: c_uint,
    pub(crate) bdf_device: c_uint,
    pub(crate) bdf_function: c_uint,
    pub(crate) reserved: [u8; 32],
}
layout!(PcieInfo, 64, vendor 0, subvendor 4, device 8, subdevice 12, domain 16, bdf_bus 20,
    bdf_device 24, bdf_function 28, reserved 32);

#[repr(C)]
pub(crate) struct DieId {
    pub(crate) words: [c_uint; 5],
}
layout!(DieId, 20, words 0);

#[repr(C)]
pub(crate) struct EccInfo {
    pub(crate) enable_flag: c_int,
    pub(crate) counters: [c_uint; 6],
}
layout!(EccInfo, 28, enable_flag 0, counters 4);

/// What some driver builds write instead.
#[repr(C)]
pub(crate) struct LongEccInfo {
    pub(crate) info: EccInfo,
    pub(crate) next_isolated: [c_uint; 2],
}
layout!(LongEccInfo, 36, info 0, next_isolated 28);

#[repr(C)]
pub(crate) struct HbmInfo {
    pub(crate) memory_size: c_ulonglong,
    pub(crate) freq: c_uint,
    pub(crate) memory_usage: c_ulonglong,
    pub(crate) temp: c_int,
    pub(crate) bandwidth_util_rate: c_uint,
}
layout!(HbmInfo, 32, memory_size 0, freq 8, memory_usage 16, temp 24, bandwidth_util_rate 28);

#[repr(C)]
pub(crate) struct MemoryInfo {
    pub(crate) memory_size: c_ulonglong,
    pub(crate) memory_available: c_ulonglong,
    pub(crate) freq: c_uint,
    pub(crate) hugepagesize: c_ulong,
    pub(crate) hugepages_total: c_ulong,
    pub(crate) hugepages_free: c_ulong,
    pub(crate) utiliza: c_uint,
    pub(crate) reserved: [u8; 60],
}
layout!(MemoryInfo, 112, memory_size 0, memory_available 8, freq 16, hugepagesize 24,
    hugepages_total 32, hugepages_free 40, utiliza 48, reserved 52);

/// `bytes` holds 16 bytes of the sixth version of the protocol or 4 of the fourth.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct IpAddr {
    pub(crate) bytes: [u8; 16],
    pub(crate) ip_type: c_uint,
}
layout!(IpAddr, 20, bytes 0, ip_type 16);

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct ProcMemInfo {
    pub(crate) proc_id: c_int,
    pub(crate) proc_mem_usage: c_ulong,
}
layout!(ProcMemInfo, 16, proc_id 0, proc_mem_usage 8);

#[repr(C)]
pub(crate) struct MultiUtilization {
    pub(crate) aic: c_uint,
    pub(crate) aiv: c_uint,
    pub(crate) aicore: c_uint,
    pub(crate) npu: c_uint,
    pub(crate) reserved: [c_uint; 8],
}
layout!(MultiUtilization, 48, aic 0, aiv 4, aicore 8, npu 12, reserved 16);

#[repr(C)]
pub(crate) struct Elabel {
    pub(crate) product_name: [u8; 256],
    pub(crate) model: [u8; 256],
    pub(crate) manufacturer: [u8; 256],
    pub(crate) manufacturer_date: [u8; 256],
    pub(crate) serial_number: [u8; 256],
}
layout!(Elabel, 1280, product_name 0, model 256, manufacturer 512, manufacturer_date 768,
    serial_number 1024);

/// Passed by value.
#[derive(Clone, Copy)]
#[expect(clippy::struct_field_names, reason = "names of the C interface")]
#[repr(C)]
pub(crate) struct Filter {
    pub(crate) filter_flag: c_ulonglong,
    pub(crate) event_id: c_uint,
    pub(crate) severity: u8,
    pub(crate) node_type: u8,
    pub(crate) reserved: [u8; 32],
}
layout!(Filter, 48, filter_flag 0, event_id 8, severity 12, node_type 13, reserved 14);

#[repr(C)]
pub(crate) struct Event {
    pub(crate) kind: c_uint,
    pub(crate) dms: DmsFaultEvent,
}
layout!(Event, 360, kind 0, dms 8);

#[repr(C)]
pub(crate) struct DmsFaultEvent {
    pub(crate) event_id: c_uint,
    pub(crate) deviceid: u16,
    pub(crate) node_type: u8,
    pub(crate) node_id: u8,
    pub(crate) sub_node_type: u8,
    pub(crate) sub_node_id: u8,
    pub(crate) severity: u8,
    pub(crate) assertion: u8,
    pub(crate) event_serial_num: c_int,
    pub(crate) notify_serial_num: c_int,
    pub(crate) alarm_raised_time: c_ulonglong,
    pub(crate) event_name: [c_char; 256],
    pub(crate) additional_info: [c_char; 32],
    pub(crate) reserved: [u8; 32],
}
layout!(DmsFaultEvent, 352, event_id 0, deviceid 4, node_type 6, node_id 7, sub_node_type 8,
    sub_node_id 9, severity 10, assertion 11, event_serial_num 12, notify_serial_num 16,
    alarm_raised_time 24, event_name 32, additional_info 288, reserved 320);

//! Memory layouts of the library's structures, the same on `x86_64` and `aarch64`.
//!
//! Invariant: sizes and offsets are asserted at compile time. Enumerations of the C side are plain
//! integers here, so that no value of theirs can be undefined behaviour.

use std::mem::{offset_of, size_of};
use std::os::raw::{c_int, c_ulong};

/// Bytes of most text fields.
pub(super) const TEXT_BYTES: usize = 32;

/// Names of a chip, older form.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct ChipInfo {
    pub(super) chip_type: [u8; TEXT_BYTES],
    pub(super) chip_name: [u8; TEXT_BYTES],
    pub(super) chip_version: [u8; TEXT_BYTES],
    pub(super) aicore_count: u32,
}

const _: () = {
    assert!(size_of::<ChipInfo>() == 100);
    assert!(offset_of!(ChipInfo, chip_name) == 32);
    assert!(offset_of!(ChipInfo, chip_version) == 64);
    assert!(offset_of!(ChipInfo, aicore_count) == 96);
};

/// Names of a chip.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct ChipInfoV2 {
    pub(super) chip_type: [u8; TEXT_BYTES],
    pub(super) chip_name: [u8; TEXT_BYTES],
    pub(super) chip_version: [u8; TEXT_BYTES],
    pub(super) aicore_count: u32,
    pub(super) npu_name: [u8; TEXT_BYTES],
}

const _: () = {
    assert!(size_of::<ChipInfoV2>() == 132);
    assert!(offset_of!(ChipInfoV2, chip_name) == 32);
    assert!(offset_of!(ChipInfoV2, chip_version) == 64);
    assert!(offset_of!(ChipInfoV2, aicore_count) == 96);
    assert!(offset_of!(ChipInfoV2, npu_name) == 100);
};

/// Ids of a board.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct BoardInfo {
    pub(super) board: u32,
    pub(super) pcb: u32,
    pub(super) bom: u32,
    pub(super) slot: u32,
}

const _: () = {
    assert!(size_of::<BoardInfo>() == 16);
    assert!(offset_of!(BoardInfo, slot) == 12);
};

/// PCI facts.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct PcieInfoAll {
    pub(super) vendor: u32,
    pub(super) subvendor: u32,
    pub(super) device: u32,
    pub(super) subdevice: u32,
    pub(super) domain: c_int,
    pub(super) bus: u32,
    pub(super) device_on_bus: u32,
    pub(super) function: u32,
    pub(super) reserved: [u8; 32],
}

const _: () = {
    assert!(size_of::<PcieInfoAll>() == 64);
    assert!(offset_of!(PcieInfoAll, domain) == 16);
    assert!(offset_of!(PcieInfoAll, bus) == 20);
    assert!(offset_of!(PcieInfoAll, function) == 28);
    assert!(offset_of!(PcieInfoAll, reserved) == 32);
};

/// Serial of a die.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Die {
    pub(super) words: [u32; 5],
}

const _: () = assert!(size_of::<Die>() == 20);

/// Where a chip stands in its super pod.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct SuperPodInfo {
    pub(super) sdid: u32,
    pub(super) pod_size: u32,
    pub(super) pod_id: u32,
    pub(super) server_index: u32,
    pub(super) chassis_id: u32,
    pub(super) pod_type: u32,
    pub(super) reserved: [u32; 6],
}

/// Bytes a driver must have written for the pod's type to be among them.
pub(super) const SUPER_POD_TYPE_END: usize = 24;

const _: () = {
    assert!(size_of::<SuperPodInfo>() == 48);
    assert!(offset_of!(SuperPodInfo, pod_size) == 4);
    assert!(offset_of!(SuperPodInfo, pod_id) == 8);
    assert!(offset_of!(SuperPodInfo, server_index) == 12);
    assert!(offset_of!(SuperPodInfo, chassis_id) == 16);
    assert!(offset_of!(SuperPodInfo, pod_type) == 20);
    assert!(offset_of!(SuperPodInfo, reserved) == SUPER_POD_TYPE_END);
};

/// One process on a chip.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct ProcessMemory {
    pub(super) pid: c_int,
    pub(super) bytes: c_ulong,
}

const _: () = {
    assert!(size_of::<ProcessMemory>() == 16);
    assert!(offset_of!(ProcessMemory, bytes) == 8);
};

/// Which events a subscription wants; passed by value.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct EventFilter {
    pub(super) flag: u64,
    pub(super) event_id: u32,
    pub(super) severity: u8,
    pub(super) node_type: u8,
    pub(super) reserved: [u8; 32],
}

const _: () = {
    assert!(size_of::<EventFilter>() == 48);
    assert!(offset_of!(EventFilter, event_id) == 8);
    assert!(offset_of!(EventFilter, severity) == 12);
    assert!(offset_of!(EventFilter, node_type) == 13);
    assert!(offset_of!(EventFilter, reserved) == 14);
};

/// A fault as the subscription tells it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct DmsFaultEvent {
    pub(super) event_id: u32,
    pub(super) device_id: u16,
    pub(super) node_type: u8,
    pub(super) node_id: u8,
    pub(super) sub_node_type: u8,
    pub(super) sub_node_id: u8,
    pub(super) severity: u8,
    pub(super) assertion: u8,
    pub(super) event_serial: c_int,
    pub(super) notify_serial: c_int,
    pub(super) raised_time: u64,
    pub(super) event_name: [u8; 256],
    pub(super) additional: [u8; 32],
    pub(super) reserved: [u8; 32],
}

const _: () = {
    assert!(size_of::<DmsFaultEvent>() == 352);
    assert!(offset_of!(DmsFaultEvent, device_id) == 4);
    assert!(offset_of!(DmsFaultEvent, severity) == 10);
    assert!(offset_of!(DmsFaultEvent, assertion) == 11);
    assert!(offset_of!(DmsFaultEvent, event_serial) == 12);
    assert!(offset_of!(DmsFaultEvent, raised_time) == 24);
    assert!(offset_of!(DmsFaultEvent, event_name) == 32);
    assert!(offset_of!(DmsFaultEvent, additional) == 288);
    assert!(offset_of!(DmsFaultEvent, reserved) == 320);
};

/// Type number of [`Event`] that announces a [`DmsFaultEvent`].
pub(super) const EVENT_TYPE_DMS_FAULT: u32 = 0;

/// What the callback gets.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Event {
    pub(super) kind: u32,
    pub(super) fault: DmsFaultEvent,
}

const _: () = {
    assert!(size_of::<Event>() == 360);
    assert!(offset_of!(Event, fault) == 8);
};

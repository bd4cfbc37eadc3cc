//! The call with a main and a sub command: vNPUs and super pods. Others are not simulated.

use std::ffi::{c_float, c_int, c_uint, c_ulonglong};
use std::mem::size_of;

use super::out::{Out, Place, name_field, reserved, reserved_words};
use super::{INNER_ERROR, ask, ask_node, export};
use crate::abi::{
    BasicResource, ComputingResource, FreeResource, MediaResource, SpodInfo, TotalResource,
    VdeviceInfo, VdeviceQuery,
};
use crate::client::At;
use crate::wire::{
    Answer, Capacity, ChipCapacity, ChipQuery, Failure, Query, ReturnCode, VdeviceActivity,
    VdeviceAnswer,
};

const MAIN_CHIP: c_uint = 12;
const MAIN_HCCS: c_uint = 16;
const MAIN_VDEVICE: c_uint = 52;
const MAIN_PCIE: c_uint = 55;
const MAIN_SIO: c_uint = 56;
const MAIN_DEVICE_SHARE: c_uint = 0x8001;
const SUB_SUPER_POD: c_uint = 1;
const SUB_VDEVICE: c_uint = 0;
const SUB_TOTAL: c_uint = 1;
const SUB_FREE: c_uint = 2;
const SUB_ACTIVITY: c_uint = 5;
/// Tells that a vNPU has no vgroup.
pub(super) const NO_VGROUP: c_uint = c_uint::MAX;

const INVALID_PARAMETER: Failure = Failure(ReturnCode::INVALID_PARAMETER);

export! {
    fn dcmi_get_device_info(
        card: c_int,
        device: c_int,
        main: c_uint,
        sub: c_uint,
        buffer: Out<u8>,
        size: Out<c_uint>,
    ) = |symbol| write_info(symbol, At::Device(card, device), (main, sub), buffer, size);
    fn dcmiv2_get_device_info(
        device: c_int,
        main: c_uint,
        sub: c_uint,
        buffer: Out<u8>,
        size: Out<c_uint>,
    ) = |symbol| write_info(symbol, At::Logic(device), (main, sub), buffer, size);
}

/// The caller's buffer and how large it says it is.
struct Buffer {
    place: Place<u8>,
    size: Place<c_uint>,
}

impl Buffer {
    /// Refuses a buffer that has no room for a `T`.
    fn room_for<T>(&self) -> Result<(), Failure> {
        if self.room() < size_of::<T>() {
            return Err(INVALID_PARAMETER);
        }
        Ok(())
    }

    fn room(&self) -> usize {
        usize::try_from(self.size.read()).unwrap_or(usize::MAX)
    }

    /// The id the caller put at the start of the buffer.
    fn vdev(&self) -> Result<u32, Failure> {
        self.room_for::<VdeviceQuery>()?;
        self.place.read_word(self.room()).ok_or(INVALID_PARAMETER)
    }

    fn write<T: Copy>(&self, value: T) -> Result<(), Failure> {
        if !self.place.write_struct(value, self.room()) {
            return Err(INVALID_PARAMETER);
        }
        self.size
            .write(c_uint::try_from(size_of::<T>()).unwrap_or(c_uint::MAX));
        Ok(())
    }
}

fn write_info(
    symbol: &'static str,
    at: At,
    command: (c_uint, c_uint),
    buffer: Out<u8>,
    size: Out<c_uint>,
) -> Result<(), Failure> {
    let buffer = Buffer {
        place: buffer.place()?,
        size: size.place()?,
    };
    match command {
        (MAIN_CHIP, SUB_SUPER_POD) => write_super_pod(symbol, at, &buffer),
        (MAIN_VDEVICE, SUB_VDEVICE) => write_vdevice(symbol, at, &buffer),
        (MAIN_VDEVICE, SUB_ACTIVITY) => write_activity(symbol, at, &buffer),
        (MAIN_VDEVICE, SUB_TOTAL) => {
            buffer.room_for::<TotalResource>()?;
            let chip = capacity(ask(symbol, at, ChipQuery::CapacityTotal)?)?;
            buffer.write(total(&chip))
        }
        (MAIN_VDEVICE, SUB_FREE) => {
            buffer.room_for::<FreeResource>()?;
            let chip = capacity(ask(symbol, at, ChipQuery::CapacityFree)?)?;
            buffer.write(FreeResource {
                vfg_num: chip.vgroups.count_ones(),
                vfg_bitmap: chip.vgroups,
                basic: basic(NO_VGROUP),
                computing: computing(&chip.capacity),
                media: media(&chip.capacity),
            })
        }
        (MAIN_CHIP | MAIN_HCCS | MAIN_VDEVICE | MAIN_PCIE | MAIN_SIO | MAIN_DEVICE_SHARE, _) => {
            ask(symbol, at, ChipQuery::NotSimulated).map(drop)
        }
        _ => {
            ask_node(symbol, at, Query::Pass)?;
            Err(INVALID_PARAMETER)
        }
    }
}

fn write_super_pod(symbol: &'static str, at: At, buffer: &Buffer) -> Result<(), Failure> {
    buffer.room_for::<SpodInfo>()?;
    let Answer::SuperPod(pod) = ask(symbol, at, ChipQuery::SuperPod)? else {
        return Err(INNER_ERROR);
    };
    buffer.write(SpodInfo {
        sdid: pod.sdid,
        scale_type: pod.size,
        super_pod_id: pod.id,
        server_id: pod.server,
        chassis_id: pod.chassis,
        super_pod_type: pod.kind,
        reserved: reserved_words(),
    })
}

fn write_vdevice(symbol: &'static str, at: At, buffer: &Buffer) -> Result<(), Failure> {
    let vdev = buffer.vdev()?;
    let Answer::Vdevice(vdevice) = ask(symbol, at, ChipQuery::Vdevice(vdev))? else {
        return Err(INNER_ERROR);
    };
    buffer.write(VdeviceQuery {
        vdev_id: vdev,
        info: describe(&vdevice),
    })
}

/// Fills the activity only, as the real call does.
fn write_activity(symbol: &'static str, at: At, buffer: &Buffer) -> Result<(), Failure> {
    let vdev = buffer.vdev()?;
    let Answer::Activity(activity) = ask(symbol, at, ChipQuery::VdeviceActivity(vdev))? else {
        return Err(INNER_ERROR);
    };
    let VdeviceActivity {
        aicore_percent,
        memory_total_kb,
        memory_free_kb,
    } = activity;
    let empty = Capacity::default();
    buffer.write(VdeviceQuery {
        vdev_id: vdev,
        info: VdeviceInfo {
            name: [0; 16],
            status: 0,
            is_container_used: 0,
            vfid: 0,
            vfg_id: 0,
            container_id: 0,
            basic: basic(0),
            computing: ComputingResource {
                vdev_aicore_utilization: aicore_percent,
                vdev_memory_total: memory_total_kb,
                vdev_memory_free: memory_free_kb,
                ..computing(&empty)
            },
            media: media(&empty),
        },
    })
}

fn describe(vdevice: &VdeviceAnswer) -> VdeviceInfo {
    let vgroup = vdevice.vgroup.unwrap_or(NO_VGROUP);
    VdeviceInfo {
        name: name_field(&vdevice.template),
        status: 0,
        is_container_used: c_uint::from(vdevice.in_use),
        vfid: 0,
        vfg_id: vgroup,
        container_id: 0,
        basic: basic(vgroup),
        computing: computing(&vdevice.capacity),
        media: media(&vdevice.capacity),
    }
}

fn total(chip: &ChipCapacity) -> TotalResource {
    let mut vdevs = chip.vdevs.iter().copied();
    TotalResource {
        vdev_num: c_uint::try_from(chip.vdevs.len()).unwrap_or(c_uint::MAX),
        vdev_id: std::array::from_fn(|_| vdevs.next().unwrap_or_default()),
        vfg_num: chip.vgroups.count_ones(),
        vfg_bitmap: chip.vgroups,
        basic: basic(NO_VGROUP),
        computing: computing(&chip.capacity),
        media: media(&chip.capacity),
    }
}

fn capacity(answer: Answer) -> Result<ChipCapacity, Failure> {
    if let Answer::Capacity(capacity) = answer {
        Ok(capacity)
    } else {
        Err(INNER_ERROR)
    }
}

fn basic(vfg_id: c_uint) -> BasicResource {
    BasicResource {
        token: 0,
        token_max: 0,
        task_timeout: 0,
        vfg_id,
        vip_mode: 0,
        reserved: reserved(),
    }
}

/// Everything of a chip's computing but AI cores, AI CPUs and memory is left at zero.
fn computing(capacity: &Capacity) -> ComputingResource {
    ComputingResource {
        aic: units(capacity.aicores),
        aiv: 0.0,
        dsa: 0,
        rtsq: 0,
        acsq: 0,
        cdqm: 0,
        c_core: 0,
        ffts: 0,
        sdma: 0,
        pcie_dma: 0,
        memory_size: c_ulonglong::from(capacity.memory_mb),
        event_id: 0,
        notify_id: 0,
        stream_id: 0,
        model_id: 0,
        topic_schedule_aicpu: 0,
        host_ctrl_cpu: 0,
        host_aicpu: 0,
        device_aicpu: u16::try_from(capacity.aicpus).unwrap_or(u16::MAX),
        topic_ctrl_cpu_slot: 0,
        vdev_aicore_utilization: 0,
        vdev_memory_total: 0,
        vdev_memory_free: 0,
        reserved: reserved(),
    }
}

fn media(capacity: &Capacity) -> MediaResource {
    MediaResource {
        jpegd: units(capacity.jpegd),
        jpege: units(capacity.jpege),
        vpc: units(capacity.vpc),
        vdec: units(capacity.vdec),
        pngd: units(capacity.pngd_halves) / 2.0,
        venc: units(capacity.venc),
        reserved: reserved(),
    }
}

/// Counts of units are small, so none is lost.
fn units(count: u32) -> c_float {
    c_float::from(u16::try_from(count).unwrap_or(u16::MAX))
}

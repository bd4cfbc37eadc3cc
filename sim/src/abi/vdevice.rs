//! Structs about vNPUs and super pods.

use std::ffi::{c_float, c_uint, c_ulonglong};
use std::mem::{offset_of, size_of};

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct SpodInfo {
    pub(crate) sdid: c_uint,
    pub(crate) scale_type: c_uint,
    pub(crate) super_pod_id: c_uint,
    pub(crate) server_id: c_uint,
    pub(crate) chassis_id: c_uint,
    pub(crate) super_pod_type: c_uint,
    pub(crate) reserved: [c_uint; 6],
}
layout!(SpodInfo, 48, sdid 0, scale_type 4, super_pod_id 8, server_id 12, chassis_id 16,
    super_pod_type 20, reserved 24);

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct BasicResource {
    pub(crate) token: c_ulonglong,
    pub(crate) token_max: c_ulonglong,
    pub(crate) task_timeout: c_ulonglong,
    pub(crate) vfg_id: c_uint,
    pub(crate) vip_mode: u8,
    pub(crate) reserved: [u8; 31],
}
layout!(BasicResource, 64, token 0, token_max 8, task_timeout 16, vfg_id 24, vip_mode 28,
    reserved 29);

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct ComputingResource {
    pub(crate) aic: c_float,
    pub(crate) aiv: c_float,
    pub(crate) dsa: u16,
    pub(crate) rtsq: u16,
    pub(crate) acsq: u16,
    pub(crate) cdqm: u16,
    pub(crate) c_core: u16,
    pub(crate) ffts: u16,
    pub(crate) sdma: u16,
    pub(crate) pcie_dma: u16,
    pub(crate) memory_size: c_ulonglong,
    pub(crate) event_id: c_uint,
    pub(crate) notify_id: c_uint,
    pub(crate) stream_id: c_uint,
    pub(crate) model_id: c_uint,
    pub(crate) topic_schedule_aicpu: u16,
    pub(crate) host_ctrl_cpu: u16,
    pub(crate) host_aicpu: u16,
    pub(crate) device_aicpu: u16,
    pub(crate) topic_ctrl_cpu_slot: u16,
    pub(crate) vdev_aicore_utilization: c_uint,
    pub(crate) vdev_memory_total: c_ulonglong,
    pub(crate) vdev_memory_free: c_ulonglong,
    pub(crate) reserved: [u8; 12],
}
layout!(ComputingResource, 96, aic 0, aiv 4, dsa 8, rtsq 10, acsq 12, cdqm 14, c_core 16, ffts 18,
    sdma 20, pcie_dma 22, memory_size 24, event_id 32, notify_id 36, stream_id 40, model_id 44,
    topic_schedule_aicpu 48, host_ctrl_cpu 50, host_aicpu 52, device_aicpu 54,
    topic_ctrl_cpu_slot 56, vdev_aicore_utilization 60, vdev_memory_total 64, vdev_memory_free 72,
    reserved 80);

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct MediaResource {
    pub(crate) jpegd: c_float,
    pub(crate) jpege: c_float,
    pub(crate) vpc: c_float,
    pub(crate) vdec: c_float,
    pub(crate) pngd: c_float,
    pub(crate) venc: c_float,
    pub(crate) reserved: [u8; 32],
}
layout!(MediaResource, 56, jpegd 0, jpege 4, vpc 8, vdec 12, pngd 16, venc 20, reserved 24);

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CreateVdevice {
    pub(crate) vdev_id: c_uint,
    pub(crate) vfg_id: c_uint,
    pub(crate) template_name: [u8; 32],
    pub(crate) reserved: [u8; 64],
}
layout!(CreateVdevice, 104, vdev_id 0, vfg_id 4, template_name 8, reserved 40);

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CreatedVdevice {
    pub(crate) vdev_id: c_uint,
    pub(crate) pcie_bus: c_uint,
    pub(crate) pcie_device: c_uint,
    pub(crate) pcie_func: c_uint,
    pub(crate) vfg_id: c_uint,
    pub(crate) reserved: [u8; 32],
}
layout!(CreatedVdevice, 52, vdev_id 0, pcie_bus 4, pcie_device 8, pcie_func 12, vfg_id 16,
    reserved 20);

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct VdeviceInfo {
    pub(crate) name: [u8; 16],
    pub(crate) status: c_uint,
    pub(crate) is_container_used: c_uint,
    pub(crate) vfid: c_uint,
    pub(crate) vfg_id: c_uint,
    pub(crate) container_id: c_ulonglong,
    pub(crate) basic: BasicResource,
    pub(crate) computing: ComputingResource,
    pub(crate) media: MediaResource,
}
layout!(VdeviceInfo, 256, name 0, status 16, is_container_used 20, vfid 24, vfg_id 28,
    container_id 32, basic 40, computing 104, media 200);

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct VdeviceQuery {
    pub(crate) vdev_id: c_uint,
    pub(crate) info: VdeviceInfo,
}
layout!(VdeviceQuery, 264, vdev_id 0, info 8);

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct FreeResource {
    pub(crate) vfg_num: c_uint,
    pub(crate) vfg_bitmap: c_uint,
    pub(crate) basic: BasicResource,
    pub(crate) computing: ComputingResource,
    pub(crate) media: MediaResource,
}
layout!(FreeResource, 224, vfg_num 0, vfg_bitmap 4, basic 8, computing 72, media 168);

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct TotalResource {
    pub(crate) vdev_num: c_uint,
    pub(crate) vdev_id: [c_uint; 32],
    pub(crate) vfg_num: c_uint,
    pub(crate) vfg_bitmap: c_uint,
    pub(crate) basic: BasicResource,
    pub(crate) computing: ComputingResource,
    pub(crate) media: MediaResource,
}
layout!(TotalResource, 360, vdev_num 0, vdev_id 4, vfg_num 132, vfg_bitmap 136, basic 144,
    computing 208, media 304);

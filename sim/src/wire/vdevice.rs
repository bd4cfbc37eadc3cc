//! What travels about vNPUs, and what a driver user asks to be changed.

use serde::{Deserialize, Serialize};

/// A change a driver user asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Cut a vNPU from the chip.
    CreateVdevice {
        /// Wanted vdev id; absent means any.
        vdev: Option<u32>,
        /// Wanted vgroup; absent means any.
        vgroup: Option<u32>,
        /// Template name.
        template: String,
    },
    /// Give a vNPU back to its chip.
    DestroyVdevice(u32),
    /// Whether vNPUs are for containers (0) or virtual machines (1).
    SetVdeviceMode(i64),
    /// Whether vNPUs come back after a reboot.
    SetRecoverMode(u32),
    /// How the two dies of a card belong together.
    SetMultiDiePolicy(u32),
    /// Unbind a card before an out-of-band reset.
    PreReset,
    /// Reset a chip and whatever is reset with it.
    Reset(ResetChannel),
    /// Reset every chip of the node.
    ResetAll(ResetChannel),
    /// Bind a card again.
    Rescan,
}

/// Way of a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResetChannel {
    /// Through the board's controller.
    OutOfBand,
    /// Through the driver.
    InBand,
}

/// A setting of the whole node that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeQuery {
    /// vNPUs for containers or virtual machines.
    VdeviceMode,
    /// vNPUs come back after a reboot.
    RecoverMode,
    /// How the two dies of a card belong together.
    MultiDiePolicy,
}

/// What a chip or a part of it can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capacity {
    /// AI cores.
    pub aicores: u32,
    /// Memory in MB.
    pub memory_mb: u64,
    /// AI CPUs.
    pub aicpus: u32,
    /// Picture processing units.
    pub vpc: u32,
    /// Video encoders.
    pub venc: u32,
    /// Video decoders.
    pub vdec: u32,
    /// JPEG decoders.
    pub jpegd: u32,
    /// JPEG encoders.
    pub jpege: u32,
    /// PNG decoders, in halves.
    pub pngd_halves: u32,
}

/// A vNPU as the driver tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VdeviceAnswer {
    /// Template name.
    pub template: String,
    /// A container uses it.
    pub in_use: bool,
    /// Its vgroup, where the chip has vgroups.
    pub vgroup: Option<u32>,
    /// What was cut.
    pub capacity: Capacity,
}

/// What a whole chip has, or what is left of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChipCapacity {
    /// vNPUs on the chip, ascending.
    pub vdevs: Vec<u32>,
    /// vgroups counted here, a bit each.
    pub vgroups: u32,
    /// What there is.
    pub capacity: Capacity,
}

/// How busy a vNPU is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VdeviceActivity {
    /// AI core utilisation in percent.
    pub aicore_percent: u32,
    /// Memory in KB.
    pub memory_total_kb: u64,
    /// Free memory in KB.
    pub memory_free_kb: u64,
}

/// Answer to a create.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreatedVdevice {
    /// Its id.
    pub vdev: u32,
    /// Its vgroup, where the chip has vgroups.
    pub vgroup: Option<u32>,
    /// PCI bus, device and function.
    pub pcie: [u32; 3],
}

/// The chip's place in a super pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuperPodPlace {
    /// Number of the die in the super pod.
    pub sdid: u32,
    /// Chips in the super pod.
    pub size: u32,
    /// Super pod.
    pub id: u32,
    /// Server in the super pod.
    pub server: u32,
    /// Chassis.
    pub chassis: u32,
    /// Kind of super pod.
    pub kind: u32,
}

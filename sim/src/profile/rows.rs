//! What a machine's vNPUs, resets and super pod are like; every part may be left out.

use serde::{Deserialize, Serialize};

/// How long a chip takes to start after a reset, unless the profile says otherwise.
const DEFAULT_BOOT_MS: u64 = 4000;

/// vNPUs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vnpu {
    /// A3 chips can be cut. Drivers differ in this.
    #[serde(default)]
    pub a3: bool,
    /// Memory of a whole chip in MB; by chip and board when left out.
    pub memory_mb: Option<u64>,
}

/// Resets.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reset {
    /// How long a chip takes to start, in milliseconds.
    #[serde(default = "default_boot_ms")]
    pub boot_ms: u64,
    /// Fault codes that no reset clears.
    #[serde(default)]
    pub sticky: Vec<u32>,
}

impl Default for Reset {
    fn default() -> Self {
        Self {
            boot_ms: DEFAULT_BOOT_MS,
            sticky: Vec::new(),
        }
    }
}

/// The machine's place in a super pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuperPod {
    /// Super pod.
    pub id: u32,
    /// Chips in the super pod.
    pub size: u32,
    /// Server in the super pod, 0 to 1023.
    pub server: u32,
    /// Chassis.
    #[serde(default)]
    pub chassis: u32,
    /// Kind of super pod.
    #[serde(default)]
    pub kind: u32,
}

/// How the chips of a 910 server work together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkMode {
    /// Each for itself.
    #[default]
    Amp,
    /// As one system.
    Smp,
}

fn default_boot_ms() -> u64 {
    DEFAULT_BOOT_MS
}

//! Control requests about vNPUs, resets and the rights of callers.

use clap::{Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};

use super::Switch;

/// A request about vNPUs; in JSON `{"op": "vdev", "action": "<command>", ...}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Subcommand)]
#[serde(tag = "action", rename_all = "kebab-case", deny_unknown_fields)]
pub enum VdevControl {
    /// Every vNPU as JSON
    List,
    /// Create a vNPU as another program would
    Create {
        /// Phy id
        chip: u32,
        /// Template name
        template: String,
        /// vdev id; the lowest free one when left out
        #[arg(long)]
        #[serde(default)]
        id: Option<u32>,
        /// Tell this name instead of the template's
        #[arg(long)]
        #[serde(default)]
        shown_as: Option<String>,
    },
    /// Destroy a vNPU as another program would, even one that is in use or stuck
    Destroy {
        /// vdev id
        id: u32,
    },
    /// Whether a container uses the vNPU; in use it cannot be destroyed
    Use {
        /// vdev id
        id: u32,
        /// on or off
        switch: Switch,
    },
    /// While on, a destroy of the vNPU succeeds and leaves it there
    Stuck {
        /// vdev id
        id: u32,
        /// on or off
        switch: Switch,
    },
    /// Whether the chip answers how busy its vNPUs are
    Activity {
        /// Phy id
        chip: u32,
        /// on or off
        switch: Switch,
    },
}

/// What goes wrong with the next resets of a chip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ResetFault {
    /// Nothing
    None,
    /// The reset answers 0 and does nothing
    Ignored,
    /// The reset answers 0 and the chip never begins to start
    NoBoot,
    /// The chip starts as far as status 2 and stays there
    Stuck,
    /// The boot status cannot be read while the chip starts
    StatusError,
    /// The chips of the other card of the pair never begin to start
    BrotherMissing,
}

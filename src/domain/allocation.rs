//! The ledger's record of one chip held by one container.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ids::{AllocationId, DieId, GrantId, PhyId, PluginDeviceId, ResourceName, ShareSlot};
use super::time::Stamp;

/// Who holds a chip, as far as kubelet told. Allocate itself carries no identity.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Owner {
    /// Pod UID, from kubelet's checkpoint.
    pub pod_uid: Option<String>,
    /// Pod namespace, from pod-resources.
    pub namespace: Option<String>,
    /// Pod name, from pod-resources.
    pub pod: Option<String>,
    /// Container name.
    pub container: Option<String>,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.namespace, &self.pod) {
            (Some(namespace), Some(pod)) => write!(f, "{namespace}/{pod}")?,
            _ => match &self.pod_uid {
                Some(uid) => write!(f, "pod uid {uid}")?,
                None => f.write_str("unknown pod")?,
            },
        }
        match &self.container {
            Some(container) => write!(f, " container {container}"),
            None => Ok(()),
        }
    }
}

/// How a record came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// Answered by this agent.
    Granted,
    /// Taken over from kubelet's own records after the store was lost.
    Adopted,
}

/// One held chip. Released allocations leave the table and stay in the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// Key.
    pub id: AllocationId,
    /// The answer it belongs to.
    pub grant: GrantId,
    /// Resource it was asked under.
    pub resource: ResourceName,
    /// The id kubelet knows it by.
    pub plugin_device_id: PluginDeviceId,
    /// The chip.
    pub die: DieId,
    /// The chip's number when it was granted.
    pub phy: PhyId,
    /// How the record came to be.
    pub origin: Origin,
    /// When.
    pub granted: Stamp,
    /// True once pod-resources or kubelet's checkpoint showed the grant.
    pub confirmed: bool,
    /// Holder, as far as known.
    pub owner: Owner,
}

impl Allocation {
    /// The slot, when this holds a share of its chip and not the whole of it.
    #[must_use]
    pub fn share_slot(&self) -> Option<ShareSlot> {
        self.plugin_device_id.share_slot(self.phy)
    }

    /// Whether both cannot be held at once: they have the same id, or the same chip and not two different
    /// shares of it.
    #[must_use]
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let same_id =
            self.plugin_device_id == other.plugin_device_id && self.resource == other.resource;
        same_id || (self.die == other.die && excludes(self.share_slot(), other.share_slot()))
    }
}

/// Whether two uses of one chip exclude each other: only different shares of it do not. `None` is the
/// whole chip.
#[must_use]
pub fn excludes(one: Option<ShareSlot>, other: Option<ShareSlot>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one == other,
        (None, _) | (_, None) => true,
    }
}

/// Why an allocation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReleaseCause {
    /// Neither pod-resources nor kubelet's checkpoint listed it for the proof time.
    ProvenGone,
    /// Kubelet granted its id again, and pod-resources showed no holder.
    GrantedAgain,
    /// The same container of the same pod now holds other chips.
    OwnerMoved,
}

impl fmt::Display for ReleaseCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ProvenGone => "proven gone",
            Self::GrantedAgain => "gone at the next grant",
            Self::OwnerMoved => "owner moved",
        })
    }
}

//! What happened, in the order of durable commits.

use serde::{Deserialize, Serialize};

use super::allocation::{Allocation, Owner, ReleaseCause};
use super::fault::FaultCode;
use super::ids::{AllocationId, CommitSequence, DieId, PhyId, PluginDeviceId, ResourceName};
use super::time::Stamp;

/// One line of the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryRecord {
    /// Order; unique.
    pub sequence: CommitSequence,
    /// When.
    pub at: Stamp,
    /// What.
    pub event: HistoryEvent,
}

/// What can happen. Variants are only ever added at the end: their order is part of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HistoryEvent {
    /// The agent came up and reconciled.
    AgentStarted {
        /// Its version.
        version: String,
    },
    /// The agent stopped in order.
    AgentStopped,
    /// A chip was given to a container.
    Granted {
        /// The record.
        allocation: Allocation,
    },
    /// Kubelet asked again for a grant it had not used; the same answer was given.
    GrantRepeated {
        /// The record.
        allocation: AllocationId,
        /// Kubelet's id.
        plugin_device_id: PluginDeviceId,
        /// The chip.
        die: DieId,
    },
    /// Kubelet's records showed the grant and its owner.
    Confirmed {
        /// The record.
        allocation: AllocationId,
        /// The chip.
        die: DieId,
        /// Holder.
        owner: Owner,
    },
    /// A holder was taken over from kubelet's records.
    Adopted {
        /// The record.
        allocation: Allocation,
    },
    /// A chip is free again.
    Released {
        /// The record as it was.
        allocation: Allocation,
        /// Why.
        cause: ReleaseCause,
    },
    /// A request was refused.
    Refused {
        /// Resource asked for.
        resource: ResourceName,
        /// Ids asked for, at most 64 of them.
        ids: Vec<String>,
        /// The text kubelet was given.
        reason: String,
    },
    /// A chip was seen for the first time, or after an absence.
    ChipAppeared {
        /// The chip.
        die: DieId,
        /// Its number.
        phy: PhyId,
        /// Its name.
        chip_name: String,
    },
    /// A known chip has another number now.
    ChipMoved {
        /// The chip.
        die: DieId,
        /// Number before.
        from: PhyId,
        /// Number now.
        to: PhyId,
    },
    /// A known chip is not there any more.
    ChipVanished {
        /// The chip.
        die: DieId,
        /// Its last number.
        phy: PhyId,
    },
    /// A chip left or re-entered the offer.
    ChipHealth {
        /// The chip.
        die: DieId,
        /// Its number.
        phy: PhyId,
        /// Whether it is offered as healthy.
        healthy: bool,
        /// Reason, for people.
        reason: String,
        /// Active codes, at most 128.
        codes: Vec<FaultCode>,
    },
    /// A damaged store was set aside and a new one begun.
    StoreRebuilt {
        /// Where the damaged file lies.
        set_aside: String,
        /// What was wrong with it.
        damage: String,
    },
}

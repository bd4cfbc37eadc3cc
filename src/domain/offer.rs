//! What is offered to kubelet, what a container gets, and why a request is refused.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::ids::{PluginDeviceId, ResourceName};

/// One id in the list for kubelet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OfferedDevice {
    /// Id.
    pub id: PluginDeviceId,
    /// Whether kubelet may grant it.
    pub healthy: bool,
    /// NUMA nodes; empty means no topology is sent.
    pub numa_nodes: BTreeSet<u32>,
    /// Why it is not healthy, for people; empty when it is.
    pub reason: String,
}

/// The complete list of every resource, sorted, one numbered version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Offer {
    /// Counts the versions since the agent's start; a list is sent when the devices or `refresh` change.
    pub version: u64,
    /// Counts the times kubelet is asked to write its checkpoint anew by receiving an equal list.
    pub refresh: u64,
    /// Per resource, sorted by id.
    pub resources: BTreeMap<ResourceName, Vec<OfferedDevice>>,
}

/// A device node for a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceNode {
    /// Path on the host.
    pub host_path: String,
    /// Path in the container.
    pub container_path: String,
    /// Subset of `rwm`.
    pub permissions: String,
}

/// A bind mount for a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BindMount {
    /// Path on the host.
    pub host_path: String,
    /// Path in the container.
    pub container_path: String,
    /// Read only.
    pub read_only: bool,
}

/// What one container gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Injection {
    /// Environment.
    pub envs: BTreeMap<String, String>,
    /// Device nodes in order.
    pub devices: Vec<DeviceNode>,
    /// Mounts in order.
    pub mounts: Vec<BindMount>,
    /// Qualified CDI names in order; the runtime adds what its spec says.
    pub cdi_devices: Vec<String>,
}

/// Why a request was not granted. A refusal is an answer, not a failure of the agent. Its text reaches
/// users through the pod's status.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The request is malformed.
    #[error("{0}")]
    Invalid(InvalidRequest),
    /// The id is not one of ours.
    #[error("plugin doesn't have device {id}")]
    UnknownDevice {
        /// The id, cut to 63 bytes.
        id: String,
    },
    /// The chip is not healthy.
    #[error("device {id} is unhealthy: {reason}")]
    Unhealthy {
        /// The id.
        id: PluginDeviceId,
        /// Why.
        reason: String,
    },
    /// A live container holds the chip.
    #[error("device {id} is still held by {holder}; kubelet granted it twice, recreate this pod")]
    Held {
        /// The id.
        id: PluginDeviceId,
        /// Who.
        holder: String,
    },
    /// The last holder is not proven gone and pod-resources gave no answer.
    #[error(
        "device {id} was last held by {holder} and kubelet's pod-resources API gave no answer \
         ({cause}); not granted twice"
    )]
    HolderUnproven {
        /// The id.
        id: PluginDeviceId,
        /// Who.
        holder: String,
        /// Why there was no answer.
        cause: String,
    },
    /// The grant could not be made durable.
    #[error("the allocation store refuses writes ({cause}); nothing was granted")]
    StoreUnavailable {
        /// Why.
        cause: String,
    },
    /// The agent has not reconciled yet, or is stopping, or is overloaded.
    #[error("the agent cannot answer now: {cause}")]
    NotReady {
        /// Why.
        cause: String,
    },
    /// What the container needs does not exist on the host.
    #[error("{0}")]
    Injection(String),
}

/// A malformed request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRequest {
    /// No container in it.
    #[error("invalid requests: no container request given")]
    NoContainer,
    /// Too many containers.
    #[error("the number of container request {count} exceeds the upper limit")]
    TooManyContainers {
        /// How many.
        count: usize,
    },
    /// A container without ids.
    #[error("invalid requests: a container request names no device")]
    NoDevices,
    /// Too many ids in one container.
    #[error("the devices can't bigger than 100, the request names {count}")]
    TooManyDevices {
        /// How many.
        count: usize,
    },
    /// Too many chips in one container.
    #[error("device num excceed max num: the request names {count} chips, at most 100 are allowed")]
    TooManyChips {
        /// How many.
        count: usize,
    },
    /// An id too long or empty.
    #[error("length of device name {bytes} is invalid")]
    DeviceNameLength {
        /// Its length in bytes.
        bytes: usize,
    },
    /// One id twice.
    #[error("device {id} is named twice in one request")]
    Duplicate {
        /// The id.
        id: PluginDeviceId,
    },
}

//! The status document: what the agent knows at one moment, for people and programs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Number of this document's form; raised when a field changes its meaning or goes.
pub const STATUS_SCHEMA: u32 = 1;

/// One moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusDocument {
    /// [`STATUS_SCHEMA`].
    pub schema: u32,
    /// Program version.
    pub version: String,
    /// When this was made, RFC 3339 UTC.
    pub at: String,
    /// Whether the agent does its whole duty now.
    pub ready: bool,
    /// What it cannot do or promise now, one line each.
    pub shortcomings: Vec<String>,
    /// Driver.
    pub driver: DriverStatus,
    /// Store.
    pub store: StoreStatus,
    /// Kubelet, per resource.
    pub kubelet: BTreeMap<String, RegistrationStatus>,
    /// Chips, by number.
    pub chips: Vec<ChipStatus>,
    /// Held chips, by number.
    pub allocations: Vec<AllocationStatus>,
}

/// The driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverStatus {
    /// `waiting`, `up` or `silent`.
    pub state: String,
    /// Since when, in seconds.
    pub for_seconds: u64,
    /// Last trouble; empty when none.
    pub trouble: String,
    /// Interface in use.
    pub api: String,
    /// Driver version.
    pub driver_version: String,
    /// Library in use.
    pub library: String,
    /// Cards counted, failed ones included.
    pub cards_counted: u32,
    /// Failed cards.
    pub cards_failed: u32,
    /// Symbols the library lacks.
    pub missing_symbols: Vec<String>,
}

/// The store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreStatus {
    /// `durable`, `failing` or `none`.
    pub state: String,
    /// Folder; empty without one.
    pub path: String,
    /// Last trouble; empty when none.
    pub trouble: String,
    /// Last commit, as a sequence number.
    pub last_commit: u64,
}

/// One resource at kubelet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistrationStatus {
    /// Whether kubelet reads our list now.
    pub registered: bool,
    /// Registrations of this run so far.
    pub generation: u64,
    /// Our socket.
    pub socket: String,
    /// Version of the list kubelet was last handed.
    pub delivered_version: u64,
    /// Last trouble; empty when none.
    pub trouble: String,
}

/// One chip.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChipStatus {
    /// `/dev/davinci<phy>`.
    pub phy: u32,
    /// Logic id.
    pub logic: u32,
    /// Card id.
    pub card: i32,
    /// Device on the card.
    pub device: i32,
    /// Lasting identity.
    pub die: String,
    /// Chip name.
    pub name: String,
    /// Kubelet's id; the first of them where the chip is shared.
    pub plugin_device_id: String,
    /// Resource.
    pub resource: String,
    /// Whether the driver lists it.
    pub present: bool,
    /// Whether kubelet may grant it, or a share of it.
    pub healthy: bool,
    /// Why not.
    pub reason: String,
    /// Active fault codes.
    pub codes: Vec<String>,
    /// Holder; empty when free, several joined by a comma.
    pub holder: String,
    /// Every id of the chip in the list; one where it is offered whole.
    #[serde(default)]
    pub devices: Vec<DeviceStatus>,
}

/// One id of a chip.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceStatus {
    /// Kubelet's id.
    pub plugin_device_id: String,
    /// Resource.
    pub resource: String,
    /// Whether kubelet may grant it.
    pub healthy: bool,
    /// Why not.
    pub reason: String,
    /// Holder; empty when free.
    pub holder: String,
    /// `free`, or the state of the allocation.
    pub state: String,
}

/// One held chip.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocationStatus {
    /// Key.
    pub id: String,
    /// The answer it belongs to.
    pub grant: String,
    /// Kubelet's id.
    pub plugin_device_id: String,
    /// Resource.
    pub resource: String,
    /// The chip.
    pub die: String,
    /// Its number at the grant.
    pub phy: u32,
    /// Namespace; empty when unknown.
    pub namespace: String,
    /// Pod; empty when unknown.
    pub pod: String,
    /// Pod UID; empty when unknown.
    pub pod_uid: String,
    /// Container; empty when unknown.
    pub container: String,
    /// `granted` (kubelet has not shown it yet), `confirmed`, `unlisted` (kubelet stopped showing it)
    /// or `withheld` (kubelet forgot it in a restart).
    pub state: String,
    /// When, RFC 3339 UTC.
    pub since: String,
    /// `granted` or `adopted`.
    pub origin: String,
}

//! What the room tells about itself: the state of each registration.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use tokio::sync::watch;

use crate::domain::ids::ResourceName;
use crate::domain::time::BootTime;
use crate::ports::Clock;

/// The whole room.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KubeletStatus {
    /// Why the socket directory cannot be used, for people.
    pub directory_problem: Option<String>,
    /// Whether kubelet's registry socket is there.
    pub kubelet_seen: bool,
    /// Per resource that ever had a device.
    pub resources: BTreeMap<ResourceName, ResourceStatus>,
}

impl KubeletStatus {
    /// True when there is a resource and kubelet has received the list of each.
    #[must_use]
    pub fn ready(&self) -> bool {
        !self.resources.is_empty()
            && self
                .resources
                .values()
                .all(|resource| resource.delivered_version.is_some())
    }
}

/// One resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ResourceStatus {
    /// Where its registration stands.
    pub phase: RegistrationPhase,
    /// Since when, boot time.
    pub since: BootTime,
    /// Number of its newest generation; unique over all resources of this run, ascending.
    pub generation: Option<u64>,
    /// Successful registrations in this run.
    pub registrations: u64,
    /// Socket of the newest generation.
    pub socket: Option<PathBuf>,
    /// The last failure since the last success, for people.
    pub last_error: Option<String>,
    /// Version of the list last handed over on the newest stream; none while there is no stream.
    pub delivered_version: Option<u64>,
}

impl ResourceStatus {
    /// Whether kubelet accepted the newest generation and it has not ended.
    #[must_use]
    pub fn registered(&self) -> bool {
        matches!(
            self.phase,
            RegistrationPhase::Registered | RegistrationPhase::Watched
        )
    }
}

/// Where a registration stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RegistrationPhase {
    /// Kubelet's socket is not there or has nobody behind it, another agent serves kubelet, or the
    /// directory cannot be used.
    WaitingForKubelet,
    /// A generation is being set up.
    Registering,
    /// The last try failed or the stream was lost; the next try is due.
    Pausing,
    /// Register succeeded, the stream has not been opened yet.
    Registered,
    /// Kubelet reads the list.
    Watched,
    /// The room has ended.
    Ended,
}

/// Writes the snapshot.
#[derive(Clone)]
pub(super) struct StatusBoard {
    clock: Arc<dyn Clock>,
    status: Arc<watch::Sender<KubeletStatus>>,
}

impl StatusBoard {
    pub(super) fn new(clock: Arc<dyn Clock>, status: watch::Sender<KubeletStatus>) -> Self {
        Self {
            clock,
            status: Arc::new(status),
        }
    }

    pub(super) fn directory(&self, kubelet_seen: bool, problem: Option<String>) {
        self.status.send_if_modified(|status| {
            let changed =
                status.kubelet_seen != kubelet_seen || status.directory_problem != problem;
            status.kubelet_seen = kubelet_seen;
            status.directory_problem = problem;
            changed
        });
    }

    pub(super) fn phase(&self, resource: &ResourceName, phase: RegistrationPhase) {
        self.change(resource, |line| match phase {
            RegistrationPhase::Registered => {
                line.registrations = line.registrations.saturating_add(1);
                line.last_error = None;
            }
            RegistrationPhase::WaitingForKubelet
            | RegistrationPhase::Registering
            | RegistrationPhase::Pausing
            | RegistrationPhase::Ended => line.delivered_version = None,
            RegistrationPhase::Watched => {}
        });
        let now = self.clock.now().boot_time;
        self.change(resource, |line| {
            if line.phase != phase {
                line.phase = phase;
                line.since = now;
            }
        });
    }

    pub(super) fn generation(&self, resource: &ResourceName, number: u64, socket: PathBuf) {
        self.change(resource, |line| {
            line.generation = Some(number);
            line.socket = Some(socket);
        });
    }

    pub(super) fn failed(&self, resource: &ResourceName, text: String) {
        self.change(resource, |line| line.last_error = Some(text));
    }

    /// A late word of an older generation is dropped.
    pub(super) fn delivered(&self, resource: &ResourceName, generation: u64, version: u64) {
        self.change(resource, |line| {
            if line.generation == Some(generation) {
                line.delivered_version = Some(version);
            }
        });
    }

    fn change(&self, resource: &ResourceName, change: impl FnOnce(&mut ResourceStatus)) {
        let now = self.clock.now().boot_time;
        self.status.send_if_modified(|status| {
            let before = status.resources.get(resource).cloned();
            let line = status
                .resources
                .entry(resource.clone())
                .or_insert_with(|| ResourceStatus {
                    phase: RegistrationPhase::WaitingForKubelet,
                    since: now,
                    generation: None,
                    registrations: 0,
                    socket: None,
                    last_error: None,
                    delivered_version: None,
                });
            change(line);
            before.as_ref() != Some(line)
        });
    }
}

//! Client of kubelet's pod-resources API v1. Keeps its connection while the socket file is the one it
//! was dialled on: a contested Allocate waits for the answer, and a socket that kubelet replaced must
//! never be a stale connection. How often to call is the caller's duty; kubelet allows 100 a second
//! over all its callers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use super::api::podresources as wire;
use crate::domain::causes::with_causes;
use crate::domain::ids::{PluginDeviceId, ResourceName};
use crate::domain::kubelet_view::{Holding, PodCensus, PodName, RecordScope};
use crate::domain::time::BootTime;
use crate::ports::CensusError;

/// Largest answer; a full node's is some hundred KiB.
pub(super) const ANSWER_MAX_BYTES: usize = 16 << 20;

#[derive(Debug)]
pub(super) struct PodResources {
    socket: PathBuf,
    deadline: Duration,
    seen: AtomicBool,
    /// Taken out for a call and put back after a good answer, so that the lock is never held across
    /// an await; a second call at the same time dials for itself.
    connection: Mutex<Option<(SocketIdentity, Channel)>>,
}

/// Device, inode and change time of a socket file.
type SocketIdentity = (u64, u64, i64, i64);

fn identity(found: &Metadata) -> SocketIdentity {
    (found.dev(), found.ino(), found.ctime(), found.ctime_nsec())
}

impl PodResources {
    pub(super) fn new(socket: PathBuf, deadline: Duration) -> Self {
        Self {
            socket,
            deadline,
            seen: AtomicBool::new(false),
            connection: Mutex::new(None),
        }
    }

    /// One List, `begun` being the time before it.
    pub(super) async fn list(
        &self,
        begun: BootTime,
        scope: &RecordScope,
    ) -> Result<PodCensus, CensusError> {
        let Ok(found) = self.socket.symlink_metadata() else {
            let path = self.socket.clone();
            return Err(if self.seen.load(Ordering::Relaxed) {
                CensusError::Unavailable(format!("{} is gone", path.display()))
            } else {
                CensusError::NeverSeen { path }
            });
        };
        self.seen.store(true, Ordering::Relaxed);
        let within = self.deadline;
        let answer = tokio::time::timeout(within, self.ask(identity(&found)))
            .await
            .map_err(|_| CensusError::Deadline { within })??;
        census(scope, begun, answer)
    }

    async fn ask(
        &self,
        socket: SocketIdentity,
    ) -> Result<wire::ListPodResourcesResponse, CensusError> {
        let kept = self.kept().take().filter(|(dialled, _)| *dialled == socket);
        if let Some((_, channel)) = kept
            && let Ok(answer) = self.call(socket, channel).await
        {
            return Ok(answer);
        }
        // Never asked before, another socket now, or the kept connection broke.
        let channel = dial(&self.socket)
            .await
            .map_err(|error| CensusError::Unavailable(with_causes(&error)))?;
        self.call(socket, channel)
            .await
            .map_err(|status| self.failure(&status))
    }

    fn failure(&self, status: &Status) -> CensusError {
        if status.code() == Code::DeadlineExceeded {
            return CensusError::Deadline {
                within: self.deadline,
            };
        }
        CensusError::Unavailable(format!("{:?}: {}", status.code(), status.message()))
    }

    async fn call(
        &self,
        socket: SocketIdentity,
        channel: Channel,
    ) -> Result<wire::ListPodResourcesResponse, Status> {
        let mut client =
            wire::pod_resources_lister_client::PodResourcesListerClient::new(channel.clone())
                .max_decoding_message_size(ANSWER_MAX_BYTES);
        let answer = client.list(wire::ListPodResourcesRequest {}).await?;
        *self.kept() = Some((socket, channel));
        Ok(answer.into_inner())
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Option<(SocketIdentity, Channel)>> {
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Connects to a Unix socket; the caller sets the deadline.
pub(super) async fn dial(socket: &std::path::Path) -> Result<Channel, tonic::transport::Error> {
    Endpoint::try_from(format!("unix:{}", socket.display()))?
        .connect()
        .await
}

/// Cuts an answer down to what was asked for. An id or name of ours that cannot be represented makes the
/// whole view void: a view that may miss a holder proves nothing.
fn census(
    scope: &RecordScope,
    begun: BootTime,
    answer: wire::ListPodResourcesResponse,
) -> Result<PodCensus, CensusError> {
    let mut pods = BTreeSet::new();
    let mut holdings: BTreeMap<(PodName, String, ResourceName), BTreeSet<PluginDeviceId>> =
        BTreeMap::new();
    for entry in answer.pod_resources {
        let pod = PodName {
            namespace: entry.namespace,
            name: entry.name,
        };
        for container in entry.containers {
            for devices in container.devices {
                if !scope.covers(&devices.resource_name) {
                    continue;
                }
                let unreadable =
                    |error| CensusError::Unavailable(format!("in its answer, {error}"));
                let resource = ResourceName::new(devices.resource_name).map_err(unreadable)?;
                let key = (pod.clone(), container.name.clone(), resource);
                let ids = holdings.entry(key).or_default();
                for id in devices.device_ids {
                    ids.insert(PluginDeviceId::new(id).map_err(unreadable)?);
                }
            }
        }
        pods.insert(pod);
    }
    let holdings = holdings
        .into_iter()
        .filter(|(_, ids)| !ids.is_empty())
        .map(|((pod, container, resource), ids)| Holding {
            pod,
            container,
            resource,
            ids,
        })
        .collect();
    Ok(PodCensus {
        begun,
        pods,
        holdings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours() -> RecordScope {
        RecordScope::domain("huawei.com")
    }

    fn devices(resource: &str, ids: &[&str]) -> wire::ContainerDevices {
        wire::ContainerDevices {
            resource_name: resource.to_owned(),
            device_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        }
    }

    fn pod(name: &str, devices: Vec<wire::ContainerDevices>) -> wire::PodResources {
        let container = wire::ContainerResources {
            name: "main".to_owned(),
            devices,
        };
        wire::PodResources {
            name: name.to_owned(),
            namespace: "default".to_owned(),
            containers: vec![container],
        }
    }

    fn read(pods: Vec<wire::PodResources>) -> Result<PodCensus, CensusError> {
        let answer = wire::ListPodResourcesResponse {
            pod_resources: pods,
        };
        census(&ours(), BootTime(7), answer)
    }

    #[test]
    fn joins_the_single_id_entries_of_one_container_and_keeps_pods_without_devices() {
        let one = |id: &'static str| devices("huawei.com/Ascend910", &[id]);
        let view = read(vec![
            pod(
                "a",
                vec![
                    one("Ascend910-1"),
                    devices("nvidia.com/gpu", &["g"]),
                    one("Ascend910-0"),
                ],
            ),
            pod("b", vec![]),
        ])
        .unwrap();
        assert_eq!(
            (view.begun, view.pods.len(), view.holdings.len()),
            (BootTime(7), 2, 1)
        );
        assert_eq!(view.holdings[0].ids.len(), 2);
    }

    #[test]
    fn an_id_of_ours_that_cannot_be_read_voids_the_view() {
        let long = "x".repeat(64);
        assert!(
            read(vec![pod(
                "a",
                vec![devices("huawei.com/Ascend910", &[&long])]
            )])
            .is_err()
        );
        assert!(read(vec![pod("a", vec![devices("nvidia.com/gpu", &[&long])])]).is_ok());
    }

    #[tokio::test]
    async fn tells_a_socket_never_seen_from_one_that_is_gone() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("kubelet.sock");
        let client = PodResources::new(path.clone(), Duration::from_millis(200));
        let never = client.list(BootTime(0), &ours()).await;
        assert!(
            matches!(never, Err(CensusError::NeverSeen { .. })),
            "{never:?}"
        );
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let dead = client.list(BootTime(0), &ours()).await;
        assert!(matches!(dead, Err(CensusError::Unavailable(_))), "{dead:?}");
        std::fs::remove_file(&path).unwrap();
        let gone = client.list(BootTime(0), &ours()).await;
        assert!(matches!(gone, Err(CensusError::Unavailable(_))), "{gone:?}");
    }

    #[tokio::test]
    async fn a_socket_that_accepts_and_says_nothing_overruns_the_deadline() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("kubelet.sock");
        let _silent = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let client = PodResources::new(path, Duration::from_millis(100));
        let answer = client.list(BootTime(0), &ours()).await;
        assert!(
            matches!(answer, Err(CensusError::Deadline { .. })),
            "{answer:?}"
        );
    }
}

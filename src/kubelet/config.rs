//! Where kubelet is and how long to wait for it.

use std::path::PathBuf;
use std::time::Duration;

use uuid::Uuid;

/// Paths, identity of this run, times.
#[derive(Clone, Debug)]
pub struct KubeletConfig {
    /// Kubelet's device-plugin directory; `/var/lib/kubelet/device-plugins` on a node.
    pub device_plugin_dir: PathBuf,
    /// Kubelet's registry socket, in that directory.
    pub kubelet_socket: PathBuf,
    /// Kubelet's checkpoint file, in that directory.
    pub checkpoint: PathBuf,
    /// The pod-resources socket.
    pub pod_resources_socket: PathBuf,
    /// Who must own the directory and kubelet's socket.
    pub owner: SocketOwner,
    /// This process; its last four bytes stand in the names of its sockets.
    pub run: Uuid,
    /// Times.
    pub times: KubeletTimes,
}

impl KubeletConfig {
    /// Kubelet's usual file names under `device_plugin_dir`, root as owner, usual times.
    #[must_use]
    pub fn new(
        device_plugin_dir: impl Into<PathBuf>,
        pod_resources_socket: impl Into<PathBuf>,
        run: Uuid,
    ) -> Self {
        let device_plugin_dir = device_plugin_dir.into();
        Self {
            kubelet_socket: device_plugin_dir.join("kubelet.sock"),
            checkpoint: device_plugin_dir.join("kubelet_internal_checkpoint"),
            device_plugin_dir,
            pod_resources_socket: pod_resources_socket.into(),
            owner: SocketOwner { uid: 0, gid: 0 },
            run,
            times: KubeletTimes::default(),
        }
    }
}

/// The only owner whose sockets are trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketOwner {
    /// User id; 0 on a node.
    pub uid: u32,
    /// Group id; 0 on a node.
    pub gid: u32,
}

/// Deadlines and pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KubeletTimes {
    /// Register, dialling included.
    pub register: Duration,
    /// Between a successful Register and kubelet's ListAndWatch.
    pub stream_opens: Duration,
    /// Allocate, all containers of one call together.
    pub allocate: Duration,
    /// GetPreferredAllocation.
    pub preferred: Duration,
    /// One pod-resources call, dialling included.
    pub pod_resources: Duration,
    /// An old server may finish its calls for so long.
    pub drain: Duration,
    /// First pause after a failure, and the one after an old stream was ended by us.
    pub retry_first: Duration,
    /// Longest pause after a failed registration.
    pub retry_cap: Duration,
    /// Longest pause after a lost stream; short enough to be registered again within 2 s.
    pub lost_stream_cap: Duration,
    /// A stream that lived so long starts the pauses over.
    pub stable: Duration,
    /// How often the directory is looked at even if no file event came.
    pub look: Duration,
}

impl Default for KubeletTimes {
    fn default() -> Self {
        Self {
            register: Duration::from_secs(5),
            stream_opens: Duration::from_secs(5),
            allocate: Duration::from_secs(10),
            preferred: Duration::from_secs(1),
            pod_resources: Duration::from_millis(500),
            drain: Duration::from_secs(1),
            retry_first: Duration::from_millis(100),
            retry_cap: Duration::from_secs(5),
            lost_stream_cap: Duration::from_millis(1500),
            stable: Duration::from_secs(60),
            look: Duration::from_secs(1),
        }
    }
}

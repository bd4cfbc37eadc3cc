//! The room under test with a scripted ledger.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ascend_agent::domain::ids::{PluginDeviceId, ResourceName};
use ascend_agent::domain::offer::{Injection, Offer, OfferedDevice, Refusal};
use ascend_agent::domain::time::{BootId, BootTime, Stamp};
use ascend_agent::kubelet::{
    KubeletActivity, KubeletConfig, KubeletParts, KubeletStatus, SocketOwner, serve,
};
use ascend_agent::ports::{Allocations, Clock, GenerationCause};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

pub(crate) const ASCEND: &str = "huawei.com/Ascend910";

/// Ids that make the scripted ledger misbehave.
pub(crate) const PANICS: &str = "Ascend910-panics";
pub(crate) const HANGS: &str = "Ascend910-hangs";
pub(crate) const SLOW: &str = "Ascend910-slow";
pub(crate) const UNKNOWN: &str = "Ascend910-unknown";

#[derive(Clone)]
pub(crate) struct ScriptedLedger(Arc<Script>);

pub(crate) struct Script {
    pub(crate) offers: watch::Sender<Arc<Offer>>,
    pub(crate) causes: Mutex<Vec<GenerationCause>>,
    pub(crate) delivered: Mutex<Vec<(String, u64)>>,
    pub(crate) allocated: Mutex<Vec<Vec<String>>>,
    pub(crate) hints: AtomicUsize,
}

impl Allocations for ScriptedLedger {
    fn offers(&self) -> watch::Receiver<Arc<Offer>> {
        self.0.offers.subscribe()
    }

    async fn begin_generation(&self, cause: GenerationCause) {
        self.0.causes.lock().unwrap().push(cause);
    }

    async fn allocate(
        &self,
        _: ResourceName,
        ids: Vec<PluginDeviceId>,
    ) -> Result<Injection, Refusal> {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        self.0.allocated.lock().unwrap().push(ids.clone());
        if ids[0] == SLOW {
            tokio::time::sleep(Duration::from_millis(150)).await;
        }
        match ids[0].as_str() {
            PANICS => panic!("scripted"),
            HANGS => std::future::pending().await,
            UNKNOWN => Err(Refusal::UnknownDevice { id: UNKNOWN.into() }),
            _ => Ok(Injection {
                envs: [("IDS".to_owned(), ids.join(","))].into(),
                ..Injection::default()
            }),
        }
    }

    async fn preferred(
        &self,
        _: ResourceName,
        available: Vec<PluginDeviceId>,
        must_include: Vec<PluginDeviceId>,
        size: usize,
    ) -> Result<Vec<PluginDeviceId>, Refusal> {
        if available.iter().any(|id| id.as_str() == UNKNOWN) {
            return Err(Refusal::UnknownDevice { id: UNKNOWN.into() });
        }
        let rest = available
            .into_iter()
            .filter(|id| !must_include.contains(id));
        Ok(must_include
            .iter()
            .cloned()
            .chain(rest)
            .take(size)
            .collect())
    }

    fn checkpoint_changed(&self) {
        self.0.hints.fetch_add(1, Ordering::Relaxed);
    }

    fn list_delivered(&self, resource: &ResourceName, version: u64) {
        let line = (resource.to_string(), version);
        self.0.delivered.lock().unwrap().push(line);
    }
}

/// Counts up by a millisecond a look.
pub(crate) struct CountingClock(AtomicU64);

impl CountingClock {
    pub(crate) fn start() -> Arc<dyn Clock> {
        Arc::new(Self(AtomicU64::new(1)))
    }
}

impl Clock for CountingClock {
    fn now(&self) -> Stamp {
        Stamp {
            boot_id: BootId(Uuid::nil()),
            boot_time: BootTime(self.0.fetch_add(1_000_000, Ordering::Relaxed)),
            utc_ns: 0,
        }
    }
}

pub(crate) fn socket_folder() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("k").tempdir().unwrap()
}

pub(crate) fn config(dir: &Path) -> KubeletConfig {
    static RUNS: AtomicU64 = AtomicU64::new(1);
    let run = Uuid::from_u128(RUNS.fetch_add(1, Ordering::Relaxed).into());
    let dir = dir.canonicalize().unwrap();
    let found = dir.metadata().unwrap();
    let mut config = KubeletConfig::new(&dir, dir.join("p.sock"), run);
    config.owner = SocketOwner {
        uid: found.uid(),
        gid: found.gid(),
    };
    config
}

pub(crate) struct Room {
    pub(crate) script: Arc<Script>,
    pub(crate) activity: KubeletActivity,
    pub(crate) reregister: mpsc::Sender<()>,
    pub(crate) status: watch::Receiver<KubeletStatus>,
    pub(crate) cancel: CancellationToken,
    pub(crate) tracker: TaskTracker,
    dir: PathBuf,
    served: JoinHandle<()>,
}

impl Room {
    /// On the directory, with one device.
    pub(crate) fn start(dir: &Path) -> Self {
        Self::with(config(dir), offer(1, &["Ascend910-0"]))
    }

    pub(crate) fn with(config: KubeletConfig, first: Offer) -> Self {
        let script = Arc::new(Script {
            offers: watch::channel(Arc::new(first)).0,
            causes: Mutex::default(),
            delivered: Mutex::default(),
            allocated: Mutex::default(),
            hints: AtomicUsize::default(),
        });
        let clock = CountingClock::start();
        let activity = KubeletActivity::new(Arc::clone(&clock));
        let (reregister, asked) = mpsc::channel(1);
        let (status, seen) = watch::channel(KubeletStatus::default());
        let cancel = CancellationToken::new();
        let tracker = TaskTracker::new();
        let dir = config.device_plugin_dir.clone();
        let served = tracker.spawn(serve(KubeletParts {
            config,
            allocations: ScriptedLedger(Arc::clone(&script)),
            clock,
            activity: activity.clone(),
            reregister: asked,
            status,
            cancel: cancel.clone(),
            tracker: tracker.clone(),
        }));
        Self {
            script,
            activity,
            reregister,
            status: seen,
            cancel,
            tracker,
            dir,
            served,
        }
    }

    pub(crate) fn publish(&self, offer: Offer) {
        self.script.offers.send_replace(Arc::new(offer));
    }

    pub(crate) fn causes(&self) -> Vec<GenerationCause> {
        self.script.causes.lock().unwrap().clone()
    }

    /// Sockets of the room in its directory.
    pub(crate) fn sockets(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.dir).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        names
            .filter(|name| name.starts_with("Ascend910-"))
            .collect()
    }

    /// Ends the room; panics if it takes 5 s.
    pub(crate) async fn end(self) {
        self.cancel.cancel();
        within(Duration::from_secs(5), self.served).await.unwrap();
        self.tracker.close();
        within(Duration::from_secs(1), self.tracker.wait()).await;
    }
}

pub(crate) fn offer(version: u64, ids: &[&str]) -> Offer {
    let devices = ids.iter().map(|id| device(id, true)).collect();
    Offer {
        version,
        refresh: 0,
        resources: [(ResourceName::new(ASCEND).unwrap(), devices)].into(),
    }
}

pub(crate) fn device(id: &str, healthy: bool) -> OfferedDevice {
    OfferedDevice {
        id: PluginDeviceId::new(id).unwrap(),
        healthy,
        numa_nodes: [0].into(),
        reason: String::new(),
    }
}

/// Polls until `reached` holds; panics, naming `what`, at the deadline.
pub(crate) async fn eventually(what: &str, deadline: Duration, reached: impl Fn() -> bool) {
    let begun = tokio::time::Instant::now();
    while !reached() {
        assert!(
            begun.elapsed() < deadline,
            "not within {deadline:?}: {what}"
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

pub(crate) async fn within<T>(deadline: Duration, work: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(deadline, work).await;
    done.unwrap_or_else(|_| panic!("not within {deadline:?}"))
}

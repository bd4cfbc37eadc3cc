//! The room's entry: one directory watch, one registration loop per resource that has a device.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, info, warn};

use super::activity::KubeletActivity;
use super::claim::FolderClaim;
use super::config::KubeletConfig;
use super::directory_watch::{DirectoryView, DirectoryWatch};
use super::registration::Registration;
use super::snapshot::{KubeletStatus, StatusBoard};
use super::socket_dir::SocketDir;
use crate::domain::ids::ResourceName;
use crate::domain::offer::Offer;
use crate::ports::{Allocations, Clock};

/// All loops have ended by then, or are left behind.
const END_DEADLINE: Duration = Duration::from_secs(4);

/// Pause before a broken loop is started anew.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// Everything the room needs.
pub struct KubeletParts<A> {
    /// Paths and times.
    pub config: KubeletConfig,
    /// The ledger's side.
    pub allocations: A,
    /// Boot time for the status.
    pub clock: Arc<dyn Clock>,
    /// Told about calls in flight.
    pub activity: KubeletActivity,
    /// Each message asks for a new registration of everything.
    pub reregister: mpsc::Receiver<()>,
    /// Told about every registration.
    pub status: watch::Sender<KubeletStatus>,
    /// Ends the room.
    pub cancel: CancellationToken,
    /// Owns every task of the room.
    pub tracker: TaskTracker,
}

impl<A> fmt::Debug for KubeletParts<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeletParts")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// Serves kubelet until cancelled. Returns within 5 s of that: streams ended, own sockets removed.
/// A resource is registered from its first device on and stays so, even with an empty list.
/// Not cancel safe: end it through the token.
pub async fn serve<A: Allocations>(parts: KubeletParts<A>) {
    let KubeletParts {
        config,
        allocations,
        clock,
        activity,
        mut reregister,
        status,
        cancel,
        tracker,
    } = parts;
    let board = StatusBoard::new(clock, status);
    let dir = SocketDir::new(config.device_plugin_dir, config.owner, config.run);
    for removed in dir.remove_dead_of_others().await {
        info!(socket = %removed.display(), "removed a socket of a plugin that has ended");
    }
    let (view, seen) = watch::channel(DirectoryView::default());
    let view = Arc::new(view);
    let hints = allocations.clone();
    let watcher = DirectoryWatch {
        dir: dir.clone(),
        kubelet_socket: config.kubelet_socket.clone(),
        checkpoint: config.checkpoint,
        checkpoint_changed: move || hints.checkpoint_changed(),
        pace: config.times.look,
        // Kept here too, so that the loops never see it closed.
        view: Arc::clone(&view),
        board: board.clone(),
    };
    let watch_cancel = cancel.clone();
    let watching = keep_running("directory watch".to_owned(), &tracker, &cancel, move || {
        watcher.clone().run(watch_cancel.clone())
    });

    let claim = FolderClaim::default();
    let (asked, asked_seen) = watch::channel(0_u64);
    let numbers = Arc::new(AtomicU64::new(1));
    let mut offers = allocations.offers();
    let mut loops: BTreeMap<ResourceName, JoinHandle<()>> = BTreeMap::new();
    loop {
        for resource in offered(&offers.borrow_and_update()) {
            loops.entry(resource.clone()).or_insert_with(|| {
                let registration = Registration {
                    resource: resource.clone(),
                    allocations: allocations.clone(),
                    activity: activity.clone(),
                    board: board.clone(),
                    dir: dir.clone(),
                    claim: claim.clone(),
                    kubelet_socket: config.kubelet_socket.clone(),
                    times: config.times,
                    view: seen.clone(),
                    asked: asked_seen.clone(),
                    numbers: Arc::clone(&numbers),
                    cancel: cancel.clone(),
                    tracker: tracker.clone(),
                };
                keep_running(resource.to_string(), &tracker, &cancel, move || {
                    registration.clone().run()
                })
            });
        }
        tokio::select! {
            () = cancel.cancelled() => break,
            Some(()) = reregister.recv() => {
                asked.send_modify(|count| *count = count.wrapping_add(1));
            }
            Ok(()) = offers.changed() => {}
        }
    }
    let ended = async {
        for running in loops.into_values().chain([watching]) {
            if let Err(fault) = running.await {
                error!(%fault, "a task of kubelet's room broke");
            }
        }
    };
    if tokio::time::timeout(END_DEADLINE, ended).await.is_err() {
        warn!("kubelet's registrations did not end in time");
    }
}

/// Starts a loop anew if it breaks: without it the node's devices would be gone until a restart.
fn keep_running<R>(
    name: String,
    tracker: &TaskTracker,
    cancel: &CancellationToken,
    start: impl Fn() -> R + Send + 'static,
) -> JoinHandle<()>
where
    R: Future<Output = ()> + Send + 'static,
{
    let (inner, cancel) = (tracker.clone(), cancel.clone());
    tracker.spawn(async move {
        while let Err(fault) = inner.spawn(start()).await {
            error!(name, %fault, "a loop of kubelet's room broke");
            tokio::select! {
                () = cancel.cancelled() => return,
                () = tokio::time::sleep(RESTART_PAUSE) => {}
            }
        }
    })
}

fn offered(offer: &Offer) -> Vec<ResourceName> {
    offer
        .resources
        .iter()
        .filter(|(_, devices)| !devices.is_empty())
        .map(|(resource, _)| resource.clone())
        .collect()
}

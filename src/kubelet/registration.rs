//! The life of one resource's registration: wait for kubelet, register, hold, and again.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use super::activity::KubeletActivity;
use super::backoff::Backoff;
use super::claim::FolderClaim;
use super::config::KubeletTimes;
use super::directory_watch::{DirectoryView, KubeletSocket};
use super::generation::{self, Generation, RegisterError};
use super::list_stream::StreamCounts;
use super::service::PluginService;
use super::snapshot::{RegistrationPhase, StatusBoard};
use super::socket_dir::SocketDir;
use crate::domain::causes::with_causes;
use crate::domain::ids::ResourceName;
use crate::ports::{Allocations, GenerationCause};

/// The ledger promises 2 s. Registering without it could offer a list that is not reconciled.
const PREPARE_DEADLINE: Duration = Duration::from_secs(3);

/// Pause of an agent that waits for another to leave kubelet's folder: chips must be back soon after.
const WAITING_PAUSE: Duration = Duration::from_secs(1);

/// How long a call in flight may delay the agent's end, which has 5 s in all.
const CALLS_END_DEADLINE: Duration = Duration::from_millis(1500);

/// What a loop needs.
#[derive(Clone)]
pub(super) struct Registration<A> {
    pub(super) resource: ResourceName,
    pub(super) allocations: A,
    pub(super) activity: KubeletActivity,
    pub(super) board: StatusBoard,
    pub(super) dir: SocketDir,
    pub(super) claim: FolderClaim,
    pub(super) kubelet_socket: PathBuf,
    pub(super) times: KubeletTimes,
    pub(super) view: watch::Receiver<DirectoryView>,
    /// Counts requests of an operator.
    pub(super) asked: watch::Receiver<u64>,
    /// Numbers generations over all resources, so that no two share a socket name.
    pub(super) numbers: Arc<AtomicU64>,
    pub(super) cancel: CancellationToken,
    pub(super) tracker: TaskTracker,
}

/// Why a registered generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Cancelled,
    KubeletReplaced,
    SocketVanished,
    ServerBroke,
    StreamEnded,
    StreamNeverOpened,
    Asked,
}

impl<A: Allocations> Registration<A> {
    /// Runs until cancelled; every generation it made has ended then.
    pub(super) async fn run(mut self) {
        for removed in self.dir.remove_dead(&self.resource).await {
            info!(socket = %removed.display(), "removed a socket of an earlier run");
        }
        let mut failures = Backoff::new(self.times.retry_first, self.times.retry_cap);
        let mut losses = Backoff::new(self.times.retry_first, self.times.lost_stream_cap);
        let mut cause = GenerationCause::Start;
        let mut registered_with: Option<KubeletSocket> = None;
        let mut tried_with: Option<KubeletSocket> = None;
        let mut last_error: Option<String> = None;
        while let Some(kubelet) = self.kubelet().await {
            if registered_with.is_some_and(|known| known != kubelet) {
                cause = GenerationCause::KubeletRestart;
                losses.reset();
            }
            if tried_with != Some(kubelet) {
                failures.reset();
                tried_with = Some(kubelet);
            }
            self.asked.borrow_and_update();
            let generation = match self.begin(cause, kubelet).await {
                Ok(generation) => generation,
                Err(RegisterError::Overtaken) => continue,
                Err(error) => {
                    let is_other_agent = matches!(error, RegisterError::Claim(_));
                    let pause = if is_other_agent {
                        WAITING_PAUSE
                    } else {
                        failures.advance()
                    };
                    // A restart of the agent would end neither.
                    let phase = if is_other_agent || error.is_nobody_there() {
                        RegistrationPhase::WaitingForKubelet
                    } else {
                        RegistrationPhase::Pausing
                    };
                    let error = with_causes(&error);
                    // One that waits for another agent would say so for days.
                    if last_error.as_ref() != Some(&error) {
                        warn!(resource = %self.resource, error, "not registered with kubelet");
                    }
                    self.board.failed(&self.resource, error.clone());
                    last_error = Some(error);
                    self.pause(phase, pause, kubelet).await;
                    continue;
                }
            };
            last_error = None;
            failures.reset();
            registered_with = Some(kubelet);
            let begun = Instant::now();
            let end = self.hold(&generation, kubelet).await;
            self.let_calls_end(end).await;
            generation.stop(self.times.drain).await;
            if end == End::Cancelled {
                break;
            }
            warn!(resource = %self.resource, ?end, "registration ended");
            cause = match end {
                End::Asked => GenerationCause::Asked,
                End::KubeletReplaced => GenerationCause::KubeletRestart,
                End::Cancelled
                | End::SocketVanished
                | End::ServerBroke
                | End::StreamEnded
                | End::StreamNeverOpened => GenerationCause::StreamLost,
            };
            if begun.elapsed() >= self.times.stable {
                losses.reset();
            }
            match end {
                End::Cancelled | End::KubeletReplaced => {}
                // Kubelet takes in the end of the old stream on its own time, and what registers
                // before that is disconnected with it.
                End::Asked | End::SocketVanished => {
                    self.pause(RegistrationPhase::Pausing, self.times.retry_first, kubelet)
                        .await;
                }
                End::ServerBroke | End::StreamEnded | End::StreamNeverOpened => {
                    self.board.failed(&self.resource, lost_text(end));
                    self.pause(RegistrationPhase::Pausing, losses.advance(), kubelet)
                        .await;
                }
            }
        }
        self.board.phase(&self.resource, RegistrationPhase::Ended);
    }

    /// Kubelet's socket, as soon as there is one; `None` when cancelled.
    async fn kubelet(&mut self) -> Option<KubeletSocket> {
        let seen = self.view.borrow_and_update().kubelet;
        if let Some(kubelet) = seen {
            return (!self.cancel.is_cancelled()).then_some(kubelet);
        }
        self.board
            .phase(&self.resource, RegistrationPhase::WaitingForKubelet);
        tokio::select! {
            () = self.cancel.cancelled() => None,
            view = self.view.wait_for(|view| view.kubelet.is_some()) => view.ok()?.kubelet,
        }
    }

    /// One try: dial, let the ledger prepare, serve, register. What it made is stopped on failure.
    async fn begin(
        &mut self,
        cause: GenerationCause,
        kubelet: KubeletSocket,
    ) -> Result<Generation, RegisterError> {
        self.board
            .phase(&self.resource, RegistrationPhase::Registering);
        self.claim.take(self.dir.path())?;
        let within = self.times.register;
        let (channel, rest) = tokio::select! {
            () = self.cancel.cancelled() => return Err(RegisterError::Overtaken),
            dialled = generation::dial_kubelet(&self.kubelet_socket, within) => dialled?,
        };
        let prepared = self.allocations.begin_generation(cause);
        if tokio::time::timeout(PREPARE_DEADLINE, prepared)
            .await
            .is_err()
        {
            let (step, within) = ("the ledger's preparation", PREPARE_DEADLINE);
            return Err(RegisterError::Deadline { step, within });
        }
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let socket = self.dir.socket_path(&self.resource, number)?;
        self.board
            .generation(&self.resource, number, socket.clone());
        let generation = Generation::open(socket.clone(), &self.tracker, |counts, ending| {
            self.service(number, counts, ending)
        })
        .await?;
        let mut view = self.view.clone();
        let registered = tokio::select! {
            () = self.cancel.cancelled() => Err(RegisterError::Overtaken),
            _ = view.wait_for(|view| view.kubelet.is_some_and(|now| now != kubelet)) => {
                Err(RegisterError::Overtaken)
            }
            registered = generation::register(channel, &self.resource, &socket, rest) => registered,
        };
        match registered {
            Ok(()) => {
                self.board
                    .phase(&self.resource, RegistrationPhase::Registered);
                info!(resource = %self.resource, generation = number, ?cause, "registered");
                Ok(generation)
            }
            Err(error) => {
                generation.stop(self.times.drain).await;
                Err(error)
            }
        }
    }

    fn service(
        &self,
        number: u64,
        counts: Arc<watch::Sender<StreamCounts>>,
        ending: CancellationToken,
    ) -> PluginService<A> {
        let (board, resource) = (self.board.clone(), self.resource.clone());
        let allocations = self.allocations.clone();
        let delivered = Arc::new(move |version| {
            board.delivered(&resource, number, version);
            allocations.list_delivered(&resource, version);
        });
        PluginService {
            resource: self.resource.clone(),
            allocations: self.allocations.clone(),
            activity: self.activity.clone(),
            tracker: self.tracker.clone(),
            counts,
            ending,
            delivered,
            allocate_budget: self.times.allocate,
            preferred_budget: self.times.preferred,
        }
    }

    /// Waits until a registered generation is lost. Any stream that ends without our doing counts:
    /// one registration too many costs nothing, one too few leaves the node without devices.
    async fn hold(&mut self, generation: &Generation, kubelet: KubeletSocket) -> End {
        let mut counts = generation.counts();
        let opens = tokio::time::sleep(self.times.stream_opens);
        tokio::pin!(opens);
        let mut opened = false;
        loop {
            let streams = *counts.borrow_and_update();
            if streams.ended > 0 {
                return End::StreamEnded;
            }
            if streams.opened > 0 && !opened {
                opened = true;
                self.board.phase(&self.resource, RegistrationPhase::Watched);
            }
            let now = self.view.borrow_and_update().kubelet;
            if now.is_some_and(|now| now != kubelet) {
                return End::KubeletReplaced;
            }
            if !generation.is_reachable() {
                return End::SocketVanished;
            }
            if generation.is_broken() {
                return End::ServerBroke;
            }
            tokio::select! {
                () = self.cancel.cancelled() => return End::Cancelled,
                Ok(()) = self.asked.changed() => return End::Asked,
                changed = counts.changed() => if changed.is_err() { return End::ServerBroke },
                changed = self.view.changed() => if changed.is_err() { return End::Cancelled },
                () = &mut opens, if !opened => return End::StreamNeverOpened,
            }
        }
    }

    /// Kubelet drops a call in flight, and with it the pod, when its stream ends; so where the end
    /// is our choice, calls go first.
    async fn let_calls_end(&self, end: End) {
        let wait = match end {
            End::Asked => self.times.allocate,
            End::Cancelled => CALLS_END_DEADLINE,
            End::KubeletReplaced
            | End::SocketVanished
            | End::ServerBroke
            | End::StreamEnded
            | End::StreamNeverOpened => return,
        };
        let quiet = self.activity.wait_quiet(Duration::ZERO);
        if tokio::time::timeout(wait, quiet).await.is_err() {
            warn!(resource = %self.resource, ?end, "a call of kubelet is cut off");
        }
    }

    /// Waits, unless there is a reason to try at once.
    async fn pause(&mut self, phase: RegistrationPhase, pause: Duration, kubelet: KubeletSocket) {
        self.board.phase(&self.resource, phase);
        let (cancel, asked) = (&self.cancel, &mut self.asked);
        let replaced = self
            .view
            .wait_for(|view| view.kubelet.is_some_and(|now| now != kubelet));
        tokio::select! {
            () = cancel.cancelled() => {}
            Ok(()) = asked.changed() => {}
            _ = replaced => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

fn lost_text(end: End) -> String {
    match end {
        End::StreamNeverOpened => "kubelet registered the plugin and never asked for its list",
        End::ServerBroke => "the plugin's own server ended",
        End::Cancelled
        | End::KubeletReplaced
        | End::SocketVanished
        | End::StreamEnded
        | End::Asked => "kubelet ended the device stream",
    }
    .to_owned()
}

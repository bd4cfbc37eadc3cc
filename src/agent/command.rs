//! What the owner task can be told. One queue, one order.

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::domain::chip::{ChipSample, Inventory};
use crate::domain::fault::FaultEvent;
use crate::domain::ids::{PluginDeviceId, ResourceName};
use crate::domain::kubelet_view::{CheckpointView, PodCensus};
use crate::domain::offer::{Injection, Refusal};
use crate::domain::status::StatusDocument;
use crate::ports::{CensusError, GenerationCause, HardwareError, KubeletViews};

/// Bound of the queue. Kubelet asks one thing at a time and the watchers wait for room.
pub(super) const COMMAND_QUEUE: usize = 64;

#[derive(Debug)]
pub(super) enum Command {
    /// Decide on a container request, given what was asked for it so far.
    Allocate {
        resource: ResourceName,
        ids: Vec<PluginDeviceId>,
        asked: Evidence,
        reply: oneshot::Sender<AllocateReply>,
    },
    /// Choose chips.
    Preferred {
        resource: ResourceName,
        available: Vec<PluginDeviceId>,
        must_include: Vec<PluginDeviceId>,
        size: usize,
        reply: oneshot::Sender<Vec<PluginDeviceId>>,
    },
    /// A registration is about to happen.
    BeginGeneration {
        cause: GenerationCause,
        views: KubeletViews,
        reply: oneshot::Sender<()>,
    },
    /// Kubelet's records were looked at.
    Views(KubeletViews),
    /// The driver is about to be initialised anew, and no sample comes meanwhile.
    Renewing,
    /// The node was enumerated.
    Inventory(Inventory),
    /// The driver does not answer, or not all cards are up yet.
    DriverTrouble(DriverTrouble),
    /// Chips were sampled.
    Samples {
        /// When the driver was asked.
        asked: Instant,
        /// What it answered.
        samples: Vec<ChipSample>,
    },
    /// A fault event came in.
    Fault(FaultEvent),
    /// An operator asks.
    Status {
        reply: oneshot::Sender<StatusDocument>,
    },
    /// Stop in order.
    Stop { reply: oneshot::Sender<()> },
}

#[derive(Debug)]
pub(super) enum AllocateReply {
    Done(Result<Injection, Refusal>),
    /// Ask pod-resources and send the command again.
    AskKubelet,
    /// Read the checkpoint that kubelet is about to write and send the command again.
    AskCheckpoint,
}

/// What kubelet's records said about one request.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    pub(super) census: Option<Result<PodCensus, CensusError>>,
    /// Written after the request arrived; the error says why there is none.
    pub(super) written: Option<Result<CheckpointView, String>>,
}

#[derive(Clone, Debug)]
pub(super) enum DriverTrouble {
    Failed(HardwareError),
    Incomplete {
        chips: usize,
        cards_up: u32,
        cards_counted: u32,
        problems: Vec<String>,
    },
}

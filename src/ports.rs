//! The traits the agent needs from the outside world and offers to it. Adapters implement them one
//! level up; `agent` alone names concrete ones.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::domain::allocation::Allocation;
use crate::domain::chip::{Chip, ChipSample, DiePolicy, Inventory};
use crate::domain::fault::FaultEvent;
use crate::domain::history::{HistoryEvent, HistoryRecord};
use crate::domain::ids::{AllocationId, CommitSequence, GrantId, PluginDeviceId, ResourceName};
use crate::domain::kubelet_view::{CheckpointVersion, CheckpointView, PodCensus, RecordScope};
use crate::domain::offer::{Injection, Offer, Refusal};
use crate::domain::status::StatusDocument;
use crate::domain::time::Stamp;

/// Reads both clocks.
pub trait Clock: Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Stamp;
}

/// Makes ids.
pub trait Ids: Send + Sync + 'static {
    /// A new key for an allocation.
    fn allocation(&self) -> AllocationId;
    /// A new key for an answer.
    fn grant(&self) -> GrantId;
}

/// The node's chips, behind the driver host.
pub trait Hardware: Send + Sync + 'static {
    /// Starts the driver anew if it is not running, or if `fresh` asks for new tables, and reads the
    /// whole node. Numbers are frozen per driver initialisation, hence `fresh`.
    fn inventory(
        &self,
        fresh: bool,
    ) -> impl Future<Output = Result<Inventory, HardwareError>> + Send;

    /// Health, codes and (when `with_processes`) processes of every chip of the last inventory, each
    /// chip within the same deadline: a chip whose call hangs reads `NoAnswer` and delays no other.
    fn sample(
        &self,
        with_processes: bool,
    ) -> impl Future<Output = Result<Vec<ChipSample>, HardwareError>> + Send;

    /// Sets the multi-die policy of a node of A3 chips and reads it back. The driver is asked once
    /// per driver host; asked again, the outcome of that one is repeated.
    fn set_die_policy(
        &self,
        policy: DiePolicy,
    ) -> impl Future<Output = Result<(), HardwareError>> + Send;
}

/// What the driver host tells unasked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HardwareNotice {
    /// A fault event.
    Fault(FaultEvent),
    /// Events were dropped because the queue was full: sample everything.
    FaultsDropped(u64),
    /// The driver host ended; the next call starts a new one.
    HostEnded {
        /// Why, for people.
        cause: String,
    },
    /// A driver host is up; each has a higher epoch than the one before.
    HostStarted {
        /// Epoch of this run of the agent.
        epoch: u64,
        /// Its process id.
        pid: u32,
    },
}

/// Why the hardware could not be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HardwareError {
    /// No library, an unsafe one, or one that cannot be loaded.
    #[error("driver library: {0}")]
    Library(String),
    /// The library is there, its initialisation failed.
    #[error("driver initialisation: {0}")]
    Init(String),
    /// The driver did not take the multi-die policy over.
    #[error("multi-die policy: {0}")]
    DiePolicy(String),
    /// The driver host could not be started or ended during the call.
    #[error("driver host: {0}")]
    Host(String),
    /// No answer in time.
    #[error("driver host gave no answer within {within:?}")]
    Deadline {
        /// The deadline.
        within: Duration,
    },
    /// A whole-node call failed in the driver.
    #[error("driver call {call} returned {code}")]
    Call {
        /// Symbol.
        call: &'static str,
        /// Its return code.
        code: i32,
    },
}

/// One atomic change of the durable state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Allocations to write, new or changed.
    pub put: Vec<Allocation>,
    /// Allocations that ended.
    pub remove: Vec<AllocationId>,
    /// Chips to write, new or changed.
    pub chips: Vec<ChipRecord>,
    /// History, in order.
    pub history: Vec<(Stamp, HistoryEvent)>,
}

impl Batch {
    /// True when nothing would change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.put.is_empty()
            && self.remove.is_empty()
            && self.chips.is_empty()
            && self.history.is_empty()
    }
}

/// What the store remembers of a chip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChipRecord {
    /// The chip as last seen.
    pub chip: Chip,
    /// When it was last seen.
    pub seen: Stamp,
    /// False once it vanished.
    pub present: bool,
}

/// Everything the ledger is rebuilt from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredState {
    /// Held chips.
    pub allocations: Vec<Allocation>,
    /// Known chips.
    pub chips: Vec<ChipRecord>,
    /// Last commit.
    pub last_sequence: Option<CommitSequence>,
}

/// A page of history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryQuery {
    /// Records after this one.
    pub after: Option<CommitSequence>,
    /// Inclusive, UTC nanoseconds.
    pub since_utc_ns: Option<i64>,
    /// Exclusive, UTC nanoseconds.
    pub until_utc_ns: Option<i64>,
    /// At most this many; capped at [`HISTORY_PAGE_MAX`].
    pub limit: usize,
}

/// Largest page of history, so that one query holds neither memory nor a read transaction for long.
pub const HISTORY_PAGE_MAX: usize = 1000;

/// The durable record.
pub trait Journal: Send + Sync + 'static {
    /// Makes the batch durable as one transaction. On return it survives a power cut.
    fn commit(
        &self,
        batch: Batch,
    ) -> impl Future<Output = Result<CommitSequence, JournalError>> + Send;

    /// Reads the whole state the ledger is rebuilt from.
    fn load(&self) -> impl Future<Output = Result<StoredState, JournalError>> + Send;

    /// Reads a page of history, oldest first; never waits for a driver call.
    fn history(
        &self,
        query: HistoryQuery,
    ) -> impl Future<Output = Result<Vec<HistoryRecord>, JournalError>> + Send;

    /// Writes a consistent copy to a path that does not exist yet; returns its size in bytes.
    fn backup(&self, to: PathBuf) -> impl Future<Output = Result<u64, JournalError>> + Send;

    /// Set when the store had to be begun anew during this run: what was damaged and where it lies
    /// now, for people.
    fn rebuilt(&self) -> Option<String>;
}

/// Why the durable record could not be written or read. All but `Closed` and `Request` may heal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// No space left.
    #[error("no space left on the disk of {path}")]
    Full {
        /// State directory.
        path: PathBuf,
    },
    /// Read-only or forbidden.
    #[error("{path} cannot be written: {cause}")]
    Unwritable {
        /// State directory.
        path: PathBuf,
        /// The system's words.
        cause: String,
    },
    /// The file is damaged and was or will be set aside.
    #[error("the store is damaged: {cause}")]
    Damaged {
        /// What was found.
        cause: String,
    },
    /// No answer in time; whether the commit is durable is unknown.
    #[error("the store gave no answer within {within:?}")]
    Deadline {
        /// The deadline.
        within: Duration,
    },
    /// The store was opened anew after a failure: what it holds must be read before the next commit.
    #[error("the store must be read again before the next commit: {cause}")]
    ReloadFirst {
        /// What happened before.
        cause: String,
    },
    /// Any other storage failure.
    #[error("storage failure: {cause}")]
    Storage {
        /// The library's words.
        cause: String,
    },
    /// The store thread has ended.
    #[error("the store is closed")]
    Closed,
    /// The request itself is wrong.
    #[error("{0}")]
    Request(String),
}

impl JournalError {
    /// Whether a later try may succeed without anybody changing the request.
    #[must_use]
    pub fn retryable(&self) -> bool {
        !matches!(self, Self::Closed | Self::Request(_))
    }
}

/// Kubelet's own records of who holds what.
pub trait KubeletRecords: Send + Sync + 'static {
    /// Asks pod-resources, within a deadline.
    fn census(
        &self,
        scope: &RecordScope,
    ) -> impl Future<Output = Result<PodCensus, CensusError>> + Send;

    /// Which version of the checkpoint file stands now; one `stat`, so cheap enough for every grant.
    fn checkpoint_version(&self) -> Option<CheckpointVersion>;

    /// Reads the checkpoint file; `Ok(None)` when there is none.
    fn checkpoint(
        &self,
        scope: &RecordScope,
    ) -> impl Future<Output = Result<Option<CheckpointView>, CensusError>> + Send;
}

/// Why kubelet's records could not be had. Proves nothing about any holder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CensusError {
    /// The pod-resources socket has never been there in this run.
    #[error("there is no pod-resources socket at {path}")]
    NeverSeen {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// It was there and is not answering.
    #[error("pod-resources: {0}")]
    Unavailable(String),
    /// No answer in time.
    #[error("pod-resources gave no answer within {within:?}")]
    Deadline {
        /// The deadline.
        within: Duration,
    },
    /// The checkpoint file is there and cannot be understood.
    #[error("kubelet's checkpoint: {0}")]
    Checkpoint(String),
}

/// One look at kubelet's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeletViews {
    /// What was read of the records.
    pub scope: RecordScope,
    /// Pod-resources; `None` when only the checkpoint was looked at.
    pub census: Option<Result<PodCensus, CensusError>>,
    /// Checkpoint.
    pub checkpoint: Result<Option<CheckpointView>, CensusError>,
    /// Version of the checkpoint before pod-resources was asked.
    pub checkpoint_before: Option<CheckpointVersion>,
}

/// Why a registration generation begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GenerationCause {
    /// First registration of this run.
    Start,
    /// Kubelet's registry socket was replaced: kubelet restarted.
    KubeletRestart,
    /// The newest stream ended, a socket of ours was deleted, or a registration was lost, while kubelet kept running.
    StreamLost,
    /// An operator asked (SIGHUP).
    Asked,
}

/// What the agent offers to kubelet's side.
pub trait Allocations: Clone + Send + Sync + 'static {
    /// Every published list, newest last; unchanged state publishes nothing.
    fn offers(&self) -> watch::Receiver<Arc<Offer>>;

    /// Called before a registration: compares the ledger with kubelet's records and publishes the
    /// list that the new generation may see. Returns within 2 s in every case.
    fn begin_generation(&self, cause: GenerationCause) -> impl Future<Output = ()> + Send;

    /// Grants the ids of one container request.
    fn allocate(
        &self,
        resource: ResourceName,
        ids: Vec<PluginDeviceId>,
    ) -> impl Future<Output = Result<Injection, Refusal>> + Send;

    /// Chooses `size` of `available`, all of `must_include` among them; empty means no preference.
    fn preferred(
        &self,
        resource: ResourceName,
        available: Vec<PluginDeviceId>,
        must_include: Vec<PluginDeviceId>,
        size: usize,
    ) -> impl Future<Output = Result<Vec<PluginDeviceId>, Refusal>> + Send;

    /// Kubelet wrote its checkpoint anew: a hint to read it soon.
    fn checkpoint_changed(&self);

    /// Kubelet received a list of this version on the newest stream of this resource.
    fn list_delivered(&self, resource: &ResourceName, version: u64);
}

/// What the agent offers to operators.
pub trait Administration: Clone + Send + Sync + 'static {
    /// What the agent knows now.
    fn status(&self) -> impl Future<Output = Result<StatusDocument, AdministrationError>> + Send;

    /// A page of history.
    fn history(
        &self,
        query: HistoryQuery,
    ) -> impl Future<Output = Result<Vec<HistoryRecord>, AdministrationError>> + Send;

    /// Writes a consistent copy of the store; returns its size in bytes.
    fn backup(&self, to: PathBuf) -> impl Future<Output = Result<u64, AdministrationError>> + Send;
}

/// Why an operator's question was not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdministrationError {
    /// The owner task gave no answer in time, or the agent is stopping.
    #[error("the agent gave no answer within {within:?}; it is starting, stopping or overloaded")]
    NoAnswer {
        /// The deadline.
        within: Duration,
    },
    /// The store could not serve it.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

//! The agent's side: [`DriverHost`] starts the child, asks it, watches it and replaces it.
//!
//! One supervising thread owns everything; requests and reports reach it through one queue, answers
//! leave through one-shot channels, so no lock is held and no call blocks the runtime.

mod pause;
mod process;
mod supervisor;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use self::supervisor::{Message, Supervisor};
use crate::domain::chip::{ChipSample, DiePolicy, Inventory};
use crate::ports::{Hardware, HardwareError, HardwareNotice};

/// Requests and reports that wait for the supervisor; a full queue holds the reading thread.
const INBOX: usize = 256;

/// How the driver host is started and what is expected of it.
#[derive(Clone, Debug)]
pub struct DriverConfig {
    /// The agent's own binary, which has the subcommand `driver-host`.
    pub program: PathBuf,
    /// The folder that the host locks.
    pub state_dir: PathBuf,
    /// Value of `LD_LIBRARY_PATH`: searched for the library, and given to the host so that the
    /// loader finds what the library needs.
    pub ld_library_path: Option<String>,
    /// Library taken without search and without the checks of owner and mode; for tests and the
    /// simulator.
    pub trusted_library: Option<PathBuf>,
    /// Variables of the host beside those it inherits, for libraries that read some.
    pub environment: Vec<(OsString, OsString)>,
    /// Where NUMA facts are read.
    pub sysfs: PathBuf,
    /// How long one chip may take for one sample.
    pub call_deadline: Duration,
    /// How long start, initialisation and enumeration may take together.
    pub init_deadline: Duration,
    /// How long one chip may take to say what it is.
    pub facts_deadline: Duration,
    /// How long a new host waits for one whose agent was killed to end.
    pub lock_wait: Duration,
    /// How long an orderly end may take before the host is killed.
    pub close_deadline: Duration,
    /// More threads than this in overrun calls get the host replaced.
    pub stuck_bound: usize,
    /// A call that hangs this long gets the host replaced; the wait doubles each time.
    pub stuck_patience: Duration,
}

impl DriverConfig {
    /// Defaults for everything but the two paths.
    #[must_use]
    pub fn new(program: PathBuf, state_dir: PathBuf) -> Self {
        Self {
            program,
            state_dir,
            ld_library_path: None,
            trusted_library: None,
            environment: Vec::new(),
            sysfs: PathBuf::from("/sys"),
            // A kubelet call may take 1 s in all; the rest of it is ours.
            call_deadline: Duration::from_millis(800),
            // The library forks a dozen shells and talks to every chip, some of which may be slow.
            init_deadline: Duration::from_secs(60),
            facts_deadline: Duration::from_secs(5),
            lock_wait: Duration::from_secs(10),
            close_deadline: Duration::from_secs(2),
            stuck_bound: 8,
            stuck_patience: Duration::from_secs(30),
        }
    }
}

/// The node's chips, behind a driver host. Dropped, it closes the host in order but does not wait
/// for that; use [`DriverHost::close`] to wait.
#[derive(Debug)]
pub struct DriverHost {
    inbox: SyncSender<Message>,
}

impl DriverHost {
    /// Starts the supervising thread; the host itself starts with the first request. What nobody
    /// asked for goes to `notices`, and is counted when that is full.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start(config: DriverConfig, notices: mpsc::Sender<HardwareNotice>) -> io::Result<Self> {
        let (inbox, messages) = sync_channel(INBOX);
        let supervisor = Supervisor::new(config, messages, inbox.clone(), notices);
        // The kernel kills a host when the thread that started it ends, not the process. So every
        // host is started by this one thread, which lives until the last one is reaped.
        thread::Builder::new()
            .name("driver".to_owned())
            .spawn(move || supervisor.run())?;
        Ok(Self { inbox })
    }

    /// Ends the host in order, or with a signal once the deadline passed, and reaps it.
    pub async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.send(Message::Close(Some(done))).is_ok() {
            // An error means that the supervisor is gone already.
            let _closed = closed.await;
        }
    }

    fn send(&self, message: Message) -> Result<(), HardwareError> {
        self.inbox.try_send(message).map_err(|error| {
            HardwareError::Host(match error {
                TrySendError::Full(_) => "too many requests are waiting".to_owned(),
                TrySendError::Disconnected(_) => "it was closed".to_owned(),
            })
        })
    }

    async fn ask<T>(
        &self,
        message: impl FnOnce(oneshot::Sender<Result<T, HardwareError>>) -> Message,
    ) -> Result<T, HardwareError> {
        let (reply, answer) = oneshot::channel();
        self.send(message(reply))?;
        let closed = |_| Err(HardwareError::Host("it was closed".to_owned()));
        answer.await.unwrap_or_else(closed)
    }
}

impl Drop for DriverHost {
    fn drop(&mut self) {
        // If the queue is full or gone, the kernel ends the host with this process.
        let _sent = self.send(Message::Close(None));
    }
}

impl Hardware for DriverHost {
    async fn inventory(&self, fresh: bool) -> Result<Inventory, HardwareError> {
        self.ask(|reply| Message::Inventory { fresh, reply }).await
    }

    async fn sample(&self, with_processes: bool) -> Result<Vec<ChipSample>, HardwareError> {
        self.ask(|reply| Message::Sample {
            with_processes,
            reply,
        })
        .await
    }

    async fn set_die_policy(&self, policy: DiePolicy) -> Result<(), HardwareError> {
        self.ask(|reply| Message::SetDiePolicy { policy, reply })
            .await
    }
}

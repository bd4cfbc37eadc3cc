//! The handle of the store: what the rest of the agent holds.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use redb::ReadTransaction;
use tokio::sync::{Semaphore, oneshot, watch};

use super::backup;
use super::connection::{Before, Ground, Medium, Opening, Rebuilt};
use super::contents::read_page;
use super::door::Door;
use super::fault::{Fault, guarded};
use super::migrate::NEWEST;
use super::open_error::OpenError;
use super::place::{Place, PlaceLock};
use super::retention::{HourlyShare, Retention};
use super::worker::{REOPEN_FIRST, Reply, Request, StoreStatus, Worker};
use crate::domain::history::HistoryRecord;
use crate::domain::ids::CommitSequence;
use crate::ports::{Batch, Clock, HistoryQuery, Journal, JournalError, StoredState};

/// Requests waiting for the thread. One owner commits one batch after the other; more than a few mean
/// that the disk stands still.
const QUEUE: usize = 64;
/// Readers at once, each on a thread of the blocking pool.
const READERS: usize = 4;
/// An answer to kubelet waits for it.
const COMMIT_DEADLINE: Duration = Duration::from_secs(2);
/// May include opening and checking the file anew.
const LOAD_DEADLINE: Duration = Duration::from_secs(10);
const HISTORY_DEADLINE: Duration = Duration::from_secs(5);
const BACKUP_DEADLINE: Duration = Duration::from_secs(120);
const CLOSE_DEADLINE: Duration = Duration::from_secs(5);
/// History kept without a state directory, where it costs memory.
const VOLATILE_RECORDS: u64 = 5_000;

/// Where the store is and how much it keeps.
#[derive(Clone, Debug)]
pub struct Settings {
    /// State directory.
    pub directory: PathBuf,
    /// Bound of the history.
    pub retention: Retention,
    /// How the file is accessed.
    pub medium: Medium,
}

impl Settings {
    /// The defaults for a directory.
    #[must_use]
    pub fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            retention: Retention::default(),
            medium: Medium::default(),
        }
    }
}

/// A store that was just opened.
#[derive(Debug)]
pub struct Opened {
    /// The handle.
    pub store: Store,
    /// What it holds.
    pub state: StoredState,
    /// Set when it had to be begun anew.
    pub rebuilt: Option<Rebuilt>,
    /// Where the copy of the older file lies when the schema was brought up to date.
    pub migrated: Option<PathBuf>,
}

/// Handle of the store thread. Clones share it; the thread ends with the last one, or by `close`.
#[derive(Clone, Debug)]
pub struct Store {
    requests: SyncSender<Request>,
    door: Door,
    status: watch::Receiver<StoreStatus>,
    readers: Arc<Semaphore>,
    directory: Option<PathBuf>,
}

impl Store {
    /// Opens the store of a directory, or begins one. Blocks for as long as the check of the file takes.
    ///
    /// # Errors
    /// `InUse` when another process has it, else what the path, the disk or a newer schema refuses.
    /// Damage is no error: see [`Opened::rebuilt`].
    pub fn open(settings: Settings, clock: Arc<dyn Clock>) -> Result<Opened, OpenError> {
        let place = Place::new(settings.directory.clone());
        refuse_newer(&place)?;
        place.prepare()?;
        let lock = place.lock()?;
        refuse_newer(&place)?;
        place.sweep_copies();
        let ground = Ground::Directory {
            place: place.clone(),
            medium: settings.medium,
        };
        Self::start(ground, Some(lock), settings.retention, clock)
            .map_err(|fault| OpenError::fault(fault, place.directory(), || place.holder()))
    }

    /// A store in memory, for a node without a usable state directory. It keeps nothing beyond this
    /// process, says so by [`Store::is_durable`] and refuses backups.
    ///
    /// # Errors
    /// Only when the system gives no thread.
    pub fn volatile(clock: Arc<dyn Clock>) -> Result<Opened, OpenError> {
        let retention = Retention {
            records: VOLATILE_RECORDS,
        };
        Self::start(Ground::Memory, None, retention, clock)
            .map_err(|fault| OpenError::fault(fault, std::path::Path::new(""), String::new))
    }

    /// False for a store in memory.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        self.directory.is_some()
    }

    /// How the store is, now and after each change.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<StoreStatus> {
        self.status.clone()
    }

    /// Closes the file in order and lets go of the directory. Waits for at most 5 s.
    pub async fn close(&self) {
        let (reply, closed) = oneshot::channel();
        if self.requests.try_send(Request::Close { reply }).is_err() {
            tracing::warn!("store thread takes no requests; it ends with the process");
            return;
        }
        if tokio::time::timeout(CLOSE_DEADLINE, closed).await.is_err() {
            tracing::warn!(deadline = ?CLOSE_DEADLINE, "store did not close in time");
        }
    }

    fn start(
        ground: Ground,
        lock: Option<PlaceLock>,
        retention: Retention,
        clock: Arc<dyn Clock>,
    ) -> Result<Opened, Fault> {
        let before = Before {
            now: clock.now(),
            last: None,
            condemned: None,
        };
        let Opening {
            connection,
            state,
            rebuilt,
            migrated,
        } = ground.open(before)?;
        if let Some(rebuilt) = &rebuilt {
            let set_aside = rebuilt.set_aside.as_ref().map(|path| path.display());
            tracing::error!(?set_aside, damage = rebuilt.damage, "store rebuilt");
        }
        let directory = match &ground {
            Ground::Directory { place, .. } => Some(place.directory().to_path_buf()),
            Ground::Memory => None,
        };
        let first = StoreStatus {
            generation: 1,
            failing: None,
            rebuilt: rebuilt.clone(),
        };
        let (status, watching) = watch::channel(first);
        let door = Door::default();
        door.open(1, &connection.database);
        let worker = Worker {
            ground,
            lock,
            retention,
            clock,
            last: connection.last,
            connection: Some(connection),
            door: door.clone(),
            status,
            fence: None,
            condemned: None,
            panics: 0,
            share: HourlyShare::default(),
            back_off: REOPEN_FIRST,
            // Looked at in the first idle moment.
            surplus: true,
        };
        let (requests, queue) = sync_channel(QUEUE);
        std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || worker.run(&queue))
            .map_err(Fault::Io)?;
        let store = Self {
            requests,
            door,
            status: watching,
            readers: Arc::new(Semaphore::new(READERS)),
            directory,
        };
        Ok(Opened {
            store,
            state,
            rebuilt,
            migrated,
        })
    }

    async fn ask<T>(
        &self,
        within: Duration,
        request: impl FnOnce(Reply<T>) -> Request,
    ) -> Result<T, JournalError> {
        let (reply, answer) = oneshot::channel();
        self.requests
            .try_send(request(reply))
            .map_err(|error| match error {
                TrySendError::Full(_) => JournalError::Storage {
                    cause: format!("{QUEUE} requests wait already"),
                },
                TrySendError::Disconnected(_) => JournalError::Closed,
            })?;
        match tokio::time::timeout(within, answer).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(JournalError::Closed),
            Err(_) => Err(JournalError::Deadline { within }),
        }
    }

    /// Runs a reader on a thread of the blocking pool, on a snapshot of the last commit.
    async fn read<T: Send + 'static>(
        &self,
        within: Duration,
        work: impl FnOnce(&ReadTransaction) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, JournalError> {
        let reading = async {
            let permit = Arc::clone(&self.readers).acquire_owned().await;
            let permit = permit.map_err(|_| JournalError::Closed)?;
            let (generation, snapshot) = self.door.snapshot().ok_or_else(|| self.shut())?;
            let done = tokio::task::spawn_blocking(move || {
                let outcome = snapshot.and_then(|transaction| guarded(|| work(&transaction)));
                drop(permit);
                outcome
            })
            .await
            .map_err(|error| JournalError::Storage {
                cause: error.to_string(),
            })?;
            done.map_err(|fault| self.report(generation, &fault))
        };
        tokio::time::timeout(within, reading)
            .await
            .unwrap_or(Err(JournalError::Deadline { within }))
    }

    fn shut(&self) -> JournalError {
        self.status
            .borrow()
            .failing
            .clone()
            .unwrap_or(JournalError::Closed)
    }

    /// A reader that fails tells the thread, which looks at the whole file.
    fn report(&self, generation: u64, fault: &Fault) -> JournalError {
        if !matches!(fault, Fault::Request(_)) {
            let damage = fault.to_string();
            // A full queue means the thread is busy with worse.
            drop(
                self.requests
                    .try_send(Request::Suspect { generation, damage }),
            );
        }
        fault.journal_error(
            self.directory
                .as_deref()
                .unwrap_or(std::path::Path::new("memory")),
        )
    }
}

impl Journal for Store {
    async fn commit(&self, batch: Batch) -> Result<CommitSequence, JournalError> {
        self.ask(COMMIT_DEADLINE, |reply| Request::Commit { batch, reply })
            .await
    }

    async fn load(&self) -> Result<StoredState, JournalError> {
        self.ask(LOAD_DEADLINE, |reply| Request::Load { reply })
            .await
    }

    async fn history(&self, query: HistoryQuery) -> Result<Vec<HistoryRecord>, JournalError> {
        let page = self
            .read(HISTORY_DEADLINE, move |transaction| {
                read_page(transaction, query)
            })
            .await?;
        for (sequence, damage) in page.damaged {
            tracing::warn!(%sequence, damage, "history record left out");
        }
        Ok(page.records)
    }

    async fn backup(&self, to: PathBuf) -> Result<u64, JournalError> {
        if !self.is_durable() {
            return Err(JournalError::Request(
                "there is no state directory, so there is nothing to copy".to_owned(),
            ));
        }
        let cancelled = Arc::new(AtomicBool::new(false));
        let _cancel_on_drop = CancelOnDrop(Arc::clone(&cancelled));
        self.read(BACKUP_DEADLINE, move |transaction| {
            Ok(backup::write(transaction, &to, &cancelled))
        })
        .await?
    }

    fn rebuilt(&self) -> Option<String> {
        let status = self.status.borrow();
        let rebuilt = status.rebuilt.as_ref()?;
        Some(match &rebuilt.set_aside {
            Some(path) => format!(
                "{}; the damaged file lies in {}",
                rebuilt.damage,
                path.display()
            ),
            None => rebuilt.damage.clone(),
        })
    }
}

/// Ends a copy whose caller went away or ran out of time.
#[derive(Debug)]
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Before anything is created or changed.
fn refuse_newer(place: &Place) -> Result<(), OpenError> {
    match place.schema()? {
        Some(found) if found > NEWEST => Err(OpenError::NewerSchema {
            directory: place.directory().to_path_buf(),
            found,
            known: NEWEST,
        }),
        Some(_) | None => Ok(()),
    }
}

//! The store thread. It owns the database, makes one commit after the other and, when nothing is to be
//! done, removes old history in small pieces.
//!
//! Any failure ends the connection: redb refuses every call after an i/o error, and a commit whose
//! error came late may be on the disk or not. The next connection is fenced: it takes no commit before
//! `load` has told the caller what is true.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use super::connection::{Before, Connection, Ground, Rebuilt};
use super::contents::{apply, begin, history_len, read_state, remove_oldest};
use super::door::Door;
use super::fault::{Fault, guarded};
use super::place::PlaceLock;
use super::retention::{HourlyShare, Retention};
use super::schema_1::HISTORY;
use crate::domain::ids::CommitSequence;
use crate::ports::{Batch, Clock, JournalError, StoredState};

/// Waits between tries to open a store that failed, so that a bad disk is not hammered.
pub(super) const REOPEN_FIRST: Duration = Duration::from_millis(250);
const REOPEN_LONGEST: Duration = Duration::from_secs(30);
/// Between two pieces of retention.
const PIECE_PAUSE: Duration = Duration::from_millis(50);
/// How often the share of an hour is looked at again once it is used up.
const SHARE_PAUSE: Duration = Duration::from_secs(60);
/// A library that panics on a file whose every page is right would do so for ever.
const PANICS_UNTIL_CONDEMNED: u32 = 3;

pub(super) type Reply<T> = oneshot::Sender<Result<T, JournalError>>;

/// What the thread is asked.
#[derive(Debug)]
pub(super) enum Request {
    Commit {
        batch: Batch,
        reply: Reply<CommitSequence>,
    },
    Load {
        reply: Reply<StoredState>,
    },
    /// A reader found something wrong with the connection of this generation.
    Suspect {
        generation: u64,
        damage: String,
    },
    Close {
        reply: oneshot::Sender<()>,
    },
}

/// How the store is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStatus {
    /// Counts the connections; a new number means the file was opened anew.
    pub generation: u64,
    /// Why the store does not work at present; `None` when it does.
    pub failing: Option<JournalError>,
    /// The last time in this run that the store had to be begun anew.
    pub rebuilt: Option<Rebuilt>,
}

/// The thread's state.
pub(super) struct Worker {
    pub(super) ground: Ground,
    /// Held for life; `None` in memory.
    pub(super) lock: Option<PlaceLock>,
    pub(super) retention: Retention,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) connection: Option<Connection>,
    pub(super) door: Door,
    pub(super) status: watch::Sender<StoreStatus>,
    pub(super) fence: Option<String>,
    pub(super) last: Option<CommitSequence>,
    pub(super) condemned: Option<String>,
    pub(super) panics: u32,
    pub(super) share: HourlyShare,
    pub(super) back_off: Duration,
    pub(super) surplus: bool,
}

impl Worker {
    /// Serves until closed or until the last handle is gone.
    pub(super) fn run(mut self, requests: &Receiver<Request>) {
        loop {
            let request = match self.pause() {
                Some(pause) => requests.recv_timeout(pause),
                None => requests.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match request {
                Ok(Request::Commit { batch, reply }) => self.commit(&batch, reply),
                Ok(Request::Load { reply }) => self.load(reply),
                Ok(Request::Suspect { generation, damage }) => self.suspect(generation, damage),
                Ok(Request::Close { reply }) => {
                    self.disconnect();
                    drop(self.lock.take());
                    if reply.send(()).is_err() {
                        tracing::debug!("nobody waited for the store to close");
                    }
                    return;
                }
                Err(RecvTimeoutError::Timeout) => self.idle(),
                Err(RecvTimeoutError::Disconnected) => {
                    self.disconnect();
                    return;
                }
            }
        }
    }

    /// How long to wait for a request; for ever when there is nothing else to do.
    fn pause(&self) -> Option<Duration> {
        match (&self.connection, self.surplus) {
            (None, _) => Some(self.back_off),
            (Some(_), true) if self.share.is_used_up(self.retention) => Some(SHARE_PAUSE),
            (Some(_), true) => Some(PIECE_PAUSE),
            (Some(_), false) => None,
        }
    }

    fn idle(&mut self) {
        if self.connection.is_none() {
            // The outcome stands in the status.
            drop(self.reconnect());
        } else {
            self.remove_piece();
        }
    }

    fn commit(&mut self, batch: &Batch, reply: Reply<CommitSequence>) {
        // Nobody waits for it any more, so nobody may rely on it.
        if reply.is_closed() {
            return;
        }
        let outcome = self.try_commit(batch);
        if reply.send(outcome.clone()).is_err() && outcome.is_ok() && !batch.is_empty() {
            self.fence = Some("a commit became durable after its caller had given up".to_owned());
        }
        // The caller is told first: opening checks every page.
        if self.connection.is_none() {
            drop(self.reconnect());
        }
    }

    fn try_commit(&mut self, batch: &Batch) -> Result<CommitSequence, JournalError> {
        self.reconnect()?;
        if let Some(cause) = &self.fence {
            return Err(JournalError::ReloadFirst {
                cause: cause.clone(),
            });
        }
        if batch.is_empty() {
            return Ok(self.last.unwrap_or(CommitSequence(0)));
        }
        let retention = self.retention;
        let outcome = self.on_connection(|connection| {
            let transaction = begin(&connection.database)?;
            let sequence = apply(
                &transaction,
                &mut connection.names,
                connection.last,
                batch,
                retention,
            )?;
            transaction.commit()?;
            connection.last = Some(sequence);
            if let Some((_, mark)) = &connection.file {
                mark.advance(sequence);
            }
            Ok(sequence)
        });
        match outcome {
            Ok(sequence) => {
                self.last = Some(sequence);
                self.panics = 0;
                self.surplus = self.is_over_bound();
                Ok(sequence)
            }
            Err(fault) => Err(self.failed(&fault)),
        }
    }

    fn load(&mut self, reply: Reply<StoredState>) {
        let outcome = self.reconnect().and_then(|()| {
            self.on_connection(|connection| read_state(&connection.database))
                .map_err(|fault| self.failed(&fault))
        });
        let loaded = outcome.is_ok();
        if reply.send(outcome).is_ok() && loaded {
            self.fence = None;
        }
    }

    fn suspect(&mut self, generation: u64, damage: String) {
        if self.status.borrow().generation == generation && self.connection.is_some() {
            // Not believed at once: opening anew checks every page and decides.
            self.failed(&Fault::Unusable(damage));
            drop(self.reconnect());
        }
    }

    fn on_connection<T>(
        &mut self,
        work: impl FnOnce(&mut Connection) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.still_the_same_file()?;
        let connection = self
            .connection
            .as_mut()
            .ok_or_else(|| Fault::Unusable("the store is not open".to_owned()))?;
        guarded(|| work(connection))
    }

    /// Writing on into a file that somebody removed or replaced would promise what nobody can keep.
    fn still_the_same_file(&self) -> Result<(), Fault> {
        let (Ground::Directory { place, .. }, Some(connection)) = (&self.ground, &self.connection)
        else {
            return Ok(());
        };
        match place.identity() {
            Ok(identity)
                if connection
                    .file
                    .as_ref()
                    .is_some_and(|file| file.0 == identity) =>
            {
                Ok(())
            }
            Ok(_) => Err(Fault::Damage(
                "the database file was replaced while in use".to_owned(),
            )),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Fault::Damage(
                "the database file was removed while in use".to_owned(),
            )),
            Err(error) => Err(Fault::Io(error)),
        }
    }

    /// Ends the connection and decides what the next one must do.
    fn failed(&mut self, fault: &Fault) -> JournalError {
        let error = match &self.ground {
            Ground::Directory { place, .. } => fault.journal_error(place.directory()),
            Ground::Memory => fault.journal_error(std::path::Path::new("memory")),
        };
        if matches!(fault, Fault::Request(_)) {
            // Nothing is wrong with the file, but names given out in the aborted transaction are.
            self.fence = Some(format!("a batch was refused: {fault}"));
        } else {
            tracing::error!(%error, "store failed");
            self.fence = Some(format!("a commit may or may not be durable after: {fault}"));
            self.status
                .send_modify(|status| status.failing = Some(error.clone()));
        }
        if let Fault::Damage(cause) = fault {
            self.condemned = Some(cause.clone());
        }
        if matches!(fault, Fault::Panicked(_)) {
            self.panics += 1;
            if self.panics >= PANICS_UNTIL_CONDEMNED {
                self.condemned = Some(fault.to_string());
            }
        }
        if matches!(self.ground, Ground::Memory) {
            self.condemned = Some(fault.to_string());
        }
        self.disconnect();
        error
    }

    fn disconnect(&mut self) {
        self.door.shut();
        if let Some(connection) = self.connection.take() {
            // Closing writes, and may panic on a damaged file like everything else.
            let closed = guarded(|| {
                drop(connection);
                Ok(())
            });
            if let Err(fault) = closed {
                tracing::warn!(%fault, "store did not close cleanly");
            }
        }
    }

    /// Opens the store if it is not open; afterwards the fence stands until `load`.
    fn reconnect(&mut self) -> Result<(), JournalError> {
        if self.connection.is_some() {
            return Ok(());
        }
        let before = Before {
            now: self.clock.now(),
            last: self.last,
            condemned: self.condemned.clone(),
        };
        match self.ground.open(before) {
            Ok(opening) => {
                if let Some(rebuilt) = &opening.rebuilt {
                    let set_aside = rebuilt.set_aside.as_ref().map(|path| path.display());
                    tracing::error!(?set_aside, damage = rebuilt.damage, "store rebuilt");
                }
                if self.fence.is_none() || opening.rebuilt.is_some() {
                    self.fence = Some("the store was opened anew".to_owned());
                }
                self.condemned = None;
                self.back_off = REOPEN_FIRST;
                self.last = opening.connection.last;
                let generation = self.status.borrow().generation.saturating_add(1);
                self.door.open(generation, &opening.connection.database);
                self.connection = Some(opening.connection);
                self.surplus = self.is_over_bound();
                self.status.send_modify(|status| {
                    status.generation = generation;
                    status.failing = None;
                    if opening.rebuilt.is_some() {
                        status.rebuilt = opening.rebuilt;
                    }
                });
                tracing::info!(generation, "store opened anew");
                Ok(())
            }
            Err(fault) => {
                self.back_off = (self.back_off * 2).min(REOPEN_LONGEST);
                let error = match &self.ground {
                    Ground::Directory { place, .. } => fault.journal_error(place.directory()),
                    Ground::Memory => fault.journal_error(std::path::Path::new("memory")),
                };
                self.status.send_if_modified(|status| {
                    let changed = status.failing.as_ref() != Some(&error);
                    status.failing = Some(error.clone());
                    changed
                });
                Err(error)
            }
        }
    }

    fn is_over_bound(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| {
            guarded(|| history_len(&connection.database))
                .is_ok_and(|kept| kept > self.retention.records)
        })
    }

    fn remove_piece(&mut self) {
        let now = self.clock.now().boot_time;
        let (retention, mut share) = (self.retention, self.share);
        let removed = self.on_connection(|connection| {
            let kept = history_len(&connection.database)?;
            let rows = retention.idle_piece(kept, &mut share, now);
            if rows > 0 {
                let transaction = begin(&connection.database)?;
                remove_oldest(&mut transaction.open_table(HISTORY)?, rows)?;
                transaction.commit()?;
            }
            Ok(kept.saturating_sub(rows) > retention.records)
        });
        self.share = share;
        match removed {
            Ok(surplus) => self.surplus = surplus,
            Err(fault) => {
                self.failed(&fault);
            }
        }
    }
}

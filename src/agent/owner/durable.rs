//! The owner and its journal: loading, committing, living through a failing store.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::domain::history::HistoryEvent;
use crate::domain::time::{BootTime, Stamp};
use crate::ledger::ChipEntry;
use crate::ports::{
    Batch, ChipRecord, Clock, Ids, Journal, JournalError, KubeletRecords, StoredState,
};

use super::Owner;

/// History kept for a store that will take it later; the oldest go first.
const BACKLOG_MAX: usize = 256;

/// Pause between two tries to write to a failing store.
const RETRY: Duration = Duration::from_secs(2);

/// How long the owner itself waits for the store to be read again.
const READING: Duration = Duration::from_millis(100);

/// How durable the agent is now.
#[derive(Debug)]
pub(in crate::agent) enum StoreState {
    /// Commits succeed.
    Durable { last_commit: u64 },
    /// Commits fail: nothing is granted until one succeeds.
    Failing {
        cause: String,
        next_try: BootTime,
        backlog: VecDeque<(Stamp, HistoryEvent)>,
    },
    /// There is no state folder: grants are kept in memory and promised for this run only.
    Volatile { why: String },
}

impl StoreState {
    pub(in crate::agent) fn failing(cause: String) -> Self {
        Self::Failing {
            cause,
            next_try: BootTime(0),
            backlog: VecDeque::new(),
        }
    }

    pub(super) fn trouble(&self) -> Option<&str> {
        match self {
            Self::Failing { cause, .. } => Some(cause),
            Self::Durable { .. } | Self::Volatile { .. } => None,
        }
    }
}

impl<J: Journal, R: KubeletRecords, C: Clock, I: Ids> Owner<J, R, C, I> {
    /// Takes over what the journal holds, and notes the start.
    pub(super) async fn load(&mut self) {
        if self.store.trouble().is_none() {
            match self.journal.load().await {
                Ok(state) => {
                    self.merge(state);
                    tracing::info!(held = self.ledger.held().len(), "ledger loaded");
                }
                Err(error) => self.store_failed(&error, Vec::new()),
            }
        }
        let version = env!("CARGO_PKG_VERSION").to_owned();
        self.note(HistoryEvent::AgentStarted { version }).await;
    }

    /// Writes one history record and nothing else.
    pub(super) async fn note(&mut self, event: HistoryEvent) {
        let batch = Batch {
            history: vec![(self.clock.now(), event)],
            ..Batch::default()
        };
        // The failure is noted where the store's state is kept; the record waits in the backlog.
        let _ = self.commit(batch).await;
    }

    /// Makes a batch durable. While the store fails, every batch is refused at once and only its
    /// history is kept: the retry first learns which of the lost commits reached the disk, and a
    /// batch planned before that could give a chip away twice.
    pub(super) async fn commit(&mut self, batch: Batch) -> Result<(), String> {
        if batch.is_empty() {
            return Ok(());
        }
        if let StoreState::Failing { cause, backlog, .. } = &mut self.store {
            keep(backlog, batch.history);
            return Err(cause.clone());
        }
        let history = batch.history.clone();
        match self.journal.commit(batch).await {
            Ok(sequence) => {
                if let StoreState::Durable { last_commit } = &mut self.store {
                    *last_commit = sequence.0;
                }
                Ok(())
            }
            Err(error) => {
                self.store_failed(&error, history);
                Err(error.to_string())
            }
        }
    }

    fn store_failed(&mut self, error: &JournalError, history: Vec<(Stamp, HistoryEvent)>) {
        let now = self.now();
        let was_failing = self.store.trouble().is_some();
        if !was_failing {
            tracing::error!(%error, "the store refuses writes: no new grants until it takes them");
        }
        let mut backlog =
            match std::mem::replace(&mut self.store, StoreState::failing(error.to_string())) {
                StoreState::Failing { backlog, .. } => backlog,
                StoreState::Durable { .. } | StoreState::Volatile { .. } => VecDeque::new(),
            };
        keep(&mut backlog, history);
        self.store = StoreState::Failing {
            cause: error.to_string(),
            next_try: now.plus(RETRY),
            backlog,
        };
    }

    fn merge(&mut self, state: StoredState) {
        let chips = state.chips.into_iter().map(|record| ChipEntry {
            chip: record.chip,
            present: record.present,
        });
        let now = self.now();
        self.ledger.take_stored(chips, state.allocations, now, None);
    }

    /// Tries a failing store from time to time, so that it is found to be well again without costing
    /// a pod. Nobody knows which of the last commits reached the disk: what is there and not in memory
    /// is held from now on, what is in memory and not there is written again.
    ///
    /// The reading runs beside the owner: a disk that stands still makes it take its whole deadline, and
    /// health, lists and operators do not wait for that. Nothing is committed meanwhile.
    #[expect(
        clippy::disallowed_methods,
        reason = "this task waits for its end, and aborts it when it stops itself"
    )]
    pub(super) async fn retry_store(&mut self) {
        let history: Vec<_> = match &self.store {
            StoreState::Failing {
                next_try, backlog, ..
            } if self.now() >= *next_try => backlog.iter().cloned().collect(),
            StoreState::Failing { .. }
            | StoreState::Durable { .. }
            | StoreState::Volatile { .. } => return,
        };
        let journal = Arc::clone(&self.journal);
        let reading = self
            .reading
            .get_or_insert_with(|| tokio::spawn(async move { journal.load().await }));
        // Enough for a disk that is well; one that is not is looked at again at the next tick.
        let Ok(read) = timeout(READING, reading).await else {
            return;
        };
        self.reading = None;
        let read = read.unwrap_or_else(|fault| {
            Err(JournalError::Storage {
                cause: fault.to_string(),
            })
        });
        let state = match read {
            Ok(state) => state,
            Err(error) => return self.store_failed(&error, Vec::new()),
        };
        let stored = state.allocations.iter().map(|record| record.id).collect();
        self.merge(state);
        self.ledger.mark_unsaved(&stored);
        let seen = self.clock.now();
        let chips = self
            .ledger
            .chips()
            .values()
            .map(|entry| ChipRecord {
                chip: entry.chip.clone(),
                seen,
                present: entry.present,
            })
            .collect();
        let batch = Batch {
            put: self.ledger.unsaved(),
            chips,
            history,
            ..Batch::default()
        };
        match self.journal.commit(batch).await {
            Ok(sequence) => {
                tracing::info!(sequence = sequence.0, "the store takes writes again");
                self.store = StoreState::Durable {
                    last_commit: sequence.0,
                };
                self.ledger.all_saved();
            }
            Err(error) => self.store_failed(&error, Vec::new()),
        }
    }
}

fn keep(backlog: &mut VecDeque<(Stamp, HistoryEvent)>, history: Vec<(Stamp, HistoryEvent)>) {
    backlog.extend(history);
    while backlog.len() > BACKLOG_MAX {
        backlog.pop_front();
    }
}

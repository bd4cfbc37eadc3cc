//! A store that may open later than the agent starts.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::OnceCell;

use crate::domain::causes::with_causes;
use crate::domain::history::HistoryRecord;
use crate::domain::ids::CommitSequence;
use crate::ports::{Batch, Clock, HistoryQuery, Journal, JournalError, StoredState};
use crate::store::{OpenError, Settings, Store};

/// The store, or the wish for one: loading opens it.
pub(super) struct LateStore {
    settings: Option<Settings>,
    clock: Arc<dyn Clock>,
    opened: OnceCell<Store>,
}

impl LateStore {
    pub(super) fn opened(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            settings: None,
            clock,
            opened: OnceCell::new_with(Some(store)),
        }
    }

    pub(super) fn unopened(settings: Settings, clock: Arc<dyn Clock>) -> Self {
        Self {
            settings: Some(settings),
            clock,
            opened: OnceCell::new(),
        }
    }

    pub(super) async fn close(&self) {
        if let Some(store) = self.opened.get() {
            store.close().await;
        }
    }

    fn store(&self) -> Result<&Store, JournalError> {
        self.opened.get().ok_or_else(|| JournalError::Unwritable {
            path: self.path(),
            cause: "it could not be opened yet".to_owned(),
        })
    }

    fn path(&self) -> PathBuf {
        self.settings
            .as_ref()
            .map(|settings| settings.directory.clone())
            .unwrap_or_default()
    }

    async fn open(&self) -> Result<Store, JournalError> {
        let Some(settings) = self.settings.clone() else {
            return Err(JournalError::Closed);
        };
        let path = settings.directory.clone();
        let clock = Arc::clone(&self.clock);
        let opened = tokio::task::spawn_blocking(move || Store::open(settings, clock)).await;
        match opened {
            Ok(Ok(opened)) => Ok(opened.store),
            Ok(Err(error)) => Err(open_failure(&error, path)),
            Err(error) => Err(JournalError::Storage {
                cause: error.to_string(),
            }),
        }
    }
}

/// An opening failure in the words of the journal, causes included.
pub(super) fn open_failure(error: &OpenError, path: PathBuf) -> JournalError {
    let cause = with_causes(error);
    JournalError::Unwritable { path, cause }
}

impl Journal for LateStore {
    async fn commit(&self, batch: Batch) -> Result<CommitSequence, JournalError> {
        self.store()?.commit(batch).await
    }

    async fn load(&self) -> Result<StoredState, JournalError> {
        self.opened
            .get_or_try_init(|| self.open())
            .await?
            .load()
            .await
    }

    async fn history(&self, query: HistoryQuery) -> Result<Vec<HistoryRecord>, JournalError> {
        self.store()?.history(query).await
    }

    async fn backup(&self, to: PathBuf) -> Result<u64, JournalError> {
        self.store()?.backup(to).await
    }

    fn rebuilt(&self) -> Option<String> {
        self.opened.get().and_then(Store::rebuilt)
    }
}

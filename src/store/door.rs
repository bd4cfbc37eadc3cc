//! The way readers get a read transaction without asking the store thread, so that a query never waits
//! for a commit. The thread shuts the door before it closes the database; transactions that are still
//! alive then end with an error, because they hold no part of the handle that keeps a file open.

use std::sync::{Arc, Mutex, PoisonError};

use redb::{Database, ReadTransaction, ReadableDatabase};

use super::fault::{Fault, guarded};

#[derive(Clone, Debug, Default)]
pub(super) struct Door(Arc<Mutex<Option<Behind>>>);

/// A generation and its database.
type Behind = (u64, Arc<Database>);

impl Door {
    pub(super) fn open(&self, generation: u64, database: &Arc<Database>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((generation, Arc::clone(database)));
    }

    pub(super) fn shut(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// A snapshot of the last commit and the generation it belongs to; `None` while the store is shut.
    pub(super) fn snapshot(&self) -> Option<(u64, Result<ReadTransaction, Fault>)> {
        let door = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (generation, database) = door.as_ref()?;
        Some((*generation, guarded(|| Ok(database.begin_read()?))))
    }
}

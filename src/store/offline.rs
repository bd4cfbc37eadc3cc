//! Reading a store that no agent has open, on a copy: opening a file that was not closed repairs it,
//! and a look must not change what it looks at.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use redb::{Database, ReadableDatabase, ReadableTableMetadata};

use super::backup;
use super::connection::{Connection, Medium, Opening, open_existing};
use super::contents::read_page;
use super::fault::{Fault, guarded};
use super::migrate::NEWEST;
use super::open_error::OpenError;
use super::outbox;
use super::place::{Place, PlaceLock, copy_file, open};
use super::schema_1::HISTORY;
use crate::domain::history::HistoryRecord;
use crate::domain::ids::CommitSequence;
use crate::ports::{HISTORY_PAGE_MAX, HistoryQuery, JournalError, StoredState};

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// The file.
    pub file: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// What is wrong with it; the agent would set it aside and begin anew.
    pub damage: Option<String>,
    /// Schema of the side file, if there is one.
    pub schema: Option<u32>,
    /// Chips held.
    pub allocations: u64,
    /// Chips known.
    pub chips: u64,
    /// History records, damaged ones included.
    pub history: u64,
    /// History records that cannot be read, and why.
    pub damaged_history: Vec<(CommitSequence, String)>,
    /// Writes waiting for the API server.
    pub outbox: u64,
    /// Last commit.
    pub last_sequence: Option<CommitSequence>,
}

impl CheckReport {
    /// True when nothing is wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.damage.is_none() && self.damaged_history.is_empty()
    }
}

/// A copy of a store, open for reading; removed when dropped.
#[derive(Debug)]
pub struct OfflineStore {
    connection: Connection,
    state: StoredState,
    _copy: Copy,
}

/// Copies the store of a directory to a folder in it and opens the copy.
///
/// # Errors
/// `InUse` while an agent runs, `Missing` when there is no store, `Damaged` when it cannot be read,
/// `NewerSchema`, or what the disk refuses.
pub fn open_copy(directory: &Path) -> Result<OfflineStore, OpenError> {
    let copy = Copy::make(directory)?;
    let copied = copy.place.open_state().map_err(Fault::Io).and_then(|file| {
        let file = file.ok_or_else(|| Fault::Unusable("the copy vanished".to_owned()))?;
        guarded(|| open_existing(&copy.place, &Medium::default(), file))
    });
    let Opening {
        connection, state, ..
    } = copied.map_err(|fault| {
        if matches!(fault, Fault::Damage(_) | Fault::Panicked(_)) {
            let path = copy.original.clone();
            let cause = fault.to_string();
            return OpenError::Damaged { path, cause };
        }
        OpenError::fault(fault, directory, String::new)
    })?;
    Ok(OfflineStore {
        connection,
        state,
        _copy: copy,
    })
}

/// Checks every page and every record of the store of a directory, on a copy.
///
/// # Errors
/// As [`open_copy`], except that damage is part of the report.
pub fn check(directory: &Path) -> Result<CheckReport, OpenError> {
    let place = Place::new(directory.to_path_buf());
    let file = place.state_file();
    let mut report = CheckReport {
        schema: place.schema()?,
        file,
        ..CheckReport::default()
    };
    let store = match open_copy(directory) {
        Ok(store) => Some(store),
        Err(OpenError::Damaged { cause, .. }) => {
            report.damage = Some(cause);
            None
        }
        Err(error) => return Err(error),
    };
    report.bytes = std::fs::metadata(&report.file)
        .map_err(|source| OpenError::io("read", &report.file, source))?
        .len();
    if let Some(store) = store {
        let looked = guarded(|| look(&store.connection.database, &mut report));
        report.damage = looked.err().map(|fault| fault.to_string());
        report.allocations = count(store.state.allocations.len());
        report.chips = count(store.state.chips.len());
        report.last_sequence = store.state.last_sequence;
    }
    Ok(report)
}

/// Where a running agent writes a copy of its store to be checked; removed when dropped.
#[derive(Debug)]
pub struct AgentCopy {
    original: PathBuf,
    folder: PathBuf,
    written: Place,
    _lock: PlaceLock,
}

impl AgentCopy {
    /// Makes the folder beside the store.
    ///
    /// # Errors
    /// What the disk refuses.
    pub fn beside(directory: &Path) -> Result<Self, OpenError> {
        let source = Place::new(directory.to_path_buf());
        let (folder, lock) = source.create_copy_directory()?;
        let inner = folder.join("written");
        let copy = Self {
            original: source.state_file(),
            folder,
            written: Place::new(inner.clone()),
            _lock: lock,
        };
        DirBuilder::new()
            .mode(0o700)
            .create(&inner)
            .map_err(|source| OpenError::io("create", &inner, source))?;
        Ok(copy)
    }

    /// The file that the agent is to write.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.written.state_file()
    }

    /// Checks what was written; the report names the original.
    ///
    /// # Errors
    /// As [`check`].
    pub fn check(&self) -> Result<CheckReport, OpenError> {
        let report = check(self.written.directory())?;
        let file = self.original.clone();
        Ok(CheckReport { file, ..report })
    }
}

impl Drop for AgentCopy {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.folder) {
            tracing::warn!(%error, "the agent's copy of the store could not be removed");
        }
    }
}

impl OfflineStore {
    /// What the ledger would be rebuilt from.
    #[must_use]
    pub fn state(&self) -> &StoredState {
        &self.state
    }

    /// A page of history, oldest first, damaged records left out.
    ///
    /// # Errors
    /// When the copy cannot be read any more.
    pub fn history(&self, query: HistoryQuery) -> Result<Vec<HistoryRecord>, JournalError> {
        let database = &self.connection.database;
        guarded(|| read_page(&database.begin_read()?, query))
            .map(|page| page.records)
            .map_err(|fault| fault.journal_error(Path::new("the copy of the store")))
    }

    /// Writes a consistent copy to a path that does not exist yet; returns its size in bytes.
    ///
    /// # Errors
    /// When the path exists or cannot be written.
    pub fn backup(&self, to: &Path) -> Result<u64, JournalError> {
        let transaction = guarded(|| Ok(self.connection.database.begin_read()?))
            .map_err(|fault| fault.journal_error(to))?;
        backup::write(&transaction, to, &AtomicBool::new(false))
    }
}

/// The folder of a copy. Its lock tells an agent that the copy is in use.
#[derive(Debug)]
struct Copy {
    original: PathBuf,
    place: Place,
    _lock: PlaceLock,
}

impl Copy {
    fn make(directory: &Path) -> Result<Self, OpenError> {
        let source = Place::new(directory.to_path_buf());
        let original = source.state_file();
        if let Some(found) = source.schema()?.filter(|found| *found > NEWEST) {
            let directory = directory.to_path_buf();
            return Err(OpenError::NewerSchema {
                directory,
                found,
                known: NEWEST,
            });
        }
        // Held while the file is copied only, so that an agent that starts now waits no longer.
        let _quiet = source.lock_quietly()?;
        if let Err(error) = open(&original, rustix::fs::OFlags::RDONLY) {
            return Err(if error.kind() == std::io::ErrorKind::NotFound {
                OpenError::Missing { path: original }
            } else {
                OpenError::io("open", &original, error)
            });
        }
        let (folder, lock) = source.create_copy_directory()?;
        let copy = Self {
            original,
            place: Place::new(folder),
            _lock: lock,
        };
        let to = copy.place.state_file();
        let mark = source.mark_file();
        if mark.exists() {
            copy_file(&mark, &copy.place.mark_file())
                .map_err(|source| OpenError::io("copy", &mark, source))?;
        }
        copy_file(&copy.original, &to).map_err(|source| OpenError::io("write", &to, source))?;
        Ok(copy)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(self.place.directory()) {
            tracing::warn!(%error, "the copy of the store could not be removed");
        }
    }
}

fn look(database: &Database, report: &mut CheckReport) -> Result<(), Fault> {
    let transaction = database.begin_read()?;
    report.outbox = outbox::waiting(&transaction)?;
    report.history = transaction.open_table(HISTORY)?.len()?;
    let mut query = HistoryQuery {
        limit: HISTORY_PAGE_MAX,
        ..HistoryQuery::default()
    };
    loop {
        let page = read_page(&transaction, query)?;
        report.damaged_history.extend(page.damaged);
        // A page that is not full was read up to the end.
        match page.records.last() {
            Some(last) if page.records.len() == query.limit => query.after = Some(last.sequence),
            Some(_) | None => return Ok(()),
        }
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

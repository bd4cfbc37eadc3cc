//! Opening: an existing database with every page checked, a new one where there is none, and a new one
//! in the place of a damaged one, which is set aside.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use redb::backends::{FileBackend, InMemoryBackend};
use redb::{Builder, Database, DatabaseError};

use super::contents::{apply, begin, read_names, read_schema, read_state};
use super::fault::{Fault, guarded};
use super::mark::{self, Mark};
use super::migrate::{NEWEST, STEPS, create, migrate};
use super::names::Names;
use super::place::Place;
use super::retention::Retention;
use crate::domain::history::HistoryEvent;
use crate::domain::ids::CommitSequence;
use crate::domain::time::Stamp;
use crate::ports::{Batch, StoredState};

/// The library's default is 1 GiB; the whole agent is to stay below 40 MiB.
const CACHE_BYTES: usize = 16 * 1024 * 1024;

/// Makes a database of an open file. Replaced in tests of storage faults only.
#[derive(Clone)]
pub struct Medium(Arc<MakeDatabase>);

type MakeDatabase = dyn Fn(&Builder, File) -> Result<Database, DatabaseError> + Send + Sync;

impl Medium {
    /// A medium of one's own.
    pub fn new(
        make: impl Fn(&Builder, File) -> Result<Database, DatabaseError> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(make))
    }

    fn open(&self, file: File) -> Result<Database, DatabaseError> {
        (self.0)(&builder(), file)
    }
}

impl Default for Medium {
    fn default() -> Self {
        Self::new(|builder, file| builder.create_with_backend(FileBackend::new(file)?))
    }
}

impl std::fmt::Debug for Medium {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Medium").finish()
    }
}

/// Where a database lives.
#[derive(Clone, Debug)]
pub(super) enum Ground {
    Directory { place: Place, medium: Medium },
    Memory,
}

/// A store that had to be begun anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebuilt {
    /// Where the damaged file lies; `None` when there was no file left.
    pub set_aside: Option<PathBuf>,
    /// What was wrong.
    pub damage: String,
}

/// An open database and what is known of it. Dropped after any failure and opened anew.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) database: Arc<Database>,
    pub(super) names: Names,
    pub(super) last: Option<CommitSequence>,
    /// Device and inode, and the side file; `None` in memory.
    pub(super) file: Option<(FileIdentity, Mark)>,
}

/// Device and inode.
pub(super) type FileIdentity = (u64, u64);

/// A fresh connection and how it came about.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) connection: Connection,
    pub(super) state: StoredState,
    pub(super) rebuilt: Option<Rebuilt>,
    pub(super) migrated: Option<PathBuf>,
}

/// What the opener knows beforehand.
#[derive(Debug)]
pub(super) struct Before {
    pub(super) now: Stamp,
    /// Numbers up to here are taken, whatever a new file says.
    pub(super) last: Option<CommitSequence>,
    /// The file is to be set aside for this reason even if it opens.
    pub(super) condemned: Option<String>,
}

impl Ground {
    /// Opens, begins, or begins anew.
    pub(super) fn open(&self, before: Before) -> Result<Opening, Fault> {
        match self {
            Self::Directory { place, medium } => open_directory(place, medium, before),
            Self::Memory => guarded(|| {
                let database = builder().create_with_backend(InMemoryBackend::new())?;
                let rebuilt = before.condemned.map(|damage| Rebuilt {
                    set_aside: None,
                    damage,
                });
                begin_content(&database, before.now, before.last, rebuilt.as_ref())?;
                read(database, rebuilt, None, None)
            }),
        }
    }
}

fn builder() -> Builder {
    let mut builder = Database::builder();
    builder
        .set_cache_size(CACHE_BYTES)
        .set_check_integrity_on_open(true);
    builder
}

fn open_directory(place: &Place, medium: &Medium, before: Before) -> Result<Opening, Fault> {
    let file = place.open_state().map_err(Fault::Io)?;
    let noted = mark::read(&place.mark_file()).map_err(Fault::Io)?;
    let (damage, present) = match (file, before.condemned) {
        (Some(_), Some(condemned)) => (Some(condemned), true),
        (Some(file), None) => match guarded(|| open_existing(place, medium, file)) {
            Ok(opening) => return Ok(opening),
            Err(fault @ (Fault::Damage(_) | Fault::Panicked(_))) => (Some(fault.to_string()), true),
            Err(fault) => return Err(fault),
        },
        (None, Some(condemned)) => (Some(condemned), false),
        (None, None) if place.has_schema_file() || noted.is_some() => {
            (Some("the database file is missing".to_owned()), false)
        }
        (None, None) => (None, false),
    };
    let rebuilt = damage.map(|damage| Rebuilt {
        set_aside: present.then(|| place.damaged_name(before.now)),
        damage,
    });
    let opening = begin_file(place, medium, before.now, before.last.max(noted), rebuilt);
    if opening.is_err() {
        place.discard_new();
    }
    opening
}

pub(super) fn open_existing(place: &Place, medium: &Medium, file: File) -> Result<Opening, Fault> {
    // The library would quietly make a new database of an empty file.
    if file.metadata().map_err(Fault::Io)?.len() == 0 {
        return Err(Fault::Damage("the database file is empty".to_owned()));
    }
    let database = medium.open(file)?;
    let found = read_schema(&database)?
        .ok_or_else(|| Fault::Damage("the database holds no schema record".to_owned()))?;
    let copy = || place.copy_before(NEWEST);
    let migrated = migrate(&database, &found, NEWEST, STEPS, copy)?;
    if place.schema().ok().flatten() != Some(NEWEST) {
        place.write_schema(NEWEST).map_err(Fault::Io)?;
    }
    read(database, None, migrated, Some(place))
}

/// The new file is complete before the old one moves and before it gets the name that counts: a crash
/// or a full disk in between loses nothing.
fn begin_file(
    place: &Place,
    medium: &Medium,
    now: Stamp,
    last: Option<CommitSequence>,
    rebuilt: Option<Rebuilt>,
) -> Result<Opening, Fault> {
    let file = place.create_new().map_err(Fault::Io)?;
    let database = guarded(|| {
        let database = medium.open(file)?;
        begin_content(&database, now, last, rebuilt.as_ref())?;
        Ok(database)
    })?;
    let set_aside = rebuilt
        .as_ref()
        .and_then(|rebuilt| rebuilt.set_aside.as_deref());
    place.install_new(set_aside).map_err(Fault::Io)?;
    place.write_schema(NEWEST).map_err(Fault::Io)?;
    guarded(|| read(database, rebuilt, None, Some(place)))
}

fn begin_content(
    database: &Database,
    now: Stamp,
    last: Option<CommitSequence>,
    rebuilt: Option<&Rebuilt>,
) -> Result<(), Fault> {
    let transaction = begin(database)?;
    create(&transaction, now.utc_ns)?;
    if let Some(rebuilt) = rebuilt {
        let set_aside = match &rebuilt.set_aside {
            Some(path) => path.display().to_string(),
            None => "nothing was left to set aside".to_owned(),
        };
        let damage = rebuilt.damage.clone();
        let batch = Batch {
            history: vec![(now, HistoryEvent::StoreRebuilt { set_aside, damage })],
            ..Batch::default()
        };
        apply(
            &transaction,
            &mut Names::default(),
            last,
            &batch,
            Retention::default(),
        )?;
    }
    transaction.commit()?;
    Ok(())
}

fn read(
    database: Database,
    rebuilt: Option<Rebuilt>,
    migrated: Option<PathBuf>,
    place: Option<&Place>,
) -> Result<Opening, Fault> {
    let state = read_state(&database)?;
    let names = read_names(&database)?;
    let file = match place {
        Some(place) => {
            let noted = mark::read(&place.mark_file()).map_err(Fault::Io)?;
            if noted > state.last_sequence {
                let (noted, held) = (
                    noted.map(|last| last.0),
                    state.last_sequence.map(|last| last.0),
                );
                return Err(Fault::Damage(format!(
                    "commits are missing: the last one was {noted:?}, the database ends at {held:?}"
                )));
            }
            let mark = Mark::open(&place.mark_file()).map_err(Fault::Io)?;
            Some((place.identity().map_err(Fault::Io)?, mark))
        }
        None => None,
    };
    let connection = Connection {
        names,
        last: state.last_sequence,
        file,
        database: Arc::new(database),
    };
    Ok(Opening {
        connection,
        state,
        rebuilt,
        migrated,
    })
}

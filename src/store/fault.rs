//! What can go wrong below, sorted by what has to be done about it.

use std::io;
use std::path::Path;

use super::codec::CodecError;
use crate::ports::JournalError;

/// A failure of the file or of what is in it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// The bytes are not what was written: set the file aside.
    #[error("{0}")]
    Damage(String),
    /// The system refused: report, close, open again.
    #[error("{0}")]
    Io(io::Error),
    /// The library refuses to go on with this handle: close, open again.
    #[error("{0}")]
    Unusable(String),
    /// The library panicked: close, open again with a check of every page.
    #[error("the storage library panicked: {0}")]
    Panicked(String),
    /// Somebody else has the file open.
    #[error("the file is open elsewhere")]
    OpenElsewhere,
    /// Written by a newer agent.
    #[error("schema {found} is newer than {known}, the newest this agent knows")]
    NewerSchema { found: u32, known: u32 },
    /// The batch cannot be stored, whatever the disk says.
    #[error("{0}")]
    Request(String),
}

impl Fault {
    /// What the caller of a journal is told.
    pub(super) fn journal_error(&self, directory: &Path) -> JournalError {
        let path = directory.to_path_buf();
        match self {
            Self::Damage(cause) => JournalError::Damaged {
                cause: cause.clone(),
            },
            Self::Panicked(_) => JournalError::Damaged {
                cause: self.to_string(),
            },
            Self::Io(error) if is_full(error) => JournalError::Full { path },
            Self::Io(error) if is_unwritable(error) => JournalError::Unwritable {
                path,
                cause: error.to_string(),
            },
            Self::Request(what) => JournalError::Request(what.clone()),
            Self::Io(_) | Self::Unusable(_) | Self::OpenElsewhere | Self::NewerSchema { .. } => {
                JournalError::Storage {
                    cause: self.to_string(),
                }
            }
        }
    }
}

pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

fn is_unwritable(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied
    )
}

impl From<redb::Error> for Fault {
    fn from(error: redb::Error) -> Self {
        use redb::Error as E;
        // A file that ends early or does not start like a database is damage; other i/o errors are
        // the disk's.
        let damaged_io = |error: &io::Error| {
            matches!(
                error.kind(),
                io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
            )
        };
        if let E::Io(io) = error {
            return if damaged_io(&io) {
                Self::Damage(io.to_string())
            } else {
                Self::Io(io)
            };
        }
        let text = error.to_string();
        if matches!(error, E::DatabaseAlreadyOpen | E::LockProtocolMismatch) {
            return Self::OpenElsewhere;
        }
        if matches!(error, E::ValueTooLarge(_)) {
            return Self::Request(text);
        }
        let damaged = matches!(
            error,
            E::Corrupted(_)
                | E::UpgradeRequired(_)
                | E::TableTypeMismatch { .. }
                | E::TableIsMultimap(_)
                | E::TableIsNotMultimap(_)
                | E::TypeDefinitionChanged { .. }
                | E::TableDoesNotExist(_)
        );
        if damaged {
            Self::Damage(text)
        } else {
            Self::Unusable(text)
        }
    }
}

macro_rules! through_redb {
    ($($error:ident),+) => {
        $(impl From<redb::$error> for Fault {
            fn from(error: redb::$error) -> Self {
                redb::Error::from(error).into()
            }
        })+
    };
}

through_redb!(
    DatabaseError,
    TransactionError,
    TableError,
    StorageError,
    CommitError,
    SetDurabilityError
);

impl From<CodecError> for Fault {
    fn from(error: CodecError) -> Self {
        let text = match std::error::Error::source(&error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        match error {
            CodecError::Encode(_) | CodecError::TooLarge { .. } => Self::Request(text),
            CodecError::TooShort { .. }
            | CodecError::Version { .. }
            | CodecError::Checksum { .. }
            | CodecError::Body(_)
            | CodecError::Surplus { .. }
            | CodecError::Value { .. } => Self::Damage(text),
        }
    }
}

/// Runs library code whose panic on damaged pages must not take the agent down.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let text = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "without a message".to_owned());
        Err(Fault::Panicked(text))
    })
}

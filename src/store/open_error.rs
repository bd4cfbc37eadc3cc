//! Why a store could not be opened. Each message names the path and the remedy; the system's own
//! words are the source.

use std::io;
use std::path::{Path, PathBuf};

use super::fault::{Fault, is_full};

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it. `open_waiting` waits for it instead.
    #[error("the store in {directory} is in use by {holder}: stop it, or ask the running agent")]
    InUse {
        /// State directory.
        directory: PathBuf,
        /// Who, from the lock file.
        holder: String,
    },
    /// Waiting was cancelled.
    #[error("waiting for the store in {directory} was cancelled")]
    Cancelled {
        /// State directory.
        directory: PathBuf,
    },
    /// Written by a newer agent; nothing was touched.
    #[error(
        "the store in {directory} has schema {found}, this agent knows up to {known}: run the newer \
         agent, or move the directory away to begin a new store"
    )]
    NewerSchema {
        /// State directory.
        directory: PathBuf,
        /// Schema found.
        found: u32,
        /// Newest schema known.
        known: u32,
    },
    /// There is no store to look at.
    #[error("there is no store at {path}: no agent has run with this state directory")]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The store cannot be read. The agent itself would set it aside and begin anew.
    #[error("the store {path} is damaged ({cause}): start the agent, it begins a new one")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        cause: String,
    },
    /// The directory belongs to somebody who could replace the files in it.
    #[error(
        "{directory} belongs to uid {owner}, the agent runs as uid {own}: chown it, or run the agent \
         as its owner"
    )]
    ForeignOwner {
        /// State directory.
        directory: PathBuf,
        /// Its owner.
        owner: u32,
        /// Ours.
        own: u32,
    },
    /// The folder is used for something else.
    #[error(
        "{directory} is open to others and holds {entry:?}, which is not the agent's: name a folder \
         of its own in state_dir"
    )]
    SharedFolder {
        /// The folder.
        directory: PathBuf,
        /// Something that lies in it.
        entry: String,
    },
    /// No space left.
    #[error("no space left for {path}: free some space on its disk")]
    Full {
        /// What was written.
        path: PathBuf,
        /// The system's words.
        #[source]
        source: io::Error,
    },
    /// The system refused an operation.
    #[error(
        "cannot {doing} {path}: the state directory must be a directory on a writable, healthy disk \
         and belong to the agent's user"
    )]
    Refused {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's words.
        #[source]
        source: io::Error,
    },
    /// The storage library refused for a reason that is neither damage nor the system's.
    #[error("the storage library cannot open {path} ({cause}): try again, or set the file aside")]
    Library {
        /// The file.
        path: PathBuf,
        /// Its words.
        cause: String,
    },
}

impl OpenError {
    /// Whether a later try may succeed without anybody changing anything.
    #[must_use]
    pub fn retryable(&self) -> bool {
        matches!(
            self,
            Self::InUse { .. } | Self::Full { .. } | Self::Library { .. }
        )
    }

    pub(super) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        if is_full(&source) {
            Self::Full { path, source }
        } else {
            Self::Refused {
                doing,
                path,
                source,
            }
        }
    }

    pub(super) fn fault(fault: Fault, directory: &Path, holder: impl FnOnce() -> String) -> Self {
        let path = directory.join(super::place::STATE_FILE);
        let directory = directory.to_path_buf();
        match fault {
            Fault::Io(source) => Self::io("open", &path, source),
            Fault::OpenElsewhere => Self::InUse {
                directory,
                holder: holder(),
            },
            Fault::NewerSchema { found, known } => Self::NewerSchema {
                directory,
                found,
                known,
            },
            Fault::Damage(cause)
            | Fault::Panicked(cause)
            | Fault::Unusable(cause)
            | Fault::Request(cause) => Self::Library { path, cause },
        }
    }
}

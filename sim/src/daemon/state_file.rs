//! A small file that is replaced whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

use crate::hardware::Saved;

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateFileError {
    /// It cannot be read or written.
    #[error("cannot read or write {path:?}")]
    Access {
        /// Path.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It does not hold a state.
    #[error("{path:?} holds no state of this program; remove it")]
    Content {
        /// Path.
        path: PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

#[derive(Debug)]
pub(super) struct StateFile {
    path: PathBuf,
}

impl StateFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The state, `None` when there is no file yet.
    pub(super) fn read(&self) -> Result<Option<Saved>, StateFileError> {
        match fs::read(&self.path) {
            Ok(bytes) => match serde_json::from_slice(&bytes) {
                Ok(saved) => Ok(Some(saved)),
                Err(source) => Err(StateFileError::Content {
                    path: self.path.clone(),
                    source,
                }),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StateFileError::Access {
                path: self.path.clone(),
                source,
            }),
        }
    }

    pub(super) fn write(&self, saved: &Saved) -> Result<(), StateFileError> {
        match serde_json::to_string(saved) {
            Ok(text) => self.write_text(&text),
            Err(source) => Err(StateFileError::Content {
                path: self.path.clone(),
                source,
            }),
        }
    }

    pub(super) fn write_text(&self, text: &str) -> Result<(), StateFileError> {
        self.replace(text).map_err(|source| StateFileError::Access {
            path: self.path.clone(),
            source,
        })
    }

    fn replace(&self, text: &str) -> io::Result<()> {
        if fs::read_to_string(&self.path).is_ok_and(|known| known == text) {
            return Ok(());
        }
        let mut fresh = self.path.clone().into_os_string();
        fresh.push(".new");
        let mut file = File::create(&fresh)?;
        file.write_all(text.as_bytes())?;
        drop(file);
        fs::rename(&fresh, &self.path)
    }
}

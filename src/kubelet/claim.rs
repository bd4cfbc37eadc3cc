//! One agent for one folder of plugin sockets. Two that offer the same chips would each keep a ledger of
//! its own, and one chip could be given twice; the store's lock does not help when their state folders
//! differ.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock};

use super::socket_dir::FileIdentity;

/// Why the folder is not ours.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Another process holds it.
    #[error(
        "another agent serves kubelet from {folder}; stop one of them: this one waits and takes over"
    )]
    Taken {
        /// The folder.
        folder: PathBuf,
    },
    /// The system refuses.
    #[error("{folder} cannot be locked")]
    System {
        /// The folder.
        folder: PathBuf,
        /// The system's words.
        #[source]
        source: io::Error,
    },
}

/// The lock, shared by the loops of all resources. It lies on the folder itself, where kubelet, which
/// empties the folder when it starts, cannot remove it; the kernel lets go of it when the process ends.
#[derive(Clone, Debug, Default)]
pub(super) struct FolderClaim(Arc<Mutex<Option<Held>>>);

#[derive(Debug)]
struct Held {
    folder: (u64, u64),
    _open: File,
}

impl FolderClaim {
    /// Takes the folder, or sees that it is taken already by this process. A folder that was replaced
    /// is taken anew.
    pub(super) fn take(&self, folder: &Path) -> Result<(), ClaimError> {
        let refused = |source| ClaimError::System {
            folder: folder.to_owned(),
            source,
        };
        let place = FileIdentity::read(folder).map_err(refused)?.place();
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.as_ref().is_some_and(|held| held.folder == place) {
            return Ok(());
        }
        let open = File::open(folder).map_err(refused)?;
        match flock(&open, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(ClaimError::Taken {
                    folder: folder.to_owned(),
                });
            }
            Err(error) => return Err(refused(error.into())),
        }
        *held = Some(Held {
            folder: place,
            _open: open,
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_held_until_its_holder_ends_and_a_new_folder_is_taken_anew() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("dp");
        std::fs::create_dir(&folder).unwrap();
        let first = FolderClaim::default();
        let second = FolderClaim::default();
        first.take(&folder).unwrap();
        first.clone().take(&folder).unwrap();
        let refused = second.take(&folder).unwrap_err();
        assert!(matches!(refused, ClaimError::Taken { .. }), "{refused}");

        std::fs::rename(&folder, place.path().join("old")).unwrap();
        std::fs::create_dir(&folder).unwrap();
        first.take(&folder).unwrap();
        drop(first);
        second.take(&folder).unwrap();
    }
}

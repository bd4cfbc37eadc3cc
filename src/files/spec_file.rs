//! The CDI spec on the disk.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use super::replace::{is_current, replace};
use crate::injection::CdiSpec;

/// Runtimes read it under any user.
const MODE: u32 = 0o644;

/// The folder lies in memory, where a write takes no time; more means that something hangs.
const DEADLINE: Duration = Duration::from_secs(2);

/// Why the spec is not on the disk.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be put into text.
    #[error("the CDI spec cannot be written as JSON")]
    Text(#[from] serde_json::Error),
    /// The system refuses.
    #[error("{path} cannot be written; mount the host's folder there, writable")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's words.
        #[source]
        source: io::Error,
    },
    /// A write of this or an earlier spec gives no answer.
    #[error("writing {path} gives no answer within {DEADLINE:?}")]
    NoAnswer {
        /// The file.
        path: PathBuf,
    },
}

/// The file, with at most one write under way.
#[derive(Debug)]
pub struct SpecFile {
    path: PathBuf,
    late: Option<JoinHandle<io::Result<bool>>>,
}

impl SpecFile {
    /// The file of that name, which need not exist. Nobody else may write it.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path, late: None }
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the file say this. True when it was written, false when it said so already.
    ///
    /// # Errors
    /// When it could not be written; a file that was there is as it was. After `NoAnswer` a late write
    /// may still come to its end, and every call until then gives the same error.
    pub async fn put(&mut self, spec: &CdiSpec) -> Result<bool, FileError> {
        let content = serde_json::to_vec(spec)?;
        let path = self.path.clone();
        if self.late.as_ref().is_some_and(|late| !late.is_finished()) {
            return Err(FileError::NoAnswer { path });
        }
        let target = path.clone();
        let mut write = spawn_blocking(move || {
            if is_current(&target, &content, MODE) {
                return Ok(false);
            }
            replace(&target, &content, MODE).map(|()| true)
        });
        let Ok(ended) = timeout(DEADLINE, &mut write).await else {
            self.late = Some(write);
            return Err(FileError::NoAnswer { path });
        };
        self.late = None;
        ended
            .map_err(io::Error::other)
            .and_then(|written| written)
            .map_err(|source| FileError::Write { path, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::injection::{CdiContents, DeliveryChoice, HostPaths, cdi_spec, node};

    fn empty_spec() -> CdiSpec {
        let node = node(DeliveryChoice::Cdi);
        cdi_spec(&node, &CdiContents::default(), &HostPaths::default()).expect("a spec")
    }

    #[tokio::test]
    async fn it_is_written_once_and_again_when_somebody_removed_or_changed_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut file = SpecFile::new(folder.path().join("x.json"));
        let spec = empty_spec();
        assert!(file.put(&spec).await.expect("written"));
        assert!(!file.put(&spec).await.expect("nothing to do"));
        std::fs::write(file.path(), "changed").expect("changed");
        assert!(file.put(&spec).await.expect("written"));
        std::fs::remove_file(file.path()).expect("removed");
        assert!(file.put(&spec).await.expect("written"));
    }

    #[tokio::test]
    async fn a_folder_that_cannot_be_made_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let blocked = folder.path().join("file");
        std::fs::write(&blocked, "").expect("a file");
        let mut file = SpecFile::new(blocked.join("x.json"));
        let told = file.put(&empty_spec()).await.expect_err("no folder");
        assert!(told.to_string().contains("file/x.json"), "{told}");
    }
}

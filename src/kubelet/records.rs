//! Kubelet's records of who holds what: pod-resources and the checkpoint file.

use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::fs::File;
use tokio::io::AsyncReadExt;

use super::checkpoint::{CHECKPOINT_MAX_BYTES, CheckpointError, parse_checkpoint};
use super::config::KubeletConfig;
use super::pod_resources::PodResources;
use crate::domain::causes::with_causes;
use crate::domain::kubelet_view::{CheckpointVersion, CheckpointView, PodCensus, RecordScope};
use crate::ports::{CensusError, Clock, KubeletRecords};

/// A local file of some KiB; only a sick disk takes longer.
const READ_DEADLINE: Duration = Duration::from_secs(1);

/// Reads both records.
pub struct RecordsReader {
    pod_resources: PodResources,
    checkpoint: PathBuf,
    clock: Arc<dyn Clock>,
}

impl RecordsReader {
    /// Reads nothing yet.
    #[must_use]
    pub fn new(config: &KubeletConfig, clock: Arc<dyn Clock>) -> Self {
        Self {
            pod_resources: PodResources::new(
                config.pod_resources_socket.clone(),
                config.times.pod_resources,
            ),
            checkpoint: config.checkpoint.clone(),
            clock,
        }
    }
}

impl KubeletRecords for RecordsReader {
    async fn census(&self, scope: &RecordScope) -> Result<PodCensus, CensusError> {
        let begun = self.clock.now().boot_time;
        self.pod_resources.list(begun, scope).await
    }

    fn checkpoint_version(&self) -> Option<CheckpointVersion> {
        std::fs::metadata(&self.checkpoint)
            .ok()
            .map(|found| version_of(&found))
    }

    async fn checkpoint(&self, scope: &RecordScope) -> Result<Option<CheckpointView>, CensusError> {
        let read = self.clock.now().boot_time;
        let found = tokio::time::timeout(READ_DEADLINE, read_file(&self.checkpoint))
            .await
            .map_err(|_| {
                unread(
                    &self.checkpoint,
                    &format!("not read within {READ_DEADLINE:?}"),
                )
            })?;
        let (version, bytes) = match found {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unread(&self.checkpoint, &error.to_string())),
        };
        let entries = parse_checkpoint(&bytes, scope)
            .map_err(|error: CheckpointError| unread(&self.checkpoint, &with_causes(&error)))?;
        Ok(Some(CheckpointView {
            version,
            read,
            entries,
        }))
    }
}

impl fmt::Debug for RecordsReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordsReader")
            .field("pod_resources", &self.pod_resources)
            .field("checkpoint", &self.checkpoint)
            .finish_non_exhaustive()
    }
}

fn unread(path: &Path, cause: &str) -> CensusError {
    CensusError::Checkpoint(format!("{}: {cause}", path.display()))
}

/// Version and content come from one opened file, so a rename in between cannot mix two of them.
async fn read_file(path: &Path) -> io::Result<(CheckpointVersion, Vec<u8>)> {
    let file = File::open(path).await?;
    let version = version_of(&file.metadata().await?);
    let limit = u64::try_from(CHECKPOINT_MAX_BYTES).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .await?;
    Ok((version, bytes))
}

fn version_of(found: &std::fs::Metadata) -> CheckpointVersion {
    let seconds_ns = found.mtime().saturating_mul(1_000_000_000);
    CheckpointVersion {
        inode: found.ino(),
        modified_ns: seconds_ns.saturating_add(found.mtime_nsec()),
        size_bytes: found.size(),
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::super::activity::tests::TokioClock;
    use super::*;

    fn reader(dir: &Path) -> RecordsReader {
        let config = KubeletConfig::new(dir, dir.join("pods.sock"), Uuid::nil());
        RecordsReader::new(&config, TokioClock::start())
    }

    #[tokio::test]
    async fn no_file_is_none_and_a_broken_one_is_an_error() {
        let temp = tempfile::tempdir().unwrap();
        let reader = reader(temp.path());
        assert_eq!(
            reader.checkpoint(&RecordScope::domain("huawei.com")).await,
            Ok(None)
        );
        std::fs::write(&reader.checkpoint, r#"{"Data":"#).unwrap();
        let broken = reader.checkpoint(&RecordScope::domain("huawei.com")).await;
        assert!(
            matches!(broken, Err(CensusError::Checkpoint(_))),
            "{broken:?}"
        );
    }

    #[tokio::test]
    async fn a_replaced_file_has_another_version() {
        let temp = tempfile::tempdir().unwrap();
        let reader = reader(temp.path());
        let text = r#"{"Data":{"PodDeviceEntries":[],"RegisteredDevices":{}},"Checksum":1}"#;
        std::fs::write(&reader.checkpoint, text).unwrap();
        let first = reader
            .checkpoint(&RecordScope::domain("huawei.com"))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(first.entries, []);
        let next = temp.path().join("next");
        std::fs::write(&next, text).unwrap();
        std::fs::rename(&next, &reader.checkpoint).unwrap();
        let second = reader
            .checkpoint(&RecordScope::domain("huawei.com"))
            .await
            .unwrap()
            .unwrap();
        assert_ne!(first.version, second.version);
    }
}

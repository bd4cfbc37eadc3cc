//! A disk that fails, or loses its power, at a chosen operation.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ascend_agent::store::Medium;
use redb::StorageBackend;
use redb::backends::FileBackend;

/// What happens at the chosen operation and from then on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Failure {
    /// Every writing operation ends with this error number, until healed.
    Errno(i32),
    /// The power goes: of the writes since the last sync some reach the disk, chosen by the seed, or
    /// none without one; what comes later does not.
    PowerCut { seed: Option<u64> },
}

/// The fate of one disk.
#[derive(Debug)]
pub(crate) struct Fate {
    failure: Failure,
    at: u64,
    operations: AtomicU64,
    healed: AtomicBool,
    unsynced: Mutex<Vec<(u64, Vec<u8>)>>,
}

impl Fate {
    pub(crate) fn new(failure: Failure, at: u64) -> Arc<Self> {
        Arc::new(Self {
            failure,
            at,
            operations: AtomicU64::new(0),
            healed: AtomicBool::new(false),
            unsynced: Mutex::new(Vec::new()),
        })
    }

    pub(crate) fn medium(self: &Arc<Self>) -> Medium {
        let fate = Arc::clone(self);
        Medium::new(move |builder, file| {
            let disk = FileBackend::new(file)?;
            builder.create_with_backend(Disk {
                disk,
                fate: Arc::clone(&fate),
            })
        })
    }

    pub(crate) fn heal(&self) {
        self.healed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn struck(&self) -> bool {
        self.operations.load(Ordering::SeqCst) > self.at
    }

    fn before_writing(&self, disk: &FileBackend) -> io::Result<()> {
        let turn = self.operations.fetch_add(1, Ordering::SeqCst);
        if turn < self.at || self.healed.load(Ordering::SeqCst) {
            return Ok(());
        }
        match self.failure {
            Failure::Errno(number) => Err(io::Error::from_raw_os_error(number)),
            Failure::PowerCut { seed } => {
                if turn == self.at {
                    self.lose_unsynced(disk, seed)?;
                }
                Err(io::Error::other("no power"))
            }
        }
    }

    fn lose_unsynced(&self, disk: &FileBackend, mut seed: Option<u64>) -> io::Result<()> {
        let unsynced = std::mem::take(&mut *self.unsynced.lock().unwrap());
        for (offset, before) in unsynced.iter().rev() {
            seed = seed.map(|seed| seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
            if seed.is_none_or(|seed| seed >> 63 == 0) {
                disk.write(*offset, before)?;
            }
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Disk {
    disk: FileBackend,
    fate: Arc<Fate>,
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        self.disk.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.disk.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.fate.before_writing(&self.disk)?;
        self.disk.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.fate.before_writing(&self.disk)?;
        self.fate.unsynced.lock().unwrap().clear();
        // The file outlives the process of this test, so the real sync would only cost time.
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.fate.before_writing(&self.disk)?;
        let mut before = vec![0; data.len()];
        self.disk.read(offset, &mut before)?;
        self.fate.unsynced.lock().unwrap().push((offset, before));
        self.disk.write(offset, data)
    }
}

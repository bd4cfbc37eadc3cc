//! The state directory: its modes, its lock, the side file with the schema number, and the files that
//! are set aside. Nothing here knows what is in a database.

use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::open_error::OpenError;
use crate::domain::time::Stamp;

pub(super) const STATE_FILE: &str = "state.redb";
const NEW_FILE: &str = "state.redb.new";
const DAMAGED_PREFIX: &str = "state.redb.damaged-";
const LOCK_FILE: &str = "agent.lock";
const SCHEMA_FILE: &str = "schema";
const SCHEMA_NEW_FILE: &str = "schema.new";
const MARK_FILE: &str = "last-commit";
const COPY_PREFIX: &str = "offline-copy-";
/// Enough to look at what happened, few enough not to fill the disk.
const DAMAGED_KEPT: usize = 5;
const OWNER_ONLY: u32 = 0o077;

/// The state directory.
#[derive(Clone, Debug)]
pub(super) struct Place {
    directory: PathBuf,
}

/// The right to use the directory, held until dropped or until the process ends, however it ends.
#[derive(Debug)]
pub(super) struct PlaceLock(File);

impl Drop for PlaceLock {
    /// Closing alone is not enough: a process that was forked meanwhile holds the same open file until
    /// it runs its own program, and the lock with it.
    fn drop(&mut self) {
        // A file that cannot be unlocked is closed now all the same.
        let _ = self.0.unlock();
    }
}

impl Place {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn state_file(&self) -> PathBuf {
        self.directory.join(STATE_FILE)
    }

    /// Creates the directory or closes it to others.
    pub(super) fn prepare(&self) -> Result<(), OpenError> {
        let refused = |doing| move |source| OpenError::io(doing, &self.directory, source);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)
            .map_err(refused("create"))?;
        let metadata = fs::metadata(&self.directory).map_err(refused("read"))?;
        let own = rustix::process::geteuid().as_raw();
        if metadata.uid() != own {
            return Err(OpenError::ForeignOwner {
                directory: self.directory.clone(),
                owner: metadata.uid(),
                own,
            });
        }
        if metadata.mode() & OWNER_ONLY != 0 {
            self.refuse_shared_folder()?;
            tracing::warn!(directory = %self.directory.display(), "closing the folder to others (0700)");
            fs::set_permissions(&self.directory, Permissions::from_mode(0o700))
                .map_err(refused("restrict"))?;
        }
        Ok(())
    }

    /// Takes the directory for this process, or says who has it.
    /// A folder open to others that holds things and no store of ours is somebody else's, and closing it
    /// could lock a host out.
    fn refuse_shared_folder(&self) -> Result<(), OpenError> {
        let refused = |source| OpenError::io("read", &self.directory, source);
        let mut foreign = None;
        for entry in fs::read_dir(&self.directory).map_err(refused)? {
            let name = entry.map_err(refused)?.file_name();
            if name == STATE_FILE || name == LOCK_FILE {
                return Ok(());
            }
            foreign = Some(name);
        }
        match foreign {
            None => Ok(()),
            Some(name) => Err(OpenError::SharedFolder {
                directory: self.directory.clone(),
                entry: name.to_string_lossy().into_owned(),
            }),
        }
    }

    pub(super) fn lock(&self) -> Result<PlaceLock, OpenError> {
        let path = self.directory.join(LOCK_FILE);
        let refused = |doing| {
            let path = path.clone();
            move |source| OpenError::io(doing, &path, source)
        };
        let mut file = open(&path, OFlags::RDWR | OFlags::CREATE).map_err(refused("open"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(OpenError::InUse {
                    directory: self.directory.clone(),
                    holder: self.holder(),
                });
            }
            Err(TryLockError::Error(source)) => return Err(refused("lock")(source)),
        }
        // The text is for people; on a full disk the lock alone must do.
        let written = file
            .set_len(0)
            .and_then(|()| writeln!(file, "pid {}", std::process::id()));
        if let Err(error) = written {
            tracing::debug!(path = %path.display(), %error, "lock file has no text");
        }
        Ok(PlaceLock(file))
    }

    /// Takes the lock without writing anything; `None` when there is no lock file and so no agent.
    pub(super) fn lock_quietly(&self) -> Result<Option<PlaceLock>, OpenError> {
        let path = self.directory.join(LOCK_FILE);
        let file = match open(&path, OFlags::RDONLY) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(OpenError::io("open", &path, source)),
        };
        match file.try_lock() {
            Ok(()) => Ok(Some(PlaceLock(file))),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse {
                directory: self.directory.clone(),
                holder: self.holder(),
            }),
            Err(TryLockError::Error(source)) => Err(OpenError::io("lock", &path, source)),
        }
    }

    /// Who holds the lock, for people.
    pub(super) fn holder(&self) -> String {
        let text = read_short(&self.directory.join(LOCK_FILE)).unwrap_or_default();
        let text = text.trim();
        if text.is_empty() {
            "another process".to_owned()
        } else {
            text.to_owned()
        }
    }

    /// The schema number of the side file; `None` when there is none. An unreadable number is none
    /// either: the database itself tells then.
    pub(super) fn schema(&self) -> Result<Option<u32>, OpenError> {
        let path = self.directory.join(SCHEMA_FILE);
        match read_short(&path) {
            Ok(text) => Ok(text.trim().parse().ok()),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::InvalidData
                ) =>
            {
                Ok(None)
            }
            Err(source) => Err(OpenError::io("read", &path, source)),
        }
    }

    /// Path of the note of the last acknowledged commit.
    pub(super) fn mark_file(&self) -> PathBuf {
        self.directory.join(MARK_FILE)
    }

    /// True when a store was once created here.
    pub(super) fn has_schema_file(&self) -> bool {
        self.directory.join(SCHEMA_FILE).exists()
    }

    /// Replaces the side file, durably.
    pub(super) fn write_schema(&self, version: u32) -> io::Result<()> {
        let new = self.directory.join(SCHEMA_NEW_FILE);
        let mut file = open(&new, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC)?;
        writeln!(file, "{version}")?;
        file.sync_all()?;
        fs::rename(&new, self.directory.join(SCHEMA_FILE))?;
        self.sync()
    }

    /// Opens the database file if it is there, readable by its owner alone from then on.
    pub(super) fn open_state(&self) -> io::Result<Option<File>> {
        match open(&self.state_file(), OFlags::RDWR) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// An empty file that becomes the database once `install_new` is called.
    pub(super) fn create_new(&self) -> io::Result<File> {
        let path = self.directory.join(NEW_FILE);
        remove_if_there(&path)?;
        open(&path, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
    }

    /// Gives up a new file.
    pub(super) fn discard_new(&self) {
        if let Err(error) = remove_if_there(&self.directory.join(NEW_FILE)) {
            tracing::warn!(%error, "an unfinished store could not be removed");
        }
    }

    /// Moves the old file out of the way, if there is one to keep, and the new one in its place.
    pub(super) fn install_new(&self, set_aside: Option<&Path>) -> io::Result<()> {
        if let Some(aside) = set_aside {
            fs::rename(self.state_file(), aside)?;
            self.remove_oldest_damaged(aside)?;
        }
        fs::rename(self.directory.join(NEW_FILE), self.state_file())?;
        self.sync()
    }

    /// A free name for a damaged file.
    pub(super) fn damaged_name(&self, now: Stamp) -> PathBuf {
        let time = chrono::DateTime::from_timestamp_nanos(now.utc_ns).format("%Y%m%dT%H%M%SZ");
        let first = self.directory.join(format!("{DAMAGED_PREFIX}{time}"));
        (2_u32..)
            .map(|turn| {
                self.directory
                    .join(format!("{DAMAGED_PREFIX}{time}-{turn}"))
            })
            .take(1000)
            .fold(first, |name, next| if name.exists() { next } else { name })
    }

    /// Copies the database before a migration, durably.
    pub(super) fn copy_before(&self, target: u32) -> io::Result<PathBuf> {
        let copy = self
            .directory
            .join(format!("{STATE_FILE}.before-schema-{target}"));
        let new = self
            .directory
            .join(format!("{STATE_FILE}.before-schema-{target}.new"));
        copy_file(&self.state_file(), &new)?;
        fs::rename(&new, &copy)?;
        self.sync()?;
        Ok(copy)
    }

    /// Device and inode of the database file, to notice that somebody removed or replaced it.
    pub(super) fn identity(&self) -> io::Result<(u64, u64)> {
        let metadata = fs::symlink_metadata(self.state_file())?;
        Ok((metadata.dev(), metadata.ino()))
    }

    /// A new directory beside the files, for one offline reader.
    pub(super) fn create_copy_directory(&self) -> Result<(PathBuf, PlaceLock), OpenError> {
        let process = std::process::id();
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        let mut turn = 0_u32;
        loop {
            let directory = self
                .directory
                .join(format!("{COPY_PREFIX}{process}-{turn}"));
            match builder.create(&directory) {
                Ok(()) => {
                    let lock = Self::new(directory.clone()).lock()?;
                    return Ok((directory, lock));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && turn < 1000 => {
                    turn += 1;
                }
                Err(source) => return Err(OpenError::io("create", &directory, source)),
            }
        }
    }

    /// Removes the copies of offline readers that were killed; a living one holds the lock of its own.
    pub(super) fn sweep_copies(&self) {
        let Ok(entries) = fs::read_dir(&self.directory) else {
            return;
        };
        for entry in entries.flatten() {
            if !entry.file_name().to_string_lossy().starts_with(COPY_PREFIX) {
                continue;
            }
            let copy = Self::new(entry.path());
            if copy.lock_quietly().is_ok_and(|lock| lock.is_some())
                && let Err(error) = fs::remove_dir_all(copy.directory())
            {
                tracing::debug!(%error, "an old copy could not be removed");
            }
        }
    }

    fn remove_oldest_damaged(&self, just_set_aside: &Path) -> io::Result<()> {
        let mut damaged: Vec<PathBuf> = fs::read_dir(&self.directory)?
            .flatten()
            .filter(|entry| {
                entry
                    .file_name()
                    .to_string_lossy()
                    .starts_with(DAMAGED_PREFIX)
            })
            .map(|entry| entry.path())
            .filter(|path| path != just_set_aside)
            .collect();
        damaged.sort();
        let surplus = (damaged.len() + 1).saturating_sub(DAMAGED_KEPT);
        for path in damaged.iter().take(surplus) {
            remove_if_there(path)?;
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.directory)?.sync_all()
    }
}

/// Copies a file to a path that must not exist, or replaces a leftover of ours, durably.
pub(super) fn copy_file(from: &Path, to: &Path) -> io::Result<u64> {
    let mut source = open(from, OFlags::RDONLY)?;
    let mut target = open(to, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC)?;
    let bytes = io::copy(&mut source, &mut target)?;
    target.sync_all()?;
    Ok(bytes)
}

/// Opens without following a link, and closes the file to others when it is ours to write.
pub(super) fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags_all = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = File::from(rustix::fs::open(path, flags_all, Mode::RUSR | Mode::WUSR)?);
    let writes = flags.intersects(OFlags::RDWR | OFlags::WRONLY);
    if writes && file.metadata()?.mode() & OWNER_ONLY != 0 {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The side files are a few bytes; more is not ours and not read.
fn read_short(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open(path, OFlags::RDONLY)?
        .take(64)
        .read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::{BootId, BootTime};

    fn place() -> (tempfile::TempDir, Place) {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::new(directory.path().join("state"));
        place.prepare().unwrap();
        (directory, place)
    }

    fn at(seconds: i64) -> Stamp {
        Stamp {
            boot_id: BootId(uuid::Uuid::nil()),
            boot_time: BootTime(0),
            utc_ns: seconds * 1_000_000_000,
        }
    }

    #[test]
    fn keeps_five_damaged_files_and_always_the_last_one() {
        let (_keep, place) = place();
        for round in 0..8 {
            fs::write(place.state_file(), format!("{round}")).unwrap();
            drop(place.create_new().unwrap());
            // The clock jumps back before the last one.
            let aside = place.damaged_name(at(if round == 7 { 0 } else { 1_000_000 + round }));
            place.install_new(Some(&aside)).unwrap();
        }
        let names: Vec<String> = fs::read_dir(place.directory())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with(DAMAGED_PREFIX))
            .collect();
        assert_eq!(names.len(), DAMAGED_KEPT, "{names:?}");
        assert!(
            names.contains(&format!("{DAMAGED_PREFIX}19700101T000000Z")),
            "{names:?}"
        );
    }

    #[test]
    fn two_files_damaged_in_one_second_get_two_names() {
        let (_keep, place) = place();
        let first = place.damaged_name(at(5));
        fs::write(&first, "x").unwrap();
        let second = place.damaged_name(at(5));
        assert_ne!(first, second);
        fs::write(&second, "x").unwrap();
        assert_ne!(place.damaged_name(at(5)), second);
    }

    #[test]
    fn a_schema_file_reads_back_and_a_mangled_one_is_none() {
        let (_keep, place) = place();
        assert_eq!(place.schema().unwrap(), None);
        place.write_schema(7).unwrap();
        assert_eq!(place.schema().unwrap(), Some(7));
        for bytes in [&b""[..], b"seven", b"\xff\xfe", b"-1"] {
            fs::write(place.directory().join(SCHEMA_FILE), bytes).unwrap();
            assert_eq!(place.schema().unwrap(), None, "{bytes:?}");
        }
    }

    #[test]
    fn the_lock_names_its_holder_and_ends_with_it() {
        let (_keep, place) = place();
        let lock = place.lock().unwrap();
        let refused = place.lock().unwrap_err().to_string();
        assert!(
            refused.contains(&format!("pid {}", std::process::id())),
            "{refused}"
        );
        drop(lock);
        place.lock().unwrap();
    }
}

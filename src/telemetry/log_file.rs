//! A log file as the vendor's programs keep it: rotated by size, old ones removed by number and age,
//! readable by the group only, old ones read-only.
//!
//! Runs on a thread of its own. What cannot be written is counted and tried again after a pause; the
//! first failure and the recovery are told, once each.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::OFlags;

use super::old_files::OldFiles;
use super::queue::Sink;
use crate::domain::time::{BootTime, Stamp};
use crate::ports::Clock;

/// A file that would grow beyond this is set aside.
const FILE_MAX_BYTES: u64 = 20 * 1024 * 1024;

const FILE_MODE: u32 = 0o640;
const BACKUP_MODE: u32 = 0o400;
const FOLDER_MODE: u32 = 0o750;

/// Pause after a failure; each failed try costs the lines of this time.
const RETRY: Duration = Duration::from_secs(10);

/// How often the name is compared with the open file.
const LOOK: Duration = Duration::from_secs(1);

/// How often old files are looked for when nothing is set aside.
const PRUNE: Duration = Duration::from_secs(3600);

/// Which file, and how much of the past is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFileSettings {
    /// The file; old ones lie beside it as `NAME-TIME.EXTENSION`.
    pub path: PathBuf,
    /// Old files beyond this age go.
    pub max_age: Duration,
    /// Old files beyond this number go, oldest first.
    pub max_backups: usize,
}

pub(super) struct LogFile {
    settings: LogFileSettings,
    clock: Arc<dyn Clock>,
    file_max_bytes: u64,
    open: Option<Open>,
    lost: u64,
    /// The last failure, and when to try again.
    trouble: Option<(String, BootTime)>,
    pruned: Option<BootTime>,
}

struct Open {
    file: File,
    bytes: u64,
    identity: (u64, u64),
    looked: BootTime,
}

impl Sink for LogFile {
    fn line(&mut self, text: &[u8]) {
        let now = self.clock.now();
        let waiting = self
            .trouble
            .as_ref()
            .is_some_and(|(_, again)| now.boot_time < *again);
        if waiting {
            self.lost += 1;
            return;
        }
        match self.write(text, &now) {
            Ok(()) => {
                if self.trouble.take().is_some() {
                    let file = self.settings.path.display();
                    tracing::info!(%file, "the log file is written again");
                }
            }
            Err(error) => {
                self.open = None;
                self.lost += 1;
                let known = self.trouble.take();
                let cause = error.to_string();
                if known.is_none_or(|(before, _)| before != cause) {
                    let file = self.settings.path.display();
                    tracing::warn!(
                        %file,
                        cause,
                        "the log file cannot be written; logs go to standard error only"
                    );
                }
                self.trouble = Some((cause, now.boot_time.plus(RETRY)));
            }
        }
    }

    fn lost(&mut self, count: u64) {
        self.lost += count;
    }
}

impl LogFile {
    pub(super) fn new(settings: LogFileSettings, clock: Arc<dyn Clock>) -> Self {
        Self {
            settings,
            clock,
            file_max_bytes: FILE_MAX_BYTES,
            open: None,
            lost: 0,
            trouble: None,
            pruned: None,
        }
    }

    fn write(&mut self, text: &[u8], now: &Stamp) -> io::Result<()> {
        let mut open = self.current(now)?;
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        if open.bytes > 0 && open.bytes.saturating_add(bytes) > self.file_max_bytes {
            drop(open);
            self.set_aside(now)?;
            open = self.open_file(now)?;
            self.prune(now);
        }
        if self
            .pruned
            .is_none_or(|last| now.boot_time.since(last) >= PRUNE)
        {
            self.prune(now);
        }
        if self.lost > 0 {
            // A failed write may have left a part of a line.
            let begin = if self.trouble.is_some() { "\n" } else { "" };
            let told = format!("{begin}{} log lines were lost\n", self.lost);
            open.append(told.as_bytes())?;
            self.lost = 0;
        }
        open.append(text)?;
        self.open = Some(open);
        Ok(())
    }

    /// The open file, as long as it is the one that has the name.
    fn current(&mut self, now: &Stamp) -> io::Result<Open> {
        if let Some(mut open) = self.open.take() {
            if now.boot_time.since(open.looked) < LOOK {
                return Ok(open);
            }
            let named = fs::symlink_metadata(&self.settings.path);
            if named.is_ok_and(|named| (named.dev(), named.ino()) == open.identity) {
                open.looked = now.boot_time;
                return Ok(open);
            }
        }
        self.open_file(now)
    }

    /// Follows no link and takes no file that somebody else could have put there.
    fn open_file(&self, now: &Stamp) -> io::Result<Open> {
        let path = &self.settings.path;
        if let Some(folder) = path.parent()
            && !folder.is_dir()
        {
            // The folder above must be there: where it is not, nobody asked for logs here.
            DirBuilder::new().mode(FOLDER_MODE).create(folder)?;
        }
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(FILE_MODE)
            .custom_flags(flags)
            .open(path)?;
        let found = file.metadata()?;
        let own = rustix::process::geteuid().as_raw();
        if !found.is_file() || found.nlink() != 1 {
            return Err(io::Error::other("it is not a plain file with one name"));
        }
        if found.uid() != own && own != 0 {
            return Err(io::Error::other(format!(
                "it belongs to uid {}, not to {own}; remove it or chown it",
                found.uid()
            )));
        }
        if found.mode() & 0o7777 != FILE_MODE {
            file.set_permissions(Permissions::from_mode(FILE_MODE))?;
        }
        Ok(Open {
            file,
            bytes: found.len(),
            identity: (found.dev(), found.ino()),
            looked: now.boot_time,
        })
    }

    fn set_aside(&self, now: &Stamp) -> io::Result<()> {
        let path = &self.settings.path;
        let backup = OldFiles::of(path).path(now);
        fs::rename(path, &backup)?;
        fs::set_permissions(&backup, Permissions::from_mode(BACKUP_MODE))
    }

    /// Removes what is too old or too many. A file that cannot be removed is tried again later.
    fn prune(&mut self, now: &Stamp) {
        self.pruned = Some(now.boot_time);
        let (age, count) = (self.settings.max_age, self.settings.max_backups);
        OldFiles::of(&self.settings.path).prune(now, age, count);
    }
}

impl Open {
    fn append(&mut self, text: &[u8]) -> io::Result<()> {
        self.file.write_all(text)?;
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        self.bytes = self.bytes.saturating_add(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::sync::Mutex;

    use super::*;
    use crate::domain::time::BootId;

    /// 2026-11-29T12:00:00 UTC.
    const NOON: i64 = 1_795_953_600_000_000_000;
    const DAY: Duration = Duration::from_secs(86_400);

    struct Watch(Mutex<Stamp>);

    impl Clock for Watch {
        fn now(&self) -> Stamp {
            *self.0.lock().unwrap()
        }
    }

    struct Bed {
        dir: tempfile::TempDir,
        watch: Arc<Watch>,
        log: LogFile,
    }

    impl Bed {
        #[expect(
            clippy::default_trait_access,
            reason = "this room does not know the crate of ids"
        )]
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let watch = Arc::new(Watch(Mutex::new(Stamp {
                boot_id: BootId(Default::default()),
                boot_time: BootTime(0),
                utc_ns: NOON,
            })));
            let settings = LogFileSettings {
                path: dir.path().join("devicePlugin.log"),
                max_age: 7 * DAY,
                max_backups: 3,
            };
            let clock: Arc<dyn Clock> = Arc::<Watch>::clone(&watch);
            let log = LogFile {
                file_max_bytes: 100,
                ..LogFile::new(settings, clock)
            };
            Self { dir, watch, log }
        }

        fn pass(&self, time: Duration) {
            let mut now = self.watch.0.lock().unwrap();
            now.boot_time = now.boot_time.plus(time);
            now.utc_ns += i64::try_from(time.as_nanos()).unwrap();
        }

        fn line(&mut self, text: &str) {
            self.log.line(format!("{text}\n").as_bytes());
        }

        fn path(&self) -> PathBuf {
            self.dir.path().join("devicePlugin.log")
        }

        fn text(&self) -> String {
            fs::read_to_string(self.path()).unwrap()
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(self.dir.path()).unwrap();
            let mut names: Vec<String> = entries
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        }

        fn mode(&self, name: &str) -> u32 {
            let meta = fs::metadata(self.dir.path().join(name)).unwrap();
            meta.mode() & 0o7777
        }
    }

    #[test]
    fn a_full_file_is_set_aside_read_only_and_a_new_one_begun() {
        let mut bed = Bed::new();
        bed.line(&"a".repeat(60));
        bed.line(&"b".repeat(60));
        let backup = "devicePlugin-2026-11-29T12-00-00.000.log";
        assert_eq!(bed.names(), [backup, "devicePlugin.log"]);
        assert_eq!(bed.text(), format!("{}\n", "b".repeat(60)));
        assert_eq!(
            (bed.mode(backup), bed.mode("devicePlugin.log")),
            (0o400, 0o640)
        );
        assert_eq!(FILE_MAX_BYTES, 20 << 20);
    }

    #[test]
    fn what_an_earlier_run_wrote_counts_towards_the_size() {
        let mut bed = Bed::new();
        fs::write(bed.path(), "x".repeat(90)).unwrap();
        bed.line(&"a".repeat(20));
        assert_eq!(bed.names().len(), 2);
        assert_eq!(bed.text(), format!("{}\n", "a".repeat(20)));
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let mut bed = Bed::new();
        for _ in 0..6 {
            bed.pass(Duration::from_secs(60));
            bed.line(&"a".repeat(80));
        }
        assert_eq!(
            bed.names(),
            [
                "devicePlugin-2026-11-29T12-04-00.000.log",
                "devicePlugin-2026-11-29T12-05-00.000.log",
                "devicePlugin-2026-11-29T12-06-00.000.log",
                "devicePlugin.log"
            ]
        );
    }

    #[test]
    fn the_aged_go_within_an_hour_and_foreign_files_stay() {
        let mut bed = Bed::new();
        for name in [
            "devicePlugin-2026-11-22T11-59-59.000.log",
            "devicePlugin-2026-11-22T12-30-00.000.log",
            "devicePlugin-notes.log",
            "other-2020-01-01T00-00-00.000.log",
        ] {
            fs::write(bed.dir.path().join(name), "").unwrap();
        }
        bed.line("begin");
        assert_eq!(bed.names().len(), 4);
        bed.pass(PRUNE);
        bed.line("an hour later");
        assert_eq!(
            bed.names(),
            [
                "devicePlugin-notes.log",
                "devicePlugin.log",
                "other-2020-01-01T00-00-00.000.log"
            ]
        );
    }

    #[test]
    fn the_folder_is_made_but_not_the_one_above() {
        let mut bed = Bed::new();
        bed.log.settings.path = bed.dir.path().join("made/x.log");
        bed.line("a");
        assert_eq!(bed.mode("made"), 0o750);
        bed.pass(LOOK);
        bed.log.settings.path = bed.dir.path().join("not/made/x.log");
        bed.line("b");
        assert!(bed.log.trouble.is_some());
        assert_eq!(bed.names(), ["made"]);
    }

    #[test]
    fn a_full_disk_costs_lines_which_are_counted_when_there_is_room_again() {
        let mut bed = Bed::new();
        bed.line("first");
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        bed.log.open.as_mut().unwrap().file = full;
        bed.line("lost");
        bed.pass(RETRY / 2);
        bed.line("lost too");
        assert_eq!(bed.text(), "first\n");
        bed.pass(RETRY);
        bed.line("again");
        assert_eq!(bed.text(), "first\n\n2 log lines were lost\nagain\n");
        bed.line("and on");
        assert!(bed.text().ends_with("again\nand on\n"));
    }

    #[test]
    fn a_file_that_was_moved_or_removed_is_begun_anew() {
        let mut bed = Bed::new();
        bed.line("first");
        fs::rename(bed.path(), bed.dir.path().join("moved")).unwrap();
        bed.pass(LOOK);
        bed.line("second");
        assert_eq!(bed.text(), "second\n");
        fs::remove_dir_all(bed.dir.path()).unwrap();
        bed.pass(LOOK);
        bed.line("third");
        assert_eq!(bed.text(), "third\n", "its folder was made anew");
    }

    #[test]
    fn lines_that_did_not_fit_into_the_queue_are_counted() {
        let mut bed = Bed::new();
        bed.log.lost(3);
        bed.line("a");
        assert_eq!(bed.text(), "3 log lines were lost\na\n");
    }

    #[test]
    fn links_and_other_kinds_are_not_written() {
        let mut bed = Bed::new();
        let target = bed.dir.path().join("target");
        fs::write(&target, "").unwrap();
        symlink(&target, bed.path()).unwrap();
        bed.line("a");
        fs::remove_file(bed.path()).unwrap();
        fs::hard_link(&target, bed.path()).unwrap();
        bed.pass(RETRY);
        bed.line("b");
        fs::remove_file(bed.path()).unwrap();
        fs::create_dir(bed.path()).unwrap();
        bed.pass(RETRY);
        bed.line("c");
        assert_eq!(fs::read(&target).unwrap(), b"");
        assert_eq!(bed.log.lost, 3);
    }
}

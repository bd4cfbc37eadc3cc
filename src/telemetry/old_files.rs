//! The names of log files that were set aside, `NAME-TIME.EXTENSION`, and which of them go.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::domain::time::Stamp;

/// `2026-11-29T18-50-14.123`.
const TIME_CHARS: usize = 23;

/// Names read of the folder at once; a folder with more is not only ours.
const NAMES_MAX: usize = 10_000;

/// The old files of one log file.
pub(super) struct OldFiles<'a> {
    folder: &'a Path,
    stem: String,
    end: String,
}

impl<'a> OldFiles<'a> {
    pub(super) fn of(path: &'a Path) -> Self {
        let text = |part: &OsStr| part.to_string_lossy().into_owned();
        Self {
            folder: path.parent().unwrap_or(Path::new("/")),
            stem: path.file_stem().map(text).unwrap_or_default(),
            end: path
                .extension()
                .map_or_else(String::new, |end| format!(".{}", text(end))),
        }
    }

    /// Where a file goes that is set aside now.
    pub(super) fn path(&self, now: &Stamp) -> PathBuf {
        self.named(&time_text(now))
    }

    /// Removes what is too old or too many, oldest first. A file that cannot be removed is tried again
    /// the next time.
    pub(super) fn prune(&self, now: &Stamp, max_age: Duration, max_count: usize) {
        let age = i64::try_from(max_age.as_nanos()).unwrap_or(i64::MAX);
        let oldest = time_text(&Stamp {
            utc_ns: now.utc_ns.saturating_sub(age),
            ..*now
        });
        let mut times = self.times();
        times.sort_unstable();
        let too_many = times.len().saturating_sub(max_count);
        for (position, time) in times.iter().enumerate() {
            if position < too_many || *time < oldest {
                drop(fs::remove_file(self.named(time)));
            }
        }
    }

    fn named(&self, time: &str) -> PathBuf {
        self.folder
            .join(format!("{}-{time}{}", self.stem, self.end))
    }

    /// The times in the names of old files; other files are not ours.
    fn times(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.folder) else {
            return Vec::new();
        };
        let time = |name: &str| {
            let time = name.strip_prefix(&self.stem)?.strip_prefix('-')?;
            let time = time.strip_suffix(&self.end)?;
            is_time(time).then(|| time.to_owned())
        };
        let names = entries.flatten().take(NAMES_MAX);
        names
            .filter_map(|entry| time(entry.file_name().to_str()?))
            .collect()
    }
}

/// UTC in a form that sorts and that every file system takes.
fn time_text(at: &Stamp) -> String {
    let text = at.utc_text().replace(':', "-");
    text.trim_end_matches('Z').to_owned()
}

fn is_time(text: &str) -> bool {
    text.len() == TIME_CHARS
        && text
            .bytes()
            .zip("dddd-dd-ddTdd-dd-dd.ddd".bytes())
            .all(|(found, form)| match form {
                b'd' => found.is_ascii_digit(),
                form => found == form,
            })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_times_in_our_form_are_times() {
        assert!(is_time("2026-11-29T18-50-14.123"));
        for other in [
            "",
            "2026-11-29T18:50:14.123",
            "2026-11-29T18-50-14.1234",
            "notes",
        ] {
            assert!(!is_time(other), "{other}");
        }
    }
}

//! The log file's folder, where a log file is asked for.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::finding::Finding;

pub(super) const WHAT: &str = "log folder";

/// Write permission of everybody.
const EVERYBODY: u32 = 0o002;

/// The folder of the log file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogFacts {
    folder: PathBuf,
    /// Its mode, when it is there.
    mode: Option<u32>,
    /// Why nothing can be written there.
    refused: Option<String>,
}

pub(super) fn look(file: &Path) -> LogFacts {
    let folder = file.parent().unwrap_or(Path::new("/")).to_path_buf();
    let mode = fs::metadata(&folder)
        .ok()
        .map(|found| found.mode() & 0o7777);
    // The agent makes missing folders; what they are made in must be writable.
    let there = folder.ancestors().find(|path| path.exists());
    let checked = accessat(
        CWD,
        there.unwrap_or(Path::new("/")),
        Access::WRITE_OK | Access::EXEC_OK,
        AtFlags::EACCESS,
    );
    LogFacts {
        mode,
        refused: checked.err().map(|error| error.to_string()),
        folder,
    }
}

pub(super) fn judge(facts: &LogFacts) -> Finding {
    let folder = facts.folder.display();
    if let Some(cause) = &facts.refused {
        return Finding::warn(
            WHAT,
            format!("{folder} cannot be written: {cause}"),
            "mount a folder of the host there, or unset log_file; the log goes to stderr all the same",
        );
    }
    match facts.mode {
        None => Finding::ok(WHAT, format!("{folder} is not there yet and can be made")),
        Some(mode) if mode & EVERYBODY != 0 => Finding::warn(
            WHAT,
            format!("{folder} can be written by everybody, mode {mode:04o}"),
            format!("run `chmod o-w {folder}`"),
        ),
        Some(mode) => Finding::ok(WHAT, format!("{folder} can be written, mode {mode:04o}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn the_folder_must_be_writable_for_the_agent_and_not_for_everybody() {
        let verdict = |mode, refused: Option<&str>| {
            judge(&LogFacts {
                folder: PathBuf::from("/var/log/mindx-dl"),
                mode,
                refused: refused.map(str::to_owned),
            })
            .verdict
        };
        assert_eq!(verdict(Some(0o750), None), Verdict::Ok);
        assert_eq!(verdict(None, None), Verdict::Ok);
        assert_eq!(verdict(Some(0o777), None), Verdict::Warn);
        assert_eq!(verdict(Some(0o750), Some("read-only")), Verdict::Warn);
    }
}

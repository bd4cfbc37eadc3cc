//! The last acknowledged commit, in a side file. It tells a database that lost commits from one that
//! never had them: a flipped bit in the head of a file that was not closed makes the library fall back
//! to the commit before, and a restored copy looks whole. Both would give a held chip out again.
//!
//! Written after each commit and not synced, so it costs no disk access and may lag behind after a power
//! cut; it is never ahead of what was durable. A mark that cannot be read says nothing.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::OFlags;

use super::place::open;
use crate::domain::ids::CommitSequence;

/// Twenty digits, a space, eight hexadecimal digits of checksum, a line end.
const MARK_BYTES: u64 = 30;

/// The open side file.
#[derive(Debug)]
pub(super) struct Mark(File);

impl Mark {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(open(path, OFlags::RDWR | OFlags::CREATE)?))
    }

    /// Notes an acknowledged commit. Failing costs the protection, not the commit.
    pub(super) fn advance(&self, last: CommitSequence) {
        if let Err(error) = self.0.write_all_at(text(last).as_bytes(), 0) {
            tracing::debug!(%error, "the last commit could not be noted beside the store");
        }
    }
}

/// Reads the mark of a directory.
pub(super) fn read(path: &Path) -> io::Result<Option<CommitSequence>> {
    let file = match open(path, OFlags::RDONLY) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(MARK_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(parse(&bytes))
}

fn text(last: CommitSequence) -> String {
    let digits = format!("{:020}", last.0);
    let checksum = crc32fast::hash(digits.as_bytes());
    format!("{digits} {checksum:08x}\n")
}

fn parse(bytes: &[u8]) -> Option<CommitSequence> {
    let (digits, _) = std::str::from_utf8(bytes).ok()?.split_once(' ')?;
    let last = CommitSequence(digits.parse().ok()?);
    (text(last).as_bytes() == bytes).then_some(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_the_newest_mark() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mark");
        assert_eq!(read(&path).unwrap(), None);
        let mark = Mark::open(&path).unwrap();
        assert_eq!(read(&path).unwrap(), None);
        for last in [7, u64::MAX, 8].map(CommitSequence) {
            mark.advance(last);
            assert_eq!(read(&path).unwrap(), Some(last));
        }
    }

    #[test]
    fn a_flipped_cut_or_longer_mark_says_nothing() {
        let whole = text(CommitSequence(41));
        for place in 0..whole.len() {
            let mut flipped = whole.clone().into_bytes();
            flipped[place] ^= 1;
            assert_eq!(parse(&flipped), None, "{place}");
            assert_eq!(parse(&whole.as_bytes()[..place]), None, "{place}");
        }
        assert_eq!(parse(format!("{whole}0").as_bytes()), None);
    }
}

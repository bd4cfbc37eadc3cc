//! The kernel's list of mounts.

use std::fs;
use std::path::{Path, PathBuf};

/// Mounts of one process, in the order they were made. Empty when they cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mounts(Vec<Mount>);

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) point: PathBuf,
    /// Type of the file system, as the kernel calls it.
    pub(super) kind: String,
}

impl Mount {
    /// A layer over an image, which ends with its container.
    pub(super) fn is_container_layer(&self) -> bool {
        let layers = ["overlay", "aufs", "fuse.fuse-overlayfs"];
        self.point == Path::new("/") && layers.contains(&self.kind.as_str())
    }
}

impl Mounts {
    pub(super) fn read(file: &Path) -> Self {
        fs::read_to_string(file).map_or_else(|_| Self::default(), |text| Self::parse(&text))
    }

    /// Lines that are not understood are left out.
    fn parse(text: &str) -> Self {
        Self(text.lines().filter_map(mount).collect())
    }

    /// The mount that a path without links lies in.
    pub(super) fn of(&self, path: &Path) -> Option<&Mount> {
        let above = self.0.iter().filter(|mount| path.starts_with(&mount.point));
        // Of mounts at the same point the last one hides the others.
        above.max_by_key(|mount| mount.point.components().count())
    }
}

/// `ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG..] - KIND SOURCE OPTIONS`
fn mount(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    Some(Mount {
        point: PathBuf::from(unescaped(before.split(' ').nth(4)?)),
        kind: after.split(' ').next()?.to_owned(),
    })
}

/// Blanks, tabs, line ends and backslashes are written as three octal digits.
fn unescaped(text: &str) -> String {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n")];
    let plain = escapes
        .into_iter()
        .fold(text.to_owned(), |text, (code, sign)| {
            text.replace(code, sign)
        });
    plain.replace("\\134", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
1 0 0:30 / / rw,relatime - overlay overlay rw,lowerdir=/a
2 1 0:5 / /dev rw,nosuid shared:2 - tmpfs tmpfs rw
3 1 8:1 /data /var/lib/as\\040cend rw shared:1 master:2 - ext4 /dev/sda1 rw
4 1 0:6 / /dev rw,nosuid - devtmpfs udev rw
nonsense
";

    fn kind(path: &str) -> String {
        let mounts = Mounts::parse(TEXT);
        mounts.of(Path::new(path)).expect("a mount").kind.clone()
    }

    #[test]
    fn the_longest_mount_point_above_a_path_is_its_mount() {
        assert_eq!(kind("/var/lib/as cend/state.redb"), "ext4");
        assert_eq!(kind("/var/lib/ascend"), "overlay");
    }

    #[test]
    fn of_two_mounts_at_one_point_the_later_one_counts() {
        assert_eq!(kind("/dev/davinci0"), "devtmpfs");
        assert_eq!(kind("/development"), "overlay");
    }
}

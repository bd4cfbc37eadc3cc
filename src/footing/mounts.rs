//! The kernel's table of mounts.

use std::path::{Path, PathBuf};

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Where.
    pub point: PathBuf,
    /// Kind of file system.
    pub kind: String,
    /// Whether nothing can be written there.
    pub read_only: bool,
}

/// All mounts of a process, later ones over earlier ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mounts(Vec<Mount>);

impl Mounts {
    /// Reads `/proc/PID/mountinfo`; lines of another form are left out.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self(text.lines().filter_map(mount).collect())
    }

    /// The mount a path lies on.
    #[must_use]
    pub fn of(&self, path: &Path) -> Option<&Mount> {
        let below = self.0.iter().filter(|mount| path.starts_with(&mount.point));
        // Of equals the last one, which is the one on top.
        below.max_by_key(|mount| mount.point.components().count())
    }
}

/// Ids, device and root come before the mount point; options, then optional fields up to a dash, and
/// the kind of the file system follow.
fn mount(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut fields = before.split(' ').skip(4);
    let (point, options) = (fields.next()?, fields.next()?);
    let mut tail = after.split(' ');
    let kind = tail.next()?.to_owned();
    let of_file_system = tail.nth(1).unwrap_or_default();
    let says_ro = |options: &str| options.split(',').any(|option| option == "ro");
    Some(Mount {
        point: PathBuf::from(unescaped(point)),
        kind,
        read_only: says_ro(options) || says_ro(of_file_system),
    })
}

/// The kernel writes blanks, tabs, line ends and backslashes as three octal digits.
fn unescaped(text: &str) -> String {
    text.replace("\\040", " ")
        .replace("\\011", "\t")
        .replace("\\012", "\n")
        .replace("\\134", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
21 1 0:30 / / rw,relatime master:1 - overlay overlay rw,lowerdir=/l
22 21 0:5 / /dev rw,nosuid shared:2 master:3 - tmpfs tmpfs rw,mode=755
23 22 0:6 / /dev rw - devtmpfs udev rw
24 21 8:1 /x /var/lib/a\\040b ro,relatime - ext4 /dev/sda1 rw
25 21 8:2 / /var/lib/frozen rw - ext4 /dev/sda2 ro
no line
";

    #[test]
    fn a_path_lies_on_the_deepest_and_last_mount_above_it() {
        let mounts = Mounts::parse(TABLE);
        let kind = |path: &str| mounts.of(Path::new(path)).map(|mount| mount.kind.as_str());
        assert_eq!(kind("/var/lib/ascend"), Some("overlay"));
        assert_eq!(kind("/dev/davinci0"), Some("devtmpfs"));
        assert_eq!(kind("/device"), Some("overlay"));
        assert_eq!(kind("/var/lib/a b/c"), Some("ext4"));
        assert_eq!(Mounts::default().of(Path::new("/")), None);
    }

    #[test]
    fn mount_and_file_system_may_each_forbid_writing() {
        let mounts = Mounts::parse(TABLE);
        let read_only = |path: &str| {
            mounts
                .of(Path::new(path))
                .is_some_and(|mount| mount.read_only)
        };
        assert!(read_only("/var/lib/a b") && read_only("/var/lib/frozen"));
        assert!(!read_only("/"));
    }
}

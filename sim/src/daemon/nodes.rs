//! Stand-ins for device nodes.
//!
//! Invariant: only what a list in the directory names as ours is ever removed. The list is
//! written before a node is made, so that a killed daemon leaves nothing its successor would not
//! know.

use std::collections::BTreeSet;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::{fs, os::unix::fs::FileTypeExt};

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use rustix::process::geteuid;

/// Names of what we made, one a line; directories end with a slash.
const LIST: &str = ".ascend-sim";
/// Major and minor number of the null device, which every stand-in copies.
const NULL_DEVICE: (u32, u32) = (1, 3);

/// Why the device directory cannot show the machine.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NodeError {
    /// A file we did not make is in the way.
    #[error("{0:?} exists and was not made by this program; use an empty directory")]
    InTheWay(PathBuf),
    /// A node name that leaves the directory.
    #[error("node name '{0}' is not a plain name or directory/name")]
    Name(String),
    /// The file system refused.
    #[error("cannot change {path:?}")]
    Change {
        /// Path.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

#[derive(Debug)]
pub(super) struct NodeDir {
    dir: PathBuf,
    made: BTreeSet<String>,
}

impl NodeDir {
    /// Opens the directory, making it if need be, and takes over what a predecessor made.
    pub(super) fn open(dir: &Path) -> Result<Self, NodeError> {
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |source| NodeError::Change { path, source }
        };
        fs::create_dir_all(dir).map_err(failed(dir))?;
        let list = dir.join(LIST);
        let made = match fs::read_to_string(&list) {
            Ok(text) => text
                .lines()
                .filter(|name| is_inside(name))
                .map(str::to_owned)
                .collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeSet::new(),
            Err(source) => return Err(NodeError::Change { path: list, source }),
        };
        Ok(Self {
            dir: dir.to_path_buf(),
            made,
        })
    }

    /// Makes what is missing and removes what is ours and not wanted any more.
    pub(super) fn show(&mut self, wanted: &BTreeSet<String>) -> Result<(), NodeError> {
        for name in wanted {
            if !is_inside(name) {
                return Err(NodeError::Name(name.clone()));
            }
            let path = self.dir.join(name);
            match (path.symlink_metadata().is_ok(), self.made.contains(name)) {
                (true, true) => {}
                (true, false) => return Err(NodeError::InTheWay(path)),
                (false, _) => self.make(name, &path)?,
            }
        }
        let surplus: Vec<String> = self
            .made
            .iter()
            .filter(|name| !name.ends_with('/') && !wanted.contains(*name))
            .cloned()
            .collect();
        for name in surplus {
            self.remove(&name)?;
        }
        Ok(())
    }

    /// Removes everything that is ours. What cannot be removed stays on the list.
    pub(super) fn clear(&mut self) {
        let names: Vec<String> = self.made.iter().rev().cloned().collect();
        let all_gone = names.iter().all(|name| self.remove(name).is_ok());
        if all_gone && self.made.is_empty() {
            // A list that stays behind empty does no harm.
            let _removed: io::Result<()> = fs::remove_file(self.dir.join(LIST));
        }
    }

    fn make(&mut self, name: &str, path: &Path) -> Result<(), NodeError> {
        if let Some((parent, _)) = name.split_once('/') {
            let dir = self.dir.join(parent);
            if dir.symlink_metadata().is_err() {
                self.note(format!("{parent}/"))?;
                fs::create_dir(&dir).map_err(|source| NodeError::Change { path: dir, source })?;
            }
        }
        self.note(name.to_owned())?;
        make_node(path).map_err(|source| NodeError::Change {
            path: path.to_path_buf(),
            source,
        })
    }

    fn note(&mut self, name: String) -> Result<(), NodeError> {
        self.made.insert(name);
        self.write_list()
    }

    fn write_list(&self) -> Result<(), NodeError> {
        let names: Vec<&str> = self.made.iter().map(String::as_str).collect();
        let path = self.dir.join(LIST);
        fs::write(&path, names.join("\n")).map_err(|source| NodeError::Change { path, source })
    }

    fn remove(&mut self, name: &str) -> Result<(), NodeError> {
        let path = self.dir.join(name);
        let removed = if name.ends_with('/') {
            fs::remove_dir(&path)
        } else {
            fs::remove_file(&path)
        };
        match removed {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(NodeError::Change { path, source }),
        }
        self.made.remove(name);
        self.write_list()
    }
}

/// A copy of the null device where we may make one, a plain file elsewhere.
fn make_node(path: &Path) -> io::Result<()> {
    if geteuid().is_root() {
        let device = makedev(NULL_DEVICE.0, NULL_DEVICE.1);
        let permissions = Mode::from_raw_mode(0o666);
        let made = mknodat(CWD, path, FileType::CharacterDevice, permissions, device);
        if made.is_ok() && is_character_device(path) {
            return Ok(());
        }
    }
    fs::write(path, [])
}

fn is_character_device(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|data| data.file_type().is_char_device())
}

fn is_inside(name: &str) -> bool {
    let path = Path::new(name);
    let depth = path.components().count();
    (1..=2).contains(&depth)
        && path
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> BTreeSet<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn shows_hides_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut nodes = NodeDir::open(dir.path()).unwrap();
        nodes
            .show(&names(&["davinci0", "davinci1", "uburma/uburma0"]))
            .unwrap();
        assert!(dir.path().join("uburma/uburma0").exists());
        nodes.show(&names(&["davinci1", "uburma/uburma0"])).unwrap();
        assert!(!dir.path().join("davinci0").exists());
        nodes.clear();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_successor_knows_what_a_killed_daemon_made() {
        let dir = tempfile::tempdir().unwrap();
        NodeDir::open(dir.path())
            .unwrap()
            .show(&names(&["davinci0"]))
            .unwrap();
        let mut successor = NodeDir::open(dir.path()).unwrap();
        successor.show(&names(&["davinci1"])).unwrap();
        assert!(!dir.path().join("davinci0").exists());
    }

    #[test]
    fn a_foreign_file_is_neither_used_nor_removed() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("davinci0"), "mine").unwrap();
        let mut nodes = NodeDir::open(dir.path()).unwrap();
        let refused = nodes.show(&names(&["davinci0"]));
        assert!(matches!(refused, Err(NodeError::InTheWay(_))));
        nodes.clear();
        assert_eq!(
            fs::read_to_string(dir.path().join("davinci0")).unwrap(),
            "mine"
        );
    }

    #[test]
    fn a_name_cannot_leave_the_directory() {
        for name in ["../x", "/x", "a/b/c", "", "a/../b"] {
            assert!(!is_inside(name), "{name}");
        }
    }
}

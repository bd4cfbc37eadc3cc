//! The folder of CDI specs, where chips reach containers by CDI name.

use std::fs;
use std::path::{Path, PathBuf};

use super::finding::Finding;
use super::mounts::{Mount, Mounts};

pub(super) const WHAT: &str = "CDI folder";

/// The folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CdiFacts {
    folder: PathBuf,
    is_there: bool,
    mount: Option<Mount>,
}

pub(super) fn look(folder: &Path, mounts: &Mounts) -> CdiFacts {
    let above = folder
        .ancestors()
        .find_map(|path| fs::canonicalize(path).ok());
    CdiFacts {
        folder: folder.to_path_buf(),
        is_there: folder.is_dir(),
        mount: above.and_then(|path| mounts.of(&path).cloned()),
    }
}

pub(super) fn judge(facts: &CdiFacts) -> Finding {
    let folder = facts.folder.display();
    if facts.mount.as_ref().is_some_and(Mount::is_container_layer) {
        return Finding::fail(
            WHAT,
            format!("{folder} lies in the container's own layer, where no runtime reads it"),
            format!("mount the host's {folder} there (hostPath, type DirectoryOrCreate)"),
        );
    }
    if !facts.is_there {
        return Finding::warn(
            WHAT,
            format!("{folder} is not there"),
            "the agent makes it; the runtime must read it: containerd before 2.0 needs enable_cdi",
        );
    }
    Finding::ok(WHAT, format!("{folder} is the host's"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn specs_must_reach_the_host() {
        let verdict = |is_there, point: &str, kind: &str| {
            let mount = Mount {
                point: PathBuf::from(point),
                kind: kind.to_owned(),
            };
            judge(&CdiFacts {
                folder: PathBuf::from("/var/run/cdi"),
                is_there,
                mount: Some(mount),
            })
            .verdict
        };
        assert_eq!(verdict(true, "/var/run/cdi", "tmpfs"), Verdict::Ok);
        assert_eq!(verdict(true, "/", "ext4"), Verdict::Ok);
        assert_eq!(verdict(false, "/run", "tmpfs"), Verdict::Warn);
        assert_eq!(verdict(true, "/", "overlay"), Verdict::Fail);
    }
}

//! The folder of CDI specs, where chips reach containers by CDI name.

use std::fs;
use std::path::{Path, PathBuf};

use crate::footing::{Mounts, outlives};

use super::finding::Finding;

pub(super) const WHAT: &str = "CDI folder";

/// The folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CdiFacts {
    folder: PathBuf,
    is_there: bool,
    /// Whether what is written there reaches the host.
    reaches_host: bool,
}

pub(super) fn look(folder: &Path, mounts: &Mounts, in_container: bool) -> CdiFacts {
    let above = folder
        .ancestors()
        .find_map(|path| fs::canonicalize(path).ok());
    CdiFacts {
        folder: folder.to_path_buf(),
        is_there: folder.is_dir(),
        reaches_host: above.is_none_or(|path| outlives(&path, mounts, in_container)),
    }
}

pub(super) fn judge(facts: &CdiFacts) -> Finding {
    let folder = facts.folder.display();
    if !facts.reaches_host {
        return Finding::fail(
            WHAT,
            format!("{folder} is read-only or the container's own, where no runtime sees a spec"),
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
        let verdict = |is_there, reaches_host| {
            let folder = PathBuf::from("/var/run/cdi");
            judge(&CdiFacts {
                folder,
                is_there,
                reaches_host,
            })
            .verdict
        };
        assert_eq!(verdict(true, true), Verdict::Ok);
        assert_eq!(verdict(false, true), Verdict::Warn);
        assert_eq!(verdict(true, false), Verdict::Fail);
    }
}

//! What is asked about the host, and the host's answer.

use std::collections::BTreeSet;

/// Paths whose presence matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Absolute paths to look at.
    pub paths: Vec<String>,
    /// Folders whose files matter.
    pub folders: Vec<FolderLook>,
}

impl Wanted {
    /// Adds what somebody else wants.
    pub fn extend(&mut self, more: Self) {
        self.paths.extend(more.paths);
        self.folders.extend(more.folders);
    }
}

/// The files directly in a folder whose names begin with one of these texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderLook {
    /// The folder, absolute, without a slash at the end.
    pub folder: String,
    /// Beginnings of file names; the empty text stands for every file.
    pub prefixes: Vec<&'static str>,
}

/// Which of the wanted paths exist, and what lies in the folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostPaths {
    /// Existing paths, absolute, as the agent names them.
    pub present: BTreeSet<String>,
}

impl HostPaths {
    pub(super) fn has(&self, path: &str) -> bool {
        self.present.contains(path)
    }

    /// Existing files directly in a folder whose names begin so, sorted.
    pub(super) fn in_folder<'a>(
        &'a self,
        folder: &'a str,
        prefix: &'a str,
    ) -> impl Iterator<Item = &'a String> {
        self.present.iter().filter(move |path| {
            path.strip_prefix(folder)
                .and_then(|rest| rest.strip_prefix('/'))
                .is_some_and(|name| name.starts_with(prefix) && !name.contains('/'))
        })
    }
}

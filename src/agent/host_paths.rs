//! Which paths exist on the host.

use std::fs;

use crate::injection::{FolderLook, HostPaths, Wanted};

/// Files taken of one folder; a folder of device nodes has far fewer.
const FOLDER_ENTRIES_MAX: usize = 1024;

/// Looks at each path and into each folder. A few `stat` calls on a memory file system, and some more
/// where the driver's files are mounted, hence no thread of its own.
pub(super) fn look(wanted: &Wanted) -> HostPaths {
    let mut host = HostPaths::default();
    for path in &wanted.paths {
        if fs::metadata(path).is_ok() {
            host.present.insert(path.clone());
        }
    }
    for look in &wanted.folders {
        list(look, &mut host);
    }
    host
}

/// Nodes named `davinci` and a number.
pub(super) fn count_chip_nodes(dev: &str) -> usize {
    let Ok(entries) = fs::read_dir(dev) else {
        return 0;
    };
    entries
        .take(FOLDER_ENTRIES_MAX)
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("davinci"));
            number.is_some_and(|number| number.parse::<u32>().is_ok())
        })
        .count()
}

fn list(look: &FolderLook, host: &mut HostPaths) {
    let folder = &look.folder;
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let files = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let wanted = look.prefixes.iter().any(|prefix| name.starts_with(prefix));
        let is_folder = || entry.file_type().is_ok_and(|kind| kind.is_dir());
        (wanted && !is_folder()).then(|| format!("{folder}/{name}"))
    });
    host.present.extend(files.take(FOLDER_ENTRIES_MAX));
}

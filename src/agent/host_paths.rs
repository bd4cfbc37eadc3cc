//! Which paths exist on the host.

use std::fs;
use std::path::Path;

use crate::injection::HostPaths;

/// Entries read of one folder; a folder of device nodes has far fewer.
const FOLDER_ENTRIES_MAX: usize = 1024;

/// Looks at each path; folders of device nodes are listed one level deep. A few `stat` calls on a
/// memory file system, hence no thread of its own.
pub(super) fn look(paths: &[String]) -> HostPaths {
    let mut host = HostPaths::default();
    for path in paths {
        let Ok(meta) = fs::metadata(path) else {
            continue;
        };
        host.present.insert(path.clone());
        if meta.is_dir() {
            list(path, &mut host);
        }
    }
    host
}

/// Whether a path exists.
pub(super) fn exists(path: &str) -> bool {
    fs::metadata(path).is_ok()
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

fn list(folder: &str, host: &mut HostPaths) {
    let Ok(entries) = fs::read_dir(Path::new(folder)) else {
        return;
    };
    for entry in entries.take(FOLDER_ENTRIES_MAX).flatten() {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if let (Some(name), false) = (entry.file_name().to_str(), is_folder) {
            host.present.insert(format!("{folder}/{name}"));
        }
    }
}

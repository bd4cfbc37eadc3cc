//! Replacing a file as a whole.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A new folder is for everybody to read, as the files are.
const FOLDER_MODE: u32 = 0o755;

/// Whether the file has this content and mode already. Anything else, unreadable files included, is to
/// be replaced.
pub(super) fn is_current(path: &Path, content: &[u8], mode: u32) -> bool {
    let read = || -> io::Result<bool> {
        // Opening a pipe would wait for a writer.
        if !fs::metadata(path)?.is_file() {
            return Ok(false);
        }
        let file = File::open(path)?;
        let meta = file.metadata()?;
        if !meta.is_file() || meta.permissions().mode() & 0o7777 != mode {
            return Ok(false);
        }
        let limit = u64::try_from(content.len()).unwrap_or(u64::MAX);
        let mut found = Vec::with_capacity(content.len());
        // One byte more than expected tells a longer file.
        file.take(limit.saturating_add(1)).read_to_end(&mut found)?;
        Ok(found == content)
    };
    read().unwrap_or(false)
}

/// Makes the folder where it is missing, then replaces the file durably. There may be one writer.
pub(super) fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::DirBuilder::new()
        .recursive(true)
        .mode(FOLDER_MODE)
        .create(folder)?;
    let unfinished = unfinished(path);
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let written = write_new(&unfinished, content, mode)
        .and_then(|()| fs::rename(&unfinished, path))
        .and_then(|()| File::open(folder)?.sync_all());
    if written.is_err() {
        // It is only in the way of nobody: the next attempt removes it first.
        let _ = fs::remove_file(&unfinished);
    }
    written
}

/// A name that no reader of the folder takes for its own.
fn unfinished(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.unfinished"))
}

fn write_new(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)?;
    file.write_all(content)?;
    // The mode of a new file is cut by the process's mask.
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder)
            .expect("a folder")
            .map(|entry| {
                let name = entry.expect("an entry").file_name();
                name.to_string_lossy().into_owned()
            })
            .collect()
    }

    #[test]
    fn a_file_is_replaced_whole_with_its_mode_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("new/cdi/x.json");
        for content in ["one, longer", "two"] {
            assert!(!is_current(&path, content.as_bytes(), 0o644));
            replace(&path, content.as_bytes(), 0o644).expect("written");
            assert_eq!(fs::read_to_string(&path).expect("a file"), content);
            assert!(is_current(&path, content.as_bytes(), 0o644));
            assert_eq!(names(path.parent().expect("a folder")), ["x.json"]);
        }
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o7777, 0o644);
    }

    #[test]
    fn what_an_ended_writer_left_is_not_in_the_way() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.json");
        fs::write(unfinished(&path), "half").expect("a file");
        replace(&path, b"whole", 0o644).expect("written");
        assert_eq!(names(folder.path()), ["x.json"]);
    }

    #[test]
    fn a_changed_mode_longer_content_or_a_folder_is_not_current() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.json");
        replace(&path, b"content", 0o600).expect("written");
        assert!(!is_current(&path, b"content", 0o644));
        assert!(!is_current(&path, b"cont", 0o600));
        assert!(!is_current(folder.path(), b"content", 0o755));
    }

    #[test]
    fn a_failure_leaves_the_old_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.json");
        fs::create_dir(&path).expect("a folder in the way");
        replace(&path, b"content", 0o644).expect_err("a folder is not replaced");
        assert_eq!(names(folder.path()), ["x.json"]);
    }
}

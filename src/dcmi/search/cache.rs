//! The loader's own cache, as `ldconfig` prints it.

use std::fs;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};

use super::LIBRARY;

/// Lines of the loader's cache that are looked at, the vendor's own limit.
const CACHE_LINES_MAX: usize = 1024;

/// Bytes of the loader's cache that are read; real ones are far smaller.
const CACHE_BYTES_MAX: u64 = 4 << 20;

const LDCONFIG_DEADLINE: Duration = Duration::from_secs(5);
const LDCONFIG_POLL: Duration = Duration::from_millis(5);

/// Why the loader's cache names no library.
#[derive(Debug, thiserror::Error)]
pub(super) enum CacheError {
    #[error("the loader's cache could not be read ({path}: {cause})", path = path.display())]
    Unreadable { path: PathBuf, cause: String },
    #[error("{path} gave no answer within {LDCONFIG_DEADLINE:?}", path = path.display())]
    Deadline { path: PathBuf },
    #[error("the loader's cache ({path} --print-cache) does not name it", path = path.display())]
    Unnamed { path: PathBuf },
}

/// First match of the loader's cache.
pub(super) fn candidate_of_cache(ldconfig: &Path) -> Result<PathBuf, CacheError> {
    let unreadable = |error: io::Error| CacheError::Unreadable {
        path: ldconfig.to_path_buf(),
        cause: error.to_string(),
    };
    // A file in memory, so that a full pipe can stall neither side.
    let output = memfd_create("ldconfig", MemfdFlags::CLOEXEC)
        .map_err(|errno| unreadable(io::Error::from(errno)))?;
    let mut output = fs::File::from(output);
    let mut child = Command::new(ldconfig)
        .arg("--print-cache")
        .stdin(Stdio::null())
        .stdout(output.try_clone().map_err(unreadable)?)
        .stderr(Stdio::null())
        .spawn()
        .map_err(unreadable)?;
    if !ends_in_time(&mut child).map_err(unreadable)? {
        child.kill().map_err(unreadable)?;
        child.wait().map_err(unreadable)?;
        return Err(CacheError::Deadline {
            path: ldconfig.to_path_buf(),
        });
    }
    let mut text = Vec::new();
    output.rewind().map_err(unreadable)?;
    output
        .take(CACHE_BYTES_MAX)
        .read_to_end(&mut text)
        .map_err(unreadable)?;
    first_match(&String::from_utf8_lossy(&text)).ok_or_else(|| CacheError::Unnamed {
        path: ldconfig.to_path_buf(),
    })
}

fn ends_in_time(child: &mut Child) -> io::Result<bool> {
    let polls = LDCONFIG_DEADLINE.as_millis() / LDCONFIG_POLL.as_millis();
    for _ in 0..polls {
        if child.try_wait()?.is_some() {
            return Ok(true);
        }
        std::thread::sleep(LDCONFIG_POLL);
    }
    Ok(false)
}

/// Lines read `name (kind) => path`.
fn first_match(cache: &str) -> Option<PathBuf> {
    let path_of = |line: &str| {
        let (name, path) = line.split_once("=>")?;
        let named = name.split_whitespace().next() == Some(LIBRARY);
        named.then(|| PathBuf::from(path.trim()))
    };
    cache.lines().take(CACHE_LINES_MAX).find_map(path_of)
}

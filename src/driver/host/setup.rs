//! What makes this process a driver host: its channel, its tie to the agent's life, its lock.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use rustix::stdio::{dup2_stdin, dup2_stdout, stderr, stdin};

use super::super::moment::Moment;

const LOCK_POLL: Duration = Duration::from_millis(10);

/// An ordinary replacement frees the lock sooner than this and needs no words.
const LOCK_SILENCE: Duration = Duration::from_millis(1500);

/// Descriptors below this are standard ones, which the library's shells may inherit.
const FIRST_OWN_FD: i32 = 3;

/// Takes standard input as the channel to the agent, out of reach of the programs the library
/// starts, and sends what the library prints to standard error.
pub(super) fn adopt_channel() -> io::Result<UnixStream> {
    let channel: OwnedFd = fcntl_dupfd_cloexec(stdin(), FIRST_OWN_FD)?;
    let channel = UnixStream::from(channel);
    // Fails for anything that is not a socket.
    channel.peer_addr()?;
    dup2_stdin(File::open("/dev/null")?)?;
    dup2_stdout(stderr())?;
    Ok(channel)
}

/// The parent is not the one that wanted this process.
#[derive(Debug, thiserror::Error)]
pub(super) enum OrphanError {
    #[error("the agent (pid {expected}) is gone; the parent now is {found:?}")]
    Parent { expected: u32, found: Option<u32> },
    #[error("cannot ask the kernel to end this process with its parent: {0}")]
    Signal(io::Error),
}

/// From here on the kernel kills this process when the agent's thread that started it ends. A parent
/// that died before the kernel was told shows in the parent's number.
pub(super) fn die_with_parent(expected: u32) -> Result<(), OrphanError> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|errno| OrphanError::Signal(errno.into()))?;
    check_parent(expected)
}

fn check_parent(expected: u32) -> Result<(), OrphanError> {
    let found = getppid().and_then(|pid| u32::try_from(pid.as_raw_nonzero().get()).ok());
    if found == Some(expected) {
        Ok(())
    } else {
        Err(OrphanError::Parent { expected, found })
    }
}

/// The lock that keeps two hosts from working at once; dropped, it is free.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

/// Why the lock could not be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum LockError {
    #[error("{path} cannot be locked: {cause}", path = path.display())]
    File { path: PathBuf, cause: io::Error },
    #[error(
        "another driver host still holds {path} after {waited:?}; find it with `fuser {path}`; \
         if kill -9 does not end it, it hangs inside the driver and only a reboot helps",
        path = path.display()
    )]
    Held { path: PathBuf, waited: Duration },
}

/// Waits up to the bound for the host of an agent that was killed to end; tells `note` if that
/// takes long. The folder itself is locked: a file in it could not be made on a full or read-only
/// disk, and the driver must be read all the same.
pub(super) fn take_lock(
    state_dir: &Path,
    bound: Duration,
    note: impl Fn(String),
) -> Result<Lock, LockError> {
    let path = state_dir.to_path_buf();
    let failed = |cause: io::Error| LockError::File {
        path: path.clone(),
        cause,
    };
    let file = File::open(&path).map_err(failed)?;
    let began = Moment::now();
    let mut told = false;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Lock { _file: file }),
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            Err(errno) => return Err(failed(errno.into())),
        }
        let waited = Moment::now().since(began);
        if waited >= bound {
            return Err(LockError::Held {
                path,
                waited: bound,
            });
        }
        if waited >= LOCK_SILENCE && !told {
            told = true;
            note(format!(
                "waiting up to {bound:?} for another driver host to release {}",
                path.display()
            ));
        }
        std::thread::sleep(LOCK_POLL);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn a_held_lock_is_waited_for_and_then_named() {
        let dir = tempfile::tempdir().unwrap();
        let silent = |text: String| panic!("{text}");
        let held = take_lock(dir.path(), Duration::ZERO, silent).unwrap();
        let notes = RefCell::new(Vec::new());
        let bound = LOCK_SILENCE + Duration::from_millis(50);
        let refused = take_lock(dir.path(), bound, |text| notes.borrow_mut().push(text));
        assert!(
            refused
                .unwrap_err()
                .to_string()
                .contains(&format!("still holds {} after", dir.path().display()))
        );
        assert_eq!(notes.borrow().len(), 1);
        drop(held);
        take_lock(dir.path(), Duration::ZERO, silent).unwrap();
    }

    #[test]
    fn a_state_directory_that_is_not_there_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let refused = take_lock(&dir.path().join("no"), Duration::ZERO, |_| {}).unwrap_err();
        assert!(refused.to_string().contains("no cannot be locked"));
    }

    #[test]
    fn a_process_with_another_parent_than_promised_is_an_orphan() {
        let refused = check_parent(0).unwrap_err();
        assert!(matches!(refused, OrphanError::Parent { expected: 0, .. }));
    }
}

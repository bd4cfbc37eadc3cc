//! Looks that may hang: each on a thread of its own, which is left behind when it is late.

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use super::finding::Finding;

/// Why a look gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoLook {
    #[error("no answer within {} s", within.as_secs())]
    Late { within: Duration },
    #[error("the look broke off")]
    Broke,
    #[error("no thread can be had: {cause}")]
    NoThread { cause: String },
}

/// Runs a look with a deadline.
pub(super) fn within<T: Send + 'static>(
    within: Duration,
    look: impl FnOnce() -> T + Send + 'static,
) -> Result<T, NoLook> {
    let (seen, answer) = sync_channel(1);
    let started = thread::Builder::new()
        .name("doctor".to_owned())
        .spawn(move || {
            // Nobody waits any more when the deadline has passed.
            let _late = seen.send(look());
        });
    started.map_err(|error| NoLook::NoThread {
        cause: error.to_string(),
    })?;
    answer.recv_timeout(within).map_err(|error| match error {
        RecvTimeoutError::Timeout => NoLook::Late { within },
        RecvTimeoutError::Disconnected => NoLook::Broke,
    })
}

/// Runs a check with a deadline; one that gives no answer is itself a finding.
pub(super) fn checked(
    what: &'static str,
    deadline: Duration,
    check: impl FnOnce() -> Vec<Finding> + Send + 'static,
) -> Vec<Finding> {
    within(deadline, check).unwrap_or_else(|error| vec![late(what, &error)])
}

/// What is said of a look that gave nothing.
pub(super) fn late(what: &'static str, error: &NoLook) -> Finding {
    Finding::fail(
        what,
        error.to_string(),
        "a mount, a socket or a disk hangs; see the kernel's log and `mount`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn a_look_that_hangs_is_a_finding_and_not_a_wait() {
        let (release, hold) = sync_channel::<()>(0);
        let findings = checked("mount", Duration::from_millis(10), move || {
            hold.recv().ok();
            Vec::new()
        });
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].verdict, Verdict::Fail);
        assert!(findings[0].found.contains("no answer within"));
        drop(release);
    }

    #[test]
    fn a_look_that_breaks_is_a_finding() {
        let findings = checked("mount", Duration::from_secs(60), || panic!("broken"));
        assert_eq!(findings[0].found, "the look broke off");
    }
}

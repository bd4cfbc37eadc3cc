//! The wall clock. Waits do not depend on it, but people, certificates and the history do.

use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use crate::clock::SystemClock;
use crate::ports::Clock;

use super::finding::Finding;

pub(super) const WHAT: &str = "clock";

/// 2026-01-01: no agent was built before.
const EARLIEST: Duration = Duration::from_secs(1_767_225_600);

/// The store may have been written by a clock that was this much ahead.
const AHEAD: Duration = Duration::from_secs(60);

/// The clock and the last trace of it on disk, both since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockFacts {
    now: Option<Duration>,
    last_written: Option<Duration>,
}

pub(super) fn look(state_dir: Option<&Path>) -> ClockFacts {
    let now = SystemClock::open().ok().map(|clock| clock.now().utc_ns);
    let entries = state_dir.and_then(|dir| fs::read_dir(dir).ok());
    let written = entries.into_iter().flatten().flatten().filter_map(|entry| {
        let modified = entry.metadata().ok()?.modified().ok()?;
        modified.duration_since(UNIX_EPOCH).ok()
    });
    ClockFacts {
        now: now
            .and_then(|ns| u64::try_from(ns).ok())
            .map(Duration::from_nanos),
        last_written: written.max(),
    }
}

pub(super) fn judge(facts: &ClockFacts) -> Finding {
    let Some(now) = facts.now else {
        return Finding::fail(
            WHAT,
            "the kernel's clock or boot id cannot be read",
            "mount /proc into the container",
        );
    };
    let shown = chrono::DateTime::from_timestamp(i64::try_from(now.as_secs()).unwrap_or(0), 0)
        .map_or_else(String::new, |time| time.to_rfc3339());
    if now < EARLIEST {
        return Finding::fail(
            WHAT,
            format!("it says {shown}, before this program was made"),
            "set the clock and run a time service (chrony)",
        );
    }
    let behind = facts
        .last_written
        .and_then(|written| written.checked_sub(now))
        .filter(|behind| *behind > AHEAD);
    match behind {
        Some(behind) => Finding::warn(
            WHAT,
            format!(
                "it says {shown}, {} s before the last write to the state folder",
                behind.as_secs()
            ),
            "the clock went back; run a time service (chrony). Times in the history are not in order",
        ),
        None => Finding::ok(WHAT, shown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    fn verdict(now: Option<u64>, written: Option<u64>) -> Verdict {
        let time = |after: u64| Duration::from_secs(EARLIEST.as_secs() - 1_000 + after);
        judge(&ClockFacts {
            now: now.map(time),
            last_written: written.map(time),
        })
        .verdict
    }

    #[test]
    fn a_clock_before_this_program_or_behind_the_store_is_wrong() {
        assert_eq!(verdict(Some(2_000), Some(1_999)), Verdict::Ok);
        assert_eq!(verdict(Some(2_000), Some(2_030)), Verdict::Ok);
        assert_eq!(verdict(Some(2_000), Some(2_100)), Verdict::Warn);
        assert_eq!(verdict(Some(999), None), Verdict::Fail);
        assert_eq!(verdict(None, None), Verdict::Fail);
    }
}

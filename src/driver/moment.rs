//! Monotonic time for the deadlines of this room, which must run while the wall clock jumps.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A point on the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(Duration);

impl Moment {
    pub(super) fn now() -> Self {
        let time = clock_gettime(ClockId::Monotonic);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
        Self(Duration::new(seconds, nanoseconds))
    }

    pub(super) fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(wait))
    }

    /// Time from `earlier` to this moment; zero when that lies ahead.
    pub(super) fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// Never zero, so that zero can mean "none" in an atomic.
    pub(super) fn as_millis(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX).max(1)
    }

    pub(super) fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }
}

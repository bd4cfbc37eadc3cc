//! Time as data. Waits and graces run on boot time; wall time is for people; order comes from the
//! commit sequence.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The kernel's random id of the running boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootId(pub Uuid);

impl fmt::Display for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Nanoseconds since boot, suspend included (`CLOCK_BOOTTIME`); comparable within one boot only.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct BootTime(pub u64);

impl BootTime {
    /// Time passed since `earlier`; zero when `earlier` is not earlier.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The point `earlier` before this one, no earlier than the boot.
    #[must_use]
    pub fn minus(self, earlier: Duration) -> Self {
        Self(
            self.0
                .saturating_sub(u64::try_from(earlier.as_nanos()).unwrap_or(u64::MAX)),
        )
    }

    /// The point `later` after this one.
    #[must_use]
    pub fn plus(self, later: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(later.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

/// When something happened, on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// The boot that `boot_time` counts from.
    pub boot_id: BootId,
    /// Nanoseconds since that boot.
    pub boot_time: BootTime,
    /// UTC nanoseconds since 1970 as the wall clock said; it may have jumped.
    pub utc_ns: i64,
}

impl Stamp {
    /// Order of two moments: by boot time within one boot, by wall time between two.
    #[must_use]
    pub fn is_no_later_than(&self, other: &Self) -> bool {
        if self.boot_id == other.boot_id {
            self.boot_time <= other.boot_time
        } else {
            self.utc_ns <= other.utc_ns
        }
    }

    /// RFC 3339 in UTC with milliseconds, or the raw number when the clock was far out of range.
    #[must_use]
    pub fn utc_text(&self) -> String {
        chrono::DateTime::from_timestamp_nanos(self.utc_ns)
            .to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
    }
}

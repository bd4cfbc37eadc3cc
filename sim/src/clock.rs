//! The only reader of wall and monotonic time. Everything else takes a `Moment`.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// One reading of both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// Monotonic time, for deadlines.
    pub(crate) instant: Instant,
    /// Milliseconds since the Unix epoch, for event stamps and waveforms.
    pub(crate) unix_ms: u64,
}

/// Reads the clocks now.
#[expect(
    clippy::disallowed_methods,
    reason = "this file is the one reader of the clocks"
)]
pub(crate) fn now() -> Moment {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Moment {
        instant: Instant::now(),
        unix_ms: u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX),
    }
}

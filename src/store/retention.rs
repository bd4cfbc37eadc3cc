//! How much history is kept, as a pure decision. It counts records and never asks the wall clock, so a
//! jumping clock removes nothing; the hourly share runs on boot time.

use std::time::Duration;

use crate::domain::time::BootTime;

/// Rows per transaction, so that a commit never waits long behind one.
pub(super) const PIECE_ROWS: u64 = 100;
const HOUR: Duration = Duration::from_secs(3600);
/// A tenth of the bound per hour: enough for a node that grants a chip every second.
const HOURLY_DIVISOR: u64 = 10;

/// Bounds of the history. A record takes about 200 bytes of file, so the default bound means about
/// 100 MiB, and twice that when more records arrive per hour than the share lets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Records kept. Up to twice as many exist while the hourly share holds removal back; from there
    /// on each commit removes as many as it adds.
    pub records: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self { records: 500_000 }
    }
}

/// What was removed in the running hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HourlyShare {
    began: Option<BootTime>,
    removed: u64,
}

impl HourlyShare {
    /// True when nothing more may be removed in the hour that was last looked at.
    pub(super) fn is_used_up(&self, retention: Retention) -> bool {
        self.removed >= retention.hourly()
    }
}

impl Retention {
    fn hourly(self) -> u64 {
        (self.records / HOURLY_DIVISOR).max(PIECE_ROWS)
    }

    /// Rows to remove now while nothing else is to be done; zero for none.
    pub(super) fn idle_piece(self, kept: u64, share: &mut HourlyShare, now: BootTime) -> u64 {
        let fresh = share.began.is_none_or(|began| now.since(began) >= HOUR);
        if fresh {
            *share = HourlyShare {
                began: Some(now),
                removed: 0,
            };
        }
        let piece = kept
            .saturating_sub(self.records)
            .min(PIECE_ROWS)
            .min(self.hourly().saturating_sub(share.removed));
        share.removed = share.removed.saturating_add(piece);
        piece
    }

    /// Rows a commit that brings the history to `kept` records must itself remove.
    pub(super) fn forced(self, kept: u64) -> u64 {
        kept.saturating_sub(self.records.saturating_mul(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETENTION: Retention = Retention { records: 5000 };

    fn at(seconds: u64) -> BootTime {
        BootTime(seconds * 1_000_000_000)
    }

    #[test]
    fn removes_nothing_within_the_bound() {
        assert_eq!(
            RETENTION.idle_piece(5000, &mut HourlyShare::default(), at(9)),
            0
        );
    }

    #[test]
    fn removes_at_most_a_piece_at_once_and_never_below_the_bound() {
        let mut share = HourlyShare::default();
        assert_eq!(RETENTION.idle_piece(9000, &mut share, at(9)), PIECE_ROWS);
        assert_eq!(RETENTION.idle_piece(5003, &mut share, at(9)), 3);
    }

    #[test]
    fn removes_at_most_its_share_an_hour() {
        let mut share = HourlyShare::default();
        let hour: u64 = (0..100)
            .map(|_| RETENTION.idle_piece(9000, &mut share, at(9)))
            .sum();
        assert_eq!(hour, 500);
        assert_eq!(RETENTION.idle_piece(9000, &mut share, at(3608)), 0);
        assert_eq!(RETENTION.idle_piece(9000, &mut share, at(3609)), PIECE_ROWS);
    }

    #[test]
    fn a_commit_removes_what_is_beyond_twice_the_bound() {
        assert_eq!(RETENTION.forced(10_000), 0);
        assert_eq!(RETENTION.forced(10_007), 7);
    }
}

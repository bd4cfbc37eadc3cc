//! Growing pauses between tries.

use std::time::Duration;

/// Doubles from `first` to `cap`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    first: Duration,
    cap: Duration,
    next: Duration,
}

impl Backoff {
    pub(super) fn new(first: Duration, cap: Duration) -> Self {
        Self {
            first,
            cap,
            next: first,
        }
    }

    /// The pause before the next try.
    pub(super) fn advance(&mut self) -> Duration {
        let pause = self.next.min(self.cap);
        self.next = pause.saturating_mul(2);
        pause
    }

    pub(super) fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_to_the_cap_and_starts_over_after_a_reset() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(500));
        let pauses: Vec<u128> = (0..5).map(|_| backoff.advance().as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400, 500, 500]);
        backoff.reset();
        assert_eq!(backoff.advance(), Duration::from_millis(100));
    }
}

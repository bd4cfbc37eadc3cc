//! When to start a host again, and when to give up on one that has calls stuck. Pure: time is an
//! argument.

use std::time::Duration;

use super::super::moment::Moment;
use super::super::protocol::Stuck;

/// The first death costs no pause, the second this much, each further one twice as much.
const PAUSE_FIRST: Duration = Duration::from_millis(200);

/// Longest pause between a death and the next start.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// A host that lived this long owes nothing to the deaths before it.
const STABLE: Duration = Duration::from_secs(30);

/// Longest wait before a host with a stuck call is replaced again.
const PATIENCE_MAX: Duration = Duration::from_secs(600);

/// Growing pauses between deaths and starts.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    deaths: u32,
    started: Option<Moment>,
    not_before: Option<Moment>,
}

impl Pauses {
    pub(super) fn started(&mut self, now: Moment) {
        self.started = Some(now);
    }

    pub(super) fn died(&mut self, now: Moment) {
        if self
            .started
            .take()
            .is_some_and(|started| now.since(started) >= STABLE)
        {
            self.deaths = 0;
        }
        let pause = match self.deaths {
            0 => Duration::ZERO,
            deaths => grown(PAUSE_FIRST, deaths - 1, PAUSE_MAX),
        };
        self.deaths = self.deaths.saturating_add(1);
        self.not_before = Some(now.after(pause));
    }

    /// The earliest moment for the next start, if that lies ahead.
    pub(super) fn pending(&self, now: Moment) -> Option<Moment> {
        self.not_before.filter(|moment| *moment > now)
    }
}

/// Decides when stuck calls cost the host its life.
#[derive(Debug)]
pub(super) struct Patience {
    first: Duration,
    replacements: u32,
    last: Option<Moment>,
}

impl Patience {
    pub(super) fn new(first: Duration) -> Self {
        Self {
            first,
            replacements: 0,
            last: None,
        }
    }

    /// True when the host is to be replaced because of what one of its reports says. A report
    /// without a stuck call forgives everything before it.
    pub(super) fn is_over(&mut self, stuck: Stuck, now: Moment) -> bool {
        if stuck.threads == 0 {
            // A replaced host starts clean, so only quiet that lasts counts.
            if self.last.is_none_or(|last| now.since(last) >= self.wait()) {
                self.replacements = 0;
            }
            return false;
        }
        let rested = self.last.is_none_or(|last| now.since(last) >= self.wait());
        let longest = Duration::from_millis(stuck.longest_ms);
        let over = rested && (stuck.over_bound || longest >= self.wait());
        if over {
            self.replacements = self.replacements.saturating_add(1);
            self.last = Some(now);
        }
        over
    }

    fn wait(&self) -> Duration {
        grown(self.first, self.replacements, PATIENCE_MAX)
    }
}

fn grown(first: Duration, doublings: u32, limit: Duration) -> Duration {
    let factor = 1_u32.checked_shl(doublings.min(20)).unwrap_or(u32::MAX);
    first.saturating_mul(factor).min(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_millis(seconds * 1000)
    }

    fn pause_after_death(pauses: &mut Pauses, now: Moment) -> Duration {
        pauses.died(now);
        pauses
            .pending(now)
            .map_or(Duration::ZERO, |moment| moment.since(now))
    }

    #[test]
    fn the_first_death_costs_nothing_and_each_further_one_twice_as_much_up_to_five_seconds() {
        let mut pauses = Pauses::default();
        let waits: Vec<_> = (0..8)
            .map(|round| {
                pauses.started(at(round));
                pause_after_death(&mut pauses, at(round)).as_millis()
            })
            .collect();
        assert_eq!(waits, [0, 200, 400, 800, 1600, 3200, 5000, 5000]);
    }

    #[test]
    fn a_host_that_lived_long_clears_the_count() {
        let mut pauses = Pauses::default();
        for round in 0..4 {
            pauses.started(at(round));
            pauses.died(at(round));
        }
        pauses.started(at(10));
        assert_eq!(pause_after_death(&mut pauses, at(40)), Duration::ZERO);
    }

    #[test]
    fn a_death_while_none_runs_counts_too() {
        let mut pauses = Pauses::default();
        assert_eq!(pause_after_death(&mut pauses, at(1)), Duration::ZERO);
        assert_eq!(
            pause_after_death(&mut pauses, at(2)),
            Duration::from_millis(200)
        );
    }

    fn stuck(threads: usize, seconds: u64, over_bound: bool) -> Stuck {
        Stuck {
            threads,
            longest_ms: seconds * 1000,
            over_bound,
        }
    }

    #[test]
    fn a_long_hang_is_answered_after_thirty_seconds_then_after_sixty_then_after_more() {
        let mut patience = Patience::new(Duration::from_secs(30));
        assert!(!patience.is_over(stuck(1, 29, false), at(100)));
        assert!(patience.is_over(stuck(1, 30, false), at(101)));
        assert!(!patience.is_over(stuck(1, 45, false), at(150)));
        assert!(patience.is_over(stuck(1, 60, false), at(161)));
        assert!(!patience.is_over(stuck(1, 100, false), at(261)));
        assert!(patience.is_over(stuck(1, 120, false), at(281)));
    }

    #[test]
    fn too_many_stuck_threads_are_answered_at_once_but_not_over_and_over() {
        let mut patience = Patience::new(Duration::from_secs(30));
        assert!(patience.is_over(stuck(9, 1, true), at(100)));
        assert!(!patience.is_over(stuck(9, 1, true), at(102)));
        assert!(patience.is_over(stuck(9, 1, true), at(160)));
    }

    #[test]
    fn lasting_quiet_brings_the_first_patience_back() {
        let mut patience = Patience::new(Duration::from_secs(30));
        assert!(patience.is_over(stuck(1, 30, false), at(100)));
        assert!(!patience.is_over(stuck(0, 0, false), at(101)));
        assert!(!patience.is_over(stuck(1, 30, false), at(140)));
        assert!(!patience.is_over(stuck(0, 0, false), at(161)));
        assert!(patience.is_over(stuck(1, 30, false), at(200)));
    }
}

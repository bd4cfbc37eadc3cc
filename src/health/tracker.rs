//! The state of one chip.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::domain::chip::HealthReading;
use crate::domain::driver_code::words;
use crate::domain::fault::{Assertion, FaultCode, FaultEvent, HealthLevel, Severity};
use crate::domain::time::BootTime;

/// Codes kept per chip; the driver lists at most this many.
const CODES_MAX: usize = 128;

/// Readings that prove nothing by themselves count as bad after so many in a row: a driver fails or
/// delays a call now and then, and each wrong alarm keeps a chip out for the whole hold-down.
const DOUBTS_MAX: u32 = 3;

/// The code with which the driver says that a card is gone.
const LOST: i32 = -8012;

/// Choices of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthPolicy {
    /// Quiet time before a recovered chip is offered again.
    pub hold_down: Duration,
    /// How long an event's fault stands when no recovery event comes and samples are good: the
    /// driver's code list may lag behind its events.
    pub event_grace: Duration,
}

impl Default for HealthPolicy {
    fn default() -> Self {
        Self {
            hold_down: Duration::from_secs(60),
            event_grace: Duration::from_secs(5),
        }
    }
}

/// A chip left or re-entered the offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// Whether it may be offered now.
    pub healthy: bool,
    /// Why, for people.
    pub reason: String,
    /// Codes known at that moment.
    pub codes: Vec<FaultCode>,
}

/// What is known of one chip's health.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChipHealth {
    healthy: bool,
    reason: String,
    sampled: Option<(HealthReading, BootTime)>,
    sampled_codes: Vec<FaultCode>,
    doubts: u32,
    events: BTreeMap<FaultCode, ActiveEvent>,
    last_bad: Option<BootTime>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ActiveEvent {
    severity: Severity,
    at: BootTime,
}

impl Default for ChipHealth {
    fn default() -> Self {
        Self {
            healthy: false,
            reason: "its health was not read yet".to_owned(),
            sampled: None,
            sampled_codes: Vec::new(),
            doubts: 0,
            events: BTreeMap::new(),
            last_bad: None,
        }
    }
}

impl ChipHealth {
    /// Whether the chip may be offered.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.healthy
    }

    /// Why it may not; empty when it may.
    #[must_use]
    pub fn reason(&self) -> &str {
        if self.healthy { "" } else { &self.reason }
    }

    /// Active codes from samples and events, sorted.
    #[must_use]
    pub fn codes(&self) -> Vec<FaultCode> {
        let mut codes = self.sampled_codes.clone();
        codes.extend(self.events.keys().copied());
        codes.sort_unstable();
        codes.dedup();
        codes.truncate(CODES_MAX);
        codes
    }

    /// Takes a sample.
    pub fn sample(
        &mut self,
        reading: &HealthReading,
        codes: &[FaultCode],
        now: BootTime,
        policy: &HealthPolicy,
    ) -> Option<Transition> {
        if is_doubtful(reading) {
            self.doubts = self.doubts.saturating_add(1);
            if self.healthy && self.doubts < DOUBTS_MAX {
                return None;
            }
        } else {
            self.doubts = 0;
        }
        self.sampled = Some((reading.clone(), now));
        self.sampled_codes = codes.iter().copied().take(CODES_MAX).collect();
        if bad_reading(reading).is_none() {
            let sampled_codes = &self.sampled_codes;
            self.events.retain(|code, event| {
                sampled_codes.contains(code) || now.since(event.at) < policy.event_grace
            });
        }
        self.judge(now, policy)
    }

    /// The driver as a whole has been silent for longer than its grace: no doubt is left.
    pub fn silence(&mut self, now: BootTime, policy: &HealthPolicy) -> Option<Transition> {
        self.doubts = DOUBTS_MAX;
        self.sample(&HealthReading::NoAnswer, &[], now, policy)
    }

    /// Takes an event. A recovery only clears its code: the chip comes back by a later sample.
    pub fn event(
        &mut self,
        event: &FaultEvent,
        now: BootTime,
        policy: &HealthPolicy,
    ) -> Option<Transition> {
        if event.code == FaultCode(0) {
            return None;
        }
        match event.assertion {
            Assertion::Recovered => {
                self.events.remove(&event.code);
            }
            Assertion::Occurred | Assertion::OneOff | Assertion::Unknown(_) => {
                if self.events.len() < CODES_MAX || self.events.contains_key(&event.code) {
                    let active = ActiveEvent {
                        severity: event.severity,
                        at: now,
                    };
                    self.events.insert(event.code, active);
                }
            }
        }
        self.judge(now, policy)
    }

    fn judge(&mut self, now: BootTime, policy: &HealthPolicy) -> Option<Transition> {
        if let Some(reason) = self.bad_sign() {
            self.last_bad = Some(now);
            let changed = self.healthy;
            self.healthy = false;
            self.reason = reason;
            return changed.then(|| self.transition());
        }
        if self.healthy {
            return None;
        }
        let (_, sampled_at) = self.sampled.as_ref()?;
        if let Some(bad) = self.last_bad {
            // Only a sample taken after the last bad sign speaks for the chip.
            if *sampled_at <= bad || now.since(bad) < policy.hold_down {
                "recovered; held back until it stays well".clone_into(&mut self.reason);
                return None;
            }
        }
        self.healthy = true;
        let recovered = self.last_bad.is_some();
        let reason = if recovered {
            "recovered"
        } else {
            "well at first sight"
        };
        reason.clone_into(&mut self.reason);
        Some(self.transition())
    }

    fn bad_sign(&self) -> Option<String> {
        let event = self
            .events
            .iter()
            .filter(|(_, event)| event.severity >= Severity::MAJOR)
            .max_by_key(|(_, event)| event.severity);
        if let Some((code, event)) = event {
            return Some(format!("fault {code}, severity {}", event.severity.0));
        }
        self.sampled
            .as_ref()
            .and_then(|(reading, _)| bad_reading(reading))
    }

    fn transition(&self) -> Transition {
        Transition {
            healthy: self.healthy,
            reason: self.reason.clone(),
            codes: self.codes(),
        }
    }
}

fn is_doubtful(reading: &HealthReading) -> bool {
    match reading {
        HealthReading::Failed(_) | HealthReading::NoAnswer => true,
        HealthReading::Level(_) | HealthReading::Lost => false,
    }
}

fn bad_reading(reading: &HealthReading) -> Option<String> {
    match reading {
        HealthReading::Level(HealthLevel::Normal | HealthLevel::Minor) => None,
        HealthReading::Level(HealthLevel::Major) => Some("driver health 2 (major)".to_owned()),
        HealthReading::Level(HealthLevel::Critical) => {
            Some("driver health 3 (critical)".to_owned())
        }
        HealthReading::Level(HealthLevel::Unknown) => Some("driver health unknown".to_owned()),
        HealthReading::Level(HealthLevel::Absent) => Some("driver health: absent".to_owned()),
        HealthReading::Level(HealthLevel::Unlisted(level)) => {
            Some(format!("driver health {level}, which no manual lists"))
        }
        HealthReading::Lost => Some(format!("card lost (driver code {})", told(LOST))),
        HealthReading::Failed(code) => Some(format!(
            "health cannot be read (driver code {})",
            told(*code)
        )),
        HealthReading::NoAnswer => Some("the driver call for this chip does not return".to_owned()),
    }
}

fn told(code: i32) -> String {
    format!("{code}, {}", words(code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::LogicId;

    const NORMAL: HealthReading = HealthReading::Level(HealthLevel::Normal);
    const CRITICAL: HealthReading = HealthReading::Level(HealthLevel::Critical);
    const CODE: FaultCode = FaultCode(0x80E0_1801);

    fn at(seconds: u64) -> BootTime {
        BootTime(seconds * 1_000_000_000)
    }

    fn event(assertion: Assertion, severity: u8) -> FaultEvent {
        FaultEvent {
            logic: LogicId(0),
            code: CODE,
            severity: Severity(severity),
            assertion,
        }
    }

    fn well_chip() -> (ChipHealth, HealthPolicy) {
        let policy = HealthPolicy::default();
        let mut chip = ChipHealth::default();
        chip.sample(&NORMAL, &[], at(1), &policy);
        (chip, policy)
    }

    #[test]
    fn a_chip_is_not_offered_before_its_first_sample() {
        assert!(!ChipHealth::default().is_healthy());
    }

    #[test]
    fn a_chip_well_at_first_sight_is_offered_without_hold_down() {
        assert!(well_chip().0.is_healthy());
    }

    #[test]
    fn a_bad_sample_takes_the_chip_out_at_once() {
        for reading in [
            CRITICAL,
            HealthReading::Level(HealthLevel::Major),
            HealthReading::Level(HealthLevel::Unknown),
            HealthReading::Level(HealthLevel::Absent),
            HealthReading::Level(HealthLevel::Unlisted(9)),
            HealthReading::Lost,
        ] {
            let (mut chip, policy) = well_chip();
            let change = chip
                .sample(&reading, &[], at(2), &policy)
                .expect("a transition");
            assert!(!change.healthy, "{reading:?}");
        }
    }

    #[test]
    fn failed_and_overdue_calls_count_after_three_in_a_row() {
        for reading in [HealthReading::Failed(-8005), HealthReading::NoAnswer] {
            let (mut chip, policy) = well_chip();
            for second in [2, 3, 5, 6] {
                assert_eq!(chip.sample(&reading, &[], at(second), &policy), None);
                if second == 3 {
                    chip.sample(&NORMAL, &[], at(4), &policy);
                }
            }
            let change = chip
                .sample(&reading, &[], at(7), &policy)
                .expect("a transition");
            assert!(!change.healthy, "{reading:?}");
        }
    }

    #[test]
    fn a_chip_that_was_never_well_needs_no_doubts() {
        let policy = HealthPolicy::default();
        let mut chip = ChipHealth::default();
        chip.sample(&HealthReading::NoAnswer, &[], at(1), &policy);
        assert!(
            chip.reason().contains("does not return"),
            "{}",
            chip.reason()
        );
    }

    #[test]
    fn a_driver_code_is_told_with_its_words() {
        let policy = HealthPolicy::default();
        for (reading, part) in [
            (HealthReading::Failed(-8017), "driver code -8017, upgrading"),
            (HealthReading::Failed(-9), "driver code -9, a code"),
            (HealthReading::Lost, "driver code -8012, not ready"),
        ] {
            let mut chip = ChipHealth::default();
            chip.sample(&reading, &[], at(1), &policy);
            assert!(chip.reason().contains(part), "{}", chip.reason());
        }
    }

    #[test]
    fn a_minor_alarm_leaves_the_chip_in_the_pool() {
        let (mut chip, policy) = well_chip();
        let minor = HealthReading::Level(HealthLevel::Minor);
        assert_eq!(chip.sample(&minor, &[CODE], at(2), &policy), None);
        assert!(chip.is_healthy());
    }

    #[test]
    fn a_recovered_chip_waits_for_the_hold_down() {
        let (mut chip, policy) = well_chip();
        chip.sample(&CRITICAL, &[CODE], at(2), &policy);
        assert_eq!(chip.sample(&NORMAL, &[], at(3), &policy), None);
        assert_eq!(chip.sample(&NORMAL, &[], at(61), &policy), None);
        let change = chip
            .sample(&NORMAL, &[], at(62), &policy)
            .expect("back after 60 s");
        assert!(change.healthy);
    }

    #[test]
    fn flapping_gives_one_transition_per_hold_down() {
        let (mut chip, policy) = well_chip();
        let mut transitions = 0;
        for second in 2..300 {
            let reading = if second % 20 < 10 { CRITICAL } else { NORMAL };
            transitions += usize::from(chip.sample(&reading, &[], at(second), &policy).is_some());
        }
        assert_eq!(transitions, 1);
    }

    #[test]
    fn a_major_event_takes_the_chip_out_before_any_sample_shows_it() {
        let (mut chip, policy) = well_chip();
        let change = chip.event(&event(Assertion::Occurred, 2), at(2), &policy);
        assert!(!change.expect("a transition").healthy);
        assert_eq!(chip.codes(), vec![CODE]);
    }

    #[test]
    fn minor_events_and_code_zero_change_nothing() {
        let (mut chip, policy) = well_chip();
        assert_eq!(
            chip.event(&event(Assertion::Occurred, 1), at(2), &policy),
            None
        );
        let zero = FaultEvent {
            code: FaultCode(0),
            ..event(Assertion::Occurred, 3)
        };
        assert_eq!(chip.event(&zero, at(2), &policy), None);
        assert!(chip.is_healthy());
    }

    #[test]
    fn a_recovery_event_needs_a_later_good_sample() {
        let (mut chip, policy) = well_chip();
        chip.event(&event(Assertion::Occurred, 3), at(2), &policy);
        chip.event(&event(Assertion::Recovered, 3), at(100), &policy);
        assert!(!chip.is_healthy());
        assert!(
            chip.sample(&NORMAL, &[], at(101), &policy)
                .expect("back")
                .healthy
        );
    }

    #[test]
    fn a_lost_recovery_event_is_repaired_by_samples() {
        let (mut chip, policy) = well_chip();
        chip.event(&event(Assertion::Occurred, 3), at(2), &policy);
        chip.sample(&NORMAL, &[], at(4), &policy);
        assert_eq!(
            chip.codes(),
            vec![CODE],
            "the code list may lag behind the event"
        );
        chip.sample(&NORMAL, &[], at(8), &policy);
        assert_eq!(chip.codes(), vec![]);
        assert!(
            chip.sample(&NORMAL, &[], at(70), &policy)
                .expect("back")
                .healthy
        );
    }
}

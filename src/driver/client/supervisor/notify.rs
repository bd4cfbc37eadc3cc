//! Notices on their way to the agent through a bounded channel.
//!
//! Invariant: a fault that does not fit is counted and the count told later; start and end of a host
//! are kept until they fit.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use crate::ports::HardwareNotice;

/// Starts and ends that wait; more than this means that nobody listens.
const KEPT_MAX: usize = 64;

/// How soon to try again after the channel was full.
const RETRY: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(super) struct Notices {
    channel: mpsc::Sender<HardwareNotice>,
    kept: VecDeque<HardwareNotice>,
    lost: u64,
}

impl Notices {
    pub(super) fn new(channel: mpsc::Sender<HardwareNotice>) -> Self {
        Self {
            channel,
            kept: VecDeque::new(),
            lost: 0,
        }
    }

    pub(super) fn push(&mut self, notice: HardwareNotice) {
        self.flush();
        if !self.kept.is_empty() {
            self.keep(notice);
            return;
        }
        match self.channel.try_send(notice) {
            Ok(()) | Err(TrySendError::Closed(_)) => {}
            Err(TrySendError::Full(notice)) => self.keep(notice),
        }
    }

    /// Counts events that were lost on the way here.
    pub(super) fn lost(&mut self, count: u64) {
        self.lost = self.lost.saturating_add(count);
        self.flush();
    }

    /// Passes on what can be passed on.
    pub(super) fn flush(&mut self) {
        while let Some(notice) = self.kept.pop_front() {
            match self.channel.try_send(notice) {
                Ok(()) | Err(TrySendError::Closed(_)) => {}
                Err(TrySendError::Full(notice)) => {
                    self.kept.push_front(notice);
                    return;
                }
            }
        }
        if self.lost > 0 {
            match self
                .channel
                .try_send(HardwareNotice::FaultsDropped(self.lost))
            {
                Ok(()) | Err(TrySendError::Closed(_)) => self.lost = 0,
                Err(TrySendError::Full(_)) => {}
            }
        }
    }

    /// When [`Self::flush`] should be called again, if anything waits.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        (self.lost > 0 || !self.kept.is_empty()).then_some(RETRY)
    }

    fn keep(&mut self, notice: HardwareNotice) {
        match notice {
            HardwareNotice::Fault(_) => self.lost = self.lost.saturating_add(1),
            HardwareNotice::FaultsDropped(count) => self.lost = self.lost.saturating_add(count),
            HardwareNotice::HostEnded { .. } | HardwareNotice::HostStarted { .. } => {
                if self.kept.len() >= KEPT_MAX {
                    self.kept.pop_front();
                }
                self.kept.push_back(notice);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fault::{Assertion, FaultCode, FaultEvent, Severity};
    use crate::domain::ids::LogicId;

    fn fault(code: u32) -> HardwareNotice {
        HardwareNotice::Fault(FaultEvent {
            logic: LogicId(0),
            code: FaultCode(code),
            severity: Severity::MAJOR,
            assertion: Assertion::Occurred,
        })
    }

    fn drained(channel: &mut mpsc::Receiver<HardwareNotice>) -> Vec<HardwareNotice> {
        std::iter::from_fn(|| channel.try_recv().ok()).collect()
    }

    #[test]
    fn faults_that_do_not_fit_are_counted_and_starts_are_kept() {
        let (sender, mut receiver) = mpsc::channel(2);
        let mut notices = Notices::new(sender);
        for code in 1..=4 {
            notices.push(fault(code));
        }
        let started = HardwareNotice::HostStarted { epoch: 2, pid: 9 };
        notices.push(started.clone());
        assert!(notices.retry_after().is_some());
        assert_eq!(drained(&mut receiver), [fault(1), fault(2)]);
        notices.flush();
        assert_eq!(
            drained(&mut receiver),
            [started, HardwareNotice::FaultsDropped(2)]
        );
        assert_eq!(notices.retry_after(), None);
    }

    #[test]
    fn a_listener_that_left_costs_nothing() {
        let (sender, receiver) = mpsc::channel(1);
        drop(receiver);
        let mut notices = Notices::new(sender);
        notices.push(fault(1));
        notices.lost(5);
        assert_eq!(notices.retry_after(), None);
    }
}

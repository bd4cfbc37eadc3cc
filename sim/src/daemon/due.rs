//! The thread by which time passes in the machine: it ends starts of chips when they are due.

use std::sync::PoisonError;
use std::time::Duration;

use super::{Daemon, DaemonError};
use crate::clock;

/// Nothing is due for so long; the thread is woken by every change.
const IDLE: Duration = Duration::from_secs(3600);

impl Daemon {
    /// Runs for as long as the process does.
    pub(super) fn end_what_is_due(&self) {
        loop {
            self.wait_until_due();
            let mut shown = self.shown();
            let mut hardware = self.hardware();
            if hardware.settle(clock::now()) {
                // The next change shows what could not be shown now.
                let _shown: Result<(), DaemonError> = shown.show(&hardware);
                drop(hardware);
                drop(shown);
                self.changed.notify_all();
            }
        }
    }

    fn wait_until_due(&self) {
        let mut hardware = self.hardware();
        while !hardware.has_unseen_start() {
            let now = clock::now().instant;
            let wait = hardware
                .next_due()
                .map_or(IDLE, |due| due.saturating_duration_since(now));
            if wait.is_zero() {
                return;
            }
            let woken = self.changed.wait_timeout(hardware, wait);
            hardware = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

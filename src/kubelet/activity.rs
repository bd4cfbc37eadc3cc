//! Whether kubelet is in the middle of admitting a pod. A pod-resources List that overlaps Allocate
//! can make kubelet give one id to two pods, so periodic Lists wait for quiet.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::domain::time::BootTime;
use crate::ports::Clock;

/// Shared view of the Allocate and GetPreferredAllocation calls in flight. Clones share one state.
#[derive(Clone)]
pub struct KubeletActivity {
    clock: Arc<dyn Clock>,
    state: Arc<watch::Sender<Calls>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Calls {
    begun: u64,
    in_flight: u64,
    last_ended: BootTime,
}

impl KubeletActivity {
    /// No call so far; quiet since the start of time.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            state: Arc::new(watch::channel(Calls::default()).0),
        }
    }

    /// When the last call ended; `None` while one is in flight.
    #[must_use]
    pub fn quiet_since(&self) -> Option<BootTime> {
        let calls = *self.state.borrow();
        (calls.in_flight == 0).then_some(calls.last_ended)
    }

    /// Counts the calls begun so far. An equal count before and after a List proves that none began
    /// meanwhile.
    #[must_use]
    pub fn calls_begun(&self) -> u64 {
        self.state.borrow().begun
    }

    /// Returns once no call has been in flight for `quiet`. Has no deadline; cancel safe.
    pub async fn wait_quiet(&self, quiet: Duration) {
        let mut calls_seen = self.state.subscribe();
        loop {
            let calls = *calls_seen.borrow_and_update();
            if calls.in_flight > 0 {
                if calls_seen.changed().await.is_err() {
                    return;
                }
                continue;
            }
            let passed = self.clock.now().boot_time.since(calls.last_ended);
            let Some(rest) = quiet.checked_sub(passed).filter(|rest| !rest.is_zero()) else {
                return;
            };
            tokio::select! {
                () = tokio::time::sleep(rest) => {}
                changed = calls_seen.changed() => if changed.is_err() { return },
            }
        }
    }

    /// Counts one call until the guard is dropped.
    pub(super) fn begin(&self) -> CallGuard {
        self.state.send_modify(|calls| {
            calls.begun = calls.begun.saturating_add(1);
            calls.in_flight = calls.in_flight.saturating_add(1);
        });
        CallGuard(self.clone())
    }
}

impl fmt::Debug for KubeletActivity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KubeletActivity")
            .field(&*self.state.borrow())
            .finish()
    }
}

/// One call in flight.
#[derive(Debug)]
pub(super) struct CallGuard(KubeletActivity);

impl Drop for CallGuard {
    fn drop(&mut self) {
        let now = self.0.clock.now().boot_time;
        self.0.state.send_modify(|calls| {
            calls.in_flight = calls.in_flight.saturating_sub(1);
            calls.last_ended = calls.last_ended.max(now);
        });
    }
}

#[cfg(test)]
pub(super) mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::domain::time::{BootId, Stamp};

    /// Boot time that follows tokio's (paused) clock.
    pub(in crate::kubelet) struct TokioClock(tokio::time::Instant);

    impl TokioClock {
        pub(in crate::kubelet) fn start() -> Arc<dyn Clock> {
            Arc::new(Self(tokio::time::Instant::now()))
        }
    }

    impl Clock for TokioClock {
        fn now(&self) -> Stamp {
            Stamp {
                boot_id: BootId(Uuid::nil()),
                boot_time: BootTime(1_000_000_000).plus(self.0.elapsed()),
                utc_ns: 0,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn is_quiet_at_once_when_nothing_was_ever_asked() {
        let activity = KubeletActivity::new(TokioClock::start());
        activity.wait_quiet(Duration::from_secs(1)).await;
        assert_eq!(activity.quiet_since(), Some(BootTime(0)));
    }

    #[tokio::test(start_paused = true)]
    async fn l_1_waits_a_full_second_after_the_last_of_overlapping_calls() {
        let activity = KubeletActivity::new(TokioClock::start());
        let first = activity.begin();
        let second = activity.begin();
        assert_eq!(activity.quiet_since(), None);
        let begun = tokio::time::Instant::now();
        let waiter = activity.clone();
        let wait = async move {
            waiter.wait_quiet(Duration::from_secs(1)).await;
            begun.elapsed()
        };
        let calls = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            drop(first);
            tokio::time::sleep(Duration::from_millis(300)).await;
            drop(second);
            tokio::time::sleep(Duration::from_millis(500)).await;
            drop(activity.begin());
        };
        let (passed, ()) = tokio::join!(wait, calls);
        assert!(passed >= Duration::from_millis(2100), "{passed:?}");
        assert!(passed < Duration::from_millis(2200), "{passed:?}");
        assert_eq!(activity.calls_begun(), 3);
    }
}

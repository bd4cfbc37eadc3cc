//! The agent's look at itself, for the health server.
//!
//! *Stuck* is only what a restart could mend: an owner that answers nobody, a registration that does
//! not come about although kubelet is there, a watcher of the driver that stands still. A missing driver,
//! a node without chips, a failing store or an absent kubelet are *shortcomings*: a restart would mend
//! none of them and cost what the agent still does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::start::StartError;
use crate::domain::ids::ResourceName;
use crate::domain::offer::Offer;
use crate::domain::time::BootTime;
use crate::domain::vitals::Vitals;
use crate::health_http::{self, Endpoint};
use crate::kubelet::{KubeletStatus, RegistrationPhase};
use crate::ports::{Administration, Clock};

/// Pause between two looks.
const LOOK: Duration = Duration::from_secs(2);

/// Longest wait for the owner's answer in one look.
const ANSWER: Duration = Duration::from_secs(6);

/// An owner works through a full queue of commits to a failing store in less.
const OWNER_SILENT: Duration = Duration::from_secs(60);

/// Far longer than kubelet takes to start, and than the longest pause between two tries.
const UNREGISTERED: Duration = Duration::from_secs(120);

/// What the watcher of the driver may take beside two initialisations.
const DRIVER_SLACK: Duration = Duration::from_secs(60);

/// Counts what a task gets done.
#[derive(Clone, Debug, Default)]
pub(super) struct Beats(Arc<AtomicU64>);

impl Beats {
    pub(super) fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The parts of a running agent that are looked at.
pub(super) struct Observed<A> {
    pub(super) administration: A,
    pub(super) registrations: watch::Receiver<KubeletStatus>,
    pub(super) offers: watch::Receiver<Arc<Offer>>,
    pub(super) driver: Beats,
}

/// Waits for the running agent, when anybody asks for its health.
pub(super) struct Pulse<A>(Option<oneshot::Sender<Observed<A>>>);

impl<A> Pulse<A> {
    pub(super) fn hand_over(self, observed: Observed<A>) {
        if let Some(waiting) = self.0 {
            // Nobody waits any more when the agent is being stopped already.
            drop(waiting.send(observed));
        }
    }
}

/// Serves health from now on where an endpoint is given, and looks at the running agent once it is
/// handed over.
///
/// # Errors
/// When the address cannot be had.
pub(super) async fn begin<A: Administration>(
    endpoint: Option<Endpoint>,
    driver_init: Duration,
    clock: &Arc<dyn Clock>,
    tracker: &TaskTracker,
    cancel: &CancellationToken,
) -> Result<Pulse<A>, StartError> {
    let Some(endpoint) = endpoint else {
        return Ok(Pulse(None));
    };
    let clock = Arc::clone(clock);
    let listener = health_http::bind(&endpoint.addresses).await?;
    let begun = clock.now().boot_time;
    let (vitals, seen) = watch::channel(starting(begun));
    let (running, handed_over) = oneshot::channel();
    health_http::serve(
        listener,
        endpoint.tls,
        seen,
        Arc::clone(&clock),
        tracker,
        cancel,
    );
    let cancel = cancel.clone();
    tracker.spawn(async move {
        let pulse = follow(handed_over, &vitals, driver_init, &*clock);
        cancel.run_until_cancelled(pulse).await;
    });
    Ok(Pulse(Some(running)))
}

fn starting(at: BootTime) -> Vitals {
    Vitals {
        at,
        stuck: Vec::new(),
        shortcomings: vec!["the agent is starting; it may wait for the store".to_owned()],
    }
}

async fn follow<A: Administration>(
    mut handed_over: oneshot::Receiver<Observed<A>>,
    vitals: &watch::Sender<Vitals>,
    driver_init: Duration,
    clock: &dyn Clock,
) {
    let mut tick = interval(LOOK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let observed = loop {
        tokio::select! {
            observed = &mut handed_over => match observed {
                Ok(observed) => break observed,
                // The start failed, and with it ends everything.
                Err(_) => return,
            },
            _ = tick.tick() => {
                vitals.send_replace(starting(clock.now().boot_time));
            }
        }
    };
    let mut judge = Judge::new(clock.now().boot_time, driver_init);
    loop {
        tick.tick().await;
        let answer = match timeout(ANSWER, observed.administration.status()).await {
            Ok(Ok(document)) => Ok(document.shortcomings),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("the owner gave no answer within {ANSWER:?}")),
        };
        let offered = observed.offers.borrow().resources.keys().cloned().collect();
        let seen = Seen {
            answer,
            offered,
            kubelet: observed.registrations.borrow().clone(),
            driver_beats: observed.driver.count(),
        };
        vitals.send_replace(judge.judge(clock.now().boot_time, seen));
    }
}

/// One look.
struct Seen {
    /// The owner's shortcomings, or why there was no answer.
    answer: Result<Vec<String>, String>,
    offered: Vec<ResourceName>,
    kubelet: KubeletStatus,
    driver_beats: u64,
}

/// What must be remembered between looks.
struct Judge {
    driver_limit: Duration,
    answered: BootTime,
    unregistered: BTreeMap<ResourceName, BootTime>,
    driver_beat: (u64, BootTime),
}

impl Judge {
    fn new(now: BootTime, driver_init: Duration) -> Self {
        Self {
            driver_limit: driver_init * 2 + DRIVER_SLACK,
            answered: now,
            unregistered: BTreeMap::new(),
            driver_beat: (0, now),
        }
    }

    fn judge(&mut self, now: BootTime, seen: Seen) -> Vitals {
        let mut stuck = Vec::new();
        let shortcomings = match seen.answer {
            Ok(shortcomings) => {
                self.answered = now;
                shortcomings
            }
            Err(why) => {
                let silent = now.since(self.answered);
                if silent > OWNER_SILENT {
                    stuck.push(format!(
                        "the owner of the ledger gave no answer for {} s: {why}",
                        silent.as_secs()
                    ));
                }
                vec![why]
            }
        };
        stuck.extend(self.dead_registrations(now, &seen.offered, &seen.kubelet));
        if seen.driver_beats != self.driver_beat.0 {
            self.driver_beat = (seen.driver_beats, now);
        }
        let still = now.since(self.driver_beat.1);
        if still > self.driver_limit {
            stuck.push(format!(
                "the watcher of the driver stands still for {} s",
                still.as_secs()
            ));
        }
        Vitals {
            at: now,
            stuck,
            shortcomings,
        }
    }

    /// Kubelet is there, and yet it does not read a list for long.
    fn dead_registrations(
        &mut self,
        now: BootTime,
        offered: &[ResourceName],
        kubelet: &KubeletStatus,
    ) -> Vec<String> {
        let reachable = kubelet.kubelet_seen && kubelet.directory_problem.is_none();
        let is_dead = |resource: &ResourceName| {
            let phase = kubelet.resources.get(resource).map(|status| status.phase);
            // A killed kubelet leaves its socket: the one that waits has found nobody behind it.
            let well = [
                RegistrationPhase::Watched,
                RegistrationPhase::WaitingForKubelet,
            ];
            reachable && !phase.is_some_and(|phase| well.contains(&phase))
        };
        self.unregistered
            .retain(|resource, _| offered.contains(resource) && is_dead(resource));
        let mut stuck = Vec::new();
        for resource in offered.iter().filter(|resource| is_dead(resource)) {
            let since = *self.unregistered.entry(resource.clone()).or_insert(now);
            let lasts = now.since(since);
            if lasts > UNREGISTERED {
                let status = kubelet.resources.get(resource);
                let cause = status.and_then(|status| status.last_error.clone());
                stuck.push(format!(
                    "{resource} is not registered with kubelet for {} s: {}",
                    lasts.as_secs(),
                    cause.as_deref().unwrap_or("no failure was reported")
                ));
            }
        }
        stuck
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubelet::ResourceStatus;

    fn resource() -> ResourceName {
        ResourceName::new("huawei.com/Ascend910").unwrap()
    }

    fn kubelet(phase: RegistrationPhase) -> KubeletStatus {
        let line = ResourceStatus {
            phase,
            since: BootTime(0),
            generation: None,
            registrations: 0,
            socket: None,
            last_error: Some("refused".to_owned()),
            delivered_version: None,
        };
        KubeletStatus {
            directory_problem: None,
            kubelet_seen: true,
            resources: BTreeMap::from([(resource(), line)]),
        }
    }

    /// A node whose owner, kubelet and driver are well.
    fn well(beats: u64) -> Seen {
        Seen {
            answer: Ok(Vec::new()),
            offered: vec![resource()],
            kubelet: kubelet(RegistrationPhase::Watched),
            driver_beats: beats,
        }
    }

    fn at(seconds: u64) -> BootTime {
        BootTime(0).plus(Duration::from_secs(seconds))
    }

    fn judge() -> Judge {
        Judge::new(at(0), Duration::from_secs(120))
    }

    #[test]
    fn an_agent_that_is_well_is_never_stuck() {
        let mut judge = judge();
        for round in 0..100 {
            let vitals = judge.judge(at(round * 10), well(round));
            assert!(vitals.stuck.is_empty() && vitals.shortcomings.is_empty());
        }
    }

    #[test]
    fn a_silent_owner_is_a_shortcoming_at_once_and_stuck_after_a_minute() {
        let mut judge = judge();
        let silent = |beats| Seen {
            answer: Err("no answer".to_owned()),
            ..well(beats)
        };
        let early = judge.judge(at(60), silent(1));
        assert!(early.stuck.is_empty());
        assert_eq!(early.shortcomings, ["no answer"]);
        let late = judge.judge(at(61), silent(2));
        assert!(late.stuck[0].contains("for 61 s: no answer"), "{late:?}");
        assert!(judge.judge(at(62), well(3)).stuck.is_empty());
        assert!(judge.judge(at(100), silent(4)).stuck.is_empty());
    }

    #[test]
    fn w18_a_dead_registration_is_stuck_after_two_minutes_while_kubelet_is_there() {
        for dead in [
            kubelet(RegistrationPhase::Pausing),
            kubelet(RegistrationPhase::Registered),
            KubeletStatus {
                resources: BTreeMap::new(),
                ..kubelet(RegistrationPhase::Watched)
            },
        ] {
            let mut judge = judge();
            let seen = |beats| Seen {
                kubelet: dead.clone(),
                ..well(beats)
            };
            assert!(judge.judge(at(10), seen(1)).stuck.is_empty());
            assert!(judge.judge(at(130), seen(2)).stuck.is_empty());
            let late = judge.judge(at(131), seen(3));
            assert!(
                late.stuck[0].contains("Ascend910 is not registered"),
                "{late:?}"
            );
            assert!(judge.judge(at(132), well(4)).stuck.is_empty());
            assert!(
                judge.judge(at(133), seen(5)).stuck.is_empty(),
                "counted anew"
            );
        }
    }

    #[test]
    fn an_absent_kubelet_and_a_node_without_chips_are_no_reason_to_restart() {
        let mut judge = judge();
        for round in 0..100 {
            let seen = if round % 2 == 0 {
                let mut absent = kubelet(RegistrationPhase::WaitingForKubelet);
                // A killed kubelet leaves its socket.
                absent.kubelet_seen = round % 4 == 0;
                Seen {
                    kubelet: absent,
                    ..well(round)
                }
            } else {
                Seen {
                    answer: Ok(vec!["driver waiting".to_owned()]),
                    offered: Vec::new(),
                    kubelet: KubeletStatus::default(),
                    driver_beats: round,
                }
            };
            assert!(judge.judge(at(round * 10), seen).stuck.is_empty());
        }
    }

    #[test]
    fn a_watcher_of_the_driver_that_stands_still_is_stuck() {
        let mut judge = judge();
        assert!(judge.judge(at(10), well(7)).stuck.is_empty());
        assert!(judge.judge(at(310), well(7)).stuck.is_empty());
        let late = judge.judge(at(311), well(7));
        assert!(late.stuck[0].contains("stands still for 301 s"), "{late:?}");
        assert!(judge.judge(at(312), well(8)).stuck.is_empty());
    }
}

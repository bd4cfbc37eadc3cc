//! Following the driver: enumerate until the node is complete, sample, pass events on.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use crate::domain::chip::{Chip, ChipSample, DiePolicy, HealthReading, Inventory};
use crate::domain::family::ChipFamily;
use crate::ports::{Hardware, HardwareError, HardwareNotice};

use super::command::{Command, DriverTrouble};
use super::die_policy::WantedDiePolicy;
use super::host_paths::count_chip_nodes;

/// Pause between two tries to enumerate a node that is not complete: short at first, because chips
/// come up within minutes of a boot, then rare, because each try initialises the driver anew.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
const LOOK_AGAIN_LATER: Duration = Duration::from_secs(300);
const LOOK_OFTEN_FOR: Duration = Duration::from_secs(300);

/// Looking again takes at most one part in this many of the time.
const LOOK_SHARE: u32 = 10;

/// When every chip fails for so long, the driver is initialised anew, then after pauses that double up
/// to the cap: its tables do not survive a restart of the driver below it.
const RENEWAL_FIRST: Duration = Duration::from_secs(10);
const RENEWAL_CAP: Duration = Duration::from_secs(600);

/// Processes on chips are asked for in every n-th sample: they only matter to proofs, which take far
/// longer.
const PROCESSES_EVERY: u32 = 5;

/// How the watch is to look.
#[derive(Clone, Debug)]
pub(super) struct ChipPacing {
    pub(super) device_wait: Duration,
    pub(super) health_poll: Duration,
    /// Where a chip that arrives shows first: the driver counts it only when initialised anew.
    pub(super) dev_dir: String,
    /// For A3 chips.
    pub(super) die_policy: DiePolicy,
}

/// Runs until cancelled or until the owner is gone.
pub(super) async fn watch_chips<H: Hardware>(
    hardware: Arc<H>,
    owner: mpsc::Sender<Command>,
    notices: mpsc::Receiver<HardwareNotice>,
    pacing: ChipPacing,
    cancel: CancellationToken,
) {
    let watch = Watch {
        hardware,
        owner,
        notices,
        die_policy: WantedDiePolicy::new(pacing.die_policy),
        pacing,
        chips: 0,
        most_chips: 0,
        incomplete_since: None,
        nodes_counted: None,
        last_look: Duration::ZERO,
        failing_since: None,
        renewal_pause: RENEWAL_FIRST,
    };
    cancel.run_until_cancelled(watch.run()).await;
}

struct Watch<H> {
    hardware: Arc<H>,
    owner: mpsc::Sender<Command>,
    notices: mpsc::Receiver<HardwareNotice>,
    pacing: ChipPacing,
    die_policy: WantedDiePolicy,
    chips: usize,
    most_chips: usize,
    incomplete_since: Option<Instant>,
    nodes_counted: Option<Instant>,
    last_look: Duration,
    failing_since: Option<Instant>,
    renewal_pause: Duration,
}

/// The owner task is gone.
struct OwnerGone;

impl<H: Hardware> Watch<H> {
    async fn run(mut self) {
        // Ends only when the owner does, which is the end of the agent.
        let _ = self.follow().await;
    }

    async fn follow(&mut self) -> Result<(), OwnerGone> {
        self.wait_for_cards().await?;
        let mut poll = interval(self.pacing.health_poll);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut round = 0_u32;
        let mut looked = now();
        loop {
            let event = tokio::select! {
                _ = poll.tick() => None,
                notice = self.notices.recv() => Some(notice),
            };
            match event {
                None | Some(Some(HardwareNotice::FaultsDropped(_))) => {
                    self.sample(round).await?;
                    round = round.wrapping_add(1);
                }
                Some(Some(HardwareNotice::Fault(fault))) => {
                    self.tell(Command::Fault(fault)).await?;
                    poll.reset_immediately();
                }
                Some(Some(HardwareNotice::HostEnded { cause })) => {
                    tracing::debug!(cause, "enumerating again after the driver host ended");
                    self.enumerate_again(false).await?;
                    poll.reset_immediately();
                }
                Some(Some(HardwareNotice::HostStarted { epoch, pid })) => {
                    tracing::debug!(epoch, pid, "driver host started");
                }
                // The driver's side is closed: nothing comes any more.
                Some(None) => return Ok(()),
            }
            if self.look_again_due(looked) {
                self.enumerate_again(true).await?;
                looked = now();
            }
        }
    }

    /// Returns once a first enumeration was taken over: complete, or as it is after the wait.
    async fn wait_for_cards(&mut self) -> Result<(), OwnerGone> {
        let begun = now();
        let mut fresh = false;
        loop {
            match self.hardware.inventory(fresh).await {
                Ok(inventory)
                    if inventory.is_complete() || begun.elapsed() >= self.pacing.device_wait =>
                {
                    if inventory.chips.is_empty() {
                        self.trouble(incomplete(&inventory)).await?;
                    } else {
                        return self.take(inventory).await;
                    }
                }
                Ok(inventory) => self.trouble(incomplete(&inventory)).await?,
                Err(error) => self.trouble(DriverTrouble::Failed(error)).await?,
            }
            fresh = true;
            sleep(LOOK_AGAIN.min(self.pacing.device_wait.max(Duration::from_millis(500)))).await;
        }
    }

    async fn enumerate_again(&mut self, fresh: bool) -> Result<(), OwnerGone> {
        if fresh {
            self.tell(Command::Renewing).await?;
        }
        let begun = now();
        let looked = self.hardware.inventory(fresh).await;
        self.last_look = begun.elapsed();
        match looked {
            Ok(inventory) => self.take(inventory).await,
            Err(error) => self.trouble(DriverTrouble::Failed(error)).await,
        }
    }

    async fn take(&mut self, inventory: Inventory) -> Result<(), OwnerGone> {
        self.chips = inventory.chips.len();
        self.most_chips = self.most_chips.max(self.chips);
        let whole = inventory.is_complete()
            && self.chips >= self.most_chips
            && self.chips >= count_chip_nodes(&self.pacing.dev_dir);
        self.incomplete_since = if whole {
            None
        } else {
            Some(self.incomplete_since.unwrap_or_else(now))
        };
        let is_a3 = |chip: &Chip| chip.family == ChipFamily::Ascend910A3;
        let has_a3 = inventory.chips.iter().any(is_a3);
        self.tell(Command::Inventory(inventory)).await?;
        // Before the next sample, because the policy decides what health the dies of a card report.
        self.die_policy.enforce(&*self.hardware, has_a3).await;
        Ok(())
    }

    fn look_again_due(&mut self, looked: Instant) -> bool {
        self.notice_arrivals();
        let Some(since) = self.incomplete_since else {
            return false;
        };
        let pause = if since.elapsed() < LOOK_OFTEN_FOR {
            LOOK_AGAIN
        } else {
            LOOK_AGAIN_LATER
        };
        // A look that waits for a hanging chip costs all the others their samples.
        looked.elapsed() >= pause.max(self.last_look * LOOK_SHARE)
    }

    /// A node with more chip nodes than chips is not complete.
    fn notice_arrivals(&mut self) {
        let counted = self.nodes_counted;
        if self.incomplete_since.is_some() || counted.is_some_and(|at| at.elapsed() < LOOK_AGAIN) {
            return;
        }
        self.nodes_counted = Some(now());
        let nodes = count_chip_nodes(&self.pacing.dev_dir);
        if nodes > self.chips {
            tracing::info!(
                nodes,
                chips = self.chips,
                "more chip nodes than chips: looking again"
            );
            self.incomplete_since = Some(now());
        }
    }

    async fn sample(&mut self, round: u32) -> Result<(), OwnerGone> {
        match self
            .hardware
            .sample(round.is_multiple_of(PROCESSES_EVERY))
            .await
        {
            Ok(samples) => {
                let failing = !samples.is_empty() && samples.iter().all(has_failed);
                self.tell(Command::Samples(samples)).await?;
                self.renew_when_due(failing).await
            }
            Err(error) => {
                let restart = matches!(error, HardwareError::Host(_));
                self.trouble(DriverTrouble::Failed(error)).await?;
                if restart {
                    self.enumerate_again(false).await
                } else {
                    Ok(())
                }
            }
        }
    }

    /// Initialises a driver anew under which every chip has failed for long.
    async fn renew_when_due(&mut self, failing: bool) -> Result<(), OwnerGone> {
        if !failing {
            self.failing_since = None;
            self.renewal_pause = RENEWAL_FIRST;
            return Ok(());
        }
        let since = *self.failing_since.get_or_insert_with(now);
        if since.elapsed() < self.renewal_pause {
            return Ok(());
        }
        tracing::warn!(
            for_s = since.elapsed().as_secs(),
            "every chip fails: initialising the driver anew"
        );
        self.failing_since = Some(now());
        self.renewal_pause = (self.renewal_pause * 2).min(RENEWAL_CAP);
        self.enumerate_again(true).await
    }

    async fn trouble(&self, trouble: DriverTrouble) -> Result<(), OwnerGone> {
        self.tell(Command::DriverTrouble(trouble)).await
    }

    async fn tell(&self, command: Command) -> Result<(), OwnerGone> {
        self.owner.send(command).await.map_err(|_| OwnerGone)
    }
}

/// The driver gave no health at all, as against a bad one.
fn has_failed(sample: &ChipSample) -> bool {
    match sample.health {
        HealthReading::Failed(_) | HealthReading::Lost | HealthReading::NoAnswer => true,
        HealthReading::Level(_) => false,
    }
}

fn incomplete(inventory: &Inventory) -> DriverTrouble {
    DriverTrouble::Incomplete {
        chips: inventory.chips.len(),
        cards_up: inventory
            .cards_counted
            .saturating_sub(inventory.cards_failed),
        cards_counted: inventory.cards_counted,
        problems: inventory.problems.clone(),
    }
}

fn now() -> Instant {
    Instant::now()
}

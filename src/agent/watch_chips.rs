//! Following the driver: enumerate until the node is complete, sample, pass events on.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use crate::domain::chip::Inventory;
use crate::ports::{Hardware, HardwareError, HardwareNotice};

use super::command::{Command, DriverTrouble};

/// Pause between two tries to enumerate a node that is not complete: short at first, because chips
/// come up within minutes of a boot, then rare, because each try initialises the driver anew.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
const LOOK_AGAIN_LATER: Duration = Duration::from_secs(300);
const LOOK_OFTEN_FOR: Duration = Duration::from_secs(300);

/// Processes on chips are asked for in every n-th sample: they only matter to proofs, which take far
/// longer.
const PROCESSES_EVERY: u32 = 5;

/// Pacing of the watch.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChipPacing {
    pub(super) device_wait: Duration,
    pub(super) health_poll: Duration,
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
        pacing,
        most_chips: 0,
        incomplete_since: None,
    };
    cancel.run_until_cancelled(watch.run()).await;
}

struct Watch<H> {
    hardware: Arc<H>,
    owner: mpsc::Sender<Command>,
    notices: mpsc::Receiver<HardwareNotice>,
    pacing: ChipPacing,
    most_chips: usize,
    incomplete_since: Option<Instant>,
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
        match self.hardware.inventory(fresh).await {
            Ok(inventory) => self.take(inventory).await,
            Err(error) => self.trouble(DriverTrouble::Failed(error)).await,
        }
    }

    async fn take(&mut self, inventory: Inventory) -> Result<(), OwnerGone> {
        self.most_chips = self.most_chips.max(inventory.chips.len());
        let whole = inventory.is_complete() && inventory.chips.len() >= self.most_chips;
        self.incomplete_since = if whole {
            None
        } else {
            Some(self.incomplete_since.unwrap_or_else(now))
        };
        self.tell(Command::Inventory(inventory)).await
    }

    fn look_again_due(&self, looked: Instant) -> bool {
        let Some(since) = self.incomplete_since else {
            return false;
        };
        let pause = if since.elapsed() < LOOK_OFTEN_FOR {
            LOOK_AGAIN
        } else {
            LOOK_AGAIN_LATER
        };
        looked.elapsed() >= pause
    }

    async fn sample(&mut self, round: u32) -> Result<(), OwnerGone> {
        match self
            .hardware
            .sample(round.is_multiple_of(PROCESSES_EVERY))
            .await
        {
            Ok(samples) => self.tell(Command::Samples(samples)).await,
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

    async fn trouble(&self, trouble: DriverTrouble) -> Result<(), OwnerGone> {
        self.tell(Command::DriverTrouble(trouble)).await
    }

    async fn tell(&self, command: Command) -> Result<(), OwnerGone> {
        self.owner.send(command).await.map_err(|_| OwnerGone)
    }
}

fn incomplete(inventory: &Inventory) -> DriverTrouble {
    DriverTrouble::Incomplete {
        up: inventory.chips.len(),
        counted: inventory.cards_counted,
        problems: inventory.problems.clone(),
    }
}

fn now() -> Instant {
    Instant::now()
}

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
use super::pulse::Beats;

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
    beats: Beats,
    cancel: CancellationToken,
) {
    let watch = Watch {
        hardware,
        owner,
        notices,
        die_policy: WantedDiePolicy::new(pacing.die_policy),
        pacing,
        beats,
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
    /// Every word to the owner counts.
    beats: Beats,
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
                    self.absorb_waiting_notices().await?;
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

    /// Every look that initialises the driver anew ends a driver host, so their ends pile up while the
    /// node is not complete. One enumeration after the last of them answers them all, and the sample
    /// that follows answers dropped events.
    async fn absorb_waiting_notices(&mut self) -> Result<(), OwnerGone> {
        while let Ok(notice) = self.notices.try_recv() {
            if let HardwareNotice::Fault(fault) = notice {
                self.tell(Command::Fault(fault)).await?;
            }
        }
        Ok(())
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
        let asked = now();
        match self
            .hardware
            .sample(round.is_multiple_of(PROCESSES_EVERY))
            .await
        {
            Ok(samples) => {
                let failing = !samples.is_empty() && samples.iter().all(has_failed);
                self.tell(Command::Samples { asked, samples }).await?;
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
        self.owner.send(command).await.map_err(|_| OwnerGone)?;
        self.beats.beat();
        Ok(())
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::domain::chip::DcmiApi;
    use crate::domain::fault::{Assertion, FaultCode, FaultEvent, Severity};
    use crate::domain::ids::{CardId, DeviceId, DieId, LogicId, PhyId};
    use crate::domain::product::Product;

    /// One A3 chip, and counts of what was asked.
    #[derive(Default)]
    struct OneChip {
        inventories: AtomicUsize,
        policies: AtomicUsize,
    }

    impl Hardware for OneChip {
        async fn inventory(&self, _fresh: bool) -> Result<Inventory, HardwareError> {
            self.inventories.fetch_add(1, Ordering::Relaxed);
            Ok(inventory())
        }

        async fn sample(&self, _with_processes: bool) -> Result<Vec<ChipSample>, HardwareError> {
            Ok(Vec::new())
        }

        async fn set_die_policy(&self, _policy: DiePolicy) -> Result<(), HardwareError> {
            self.policies.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    fn inventory() -> Inventory {
        Inventory {
            api: DcmiApi::V1,
            dcmi_version: String::new(),
            driver_version: String::new(),
            library: String::new(),
            cards_counted: 1,
            cards_failed: 0,
            chips: vec![Chip {
                die: DieId([1; 5]),
                card: CardId(0),
                device: DeviceId(1),
                logic: LogicId(1),
                phy: PhyId(1),
                family: ChipFamily::Ascend910A3,
                product: Product::AtlasA3,
                chip_name: "Ascend910".to_owned(),
                ai_cores: None,
                board_id: None,
                mainboard_id: None,
                super_pod_type: None,
                pci: None,
                numa_nodes: BTreeSet::new(),
                product_type: None,
            }],
            problems: Vec::new(),
            missing_symbols: Vec::new(),
        }
    }

    fn fault() -> FaultEvent {
        FaultEvent {
            logic: LogicId(1),
            code: FaultCode(1),
            severity: Severity::MAJOR,
            assertion: Assertion::Occurred,
        }
    }

    #[tokio::test]
    async fn ends_of_driver_hosts_that_piled_up_cost_one_enumeration_and_hide_no_fault() {
        let hardware = Arc::new(OneChip::default());
        let (owner, mut commands) = mpsc::channel(64);
        let (sender, notices) = mpsc::channel(64);
        for epoch in 1..=9 {
            let cause = "a fresh inventory was asked for".to_owned();
            sender
                .try_send(HardwareNotice::HostEnded { cause })
                .unwrap();
            let started = HardwareNotice::HostStarted { epoch, pid: 7 };
            sender.try_send(started).unwrap();
        }
        sender.try_send(HardwareNotice::Fault(fault())).unwrap();
        drop(sender);
        let pacing = ChipPacing {
            device_wait: Duration::ZERO,
            health_poll: Duration::from_secs(3600),
            dev_dir: "/nowhere".to_owned(),
            die_policy: DiePolicy::Union,
        };
        let watching = Arc::clone(&hardware);
        let (beats, cancel) = (Beats::default(), CancellationToken::new());
        watch_chips(watching, owner, notices, pacing, beats, cancel).await;
        // The first look, and one after the ends.
        assert_eq!(hardware.inventories.load(Ordering::Relaxed), 2);
        assert_eq!(hardware.policies.load(Ordering::Relaxed), 2);
        let mut told = Vec::new();
        while let Some(command) = commands.recv().await {
            told.push(command);
        }
        let faults = told.iter().filter(|it| matches!(it, Command::Fault(_)));
        assert_eq!(faults.count(), 1);
        let looks = told.iter().filter(|it| matches!(it, Command::Inventory(_)));
        assert_eq!(looks.count(), 2);
    }
}

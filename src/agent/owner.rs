//! The owner task: one state, one queue, one decision at a time.

mod allocate;
mod cdi;
mod chips;
mod durable;
mod observe;
mod report;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::config::Config;
use crate::domain::chip::Inventory;
use crate::domain::history::HistoryEvent;
use crate::domain::ids::{DieId, LogicId};
use crate::domain::kubelet_view::CheckpointVersion;
use crate::domain::offer::Offer;
use crate::domain::time::{BootTime, Stamp};
use crate::health::{ChipHealth, HealthPolicy};
use crate::injection::{InjectionError, NodeDelivery};
use crate::ledger::{ChipVerdict, Ledger, ProcessReadings};
use crate::offering::{ChipRefused, Offering};
use crate::ports::{Clock, Ids, Journal, JournalError, KubeletRecords, StoredState};

use super::command::{AllocateReply, Command, DriverTrouble};
use super::delivery::node_delivery;
pub(super) use durable::StoreState;

/// Pause between two looks at what time alone changes: a failing store, a silent driver.
const TICK: Duration = Duration::from_secs(1);

/// What the owner is configured with.
#[derive(Clone, Debug)]
pub(super) struct OwnerSettings {
    pub(super) offering: Offering,
    pub(super) policy: HealthPolicy,
    pub(super) owner_proof: Duration,
    pub(super) driver_grace: Duration,
    pub(super) driver_init: Duration,
    pub(super) delivery: NodeDelivery,
    pub(super) cdi_dir: PathBuf,
    pub(super) state_dir: Option<PathBuf>,
}

impl OwnerSettings {
    pub(super) fn of(config: &Config) -> Self {
        Self {
            offering: config.offering.clone(),
            policy: HealthPolicy {
                hold_down: config.hold_down,
                ..HealthPolicy::default()
            },
            owner_proof: config.owner_proof,
            driver_grace: config.driver_grace,
            driver_init: config.driver_init,
            delivery: node_delivery(config),
            cdi_dir: config.cdi_dir.clone(),
            state_dir: config.state_dir.clone(),
        }
    }
}

/// Where the owner tells the rest of the agent.
pub(super) struct Outlets {
    /// Lists for kubelet.
    pub(super) offers: watch::Sender<Arc<Offer>>,
    /// True once every chip was sampled.
    pub(super) sampled: watch::Sender<bool>,
    /// Why the configured mode does not fit the hardware, when the first enumeration shows that before
    /// anything was registered.
    pub(super) unfit: watch::Sender<Option<ChipRefused>>,
}

/// Ledger, health and everything that must change together with them.
pub(super) struct Owner<J, R, C, I> {
    settings: OwnerSettings,
    journal: Arc<J>,
    records: Arc<R>,
    clock: Arc<C>,
    ids: I,
    ledger: Ledger,
    health: BTreeMap<DieId, ChipHealth>,
    logic_to_die: BTreeMap<LogicId, DieId>,
    processes: ProcessReadings,
    /// Chips whose containers would lack device nodes.
    nodeless: BTreeMap<DieId, InjectionError>,
    /// The CDI spec, where containers get their chips by name.
    cdi: Option<cdi::SpecState>,
    inventory: Option<Inventory>,
    driver_trouble: Option<(DriverTrouble, BootTime)>,
    started: Stamp,
    last_sample: Option<BootTime>,
    /// Since when the agent itself has the driver initialised anew.
    renewing: Option<BootTime>,
    /// When the driver's silence was judged last.
    judged: BootTime,
    store: StoreState,
    pod_resources: Option<bool>,
    offers: watch::Sender<Arc<Offer>>,
    sampled: watch::Sender<bool>,
    unfit: watch::Sender<Option<ChipRefused>>,
    /// Chips of the last enumeration that the mode does not fit, one line each.
    unoffered: Vec<String>,
    refresh: u64,
    refused: allocate::RefusalLog,
    /// The store being read again after a failure.
    reading: Option<JoinHandle<Result<StoredState, JournalError>>>,
}

impl<J: Journal, R: KubeletRecords, C: Clock, I: Ids> Owner<J, R, C, I> {
    pub(super) fn new(
        settings: OwnerSettings,
        journal: Arc<J>,
        records: Arc<R>,
        clock: Arc<C>,
        ids: I,
        store: StoreState,
        outlets: Outlets,
    ) -> Self {
        let started = clock.now();
        let cdi = cdi::SpecState::of(&settings);
        Self {
            settings,
            journal,
            records,
            clock,
            ids,
            ledger: Ledger::default(),
            health: BTreeMap::new(),
            logic_to_die: BTreeMap::new(),
            processes: ProcessReadings::default(),
            nodeless: BTreeMap::new(),
            cdi,
            inventory: None,
            driver_trouble: None,
            started,
            last_sample: None,
            renewing: None,
            judged: started.boot_time,
            store,
            pod_resources: None,
            offers: outlets.offers,
            sampled: outlets.sampled,
            unfit: outlets.unfit,
            unoffered: Vec::new(),
            refresh: 0,
            refused: allocate::RefusalLog::default(),
            reading: None,
        }
    }

    /// Loads the journal, then serves commands until told to stop or until every sender is gone.
    pub(super) async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        self.load().await;
        self.refresh_cdi().await;
        self.publish();
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let command = tokio::select! {
                command = commands.recv() => command,
                _ = tick.tick() => {
                    self.tick().await;
                    self.publish();
                    continue;
                }
            };
            let Some(command) = command else { return };
            if let Command::Stop { reply } = command {
                if let Some(reading) = self.reading.take() {
                    reading.abort();
                }
                self.note(HistoryEvent::AgentStopped).await;
                // Nobody waits when the asker gave up.
                let _ = reply.send(());
                return;
            }
            self.take(command).await;
        }
    }

    async fn take(&mut self, command: Command) {
        match command {
            Command::Allocate {
                resource,
                ids,
                asked,
                reply,
            } => {
                let answer = self.allocate(&resource, &ids, &asked).await;
                self.publish();
                let _ = reply.send(answer);
            }
            Command::Preferred {
                resource,
                available,
                must_include,
                size,
                reply,
            } => {
                let _ = reply.send(self.preferred(&resource, &available, &must_include, size));
            }
            Command::BeginGeneration {
                cause,
                views,
                reply,
            } => {
                self.begin_generation(cause, views).await;
                self.publish();
                let _ = reply.send(());
            }
            Command::Views(views) => {
                self.observe(views).await;
                self.publish();
            }
            Command::Renewing => self.renewing = Some(self.now()),
            Command::Inventory(inventory) => {
                self.renewing = None;
                self.take_inventory(inventory).await;
                self.publish();
            }
            Command::DriverTrouble(trouble) => {
                self.renewing = None;
                self.take_trouble(trouble);
                self.publish();
            }
            Command::Samples { asked, samples } => {
                self.take_samples(asked.elapsed(), &samples).await;
            }
            Command::Fault(event) => self.take_fault(&event).await,
            Command::Status { reply } => {
                let _ = reply.send(self.document());
            }
            Command::Stop { reply } => {
                let _ = reply.send(());
            }
        }
    }

    async fn tick(&mut self) {
        self.retry_store().await;
        self.judge_silent_driver().await;
        self.refresh_cdi().await;
    }

    fn now(&self) -> BootTime {
        self.clock.now().boot_time
    }

    fn checkpoint_version(&self) -> Option<CheckpointVersion> {
        self.records.checkpoint_version()
    }

    fn verdict(&self, die: DieId) -> ChipVerdict {
        match self.health.get(&die) {
            Some(health) if health.is_healthy() => match self.nodeless.get(&die) {
                None => ChipVerdict::Healthy,
                Some(missing) => ChipVerdict::Unhealthy(missing.to_string()),
            },
            Some(health) => ChipVerdict::Unhealthy(health.reason().to_owned()),
            None => ChipVerdict::Unhealthy("its health was not read yet".to_owned()),
        }
    }

    /// Publishes the list when it differs from the last one. While the store refuses writes
    /// or the CDI spec is not in its place, free ids are withheld: granting them would surely fail, and each failure costs a pod.
    fn publish(&mut self) {
        for (die, why) in self.ledger.freeze_violations() {
            tracing::error!(%die, why, "ledger invariant broken: this chip is withheld, nothing is repaired");
        }
        let mut resources = self.ledger.offer(|die| self.verdict(die));
        let trouble = self.store.trouble();
        let cause = trouble
            .map(|cause| format!("the allocation store refuses writes: {cause}"))
            .or_else(|| self.cdi_trouble().map(str::to_owned));
        if let Some(cause) = cause {
            for (resource, devices) in &mut resources {
                for device in devices {
                    if device.healthy && self.ledger.holder(resource, &device.id).is_none() {
                        device.healthy = false;
                        device.reason.clone_from(&cause);
                    }
                }
            }
        }
        let refresh = self.refresh;
        self.offers.send_if_modified(|offer| {
            if offer.resources == resources && offer.refresh == refresh {
                return false;
            }
            *offer = Arc::new(Offer {
                version: offer.version + 1,
                refresh,
                resources,
            });
            true
        });
    }
}

//! The ledger's rules, one test or more each, named after them.

mod claims;
mod proofs;
mod restarts;
mod shares;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use uuid::Uuid;

use super::{
    Asked, ChipVerdict, Decision, Findings, Ledger, OWNER_PROOF, ObserveContext, ProcessReadings,
};
use crate::domain::allocation::{Allocation, Origin};
use crate::domain::chip::{Chip, DcmiApi, Inventory};
use crate::domain::family::ChipFamily;
use crate::domain::history::HistoryEvent;
use crate::domain::ids::{
    AllocationId, CardId, DeviceId, DieId, GrantId, LogicId, PhyId, PluginDeviceId, ResourceName,
};
use crate::domain::kubelet_view::{
    CheckpointEntry, CheckpointVersion, CheckpointView, Holding, PodCensus, PodName, RecordScope,
};
use crate::domain::offer::Refusal;
use crate::domain::product::Product;
use crate::domain::time::{BootId, BootTime, Stamp};
use crate::offering::Offering;

/// A ledger over four chips, a clock that moves by hand, and kubelet's two records.
struct Desk {
    ledger: Ledger,
    second: u64,
    next: u128,
    file: u64,
    processes: ProcessReadings,
    occupied: BTreeSet<DieId>,
    unreadable: BTreeSet<DieId>,
}

/// The checkpoint could not be read.
#[derive(Clone, Copy)]
struct Unread;

fn die(number: u32) -> DieId {
    DieId([number + 1, 0, 0, 0, 7])
}

fn chip(number: u32, phy: u32) -> Chip {
    Chip {
        die: die(number),
        card: CardId(i32::try_from(phy).expect("small")),
        device: DeviceId(0),
        logic: LogicId(phy),
        phy: PhyId(phy),
        family: ChipFamily::Ascend910B,
        product: Product::Ascend910B,
        chip_name: "910B3".to_owned(),
        ai_cores: Some(20),
        board_id: None,
        mainboard_id: None,
        super_pod_type: None,
        pci: None,
        numa_nodes: BTreeSet::new(),
        product_type: None,
    }
}

fn inventory(chips: Vec<Chip>) -> Inventory {
    Inventory {
        api: DcmiApi::V1,
        dcmi_version: String::new(),
        driver_version: String::new(),
        library: String::new(),
        cards_counted: u32::try_from(chips.len()).expect("small"),
        cards_failed: 0,
        chips,
        problems: Vec::new(),
        missing_symbols: Vec::new(),
    }
}

fn resource() -> ResourceName {
    ResourceName::new("huawei.com/Ascend910").expect("valid")
}

fn id(number: u32) -> PluginDeviceId {
    PluginDeviceId::whole_chip("Ascend910", PhyId(number))
}

fn pod(name: &str) -> PodName {
    PodName {
        namespace: "ns".to_owned(),
        name: name.to_owned(),
    }
}

fn offering() -> Offering {
    Offering::whole_chips("huawei.com")
}

impl Desk {
    fn new() -> Self {
        let mut ledger = Ledger::default();
        let chips = (0..4).map(|number| chip(number, number)).collect();
        ledger.take_inventory(&inventory(chips), &offering());
        Self {
            ledger,
            second: 100,
            next: 1,
            file: 1,
            processes: ProcessReadings::default(),
            occupied: BTreeSet::new(),
            unreadable: BTreeSet::new(),
        }
    }

    /// The ledger as the agent rebuilds it from the store after a restart.
    fn restarted(&self) -> Self {
        let stored: Vec<_> = self
            .ledger
            .held()
            .values()
            .map(|held| held.record.clone())
            .collect();
        let mut restarted = Self::new();
        restarted.second = self.second;
        restarted.file = self.file;
        let now = restarted.at().boot_time;
        restarted.ledger.take_stored([], stored, now, None);
        restarted.second += 1;
        restarted
    }

    fn at(&self) -> Stamp {
        Stamp {
            boot_id: BootId(Uuid::nil()),
            boot_time: BootTime(self.second * 1_000_000_000),
            utc_ns: 0,
        }
    }

    fn version(&self) -> CheckpointVersion {
        CheckpointVersion {
            inode: self.file,
            modified_ns: 0,
            size_bytes: 0,
        }
    }

    fn decide(&self, numbers: &[u32], asked: &Asked<'_>) -> Decision {
        let ids: Vec<_> = numbers.iter().map(|number| id(*number)).collect();
        self.ledger
            .decide(&resource(), &ids, |_| ChipVerdict::Healthy, asked)
    }

    fn apply(&mut self, decision: Decision) -> Vec<HistoryEvent> {
        let Decision::Grant(plan) = decision else {
            panic!("not granted: {decision:?}")
        };
        let at = self.at();
        let mut next = self.next;
        let records = plan.records(
            &self.ledger,
            &resource(),
            GrantId(Uuid::from_u128(next)),
            || {
                next += 1;
                AllocationId(Uuid::from_u128(next))
            },
            at,
        );
        self.next = next + 1;
        let (events, _) = plan.history(&self.ledger, &records);
        let version = Some(self.version());
        self.ledger
            .apply_grant(&plan, records, at.boot_time, version);
        self.second += 1;
        assert_eq!(self.ledger.violations(), BTreeMap::new());
        events
    }

    fn grant(&mut self, numbers: &[u32]) {
        let decision = self.decide(numbers, &Asked::NotYet);
        self.apply(decision);
    }

    fn census(&self, pods: &[(&str, &[u32])]) -> PodCensus {
        PodCensus {
            begun: self.at().boot_time,
            pods: pods.iter().map(|(name, _)| pod(name)).collect(),
            holdings: pods
                .iter()
                .filter(|(_, numbers)| !numbers.is_empty())
                .map(|(name, numbers)| Holding {
                    pod: pod(name),
                    container: "main".to_owned(),
                    resource: resource(),
                    ids: numbers.iter().map(|number| id(*number)).collect(),
                })
                .collect(),
        }
    }

    fn checkpoint(&self, pods: &[(&str, &[u32])]) -> CheckpointView {
        CheckpointView {
            version: self.version(),
            read: self.at().boot_time,
            entries: pods
                .iter()
                .map(|(name, numbers)| CheckpointEntry {
                    pod_uid: format!("uid-{name}"),
                    container: "main".to_owned(),
                    resource: resource(),
                    ids: numbers.iter().map(|number| id(*number)).collect(),
                    device_nodes: BTreeSet::new(),
                    visible_devices: None,
                })
                .collect(),
        }
    }

    /// Looks at both records, which say the same; kubelet has just written its checkpoint anew.
    fn observe(&mut self, pods: &[(&str, &[u32])]) -> Findings {
        let census = self.census(pods);
        let before = Some(self.version());
        self.file += 1;
        let held: Vec<_> = pods
            .iter()
            .filter(|(_, numbers)| !numbers.is_empty())
            .copied()
            .collect();
        let checkpoint = self.checkpoint(&held);
        self.look(Some(&census), Ok(Some(&checkpoint)), before)
    }

    fn look(
        &mut self,
        census: Option<&PodCensus>,
        checkpoint: Result<Option<&CheckpointView>, Unread>,
        checkpoint_before: Option<CheckpointVersion>,
    ) -> Findings {
        let at = self.at();
        self.read_processes();
        let context = ObserveContext {
            scope: &RecordScope::domain("huawei.com"),
            offering: &offering(),
            at,
            proof: OWNER_PROOF,
            census,
            checkpoint: checkpoint.ok(),
            checkpoint_before,
            processes: &self.processes,
        };
        let next = &mut self.next;
        let findings = self.ledger.observe(&context, || {
            *next += 1;
            (
                AllocationId(Uuid::from_u128(*next)),
                GrantId(Uuid::from_u128(*next)),
            )
        });
        self.ledger.apply_findings(&findings, true, at.boot_time);
        self.second += 1;
        assert_eq!(self.ledger.violations(), BTreeMap::new());
        findings
    }

    fn read_processes(&mut self) {
        let now = self.at().boot_time;
        for die in (0..4).map(die).filter(|die| !self.unreadable.contains(die)) {
            self.processes.read(die, now, !self.occupied.contains(&die));
        }
    }

    /// Every 10 s for as long as it takes to prove a holder gone, and a little longer.
    fn observe_for_proof(&mut self, pods: &[(&str, &[u32])]) -> Vec<AllocationId> {
        let mut released = Vec::new();
        for _ in 0..5 {
            released.extend(self.observe(pods).released);
            self.second += 9;
        }
        released
    }

    fn healthy(&self) -> Vec<u32> {
        self.ledger
            .offer(|_| ChipVerdict::Healthy)
            .into_values()
            .flatten()
            .enumerate()
            .filter(|(_, device)| device.healthy)
            .map(|(number, _)| u32::try_from(number).expect("small"))
            .collect()
    }

    fn held(&self) -> BTreeSet<PluginDeviceId> {
        self.ledger
            .held()
            .values()
            .map(|held| held.record.plugin_device_id.clone())
            .collect()
    }

    fn holder(&self, number: u32) -> &Allocation {
        &self
            .ledger
            .holder(&resource(), &id(number))
            .expect("held")
            .record
    }
}

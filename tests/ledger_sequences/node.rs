//! The ledger with a journal in memory, driven the way the owner task drives it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ascend_agent::domain::allocation::Allocation;
use ascend_agent::domain::chip::{Chip, DcmiApi, Inventory};
use ascend_agent::domain::family::ChipFamily;
use ascend_agent::domain::ids::{
    AllocationId, CardId, DeviceId, DieId, GrantId, LogicId, PhyId, PluginDeviceId, ResourceName,
    ShareSlot,
};
use ascend_agent::domain::kubelet_view::{
    CheckpointVersion, CheckpointView, PodCensus, RecordScope,
};
use ascend_agent::domain::offer::Refusal;
use ascend_agent::domain::product::Product;
use ascend_agent::domain::time::{BootId, BootTime, Stamp};
use ascend_agent::ledger::{
    Asked, ChipVerdict, Decision, Findings, GrantPlan, Ledger, OWNER_PROOF, ObserveContext,
    ProcessReadings,
};
use ascend_agent::offering::{CustomNames, Mode, Offering};
use uuid::Uuid;

pub(crate) const CHIPS: u8 = 4;

/// What becomes of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Durable,
    /// Refused, and not on the disk.
    Lost,
    /// Reported as failed, and on the disk all the same.
    DurableUnseen,
}

impl Fate {
    /// Mostly durable.
    pub(crate) fn of(number: u8) -> Self {
        match number % 8 {
            6 => Self::Lost,
            7 => Self::DurableUnseen,
            _ => Self::Durable,
        }
    }
}

/// How the node offers its chips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offered {
    Whole,
    /// Two shares of each chip.
    Shared,
    /// The one or the other, changed by each restart of the agent.
    Changing,
}

pub(crate) struct Node {
    offered: Offered,
    /// Whether chips are shared in this run of the agent.
    shared: bool,
    pub(crate) ledger: Ledger,
    processes: ProcessReadings,
    journal: BTreeMap<AllocationId, Allocation>,
    now: BootTime,
    last_id: u128,
}

impl Node {
    pub(crate) fn new(offered: Offered) -> Self {
        let mut node = Self {
            offered,
            shared: offered == Offered::Shared,
            ledger: Ledger::default(),
            processes: ProcessReadings::default(),
            journal: BTreeMap::new(),
            now: BootTime(1),
            last_id: 0,
        };
        node.inventory(u8::MAX, 0);
        node
    }

    /// Now; a moment later than any time before.
    pub(crate) fn now(&mut self) -> BootTime {
        self.pass(Duration::from_millis(1));
        self.now
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now = self.now.plus(time);
    }

    fn stamp(&mut self) -> Stamp {
        Stamp {
            boot_id: BootId(Uuid::from_u128(1)),
            boot_time: self.now(),
            utc_ns: 0,
        }
    }

    /// The driver lists the chips of `present`, their numbers turned by `turn`.
    pub(crate) fn inventory(&mut self, present: u8, turn: u8) {
        let chips = (0..CHIPS)
            .filter(|chip| present & (1 << chip) != 0)
            .map(|chip| chip_of(chip, (chip + turn % CHIPS) % CHIPS))
            .collect();
        let inventory = Inventory {
            api: DcmiApi::V1,
            dcmi_version: String::new(),
            driver_version: String::new(),
            library: String::new(),
            cards_counted: u32::from(CHIPS),
            cards_failed: 0,
            chips,
            problems: Vec::new(),
            missing_symbols: Vec::new(),
        };
        self.processes.take_inventory(&inventory);
        self.ledger
            .take_inventory(&inventory, &offering(self.shared));
    }

    /// The driver tells the processes on every chip.
    pub(crate) fn read_processes(&mut self, occupied: &BTreeSet<DieId>) {
        let now = self.now();
        for die in (0..CHIPS).map(die_of) {
            self.processes.read(die, now, !occupied.contains(&die));
        }
    }

    /// One look at kubelet's records.
    pub(crate) fn look(
        &mut self,
        census: Option<&PodCensus>,
        checkpoint: Option<Option<&CheckpointView>>,
        checkpoint_before: Option<CheckpointVersion>,
        fate: Fate,
    ) -> Findings {
        let at = self.stamp();
        let context = ObserveContext {
            scope: &RecordScope::domain("huawei.com"),
            offering: &offering(self.shared),
            at,
            proof: OWNER_PROOF,
            census,
            checkpoint,
            checkpoint_before,
            processes: &self.processes,
        };
        let last_id = &mut self.last_id;
        let findings = self.ledger.observe(&context, || {
            let id = next(last_id);
            (AllocationId(id), GrantId(id))
        });
        let (put, remove, _history) = self.ledger.findings_to_batch(&findings);
        let changes = !findings.is_quiet() || !put.is_empty();
        let durable = !changes || self.commit(put, &remove, fate);
        let now = self.now();
        self.ledger.apply_findings(&findings, durable, now);
        if !durable {
            self.read_store_again();
        }
        findings
    }

    pub(crate) fn decide(&self, ids: &[PluginDeviceId], asked: &Asked<'_>) -> Decision {
        let well = |_| ChipVerdict::Healthy;
        self.ledger.decide(&resource(), ids, well, asked)
    }

    /// Carries a plan out; false when the store refused.
    pub(crate) fn grant(
        &mut self,
        plan: &GrantPlan,
        checkpoint_then: Option<CheckpointVersion>,
        fate: Fate,
    ) -> Result<(), Refusal> {
        let at = self.stamp();
        let grant = GrantId(next(&mut self.last_id));
        let last_id = &mut self.last_id;
        let new_id = || AllocationId(next(last_id));
        let records = plan.records(&self.ledger, &resource(), grant, new_id, at);
        let (_history, ended) = plan.history(&self.ledger, &records);
        if !self.commit(records.clone(), &ended, fate) {
            self.read_store_again();
            let cause = format!("{fate:?}");
            return Err(Refusal::StoreUnavailable { cause });
        }
        let answered = self.now();
        self.ledger
            .apply_grant(plan, records, answered, checkpoint_then);
        Ok(())
    }

    /// kill -9 of the agent and a new start: only the journal is left.
    pub(crate) fn restart_agent(&mut self) {
        self.shared ^= self.offered == Offered::Changing;
        self.ledger = Ledger::default();
        self.processes = ProcessReadings::default();
        let records: Vec<Allocation> = self.journal.values().cloned().collect();
        let now = self.now();
        self.ledger.take_stored([], records, now, None);
        self.inventory(u8::MAX, 0);
    }

    /// The ids of a bit mask, as this run offers them.
    pub(crate) fn ids_of(&self, mask: u8) -> Vec<PluginDeviceId> {
        ids_of(self.shared, mask)
    }

    /// The ids of a bit mask, some of them as another run may have offered them.
    pub(crate) fn any_ids_of(&self, mask: u8, which: u8) -> Vec<PluginDeviceId> {
        let other = self.offered == Offered::Changing && which % 2 == 1;
        ids_of(self.shared ^ other, mask)
    }

    fn commit(&mut self, put: Vec<Allocation>, remove: &[AllocationId], fate: Fate) -> bool {
        if fate != Fate::Lost {
            for id in remove {
                self.journal.remove(id);
            }
            self.journal
                .extend(put.into_iter().map(|record| (record.id, record)));
        }
        fate == Fate::Durable
    }

    /// What the owner does after a commit whose outcome it does not know.
    fn read_store_again(&mut self) {
        let records: Vec<Allocation> = self.journal.values().cloned().collect();
        let stored = self.journal.keys().copied().collect();
        let now = self.now();
        self.ledger.take_stored([], records, now, None);
        self.ledger.mark_unsaved(&stored);
        let unsaved = self.ledger.unsaved();
        self.commit(unsaved, &[], Fate::Durable);
        self.ledger.all_saved();
    }

    /// Holds after every step, whatever kubelet said.
    pub(crate) fn check(&self) {
        let violations = self.ledger.violations();
        assert!(violations.is_empty(), "{violations:?}");
        let offer = self.ledger.offer(|_| ChipVerdict::Healthy);
        for held in self.ledger.held().values() {
            let record = &held.record;
            let listed = offer.get(&record.resource).is_some_and(|list| {
                list.iter()
                    .any(|device| device.id == record.plugin_device_id)
            });
            assert!(listed, "held and not in the list: {record:?}");
        }
    }
}

fn next(last: &mut u128) -> Uuid {
    *last += 1;
    Uuid::from_u128(*last)
}

pub(crate) fn resource() -> ResourceName {
    ResourceName::new("huawei.com/Ascend310P").expect("a valid name")
}

fn offering(shared: bool) -> Offering {
    let mode = Mode {
        share_count: if shared { 2 } else { 1 },
        ..Mode::default()
    };
    Offering::new("huawei.com", mode, CustomNames::default()).expect("a valid mode")
}

/// Shared, the low half of a mask names both shares of the first two chips.
fn id_of(shared: bool, number: u8) -> PluginDeviceId {
    if shared {
        let (phy, slot) = (u32::from(number / 2), u16::from(number % 2));
        PluginDeviceId::share("Ascend310P", PhyId(phy), ShareSlot(slot))
    } else {
        PluginDeviceId::whole_chip("Ascend310P", PhyId(u32::from(number)))
    }
}

fn ids_of(shared: bool, mask: u8) -> Vec<PluginDeviceId> {
    (0..CHIPS)
        .filter(|number| mask & (1 << number) != 0)
        .map(|number| id_of(shared, number))
        .collect()
}

/// An id that no chip has.
pub(crate) fn unknown_id() -> PluginDeviceId {
    id_of(false, CHIPS)
}

/// Whether two uses of chips exclude each other.
pub(crate) fn clash(one: (&PluginDeviceId, DieId), other: (&PluginDeviceId, DieId)) -> bool {
    let is_share = |id: &PluginDeviceId| id.as_str().matches('-').count() == 2;
    let slot = |id: &PluginDeviceId| id.as_str().rsplit('-').next().map(str::to_owned);
    let shares_apart = is_share(one.0) && is_share(other.0) && slot(one.0) != slot(other.0);
    one.0 == other.0 || (one.1 == other.1 && !shares_apart)
}

pub(crate) fn die_of(chip: u8) -> DieId {
    DieId([u32::from(chip) + 1, 0, 0, 0, 0])
}

fn chip_of(chip: u8, number: u8) -> Chip {
    Chip {
        die: die_of(chip),
        card: CardId(i32::from(chip)),
        device: DeviceId(0),
        logic: LogicId(u32::from(number)),
        phy: PhyId(u32::from(number)),
        family: ChipFamily::Ascend310P,
        product: Product::Ascend310P,
        chip_name: "310P3".to_owned(),
        ai_cores: Some(8),
        board_id: None,
        mainboard_id: None,
        super_pod_type: None,
        pci: None,
        numa_nodes: BTreeSet::new(),
        product_type: None,
    }
}

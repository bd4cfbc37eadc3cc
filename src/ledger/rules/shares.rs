//! Shared chips: several holders of one chip, and what excludes what.

use super::*;
use crate::domain::ids::ShareSlot;
use crate::offering::{CustomNames, Mode};

fn shared(count: u16) -> Offering {
    let mode = Mode {
        share_count: count,
        ..Mode::default()
    };
    Offering::new("huawei.com", mode, CustomNames::default()).expect("valid")
}

fn resource() -> ResourceName {
    ResourceName::new("huawei.com/Ascend310P").expect("valid")
}

fn card(number: u32, phy: u32) -> Chip {
    Chip {
        family: ChipFamily::Ascend310P,
        product: Product::Ascend310P,
        ..chip(number, phy)
    }
}

fn share(phy: u32, slot: u16) -> PluginDeviceId {
    PluginDeviceId::share("Ascend310P", PhyId(phy), ShareSlot(slot))
}

fn whole(phy: u32) -> PluginDeviceId {
    PluginDeviceId::whole_chip("Ascend310P", PhyId(phy))
}

/// Two 310P chips, and a clock that moves by hand.
struct Cards {
    ledger: Ledger,
    offering: Offering,
    scope: RecordScope,
    second: u64,
    next: u128,
    store_works: bool,
    processes_told: bool,
}

impl Cards {
    fn new(share_count: u16) -> Self {
        let mut cards = Self {
            ledger: Ledger::default(),
            offering: shared(share_count),
            scope: RecordScope::domain("huawei.com"),
            second: 100,
            next: 0,
            store_works: true,
            processes_told: true,
        };
        cards.inventory(vec![card(0, 0), card(1, 1)]);
        cards
    }

    /// The agent restarts, with this many shares.
    fn restarted(&self, share_count: u16) -> Self {
        let mut cards = Self::new(share_count);
        cards.ledger = Ledger::default();
        let held = self.ledger.held().values();
        let stored: Vec<_> = held.map(|held| held.record.clone()).collect();
        cards.second = self.second + 1;
        cards.next = self.next;
        let now = cards.at().boot_time;
        cards.ledger.take_stored([], stored, now, None);
        cards.inventory(vec![card(0, 0), card(1, 1)]);
        cards
    }

    fn inventory(&mut self, chips: Vec<Chip>) {
        self.ledger
            .take_inventory(&inventory(chips), &self.offering);
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
            inode: self.second,
            modified_ns: 0,
            size_bytes: 0,
        }
    }

    fn decide(&self, ids: &[PluginDeviceId]) -> Decision {
        let well = |_| ChipVerdict::Healthy;
        self.ledger.decide(&resource(), ids, well, &Asked::NotYet)
    }

    fn grant(&mut self, ids: &[PluginDeviceId]) {
        let Decision::Grant(plan) = self.decide(ids) else {
            panic!("not granted: {:?}", self.decide(ids));
        };
        let at = self.at();
        let next = &mut self.next;
        let mut uuid = || {
            *next += 1;
            Uuid::from_u128(*next)
        };
        let grant = GrantId(uuid());
        let new_id = || AllocationId(uuid());
        let records = plan.records(&self.ledger, &resource(), grant, new_id, at);
        self.ledger.apply_grant(&plan, records, at.boot_time, None);
        self.second += 1;
        assert_eq!(self.ledger.violations(), BTreeMap::new());
    }

    /// The same every ten seconds for a minute.
    fn observe_for_proof(&mut self, shown: &[PluginDeviceId], occupied: &[DieId]) {
        for _ in 0..6 {
            self.observe(shown, occupied);
        }
    }

    /// After ten seconds both records, which agree and are new, show these ids.
    fn observe(&mut self, shown: &[PluginDeviceId], occupied: &[DieId]) {
        let before = Some(self.version());
        self.second += 10;
        let census = PodCensus {
            begun: self.at().boot_time,
            pods: BTreeSet::from([pod("a")]),
            holdings: shown
                .iter()
                .map(|id| Holding {
                    pod: pod("a"),
                    container: id.to_string(),
                    resource: resource(),
                    ids: BTreeSet::from([id.clone()]),
                })
                .collect(),
        };
        let entries = shown.iter().map(|id| CheckpointEntry {
            pod_uid: "uid".to_owned(),
            container: id.to_string(),
            resource: resource(),
            ids: BTreeSet::from([id.clone()]),
            device_nodes: BTreeSet::new(),
            visible_devices: None,
        });
        let file = CheckpointView {
            version: self.version(),
            read: self.at().boot_time,
            entries: entries.collect(),
        };
        let at = self.at();
        let mut processes = ProcessReadings::default();
        for die in [die(0), die(1)].iter().filter(|_| self.processes_told) {
            processes.read(*die, at.boot_time, !occupied.contains(die));
        }
        let context = ObserveContext {
            scope: &self.scope,
            offering: &self.offering,
            at,
            proof: OWNER_PROOF,
            census: Some(&census),
            checkpoint: Some(Some(&file)),
            checkpoint_before: before,
            processes: &processes,
        };
        let next = &mut self.next;
        let findings = self.ledger.observe(&context, || {
            *next += 1;
            let id = Uuid::from_u128(*next);
            (AllocationId(id), GrantId(id))
        });
        self.ledger
            .apply_findings(&findings, self.store_works, at.boot_time);
        assert_eq!(self.ledger.violations(), BTreeMap::new());
    }

    fn held(&self) -> BTreeSet<PluginDeviceId> {
        let held = self.ledger.held().values();
        held.map(|held| held.record.plugin_device_id.clone())
            .collect()
    }

    fn listed(&self) -> Vec<(String, bool)> {
        let offer = self.ledger.offer(|_| ChipVerdict::Healthy);
        let devices = offer.into_values().flatten();
        devices
            .map(|device| (device.id.to_string(), device.healthy))
            .collect()
    }
}

fn list(devices: &[(&str, bool)]) -> Vec<(String, bool)> {
    let devices = devices.iter();
    devices
        .map(|(id, healthy)| ((*id).to_owned(), *healthy))
        .collect()
}

#[test]
fn two_containers_hold_two_shares_of_one_chip() {
    let mut cards = Cards::new(2);
    cards.grant(&[share(0, 0)]);
    cards.grant(&[share(0, 1), share(1, 0)]);
    assert_eq!(cards.held().len(), 3);
    assert!(cards.listed().iter().all(|(_, healthy)| *healthy));
    assert_eq!(cards.decide(&[share(0, 1)]), Decision::AskKubelet);
    let unknown = cards.decide(&[whole(0)]);
    assert!(matches!(
        unknown,
        Decision::Refuse(Refusal::UnknownDevice { .. })
    ));
}

#[test]
fn a_share_is_proven_gone_while_another_share_of_its_chip_is_at_work() {
    let mut cards = Cards::new(2);
    cards.grant(&[share(0, 0)]);
    cards.grant(&[share(0, 1)]);
    cards.observe_for_proof(&[share(0, 1)], &[die(0)]);
    assert_eq!(cards.held(), BTreeSet::from([share(0, 1)]));
}

#[test]
fn a_process_that_no_shown_share_explains_keeps_every_share_of_its_chip() {
    let mut cards = Cards::new(2);
    cards.grant(&[share(0, 0)]);
    cards.grant(&[share(0, 1)]);
    cards.grant(&[share(1, 0)]);
    cards.observe_for_proof(&[], &[die(0)]);
    assert_eq!(cards.held(), BTreeSet::from([share(0, 0), share(0, 1)]));
    cards.observe_for_proof(&[], &[]);
    assert_eq!(cards.held(), BTreeSet::new());
}

#[test]
fn processes_that_cannot_be_read_keep_a_share_until_another_share_of_its_chip_is_shown() {
    let mut cards = Cards::new(2);
    cards.processes_told = false;
    cards.grant(&[share(0, 0)]);
    cards.grant(&[share(0, 1)]);
    cards.observe_for_proof(&[], &[]);
    assert_eq!(cards.held(), BTreeSet::from([share(0, 0), share(0, 1)]));
    cards.observe_for_proof(&[share(0, 1)], &[]);
    assert_eq!(cards.held(), BTreeSet::from([share(0, 1)]));
}

#[test]
fn l14_after_a_change_to_whole_chips_a_held_share_stays_listed_and_keeps_its_chip() {
    let mut cards = Cards::new(2);
    cards.grant(&[share(0, 1)]);
    let mut cards = cards.restarted(1);
    let before = [
        ("Ascend310P-0", false),
        ("Ascend310P-0-1", false),
        ("Ascend310P-1", true),
    ];
    assert_eq!(cards.listed(), list(&before));
    assert!(matches!(cards.decide(&[whole(0)]), Decision::Refuse(_)));
    cards.observe_for_proof(&[], &[]);
    let after = [("Ascend310P-0", true), ("Ascend310P-1", true)];
    assert_eq!(cards.listed(), list(&after));
}

#[test]
fn l14_after_a_change_to_shares_a_held_chip_stays_listed_and_excludes_all_its_shares() {
    let mut cards = Cards::new(1);
    cards.grant(&[whole(0)]);
    let mut cards = cards.restarted(2);
    let before = [
        ("Ascend310P-0", false),
        ("Ascend310P-0-0", false),
        ("Ascend310P-0-1", false),
        ("Ascend310P-1-0", true),
        ("Ascend310P-1-1", true),
    ];
    assert_eq!(cards.listed(), list(&before));
    assert!(matches!(cards.decide(&[share(0, 0)]), Decision::Refuse(_)));
    cards.observe_for_proof(&[], &[]);
    assert!(cards.listed().iter().all(|(_, healthy)| *healthy));
    assert_eq!(cards.listed().len(), 4);
}

#[test]
fn l14_a_held_share_beyond_a_smaller_count_stays_listed_and_takes_no_other() {
    let mut cards = Cards::new(3);
    cards.grant(&[share(0, 2)]);
    let cards = cards.restarted(1).restarted(2);
    assert_eq!(
        cards.listed(),
        list(&[
            ("Ascend310P-0-0", true),
            ("Ascend310P-0-1", true),
            ("Ascend310P-0-2", false),
            ("Ascend310P-1-0", true),
            ("Ascend310P-1-1", true),
        ])
    );
}

#[test]
fn l14_shares_follow_their_chip_when_numbers_move() {
    let mut cards = Cards::new(2);
    cards.grant(&[share(0, 1)]);
    cards.inventory(vec![card(1, 0), card(0, 1)]);
    // 0-1 is held for the chip that has number 1 now, whose slot 1 is therefore taken.
    assert_eq!(
        cards.listed(),
        list(&[
            ("Ascend310P-0-0", true),
            ("Ascend310P-0-1", false),
            ("Ascend310P-1-0", true),
            ("Ascend310P-1-1", false),
        ])
    );
}

#[test]
fn l12_holders_of_another_mode_are_adopted_when_the_store_is_lost() {
    let mut cards = Cards::new(1);
    cards.observe_for_proof(&[share(0, 0), share(0, 1)], &[]);
    assert_eq!(cards.held(), BTreeSet::from([share(0, 0), share(0, 1)]));
    assert!(matches!(cards.decide(&[whole(0)]), Decision::Refuse(_)));
    let mut cards = Cards::new(2);
    cards.observe_for_proof(&[whole(1)], &[]);
    assert_eq!(cards.held(), BTreeSet::from([whole(1)]));
    assert!(matches!(cards.decide(&[share(1, 0)]), Decision::Refuse(_)));
}

#[test]
fn a_holder_that_was_kept_out_takes_the_chip_in_the_step_that_frees_it() {
    let mut cards = Cards::new(1);
    cards.grant(&[whole(0)]);
    for _ in 0..6 {
        cards.observe(&[share(0, 0)], &[]);
        assert_eq!(cards.held().len(), 1, "the chip is never free");
    }
    assert_eq!(cards.held(), BTreeSet::from([share(0, 0)]));
}

#[test]
fn a_holder_that_was_kept_out_waits_while_the_store_frees_nothing() {
    let mut cards = Cards::new(1);
    cards.grant(&[whole(0)]);
    cards.store_works = false;
    cards.observe_for_proof(&[share(0, 0)], &[]);
    assert_eq!(cards.held(), BTreeSet::from([whole(0)]));
    cards.store_works = true;
    cards.observe_for_proof(&[share(0, 0)], &[]);
    assert_eq!(cards.held(), BTreeSet::from([share(0, 0)]));
}

#[test]
fn an_id_of_another_resource_is_not_the_held_one() {
    let mut cards = Cards::new(1);
    cards.grant(&[whole(0)]);
    let mut cards = cards.restarted(1);
    cards.offering = Offering::whole_chips("example.com");
    cards.inventory(vec![card(0, 0), card(1, 1)]);
    let other = ResourceName::new("example.com/Ascend310P").expect("valid");
    let well = |_| ChipVerdict::Healthy;
    let same_chip = cards
        .ledger
        .decide(&other, &[whole(0)], well, &Asked::NoSource);
    assert!(matches!(
        same_chip,
        Decision::Refuse(Refusal::Unhealthy { .. })
    ));
    let free = cards
        .ledger
        .decide(&other, &[whole(1)], well, &Asked::NotYet);
    assert!(matches!(free, Decision::Grant(_)));
    let old_name = cards.decide(&[whole(1)]);
    assert!(matches!(old_name, Decision::Refuse(_)), "{old_name:?}");
}

#[test]
fn more_than_a_hundred_chips_are_not_given_to_one_container() {
    let mut cards = Cards::new(2);
    cards.inventory((0..101).map(|number| card(number, number)).collect());
    let ids: Vec<_> = (0..101).map(|phy| share(phy, 0)).collect();
    assert!(matches!(
        cards.decide(&ids),
        Decision::Refuse(Refusal::Invalid(_))
    ));
    assert!(matches!(
        cards.decide(ids.get(1..).expect("ids")),
        Decision::Grant(_)
    ));
}

#[test]
fn records_that_were_not_read_prove_nothing_about_a_holder() {
    let mut cards = Cards::new(1);
    cards.grant(&[whole(0)]);
    cards.scope = RecordScope::domain("example.com");
    cards.observe_for_proof(&[], &[]);
    assert_eq!(cards.held(), BTreeSet::from([whole(0)]));
    cards.scope.names.insert(resource());
    cards.observe_for_proof(&[], &[]);
    assert_eq!(cards.held(), BTreeSet::new());
}

//! What a decision and a comparison cost in the ledger.

#![expect(clippy::expect_used, reason = "a benchmark that cannot run must fail")]

use std::collections::BTreeSet;
use std::hint::black_box;

use ascend_agent::domain::chip::{Chip, DcmiApi, Inventory};
use ascend_agent::domain::family::ChipFamily;
use ascend_agent::domain::ids::{
    AllocationId, CardId, DeviceId, DieId, GrantId, LogicId, PhyId, PluginDeviceId, ResourceName,
};
use ascend_agent::domain::kubelet_view::{
    CheckpointEntry, CheckpointVersion, CheckpointView, Holding, PodCensus, PodName, RecordScope,
};
use ascend_agent::domain::product::Product;
use ascend_agent::domain::time::{BootId, BootTime, Stamp};
use ascend_agent::ledger::{
    Asked, ChipVerdict, Decision, Ledger, OWNER_PROOF, ObserveContext, ProcessReadings,
};
use ascend_agent::offering::Offering;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use uuid::Uuid;

const HOLDERS: u32 = 16;

fn ledger(criterion: &mut Criterion) {
    for chips in [16, 1024] {
        let node = node_of(chips);
        let asked = [id(0), id(1)];
        let name = format!("ledger/decide and apply two chips of {chips}");
        criterion.bench_function(&name, |bencher| {
            bencher.iter_batched_ref(
                || node.clone(),
                |ledger| grant(ledger, &asked, 0),
                BatchSize::SmallInput,
            );
        });
        let name = format!("ledger/list of {chips} chips");
        criterion.bench_function(&name, |bencher| {
            bencher.iter(|| black_box(&node).offer(|_| ChipVerdict::Healthy));
        });
    }
    let mut node = node_of(HOLDERS);
    for phy in 0..HOLDERS {
        grant(&mut node, &[id(phy)], phy);
    }
    let (census, checkpoint) = (census(), checkpoint());
    let processes = ProcessReadings::default();
    let (scope, offering) = (
        RecordScope::domain("huawei.com"),
        Offering::whole_chips("huawei.com"),
    );
    let context = ObserveContext {
        scope: &scope,
        offering: &offering,
        at: stamp(),
        proof: OWNER_PROOF,
        census: Some(&census),
        checkpoint: Some(Some(&checkpoint)),
        checkpoint_before: Some(checkpoint.version),
        processes: &processes,
    };
    let new_ids = || (AllocationId(Uuid::nil()), GrantId(Uuid::nil()));
    let found = node.observe(&context, new_ids);
    let count = usize::try_from(HOLDERS).expect("few");
    assert_eq!(found.confirmed.len(), count, "every holder is seen");
    node.apply_findings(&found, true, stamp().boot_time);
    criterion.bench_function("ledger/observe 16 confirmed holders", |bencher| {
        bencher.iter(|| black_box(&mut node).observe(&context, new_ids));
    });
}

fn grant(ledger: &mut Ledger, asked: &[PluginDeviceId], first: u32) {
    let verdict = |_| ChipVerdict::Healthy;
    let decision = ledger.decide(&resource(), asked, verdict, &Asked::NotYet);
    let Decision::Grant(plan) = decision else {
        unreachable!("free chips are granted: {decision:?}")
    };
    let mut number = u128::from(first) * 1000;
    let mut next = || {
        number += 1;
        AllocationId(Uuid::from_u128(number))
    };
    let records = plan.records(
        ledger,
        &resource(),
        GrantId(Uuid::nil()),
        &mut next,
        stamp(),
    );
    black_box(plan.history(ledger, &records));
    ledger.apply_grant(&plan, records, BootTime(1), None);
}

fn node_of(chips: u32) -> Ledger {
    let chip = |number| {
        let signed = i32::try_from(number).expect("few");
        Chip {
            die: DieId([number, 1, 2, 3, 4]),
            card: CardId(signed),
            device: DeviceId(0),
            logic: LogicId(number),
            phy: PhyId(number),
            family: ChipFamily::Ascend910B,
            product: Product::Ascend910B,
            chip_name: "910B3".to_owned(),
            ai_cores: Some(20),
            board_id: None,
            mainboard_id: None,
            super_pod_type: None,
            pci: None,
            numa_nodes: BTreeSet::from([number % 2]),
            product_type: None,
        }
    };
    let inventory = Inventory {
        api: DcmiApi::V1,
        dcmi_version: String::new(),
        driver_version: String::new(),
        library: String::new(),
        cards_counted: chips,
        cards_failed: 0,
        chips: (0..chips).map(chip).collect(),
        problems: Vec::new(),
        missing_symbols: Vec::new(),
    };
    let mut ledger = Ledger::default();
    ledger.take_inventory(&inventory, &Offering::whole_chips("huawei.com"));
    ledger
}

fn census() -> PodCensus {
    let pod = |phy| PodName {
        namespace: "default".to_owned(),
        name: format!("train-{phy}"),
    };
    let holding = |phy| Holding {
        pod: pod(phy),
        container: "main".to_owned(),
        resource: resource(),
        ids: BTreeSet::from([id(phy)]),
    };
    PodCensus {
        begun: BootTime(2),
        pods: (0..HOLDERS).map(pod).collect(),
        holdings: (0..HOLDERS).map(holding).collect(),
    }
}

fn checkpoint() -> CheckpointView {
    let entry = |phy| CheckpointEntry {
        pod_uid: format!("00000000-0000-0000-0000-{phy:012}"),
        container: "main".to_owned(),
        resource: resource(),
        ids: BTreeSet::from([id(phy)]),
        device_nodes: BTreeSet::from([PhyId(phy)]),
        visible_devices: None,
    };
    CheckpointView {
        version: CheckpointVersion {
            inode: 1,
            modified_ns: 3,
            size_bytes: 4096,
        },
        read: BootTime(4),
        entries: (0..HOLDERS).map(entry).collect(),
    }
}

fn stamp() -> Stamp {
    Stamp {
        boot_id: BootId(Uuid::from_u128(7)),
        boot_time: BootTime(5),
        utc_ns: 1_800_000_000_000_000_000,
    }
}

fn resource() -> ResourceName {
    ResourceName::new("huawei.com/Ascend910").expect("a valid name")
}

fn id(phy: u32) -> PluginDeviceId {
    PluginDeviceId::whole_chip("Ascend910", PhyId(phy))
}

criterion_group!(benches, ledger);
criterion_main!(benches);

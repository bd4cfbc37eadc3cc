//! What a grant and a start cost in the store.

#![expect(clippy::expect_used, reason = "a benchmark that cannot run must fail")]

use std::hint::black_box;
use std::sync::Arc;

use ascend_agent::domain::allocation::{Allocation, Origin, Owner};
use ascend_agent::domain::history::HistoryEvent;
use ascend_agent::domain::ids::{
    AllocationId, DieId, GrantId, PhyId, PluginDeviceId, ResourceName,
};
use ascend_agent::domain::time::{BootId, BootTime, Stamp};
use ascend_agent::ports::{Batch, Clock, Journal};
use ascend_agent::store::{Settings, Store};
use criterion::{Criterion, criterion_group, criterion_main};
use uuid::Uuid;

const HISTORY_RECORDS: u32 = 100_000;

struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Stamp {
        stamp()
    }
}

fn stamp() -> Stamp {
    Stamp {
        boot_id: BootId(Uuid::from_u128(7)),
        boot_time: BootTime(1),
        utc_ns: 1_800_000_000_000_000_000,
    }
}

fn allocation(number: u32) -> Allocation {
    Allocation {
        id: AllocationId(Uuid::from_u128(u128::from(number))),
        grant: GrantId(Uuid::from_u128(1)),
        resource: ResourceName::new("huawei.com/Ascend910").expect("a valid name"),
        plugin_device_id: PluginDeviceId::new(format!("Ascend910-{number}")).expect("a valid id"),
        die: DieId([number % 16, 1, 2, 3, 4]),
        phy: PhyId(number % 16),
        origin: Origin::Granted,
        granted: stamp(),
        confirmed: false,
        owner: Owner {
            namespace: Some("default".to_owned()),
            pod: Some("train-0".to_owned()),
            container: Some("main".to_owned()),
            pod_uid: None,
        },
    }
}

/// Two chips for one container, as Allocate asks for them.
fn grant(first: u32) -> Batch {
    let put = vec![allocation(first), allocation(first + 1)];
    let event = |held: &Allocation| {
        (
            stamp(),
            HistoryEvent::Granted {
                allocation: held.clone(),
            },
        )
    };
    Batch {
        history: put.iter().map(event).collect(),
        put,
        ..Batch::default()
    }
}

fn store(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let place = tempfile::tempdir().expect("a directory");
    let settings = || Settings::new(place.path().join("s"));
    let open = || Store::open(settings(), Arc::new(StoppedClock)).expect("a store");
    let store = open().store;
    criterion.bench_function("store/durable commit of a grant of two chips", |bencher| {
        let mut number = 0;
        bencher.iter(|| {
            number = (number + 2) % 16;
            runtime
                .block_on(store.commit(grant(number)))
                .expect("a commit")
        });
    });
    runtime.block_on(async {
        for first in (0..HISTORY_RECORDS).step_by(500) {
            let event = |number| {
                (
                    stamp(),
                    HistoryEvent::Granted {
                        allocation: allocation(number),
                    },
                )
            };
            let history = (first..first + 500).map(event).collect();
            store
                .commit(Batch {
                    history,
                    ..Batch::default()
                })
                .await
                .expect("a commit");
        }
        store.close().await;
    });
    let mut group = criterion.benchmark_group("store");
    group.sample_size(20);
    group.bench_function("open and load with 100000 history records", |bencher| {
        bencher.iter_custom(|turns| {
            let mut total = std::time::Duration::ZERO;
            for _ in 0..turns {
                #[expect(clippy::disallowed_methods, reason = "a benchmark measures")]
                let began = std::time::Instant::now();
                let opened = open();
                total += began.elapsed();
                runtime.block_on(black_box(opened.store).close());
            }
            total
        });
    });
    group.finish();
}

criterion_group!(benches, store);
criterion_main!(benches);

//! Small worlds to store.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ascend_agent::domain::allocation::{Allocation, Origin, Owner, ReleaseCause};
use ascend_agent::domain::chip::{Chip, PciAddress};
use ascend_agent::domain::family::ChipFamily;
use ascend_agent::domain::history::HistoryEvent;
use ascend_agent::domain::ids::{
    AllocationId, CardId, DeviceId, DieId, GrantId, LogicId, PhyId, PluginDeviceId, ResourceName,
};
use ascend_agent::domain::product::Product;
use ascend_agent::domain::time::{BootId, BootTime, Stamp};
use ascend_agent::ports::{Batch, ChipRecord, Clock, StoredState};
use ascend_agent::store::{OpenError, Opened, Settings, Store};
use uuid::Uuid;

/// A clock that moves one second each time it is read.
#[derive(Debug, Default)]
pub(crate) struct SteppingClock(AtomicU64);

impl Clock for SteppingClock {
    fn now(&self) -> Stamp {
        stamp(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(SteppingClock::default())
}

pub(crate) fn stamp(second: u64) -> Stamp {
    Stamp {
        boot_id: BootId(Uuid::from_u128(0xB007)),
        boot_time: BootTime(second * 1_000_000_000),
        utc_ns: 1_800_000_000_000_000_000 + i64::try_from(second).unwrap() * 1_000_000_000,
    }
}

pub(crate) fn die(number: u32) -> DieId {
    DieId([number, 0xABCD, 0, u32::MAX, 7])
}

pub(crate) fn resource() -> ResourceName {
    ResourceName::new("huawei.com/Ascend910").unwrap()
}

pub(crate) fn allocation(number: u32) -> Allocation {
    Allocation {
        id: AllocationId(Uuid::from_u128(u128::from(number) + 0xA000)),
        grant: GrantId(Uuid::from_u128(0xC000)),
        resource: resource(),
        plugin_device_id: PluginDeviceId::new(format!("Ascend910-{number}")).unwrap(),
        die: die(number),
        phy: PhyId(number),
        origin: Origin::Granted,
        granted: stamp(u64::from(number)),
        confirmed: number.is_multiple_of(2),
        owner: Owner {
            pod_uid: Some(format!("uid-{number}")),
            namespace: None,
            pod: Some(format!("train-{number}")),
            container: Some("main".to_owned()),
        },
    }
}

pub(crate) fn chip(number: u32) -> ChipRecord {
    ChipRecord {
        chip: Chip {
            die: die(number),
            card: CardId(i32::try_from(number).unwrap()),
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
            pci: Some(PciAddress {
                domain: 0,
                bus: 0xC1,
                device: number,
                function: 0,
            }),
            numa_nodes: BTreeSet::from([number % 2]),
            product_type: None,
        },
        seen: stamp(9),
        present: true,
    }
}

pub(crate) fn grant(numbers: &[u32]) -> Batch {
    let put: Vec<_> = numbers.iter().copied().map(allocation).collect();
    let history = put
        .iter()
        .map(|held| {
            (
                held.granted,
                HistoryEvent::Granted {
                    allocation: held.clone(),
                },
            )
        })
        .collect();
    Batch {
        put,
        history,
        ..Batch::default()
    }
}

pub(crate) fn release(number: u32) -> Batch {
    let held = allocation(number);
    let cause = ReleaseCause::ProvenGone;
    Batch {
        remove: vec![held.id],
        history: vec![(
            stamp(50),
            HistoryEvent::Released {
                allocation: held,
                cause,
            },
        )],
        ..Batch::default()
    }
}

pub(crate) fn chips(numbers: &[u32]) -> Batch {
    Batch {
        chips: numbers.iter().copied().map(chip).collect(),
        ..Batch::default()
    }
}

pub(crate) fn started() -> Batch {
    let version = "0.1.0".to_owned();
    Batch {
        history: vec![(stamp(1), HistoryEvent::AgentStarted { version })],
        ..Batch::default()
    }
}

/// Grants, releases, re-puts and chips, in an order that touches every table.
pub(crate) fn script() -> Vec<Batch> {
    let mut confirmed = grant(&[1]);
    confirmed.put[0].confirmed = true;
    confirmed.history.clear();
    vec![
        started(),
        chips(&[0, 1, 2, 3]),
        grant(&[0, 1]),
        confirmed,
        release(0),
        grant(&[2, 3, 0]),
        release(2),
        chips(&[3, 4]),
        grant(&[5]),
    ]
}

/// What a store must hold after some batches: the naive model.
pub(crate) fn model(batches: &[Batch]) -> StoredState {
    let mut state = StoredState::default();
    for batch in batches {
        for id in &batch.remove {
            state.allocations.retain(|held| held.id != *id);
        }
        for put in &batch.put {
            state.allocations.retain(|held| held.id != put.id);
            state.allocations.push(put.clone());
        }
        for put in &batch.chips {
            state.chips.retain(|known| known.chip.die != put.chip.die);
            state.chips.push(put.clone());
        }
    }
    sorted(state)
}

/// Order and sequence are no part of the comparison.
pub(crate) fn sorted(mut state: StoredState) -> StoredState {
    state.allocations.sort_by_key(|held| held.id);
    state.chips.sort_by_key(|known| known.chip.die);
    state.last_sequence = None;
    state
}

/// A short path, removed with the value.
pub(crate) fn directory() -> (tempfile::TempDir, PathBuf) {
    let keep = tempfile::tempdir().unwrap();
    let path = keep.path().join("s");
    (keep, path)
}

pub(crate) fn open(directory: &Path) -> Result<Opened, OpenError> {
    Store::open(Settings::new(directory.to_path_buf()), clock())
}

/// A message with all its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text = format!("{text}: {source}");
        next = source.source();
    }
    text
}

/// Waits until a store whose handles were dropped has let go of its directory.
pub(crate) async fn eventually_unlocked(directory: &Path) {
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(10);
    let lock = std::fs::File::open(directory.join("agent.lock")).unwrap();
    while lock.try_lock().is_err() {
        assert!(
            tokio::time::Instant::now() < deadline,
            "the store never let go"
        );
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

//! The driver host against the simulated hardware, through the real loading path.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

#[cfg(test)]
#[path = "driver_host/beside.rs"]
mod beside;
#[path = "driver_host/cards.rs"]
mod cards;
#[path = "driver_host/die_policy.rs"]
mod die_policy;
#[path = "driver_host/events.rs"]
mod events;
#[path = "driver_host/hangs.rs"]
mod hangs;
#[path = "driver_host/library.rs"]
mod library;
#[path = "driver_host/life.rs"]
mod life;
#[path = "driver_host/reading.rs"]
mod reading;
#[cfg(test)]
#[path = "common/sim.rs"]
mod sim;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use ascend_agent::domain::chip::{Chip, ChipSample, DcmiApi, DiePolicy, HealthReading, Inventory};
use ascend_agent::domain::family::ChipFamily;
use ascend_agent::domain::fault::{Assertion, FaultCode, HealthLevel, Severity};
use ascend_agent::domain::ids::{CardId, DeviceId, LogicId, PhyId};
use ascend_agent::domain::product::Product;
use ascend_agent::driver::client::{DriverConfig, DriverHost};
use ascend_agent::ports::{Hardware, HardwareError, HardwareNotice};
use sim::Sim;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

/// Far more than any healthy step takes, so that a slow machine fails no test.
const PATIENCE: Duration = Duration::from_secs(20);

struct Node {
    driver: DriverHost,
    notices: mpsc::Receiver<HardwareNotice>,
    state: tempfile::TempDir,
}

fn config_for(sim: &Sim, state: &Path) -> DriverConfig {
    let mut config = DriverConfig::new(
        env!("CARGO_BIN_EXE_ascend-agent").into(),
        state.to_path_buf(),
    );
    config.trusted_library = Some(sim::library());
    config.environment = sim.environment();
    config.sysfs = sim.sysfs();
    config
}

fn start_with(sim: &Sim, change: impl FnOnce(&mut DriverConfig)) -> Node {
    let state = tempfile::tempdir().unwrap();
    let mut config = config_for(sim, state.path());
    change(&mut config);
    let (sender, notices) = mpsc::channel(64);
    Node {
        driver: DriverHost::start(config, sender).unwrap(),
        notices,
        state,
    }
}

fn start(sim: &Sim) -> Node {
    start_with(sim, |_| {})
}

impl Node {
    async fn inventory(&self) -> Inventory {
        timeout(PATIENCE, self.driver.inventory(false))
            .await
            .unwrap()
            .unwrap()
    }

    async fn notice(&mut self) -> HardwareNotice {
        timeout(PATIENCE, self.notices.recv())
            .await
            .unwrap()
            .unwrap()
    }

    async fn host_started(&mut self) -> (u64, u32) {
        loop {
            if let HardwareNotice::HostStarted { epoch, pid } = self.notice().await {
                return (epoch, pid);
            }
        }
    }

    async fn sample(&self) -> Vec<ChipSample> {
        timeout(PATIENCE, self.driver.sample(false))
            .await
            .unwrap()
            .unwrap()
    }
}

async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !condition().await {
        assert!(
            began.elapsed() < PATIENCE,
            "{what} did not happen within {PATIENCE:?}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn health_of(samples: &[ChipSample], logic: u32) -> HealthReading {
    samples
        .iter()
        .find(|sample| sample.logic == LogicId(logic))
        .unwrap()
        .health
        .clone()
}

fn is_running(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .starts_with(" Z")
    })
}

fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill")
        .args([name, &pid.to_string()])
        .status()
        .unwrap();
    assert!(sent.success(), "kill {name} {pid}");
}

/// A copy of the simulated library that really lacks these functions: their names are spoilt in the
/// table of names, so that a search for them finds other names and fails.
fn library_without(dir: &Path, lacking: &[&str]) -> PathBuf {
    let built = fs::read(sim::library()).unwrap();
    let mut older = built.clone();
    let mut spoilt = BTreeSet::new();
    let mut place = 0;
    for text in built.split(|byte| *byte == 0) {
        if let Some(name) = lacking.iter().find(|name| name.as_bytes() == text) {
            older[place] = b'_';
            spoilt.insert(*name);
        }
        place += text.len() + 1;
    }
    assert_eq!(spoilt.len(), lacking.len(), "not all are in the library");
    let path = dir.join("libdcmi.so");
    fs::write(&path, older).unwrap();
    path
}

fn ended(notice: HardwareNotice) -> Option<String> {
    match notice {
        HardwareNotice::HostEnded { cause } => Some(cause),
        HardwareNotice::Fault(_)
        | HardwareNotice::FaultsDropped(_)
        | HardwareNotice::HostStarted { .. } => None,
    }
}

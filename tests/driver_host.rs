//! The driver host against the simulated hardware, through the real loading path.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

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
use std::time::Duration;

use ascend_agent::domain::chip::{ChipSample, DcmiApi, HealthReading, Inventory};
use ascend_agent::domain::family::ChipFamily;
use ascend_agent::domain::fault::{Assertion, FaultCode, HealthLevel, Severity};
use ascend_agent::domain::ids::{CardId, LogicId};
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

fn ended(notice: HardwareNotice) -> Option<String> {
    match notice {
        HardwareNotice::HostEnded { cause } => Some(cause),
        HardwareNotice::Fault(_)
        | HardwareNotice::FaultsDropped(_)
        | HardwareNotice::HostStarted { .. } => None,
    }
}

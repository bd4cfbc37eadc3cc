//! The status document.

use std::collections::BTreeMap;

use crate::domain::allocation::Origin;
use crate::domain::ids::{DieId, ShareSlot};
use crate::domain::status::{
    AllocationStatus, ChipStatus, DeviceStatus, DriverStatus, STATUS_SCHEMA, StatusDocument,
    StoreStatus,
};
use crate::ledger::Held;
use crate::ports::{Clock, Ids, Journal, KubeletRecords};

use super::super::command::DriverTrouble;
use super::Owner;
use super::durable::StoreState;

impl<J: Journal, R: KubeletRecords, C: Clock, I: Ids> Owner<J, R, C, I> {
    pub(super) fn document(&self) -> StatusDocument {
        let mut shortcomings = Vec::new();
        let driver = self.driver_status(&mut shortcomings);
        let store = self.store_status(&mut shortcomings);
        if self.pod_resources == Some(false) {
            shortcomings.push(
                "kubelet's pod-resources API does not answer: a chip granted twice by kubelet may \
                 go unnoticed, and no holder can be proven gone"
                    .to_owned(),
            );
        }
        for (die, why) in self.ledger.frozen() {
            shortcomings.push(format!(
                "chip {die} is withheld, a ledger invariant broke: {why}"
            ));
        }
        shortcomings.extend(
            self.unoffered
                .iter()
                .map(|line| format!("not offered: {line}")),
        );
        if let Some(trouble) = self.cdi_trouble() {
            shortcomings.push(format!("no chip is granted: {trouble}"));
        }
        let chips = self.chip_statuses();
        if !chips.is_empty() && chips.iter().all(|chip| !chip.healthy) {
            shortcomings.push("no chip is healthy".to_owned());
        }
        StatusDocument {
            schema: STATUS_SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            at: self.clock.now().utc_text(),
            ready: false,
            shortcomings,
            driver,
            store,
            kubelet: BTreeMap::new(),
            chips,
            allocations: self.allocation_statuses(),
        }
    }

    fn driver_status(&self, shortcomings: &mut Vec<String>) -> DriverStatus {
        let now = self.now();
        let (state, since, trouble) = match (&self.inventory, &self.driver_trouble) {
            (Some(_), None) => ("up", self.started.boot_time, String::new()),
            (known, trouble) => {
                let state = if known.is_some() { "silent" } else { "waiting" };
                let since = trouble
                    .as_ref()
                    .map_or(self.started.boot_time, |(_, since)| *since);
                let text = trouble.as_ref().map(|(trouble, _)| trouble_text(trouble));
                (
                    state,
                    since,
                    text.unwrap_or_else(|| "not asked yet".to_owned()),
                )
            }
        };
        if state != "up" {
            shortcomings.push(format!("driver {state}: {trouble}"));
        }
        let mut status = DriverStatus {
            state: state.to_owned(),
            for_seconds: now.since(since).as_secs(),
            trouble,
            ..DriverStatus::default()
        };
        if let Some(inventory) = &self.inventory {
            status.api = inventory.api.to_string();
            status.driver_version.clone_from(&inventory.driver_version);
            status.library.clone_from(&inventory.library);
            status.cards_counted = inventory.cards_counted;
            status.cards_failed = inventory.cards_failed;
            status
                .missing_symbols
                .clone_from(&inventory.missing_symbols);
            shortcomings.extend(inventory.problems.iter().cloned());
            if inventory.cards_failed > 0 {
                shortcomings.push(format!(
                    "{} of {} cards failed to initialise",
                    inventory.cards_failed, inventory.cards_counted
                ));
            }
        }
        status
    }

    fn store_status(&self, shortcomings: &mut Vec<String>) -> StoreStatus {
        let path = self
            .settings
            .state_dir
            .as_ref()
            .map_or_else(String::new, |path| path.display().to_string());
        match &self.store {
            StoreState::Durable { last_commit } => StoreStatus {
                state: "durable".to_owned(),
                path,
                trouble: self
                    .journal
                    .rebuilt()
                    .map_or_else(String::new, |damage| format!("begun anew: {damage}")),
                last_commit: *last_commit,
            },
            StoreState::Failing { cause, .. } => {
                shortcomings.push(format!(
                    "the store refuses writes, nothing is granted: {cause}"
                ));
                StoreStatus {
                    state: "failing".to_owned(),
                    path,
                    trouble: cause.clone(),
                    last_commit: 0,
                }
            }
            StoreState::Volatile { why } => {
                shortcomings.push(format!(
                    "no durable state ({why}): holders are known from kubelet's records only, and \
                     the history ends with this run"
                ));
                StoreStatus {
                    state: "none".to_owned(),
                    path: String::new(),
                    trouble: why.clone(),
                    last_commit: 0,
                }
            }
        }
    }

    fn chip_statuses(&self) -> Vec<ChipStatus> {
        let mut devices = self.device_statuses();
        let mut chips: Vec<ChipStatus> = self
            .ledger
            .chips()
            .values()
            .filter(|entry| entry.present || self.health.contains_key(&entry.chip.die))
            .map(|entry| {
                let chip = &entry.chip;
                let devices = devices.remove(&chip.die).unwrap_or_default();
                let first = devices.first();
                let healthy = devices.iter().any(|device| device.healthy);
                let holders: Vec<String> = self
                    .ledger
                    .holders_of_die(chip.die)
                    .map(|held| held.record.owner.to_string())
                    .collect();
                ChipStatus {
                    phy: chip.phy.0,
                    logic: chip.logic.0,
                    card: chip.card.0,
                    device: chip.device.0,
                    die: chip.die.to_string(),
                    name: chip.chip_name.clone(),
                    plugin_device_id: first
                        .map(|device| device.plugin_device_id.clone())
                        .unwrap_or_default(),
                    resource: first
                        .map(|device| device.resource.clone())
                        .unwrap_or_default(),
                    present: entry.present,
                    healthy,
                    reason: match first {
                        Some(_) if healthy => String::new(),
                        Some(device) => device.reason.clone(),
                        None if entry.present => "it is not offered in this mode".to_owned(),
                        None => "the driver does not list this chip".to_owned(),
                    },
                    codes: self.codes(chip.die),
                    holder: holders.join(", "),
                    devices,
                }
            })
            .collect();
        chips.sort_by_key(|chip| chip.phy);
        chips
    }

    /// The ids of each chip in the list, slots in their order, and those of its holders that this run
    /// lists for their sake alone.
    fn device_statuses(&self) -> BTreeMap<DieId, Vec<DeviceStatus>> {
        let offers = self.offers.borrow();
        let mut by_die: BTreeMap<DieId, Vec<(Option<ShareSlot>, DeviceStatus)>> = BTreeMap::new();
        for (resource, devices) in &offers.resources {
            for device in devices {
                let held = self.ledger.holder(resource, &device.id);
                let Some(place) = self.ledger.place(resource, &device.id) else {
                    continue;
                };
                let Some(die) = place.die.or(held.map(|held| held.record.die)) else {
                    continue;
                };
                let status = DeviceStatus {
                    plugin_device_id: device.id.to_string(),
                    resource: resource.to_string(),
                    healthy: device.healthy,
                    reason: device.reason.clone(),
                    holder: held
                        .map(|held| held.record.owner.to_string())
                        .unwrap_or_default(),
                    state: held.map_or("free", state_of).to_owned(),
                };
                by_die.entry(die).or_default().push((place.share, status));
            }
        }
        by_die
            .into_iter()
            .map(|(die, mut devices)| {
                devices.sort_by_key(|(slot, _)| *slot);
                let devices = devices.into_iter().map(|(_, device)| device).collect();
                (die, devices)
            })
            .collect()
    }

    fn codes(&self, die: DieId) -> Vec<String> {
        self.health
            .get(&die)
            .map(|health| health.codes().iter().map(ToString::to_string).collect())
            .unwrap_or_default()
    }

    fn allocation_statuses(&self) -> Vec<AllocationStatus> {
        let mut held: Vec<AllocationStatus> =
            self.ledger.held().values().map(allocation_status).collect();
        held.sort_by_key(|allocation| allocation.phy);
        held
    }
}

fn trouble_text(trouble: &DriverTrouble) -> String {
    match trouble {
        DriverTrouble::Failed(error) => error.to_string(),
        DriverTrouble::Incomplete {
            chips,
            cards_up,
            cards_counted,
            problems,
        } => {
            let mut text =
                format!("{cards_up} of {cards_counted} cards are up, {chips} chips can be read");
            if let Some(first) = problems.first() {
                text.push_str("; ");
                text.push_str(first);
            }
            text
        }
    }
}

fn allocation_status(held: &Held) -> AllocationStatus {
    let record = &held.record;
    AllocationStatus {
        id: record.id.to_string(),
        grant: record.grant.to_string(),
        plugin_device_id: record.plugin_device_id.to_string(),
        resource: record.resource.to_string(),
        die: record.die.to_string(),
        phy: record.phy.0,
        namespace: record.owner.namespace.clone().unwrap_or_default(),
        pod: record.owner.pod.clone().unwrap_or_default(),
        pod_uid: record.owner.pod_uid.clone().unwrap_or_default(),
        container: record.owner.container.clone().unwrap_or_default(),
        state: state_of(held).to_owned(),
        since: record.granted.utc_text(),
        origin: match record.origin {
            Origin::Granted => "granted",
            Origin::Adopted => "adopted",
        }
        .to_owned(),
    }
}

fn state_of(held: &Held) -> &'static str {
    if held.withheld.is_some() {
        "withheld"
    } else if held.absence.is_some() {
        "unlisted"
    } else if held.record.confirmed {
        "confirmed"
    } else {
        "granted"
    }
}

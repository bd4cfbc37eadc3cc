//! The status document.

use crate::domain::allocation::Origin;
use crate::domain::ids::DieId;
use crate::domain::status::{
    AllocationStatus, ChipStatus, DriverStatus, STATUS_SCHEMA, StatusDocument, StoreStatus,
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
        let domain = &self.settings.naming.domain;
        let foreign = self
            .ledger
            .held()
            .values()
            .filter(|held| held.record.resource.domain() != domain)
            .count();
        if foreign > 0 {
            shortcomings.push(format!(
                "{foreign} chips are held under another resource domain than {domain}: they stay held \
                 until the agent runs with that domain again"
            ));
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
            kubelet: std::collections::BTreeMap::new(),
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
        let offers = self.offers.borrow();
        let mut chips: Vec<ChipStatus> = self
            .ledger
            .chips()
            .values()
            .filter(|entry| entry.present || self.health.contains_key(&entry.chip.die))
            .map(|entry| {
                let chip = &entry.chip;
                let place = self
                    .ledger
                    .places()
                    .iter()
                    .find(|(_, place)| place.die == Some(chip.die));
                let offered = place.and_then(|(id, place)| {
                    offers
                        .resources
                        .get(&place.resource)?
                        .iter()
                        .find(|device| device.id == *id)
                });
                ChipStatus {
                    phy: chip.phy.0,
                    logic: chip.logic.0,
                    card: chip.card.0,
                    device: chip.device.0,
                    die: chip.die.to_string(),
                    name: chip.chip_name.clone(),
                    plugin_device_id: place.map(|(id, _)| id.to_string()).unwrap_or_default(),
                    resource: place
                        .map(|(_, place)| place.resource.to_string())
                        .unwrap_or_default(),
                    present: entry.present,
                    healthy: offered.is_some_and(|device| device.healthy),
                    reason: offered.map_or_else(
                        || "the driver does not list this chip".to_owned(),
                        |device| device.reason.clone(),
                    ),
                    codes: self.codes(chip.die),
                    holder: self
                        .ledger
                        .holder_of_die(chip.die)
                        .map(|held| held.record.owner.to_string())
                        .unwrap_or_default(),
                }
            })
            .collect();
        chips.sort_by_key(|chip| chip.phy);
        chips
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
    let state = if held.withheld.is_some() {
        "withheld"
    } else if held.absence.is_some() {
        "unlisted"
    } else if record.confirmed {
        "confirmed"
    } else {
        "granted"
    };
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
        state: state.to_owned(),
        since: record.granted.utc_text(),
        origin: match record.origin {
            Origin::Granted => "granted",
            Origin::Adopted => "adopted",
        }
        .to_owned(),
    }
}

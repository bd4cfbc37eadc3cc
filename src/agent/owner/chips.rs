//! What the driver says: enumerations, samples, events, silence.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::domain::chip::{ChipSample, Inventory};
use crate::domain::fault::FaultEvent;
use crate::domain::history::HistoryEvent;
use crate::domain::ids::{DieId, PhyId};
use crate::health::Transition;
use crate::injection::{Delivery, InjectionError, missing_nodes, wanted_nodes};
use crate::offering::ChipRefused;
use crate::ports::{Batch, ChipRecord, Clock, Ids, Journal, KubeletRecords};

use super::super::command::DriverTrouble;
use super::super::host_paths::look;
use super::{Owner, TICK};

impl<J: Journal, R: KubeletRecords, C: Clock, I: Ids> Owner<J, R, C, I> {
    pub(super) async fn take_inventory(&mut self, mut inventory: Inventory) {
        let at = self.clock.now();
        for chip in &mut inventory.chips {
            if let Some(known) = self.ledger.chips().get(&chip.die) {
                chip.recall(&known.chip);
            }
        }
        let offering = &self.settings.offering;
        let refused = inventory
            .chips
            .iter()
            .find_map(|chip| offering.places(chip).err());
        if let Some(refused) = refused
            && self.inventory.is_none()
        {
            // Nothing was offered yet, and nothing will be: the start ends with this reason.
            self.unfit.send_replace(Some(refused));
            return;
        }
        if self.inventory.is_none() {
            for line in offering.without_effect(&inventory.chips) {
                tracing::warn!("{line}");
            }
        }
        let taken = self.ledger.take_inventory(&inventory, offering);
        self.tell_unoffered(&taken.refused);
        let (changed, events) = (taken.changed, taken.events);
        self.logic_to_die = inventory
            .chips
            .iter()
            .map(|chip| (chip.logic, chip.die))
            .collect();
        for chip in &inventory.chips {
            self.health.entry(chip.die).or_default();
        }
        for line in &inventory.problems {
            tracing::warn!(problem = line, "a chip cannot be read");
        }
        let known = self.inventory.as_ref();
        if known.is_none_or(|known| known.chips != inventory.chips) {
            tracing::info!(
                chips = inventory.chips.len(),
                cards_counted = inventory.cards_counted,
                cards_failed = inventory.cards_failed,
                api = %inventory.api,
                driver_version = inventory.driver_version,
                library = inventory.library,
                missing_symbols = ?inventory.missing_symbols,
                "node enumerated"
            );
        }
        for event in &events {
            tell_change(event);
        }
        self.processes.take_inventory(&inventory);
        self.inventory = Some(inventory);
        self.driver_trouble = None;
        // An enumeration is an answer too: silence counts from it.
        self.last_sample = self.last_sample.map(|_| at.boot_time);
        let chips = changed
            .into_iter()
            .map(|entry| ChipRecord {
                chip: entry.chip,
                seen: at,
                present: entry.present,
            })
            .collect();
        let history = events.into_iter().map(|event| (at, event)).collect();
        self.refresh_cdi().await;
        // Facts about the hardware hold whether or not they could be written; a refusal is kept in
        // the store's state.
        let _ = self
            .commit(Batch {
                chips,
                history,
                ..Batch::default()
            })
            .await;
    }

    /// A chip that came later and does not fit the mode: what is offered stays offered.
    fn tell_unoffered(&mut self, refused: &[ChipRefused]) {
        let lines: Vec<String> = refused.iter().map(ToString::to_string).collect();
        for line in lines.iter().filter(|line| !self.unoffered.contains(line)) {
            tracing::error!("a chip is not offered: {line}");
        }
        self.unoffered = lines;
    }

    pub(super) fn take_trouble(&mut self, trouble: DriverTrouble) {
        let since = if let Some((_, since)) = &self.driver_trouble {
            *since
        } else {
            tell_trouble(&trouble);
            self.now()
        };
        self.driver_trouble = Some((trouble, since));
    }

    /// Takes samples over, which the driver was asked for so long ago.
    pub(super) async fn take_samples(&mut self, asked_before: Duration, samples: &[ChipSample]) {
        let now = self.now();
        self.last_sample = Some(now);
        if self.driver_trouble.is_some() && self.inventory.is_some() {
            tracing::info!("the driver answers again");
            self.driver_trouble = None;
        }
        self.look_for_nodes();
        let policy = self.settings.policy;
        let mut transitions = Vec::new();
        for sample in samples {
            let Some(die) = self.logic_to_die.get(&sample.logic).copied() else {
                continue;
            };
            if let Some(processes) = &sample.processes {
                let asked = now.minus(asked_before);
                self.processes.read(die, asked, processes.is_empty());
            }
            let health = self.health.entry(die).or_default();
            if let Some(change) = health.sample(&sample.health, &sample.codes, now, &policy) {
                transitions.push((die, change));
            }
        }
        self.tell_transitions(transitions).await;
        self.sampled
            .send_if_modified(|sampled| !std::mem::replace(sampled, true));
    }

    /// A chip that Allocate would refuse for want of a device node is not offered either. With Ascend
    /// Docker Runtime the runtime brings the nodes, and ours tell nothing.
    fn look_for_nodes(&mut self) {
        let delivery = &self.settings.delivery;
        let mut nodeless: BTreeMap<DieId, InjectionError> = BTreeMap::new();
        for entry in self.ledger.chips().values().filter(|entry| entry.present) {
            let (product, phy) = (entry.chip.product, entry.chip.phy);
            if delivery.of(product) == Delivery::DockerRuntime {
                continue;
            }
            let host = look(&wanted_nodes(delivery, product, [phy]));
            let paths = missing_nodes(delivery, product, phy, &host);
            if !paths.is_empty() {
                let missing = InjectionError::RequiredDeviceMissing { paths };
                nodeless.insert(entry.chip.die, missing);
            }
        }
        if nodeless != self.nodeless {
            for (die, missing) in &nodeless {
                tracing::warn!(die_id = %die, %missing, "a chip is not offered");
            }
            self.nodeless = nodeless;
            self.publish();
        }
    }

    pub(super) async fn take_fault(&mut self, event: &FaultEvent) {
        let Some(die) = self.logic_to_die.get(&event.logic).copied() else {
            tracing::warn!(logic = %event.logic, code = %event.code, "fault event for an unknown chip");
            return;
        };
        tracing::debug!(die_id = %die, ?event, "fault event");
        let policy = self.settings.policy;
        let now = self.now();
        let change = self
            .health
            .entry(die)
            .or_default()
            .event(event, now, &policy);
        self.tell_transitions(change.map(|change| (die, change)).into_iter().collect())
            .await;
    }

    /// A driver that is silent as a whole leaves the chips as they were for the grace time, because
    /// its host is replaced within a second after a crash.
    pub(super) async fn judge_silent_driver(&mut self) {
        let now = self.now();
        // While the owner itself stood still (a frozen process, a suspended machine, a slow disk) nobody
        // listened, and the driver's answers may wait in the queue: that time is not the driver's silence.
        let stood_still = now.since(std::mem::replace(&mut self.judged, now));
        if let Some(last) = &mut self.last_sample
            && stood_still > TICK * 2
        {
            *last = last.plus(stood_still);
        }
        let Some(last) = self.last_sample else { return };
        // A driver that the agent itself has initialised anew is not silent before its deadline.
        let grace = match self.renewing {
            Some(begun) if now.since(begun) <= self.settings.driver_init => return,
            Some(_) | None => self.settings.driver_grace,
        };
        if now.since(last) <= grace {
            return;
        }
        let policy = self.settings.policy;
        let transitions = self
            .health
            .iter_mut()
            .filter_map(|(die, health)| health.silence(now, &policy).map(|change| (*die, change)))
            .collect();
        self.tell_transitions(transitions).await;
    }

    /// Bad news is published first and stored next, good news stored first.
    async fn tell_transitions(&mut self, transitions: Vec<(DieId, Transition)>) {
        if transitions.is_empty() {
            return;
        }
        let at = self.clock.now();
        let mut history = Vec::new();
        let mut bad = false;
        for (die, change) in transitions {
            let phy = self
                .ledger
                .chips()
                .get(&die)
                .map_or(PhyId(0), |entry| entry.chip.phy);
            bad |= !change.healthy;
            if change.healthy {
                tracing::info!(die_id = %die, %phy, reason = change.reason, "chip healthy");
            } else {
                tracing::warn!(
                    die_id = %die,
                    %phy,
                    reason = change.reason,
                    codes = ?change.codes.iter().map(ToString::to_string).collect::<Vec<_>>(),
                    "chip unhealthy"
                );
            }
            history.push((
                at,
                HistoryEvent::ChipHealth {
                    die,
                    phy,
                    healthy: change.healthy,
                    reason: change.reason,
                    codes: change.codes,
                },
            ));
        }
        if bad {
            self.publish();
        }
        let _ = self
            .commit(Batch {
                history,
                ..Batch::default()
            })
            .await;
        self.publish();
    }
}

/// What the hardware does by itself is worth a look; a chip that appears is what everybody waits for.
fn tell_change(event: &HistoryEvent) {
    if let HistoryEvent::ChipAppeared {
        die,
        phy,
        chip_name,
    } = event
    {
        tracing::info!(die_id = %die, %phy, chip_name, "chip appeared");
    } else if let HistoryEvent::ChipMoved { die, from, to } = event {
        tracing::warn!(die_id = %die, %from, %to, "chip moved to another number");
    } else if let HistoryEvent::ChipVanished { die, phy } = event {
        tracing::warn!(die_id = %die, %phy, "chip vanished");
    }
}

fn tell_trouble(trouble: &DriverTrouble) {
    match trouble {
        DriverTrouble::Failed(error) => tracing::warn!(%error, "the driver does not answer"),
        DriverTrouble::Incomplete {
            chips,
            cards_up,
            cards_counted,
            problems,
        } => tracing::warn!(
            chips,
            cards_up,
            cards_counted,
            ?problems,
            "waiting for every card to come up"
        ),
    }
}

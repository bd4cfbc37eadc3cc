//! What a host reports, and what follows from it.

use tracing::{info, warn};

use super::{Supervisor, answer};
use crate::domain::chip::{ChipSample, Inventory};
use crate::domain::fault::FaultEvent;
use crate::driver::moment::Moment;
use crate::driver::protocol::{HostFailure, Report, Stuck};
use crate::ports::{HardwareError, HardwareNotice};

impl Supervisor {
    pub(super) fn take_report(&mut self, report: Report) {
        match report {
            Report::Hello { .. } | Report::Closed => {}
            Report::Note(text) => warn!(note = text, "driver host"),
            Report::Failed(failure) => {
                let error = error_of(failure);
                self.retire(&error.to_string(), false);
                self.fail(&error, Moment::now());
            }
            Report::Inventory { id, result } => self.take_inventory(id, result),
            Report::Samples { id, samples, stuck } => self.take_samples(id, &samples, stuck),
            Report::DiePolicySet { id, result } => self.take_die_policy(id, result),
            Report::Event(event) => self.take_event(event),
            Report::EventsDropped(count) => self.notices.lost(count),
        }
    }

    fn take_inventory(&mut self, id: u64, result: Result<Inventory, HostFailure>) {
        let Some(host) = &mut self.host else { return };
        if host
            .enumeration
            .as_ref()
            .is_none_or(|flight| flight.id != id)
        {
            return;
        }
        host.enumeration = None;
        let inventory = match result {
            Ok(inventory) => inventory,
            Err(failure) => {
                let error = error_of(failure);
                for waiting in self.inventories.drain(..) {
                    answer(waiting.reply, Err(error.clone()));
                }
                if self
                    .host
                    .as_ref()
                    .is_some_and(|host| host.current.is_none())
                {
                    self.retire(&error.to_string(), true);
                    self.fail(&error, Moment::now());
                }
                return;
            }
        };
        let (epoch, pid) = (host.epoch, host.process.pid());
        self.failure = None;
        if host.current.replace(inventory.clone()).is_none() {
            info!(
                epoch,
                pid,
                chips = inventory.chips.len(),
                "driver host started"
            );
            self.notices
                .push(HardwareNotice::HostStarted { epoch, pid });
        }
        if self.inventories.is_empty() {
            return;
        }
        for waiting in self.inventories.drain(..) {
            answer(waiting.reply, Ok(inventory.clone()));
        }
        self.told = Some(inventory);
    }

    fn take_samples(&mut self, id: u64, samples: &[ChipSample], stuck: Stuck) {
        let Some(host) = &mut self.host else { return };
        let Some(flight) = host.sampling.take_if(|flight| flight.id == id) else {
            return;
        };
        for reply in flight.wanted_by {
            answer(reply, Ok(samples.to_vec()));
        }
        if self.patience.is_over(stuck, Moment::now()) {
            let cause = format!(
                "{} calls hang, the longest for {} ms beyond its deadline",
                stuck.threads, stuck.longest_ms
            );
            self.replace(&cause, false);
        }
    }

    /// Passes an event on under the number that the listener knows.
    fn take_event(&mut self, mut event: FaultEvent) {
        let current = self.host.as_ref().and_then(|host| host.current.as_ref());
        let die_of = |inventory: &Inventory| {
            inventory
                .chips
                .iter()
                .find(|chip| chip.logic == event.logic)
                .map(|chip| chip.die)
        };
        let known = self.told.as_ref().or(current);
        let logic = current.and_then(die_of).and_then(|die| {
            known?
                .chips
                .iter()
                .find(|chip| chip.die == die)
                .map(|chip| chip.logic)
        });
        match logic {
            Some(logic) => {
                event.logic = logic;
                self.notices.push(HardwareNotice::Fault(event));
            }
            // Of a chip nobody knows, or before the first look: have everything sampled.
            None => self.notices.lost(1),
        }
    }
}

fn error_of(failure: HostFailure) -> HardwareError {
    match failure {
        HostFailure::Library(text) => HardwareError::Library(text),
        HostFailure::Init(text) => HardwareError::Init(text),
        HostFailure::Host(text) => HardwareError::Host(text),
        HostFailure::Call { symbol, code, text } => {
            let calls = ["dcmi_get_card_list", "dcmiv2_get_device_list"];
            match calls.into_iter().find(|call| *call == symbol) {
                Some(call) => HardwareError::Call { call, code },
                None => HardwareError::Init(text),
            }
        }
    }
}

//! Control requests: what they change.

use std::time::Duration;

use serde_json::Value;

use super::injection::{ANY_SYMBOL, Left, MAX_RULES, Scope};
use super::{Card, Chip, Hardware};
use crate::clock::Moment;
use crate::profile::identity_of;
use crate::wire::{Address, IpVersion, SYMBOLS, Switch};
use crate::wire::{Assertion, CardUnit, CodeAction, Control, EventRecord, Process, ReturnCode};

/// Most codes on one chip, as the driver keeps.
const MAX_CODES: usize = 128;
/// Most holders of one chip, as the driver writes.
const MAX_PROCESSES: u32 = 64;
/// Most events of one request.
const MAX_EVENTS: u32 = 100_000;
/// Node type of an event, the driver's number for a system on chip.
const NODE_TYPE_SOC: u8 = 0x40;
const FIRST_HOLDER_PID: u32 = 10_000;
/// Greatest process id of Linux.
const HIGHEST_PID: u32 = 1 << 22;
const HOLDER_MEMORY_BYTES: u64 = 64 << 20;
const HIGHEST_SEVERITY: u8 = 3;
const HIGHEST_HEALTH: u32 = 4;

/// Why a control request was not carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ControlError {
    /// No card has this id.
    #[error("there is no card {card}; `status` lists the cards")]
    UnknownCard {
        /// Card id.
        card: i32,
    },
    /// The card has no such device.
    #[error("card {card} has no device {device}; `status` lists the chips")]
    UnknownDevice {
        /// Card id.
        card: i32,
        /// Device id.
        device: i32,
    },
    /// No chip has this phy id.
    #[error("there is no chip with phy id {chip}; `status` lists the chips")]
    UnknownChip {
        /// Phy id.
        chip: u32,
    },
    /// The library exports no such function.
    #[error("libdcmi.so does not export {symbol}; give an exported name or *")]
    UnknownSymbol {
        /// The name.
        symbol: String,
    },
    /// The profile has no such reading.
    #[error("this profile has no reading {name}; add it to the profile")]
    UnknownReading {
        /// The name.
        name: String,
    },
    /// An address of the other version of the protocol.
    #[error("{address} is not of the version named; name the other or give another address")]
    AddressVersion {
        /// The address.
        address: Address,
    },
    /// A number is out of its range.
    #[error("{what} must be at most {limit}, not {value}")]
    TooLarge {
        /// Kind of number.
        what: &'static str,
        /// The value.
        value: u64,
        /// Greatest value.
        limit: u64,
    },
    /// The chip's code list is full.
    #[error("chip {chip} already has {MAX_CODES} codes; clear one first")]
    CodesFull {
        /// Phy id.
        chip: u32,
    },
    /// No vNPU has this id.
    #[error("there is no vNPU {vdev}; `vdev list` lists them")]
    UnknownVdevice {
        /// vdev id.
        vdev: u32,
    },
    /// The chip cannot be cut so.
    #[error(
        "the driver answers {code} when {template} is cut from chip {chip}; \
         `status` shows what was cut already"
    )]
    NotCut {
        /// Phy id.
        chip: u32,
        /// Template name.
        template: String,
        /// Return code.
        code: i32,
    },
    /// Too many fault rules.
    #[error("there are already {MAX_RULES} fault rules; remove or release some first")]
    RulesFull,
    /// The report could not be written as JSON.
    #[error("the report cannot be written as JSON")]
    Report(#[from] serde_json::Error),
}

type Done = Result<(), ControlError>;

impl Hardware {
    /// Carries out a request. `fresh_boot` is the id of the next boot, should one start.
    ///
    /// # Errors
    /// The request names something that is not there or exceeds a limit; nothing has changed.
    pub(crate) fn control(
        &mut self,
        request: Control,
        fresh_boot: String,
        now: Moment,
    ) -> Result<Option<Value>, ControlError> {
        match request {
            Control::Lose { unit } => self.set_lost(unit, true)?,
            Control::Return { unit } => self.set_lost(unit, false)?,
            Control::FailInit { card } => self.card_mut(card)?.init_fails = true,
            Control::HealInit { card } => self.card_mut(card)?.init_fails = false,
            Control::Hide { card } => self.card_mut(card)?.hidden = true,
            Control::Show { card } => self.card_mut(card)?.hidden = false,
            Control::HideCards { count } => self.hide_last(count),
            Control::Health { chip, level } => self.set_health(chip, level)?,
            Control::Code {
                action,
                chip,
                code,
                event,
                severity,
                sticky,
            } => {
                self.change_code(action, chip, code)?;
                self.mark_sticky(chip, code, sticky && action == CodeAction::Add)?;
                if event {
                    let record = self.event(chip, code, matching(action), severity, now)?;
                    self.events.emit(record);
                }
            }
            Control::Event {
                chip,
                code,
                assertion,
                severity,
                count,
                on_subscribe,
                serial,
            } => {
                within("the number of events", count, MAX_EVENTS)?;
                for _ in 0..count {
                    let mut record = self.event(chip, code, assertion, severity, now)?;
                    record.serial = serial.unwrap_or(record.serial);
                    self.events.tell(record, on_subscribe);
                }
            }
            Control::Latency { symbol, ms, chip } => self.set_latency(symbol, ms, chip)?,
            Control::Hang {
                symbol,
                chip,
                answer,
            } => self.hang(symbol, chip, answer)?,
            Control::Release { symbol, chip } => self.release(symbol.as_deref(), chip)?,
            Control::ReturnCode {
                symbol,
                code,
                chip,
                times,
                for_ms,
            } => {
                let scope = self.scope(symbol, chip)?;
                let left = lasting(times, for_ms, now);
                self.injection.set_code(scope, ReturnCode(code), left);
            }
            Control::Processes {
                chip,
                count,
                first_pid,
            } => self.set_processes(chip, count, first_pid)?,
            Control::Address {
                chip,
                version,
                address,
            } => self.set_address(chip, version, address)?,
            Control::Caller { caller } => self.injection.set_caller(caller),
            Control::Quirk { quirk, switch } => {
                self.injection.set_quirk(quirk, switch == Switch::On);
            }
            Control::Reading { chip, name, value } => self.set_reading(chip, name, value)?,
            Control::Heal { chip } => self.chip_mut(chip)?.heal(),
            Control::SwapSerials { first, second } => self.swap_serials(first, second)?,
            Control::Replace { chip } => self.replace(chip)?,
            Control::Remove { chip } => {
                let card = self.chip_mut(chip)?.card;
                self.remove_card(card);
            }
            Control::Reboot => self.reboot(fresh_boot),
            Control::Upgrade { switch } => self.upgrading = switch == Switch::On,
            Control::Vdev(request) => return self.control_vdev(request),
            Control::ResetFault { chip, fault } => self.chip_mut(chip)?.reset.fault = fault,
            Control::BootTime { ms } => self.settings.boot_ms = ms,
            Control::Outband { chip, switch } => self.set_outband(chip, switch)?,
            Control::Status { .. } => return Ok(Some(serde_json::to_value(self.status(now))?)),
            Control::Calls { reset, .. } => {
                let report = serde_json::to_value(self.call_report())?;
                if reset {
                    self.calls.reset();
                }
                return Ok(Some(report));
            }
            Control::Shutdown => {}
        }
        Ok(None)
    }

    pub(super) fn find_chip(&self, chip: u32) -> Result<usize, ControlError> {
        self.slot_of_phy(chip)
            .ok_or(ControlError::UnknownChip { chip })
    }

    pub(super) fn chip_mut(&mut self, chip: u32) -> Result<&mut Chip, ControlError> {
        let slot = self.find_chip(chip)?;
        self.chips
            .get_mut(slot)
            .ok_or(ControlError::UnknownChip { chip })
    }

    fn card_mut(&mut self, id: i32) -> Result<&mut Card, ControlError> {
        self.cards
            .iter_mut()
            .find(|card| card.id == id && !card.removed)
            .ok_or(ControlError::UnknownCard { card: id })
    }

    fn scope(&self, symbol: String, chip: Option<u32>) -> Result<Scope, ControlError> {
        if symbol != ANY_SYMBOL && !SYMBOLS.contains(&symbol.as_str()) {
            return Err(ControlError::UnknownSymbol { symbol });
        }
        if self.injection.is_full() {
            return Err(ControlError::RulesFull);
        }
        Ok(Scope {
            symbol,
            chip: chip.map(|chip| self.find_chip(chip)).transpose()?,
        })
    }

    fn set_latency(&mut self, symbol: String, ms: u64, chip: Option<u32>) -> Done {
        let scope = self.scope(symbol, chip)?;
        self.injection.set_delay(scope, Duration::from_millis(ms));
        Ok(())
    }

    fn hang(&mut self, symbol: String, chip: Option<u32>, only_answer: bool) -> Done {
        let scope = self.scope(symbol, chip)?;
        self.injection.hold(scope, only_answer);
        Ok(())
    }

    fn release(&mut self, symbol: Option<&str>, chip: Option<u32>) -> Done {
        let chip = chip.map(|chip| self.find_chip(chip)).transpose()?;
        self.injection.release(symbol, chip);
        Ok(())
    }

    fn set_lost(&mut self, unit: CardUnit, lost: bool) -> Done {
        let CardUnit { card: id, device } = unit;
        let card = self
            .cards
            .iter()
            .position(|card| card.id == id && !card.removed)
            .ok_or(ControlError::UnknownCard { card: id })?;
        let mut found = false;
        for chip in &mut self.chips {
            if chip.card == card && device.is_none_or(|device| device == chip.device) {
                chip.lost = lost;
                found = true;
            }
        }
        match device {
            Some(device) if !found => Err(ControlError::UnknownDevice { card: id, device }),
            _ => Ok(()),
        }
    }

    fn hide_last(&mut self, count: u32) {
        let hidden = usize::try_from(count).unwrap_or(usize::MAX);
        let present = self.cards.iter_mut().rev().filter(|card| !card.removed);
        for (place, card) in present.enumerate() {
            card.hidden = place < hidden;
        }
    }

    fn set_health(&mut self, chip: u32, level: u32) -> Done {
        if level != u32::MAX {
            within("the health level", level, HIGHEST_HEALTH)?;
        }
        self.chip_mut(chip)?.health = level;
        Ok(())
    }

    fn change_code(&mut self, action: CodeAction, chip: u32, code: u32) -> Done {
        let codes = &mut self.chip_mut(chip)?.codes;
        match action {
            CodeAction::Add if codes.contains(&code) => {}
            CodeAction::Add if codes.len() >= MAX_CODES => {
                return Err(ControlError::CodesFull { chip });
            }
            CodeAction::Add => codes.push(code),
            CodeAction::Clear => codes.retain(|known| *known != code),
        }
        Ok(())
    }

    pub(super) fn event(
        &mut self,
        chip: u32,
        event_id: u32,
        assertion: Assertion,
        severity: u8,
        now: Moment,
    ) -> Result<EventRecord, ControlError> {
        within(
            "the severity",
            u32::from(severity),
            u32::from(HIGHEST_SEVERITY),
        )?;
        let slot = self.find_chip(chip)?;
        let known = self
            .chips
            .get(slot)
            .ok_or(ControlError::UnknownChip { chip })?;
        let logic = self.logic_of(known);
        Ok(EventRecord {
            chip: slot,
            logic,
            event_id,
            assertion: match assertion {
                Assertion::Recovered => 0,
                Assertion::Occurred => 1,
                Assertion::OneOff => 2,
            },
            severity,
            node_type: NODE_TYPE_SOC,
            serial: self.events.take_serial(),
            raised_ms: now.unix_ms,
            name: "simulated fault".to_owned(),
        })
    }

    fn set_address(&mut self, chip: u32, version: IpVersion, address: Option<Address>) -> Done {
        let is_v6 = version == IpVersion::V6;
        if let Some(address) = address.filter(|address| address.is_v6() != is_v6) {
            return Err(ControlError::AddressVersion { address });
        }
        let [v4, v6] = &mut self.chip_mut(chip)?.addresses;
        *(if is_v6 { v6 } else { v4 }) = address;
        Ok(())
    }

    fn set_processes(&mut self, chip: u32, count: u32, first_pid: Option<u32>) -> Done {
        within("the number of processes", count, MAX_PROCESSES)?;
        let first = first_pid.unwrap_or_else(|| FIRST_HOLDER_PID.saturating_add(chip * 100));
        within("the first process id", first, HIGHEST_PID)?;
        let chip = self.chip_mut(chip)?;
        chip.processes = (first..first + count)
            .map(|pid| Process {
                pid: i32::try_from(pid).unwrap_or(i32::MAX),
                memory_bytes: HOLDER_MEMORY_BYTES,
            })
            .collect();
        Ok(())
    }

    fn set_reading(&mut self, chip: u32, name: String, value: Option<i64>) -> Done {
        let known = self.chip(self.find_chip(chip)?);
        if !known.is_some_and(|chip| self.kind(chip).readings.contains_key(&name)) {
            return Err(ControlError::UnknownReading { name });
        }
        let fixed = &mut self.chip_mut(chip)?.fixed;
        match value {
            Some(value) => fixed.insert(name, value),
            None => fixed.remove(&name),
        };
        Ok(())
    }

    fn swap_serials(&mut self, first: u32, second: u32) -> Done {
        let other = self.chip_mut(second)?;
        let (serial, die) = (other.serial.clone(), other.die);
        let chip = self.chip_mut(first)?;
        let mine = (std::mem::replace(&mut chip.serial, serial), chip.die);
        chip.die = die;
        let other = self.chip_mut(second)?;
        (other.serial, other.die) = mine;
        Ok(())
    }

    fn replace(&mut self, chip: u32) -> Done {
        self.find_chip(chip)?;
        self.replacements = self.replacements.saturating_add(1);
        let like = self.chip_mut(chip)?.like.clone();
        let prefix = &self.profile.kind(like.as_deref()).serial;
        let serial = format!("{prefix}R{:04}", self.replacements);
        let chip = self.chip_mut(chip)?;
        chip.die = identity_of(&serial);
        chip.serial = serial;
        chip.vdevices.clear();
        chip.heal();
        Ok(())
    }
}

/// What an event says when the code list changes so.
fn matching(action: CodeAction) -> Assertion {
    match action {
        CodeAction::Add => Assertion::Occurred,
        CodeAction::Clear => Assertion::Recovered,
    }
}

fn lasting(times: Option<u32>, for_ms: Option<u64>, now: Moment) -> Left {
    match (times, for_ms) {
        (Some(times), _) => Left::Times(times),
        (None, Some(ms)) => Left::Until(now.instant + Duration::from_millis(ms)),
        (None, None) => Left::Always,
    }
}

fn within(what: &'static str, value: u32, limit: u32) -> Done {
    if value > limit {
        return Err(ControlError::TooLarge {
            what,
            value: u64::from(value),
            limit: u64::from(limit),
        });
    }
    Ok(())
}

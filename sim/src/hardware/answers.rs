//! What the machine answers to a driver call.

use std::time::Duration;

use super::facts::address;
use super::{Chip, Hardware};
use crate::clock::Moment;
use crate::wire::{
    Answer, Call, ChipQuery, EccCounts, Failure, Query, ReturnCode, Unit, generation_of,
};

const HIGHEST_ECC_TYPE: u32 = 5;
const HIGHEST_FREQUENCY_TYPE: u32 = 12;
const UTILIZATION_MEMORY: i32 = 1;
const FULL_PERCENT: i64 = 100;
const UNKNOWN_WORD: i64 = 0xFFFF_FFFF;

pub(super) type Answered = Result<Answer, Failure>;

pub(super) const NOT_SUPPORTED: Failure = Failure(ReturnCode::NOT_SUPPORTED);
pub(super) const INVALID_PARAMETER: Failure = Failure(ReturnCode::INVALID_PARAMETER);

impl Hardware {
    /// Whether a hang rule holds the call now.
    pub(crate) fn is_held(&self, call: &Call) -> bool {
        self.injection
            .is_held(&call.symbol, &self.chips_of(call.unit))
    }

    /// Whether a hang rule holds the answer now that the call was carried out.
    pub(crate) fn is_answer_held(&self, call: &Call) -> bool {
        self.injection
            .is_answer_held(&call.symbol, &self.chips_of(call.unit))
    }

    /// How long a latency rule delays the call.
    pub(crate) fn delay(&self, call: &Call) -> Option<Duration> {
        self.injection
            .delay(&call.symbol, &self.chips_of(call.unit))
    }

    /// Whether the call is let through to the hardware.
    ///
    /// # Errors
    /// A fault rule, the wrong generation, a stale table, or the library's own reason refuses it.
    pub(crate) fn admit(&mut self, call: &Call, now: Moment) -> Result<(), Failure> {
        if self.upgrading {
            return Err(Failure(ReturnCode::UPGRADING));
        }
        let chips = self.chips_of(call.unit);
        if let Some(code) = self.injection.code(&call.symbol, &chips, now.instant) {
            return Err(Failure(code));
        }
        if generation_of(&call.symbol) != self.profile.api {
            return Err(NOT_SUPPORTED);
        }
        if let Some(code) = call.refuse {
            return Err(Failure(code));
        }
        let about = chips.first().and_then(|slot| self.chip(*slot));
        let kind = about.map_or(&self.profile, |chip| self.kind(chip));
        if kind.unsupported.contains(&call.symbol) {
            return Err(NOT_SUPPORTED);
        }
        if self.is_forbidden(&call.symbol) {
            return Err(Failure(ReturnCode::NOT_PERMITTED));
        }
        if matches!(call.query, Query::Pass | Query::Init) {
            return Ok(());
        }
        if call.boot.as_deref().is_some_and(|boot| boot != self.boot) {
            return Err(Failure(ReturnCode::INNER_ERROR));
        }
        self.admit_unit(call, &chips)
    }

    /// A chip off the bus answers "not ready", which two calls turn into their catch-all code.
    fn admit_unit(&self, call: &Call, chips: &[usize]) -> Result<(), Failure> {
        let answers = |slot: &usize| {
            let chip = self.chip(*slot);
            self.is_enumerated(*slot) && chip.is_some_and(|chip| chip.answers(&call.query))
        };
        let not_about_presence = matches!(
            call.query,
            Query::Subscribe(_) | Query::FaultEvent(..) | Query::Chip(ChipQuery::Link(_))
        );
        if call.unit.is_none() || not_about_presence || chips.iter().any(answers) {
            return Ok(());
        }
        let hides_cause = matches!(
            call.query,
            Query::Chip(ChipQuery::ErrorCodes | ChipQuery::Voltage)
        );
        let code = if hides_cause {
            ReturnCode::INNER_ERROR
        } else {
            ReturnCode::NOT_READY
        };
        Err(Failure(code))
    }

    /// The answer to an admitted call. Subscriptions and event reads are the daemon's.
    ///
    /// # Errors
    /// The code the library returns instead of a value.
    pub(crate) fn answer(&self, call: &Call, now: Moment) -> Answered {
        let versions = &self.profile.versions;
        match call.query {
            Query::Pass | Query::Subscribe(_) | Query::FaultEvent(..) | Query::Change(_) => {
                Ok(Answer::Nothing)
            }
            Query::Node(query) => self.setting(query),
            Query::Init => Ok(Answer::Snapshot(self.snapshot())),
            Query::LibraryVersion => Ok(Answer::Text(versions.dcmi.clone())),
            Query::DriverVersion => Ok(Answer::Text(versions.driver.clone())),
            Query::ErrorText(code) => Ok(Answer::Text(format!("simulated fault {code:#010X}"))),
            Query::Chip(query) => {
                let first = self.chips_of(call.unit).first().copied();
                let chip = first
                    .and_then(|slot| self.chip(slot))
                    .ok_or(INVALID_PARAMETER)?;
                match call.unit {
                    Some(Unit::Mcu(_)) => self.answer_mcu(chip, query, now),
                    Some(Unit::Chip(_) | Unit::Card(_)) | None => {
                        self.answer_chip(chip, query, now)
                    }
                }
            }
        }
    }

    /// The microcontroller of a card; `chip` is the card's first.
    fn answer_mcu(&self, chip: &Chip, query: ChipQuery, now: Moment) -> Answered {
        if query == ChipQuery::Health {
            Ok(Answer::Number(0))
        } else if query == ChipQuery::ErrorCodes {
            Ok(Answer::Numbers(Vec::new()))
        } else if query == ChipQuery::Temperature {
            self.number(chip, "mcu_temperature", now)
        } else if query == ChipQuery::Power {
            self.number(chip, "mcu_power", now)
        } else {
            Err(NOT_SUPPORTED)
        }
    }

    fn answer_chip(&self, chip: &Chip, query: ChipQuery, now: Moment) -> Answered {
        match query {
            ChipQuery::ChipInfo => Ok(Answer::Identity(chip.identity.clone())),
            ChipQuery::BoardInfo => Ok(self.board_info(chip)),
            ChipQuery::MainboardId => chip
                .mainboard_id
                .map_or(Err(NOT_SUPPORTED), |id| Ok(Answer::Number(i64::from(id)))),
            ChipQuery::DieId(kind) => self.die_id(chip, kind),
            ChipQuery::PcieInfo => Ok(self.pcie_info(chip)),
            ChipQuery::ProductType => chip
                .product_type
                .clone()
                .map_or(Err(NOT_SUPPORTED), |name| Ok(Answer::Text(name))),
            ChipQuery::Elabel => Ok(self.label(chip)),
            ChipQuery::Affinity => self.affinity(chip),
            ChipQuery::Brother => self
                .brother_id(chip)
                .map(|id| Answer::Number(i64::from(id))),
            ChipQuery::Health => Ok(Answer::Number(i64::from(chip.health))),
            ChipQuery::ErrorCodes => Ok(Answer::Numbers(
                chip.codes.iter().map(|code| i64::from(*code)).collect(),
            )),
            ChipQuery::Temperature => self.number(chip, "temperature", now),
            ChipQuery::Power => self.number(chip, "power", now),
            ChipQuery::McuPower if !self.kind(chip).mcu => Err(NOT_SUPPORTED),
            ChipQuery::McuPower => self.number(chip, "mcu_power", now),
            ChipQuery::Voltage => self.number(chip, "voltage", now),
            ChipQuery::Frequency(kind) if kind > HIGHEST_FREQUENCY_TYPE => Err(INVALID_PARAMETER),
            ChipQuery::Frequency(kind) => self.number(chip, &format!("frequency_{kind}"), now),
            ChipQuery::Utilization(kind) => self.utilization(chip, kind, now),
            ChipQuery::MultiUtilization => self.multi_utilization(chip, now),
            ChipQuery::Hbm => self.numbers(
                chip,
                [
                    "hbm_size_mb",
                    "hbm_frequency",
                    "hbm_used_mb",
                    "hbm_temperature",
                ],
                "hbm_bandwidth_percent",
                now,
            ),
            ChipQuery::Memory => self.memory(chip, now),
            ChipQuery::Ecc(kind) => self.ecc(chip, kind, now),
            // A plain container is shown its own processes, and the holders here are made up.
            ChipQuery::Processes if self.injection.caller().is_in_plain_container() => {
                Ok(Answer::Processes(Vec::new()))
            }
            ChipQuery::Processes => Ok(Answer::Processes(chip.processes.clone())),
            ChipQuery::NetworkHealth => self.number(chip, "network_health", now),
            ChipQuery::Address(port, number, version) => address(chip, port, number, version),
            ChipQuery::Link(other) => self.link(chip, other),
            ChipQuery::Vdevice(id) => self.vdevice_answer(chip, id),
            ChipQuery::CapacityTotal => self.capacity_total(chip),
            ChipQuery::CapacityFree => self.capacity_free(chip),
            ChipQuery::VdeviceActivity(id) => self.vdevice_activity(chip, id, now),
            ChipQuery::SuperPod => self.super_pod(chip),
            ChipQuery::WorkMode => self.work_mode(chip),
            ChipQuery::BootStatus => self.boot_status(chip, now),
            ChipQuery::OutbandChannel => self.outband_channel(chip),
            ChipQuery::NotSimulated => Err(NOT_SUPPORTED),
        }
    }

    pub(super) fn chip(&self, slot: usize) -> Option<&Chip> {
        self.chips.get(slot)
    }

    fn value(&self, chip: &Chip, name: &str, now: Moment) -> Result<i64, Failure> {
        self.reading(chip, name, now.unix_ms).ok_or(NOT_SUPPORTED)
    }

    fn number(&self, chip: &Chip, name: &str, now: Moment) -> Answered {
        Ok(Answer::Number(self.value(chip, name, now)?))
    }

    fn numbers(&self, chip: &Chip, first: [&str; 4], last: &str, now: Moment) -> Answered {
        let names = first.into_iter().chain([last]);
        let values = names.map(|name| self.value(chip, name, now));
        Ok(Answer::Numbers(values.collect::<Result<_, _>>()?))
    }

    /// The library turns a value above 100 into 0, and computes type 1 from the memory size.
    fn utilization(&self, chip: &Chip, kind: i32, now: Moment) -> Answered {
        let percent = if kind == UTILIZATION_MEMORY {
            let size = self.value(chip, "memory_size_mb", now)?;
            used_percent(size, self.value(chip, "memory_available_mb", now)?)
        } else {
            self.value(chip, &format!("utilization_{kind}"), now)?
        };
        Ok(Answer::Number(if percent > FULL_PERCENT {
            0
        } else {
            percent
        }))
    }

    /// AI core, vector core, AI core and vector together, NPU (never below the third).
    fn multi_utilization(&self, chip: &Chip, now: Moment) -> Answered {
        let aic = self.value(chip, "utilization_2", now)?;
        let aiv = self.value(chip, "utilization_12", now)?;
        let npu = self.value(chip, "utilization_13", now)?;
        let aicore = aic.max(aiv);
        Ok(Answer::Numbers(vec![aic, aiv, aicore, npu.max(aicore)]))
    }

    fn memory(&self, chip: &Chip, now: Moment) -> Answered {
        let size = self.value(chip, "memory_size_mb", now)?;
        let available = self.value(chip, "memory_available_mb", now)?;
        Ok(Answer::Numbers(vec![
            size,
            available,
            self.value(chip, "memory_frequency", now)?,
            self.value(chip, "hugepage_kb", now)?,
            self.value(chip, "hugepages_total", now)?,
            self.value(chip, "hugepages_free", now)?,
            used_percent(size, available),
        ]))
    }

    fn ecc(&self, chip: &Chip, kind: u32, now: Moment) -> Answered {
        if kind > HIGHEST_ECC_TYPE {
            return Err(INVALID_PARAMETER);
        }
        if !self.kind(chip).ecc_types.contains(&kind) {
            return Err(NOT_SUPPORTED);
        }
        let counter = |name| self.value(chip, name, now);
        Ok(Answer::Ecc(EccCounts {
            enabled: 1,
            counters: [
                counter("ecc_single")?,
                counter("ecc_double")?,
                counter("ecc_total_single")?,
                counter("ecc_total_double")?,
                counter("ecc_isolated_single")?,
                counter("ecc_isolated_double")?,
            ],
        }))
    }
}

fn used_percent(size: i64, available: i64) -> i64 {
    size.checked_sub(available)
        .and_then(|used| used.checked_mul(FULL_PERCENT))
        .and_then(|used| used.checked_div(size))
        .filter(|percent| (0..=FULL_PERCENT).contains(percent))
        .unwrap_or(UNKNOWN_WORD)
}

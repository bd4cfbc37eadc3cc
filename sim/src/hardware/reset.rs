//! Resets: what is reset together, how a chip starts again, and what goes wrong on the way.
//!
//! Invariant: only `settle` ends a start, so the daemon's clock is the one place from which a chip
//! comes back. A chip that starts answers nothing but its boot status.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::product::Product;
use super::{Chip, Hardware};
use crate::clock::Moment;
use crate::wire::{
    Answer, Assertion, Caller, Change, ChipQuery, Failure, Query, ResetChannel, ResetFault,
    ReturnCode, Unit,
};

/// Boot status of a chip whose service has started.
pub(crate) const STATUS_SERVING: u32 = 16;
/// Statuses on the way: not begun, firmware, system, finished.
const PHASES: u32 = 4;
const STATUS_NOT_BEGUN: u32 = 0;
const STATUS_SYSTEM: u32 = 2;
/// Tells that a reset is over.
const EVENT_RESET_FINISHED: u32 = 0x8C2F_A009;
/// 910 chips with so many phy ids in a row are linked and reset together.
const CHIPS_OF_A_910_RING: u32 = 4;

const NOT_SUPPORTED: Failure = Failure(ReturnCode::NOT_SUPPORTED);
const NOT_PERMITTED: Failure = Failure(ReturnCode::NOT_PERMITTED);
const INVALID_PARAMETER: Failure = Failure(ReturnCode::INVALID_PARAMETER);

/// How far a chip has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Boot {
    /// It works.
    Serving,
    /// It starts. The begin is absent until the daemon's clock has seen it after a restart.
    Starting {
        /// When it began.
        since: Option<Instant>,
        /// The status it will not pass.
        stops_at: Option<u32>,
    },
    /// It stays at this status.
    Stopped(u32),
}

/// A chip as resets see it.
#[derive(Debug)]
pub(super) struct ResetState {
    /// How far it has come.
    pub(super) boot: Boot,
    /// Unbound from the driver, until a rescan.
    pub(super) unbound: bool,
    /// Reset by the board's controller since it was unbound or lost.
    pub(super) cycled: bool,
    /// What goes wrong next time.
    pub(super) fault: ResetFault,
    /// The board's controller does not answer.
    pub(super) outband_down: bool,
    /// Codes no reset clears.
    pub(super) sticky: BTreeSet<u32>,
    /// Resets so far.
    pub(super) count: u32,
    /// Resets that met a holder or a vNPU in use.
    pub(super) count_in_use: u32,
}

/// Cards that a process unbound together: the one it named, and that one's partner.
pub(super) type Prepared = BTreeMap<(i32, usize), usize>;

impl ResetState {
    pub(super) fn new(sticky: &[u32]) -> Self {
        Self {
            boot: Boot::Serving,
            unbound: false,
            cycled: false,
            fault: ResetFault::None,
            outband_down: false,
            sticky: sticky.iter().copied().collect(),
            count: 0,
            count_in_use: 0,
        }
    }

    /// Nothing is wrong, whatever was.
    pub(super) fn heal(&mut self) {
        self.boot = Boot::Serving;
        self.unbound = false;
        self.cycled = false;
        self.fault = ResetFault::None;
        self.outband_down = false;
    }

    /// It will not come further by itself.
    pub(super) fn is_stopped(&self) -> bool {
        matches!(self.boot, Boot::Stopped(_))
    }

    /// The boot status now. A start shows its last phase until the daemon ends it.
    pub(super) fn status(&self, boot_ms: u64, now: Moment) -> u32 {
        match self.boot {
            Boot::Serving => STATUS_SERVING,
            Boot::Stopped(status) => status,
            Boot::Starting { since, stops_at } => {
                let passed = since.map_or(Duration::ZERO, |since| {
                    now.instant.saturating_duration_since(since)
                });
                let phase = passed.as_millis() * u128::from(PHASES) / u128::from(boot_ms.max(1));
                let phase = u32::try_from(phase).unwrap_or(u32::MAX).min(PHASES - 1);
                stops_at.map_or(phase, |last| phase.min(last))
            }
        }
    }

    /// When the start ends, one way or the other.
    fn due(&self, boot_ms: u64) -> Option<Instant> {
        let Boot::Starting { since, stops_at } = self.boot else {
            return None;
        };
        let part = stops_at.map_or(boot_ms, |last| {
            boot_ms * u64::from(last) / u64::from(PHASES)
        });
        since.map(|since| since + Duration::from_millis(part))
    }
}

impl Chip {
    /// Whether the chip answers that question in its present state.
    pub(super) fn answers(&self, query: &Query) -> bool {
        match query {
            Query::Chip(ChipQuery::BootStatus) => self.is_bound(),
            Query::Chip(ChipQuery::OutbandChannel)
            | Query::Change(Change::PreReset | Change::Reset(_) | Change::Rescan) => true,
            Query::Pass
            | Query::Init
            | Query::LibraryVersion
            | Query::DriverVersion
            | Query::ErrorText(_)
            | Query::Subscribe(_)
            | Query::FaultEvent(..)
            | Query::Chip(_)
            | Query::Node(_)
            | Query::Change(_) => self.is_bound() && self.reset.boot == Boot::Serving,
        }
    }

    /// On the bus and bound to the driver.
    pub(super) fn is_bound(&self) -> bool {
        !self.lost && !self.reset.unbound
    }
}

impl Hardware {
    /// Ends what is due. True when something changed.
    pub(crate) fn settle(&mut self, now: Moment) -> bool {
        let boot_ms = self.settings.boot_ms;
        let mut changed = false;
        for slot in 0..self.chips.len() {
            let Some(chip) = self.chips.get_mut(slot) else {
                continue;
            };
            if let Boot::Starting { since, .. } = &mut chip.reset.boot {
                since.get_or_insert(now.instant);
            }
            if chip.reset.due(boot_ms).is_none_or(|due| due > now.instant) {
                continue;
            }
            changed = true;
            match chip.reset.boot {
                Boot::Starting {
                    stops_at: Some(status),
                    ..
                } => chip.reset.boot = Boot::Stopped(status),
                Boot::Serving | Boot::Starting { .. } | Boot::Stopped(_) => {
                    self.finish_start(slot, now);
                }
            }
        }
        changed
    }

    /// When something ends next.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let boot_ms = self.settings.boot_ms;
        let dues = self.chips.iter().map(|chip| chip.reset.due(boot_ms));
        dues.flatten().min()
    }

    /// Whether a start waits to be seen by the daemon's clock.
    pub(crate) fn has_unseen_start(&self) -> bool {
        self.chips
            .iter()
            .any(|chip| matches!(chip.reset.boot, Boot::Starting { since: None, .. }))
    }

    fn finish_start(&mut self, slot: usize, now: Moment) {
        let Some(chip) = self.chips.get_mut(slot) else {
            return;
        };
        chip.reset.boot = Boot::Serving;
        let sticky = &chip.reset.sticky;
        chip.codes.retain(|code| sticky.contains(code));
        if chip.codes.is_empty() {
            chip.health = 0;
        }
        let phy = chip.phy;
        if self.is_enumerated(slot) {
            let event = self.event(phy, EVENT_RESET_FINISHED, Assertion::OneOff, 0, now);
            if let Ok(event) = event {
                self.events.emit(event);
            }
        }
    }

    /// The boot status as the driver tells it.
    pub(super) fn boot_status(&self, chip: &Chip, now: Moment) -> Result<Answer, Failure> {
        if chip.reset.fault == ResetFault::StatusError && chip.reset.boot != Boot::Serving {
            return Err(Failure(ReturnCode::INNER_ERROR));
        }
        let status = chip.reset.status(self.settings.boot_ms, now);
        Ok(Answer::Number(i64::from(status)))
    }

    /// Whether the board's controller answers for the chip.
    pub(super) fn outband_channel(&self, chip: &Chip) -> Result<Answer, Failure> {
        self.may_go_outband(chip)?;
        Ok(Answer::Number(i64::from(!chip.reset.outband_down)))
    }

    /// Unbinds the card and its partner, which the process remembers.
    pub(super) fn pre_reset(&mut self, slot: usize, pid: i32) -> Result<(), Failure> {
        let chip = self.chips.get(slot).ok_or(INVALID_PARAMETER)?;
        self.may_go_outband(chip)?;
        let (card, product) = (chip.card, chip.product);
        let brother = self.brother_of(card);
        let slots = self.chips_on(&[Some(card), brother]);
        let is_split = |slot: &usize| {
            let chip = self.chips.get(*slot);
            chip.is_some_and(|chip| !chip.vdevices.is_empty())
        };
        if product != Product::A3Arm && slots.iter().any(is_split) {
            return Err(NOT_PERMITTED);
        }
        if let Some(brother) = brother {
            self.prepared.insert((pid, card), brother);
        }
        for slot in slots {
            if let Some(chip) = self.chips.get_mut(slot) {
                chip.reset.unbound = true;
                chip.reset.cycled = false;
                chip.processes.clear();
            }
        }
        Ok(())
    }

    /// Binds the card again, with the partner the process remembers. A chip that was off the bus
    /// is back if the board's controller reset it.
    pub(super) fn rescan(&mut self, slot: usize, pid: i32) -> Result<(), Failure> {
        let chip = self.chips.get(slot).ok_or(INVALID_PARAMETER)?;
        self.may_go_outband(chip)?;
        let card = chip.card;
        let brother = self.prepared.remove(&(pid, card));
        for slot in self.chips_on(&[Some(card), brother]) {
            if let Some(chip) = self.chips.get_mut(slot) {
                chip.lost &= !chip.reset.cycled;
                chip.reset.unbound = false;
                chip.reset.cycled = false;
            }
        }
        Ok(())
    }

    /// Forgets what a process that has ended remembered.
    pub(crate) fn forget_process(&mut self, pid: i32) {
        self.prepared.retain(|(owner, _), _| *owner != pid);
    }

    /// Resets the chip and what is reset with it.
    pub(super) fn reset(
        &mut self,
        slot: usize,
        channel: ResetChannel,
        pid: i32,
        now: Moment,
    ) -> Result<(), Failure> {
        let chip = self.chips.get(slot).ok_or(INVALID_PARAMETER)?;
        let (card, fault) = (chip.card, chip.reset.fault);
        if chip.product == Product::Duo && chip.device != 0 {
            return Err(NOT_SUPPORTED);
        }
        let slots = match channel {
            ResetChannel::InBand => {
                self.may_reset_inband(chip)?;
                if !chip.is_bound() {
                    return Err(Failure(ReturnCode::NOT_READY));
                }
                self.reset_together(slot)
            }
            ResetChannel::OutOfBand => {
                self.may_go_outband(chip)?;
                if chip.reset.outband_down {
                    return Err(Failure(ReturnCode::RESET_FAILED));
                }
                if chip.product == Product::A5 {
                    vec![slot]
                } else {
                    let brother = self.prepared.get(&(pid, card)).copied();
                    self.chips_on(&[Some(card), brother])
                }
            }
        };
        if fault == ResetFault::Ignored {
            return Ok(());
        }
        let missing = (fault == ResetFault::BrotherMissing).then_some(card);
        self.start_anew(&slots, channel, missing, now)
    }

    /// Resets every chip, on products that know this.
    pub(super) fn reset_all(&mut self, channel: ResetChannel, now: Moment) -> Result<(), Failure> {
        let knows_this = |chip: &&Chip| chip.product.is_a3() || chip.product.is_a5();
        let chip = self.chips.iter().find(knows_this);
        let chip = chip.ok_or(INVALID_PARAMETER)?;
        if channel == ResetChannel::OutOfBand {
            return Err(INVALID_PARAMETER);
        }
        self.may_reset_inband(chip)?;
        let slots: Vec<usize> = (0..self.chips.len())
            .filter(|slot| self.is_enumerated(*slot))
            .collect();
        self.start_anew(&slots, channel, None, now)
    }

    /// `alone` is the only card that will come back, when its partner is not to.
    fn start_anew(
        &mut self,
        slots: &[usize],
        channel: ResetChannel,
        alone: Option<usize>,
        now: Moment,
    ) -> Result<(), Failure> {
        let boots = |slot: &usize| {
            let boot = self.chips.get(*slot).map(|chip| chip.reset.boot);
            matches!(boot, Some(Boot::Starting { .. }))
        };
        if slots.iter().any(boots) {
            return Err(Failure(ReturnCode::BUSY));
        }
        for slot in slots {
            self.restart_vdevices_in_use(*slot);
            let Some(chip) = self.chips.get_mut(*slot) else {
                continue;
            };
            let is_left_behind = alone.is_some_and(|card| card != chip.card);
            let stops_at = match chip.reset.fault {
                ResetFault::NoBoot => Some(STATUS_NOT_BEGUN),
                ResetFault::Stuck if !is_left_behind => Some(STATUS_SYSTEM),
                ResetFault::None
                | ResetFault::Ignored
                | ResetFault::Stuck
                | ResetFault::StatusError
                | ResetFault::BrotherMissing => is_left_behind.then_some(STATUS_NOT_BEGUN),
            };
            chip.reset.count = chip.reset.count.saturating_add(1);
            chip.reset.cycled |= channel == ResetChannel::OutOfBand;
            chip.processes.clear();
            chip.reset.boot = Boot::Starting {
                since: Some(now.instant),
                stops_at,
            };
        }
        Ok(())
    }

    /// Notes that somebody was using the chip, then takes its vNPUs through the reset.
    fn restart_vdevices_in_use(&mut self, slot: usize) {
        if let Some(chip) = self.chips.get_mut(slot) {
            let is_used = chip.vdevices.iter().any(|vdevice| vdevice.in_use);
            if is_used || !chip.processes.is_empty() {
                chip.reset.count_in_use = chip.reset.count_in_use.saturating_add(1);
            }
        }
        self.restart_vdevices(slot);
    }

    /// Chips reset through the driver together with this one.
    fn reset_together(&self, slot: usize) -> Vec<usize> {
        let Some(chip) = self.chips.get(slot) else {
            return Vec::new();
        };
        let with = |same: &dyn Fn(&Chip) -> bool| -> Vec<usize> {
            self.chips
                .iter()
                .enumerate()
                .filter(|(slot, other)| self.is_enumerated(*slot) && same(other))
                .map(|(slot, _)| slot)
                .collect()
        };
        match chip.product {
            Product::Duo => with(&|other| other.card == chip.card),
            Product::Ascend910B => with(&|other| other.product == chip.product),
            Product::Ascend910 => {
                with(&|other| other.phy / CHIPS_OF_A_910_RING == chip.phy / CHIPS_OF_A_910_RING)
            }
            Product::A3 | Product::A3Arm => {
                self.chips_on(&[Some(chip.card), self.brother_of(chip.card)])
            }
            Product::Ascend310
            | Product::Ascend310B
            | Product::Ascend310P
            | Product::Soc310P
            | Product::Card910B
            | Product::A5
            | Product::A5Card => vec![slot],
        }
    }

    fn chips_on(&self, cards: &[Option<usize>]) -> Vec<usize> {
        cards
            .iter()
            .flatten()
            .flat_map(|card| self.chips_of(Some(Unit::Card(*card))))
            .filter(|slot| self.is_enumerated(*slot))
            .collect()
    }

    /// Slot of the card this one is paired with, if that one is there.
    fn brother_of(&self, card: usize) -> Option<usize> {
        let chip = self.chips.iter().find(|chip| chip.card == card)?;
        let id = self.brother_id(chip).ok()?;
        self.cards
            .iter()
            .position(|other| other.id == id && !other.removed)
    }

    fn may_reset_inband(&self, chip: &Chip) -> Result<(), Failure> {
        let caller = self.injection.caller();
        let is_allowed = match chip.product {
            Product::Ascend310B => return Err(NOT_SUPPORTED),
            Product::Card910B => caller == Caller::Root,
            Product::Ascend910B => caller.is_privileged() || caller == Caller::Vm,
            Product::A3 | Product::A3Arm | Product::A5 | Product::A5Card => caller.is_privileged(),
            Product::Ascend310
            | Product::Ascend310P
            | Product::Duo
            | Product::Soc310P
            | Product::Ascend910 => caller.is_root(),
        };
        if is_allowed {
            Ok(())
        } else {
            Err(NOT_PERMITTED)
        }
    }

    fn may_go_outband(&self, chip: &Chip) -> Result<(), Failure> {
        if !chip.product.has_outband_reset() {
            return Err(NOT_SUPPORTED);
        }
        if !self.injection.caller().is_privileged() {
            return Err(NOT_PERMITTED);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn a_start_has_four_equal_parts_and_waits_to_be_ended() {
        let begun = clock::now();
        let mut state = ResetState::new(&[]);
        let at = |ms| Moment {
            instant: begun.instant + Duration::from_millis(ms),
            ..begun
        };
        for (stops_at, statuses) in [(None, [0, 1, 2, 3, 3]), (Some(2), [0, 1, 2, 2, 2])] {
            state.boot = Boot::Starting {
                since: Some(begun.instant),
                stops_at,
            };
            let seen = [0, 100, 299, 399, 5000].map(|ms| state.status(400, at(ms)));
            assert_eq!(seen, statuses);
        }
        assert_eq!(state.due(400), Some(at(200).instant));
        state.heal();
        assert_eq!(state.status(400, begun), STATUS_SERVING);
    }
}

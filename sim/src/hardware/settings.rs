//! Settings of the whole node, and what the driver lets which caller do.

use serde::{Deserialize, Serialize};

use super::product::Product;
use super::{Chip, Hardware};
use crate::profile::WorkMode;
use crate::wire::{Answer, Caller, Failure, NodeQuery, ReturnCode, SuperPodPlace};

const SDID_SERVER_SHIFT: u32 = 22;
const SDID_CHIP_SHIFT: u32 = 18;
const SDID_DIE_SHIFT: u32 = 16;

const NOT_SUPPORTED: Failure = Failure(ReturnCode::NOT_SUPPORTED);
const NOT_PERMITTED: Failure = Failure(ReturnCode::NOT_PERMITTED);
const INVALID_PARAMETER: Failure = Failure(ReturnCode::INVALID_PARAMETER);

/// The settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// vNPUs are for virtual machines, not for containers.
    pub(super) for_machines: bool,
    /// vNPUs come back after a reboot.
    pub(super) recover: bool,
    /// 0 both dies together, 1 each by itself.
    pub(super) multi_die_policy: u32,
    /// How long a chip takes to start.
    pub(super) boot_ms: u64,
}

impl Settings {
    pub(super) fn new(boot_ms: u64) -> Self {
        Self {
            for_machines: false,
            recover: true,
            multi_die_policy: 0,
            boot_ms,
        }
    }
}

impl Hardware {
    /// Whether the caller may create and destroy vNPUs of the chip.
    ///
    /// # Errors
    /// The product has no vNPUs, or not for this caller.
    pub(super) fn may_cut(&self, chip: &Chip) -> Result<(), Failure> {
        if chip.cutting.is_none() {
            return Err(NOT_SUPPORTED);
        }
        let caller = self.injection.caller();
        let is_allowed = if chip.product.is_310p() {
            caller.is_root()
        } else if chip.product == Product::Ascend910 {
            caller.is_root() && caller != Caller::Vm
        } else {
            caller.is_privileged()
        };
        if !is_allowed {
            return Err(NOT_PERMITTED);
        }
        if chip.product == Product::Ascend910 && self.kind(chip).work_mode == WorkMode::Smp {
            return Err(NOT_SUPPORTED);
        }
        Ok(())
    }

    /// The answer about a setting.
    ///
    /// # Errors
    /// The product does not have it, or not for this caller.
    pub(super) fn setting(&self, query: NodeQuery) -> Result<Answer, Failure> {
        let value = match query {
            NodeQuery::MultiDiePolicy => {
                if !self.has_a3() {
                    return Err(NOT_SUPPORTED);
                }
                if self.injection.caller().is_in_plain_container() {
                    return Err(NOT_PERMITTED);
                }
                i64::from(self.settings.multi_die_policy)
            }
            NodeQuery::VdeviceMode => {
                self.first_that_can_be_cut()?;
                i64::from(self.settings.for_machines)
            }
            NodeQuery::RecoverMode => {
                self.first_that_can_be_cut()?;
                i64::from(self.settings.recover)
            }
        };
        Ok(Answer::Number(value))
    }

    pub(super) fn set_multi_die_policy(&mut self, policy: u32) -> Result<(), Failure> {
        if !self.has_a3() {
            return Err(NOT_SUPPORTED);
        }
        if !self.injection.caller().is_privileged() {
            return Err(NOT_PERMITTED);
        }
        self.settings.multi_die_policy = u32::from(flag(i64::from(policy))?);
        Ok(())
    }

    /// The mode cannot change while there are vNPUs.
    pub(super) fn set_vdevice_mode(&mut self, mode: i64) -> Result<(), Failure> {
        self.may_cut(self.first_that_can_be_cut()?)?;
        let for_machines = flag(mode)?;
        let has_vdevices = self.chips.iter().any(|chip| !chip.vdevices.is_empty());
        if has_vdevices && for_machines != self.settings.for_machines {
            return Err(Failure(ReturnCode::OCCUPIED));
        }
        self.settings.for_machines = for_machines;
        Ok(())
    }

    pub(super) fn set_recover_mode(&mut self, mode: u32) -> Result<(), Failure> {
        self.may_cut(self.first_that_can_be_cut()?)?;
        self.settings.recover = flag(i64::from(mode))?;
        Ok(())
    }

    /// Some chip here has two dies of which one policy tells how they belong together.
    pub(super) fn has_a3(&self) -> bool {
        self.chips.iter().any(|chip| chip.product.is_a3())
    }

    fn first_that_can_be_cut(&self) -> Result<&Chip, Failure> {
        self.chips
            .iter()
            .find(|chip| chip.cutting.is_some())
            .ok_or(NOT_SUPPORTED)
    }

    /// Only 910 servers have a work mode.
    pub(super) fn work_mode(&self, chip: &Chip) -> Result<Answer, Failure> {
        if chip.product != Product::Ascend910 {
            return Err(NOT_SUPPORTED);
        }
        Ok(Answer::Number(match self.kind(chip).work_mode {
            WorkMode::Amp => 0,
            WorkMode::Smp => 1,
        }))
    }

    /// Where the chip is in its super pod. On A3 two phy ids in a row are the dies of one chip.
    pub(super) fn super_pod(&self, chip: &Chip) -> Result<Answer, Failure> {
        let known = chip.product.is_a3() || chip.product.is_a5();
        let pod = self.profile.super_pod.filter(|_| known);
        let pod = pod.ok_or(NOT_SUPPORTED)?;
        let (number, die) = if chip.product.is_a3() {
            (chip.phy / 2, chip.phy % 2)
        } else {
            (chip.phy, 0)
        };
        let sdid = pod.server << SDID_SERVER_SHIFT
            | (number & 0xF) << SDID_CHIP_SHIFT
            | die << SDID_DIE_SHIFT
            | (chip.phy & 0xFFFF);
        Ok(Answer::SuperPod(SuperPodPlace {
            sdid,
            size: pod.size,
            id: pod.id,
            server: pod.server,
            chassis: pod.chassis,
            kind: pod.kind,
        }))
    }
}

fn flag(value: i64) -> Result<bool, Failure> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(INVALID_PARAMETER),
    }
}

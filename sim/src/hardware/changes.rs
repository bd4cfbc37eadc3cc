//! Changes a driver user asks for.

use super::Hardware;
use super::vdevices::Wanted;
use crate::clock::Moment;
use crate::wire::{Answer, Call, Change, Failure, Query, ReturnCode, Unit};

impl Hardware {
    /// Carries out the change of an admitted call.
    ///
    /// # Errors
    /// The code the library returns; nothing has changed, save for a destroy of all vNPUs that
    /// leaves those in use.
    pub(crate) fn change(&mut self, call: &Call, pid: i32, now: Moment) -> Result<Answer, Failure> {
        let Query::Change(change) = &call.query else {
            return self.answer(call, now);
        };
        if matches!(call.unit, Some(Unit::Mcu(_))) {
            return Err(Failure(ReturnCode::NOT_SUPPORTED));
        }
        let slot = self.chips_of(call.unit).first().copied();
        let slot = || slot.ok_or(Failure(ReturnCode::INVALID_PARAMETER));
        match change {
            Change::CreateVdevice {
                vdev,
                vgroup,
                template,
            } => {
                let slot = self.may_cut_slot(slot())?;
                let wanted = Wanted {
                    id: *vdev,
                    vgroup: *vgroup,
                    template: template.clone(),
                    shown_as: None,
                };
                let id = self.create_vdevice(slot, wanted)?;
                return self.created(slot, id);
            }
            Change::DestroyVdevice(id) => {
                let slot = self.may_cut_slot(slot())?;
                self.destroy_vdevice(slot, *id)?;
            }
            Change::SetVdeviceMode(mode) => self.set_vdevice_mode(*mode)?,
            Change::SetRecoverMode(mode) => self.set_recover_mode(*mode)?,
            Change::SetMultiDiePolicy(policy) => self.set_multi_die_policy(*policy)?,
            Change::PreReset => self.pre_reset(slot()?, pid)?,
            Change::Reset(channel) => self.reset(slot()?, *channel, pid, now)?,
            Change::ResetAll(channel) => self.reset_all(*channel, now)?,
            Change::Rescan => self.rescan(slot()?, pid)?,
        }
        Ok(Answer::Nothing)
    }

    fn may_cut_slot(&self, slot: Result<usize, Failure>) -> Result<usize, Failure> {
        let slot = slot?;
        let chip = self.chip(slot);
        self.may_cut(chip.ok_or(Failure(ReturnCode::INVALID_PARAMETER))?)?;
        Ok(slot)
    }
}

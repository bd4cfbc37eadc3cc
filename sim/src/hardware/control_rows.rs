//! Control requests about vNPUs and codes that resets do not clear.

use serde_json::Value;

use super::vdevices::{Vdevice, Wanted};
use super::{ControlError, Hardware};
use crate::wire::{Failure, Switch, VdevControl};

impl Hardware {
    pub(super) fn control_vdev(
        &mut self,
        request: VdevControl,
    ) -> Result<Option<Value>, ControlError> {
        match request {
            VdevControl::List => {
                return Ok(Some(serde_json::to_value(self.vdevice_list())?));
            }
            VdevControl::Create {
                chip,
                template,
                id,
                shown_as,
            } => {
                let slot = self.find_chip(chip)?;
                let wanted = Wanted {
                    id,
                    vgroup: None,
                    template: template.clone(),
                    shown_as,
                };
                let made = self.create_vdevice(slot, wanted);
                let id = made.map_err(|Failure(code)| ControlError::NotCut {
                    chip,
                    template,
                    code: code.0,
                })?;
                return Ok(Some(Value::from(id)));
            }
            VdevControl::Destroy { id } => {
                let (slot, _) = self.known_vdevice(id)?;
                if let Some(chip) = self.chips.get_mut(slot) {
                    chip.vdevices.retain(|vdevice| vdevice.id != id);
                }
            }
            VdevControl::Use { id, switch } => {
                self.known_vdevice(id)?.1.in_use = switch == Switch::On;
            }
            VdevControl::Stuck { id, switch } => {
                self.known_vdevice(id)?.1.stuck = switch == Switch::On;
            }
            VdevControl::Activity { chip, switch } => {
                self.chip_mut(chip)?.hides_activity = switch == Switch::Off;
            }
        }
        Ok(None)
    }

    pub(super) fn set_outband(&mut self, chip: u32, switch: Switch) -> Result<(), ControlError> {
        self.chip_mut(chip)?.reset.outband_down = switch == Switch::Off;
        Ok(())
    }

    /// A code that was marked stays through resets until it is cleared by hand.
    pub(super) fn mark_sticky(
        &mut self,
        chip: u32,
        code: u32,
        sticky: bool,
    ) -> Result<(), ControlError> {
        let known = self.chip(self.find_chip(chip)?);
        let kind = known.map_or(&self.profile, |chip| self.kind(chip));
        let is_always_sticky = kind.reset.sticky.contains(&code);
        let marked = &mut self.chip_mut(chip)?.reset.sticky;
        if sticky || is_always_sticky {
            marked.insert(code);
        } else {
            marked.remove(&code);
        }
        Ok(())
    }

    fn vdevice_list(&self) -> Vec<&Vdevice> {
        self.chips.iter().flat_map(|chip| &chip.vdevices).collect()
    }

    fn known_vdevice(&mut self, id: u32) -> Result<(usize, &mut Vdevice), ControlError> {
        self.find_vdevice(id)
            .ok_or(ControlError::UnknownVdevice { vdev: id })
    }
}

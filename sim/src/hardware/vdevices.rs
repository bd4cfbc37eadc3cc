//! vNPUs: what was cut from which chip, and what may still be cut.
//!
//! Invariants: vdev ids are unique on the machine, because each chip has ids of its own; the sum of
//! all cuts never exceeds the chip. What no source settles about return codes is in the README.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::templates::{Cutting, Template};
use super::{Chip, Hardware};
use crate::clock::Moment;
use crate::wire::{
    Answer, Capacity, ChipCapacity, CreatedVdevice, Failure, ReturnCode, VdeviceActivity,
    VdeviceAnswer,
};

/// Number of the first vdev id of the machine.
const FIRST_ID: u32 = 100;
/// Distance between the first ids of two chips, whatever of them a family uses.
const IDS_BETWEEN_CHIPS: u32 = 16;
/// Stands for all vNPUs of a chip.
const ALL: u32 = 0xFFFF;
const VGROUPS: u32 = 4;
/// A vgroup takes at least so many AI cores.
const LEAST_VGROUP_CORES: u32 = 2;
const KB_PER_MB: u64 = 1024;

const NOT_SUPPORTED: Failure = Failure(ReturnCode::NOT_SUPPORTED);
const INVALID_PARAMETER: Failure = Failure(ReturnCode::INVALID_PARAMETER);
const OCCUPIED: Failure = Failure(ReturnCode::OCCUPIED);

/// A vNPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Vdevice {
    /// vdev id.
    pub(crate) id: u32,
    /// Name of its template.
    pub(crate) template: String,
    /// Name told instead.
    pub(crate) shown_as: Option<String>,
    /// Its vgroup, on chips that have vgroups.
    pub(crate) vgroup: Option<u32>,
    /// A container uses it.
    pub(crate) in_use: bool,
    /// A destroy succeeds and leaves it there.
    pub(crate) stuck: bool,
}

/// What a create asks for.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    /// vdev id, any when absent.
    pub(super) id: Option<u32>,
    /// vgroup, any when absent.
    pub(super) vgroup: Option<u32>,
    /// Template name.
    pub(super) template: String,
    /// Name to tell instead.
    pub(super) shown_as: Option<String>,
}

impl Hardware {
    /// Creates a vNPU.
    ///
    /// # Errors
    /// The chip cannot be cut, the template or id is not one of its own, or something is used up.
    pub(super) fn create_vdevice(&mut self, slot: usize, wanted: Wanted) -> Result<u32, Failure> {
        let chip = self.chips.get_mut(slot).ok_or(INVALID_PARAMETER)?;
        let cutting = chip.cutting.clone().ok_or(NOT_SUPPORTED)?;
        let template = cutting
            .template(&wanted.template)
            .ok_or(INVALID_PARAMETER)?;
        let id = chip.free_id(&cutting, wanted.id)?;
        if !fits(used(&chip.vdevices, &cutting), template, cutting.whole) {
            return Err(OCCUPIED);
        }
        let vgroup = if cutting.has_vgroups {
            Some(chip.free_vgroup(&cutting, template, wanted.vgroup)?)
        } else {
            None
        };
        chip.vdevices.push(Vdevice {
            id,
            template: wanted.template,
            shown_as: wanted.shown_as,
            vgroup,
            in_use: false,
            stuck: false,
        });
        chip.vdevices.sort_by_key(|vdevice| vdevice.id);
        Ok(id)
    }

    /// What a create answers about the vNPU it made.
    pub(super) fn created(&self, slot: usize, id: u32) -> Result<Answer, Failure> {
        let chip = self.chips.get(slot).ok_or(INVALID_PARAMETER)?;
        let [_, bus, device, function] = chip.bdf;
        Ok(Answer::Created(CreatedVdevice {
            vdev: id,
            vgroup: chip.vdevice(id)?.vgroup,
            pcie: [bus, device, function],
        }))
    }

    /// Destroys one vNPU or, for the id of all, as many as can be.
    ///
    /// # Errors
    /// The id is not one of the chip's, nothing has it, or it is in use.
    pub(super) fn destroy_vdevice(&mut self, slot: usize, id: u32) -> Result<(), Failure> {
        let chip = self.chips.get_mut(slot).ok_or(INVALID_PARAMETER)?;
        let cutting = chip.cutting.clone().ok_or(NOT_SUPPORTED)?;
        if id == ALL {
            chip.vdevices
                .retain(|vdevice| vdevice.in_use || vdevice.stuck);
            let is_used = chip.vdevices.iter().any(|vdevice| vdevice.in_use);
            return if is_used { Err(OCCUPIED) } else { Ok(()) };
        }
        if !chip.ids(&cutting).contains(&id) {
            return Err(INVALID_PARAMETER);
        }
        let vdevice = chip.vdevice(id)?;
        if vdevice.in_use {
            return Err(OCCUPIED);
        }
        if !vdevice.stuck {
            chip.vdevices.retain(|vdevice| vdevice.id != id);
        }
        Ok(())
    }

    /// The vNPU of that id and its chip's slot, wherever it is.
    pub(super) fn find_vdevice(&mut self, id: u32) -> Option<(usize, &mut Vdevice)> {
        self.chips.iter_mut().enumerate().find_map(|(slot, chip)| {
            chip.vdevices
                .iter_mut()
                .find(|vdevice| vdevice.id == id)
                .map(|vdevice| (slot, vdevice))
        })
    }

    /// The answer about one vNPU of the chip.
    pub(super) fn vdevice_answer(&self, chip: &Chip, id: u32) -> Result<Answer, Failure> {
        let cutting = self.ask_cutting(chip)?;
        let vdevice = chip.vdevice(id)?;
        Ok(Answer::Vdevice(VdeviceAnswer {
            template: vdevice.name().to_owned(),
            in_use: vdevice.in_use,
            vgroup: vdevice.vgroup,
            capacity: cutting
                .template(&vdevice.template)
                .map(|template| template.capacity)
                .unwrap_or_default(),
        }))
    }

    /// What the whole chip has.
    pub(super) fn capacity_total(&self, chip: &Chip) -> Result<Answer, Failure> {
        let cutting = self.ask_cutting(chip)?;
        Ok(Answer::Capacity(ChipCapacity {
            vdevs: chip.vdevices.iter().map(|vdevice| vdevice.id).collect(),
            vgroups: if cutting.has_vgroups {
                (1 << VGROUPS) - 1
            } else {
                0
            },
            capacity: cutting.whole,
        }))
    }

    /// What is left of the chip.
    pub(super) fn capacity_free(&self, chip: &Chip) -> Result<Answer, Failure> {
        let cutting = self.ask_cutting(chip)?;
        let taken: BTreeSet<u32> = chip.vdevices.iter().filter_map(|v| v.vgroup).collect();
        let free = (0..VGROUPS).filter(|group| cutting.has_vgroups && !taken.contains(group));
        Ok(Answer::Capacity(ChipCapacity {
            vdevs: chip.vdevices.iter().map(|vdevice| vdevice.id).collect(),
            vgroups: free.map(|group| 1 << group).sum(),
            capacity: left(cutting.whole, used(&chip.vdevices, cutting)),
        }))
    }

    /// How busy a vNPU is: idle and empty unless a container uses it, then as busy as its chip.
    pub(super) fn vdevice_activity(
        &self,
        chip: &Chip,
        id: u32,
        now: Moment,
    ) -> Result<Answer, Failure> {
        let cutting = self.ask_cutting(chip)?;
        if !chip.product.tells_activity() || chip.hides_activity {
            return Err(NOT_SUPPORTED);
        }
        if !self.injection.caller().is_privileged() {
            return Err(Failure(ReturnCode::NOT_PERMITTED));
        }
        let vdevice = chip.vdevice(id)?;
        let memory_mb = cutting
            .template(&vdevice.template)
            .map_or(0, |template| template.capacity.memory_mb);
        let reading = |name| {
            let value = self.reading(chip, name, now.unix_ms).unwrap_or_default();
            u64::try_from(value).unwrap_or_default()
        };
        let (size, available) = (reading("memory_size_mb"), reading("memory_available_mb"));
        let total_kb = memory_mb * KB_PER_MB;
        let free_kb = if vdevice.in_use {
            total_kb.saturating_mul(available.min(size)) / size.max(1)
        } else {
            total_kb
        };
        let busy = if vdevice.in_use {
            reading("utilization_2").min(100)
        } else {
            0
        };
        Ok(Answer::Activity(VdeviceActivity {
            aicore_percent: u32::try_from(busy).unwrap_or_default(),
            memory_total_kb: total_kb,
            memory_free_kb: free_kb,
        }))
    }

    /// Takes vNPUs through a loss of the chip's memory: they come back unused, or not at all.
    pub(super) fn restart_vdevices(&mut self, slot: usize) {
        let recover = self.settings.recover;
        if let Some(chip) = self.chips.get_mut(slot) {
            chip.vdevices.retain(|_| recover);
            for vdevice in &mut chip.vdevices {
                vdevice.in_use = false;
                vdevice.stuck = false;
            }
        }
    }

    /// The vendor's record of vNPUs to create at the next boot.
    pub(crate) fn vnpu_config(&self) -> String {
        let state = if self.settings.recover {
            "enable"
        } else {
            "disable"
        };
        let mut text = format!("vnpu_config_recover:{state}\n[vnpu-config start]\n");
        for chip in &self.chips {
            let card = self.cards.get(chip.card).map_or(-1, |card| card.id);
            for vdevice in &chip.vdevices {
                // Writing to a string cannot fail.
                let _written = write!(
                    text,
                    "{}:{}:npu-smi set -t create-vnpu -i {card} -c {} -f {} -v {}",
                    chip.phy, vdevice.id, chip.device, vdevice.template, vdevice.id
                );
                if let Some(vgroup) = vdevice.vgroup {
                    let _written = write!(text, " -g {vgroup}");
                }
                text.push('\n');
            }
        }
        text.push_str("[vnpu-config end]\n");
        text
    }

    /// Whoever asks about cutting must be root, where the chip can be cut at all.
    fn ask_cutting<'a>(&self, chip: &'a Chip) -> Result<&'a Cutting, Failure> {
        let cutting = chip.cutting.as_ref().ok_or(NOT_SUPPORTED)?;
        if !self.injection.caller().is_root() {
            return Err(Failure(ReturnCode::NOT_PERMITTED));
        }
        Ok(cutting)
    }
}

impl Chip {
    /// Lowers the phy id by so many, and with it every vdev id.
    pub(super) fn move_down(&mut self, below: u32) {
        self.phy -= below;
        for vdevice in &mut self.vdevices {
            vdevice.id -= below * IDS_BETWEEN_CHIPS;
        }
    }

    fn ids(&self, cutting: &Cutting) -> std::ops::Range<u32> {
        let first = FIRST_ID + self.phy * IDS_BETWEEN_CHIPS;
        first..first + cutting.ids_per_chip
    }

    /// The wanted id if it is one of the chip's, otherwise the lowest free one.
    fn free_id(&self, cutting: &Cutting, wanted: Option<u32>) -> Result<u32, Failure> {
        let taken = |id: &u32| self.vdevices.iter().any(|vdevice| vdevice.id == *id);
        match wanted {
            Some(id) if !self.ids(cutting).contains(&id) => Err(INVALID_PARAMETER),
            Some(id) if taken(&id) => Err(OCCUPIED),
            Some(id) => Ok(id),
            None => self.ids(cutting).find(|id| !taken(id)).ok_or(OCCUPIED),
        }
    }

    /// A vgroup for the template: an empty one or, for one AI core, one that has only another
    /// of the kind in it.
    fn free_vgroup(
        &self,
        cutting: &Cutting,
        template: Template,
        wanted: Option<u32>,
    ) -> Result<u32, Failure> {
        let cores_in = |group: u32| -> u32 {
            self.vdevices
                .iter()
                .filter(|vdevice| vdevice.vgroup == Some(group))
                .filter_map(|vdevice| cutting.template(&vdevice.template))
                .map(|template| template.capacity.aicores)
                .sum()
        };
        let need = template.capacity.aicores;
        let bound: u32 = (0..VGROUPS)
            .map(cores_in)
            .filter(|cores| *cores > 0)
            .map(|cores| cores.max(LEAST_VGROUP_CORES))
            .sum();
        let room_for_another = bound + need.max(LEAST_VGROUP_CORES) <= cutting.whole.aicores;
        let takes = |group: u32| match cores_in(group) {
            0 => room_for_another,
            cores => cores == 1 && need == 1,
        };
        match wanted {
            Some(group) if group >= VGROUPS => Err(INVALID_PARAMETER),
            Some(group) if takes(group) => Ok(group),
            Some(_) => Err(OCCUPIED),
            None => {
                let half_empty = (0..VGROUPS).find(|group| cores_in(*group) == 1 && need == 1);
                half_empty
                    .or_else(|| (0..VGROUPS).find(|group| takes(*group)))
                    .ok_or(OCCUPIED)
            }
        }
    }

    fn vdevice(&self, id: u32) -> Result<&Vdevice, Failure> {
        self.vdevices
            .iter()
            .find(|vdevice| vdevice.id == id)
            .ok_or(Failure(ReturnCode::NO_SUCH_DEVICE))
    }
}

impl Vdevice {
    /// The name the driver tells.
    pub(super) fn name(&self) -> &str {
        self.shown_as.as_deref().unwrap_or(&self.template)
    }
}

/// One capacity with another, dimension by dimension.
fn joined(a: Capacity, b: Capacity, join: impl Fn(u64, u64) -> u64) -> Capacity {
    let narrow =
        |a: u32, b: u32| u32::try_from(join(u64::from(a), u64::from(b))).unwrap_or(u32::MAX);
    Capacity {
        aicores: narrow(a.aicores, b.aicores),
        memory_mb: join(a.memory_mb, b.memory_mb),
        aicpus: narrow(a.aicpus, b.aicpus),
        vpc: narrow(a.vpc, b.vpc),
        venc: narrow(a.venc, b.venc),
        vdec: narrow(a.vdec, b.vdec),
        jpegd: narrow(a.jpegd, b.jpegd),
        jpege: narrow(a.jpege, b.jpege),
        pngd_halves: narrow(a.pngd_halves, b.pngd_halves),
    }
}

fn used(vdevices: &[Vdevice], cutting: &Cutting) -> Capacity {
    vdevices
        .iter()
        .filter_map(|vdevice| cutting.template(&vdevice.template))
        .fold(Capacity::default(), |sum, template| {
            joined(sum, template.capacity, u64::saturating_add)
        })
}

fn left(whole: Capacity, used: Capacity) -> Capacity {
    joined(whole, used, u64::saturating_sub)
}

fn fits(used: Capacity, template: Template, whole: Capacity) -> bool {
    let sum = joined(used, template.capacity, u64::saturating_add);
    // Nothing exceeds the whole when cutting the sum down to it changes nothing.
    joined(sum, whole, u64::min) == sum
}

//! What a chip is.

use std::mem::size_of;
use std::os::raw::{c_int, c_uint};

use super::{Address, Dcmi, LINE_BYTES, lossy, non_negative, returned};
use crate::dcmi::code::CallError;
use crate::dcmi::layout::{
    BoardInfo, ChipInfo, ChipInfoV2, Die, PcieInfoAll, SUPER_POD_TYPE_END, SuperPodInfo,
};
use crate::domain::chip::PciAddress;
use crate::domain::ids::{CardId, DeviceId, DieId};

/// The call has no length argument; a CPU list of a large machine is a few hundred bytes.
const CPU_LIST_BYTES: usize = 1024;

/// Group of the general information call that is about the chip.
const CHIP_INFORMATION: c_uint = 12;

/// Where the chip stands in its super pod, within that group.
const SUPER_POD: c_uint = 1;

const SUPER_POD_INFO_BYTES: c_uint = 48;
const _: () = assert!(SUPER_POD_INFO_BYTES as usize == size_of::<SuperPodInfo>());

/// Which die's serial is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DieType {
    /// The serial of every family before A5.
    Vdie,
    /// The serial of A5.
    Ddie,
}

/// Names of a chip, as the driver spells them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChipNames {
    /// `Ascend` or a rebranded builder's word.
    pub chip_type: String,
    /// Such as `910B3`.
    pub chip_name: String,
    /// AI cores; `None` where the driver leaves the count at zero.
    pub ai_cores: Option<u32>,
}

impl Dcmi {
    /// Names of a chip; falls back to the older call where the newer one is absent or fails.
    ///
    /// # Errors
    /// Neither call worked.
    pub fn chip_names(&self, at: Address) -> Result<ChipNames, CallError> {
        let mut info = ChipInfoV2::default();
        let newer = match at {
            Address::Card { card, device } => {
                call!(self.dcmi_get_device_chip_info_v2(card.0, device.0, &raw mut info))
            }
            Address::Logic { device } => {
                call!(self.dcmiv2_get_device_chip_info(device, &raw mut info))
            }
        };
        match (newer, at) {
            (Ok(()), _) => Ok(names(&info.chip_type, &info.chip_name, info.aicore_count)),
            (Err(_), Address::Card { card, device }) => {
                let mut older = ChipInfo::default();
                call!(self.dcmi_get_device_chip_info(card.0, device.0, &raw mut older))?;
                Ok(names(
                    &older.chip_type,
                    &older.chip_name,
                    older.aicore_count,
                ))
            }
            (Err(error), Address::Logic { .. }) => Err(error),
        }
    }

    /// The board's number.
    ///
    /// # Errors
    /// The call failed.
    pub fn board_id(&self, at: Address) -> Result<u32, CallError> {
        let mut info = BoardInfo::default();
        match at {
            Address::Card { card, device } => {
                call!(self.dcmi_get_device_board_info(card.0, device.0, &raw mut info))?;
            }
            Address::Logic { device } => {
                call!(self.dcmiv2_get_device_board_info(device, &raw mut info))?;
            }
        }
        Ok(info.board)
    }

    /// Number of the board the cards sit on; 910B, A3 and A5 only.
    ///
    /// # Errors
    /// The call failed.
    pub fn mainboard_id(&self, at: Address) -> Result<u32, CallError> {
        let mut id: c_uint = 0;
        match at {
            Address::Card { card, device } => {
                call!(self.dcmi_get_mainboard_id(card.0, device.0, &raw mut id))?;
            }
            Address::Logic { device } => {
                call!(self.dcmiv2_get_mainboard_id(device, &raw mut id))?;
            }
        }
        Ok(id)
    }

    /// Kind of the super pod the chip belongs to; A3 and A5 only.
    ///
    /// # Errors
    /// The call failed, or the driver's answer is too short to hold the kind.
    pub fn super_pod_type(&self, at: Address) -> Result<u32, CallError> {
        let mut info = SuperPodInfo::default();
        // In: what fits. Out: what was written.
        let mut bytes: c_uint = SUPER_POD_INFO_BYTES;
        let pointer = (&raw mut info).cast();
        let symbol = match at {
            Address::Card { card, device } => {
                call!(self.dcmi_get_device_info(
                    card.0,
                    device.0,
                    CHIP_INFORMATION,
                    SUPER_POD,
                    pointer,
                    &raw mut bytes,
                ))?;
                "dcmi_get_device_info"
            }
            Address::Logic { device } => {
                call!(self.dcmiv2_get_device_info(
                    device,
                    CHIP_INFORMATION,
                    SUPER_POD,
                    pointer,
                    &raw mut bytes,
                ))?;
                "dcmiv2_get_device_info"
            }
        };
        if usize::try_from(bytes).is_ok_and(|bytes| bytes >= SUPER_POD_TYPE_END) {
            return Ok(info.pod_type);
        }
        Err(CallError::Implausible {
            symbol,
            what: "size of the super-pod facts",
            value: bytes.into(),
        })
    }

    /// Serial of a die.
    ///
    /// # Errors
    /// The call failed; each family answers some die types only.
    pub fn die_id(&self, at: Address, die_type: DieType) -> Result<DieId, CallError> {
        let number = match die_type {
            DieType::Vdie => 1,
            DieType::Ddie => 2,
        };
        let mut die = Die::default();
        match at {
            Address::Card { card, device } => {
                call!(self.dcmi_get_device_die_v2(card.0, device.0, number, &raw mut die))?;
            }
            Address::Logic { device } => {
                call!(self.dcmiv2_get_device_die_id(device, number, &raw mut die))?;
            }
        }
        Ok(DieId(die.words))
    }

    /// PCI address.
    ///
    /// # Errors
    /// The call failed or gave a negative domain.
    pub fn pci_address(&self, at: Address) -> Result<PciAddress, CallError> {
        let mut info = PcieInfoAll::default();
        let symbol = match at {
            Address::Card { card, device } => {
                call!(self.dcmi_get_device_pcie_info_v2(card.0, device.0, &raw mut info))?;
                "dcmi_get_device_pcie_info_v2"
            }
            Address::Logic { device } => {
                call!(self.dcmiv2_get_device_pcie_info(device, &raw mut info))?;
                "dcmiv2_get_device_pcie_info"
            }
        };
        Ok(PciAddress {
            domain: non_negative(symbol, "PCI domain", info.domain)?,
            bus: info.bus,
            device: info.device_on_bus,
            function: info.function,
        })
    }

    /// Product text such as `Atlas 300I Pro`; the first interface only, and 310 families only.
    ///
    /// # Errors
    /// The call failed.
    pub fn product_type(&self, card: CardId, device: DeviceId) -> Result<String, CallError> {
        let mut text = [0_u8; LINE_BYTES];
        let bytes = LINE_BYTES.try_into().unwrap_or(c_int::MAX);
        let pointer = text.as_mut_ptr().cast();
        call!(self.dcmi_get_product_type(card.0, device.0, pointer, bytes))?;
        Ok(lossy(&text))
    }

    /// CPUs near to a chip, as a list such as `0-31`.
    ///
    /// # Errors
    /// The call failed; few machines support it.
    pub fn near_cpus(&self, at: Address) -> Result<String, CallError> {
        let mut text = [0_u8; CPU_LIST_BYTES];
        let mut bytes: c_int = 0;
        let pointer = text.as_mut_ptr().cast();
        match at {
            Address::Card { card, device } => {
                call!(self.dcmi_get_affinity_cpu_info_by_device_id(
                    card.0,
                    device.0,
                    pointer,
                    &raw mut bytes,
                ))?;
            }
            Address::Logic { device } => {
                call!(self.dcmiv2_get_affinity_cpu_info_by_dev_id(
                    device,
                    pointer,
                    &raw mut bytes
                ))?;
            }
        }
        Ok(lossy(&text))
    }
}

fn names(chip_type: &[u8], chip_name: &[u8], ai_cores: u32) -> ChipNames {
    ChipNames {
        chip_type: lossy(chip_type),
        chip_name: lossy(chip_name),
        ai_cores: (ai_cores != 0).then_some(ai_cores),
    }
}

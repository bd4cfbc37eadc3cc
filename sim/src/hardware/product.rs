//! Which product a chip is: the rules of vNPUs, resets and settings depend on it.

use crate::profile::{ChipPlan, Profile};

const A3_BOARDS: [u32; 9] = [0xb0, 0xb1, 0xb2, 0xb3, 0xb4, 0x81, 0x83, 0xd1, 0xd3];
const DUO_BOARD: u32 = 0x97;
const SOC_BOARDS: [u32; 4] = [0x191, 0x1c2, 0x1db, 0x1c7];
/// Boards of 910B chips without links between them, which are cards and not servers.
const UNLINKED_910B_BOARDS: [u32; 4] = [0x28, 0x29, 0x33, 0x3c];
const A5_CARD_MAINBOARDS: [u32; 4] = [0x68, 0x6a, 0x6b, 0x6c];
const A3_ARM_MAINBOARDS: [u32; 5] = [0x14, 0x18, 0x19, 0x1c, 0x1d];

/// A product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Product {
    /// Ascend 310.
    Ascend310,
    /// Ascend 310B.
    Ascend310B,
    /// A 310P card with one chip.
    Ascend310P,
    /// Two 310P chips on one card.
    Duo,
    /// A 310P inside a server's system on chip.
    Soc310P,
    /// The first 910.
    Ascend910,
    /// 910B chips linked with each other.
    Ascend910B,
    /// 910B chips on cards of their own.
    Card910B,
    /// A3 on an ARM mainboard.
    A3Arm,
    /// A3 on another mainboard.
    A3,
    /// A5 servers and pods.
    A5,
    /// A5 cards.
    A5Card,
}

impl Product {
    /// The product of a chip in a machine of that kind: board id first, then the chip's name.
    pub(super) fn of(plan: &ChipPlan, kind: &Profile) -> Self {
        let board = plan.board_id;
        let mainboard_in = |ids: &[u32]| plan.mainboard_id.is_some_and(|id| ids.contains(&id));
        let texts = [&plan.identity.chip_name, &plan.identity.npu_name];
        let named = |part: &str| texts.iter().any(|text| text.starts_with(part));
        if named("Ascend950") {
            return if mainboard_in(&A5_CARD_MAINBOARDS) {
                Self::A5Card
            } else {
                Self::A5
            };
        }
        if A3_BOARDS.contains(&board) {
            return if mainboard_in(&A3_ARM_MAINBOARDS) {
                Self::A3Arm
            } else {
                Self::A3
            };
        }
        if named("310P") || named("I2") {
            return match () {
                () if SOC_BOARDS.contains(&board) => Self::Soc310P,
                () if board == DUO_BOARD || kind.devices_per_card > 1 => Self::Duo,
                () => Self::Ascend310P,
            };
        }
        match () {
            () if named("310B") => Self::Ascend310B,
            () if named("310") => Self::Ascend310,
            () if !named("910B") && !named("A2G") => Self::Ascend910,
            () if UNLINKED_910B_BOARDS.contains(&board) => Self::Card910B,
            () => Self::Ascend910B,
        }
    }

    /// 310P in any form.
    pub(super) fn is_310p(self) -> bool {
        matches!(self, Self::Ascend310P | Self::Duo | Self::Soc310P)
    }

    /// 910B in any form.
    pub(super) fn is_910b(self) -> bool {
        matches!(self, Self::Ascend910B | Self::Card910B)
    }

    /// A3 on any mainboard.
    pub(super) fn is_a3(self) -> bool {
        matches!(self, Self::A3 | Self::A3Arm)
    }

    /// A5 in any form.
    pub(super) fn is_a5(self) -> bool {
        matches!(self, Self::A5 | Self::A5Card)
    }

    /// The driver tells how busy vNPUs are.
    pub(super) fn tells_activity(self) -> bool {
        matches!(self, Self::Ascend310P | Self::Duo)
    }

    /// The board's controller can reset the chips.
    pub(super) fn has_outband_reset(self) -> bool {
        match self {
            Self::Ascend310
            | Self::Ascend310P
            | Self::Duo
            | Self::Card910B
            | Self::A3Arm
            | Self::A5 => true,
            Self::Ascend310B
            | Self::Soc310P
            | Self::Ascend910
            | Self::Ascend910B
            | Self::A3
            | Self::A5Card => false,
        }
    }
}

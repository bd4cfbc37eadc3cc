//! Chip families and how a chip is recognised. Source of the rules: the driver's board ids and chip
//! names as the vendor's own plugin reads them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Board ids of the A3 generation, whose chip name alone reads like a 910.
const A3_BOARD_IDS: [u32; 9] = [0xb0, 0xb1, 0xb2, 0xb3, 0xb4, 0x81, 0x83, 0xd1, 0xd3];

/// A generation of chips that shares resource name, ids and limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ChipFamily {
    /// Ascend 310.
    Ascend310,
    /// Ascend 310B (Atlas 200I A2 and its kin).
    Ascend310B,
    /// Ascend 310P.
    Ascend310P,
    /// The first Ascend 910 (910A).
    Ascend910,
    /// Ascend 910B (Atlas A2).
    Ascend910B,
    /// Ascend `910_93` (Atlas A3), two dies per card.
    Ascend910A3,
    /// Ascend 950 (Atlas A5), served by the second DCMI API only.
    Ascend950,
}

impl ChipFamily {
    /// Derives the family: board id first, then the chip name, in the order the vendor uses.
    /// `None` for a chip this agent does not know.
    #[must_use]
    pub fn detect(board_id: Option<u32>, chip_name: &str) -> Option<Self> {
        if board_id.is_some_and(|id| A3_BOARD_IDS.contains(&id)) {
            return Some(Self::Ascend910A3);
        }
        if chip_name.starts_with("Ascend950") {
            return Some(Self::Ascend950);
        }
        if chip_name.starts_with("310P") || chip_name.starts_with("I2") {
            return Some(Self::Ascend310P);
        }
        if chip_name.contains("310B") {
            return Some(Self::Ascend310B);
        }
        if chip_name.contains("310") {
            return Some(Self::Ascend310);
        }
        let digit_after = |prefix: &str| {
            chip_name
                .strip_prefix(prefix)
                .is_some_and(|rest| rest.as_bytes().first().is_some_and(u8::is_ascii_digit))
        };
        if digit_after("910B") || digit_after("A2G") {
            return Some(Self::Ascend910B);
        }
        chip_name.starts_with("910").then_some(Self::Ascend910)
    }

    /// First part of resource names and plugin device ids.
    #[must_use]
    pub fn base_name(self) -> &'static str {
        match self {
            Self::Ascend310 | Self::Ascend310B => "Ascend310",
            Self::Ascend310P => "Ascend310P",
            Self::Ascend910 | Self::Ascend910B | Self::Ascend910A3 => "Ascend910",
            Self::Ascend950 => "npu",
        }
    }

    /// Whether variables given to containers carry logic ids instead of phy ids.
    #[must_use]
    pub fn exports_logic_ids(self) -> bool {
        self == Self::Ascend950
    }
}

impl fmt::Display for ChipFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ascend310 => "310",
            Self::Ascend310B => "310B",
            Self::Ascend310P => "310P",
            Self::Ascend910 => "910A",
            Self::Ascend910B => "910B",
            Self::Ascend910A3 => "A3",
            Self::Ascend950 => "A5",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_board_id_decides_before_the_name() {
        assert_eq!(
            ChipFamily::detect(Some(0xb1), "910B3"),
            Some(ChipFamily::Ascend910A3)
        );
    }

    #[test]
    fn names_are_told_apart_in_the_vendors_order() {
        for (name, family) in [
            ("Ascend950PR", Some(ChipFamily::Ascend950)),
            ("310P3", Some(ChipFamily::Ascend310P)),
            ("I2", Some(ChipFamily::Ascend310P)),
            ("310B4", Some(ChipFamily::Ascend310B)),
            ("310", Some(ChipFamily::Ascend310)),
            ("910B3", Some(ChipFamily::Ascend910B)),
            ("A2G3", Some(ChipFamily::Ascend910B)),
            ("910ProB", Some(ChipFamily::Ascend910)),
            ("", None),
            ("H100", None),
        ] {
            assert_eq!(ChipFamily::detect(Some(0x2f), name), family, "{name}");
        }
    }
}

//! Products: the boards of one family that differ in links, device nodes or what may be offered.
//! Source of the rules: the vendor's board ids and product texts, and its documentation of links.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::family::ChipFamily;

/// Boards of Atlas 300I Duo, where the product text cannot be read.
const DUO_BOARD_IDS: [u32; 1] = [0x97];

/// Boards of Atlas 200I `SoC` A1, where the product text cannot be read.
const SOC_A1_BOARD_IDS: [u32; 1] = [0x1c7];

/// 910B boards without HCCS: Atlas 300I A2, and Atlas 800I A2 in its build without links.
const UNLINKED_910B_BOARD_IDS: [u32; 4] = [0x28, 0x29, 0x33, 0x3c];

/// Mainboards of A5 cards (Atlas 350); every other A5 mainboard is a server or a pod.
const A5_CARD_MAINBOARD_IDS: [u32; 4] = [0x68, 0x6a, 0x6b, 0x6c];

/// Super-pod types of A5 cards with one and with four chips.
const A5_CARD_SUPER_POD_TYPES: [u32; 2] = [5, 6];

/// 910B chips linked by one HCCS mesh; a node with more has two meshes.
const CHIPS_OF_A_910B_MESH: usize = 8;

/// What is sold: the unit by which rules differ within a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Product {
    /// Ascend 310: Atlas 300I with four chips behind one `PCIe` switch, or a single chip at the edge.
    Ascend310,
    /// Ascend 310B: Atlas 200I A2, 200I DK A2, 500 A2.
    Ascend310B,
    /// 310P cards with one chip: Atlas 300I Pro, 300V, 300V Pro.
    Ascend310P,
    /// Two 310P chips on one card.
    Atlas300IDuo,
    /// One 310P inside a server's own system on chip.
    Atlas200ISocA1,
    /// The first 910: two HCCS rings of four in a server.
    Ascend910,
    /// 910B chips with one HCCS mesh of eight.
    Ascend910B,
    /// 910B cards without links between them.
    Ascend910BUnlinked,
    /// Sixteen 910B chips in two meshes of eight (Atlas 200T A2 Box16 and 200I A2 Box16).
    AtlasA2Box16,
    /// A3: two dies on a card, an HCCS switch between cards.
    AtlasA3,
    /// A5 servers and pods: a mesh of eight.
    AtlasA5,
    /// A5 cards (Atlas 350).
    Atlas350,
}

/// What the driver says about one chip and its surroundings, as far as a product depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProductFacts<'a> {
    /// Family.
    pub family: ChipFamily,
    /// Board id, where readable.
    pub board_id: Option<u32>,
    /// Mainboard id, where readable.
    pub mainboard_id: Option<u32>,
    /// Product text, where readable.
    pub product_type: Option<&'a str>,
    /// Super-pod type, where readable.
    pub super_pod_type: Option<u32>,
    /// Chips on the same card, this one included.
    pub chips_on_card: usize,
    /// Chips on the node, this one included.
    pub chips_on_node: usize,
}

impl Product {
    /// Derives the product. Facts that cannot be read leave the commonest product of the family.
    #[must_use]
    pub fn detect(facts: &ProductFacts<'_>) -> Self {
        let board_in = |ids: &[u32]| facts.board_id.is_some_and(|id| ids.contains(&id));
        match facts.family {
            ChipFamily::Ascend310 => Self::Ascend310,
            ChipFamily::Ascend310B => Self::Ascend310B,
            ChipFamily::Ascend310P => match facts.product_type {
                Some("Atlas 200I SoC A1") => Self::Atlas200ISocA1,
                Some(text) if text.starts_with("Atlas 300I Duo") => Self::Atlas300IDuo,
                _ if board_in(&SOC_A1_BOARD_IDS) => Self::Atlas200ISocA1,
                _ if board_in(&DUO_BOARD_IDS) || facts.chips_on_card > 1 => Self::Atlas300IDuo,
                _ => Self::Ascend310P,
            },
            ChipFamily::Ascend910 => Self::Ascend910,
            ChipFamily::Ascend910B if board_in(&UNLINKED_910B_BOARD_IDS) => {
                Self::Ascend910BUnlinked
            }
            ChipFamily::Ascend910B if facts.chips_on_node > CHIPS_OF_A_910B_MESH => {
                Self::AtlasA2Box16
            }
            ChipFamily::Ascend910B => Self::Ascend910B,
            ChipFamily::Ascend910A3 => Self::AtlasA3,
            ChipFamily::Ascend950 => {
                let is_card = match facts.super_pod_type {
                    Some(kind) => A5_CARD_SUPER_POD_TYPES.contains(&kind),
                    None => facts
                        .mainboard_id
                        .is_some_and(|id| A5_CARD_MAINBOARD_IDS.contains(&id)),
                };
                if is_card {
                    Self::Atlas350
                } else {
                    Self::AtlasA5
                }
            }
        }
    }

    /// The family that the product belongs to.
    #[must_use]
    pub fn family(self) -> ChipFamily {
        match self {
            Self::Ascend310 => ChipFamily::Ascend310,
            Self::Ascend310B => ChipFamily::Ascend310B,
            Self::Ascend310P | Self::Atlas300IDuo | Self::Atlas200ISocA1 => ChipFamily::Ascend310P,
            Self::Ascend910 => ChipFamily::Ascend910,
            Self::Ascend910B | Self::Ascend910BUnlinked | Self::AtlasA2Box16 => {
                ChipFamily::Ascend910B
            }
            Self::AtlasA3 => ChipFamily::Ascend910A3,
            Self::AtlasA5 | Self::Atlas350 => ChipFamily::Ascend950,
        }
    }
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ascend310 => "310",
            Self::Ascend310B => "310B",
            Self::Ascend310P => "310P",
            Self::Atlas300IDuo => "Atlas 300I Duo",
            Self::Atlas200ISocA1 => "Atlas 200I SoC A1",
            Self::Ascend910 => "910A",
            Self::Ascend910B => "910B",
            Self::Ascend910BUnlinked => "910B without HCCS",
            Self::AtlasA2Box16 => "A2 Box16",
            Self::AtlasA3 => "A3",
            Self::AtlasA5 => "A5",
            Self::Atlas350 => "Atlas 350",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(family: ChipFamily) -> ProductFacts<'static> {
        ProductFacts {
            family,
            board_id: None,
            mainboard_id: None,
            product_type: None,
            super_pod_type: None,
            chips_on_card: 1,
            chips_on_node: 8,
        }
    }

    #[test]
    fn the_product_text_decides_among_310p_boards() {
        for (text, product) in [
            ("Atlas 300I Pro", Product::Ascend310P),
            ("Atlas 300V", Product::Ascend310P),
            ("Atlas 300I Duo", Product::Atlas300IDuo),
            ("Atlas 300I DuoA", Product::Atlas300IDuo),
            ("Atlas 200I SoC A1", Product::Atlas200ISocA1),
        ] {
            let facts = ProductFacts {
                product_type: Some(text),
                ..facts(ChipFamily::Ascend310P)
            };
            assert_eq!(Product::detect(&facts), product, "{text}");
        }
    }

    #[test]
    fn without_a_product_text_board_and_card_decide() {
        let of = |board_id, chips_on_card| {
            Product::detect(&ProductFacts {
                board_id: Some(board_id),
                chips_on_card,
                ..facts(ChipFamily::Ascend310P)
            })
        };
        assert_eq!(of(0x1c7, 1), Product::Atlas200ISocA1);
        assert_eq!(of(0x97, 1), Product::Atlas300IDuo);
        assert_eq!(of(0x64, 2), Product::Atlas300IDuo);
        assert_eq!(of(0x64, 1), Product::Ascend310P);
    }

    #[test]
    fn boards_without_hccs_and_two_meshes_are_told_from_a_910b_server() {
        let of = |board_id, chips_on_node| {
            Product::detect(&ProductFacts {
                board_id: Some(board_id),
                chips_on_node,
                ..facts(ChipFamily::Ascend910B)
            })
        };
        assert_eq!(of(0x32, 8), Product::Ascend910B);
        assert_eq!(of(0x32, 16), Product::AtlasA2Box16);
        assert_eq!(of(0x28, 2), Product::Ascend910BUnlinked);
    }

    #[test]
    fn an_a5_card_is_known_by_its_super_pod_type_or_mainboard() {
        let of = |super_pod_type, mainboard_id| {
            Product::detect(&ProductFacts {
                mainboard_id,
                super_pod_type,
                ..facts(ChipFamily::Ascend950)
            })
        };
        assert_eq!(of(Some(0), Some(0x68)), Product::AtlasA5);
        assert_eq!(of(Some(5), None), Product::Atlas350);
        assert_eq!(of(None, Some(0x6c)), Product::Atlas350);
        assert_eq!(of(None, None), Product::AtlasA5);
    }
}

//! The topology file that the driver ships for HCCL on A5.

use crate::domain::family::ChipFamily;
use crate::domain::product::Product;

const FOLDER: &str = "/usr/local/Ascend/driver/topo/950";

/// Value of `HCCL_TOPO_FILE_PATH`: by super-pod type. A type that is unknown or cannot be read leaves
/// the file of an eight-chip server. `None` except on A5.
pub(super) fn topology_file(product: Product, super_pod_type: Option<u32>) -> Option<String> {
    if product.family() != ChipFamily::Ascend950 {
        return None;
    }
    let name = match super_pod_type {
        Some(1) => "atlas_950_1",
        Some(2) => "atlas_950_2",
        Some(3) => "atlas_850_2",
        Some(4) => "atlas_850_3",
        Some(5) => "atlas_350_1",
        Some(6) => "atlas_350_3",
        // A card whose number of chips is not known: the file of a single one names no link that may
        // not exist.
        None if product == Product::Atlas350 => "atlas_350_1",
        Some(_) | None => "atlas_850_1",
    };
    Some(format!("{FOLDER}/{name}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_super_pod_type_decides_and_the_server_of_eight_is_the_fallback() {
        for (kind, name) in [
            (Some(0), "850_1"),
            (Some(1), "950_1"),
            (Some(2), "950_2"),
            (Some(3), "850_2"),
            (Some(4), "850_3"),
            (Some(5), "350_1"),
            (Some(6), "350_3"),
            (Some(77), "850_1"),
            (None, "850_1"),
        ] {
            let expected = format!("{FOLDER}/atlas_{name}.json");
            assert_eq!(
                topology_file(Product::AtlasA5, kind),
                Some(expected),
                "{kind:?}"
            );
        }
        let card = topology_file(Product::Atlas350, None);
        assert_eq!(card, Some(format!("{FOLDER}/atlas_350_1.json")));
        assert_eq!(topology_file(Product::Ascend910B, Some(0)), None);
    }
}

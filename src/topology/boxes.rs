//! A2 Box16: two meshes of eight 910B chips; chips at equal positions of both meshes are linked best.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::ids::PhyId;

use super::groups::{grouped, lowest_with};
use super::preferred::{Candidate, Request};

const MESH_SIZE: u32 = 8;

const BOX_SIZE: u32 = 2 * MESH_SIZE;

/// Up to eight chips: one mesh, the smallest that fits. Ten to sixteen, even: half from each mesh of
/// a box, at equal positions. No answer when no mesh or no box has room, and for other sizes.
pub(super) fn choose(
    free: &BTreeMap<PhyId, &Candidate>,
    request: Request<'_>,
) -> Option<BTreeSet<PhyId>> {
    if request.size <= MESH_SIZE as usize {
        let meshes = grouped(free, |chip| chip.phy.0 / MESH_SIZE);
        let with_room = meshes
            .values()
            .filter(|phys| phys.len() >= request.size && request.must_include.is_subset(phys));
        let smallest = with_room.min_by_key(|phys| phys.len())?;
        return lowest_with(smallest.iter().copied(), request);
    }
    if request.size > BOX_SIZE as usize || !request.size.is_multiple_of(2) {
        return None;
    }
    let boxes = grouped(free, |chip| chip.phy.0 / BOX_SIZE);
    boxes
        .values()
        .filter(|phys| request.must_include.is_subset(phys))
        .find_map(|phys| half_of_each_mesh(phys, request))
}

fn half_of_each_mesh(phys: &BTreeSet<PhyId>, request: Request<'_>) -> Option<BTreeSet<PhyId>> {
    let place = |phy: &PhyId| phy.0 % MESH_SIZE;
    let mut at: BTreeMap<u32, Vec<PhyId>> = BTreeMap::new();
    for phy in phys {
        at.entry(place(phy)).or_default().push(*phy);
    }
    let fixed: BTreeSet<u32> = request.must_include.iter().map(place).collect();
    let others = at.keys().filter(|place| !fixed.contains(place));
    let chosen: BTreeSet<PhyId> = fixed
        .iter()
        .chain(others)
        .filter_map(|place| at.get(place).filter(|both| both.len() == 2))
        .take(request.size / 2)
        .flatten()
        .copied()
        .collect();
    (chosen.len() == request.size && request.must_include.is_subset(&chosen)).then_some(chosen)
}

#[cfg(test)]
mod tests {
    use crate::domain::product::Product;
    use crate::topology::preferred::testing::chosen;

    fn of_box(free: &[u32], must: &[u32], size: usize) -> Vec<u32> {
        chosen(Product::AtlasA2Box16, free, must, size)
    }

    #[test]
    fn up_to_eight_chips_stay_in_the_smallest_mesh_that_fits() {
        assert_eq!(of_box(&[0, 1, 2, 8, 9], &[], 2), [8, 9]);
        assert_eq!(of_box(&[0, 1, 8, 9], &[], 2), [0, 1]);
        assert_eq!(of_box(&[0, 1, 2, 8, 9], &[2], 2), [0, 2]);
    }

    #[test]
    fn no_mesh_with_room_means_no_preference() {
        assert_eq!(of_box(&[0, 1, 2, 8, 9, 10], &[], 4), [0; 0]);
        assert_eq!(of_box(&[0, 1, 2, 8, 9, 10], &[0, 8], 2), [0; 0]);
    }

    #[test]
    fn more_than_eight_chips_sit_at_equal_positions_of_both_meshes() {
        let free: Vec<u32> = (0..16).filter(|phy| *phy != 2).collect();
        assert_eq!(of_box(&free, &[], 10), [0, 1, 3, 4, 5, 8, 9, 11, 12, 13]);
        assert_eq!(of_box(&free, &[15], 10), [0, 1, 3, 4, 7, 8, 9, 11, 12, 15]);
        assert_eq!(of_box(&free, &[], 16), [0; 0]);
    }

    #[test]
    fn a_fixed_chip_without_its_counterpart_and_odd_sizes_have_no_preference() {
        let free: Vec<u32> = (0..16).filter(|phy| *phy != 2).collect();
        assert_eq!(of_box(&free, &[10], 10), [0; 0]);
        assert_eq!(of_box(&free, &[], 9), [0; 0]);
        assert_eq!(of_box(&free, &[], 11), [0; 0]);
    }

    #[test]
    fn all_sixteen_are_the_whole_box() {
        let all: Vec<u32> = (0..16).collect();
        assert_eq!(of_box(&all, &[3], 16), all);
    }
}

//! Preferred allocation for whole chips.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::family::ChipFamily;
use crate::domain::ids::{CardId, PhyId};

/// Chips linked by one HCCS mesh on 910B and A5 servers.
const MESH_SIZE: u32 = 8;

/// A chip that could be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Number; identifies the chip in the answer and breaks ties.
    pub phy: PhyId,
    /// Its card.
    pub card: CardId,
    /// Its family.
    pub family: ChipFamily,
    /// NUMA nodes near it.
    pub numa_nodes: BTreeSet<u32>,
}

/// The group within which chips talk best; smaller numbers first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Mesh(u32),
    Card(CardId),
    Numa(Option<u32>),
}

/// Chooses exactly `size` of `available`, with all of `must_include` among them: one group if it can
/// be had (the smallest that fits, so that large ones stay whole; ties to the lowest number), else as
/// few groups as possible. The same input gives the same answer, sorted. Empty when the request
/// cannot be met: kubelet then decides alone and finds the shortage itself.
#[must_use]
pub fn choose(available: &[Candidate], must_include: &BTreeSet<PhyId>, size: usize) -> Vec<PhyId> {
    let mut free: BTreeMap<PhyId, Group> = BTreeMap::new();
    for candidate in available {
        free.insert(candidate.phy, group_of(candidate));
    }
    let mut chosen: BTreeSet<PhyId> = must_include.clone();
    if chosen.len() > size || free.len() < size || !chosen.iter().all(|phy| free.contains_key(phy))
    {
        return Vec::new();
    }
    let bound: BTreeSet<Group> = chosen
        .iter()
        .filter_map(|phy| free.get(phy))
        .copied()
        .collect();
    free.retain(|phy, _| !chosen.contains(phy));
    let mut members: BTreeMap<Group, Vec<PhyId>> = BTreeMap::new();
    for (phy, group) in &free {
        members.entry(*group).or_default().push(*phy);
    }
    while chosen.len() < size {
        let missing = size - chosen.len();
        let best = members
            .iter()
            .filter(|(_, phys)| !phys.is_empty())
            .min_by_key(|(group, phys)| rank(phys.len(), missing, bound.contains(group)));
        let Some(group) = best.map(|(group, _)| *group) else {
            return Vec::new();
        };
        let phys = members.remove(&group).unwrap_or_default();
        chosen.extend(phys.into_iter().take(missing));
    }
    chosen.into_iter().collect()
}

/// Order of groups: those of the chips that are fixed already, then the tightest that fits, then,
/// when none fits, the one with most free chips.
fn rank(free: usize, missing: usize, bound: bool) -> (bool, bool, usize) {
    let fits = free >= missing;
    (!bound, !fits, if fits { free } else { usize::MAX - free })
}

fn group_of(candidate: &Candidate) -> Group {
    match candidate.family {
        ChipFamily::Ascend910B | ChipFamily::Ascend950 => Group::Mesh(candidate.phy.0 / MESH_SIZE),
        ChipFamily::Ascend910 => Group::Mesh(candidate.phy.0 / 4),
        ChipFamily::Ascend910A3 | ChipFamily::Ascend310 => Group::Card(candidate.card),
        ChipFamily::Ascend310P | ChipFamily::Ascend310B => {
            Group::Numa(candidate.numa_nodes.first().copied())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chips(family: ChipFamily, phys: &[u32]) -> Vec<Candidate> {
        phys.iter()
            .map(|phy| Candidate {
                phy: PhyId(*phy),
                card: CardId(i32::try_from(*phy).expect("small")),
                family,
                numa_nodes: BTreeSet::from([phy / 2]),
            })
            .collect()
    }

    fn chosen(available: &[Candidate], must: &[u32], size: usize) -> Vec<u32> {
        let must = must.iter().map(|phy| PhyId(*phy)).collect();
        choose(available, &must, size)
            .into_iter()
            .map(|phy| phy.0)
            .collect()
    }

    #[test]
    fn takes_the_lowest_ids_of_one_910b_mesh() {
        assert_eq!(
            chosen(&chips(ChipFamily::Ascend910B, &[1, 3, 4, 6]), &[], 3),
            [1, 3, 4]
        );
    }

    #[test]
    fn keeps_the_larger_mesh_whole() {
        let available = chips(ChipFamily::Ascend910B, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(chosen(&available, &[], 2), [8, 9]);
    }

    #[test]
    fn crosses_meshes_only_when_none_fits() {
        let available = chips(ChipFamily::Ascend950, &[0, 1, 8, 9, 10]);
        assert_eq!(chosen(&available, &[], 4), [0, 8, 9, 10]);
    }

    #[test]
    fn keeps_310p_chips_on_one_numa_node() {
        assert_eq!(
            chosen(&chips(ChipFamily::Ascend310P, &[1, 2, 3]), &[], 2),
            [2, 3]
        );
    }

    #[test]
    fn what_must_be_included_fixes_the_group() {
        let available = chips(ChipFamily::Ascend910B, &[0, 1, 2, 8, 9]);
        assert_eq!(chosen(&available, &[2], 3), [0, 1, 2]);
    }

    #[test]
    fn has_no_preference_when_the_request_cannot_be_met() {
        let available = chips(ChipFamily::Ascend910B, &[0, 1]);
        assert_eq!(chosen(&available, &[], 3), [0_u32; 0]);
        assert_eq!(chosen(&available, &[5], 1), [0_u32; 0]);
        assert_eq!(chosen(&available, &[0, 1], 1), [0_u32; 0]);
    }

    proptest::proptest! {
        #[test]
        fn answers_exactly_the_size_from_what_is_available_and_twice_the_same(
            phys in proptest::collection::btree_set(0_u32..32, 1..32),
            size in 1_usize..32,
            must in proptest::collection::btree_set(0_u32..32, 0..3),
        ) {
            let list: Vec<u32> = phys.iter().copied().collect();
            let must: Vec<u32> = must.into_iter().filter(|phy| phys.contains(phy)).collect();
            let available = chips(ChipFamily::Ascend910B, &list);
            let answer = chosen(&available, &must, size);
            if size <= list.len() && must.len() <= size {
                proptest::prop_assert_eq!(answer.len(), size);
                proptest::prop_assert!(must.iter().all(|phy| answer.contains(phy)));
                proptest::prop_assert!(answer.iter().all(|phy| phys.contains(phy)));
                proptest::prop_assert!(answer.is_sorted());
            }
            proptest::prop_assert_eq!(answer, chosen(&available, &must, size));
        }
    }
}

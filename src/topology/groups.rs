//! Groups of chips that talk best among themselves, and choices that hold for any of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::ids::PhyId;

use super::preferred::{Candidate, Request};

/// Free chips by group.
pub(super) type Groups<G> = BTreeMap<G, BTreeSet<PhyId>>;

pub(super) fn grouped<G: Ord>(
    free: &BTreeMap<PhyId, &Candidate>,
    group: impl Fn(&Candidate) -> G,
) -> Groups<G> {
    let mut groups: Groups<G> = BTreeMap::new();
    for (phy, candidate) in free {
        groups.entry(group(candidate)).or_default().insert(*phy);
    }
    groups
}

/// What must be included and the lowest others. `None` when these are too few.
pub(super) fn lowest_with(
    phys: impl IntoIterator<Item = PhyId>,
    request: Request<'_>,
) -> Option<BTreeSet<PhyId>> {
    let mut chosen = request.must_include.clone();
    let missing = request.size.checked_sub(chosen.len())?;
    let others: Vec<PhyId> = phys
        .into_iter()
        .filter(|phy| !request.must_include.contains(phy))
        .take(missing)
        .collect();
    chosen.extend(others);
    (chosen.len() == request.size).then_some(chosen)
}

/// All from one group that holds what must be included. `order` says how many free chips the best
/// group has, the next best and so on; among equals the first group wins.
pub(super) fn by_free_count<G: Ord>(
    groups: &Groups<G>,
    request: Request<'_>,
    order: &[usize],
) -> Option<BTreeSet<PhyId>> {
    order.iter().find_map(|count| {
        let group = groups.values().find(|phys| {
            phys.len() == *count && request.must_include.iter().all(|phy| phys.contains(phy))
        })?;
        lowest_with(group.iter().copied(), request)
    })
}

/// One group if it can be had: that of the chips that must be included, else the smallest that fits,
/// so that large ones stay whole; ties go to the first group. Else as few groups as possible.
pub(super) fn fewest<G: Ord + Copy>(
    groups: &Groups<G>,
    request: Request<'_>,
) -> Option<BTreeSet<PhyId>> {
    let mut chosen = request.must_include.clone();
    let is_bound = |phys: &BTreeSet<PhyId>| !phys.is_disjoint(request.must_include);
    let mut left: BTreeMap<G, (bool, Vec<PhyId>)> = groups
        .iter()
        .map(|(group, phys)| {
            let free = phys.difference(request.must_include).copied().collect();
            (*group, (is_bound(phys), free))
        })
        .collect();
    while chosen.len() < request.size {
        let missing = request.size - chosen.len();
        let best = left
            .iter()
            .filter(|(_, (_, free))| !free.is_empty())
            .min_by_key(|(_, (bound, free))| rank(free.len(), missing, *bound))
            .map(|(group, _)| *group)?;
        let (_, free) = left.remove(&best)?;
        chosen.extend(free.into_iter().take(missing));
    }
    Some(chosen)
}

/// Order of groups: those of the chips that are fixed already, then the tightest that fits, then,
/// when none fits, the one with most free chips.
fn rank(free: usize, missing: usize, bound: bool) -> (bool, bool, usize) {
    let fits = free >= missing;
    (!bound, !fits, if fits { free } else { usize::MAX - free })
}

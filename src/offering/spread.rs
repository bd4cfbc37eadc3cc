//! Which shares a container should get.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::ids::{PhyId, PluginDeviceId, ShareSlot};

/// A share that kubelet could give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeShare {
    /// Number of its chip.
    pub phy: PhyId,
    /// Its slot.
    pub slot: ShareSlot,
    /// Kubelet's id.
    pub id: PluginDeviceId,
}

/// Chooses exactly `size` of `available`, with all of `must_include` among them: as many different chips
/// as can be had, those with most free slots first, the lowest numbers among equals. Empty when the
/// request cannot be met: kubelet then decides alone and finds the shortage itself.
#[must_use]
pub fn spread(
    available: &[FreeShare],
    must_include: &[PluginDeviceId],
    size: usize,
) -> Vec<PluginDeviceId> {
    let must: BTreeSet<&PluginDeviceId> = must_include.iter().collect();
    let mut free: BTreeMap<PhyId, BTreeMap<ShareSlot, &PluginDeviceId>> = BTreeMap::new();
    for share in available {
        free.entry(share.phy)
            .or_default()
            .insert(share.slot, &share.id);
    }
    let mut taken: BTreeMap<PhyId, usize> = BTreeMap::new();
    let mut chosen = Vec::with_capacity(must.len());
    for (phy, slots) in &mut free {
        slots.retain(|_, id| {
            let fixed = must.contains(id);
            if fixed {
                *taken.entry(*phy).or_default() += 1;
                chosen.push((*id).clone());
            }
            !fixed
        });
    }
    let left: usize = free.values().map(BTreeMap::len).sum();
    if chosen.len() != must.len() || size < chosen.len() || size > chosen.len() + left {
        return Vec::new();
    }
    while chosen.len() < size {
        let best = free
            .iter_mut()
            .filter(|(_, slots)| !slots.is_empty())
            .min_by_key(|(phy, slots)| {
                let used = taken.get(phy).copied().unwrap_or(0);
                (used, usize::MAX - slots.len(), **phy)
            });
        let Some((phy, slots)) = best else { break };
        let Some((_, id)) = slots.pop_first() else {
            break;
        };
        *taken.entry(*phy).or_default() += 1;
        chosen.push(id.clone());
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(phy: u32, slot: u16) -> FreeShare {
        let (phy, slot) = (PhyId(phy), ShareSlot(slot));
        FreeShare {
            phy,
            slot,
            id: PluginDeviceId::share("P", phy, slot),
        }
    }

    fn shares(free: &[(u32, &[u16])]) -> Vec<FreeShare> {
        free.iter()
            .flat_map(|(phy, slots)| slots.iter().map(|slot| share(*phy, *slot)))
            .collect()
    }

    fn chosen(free: &[FreeShare], must: &[FreeShare], size: usize) -> Vec<String> {
        let must: Vec<_> = must.iter().map(|share| share.id.clone()).collect();
        let ids = spread(free, &must, size);
        ids.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn different_chips_come_first_and_the_emptiest_of_them() {
        let free = shares(&[(0, &[3, 4]), (1, &[0, 1, 2]), (2, &[0, 1, 2])]);
        assert_eq!(chosen(&free, &[], 1), ["P-1-0"]);
        assert_eq!(chosen(&free, &[], 3), ["P-1-0", "P-2-0", "P-0-3"]);
        assert_eq!(chosen(&free, &[], 4), ["P-1-0", "P-2-0", "P-0-3", "P-1-1"]);
    }

    #[test]
    fn slots_are_ordered_as_numbers() {
        let free = shares(&[(0, &[10, 2, 9])]);
        assert_eq!(chosen(&free, &[], 2), ["P-0-2", "P-0-9"]);
    }

    #[test]
    fn what_must_be_included_is_and_counts_as_taken() {
        let free = shares(&[(0, &[0, 1, 2]), (1, &[0])]);
        assert_eq!(chosen(&free, &[share(0, 2)], 2), ["P-0-2", "P-1-0"]);
    }

    #[test]
    fn a_request_that_cannot_be_met_has_no_preference() {
        let free = shares(&[(0, &[0, 1])]);
        assert_eq!(chosen(&free, &[], 3), [""; 0]);
        assert_eq!(chosen(&free, &[share(1, 0)], 2), [""; 0]);
        assert_eq!(chosen(&free, &[share(0, 0), share(0, 1)], 1), [""; 0]);
    }
}

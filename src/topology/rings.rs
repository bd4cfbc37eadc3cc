//! 910A servers: two HCCS rings of four chips, `PCIe` between them. Two to four chips of different
//! rings cannot exchange data in one job; only the job with all eight crosses over.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::ids::PhyId;

use super::groups::{by_free_count, grouped};
use super::preferred::{Candidate, Request};

const RING_SIZE: u32 = 4;

/// Chips of a server; the one larger size a job may have.
const SERVER_SIZE: u32 = 8;

/// One ring for one to four chips, a whole server for eight. No answer when no ring has room, and
/// for sizes that no job may have.
pub(super) fn choose(
    free: &BTreeMap<PhyId, &Candidate>,
    request: Request<'_>,
) -> Option<BTreeSet<PhyId>> {
    if request.size == SERVER_SIZE as usize {
        let servers = grouped(free, |chip| chip.phy.0 / SERVER_SIZE);
        return by_free_count(&servers, request, &[request.size]);
    }
    let rings = grouped(free, |chip| chip.phy.0 / RING_SIZE);
    by_free_count(&rings, request, ring_order(request.size)?)
}

/// Free chips of the best ring, the next best and so on. A ring that the request fills comes first,
/// then one that keeps a size others can use.
fn ring_order(size: usize) -> Option<&'static [usize]> {
    match size {
        1 => Some(&[1, 3, 2, 4]),
        2 => Some(&[2, 4, 3]),
        3 => Some(&[3, 4]),
        4 => Some(&[4]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::domain::product::Product;
    use crate::topology::preferred::testing::chosen;

    fn of_910a(free: &[u32], must: &[u32], size: usize) -> Vec<u32> {
        chosen(Product::Ascend910, free, must, size)
    }

    #[test]
    fn one_chip_comes_from_the_ring_with_one_then_three_then_two_then_four_free() {
        assert_eq!(of_910a(&[0, 1, 2, 7], &[], 1), [7]);
        assert_eq!(of_910a(&[0, 1, 4, 5, 6], &[], 1), [4]);
        assert_eq!(of_910a(&[0, 1, 2, 3, 6, 7], &[], 1), [6]);
        assert_eq!(of_910a(&[0, 1, 2, 3], &[], 1), [0]);
    }

    #[test]
    fn two_chips_take_a_whole_ring_rather_than_leave_one_of_three() {
        assert_eq!(of_910a(&[0, 1, 2, 4, 5, 6, 7], &[], 2), [4, 5]);
        assert_eq!(of_910a(&[0, 1, 2, 4], &[], 2), [0, 1]);
    }

    #[test]
    fn chips_of_two_rings_are_never_preferred_below_eight() {
        for size in 2..=4 {
            assert_eq!(of_910a(&[0, 1, 2, 3, 4, 5, 6], &[1, 5], size), [0; 0]);
        }
        for size in 5..=7 {
            assert_eq!(of_910a(&[0, 1, 2, 3, 4, 5, 6, 7], &[], size), [0; 0]);
        }
    }

    #[test]
    fn eight_chips_are_the_whole_server() {
        let all = [0, 1, 2, 3, 4, 5, 6, 7];
        assert_eq!(of_910a(&all, &[6, 1], 8), all);
    }

    #[test]
    fn the_ring_of_a_fixed_chip_serves_even_where_another_would_fit_better() {
        assert_eq!(of_910a(&[0, 1, 2, 3, 6, 7], &[3], 2), [0, 3]);
        assert_eq!(of_910a(&[0, 4, 5, 6, 7], &[0], 2), [0; 0]);
    }
}

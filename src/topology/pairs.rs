//! Cards of two chips: A3, where two dies share a card, and Atlas 300I Duo.

use std::collections::BTreeSet;

use crate::domain::ids::PhyId;

use super::groups::Groups;
use super::preferred::Request;

/// Whole cards as far as the size goes, a card of which one chip is taken already for an odd chip,
/// and halves where whole cards run out. The cards of chips that must be included come first.
pub(super) fn choose<G: Ord>(cards: &Groups<G>, request: Request<'_>) -> Option<BTreeSet<PhyId>> {
    let fixed = request.must_include;
    let (bound, loose): (Vec<_>, Vec<_>) =
        cards.values().partition(|card| !card.is_disjoint(fixed));
    let (whole, half): (Vec<_>, Vec<_>) = loose.into_iter().partition(|card| card.len() >= 2);

    let mut chosen = fixed.clone();
    let others = bound
        .into_iter()
        .flatten()
        .filter(|phy| !fixed.contains(phy));
    fill(&mut chosen, request.size, others);
    let missing = request.size.saturating_sub(chosen.len());
    let even = request.size - missing % 2;
    fill(&mut chosen, even, whole.iter().copied().flatten());
    fill(&mut chosen, request.size, half.into_iter().flatten());
    fill(&mut chosen, request.size, whole.into_iter().flatten());
    (chosen.len() == request.size).then_some(chosen)
}

/// Adds until so many are chosen.
fn fill<'a>(chosen: &mut BTreeSet<PhyId>, size: usize, from: impl IntoIterator<Item = &'a PhyId>) {
    for phy in from {
        if chosen.len() >= size {
            return;
        }
        chosen.insert(*phy);
    }
}

#[cfg(test)]
mod tests {
    use crate::domain::product::Product;
    use crate::topology::preferred::testing::chosen;

    fn of_a3(free: &[u32], must: &[u32], size: usize) -> Vec<u32> {
        chosen(Product::AtlasA3, free, must, size)
    }

    #[test]
    fn one_die_comes_from_a_broken_pair_and_else_is_the_lowest() {
        assert_eq!(of_a3(&[0, 1, 3], &[], 1), [3]);
        assert_eq!(of_a3(&[2, 3, 4, 5], &[], 1), [2]);
    }

    #[test]
    fn even_sizes_take_whole_pairs_the_lowest_first() {
        assert_eq!(of_a3(&[1, 2, 3, 4, 6, 7], &[], 4), [2, 3, 6, 7]);
    }

    #[test]
    fn an_odd_die_breaks_no_pair_while_there_is_a_half() {
        assert_eq!(of_a3(&[0, 1, 2, 3, 5], &[], 3), [0, 1, 5]);
        assert_eq!(of_a3(&[0, 1, 2, 3], &[], 3), [0, 1, 2]);
    }

    #[test]
    fn halves_fill_up_where_whole_pairs_run_out() {
        assert_eq!(of_a3(&[0, 2, 3, 4, 7], &[], 4), [0, 2, 3, 4]);
        assert_eq!(of_a3(&[0, 2, 4], &[], 2), [0, 2]);
    }

    #[test]
    fn the_other_die_of_a_fixed_one_comes_first() {
        assert_eq!(of_a3(&[0, 1, 2, 3, 5], &[3], 2), [2, 3]);
        assert_eq!(of_a3(&[0, 1, 2, 3, 5], &[3], 3), [2, 3, 5]);
        assert_eq!(of_a3(&[0, 1, 2, 3, 5], &[5], 2), [0, 5]);
        assert_eq!(of_a3(&[0, 1, 2, 3], &[1, 2], 3), [0, 1, 2]);
    }
}

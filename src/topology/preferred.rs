//! Preferred allocation for whole chips: the checks that hold for every product, and which rule a
//! product follows.
//!
//! An answer has exactly the size asked for, takes only what is available, holds everything that
//! must be included, is sorted, and depends on nothing but the request. No answer is said only
//! where a rule says that no set is better than another, or where the request cannot be met.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::ids::{CardId, PhyId};
use crate::domain::product::Product;

use super::groups::{by_free_count, fewest, grouped, lowest_with};
use super::{boxes, pairs, rings};

/// Chips linked by one mesh on 910B and A5 servers.
const MESH_SIZE: u32 = 8;

/// Which card of Ascend 310 gives a single chip, by the chips free on it: a card with one left
/// first, one with three before one with two, so that twos and fours stay for those who ask for them.
const SINGLE_OF_A_CARD: &[usize] = &[1, 3, 2, 4];

/// A chip that could be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Number; identifies the chip in the answer and breaks ties.
    pub phy: PhyId,
    /// Its card.
    pub card: CardId,
    /// What it is sold as; decides the rule.
    pub product: Product,
    /// NUMA nodes near it.
    pub numa_nodes: BTreeSet<u32>,
}

/// What is asked for. What must be included is free, and not more than the size.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) must_include: &'a BTreeSet<PhyId>,
    pub(super) size: usize,
}

/// Chooses exactly `size` of `available`, with all of `must_include` among them, by the rule of their
/// product. The same input gives the same answer, sorted.
///
/// Empty when the request cannot be met (kubelet finds the shortage itself), or when the rule knows
/// no better set than any other; kubelet then decides alone. Chips of several products are not mixed:
/// the first product that can serve the whole request does, and if none can, there is no answer.
#[must_use]
pub fn choose(available: &[Candidate], must_include: &BTreeSet<PhyId>, size: usize) -> Vec<PhyId> {
    let mut products: BTreeMap<Product, BTreeMap<PhyId, &Candidate>> = BTreeMap::new();
    for candidate in available {
        let free = products.entry(candidate.product).or_default();
        free.insert(candidate.phy, candidate);
    }
    let request = Request { must_include, size };
    let answer = products
        .iter()
        .filter(|(_, free)| can_be_met(free, request))
        .find_map(|(product, free)| of_product(*product, free, request));
    answer.unwrap_or_default().into_iter().collect()
}

fn can_be_met(free: &BTreeMap<PhyId, &Candidate>, request: Request<'_>) -> bool {
    request.must_include.len() <= request.size
        && free.len() >= request.size
        && request
            .must_include
            .iter()
            .all(|phy| free.contains_key(phy))
}

fn of_product(
    product: Product,
    free: &BTreeMap<PhyId, &Candidate>,
    request: Request<'_>,
) -> Option<BTreeSet<PhyId>> {
    match product {
        Product::Ascend910 => rings::choose(free, request),
        Product::AtlasA2Box16 => boxes::choose(free, request),
        Product::AtlasA3 | Product::Atlas300IDuo => {
            pairs::choose(&grouped(free, |chip| chip.card), request)
        }
        Product::Ascend910B | Product::AtlasA5 => {
            fewest(&grouped(free, |chip| chip.phy.0 / MESH_SIZE), request)
        }
        Product::Ascend310 => {
            let cards = grouped(free, |chip| chip.card);
            let single = (request.size == 1)
                .then(|| by_free_count(&cards, request, SINGLE_OF_A_CARD))
                .flatten();
            single.or_else(|| fewest(&cards, request))
        }
        Product::Atlas350 => lowest_with(free.keys().copied(), request),
        Product::Ascend310B
        | Product::Ascend310P
        | Product::Atlas200ISocA1
        | Product::Ascend910BUnlinked => fewest(
            &grouped(free, |chip| chip.numa_nodes.first().copied()),
            request,
        ),
    }
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;

    /// The answer for chips numbered as the vendor numbers them: pairs and fours of a card in a row.
    pub(in super::super) fn chosen(
        product: Product,
        free: &[u32],
        must: &[u32],
        size: usize,
    ) -> Vec<u32> {
        let chips_on_card = if product == Product::Ascend310 { 4 } else { 2 };
        let free: Vec<Candidate> = free
            .iter()
            .map(|phy| Candidate {
                phy: PhyId(*phy),
                card: CardId(i32::try_from(phy / chips_on_card).expect("small")),
                product,
                numa_nodes: BTreeSet::from([phy / 2]),
            })
            .collect();
        let must = must.iter().map(|phy| PhyId(*phy)).collect();
        let answer = choose(&free, &must, size);
        answer.into_iter().map(|phy| phy.0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::testing::chosen;
    use super::*;

    #[test]
    fn a_910b_request_takes_the_lowest_ids_of_one_mesh() {
        assert_eq!(
            chosen(Product::Ascend910B, &[1, 3, 4, 6], &[], 3),
            [1, 3, 4]
        );
    }

    #[test]
    fn the_larger_mesh_stays_whole() {
        let free = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
        assert_eq!(chosen(Product::AtlasA5, &free, &[], 2), [8, 9]);
    }

    #[test]
    fn meshes_are_crossed_only_when_none_fits() {
        let free = [0, 1, 8, 9, 10];
        assert_eq!(chosen(Product::AtlasA5, &free, &[], 4), [0, 8, 9, 10]);
    }

    #[test]
    fn what_must_be_included_fixes_the_mesh() {
        let free = [0, 1, 2, 8, 9];
        assert_eq!(chosen(Product::Ascend910B, &free, &[2], 3), [0, 1, 2]);
        assert_eq!(chosen(Product::Ascend910B, &free, &[9], 3), [0, 8, 9]);
    }

    #[test]
    fn one_310_comes_from_the_card_with_one_then_three_then_two_then_four_free() {
        let of_310 = |free: &[u32]| chosen(Product::Ascend310, free, &[], 1);
        assert_eq!(of_310(&[0, 1, 2, 3, 4, 5, 6, 11]), [11]);
        assert_eq!(of_310(&[0, 1, 2, 3, 4, 5, 6, 8, 9]), [4]);
        assert_eq!(of_310(&[0, 1, 2, 3, 8, 9]), [8]);
        assert_eq!(of_310(&[4, 5, 6, 7]), [4]);
    }

    #[test]
    fn several_310_chips_share_the_smallest_card_that_fits() {
        let of_310 = |size| chosen(Product::Ascend310, &[0, 1, 2, 3, 4, 5, 6, 9, 10], &[], size);
        assert_eq!(of_310(2), [9, 10]);
        assert_eq!(of_310(3), [4, 5, 6]);
        assert_eq!(of_310(5), [0, 1, 2, 3, 9]);
    }

    #[test]
    fn a5_cards_are_taken_from_the_lowest_id() {
        assert_eq!(chosen(Product::Atlas350, &[1, 8, 9], &[], 2), [1, 8]);
        assert_eq!(chosen(Product::Atlas350, &[1, 8, 9], &[9], 2), [1, 9]);
    }

    #[test]
    fn chips_without_links_stay_near_one_numa_node() {
        for product in [
            Product::Ascend310P,
            Product::Ascend310B,
            Product::Ascend910BUnlinked,
        ] {
            assert_eq!(chosen(product, &[1, 2, 3], &[], 2), [2, 3], "{product}");
        }
    }

    #[test]
    fn a_request_that_cannot_be_met_has_no_preference() {
        for (must, size) in [(&[][..], 3), (&[5], 1), (&[0, 1], 1)] {
            assert_eq!(chosen(Product::Ascend910B, &[0, 1], must, size), [0; 0]);
        }
    }

    #[test]
    fn chips_of_two_products_are_not_mixed() {
        let chip = |phy, product| Candidate {
            phy: PhyId(phy),
            card: CardId(0),
            product,
            numa_nodes: BTreeSet::new(),
        };
        let free = [
            chip(0, Product::Ascend310P),
            chip(1, Product::Atlas300IDuo),
            chip(2, Product::Atlas300IDuo),
        ];
        let none = BTreeSet::new();
        assert_eq!(choose(&free, &none, 2), [PhyId(1), PhyId(2)]);
        assert_eq!(choose(&free, &BTreeSet::from([PhyId(2)]), 1), [PhyId(2)]);
        assert_eq!(choose(&free, &none, 3), []);
    }
}

//! Preferred allocation: the vectors, and what holds for every request of every product.

use std::collections::{BTreeMap, BTreeSet};

use ascend_agent::domain::ids::{CardId, PhyId};
use ascend_agent::domain::product::Product;
use ascend_agent::topology::{Candidate, choose};
use proptest::prelude::*;
use serde::Deserialize;

const VECTORS: &str = include_str!("../vectors/preferred.json");

/// Cases in the file; a case that vanishes is noticed.
const CASES: usize = 13;

const PRODUCTS: [Product; 12] = [
    Product::Ascend310,
    Product::Ascend310B,
    Product::Ascend310P,
    Product::Atlas300IDuo,
    Product::Atlas200ISocA1,
    Product::Ascend910,
    Product::Ascend910B,
    Product::Ascend910BUnlinked,
    Product::AtlasA2Box16,
    Product::AtlasA3,
    Product::AtlasA5,
    Product::Atlas350,
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    id: String,
    title: String,
    product: String,
    available: Vec<u32>,
    must_include: Vec<u32>,
    size: usize,
    expect: Vec<u32>,
}

#[test]
fn every_vector_is_answered_as_written() {
    let cases: Vec<Case> = serde_json::from_str(VECTORS).expect("the vectors");
    assert_eq!(cases.len(), CASES);
    for case in cases {
        let product = product_named(&case.product);
        let available = numbered(product, case.available);
        let must = phys(case.must_include);
        assert_eq!(
            choose(&available, &must, case.size),
            case.expect.into_iter().map(PhyId).collect::<Vec<_>>(),
            "{}: {}",
            case.id,
            case.title
        );
    }
}

#[test]
fn of_a_thousand_chips_every_product_answers_every_size_it_has_a_rule_for() {
    for product in PRODUCTS {
        let available = numbered(product, 0..1024);
        for size in 0..=16 {
            let answer = choose(&available, &BTreeSet::new(), size);
            let expected = if without_a_set(product, size) {
                0
            } else {
                size
            };
            assert_eq!(answer.len(), expected, "{product}, {size} chips");
        }
    }
}

proptest! {
    #[test]
    fn an_answer_is_exact_free_sorted_repeatable_and_missing_only_where_a_rule_says_so(
        product in proptest::sample::select(&PRODUCTS[..]),
        free in proptest::collection::btree_set(0_u32..32, 1..=32),
        must in proptest::collection::btree_set(0_u32..32, 0..3),
        pick in 0.0..1.0,
        size in 1_usize..=32,
        nodes in 1_u32..4,
    ) {
        // Half of the time what must be included is free, as kubelet sends it.
        let must: BTreeSet<u32> =
            if pick < 0.5 { &must & &free } else { must };
        let mut available = numbered(product, free.iter().copied());
        for candidate in &mut available {
            candidate.numa_nodes = BTreeSet::from([candidate.phy.0 % nodes]);
        }
        let must = phys(must);
        let answer = choose(&available, &must, size);

        available.reverse();
        prop_assert_eq!(&answer, &choose(&available, &must, size));

        let is_possible = must.len() <= size
            && size <= free.len()
            && must.iter().all(|phy| free.contains(&phy.0));
        if answer.is_empty() {
            prop_assert!(!is_possible || no_better_set(product, &free, &must, size));
        } else {
            prop_assert!(is_possible && !no_better_set(product, &free, &must, size));
            prop_assert_eq!(answer.len(), size);
            prop_assert!(answer.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", answer);
            prop_assert!(answer.iter().all(|phy| free.contains(&phy.0)));
            prop_assert!(must.iter().all(|phy| answer.contains(phy)));
        }
    }

    #[test]
    fn as_many_pairs_as_possible_are_left_whole(
        product in proptest::sample::select(&[Product::AtlasA3, Product::Atlas300IDuo][..]),
        free in proptest::collection::btree_set(0_u32..16, 1..=16),
        share in any::<proptest::sample::Index>(),
    ) {
        let size = share.index(free.len()) + 1;
        let available = numbered(product, free.iter().copied());
        let answer = choose(&available, &BTreeSet::new(), size);
        let whole = free.iter().filter(|phy| *phy % 2 == 0 && free.contains(&(*phy + 1))).count();
        let taken: BTreeSet<u32> = answer.iter().map(|phy| phy.0).collect();
        let together = taken
            .iter()
            .filter(|phy| *phy % 2 == 0 && taken.contains(&(*phy + 1)))
            .count();
        prop_assert_eq!(together, whole.min(size / 2));
    }

    #[test]
    fn one_mesh_is_never_left_while_it_has_room(
        free in proptest::collection::btree_set(0_u32..16, 1..=16),
        size in 1_usize..=8,
    ) {
        let per_mesh = |mesh: u32| free.iter().filter(|phy| *phy / 8 == mesh).count();
        let fits = (0..2).any(|mesh| per_mesh(mesh) >= size);
        for product in [Product::Ascend910B, Product::AtlasA2Box16, Product::AtlasA5] {
            let available = numbered(product, free.iter().copied());
            let answer = choose(&available, &BTreeSet::new(), size);
            let meshes: BTreeSet<u32> = answer.iter().map(|phy| phy.0 / 8).collect();
            prop_assert!(!fits || meshes.len() == 1, "{}: {:?}", product, answer);
        }
    }
}

/// Sizes for which a product has no answer however many chips are free.
fn without_a_set(product: Product, size: usize) -> bool {
    let is_910a = product == Product::Ascend910;
    let is_box = product == Product::AtlasA2Box16;
    (is_910a && !matches!(size, 0..=4 | 8))
        || (is_box && (size > 16 || (size > 8 && size % 2 == 1)))
}

/// Where the rules know no better set, said by looking at every group anew.
fn no_better_set(
    product: Product,
    free: &BTreeSet<u32>,
    must: &BTreeSet<PhyId>,
    size: usize,
) -> bool {
    let group_of = |length: u32| {
        let groups = free.iter().map(|phy| phy / length).collect::<BTreeSet<_>>();
        groups.into_iter().any(|group| {
            let members = free.iter().filter(|phy| *phy / length == group).count();
            members >= size && must.iter().all(|phy| phy.0 / length == group)
        })
    };
    let halves = || {
        [0, 16].into_iter().any(|first| {
            let both: BTreeSet<u32> = (first..first + 8)
                .filter(|phy| free.contains(phy) && free.contains(&(phy + 8)))
                .collect();
            let fixed: BTreeSet<u32> = must.iter().map(|phy| phy.0 & !8).collect();
            fixed.is_subset(&both) && fixed.len() <= size / 2 && both.len() >= size / 2
        })
    };
    let has_one = match (product, size) {
        (Product::Ascend910, 8) | (Product::AtlasA2Box16, ..=8) => group_of(8),
        (Product::Ascend910, _) => group_of(4),
        (Product::AtlasA2Box16, _) => halves(),
        _ => true,
    };
    without_a_set(product, size) || !has_one
}

/// Chips with the numbers given, on cards as the vendor numbers them.
fn numbered(product: Product, free: impl IntoIterator<Item = u32>) -> Vec<Candidate> {
    let is_pair = [Product::AtlasA3, Product::Atlas300IDuo].contains(&product);
    let chips_on_card = match (product == Product::Ascend310, is_pair) {
        (true, _) => 4,
        (_, true) => 2,
        (false, false) => 1,
    };
    free.into_iter()
        .map(|phy| Candidate {
            phy: PhyId(phy),
            card: CardId(i32::try_from(phy / chips_on_card).expect("small")),
            product,
            numa_nodes: BTreeSet::new(),
        })
        .collect()
}

fn phys(numbers: impl IntoIterator<Item = u32>) -> BTreeSet<PhyId> {
    numbers.into_iter().map(PhyId).collect()
}

fn product_named(name: &str) -> Product {
    let names = BTreeMap::from([
        ("910A", Product::Ascend910),
        ("910B", Product::Ascend910B),
        ("A2-Box16", Product::AtlasA2Box16),
        ("A3", Product::AtlasA3),
        ("300I-Duo", Product::Atlas300IDuo),
    ]);
    names[name]
}

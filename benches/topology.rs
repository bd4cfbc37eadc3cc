//! What a preferred set costs.

#![expect(clippy::expect_used, reason = "a benchmark that cannot run must fail")]

use std::collections::BTreeSet;
use std::hint::black_box;

use ascend_agent::domain::ids::{CardId, PhyId};
use ascend_agent::domain::product::Product;
use ascend_agent::topology::{Candidate, choose};
use criterion::{Criterion, criterion_group, criterion_main};

const CHIPS: u32 = 1024;

fn topology(criterion: &mut Criterion) {
    for (product, chips_on_card) in [
        (Product::Ascend910, 1),
        (Product::Ascend910B, 1),
        (Product::AtlasA2Box16, 1),
        (Product::AtlasA3, 2),
        (Product::Ascend310, 4),
        (Product::Ascend310P, 1),
    ] {
        let chips: Vec<Candidate> = (0..CHIPS)
            .map(|phy| Candidate {
                phy: PhyId(phy),
                card: CardId(i32::try_from(phy / chips_on_card).expect("small")),
                product,
                numa_nodes: BTreeSet::from([phy % 8]),
            })
            .collect();
        let must = BTreeSet::from([PhyId(CHIPS - 1)]);
        let name = format!("topology/8 of {CHIPS} chips, {product}");
        criterion.bench_function(&name, |bencher| {
            bencher.iter(|| choose(black_box(&chips), black_box(&must), 8));
        });
    }
}

criterion_group!(benches, topology);
criterion_main!(benches);

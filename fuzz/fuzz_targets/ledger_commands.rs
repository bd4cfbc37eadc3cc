//! Sequences of everything that can happen to the ledger; the bodies are those of the property tests.

#![no_main]

#[path = "../../tests/ledger_sequences/node.rs"]
mod node;
#[path = "../../tests/ledger_sequences/random_views.rs"]
mod random_views;
#[path = "../../tests/ledger_sequences/truthful_kubelet.rs"]
mod truthful_kubelet;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use node::Offered;

#[derive(Arbitrary, Debug)]
enum Sequence {
    RandomViews(Vec<[u8; 4]>),
    TruthfulKubelet(Vec<[u8; 4]>),
    RandomViewsOfShares(bool, Vec<[u8; 4]>),
    TruthfulKubeletWithShares(bool, Vec<[u8; 4]>),
}

fn shares(changing: bool) -> Offered {
    if changing {
        Offered::Changing
    } else {
        Offered::Shared
    }
}

fuzz_target!(|sequence: Sequence| {
    match sequence {
        Sequence::RandomViews(steps) => random_views::run(&steps, Offered::Whole),
        Sequence::TruthfulKubelet(steps) => truthful_kubelet::run(&steps, Offered::Whole),
        Sequence::RandomViewsOfShares(changing, steps) => {
            random_views::run(&steps, shares(changing));
        }
        Sequence::TruthfulKubeletWithShares(changing, steps) => {
            truthful_kubelet::run(&steps, shares(changing));
        }
    }
});

//! Random sequences against the real ledger, as short property tests. The bodies are shared with the
//! fuzz target `ledger_commands`, which runs them without end.

#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]
#![expect(
    clippy::option_option,
    reason = "as the ledger has it: unread, or read and not there"
)]

#[path = "ledger_sequences/node.rs"]
mod node;
#[path = "ledger_sequences/random_views.rs"]
mod random_views;
#[path = "ledger_sequences/truthful_kubelet.rs"]
mod truthful_kubelet;

use node::Offered;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

proptest! {
    #![proptest_config(ProptestConfig {
        max_shrink_iters: 20_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_kubelet_says_no_chip_has_two_holders_and_no_holder_leaves_the_list(
        steps in prop::collection::vec(any::<[u8; 4]>(), 0..80)
    ) {
        random_views::run(&steps, Offered::Whole);
    }

    #[test]
    fn whatever_kubelet_says_no_share_has_two_holders_and_none_is_held_beside_the_whole_chip(
        steps in prop::collection::vec(any::<[u8; 4]>(), 0..80),
        changing: bool
    ) {
        let offered = if changing { Offered::Changing } else { Offered::Shared };
        random_views::run(&steps, offered);
    }

    #[test]
    fn with_a_truthful_kubelet_no_chip_is_in_two_containers_and_every_chip_becomes_free_again(
        steps in prop::collection::vec(any::<[u8; 4]>(), 0..80)
    ) {
        truthful_kubelet::run(&steps, Offered::Whole);
    }

    #[test]
    fn with_a_truthful_kubelet_shares_are_used_once_and_become_free_while_others_of_the_chip_run(
        steps in prop::collection::vec(any::<[u8; 4]>(), 0..80),
        changing: bool
    ) {
        let offered = if changing { Offered::Changing } else { Offered::Shared };
        truthful_kubelet::run(&steps, offered);
    }
}

//! Choices that can be repeated: the seed decides everything but the machine's timing.

use std::time::UNIX_EPOCH;

/// A stream of choices (splitmix64).
pub(crate) struct Seed {
    pub(crate) start: u64,
    state: u64,
}

impl Seed {
    /// From `ASCEND_TEST_SEED`, or new with each run.
    pub(crate) fn of_this_run() -> Self {
        let given = std::env::var_os("ASCEND_TEST_SEED")
            .map(|text| text.to_str().unwrap().parse::<u64>().unwrap());
        let start = given.unwrap_or_else(|| {
            let since = UNIX_EPOCH.elapsed().unwrap_or_default();
            u64::from(since.subsec_nanos())
        });
        Self {
            start,
            state: start,
        }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True once in `times`, on the average.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of the items.
    pub(crate) fn one_of<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let count = u64::try_from(items.len()).unwrap();
        (count > 0).then(|| &items[usize::try_from(self.below(count)).unwrap()])
    }
}

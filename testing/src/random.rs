//! Random numbers that a seed reproduces.

/// A small random number generator (splitmix64): the same seed gives the same numbers, on every machine and in every
/// release.
#[derive(Clone, Copy, Debug)]
pub struct Random(pub u64);

impl Random {
    /// Returns the next number; all of `u64` are equally likely.
    #[expect(clippy::should_implement_trait, reason = "it has no end, and nobody iterates over it")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`, or zero if `bound` is zero.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// Returns `true` once in this many times, on average.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Returns itself once in this many times, on average.
    pub fn some(&mut self, of: usize) -> Option<&mut Self> {
        self.one_in(of).then_some(self)
    }

    /// Returns one of the values. Panics if there are none.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

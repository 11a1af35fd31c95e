//! Whether names are distinct, without sorting them.

use alloc::vec;
use alloc::vec::Vec;

use twox_hash::XxHash3_64;

/// The minimum number of bits of a [`Filter`] for each name: about 1 of 100 names meets a bit that is set.
const BITS: usize = 32;

/// Returns whether no name occurs twice. May return `false` for distinct names, if two of their hashes are equal.
///
/// Only the hashes of names that share a bit with another name are sorted. If a peer chooses names that all share bits,
/// all hashes are sorted, which costs as much as sorting the names.
pub(super) fn are_distinct<'a>(names: impl Iterator<Item = &'a [u8]>, count: usize) -> bool {
    let mut hashes = Vec::with_capacity(count);
    hashes.extend(names.map(XxHash3_64::oneshot));
    let mut filter = Filter::new(count);
    let again: Vec<u64> = hashes.iter().copied().filter(|hash| !filter.insert(*hash)).collect();
    if again.is_empty() {
        return true;
    }
    filter.clear();
    again.into_iter().for_each(|hash| _ = filter.insert(hash));
    hashes.retain(|hash| filter.may_have(*hash));
    hashes.sort_unstable();
    hashes.windows(2).all(|pair| pair[0] != pair[1])
}

/// A set of hashes with one bit for each, which may also contain hashes that were not inserted.
struct Filter(Vec<u64>);

impl Filter {
    fn new(count: usize) -> Self {
        Self(vec![0; (BITS * count).div_ceil(64).next_power_of_two()])
    }

    /// Inserts a hash. Returns whether the filter certainly did not have it.
    fn insert(&mut self, hash: u64) -> bool {
        let (word, bit) = self.place(hash);
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }

    fn may_have(&self, hash: u64) -> bool {
        let (word, bit) = self.place(hash);
        self.0[word] & bit != 0
    }

    fn clear(&mut self) {
        self.0.fill(0);
    }

    fn place(&self, hash: u64) -> (usize, u64) {
        ((hash >> 6) as usize & (self.0.len() - 1), 1 << (hash & 63))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::String;

    fn distinct(names: &[String]) -> bool {
        are_distinct(names.iter().map(String::as_bytes), names.len())
    }

    #[test]
    fn a_name_that_occurs_twice_is_found_wherever_it_is() {
        assert!(are_distinct([].into_iter(), 0));
        let names: Vec<String> = (0..1000).map(|i| format!("name {i}")).collect();
        assert!(distinct(&names));
        for (first, second) in [(0, 1), (0, 999), (499, 500), (998, 999)] {
            let mut twice = names.clone();
            twice[second] = twice[first].clone();
            assert!(!distinct(&twice), "{first} and {second}");
        }
    }

    #[test]
    fn few_distinct_names_seem_duplicate_to_the_filter() {
        let mut filter = Filter::new(10_000);
        let names = (0..10_000).map(|i| XxHash3_64::oneshot(format!("name {i}").as_bytes()));
        let hashes: Vec<u64> = names.collect();
        let doubted = hashes.iter().filter(|hash| !filter.insert(**hash)).count();
        assert_eq!((filter.0.len(), doubted), (8192, 84));
        assert!(hashes.iter().all(|hash| filter.may_have(*hash)));
        filter.clear();
        assert!(!hashes.iter().any(|hash| filter.may_have(*hash)));
    }
}

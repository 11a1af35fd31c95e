//! A map in the order of its keys, made for look-ups that come in that order: the names of an update are sorted, and a
//! watcher reads its events by name. Such a look-up compares two keys, where a tree of 100,000 compares twenty.

use alloc::collections::VecDeque;
use core::borrow::Borrow;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};

/// The most entries of a page. An insertion moves half of a page at most.
const PAGE: usize = 64;

/// A sorted map in pages.
#[derive(Clone)]
pub(super) struct SortedMap<K, V> {
    /// All entries in order; no page is empty.
    pages: VecDeque<VecDeque<(K, V)>>,
    /// The place of the last look-up, from which the next one starts: a hint that may be anywhere.
    last: Place,
}

/// The position of an entry: its page, and its number in the page.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Place {
    page: usize,
    at: usize,
}

/// An entry that is there, or the place for one.
pub(super) enum Entry<'a, K, V> {
    Occupied(OccupiedEntry<'a, K, V>),
    Vacant(VacantEntry<'a, K, V>),
}

pub(super) struct OccupiedEntry<'a, K, V> {
    map: &'a mut SortedMap<K, V>,
    place: Place,
}

pub(super) struct VacantEntry<'a, K, V> {
    map: &'a mut SortedMap<K, V>,
    place: Place,
    key: &'a K,
}

impl<K, V> SortedMap<K, V> {
    pub(super) fn new() -> Self {
        Self { pages: VecDeque::new(), last: Place::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Returns the only entry of a map that has exactly one.
    pub(super) fn only(&self) -> Option<&(K, V)> {
        if self.pages.len() > 1 {
            return None;
        }
        let page = self.pages.front()?;
        page.front().filter(|_| page.len() == 1)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.pages.iter().flatten().map(|(key, value)| (key, value))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        self.pages.iter_mut().flatten().map(|(key, value)| (&*key, value))
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&K, &V) -> bool) {
        let all = core::mem::take(&mut self.pages).into_iter().flatten();
        for entry in all.filter(|(key, value)| keep(key, value)) {
            let page = self.pages.len().saturating_sub(1);
            let at = self.pages.get(page).map_or(0, VecDeque::len);
            self.insert_at(Place { page, at }, entry);
        }
    }

    pub(super) fn first_mut(&mut self) -> Option<(&K, &mut V)> {
        self.pages.front_mut()?.front_mut().map(|(key, value)| (&*key, value))
    }

    pub(super) fn pop_first(&mut self) -> Option<(K, V)> {
        let page = self.pages.front_mut()?;
        let first = page.pop_front();
        if page.is_empty() {
            self.pages.pop_front();
        }
        first
    }

    fn entry_at(&self, place: Place) -> Option<&(K, V)> {
        self.pages.get(place.page)?.get(place.at)
    }

    fn value_mut(&mut self, place: Place) -> &mut V {
        &mut self.pages[place.page][place.at].1
    }

    /// Inserts an entry at its place in the order. Keys that come in order fill their pages.
    fn insert_at(&mut self, place: Place, entry: (K, V)) -> Place {
        let Place { page, at } = place;
        match self.pages.get_mut(page) {
            None => self.pages.push_back(VecDeque::from([entry])),
            Some(entries) if entries.len() < PAGE && at == entries.len() => entries.push_back(entry),
            Some(entries) if entries.len() < PAGE => entries.insert(at, entry),
            Some(entries) if at == entries.len() => {
                let mut next = VecDeque::with_capacity(PAGE);
                next.push_back(entry);
                self.pages.insert(page + 1, next);
                return Place { page: page + 1, at: 0 };
            }
            Some(entries) => {
                let upper = entries.split_off(PAGE / 2);
                self.pages.insert(page + 1, upper);
                let is_upper = at > PAGE / 2;
                let place = Place { page: page + usize::from(is_upper), at: at - PAGE / 2 * usize::from(is_upper) };
                self.pages[place.page].insert(place.at, entry);
                return place;
            }
        }
        place
    }

    /// Removes an entry, and merges its page with a neighbour if both are nearly empty.
    fn remove_at(&mut self, Place { page, at }: Place) -> Option<(K, V)> {
        let entries = self.pages.get_mut(page)?;
        let removed = entries.remove(at);
        if entries.is_empty() {
            self.pages.remove(page);
            return removed;
        }
        for lower in [Some(page), page.checked_sub(1)].into_iter().flatten() {
            let len = |page| self.pages.get(page).map_or(PAGE, VecDeque::len);
            if len(lower) + len(lower + 1) <= PAGE / 4 {
                let upper = self.pages.remove(lower + 1);
                self.pages[lower].extend(upper.into_iter().flatten());
            }
        }
        removed
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    /// Returns the place of a key, or the place at which the key would be.
    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Result<Place, Place>
    where
        K: Borrow<Q>,
    {
        if let Some((last, _)) = self.entry_at(self.last) {
            let after = Place { at: self.last.at + 1, ..self.last };
            let first_of_next = Place { page: self.last.page + 1, at: 0 };
            let (next, place) = match self.entry_at(after) {
                None => (self.entry_at(first_of_next), first_of_next),
                next => (next, after),
            };
            match next.map(|(next, _)| key.cmp(next.borrow())) {
                Some(Ordering::Equal) => return Ok(place),
                None | Some(Ordering::Less) => match key.cmp(last.borrow()) {
                    Ordering::Equal => return Ok(self.last),
                    Ordering::Greater => return Err(after),
                    Ordering::Less => {}
                },
                Some(Ordering::Greater) => {}
            }
        }
        let is_before = |page: &VecDeque<(K, V)>| page.front().is_some_and(|(first, _)| first.borrow() <= key);
        let page = self.pages.partition_point(is_before).saturating_sub(1);
        let Some(entries) = self.pages.get(page) else { return Err(Place::default()) };
        let found = entries.binary_search_by(|(other, _)| other.borrow().cmp(key));
        found.map(|at| Place { page, at }).map_err(|at| Place { page, at })
    }

    pub(super) fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_ok()
    }

    pub(super) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.entry_at(self.find(key).ok()?).map(|(_, value)| value)
    }

    pub(super) fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.last = self.find(key).ok()?;
        Some(self.value_mut(self.last))
    }

    pub(super) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.last = self.find(key).ok()?;
        self.remove_at(self.last).map(|(_, value)| value)
    }

    pub(super) fn entry<'a>(&'a mut self, key: &'a K) -> Entry<'a, K, V> {
        let found = self.find(key);
        let (Ok(place) | Err(place)) = found;
        self.last = place;
        match found {
            Ok(place) => Entry::Occupied(OccupiedEntry { map: self, place }),
            Err(place) => Entry::Vacant(VacantEntry { map: self, place, key }),
        }
    }
}

impl<'a, K: Clone, V> Entry<'a, K, V> {
    pub(super) fn or_insert_with(self, value: impl FnOnce() -> V) -> &'a mut V {
        match self {
            Self::Occupied(OccupiedEntry { map, place }) => map.value_mut(place),
            Self::Vacant(entry) => entry.insert(value()),
        }
    }

    pub(super) fn or_default(self) -> &'a mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }
}

impl<K, V> OccupiedEntry<'_, K, V> {
    pub(super) fn get_mut(&mut self) -> &mut V {
        self.map.value_mut(self.place)
    }

    pub(super) fn remove(self) {
        self.map.remove_at(self.place);
    }
}

impl<'a, K: Clone, V> VacantEntry<'a, K, V> {
    pub(super) fn insert(self, value: V) -> &'a mut V {
        let Self { map, place, key } = self;
        map.last = map.insert_at(place, (key.clone(), value));
        map.value_mut(map.last)
    }
}

impl<K: PartialEq, V: PartialEq> PartialEq for SortedMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<K: Eq, V: Eq> Eq for SortedMap<K, V> {}

impl<K: Hash, V: Hash> Hash for SortedMap<K, V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(self.iter().count()); // two maps in a row are not one
        self.iter().for_each(|entry| entry.hash(state));
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for SortedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;
    use core::hash::BuildHasher;
    use std::collections::hash_map::RandomState;

    use super::*;

    fn check(map: &SortedMap<u32, u32>, same: &BTreeMap<u32, u32>) {
        assert!(map.iter().eq(same.iter()));
        assert!(map.pages.iter().all(|page| !page.is_empty() && page.len() <= PAGE));
        assert_eq!(map.is_empty(), same.is_empty());
    }

    /// Changes a map and a tree at random, with keys that often follow each other.
    #[test]
    fn a_sorted_map_behaves_like_a_btree_map() {
        let (mut map, mut same) = (SortedMap::new(), BTreeMap::new());
        let (mut state, mut key) = (1u64, 0u32);
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % below) as u32
        };
        for round in 0..40_000u32 {
            // Grows for a time, and then shrinks.
            let grows = round / 5_000 % 2 == 0;
            key = if random(4) == 0 { random(3_000) } else { (key + 1) % 3_000 };
            match random(8) {
                0 => assert_eq!(map.get(&key), same.get(&key)),
                1 => assert_eq!(map.get_mut(&key), same.get_mut(&key)),
                2 => assert_eq!(map.contains_key(&key), same.contains_key(&key)),
                3 if !grows => {
                    assert_eq!(map.first_mut().map(|(key, _)| *key), same.keys().next().copied());
                    assert_eq!(map.pop_first(), same.pop_first());
                }
                4 | 5 if !grows => assert_eq!(map.remove(&key), same.remove(&key)),
                _ if !grows => {
                    if let Entry::Occupied(entry) = map.entry(&key) {
                        entry.remove();
                        assert!(same.remove(&key).is_some());
                    }
                }
                _ => assert_eq!(map.entry(&key).or_insert_with(|| round), same.entry(key).or_insert(round)),
            }
            if round % 64 == 0 {
                check(&map, &same);
            }
        }
        map.retain(|key, _| key % 3 == 0);
        same.retain(|key, _| key % 3 == 0);
        check(&map, &same);
    }

    #[test]
    fn sorted_keys_fill_their_pages_and_few_remaining_keys_share_one() {
        let mut map = SortedMap::new();
        (0..1_000).for_each(|key: u32| *map.entry(&key).or_default() = key);
        assert_eq!(map.pages.len(), 1_000_usize.div_ceil(PAGE));
        (0..1_000).filter(|key| key % 64 != 0).for_each(|key| _ = map.remove(&key));
        assert_eq!((map.iter().count(), map.pages.len()), (16, 1));
    }

    #[test]
    fn equality_and_hash_do_not_depend_on_pages() {
        let (mut up, mut down) = (SortedMap::new(), SortedMap::new());
        (0..200).for_each(|key: u32| *up.entry(&key).or_default() = key);
        (0..200).rev().for_each(|key| *down.entry(&key).or_default() = key);
        assert_ne!(up.pages.iter().map(VecDeque::len).collect::<Vec<_>>(), [200]);
        let by = RandomState::new();
        assert_eq!((&up, by.hash_one(&up)), (&down, by.hash_one(&down)));
        assert_eq!(
            alloc::format!("{:?}", {
                up.retain(|key, _| *key < 2);
                &up
            }),
            "{0: 0, 1: 1}"
        );
        assert_ne!(up, down);
    }
}

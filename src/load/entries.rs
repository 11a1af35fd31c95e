//! The entries of a reporter, which are found by handle without a search, and by name.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::counters::{Counters, Key};
use super::excess::Excess;
use crate::error::Misuse;
use crate::name::ResourceName;
use crate::time::Instant;

/// A handle to the loads of one cluster, or of one service of it. Cheap to clone; clones are the same handle.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Entry {
    key: Arc<Key>,
    /// The place of the counters, unless they were removed meanwhile.
    slot: u32,
}

impl Entry {
    /// Returns the name of the cluster.
    pub fn cluster(&self) -> &ResourceName {
        &self.key.cluster
    }

    /// Returns the name of the service, which is empty where the cluster has none.
    pub fn service(&self) -> &ResourceName {
        &self.key.service
    }
}

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Entries {
    slots: Vec<Option<Box<Counters>>>,
    free: Vec<u32>,
    /// The slots by name: reports are in this order (R-LRS-31).
    index: BTreeMap<Arc<Key>, u32>,
}

impl Entries {
    /// Returns a handle to the entry of these names, which is made if it is new.
    pub(super) fn open(
        &mut self,
        cluster: ResourceName,
        service: ResourceName,
        since: Option<Instant>,
        limit: usize,
    ) -> Result<Entry, Misuse> {
        let key = Arc::new(Key { cluster, service });
        if !self.index.contains_key(&key) && self.index.len() >= limit {
            return Err(Misuse::TooMuchLoad { what: Excess::Clusters, limit });
        }
        let slot = self.slot(&key, since);
        let counters = self.slots[slot as usize].as_mut();
        let key = counters.map_or(key, |counters| {
            counters.references = counters.references.saturating_add(1);
            counters.key().clone()
        });
        Ok(Entry { key, slot })
    }

    /// Returns the counters of these names, which are made if they are new.
    pub(super) fn get_or_make(
        &mut self,
        cluster: &ResourceName,
        service: &ResourceName,
        since: Option<Instant>,
    ) -> &mut Counters {
        let key = Arc::new(Key { cluster: cluster.clone(), service: service.clone() });
        let slot = self.slot(&key, since);
        self.slots[slot as usize].get_or_insert_with(|| Box::new(Counters::new(key, since)))
    }

    fn slot(&mut self, key: &Arc<Key>, since: Option<Instant>) -> u32 {
        if let Some(slot) = self.index.get(key) {
            return *slot;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        self.slots[slot as usize] = Some(Box::new(Counters::new(key.clone(), since)));
        self.index.insert(key.clone(), slot);
        slot
    }

    /// Returns the counters of a handle.
    ///
    /// # Errors
    ///
    /// If there are none, because the entry was removed.
    pub(super) fn get(&mut self, entry: &Entry) -> Result<&mut Counters, Misuse> {
        let has = |slot: u32| {
            let counters = self.slots.get(slot as usize).and_then(Option::as_ref);
            // Another entry may have the slot now: nothing is counted for a cluster of another name.
            counters.is_some_and(|counters| Arc::ptr_eq(counters.key(), &entry.key) || *counters.key() == entry.key)
        };
        let slot = if has(entry.slot) { Some(entry.slot) } else { self.index.get(&entry.key).copied() };
        let counters = slot.and_then(|slot| self.slots.get_mut(slot as usize)?.as_deref_mut());
        counters.ok_or_else(|| Misuse::NoEntry { cluster: entry.key.cluster.clone() })
    }

    /// Returns all entries, by name.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Counters> {
        self.index.values().filter_map(|slot| self.slots.get(*slot as usize)?.as_deref())
    }

    /// Calls the function for each entry, by name.
    pub(super) fn for_each(&mut self, mut each: impl FnMut(&mut Counters)) {
        for slot in self.index.values() {
            if let Some(Some(counters)) = self.slots.get_mut(*slot as usize) {
                each(counters);
            }
        }
    }

    /// Removes the entries that have no handle, and for which `is_done` returns `true`.
    pub(super) fn remove_unused(&mut self, mut is_done: impl FnMut(&Counters) -> bool) {
        let Self { slots, free, index } = self;
        index.retain(|_, slot| {
            let Some(place) = slots.get_mut(*slot as usize) else { return false };
            let keep = place.as_ref().is_some_and(|counters| counters.references > 0 || !is_done(counters));
            if !keep {
                *place = None;
                free.push(*slot);
            }
            keep
        });
    }

    /// Removes one entry, if it has no handle and `is_done` returns `true`.
    pub(super) fn remove_if_unused(&mut self, entry: &Entry, is_done: impl FnOnce(&Counters) -> bool) {
        let Some(&slot) = self.index.get(&entry.key) else { return };
        let Some(place) = self.slots.get_mut(slot as usize) else { return };
        if place.as_ref().is_some_and(|counters| counters.references == 0 && is_done(counters)) {
            *place = None;
            self.free.push(slot);
            self.index.remove(&entry.key);
        }
    }
}

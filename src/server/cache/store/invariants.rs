//! The invariants of a cache, which hold between any two calls.

use alloc::collections::BTreeSet;
use alloc::string::String;

use super::Store;
use super::list::List;
use super::slot::{NONE, Slot, What};
use crate::ensure::ensure;
use crate::error::Code;
use crate::name::ResourceName;
use crate::revision::Revision;
use crate::server::cache::Cache;
use crate::server::hash;
use crate::server::resource::Resource;

impl Cache {
    /// Checks the invariants of the cache: for tests, fuzz targets and custom models. Costs the size of the cache.
    ///
    /// # Errors
    ///
    /// Returns the violated invariant, which is a bug in this crate.
    pub fn check_invariants(&self) -> Result<(), String> {
        for (type_url, store) in self.types.iter() {
            store.check().map_err(|what| alloc::format!("{type_url}: {what}"))?;
            ensure!(store.revision <= self.revision, "{type_url}: changed in the future, at {:?}", store.revision);
        }
        Ok(())
    }
}

impl Slot {
    /// Returns whether the slot is a member of a collection.
    fn is_member(&self) -> bool {
        let there = matches!(self.what, What::Present(_) | What::Unknown(_));
        there && self.what.name().is_some_and(|name| name.glob().is_some())
    }
}

impl Store {
    fn check(&self) -> Result<(), String> {
        let free: BTreeSet<u32> = self.free.iter().copied().collect();
        ensure!(free.len() == self.free.len(), "a slot is free twice");
        for (at, slot) in self.slots.iter().enumerate() {
            let at = at as u32;
            let name = slot.what.name();
            ensure!(name.is_none() == free.contains(&at), "slot {at} has {name:?}, and is free or not");
            let found = name.map(|name| self.find(name.as_str()));
            ensure!(
                found.is_none_or(|found| found == Some(at as usize)),
                "{name:?} is in slot {at}, found in {found:?}"
            );
            ensure!(slot.since <= self.revision, "{name:?} changed in the future, at {:?}", slot.since);
            let expires = slot.resource().is_some_and(|resource| resource.ttl().is_some());
            let listed = |glob: ResourceName| self.collections.members(glob.as_str()).any(|&other| other == at);
            let listed = name.and_then(ResourceName::glob).is_some_and(listed);
            ensure!(listed == slot.is_member(), "{name:?} is there or not, and in its collection or not");
            ensure!(expires == self.expiring.contains(&at), "{name:?} has a TTL or not, and is listed or not");
        }
        let named = self.slots.len() - self.free.len();
        ensure!(self.index.len() == named, "{named} slots in use, {} names in the index", self.index.len());
        let all = self.slots.iter().filter(|slot| slot.is_member()).count();
        let listed = self.collections.len();
        ensure!(listed == all, "{all} members of collections, {listed} are listed");
        ensure!(self.horizon <= self.revision, "removals of the future are forgotten");
        self.check_list(&self.present, |slot| matches!(slot.what, What::Present(_)))?;
        self.check_list(&self.absent, |slot| slot.what.is_absent())?;
        self.check_aliases()?;
        for (then, (at, status)) in &self.errors {
            let slot = &self.slots[*at as usize];
            let absent = slot.what.is_absent();
            let fits = matches!(slot.what, What::Unknown(_)) || absent;
            ensure!(slot.since == *then && fits, "{:?} has an error of another time: {status}", slot.what.name());
            ensure!(
                absent == status.is(Code::NotFound),
                "{:?} has an error of another state: {status}",
                slot.what.name()
            );
        }
        let pair = |resource: &Resource| hash::pair(resource.name(), resource.version());
        let sum = self.resources().map(pair).fold(0, u128::wrapping_add);
        ensure!(sum == self.sum && self.version == hash::version(sum), "the version is of something else");
        self.published.check(&self.slots)
    }

    /// Checks that a list has all slots of its kind, in the order of their changes.
    fn check_list(&self, list: &List, is: impl Fn(&Slot) -> bool) -> Result<(), String> {
        let (mut at, mut newer, mut len, mut since) = (list.newest, NONE, 0, self.revision);
        while let Some(slot) = self.slots.get(at as usize) {
            ensure!(is(slot) && slot.newer == newer, "slot {at} is in another list");
            ensure!(slot.since <= since && slot.since > Revision::default(), "slot {at} is out of order");
            ensure!(len < self.slots.len(), "a list goes in a circle");
            (newer, at, since, len) = (at, slot.older, slot.since, len + 1);
        }
        ensure!(at == NONE && list.oldest == newer, "a list ends before its end");
        let all = self.slots.iter().filter(|slot| is(slot)).count();
        ensure!(len == all && list.len == all, "{all} slots of a kind, {len} in their list, counted as {}", list.len);
        Ok(())
    }
}

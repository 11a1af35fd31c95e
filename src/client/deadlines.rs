//! A map from names to deadlines that is also ordered by deadline.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;

use crate::ensure::ensure;
use crate::model::{Label, Relabel};
use crate::name::ResourceName;
use crate::time::Instant;

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Deadlines {
    at: BTreeMap<ResourceName, Instant>,
    order: BTreeSet<(Instant, ResourceName)>,
}

impl Deadlines {
    pub(super) fn set(&mut self, name: &ResourceName, deadline: Option<Instant>) {
        let old = match deadline {
            Some(deadline) => {
                self.order.insert((deadline, name.clone()));
                self.at.insert(name.clone(), deadline).filter(|&old| old != deadline)
            }
            None => self.at.remove(name),
        };
        if let Some(old) = old {
            self.order.remove(&(old, name.clone()));
        }
    }

    /// Changes all deadlines.
    pub(super) fn change_all(&mut self, change: impl FnMut(&mut Instant)) {
        self.at.values_mut().for_each(change);
        self.order = self.at.iter().map(|(name, &deadline)| (deadline, name.clone())).collect();
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&ResourceName) -> bool) {
        if !self.at.is_empty() {
            self.at.retain(|name, _| keep(name));
            self.order.retain(|(_, name)| self.at.contains_key(name));
        }
    }

    /// Takes a name whose deadline has passed.
    pub(super) fn take(&mut self, now: Instant) -> Option<ResourceName> {
        if self.next()? > now {
            return None;
        }
        let (_, name) = self.order.pop_first()?;
        self.at.remove(&name);
        Some(name)
    }

    pub(super) fn get(&self, name: &ResourceName) -> Option<Instant> {
        self.at.get(name).copied()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &ResourceName> {
        self.at.keys()
    }

    pub(super) fn len(&self) -> usize {
        self.at.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.order.first().map(|&(deadline, _)| deadline)
    }

    /// Checks the invariants.
    pub(super) fn check(&self) -> Result<(), String> {
        let same = self.at.len() == self.order.len()
            && self.order.iter().all(|(deadline, name)| self.at.get(name) == Some(deadline));
        ensure!(same, "deadlines by name and by time differ");
        Ok(())
    }
}

impl Relabel for Deadlines {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.change_all(|deadline| deadline.relabel(by));
    }
}

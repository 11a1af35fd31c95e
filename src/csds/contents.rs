//! The contents of held resources, which the machines pass to the application and do not keep.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use bytes::Bytes;

use crate::client::{Rejection, Update};
use crate::name::{ResourceName, TypeUrl};

/// Up to this number of contents nothing is swept.
const FEW: usize = 64;

/// The contents of the resources that an application accepted, for a [dump](fn@super::dump) that shows them. Only a
/// client whose dumps show contents needs to keep any.
///
/// The machine decides which resources are held, and a dump shows the contents of those only. So other contents are
/// forgotten late: when there are more than twice as many contents as were held at the last sweep.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Contents {
    of: BTreeMap<TypeUrl, BTreeMap<ResourceName, Bytes>>,
    count: usize,
    /// The number of contents above which those that are not held are forgotten.
    limit: usize,
    /// Updates that wait for their verdict: at most one for each type of each client.
    out: Vec<Update>,
}

impl Contents {
    /// Makes an empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes an update that the machine emitted. Call this for each
    /// [`Action::Apply`](crate::client::Action::Apply).
    pub fn handle_update(&mut self, update: &Update) {
        self.take_out(update.client_id(), update.type_url());
        self.out.push(update.clone());
    }

    /// Notes the verdict on an update, once the machine has taken the verdict: accepted contents replace the earlier
    /// ones. `is_held` returns whether the machine holds a resource.
    pub fn handle_verdict(
        &mut self,
        client_id: u64,
        type_url: &TypeUrl,
        rejections: &[Rejection],
        is_held: impl Fn(&TypeUrl, &ResourceName) -> bool,
    ) {
        let Some(update) = self.take_out(client_id, type_url) else { return };
        let rejected: BTreeSet<&ResourceName> = rejections.iter().filter_map(|one| one.name.as_ref()).collect();
        let of_type = self.of.entry(type_url.clone()).or_default();
        self.count -= of_type.len();
        for resource in update.resources().filter(|resource| !rejected.contains(resource.name())) {
            of_type.insert(resource.name().clone(), resource.body().clone());
        }
        for name in update.removed().iter().filter(|name| !rejected.contains(name)) {
            of_type.remove(name);
        }
        self.count += of_type.len();
        if self.count > self.limit.max(FEW) {
            self.sweep(is_held);
        }
    }

    /// Forgets the contents of resources that are not held.
    fn sweep(&mut self, is_held: impl Fn(&TypeUrl, &ResourceName) -> bool) {
        for (type_url, contents) in &mut self.of {
            contents.retain(|name, _| is_held(type_url, name));
        }
        self.of.retain(|_, contents| !contents.is_empty());
        self.count = self.of.values().map(BTreeMap::len).sum();
        self.limit = 2 * self.count;
    }

    /// Returns the contents of a type by name.
    pub(super) fn of(&self, type_url: &TypeUrl) -> Option<&BTreeMap<ResourceName, Bytes>> {
        self.of.get(type_url)
    }

    fn take_out(&mut self, client_id: u64, type_url: &TypeUrl) -> Option<Update> {
        let is = |update: &Update| update.client_id() == client_id && update.type_url() == type_url;
        let at = self.out.iter().position(is)?;
        Some(self.out.swap_remove(at))
    }
}

//! No false absence: a name does not time out while the store has it.

use std::collections::BTreeSet;

use xds_machine::ResourceName;

use super::super::{Application, Both, Made, Store, is_resource};
use super::Ghost;

impl Ghost {
    /// Returns the names of a type that the server knows to be subscribed to.
    pub fn listed(&self, t: usize) -> BTreeSet<ResourceName> {
        self.types[t].listed.clone()
    }

    /// Records the names that a request asked for, and that the store has: their answer has content. `before` has those
    /// that were subscribed to before the request.
    pub fn asks<V: Both>(
        &mut self,
        setup: &Made,
        store: &Store,
        before: &BTreeSet<ResourceName>,
        request: &V::Request,
    ) {
        let request = V::request(request);
        let t = setup.type_number(request.type_url);
        let memory = &mut self.types[t];
        let is_new = |name: &&ResourceName| !V::LISTS || !before.contains(*name);
        let asked = request.names.iter().filter(|name| is_resource(name)).filter(is_new);
        memory.promised.extend(asked.filter(|name| store.content(setup, t, name).is_some()).cloned());
        memory.promised.retain(|name| memory.listed.contains(name));
    }

    /// Records that a resource is absent or unknown: its answer may say so.
    pub fn is_gone(&mut self, t: usize, name: &ResourceName) {
        self.types[t].promised.remove(name);
    }

    /// Records the answers that the application has.
    pub fn answered(&mut self, t: usize, app: &Application) {
        let knows = |name: &ResourceName| {
            app.applied.contains_key(name) || app.rejected.contains_key(name) || app.missing.contains_key(name)
        };
        self.types[t].promised.retain(|name| app.wanted.contains(name) && !knows(name));
    }

    /// Returns, by type, the resources that the store has had ever since the server read the request for them, and that
    /// the application has no answer to.
    pub fn promised(&self) -> Vec<BTreeSet<ResourceName>> {
        self.types.iter().map(|memory| memory.promised.clone()).collect()
    }
}

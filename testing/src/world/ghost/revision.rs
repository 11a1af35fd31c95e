//! Deliveries are monotone: on one stream, the store's revision of what is sent of a name never falls, nor that of what
//! the application receives.

use std::collections::{BTreeMap, VecDeque};

use xds_machine::ResourceName;
use xds_machine::client::Update;

use super::super::{Both, Made, Store};
use super::Ghost;

/// A form of a resource: its type, its name, its revision and its content.
type Form = (usize, ResourceName, u64, u8);

/// The revisions of each resource, counted by its changes.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Revisions {
    store: BTreeMap<(usize, ResourceName), u64>,
    sent: BTreeMap<(usize, ResourceName), (u64, u8)>,
    /// The resources of each response on the wire.
    down: VecDeque<Vec<Form>>,
    /// What the client read and the application did not receive.
    read: Vec<Form>,
    received: BTreeMap<(usize, ResourceName), u64>,
}

impl Ghost {
    pub(super) fn new_stream(&mut self) {
        let store = std::mem::take(&mut self.revisions.store);
        self.revisions = Revisions { store, ..Revisions::default() };
    }

    /// Records a change in the store.
    pub fn revises(&mut self, t: usize, name: &ResourceName) {
        *self.revisions.store.entry((t, name.clone())).or_default() += 1;
    }

    /// Records a response. Panics if it has an older form of a resource than an earlier one.
    pub fn sends_revisions<V: Both>(&mut self, setup: &Made, store: &Store, response: &V::Response) {
        let response = V::response(response);
        let t = setup.type_number(&response.type_url);
        let mut forms = Vec::new();
        for (name, content) in response.resources {
            let key = (t, name);
            let newest = self.revisions.store.get(&key).copied().unwrap_or_default();
            let sent = self.revisions.sent.get(&key).copied();
            // A removed resource may stay for a time as it was sent.
            let revision = match sent {
                _ if store.content(setup, t, &key.1) == Some(content) => newest,
                Some((revision, same)) if same == content => revision,
                Some((revision, _)) => revision.saturating_sub(1),
                None => 0,
            };
            let name = &key.1;
            assert!(
                sent.is_none_or(|(sent, _)| sent <= revision),
                "{name} falls to an older revision: {revision} after {sent:?}"
            );
            forms.push((t, key.1.clone(), revision, content));
            self.revisions.sent.insert(key, (revision, content));
        }
        self.revisions.down.push_back(forms);
    }

    /// Records a response of a seeded bug, which is late.
    pub fn sends_unknown_revisions(&mut self) {
        self.revisions.down.push_back(Vec::new());
    }

    /// Records that the client read a response.
    pub fn reads_revisions(&mut self) {
        let forms = self.revisions.down.pop_front();
        self.revisions.read.extend(forms.into_iter().flatten());
    }

    /// Records an update. Panics if the application received a newer form of a resource before.
    pub fn receives_revisions(&mut self, t: usize, update: &Update) {
        let Revisions { read, received, .. } = &mut self.revisions;
        for resource in update.resources() {
            let content = resource.body().last().copied();
            let is_of = |(of, name, _, form): &&Form| *of == t && name == resource.name() && Some(*form) == content;
            // What waited since an earlier stream is not on record.
            let Some(revision) = read.iter().filter(is_of).map(|(.., revision, _)| *revision).max() else { continue };
            let before = received.insert((t, resource.name().clone()), revision);
            let name = resource.name();
            assert!(before <= Some(revision), "{name} falls to an older revision: {revision} after {before:?}");
            read.retain(|(of, other, older, _)| *of != t || other != name || *older > revision);
        }
    }
}

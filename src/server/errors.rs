//! What a response says of resources that can't be given (`resource_errors`; cncf/xds TP3).

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::resource::Resource;
use super::source::{Entry, Revision, Source, State};
use super::subscription::{Draft, Subscription};
use crate::error::{Code, Status};
use crate::message::ResourceError;
use crate::name::ResourceName;

impl Subscription {
    /// The errors of names that are answered, of those that became so, and of those that are removed.
    pub(super) fn new_errors<S: Source>(
        &self,
        source: &S,
        owed: Option<&BTreeSet<ResourceName>>,
        draft: &Draft,
    ) -> Vec<ResourceError> {
        static NOTHING: BTreeSet<ResourceName> = BTreeSet::new();
        let owed = owed.unwrap_or(&NOTHING);
        if source.errors(self.type_url(), Revision::default()).next().is_none() {
            return Vec::new(); // most types have none at any time
        }
        self.look_for_errors(source, owed, draft)
    }

    /// The same, where there are some.
    fn look_for_errors<S: Source>(
        &self,
        source: &S,
        owed: &BTreeSet<ResourceName>,
        draft: &Draft,
    ) -> Vec<ResourceError> {
        let mut names: BTreeSet<ResourceName> = BTreeSet::new();
        let failed = |name: &&ResourceName| source.error(self.type_url(), name.as_str()).is_some();
        names.extend(owed.iter().chain(&draft.removed).filter(failed).cloned());
        if owed.iter().any(ResourceName::is_glob) {
            let answered = |name: &ResourceName| self.interest.is_owed(name, owed) && !owed.contains(name);
            let errors = source.errors(self.type_url(), Revision::default());
            let errors = errors.filter(|(name, entry)| entry.state == State::Unknown && answered(name));
            names.extend(errors.map(|(name, _)| name.clone()));
        }
        // Of a large answer the first portion has them.
        if !draft.behind && !draft.names_left && !draft.resumed {
            let since = if self.sweep { Some(Revision::default()) } else { self.cursor };
            let removed = |name: &ResourceName| draft.removed.binary_search(name).is_ok();
            self.each_error(source, since, |name, entry| {
                // In delta a removal may be held back, and its reason with it. What does not exist is no part of everything.
                let absent = entry.state == State::Absent;
                let served = if absent { self.cursor.unwrap_or(Revision(u64::MAX)) } else { since.unwrap_or_default() };
                let served_to = self.ahead.get(name).copied().unwrap_or(served);
                if entry.since > served_to && (!absent || !draft.held || removed(name)) {
                    names.insert(name.clone());
                }
            });
        }
        self.errors_of(source, names).collect()
    }

    /// Adds what does not exist any more of what had an error when that was last told: a client remembers the error until
    /// it hears otherwise, and in SotW beyond the absence of the resource.
    pub(super) fn add_endings<S: Source>(&mut self, source: &S, owed: &BTreeSet<ResourceName>, draft: &mut Draft) {
        let Some(failing) = &mut self.failing else { return };
        let (behind, interest, type_url) = (draft.behind, &self.interest, self.kind.type_url());
        let mut names: BTreeSet<ResourceName> = draft.errors.drain(..).map(|error| error.name).collect();
        failing.retain(|name| {
            if !interest.covers(name.as_str()) || (behind && !owed.contains(name)) {
                return true;
            }
            let state = source.get(type_url, name.as_str()).state;
            if state == State::Absent {
                names.insert(name.clone());
            }
            state == State::Unknown
        });
        if failing.is_empty() {
            self.failing = None;
        }
        draft.errors.extend(self.errors_of(source, names));
    }

    /// Remembers what is told to have an error, as much as it may.
    pub(super) fn note_errors<S: Source>(&mut self, source: &S, draft: &Draft, limit: usize) {
        let unknown = |name: &ResourceName| source.get(self.kind.type_url(), name.as_str()).state == State::Unknown;
        let names = draft.errors.iter().map(|error| &error.name).filter(|name| !name.is_wildcard() && unknown(name));
        let names: Vec<ResourceName> = names.cloned().collect();
        if !names.is_empty() {
            let failing = self.failing.get_or_insert_default();
            failing.extend(names);
            if failing.len() > limit {
                failing.retain(|name| self.interest.covers(name.as_str()));
            }
        }
    }

    /// Adds the errors that stand for what is missing in a response that has everything. What is gone and kept is not
    /// missing yet: the reason goes when it does.
    pub(super) fn add_standing_errors<S: Source>(&self, source: &S, kept: &[Resource], draft: &mut Draft) {
        let mut names: BTreeSet<ResourceName> = draft.errors.drain(..).map(|error| error.name).collect();
        let let_go = self.kept.iter().flat_map(|kept| kept.iter()).map(Resource::name);
        let reason = |name: &&ResourceName| {
            self.interest.covers(name.as_str()) && source.error(self.type_url(), name.as_str()).is_some()
        };
        names.extend(let_go.filter(reason).cloned());
        self.each_error(source, Some(Revision::default()), |name, entry| {
            if entry.state == State::Unknown {
                names.insert(name.clone());
            }
        });
        names.retain(|name| kept.iter().all(|resource| resource.name() != name));
        draft.errors.extend(self.errors_of(source, names));
    }

    fn errors_of<S: Source>(&self, source: &S, names: BTreeSet<ResourceName>) -> impl Iterator<Item = ResourceError> {
        names.into_iter().map(|name| {
            let gone = || Status::new(Code::NotFound, "the resource does not exist");
            let status = source.error(self.type_url(), name.as_str()).cloned().unwrap_or_else(gone);
            ResourceError { name, status: Some(status) }
        })
    }

    /// The wanted names with an error that came since, if anything was served yet. Looks at the fewer of those that have
    /// one and those that are wanted.
    fn each_error<'s, S: Source>(
        &self,
        source: &'s S,
        since: Option<Revision>,
        mut take: impl FnMut(&ResourceName, Entry<'s>),
    ) {
        let Some(since) = since else { return };
        if self.interest.wildcard() || self.is_few(source.errors(self.type_url(), since)) {
            for (name, entry) in source.errors(self.type_url(), since) {
                if self.interest.covers(name.as_str()) {
                    take(name, entry);
                }
            }
        } else {
            for name in self.interest.names() {
                let entry = source.get(self.type_url(), name.as_str());
                if source.error(self.type_url(), name.as_str()).is_some() {
                    take(name, entry); // or earlier: who takes it looks
                }
            }
        }
    }
}

//! Retries of rejected resources, where the configuration enables them.

use alloc::collections::BTreeSet;

use super::extent::Extent;
use super::of_type::OfType;
use super::rejections::DueRetries;
use super::resource::Resource;
use super::source::{Entry, Source};
use super::subscription::Subscription;
use super::wanted::{Wanted, was_asked};
use crate::name::ResourceName;
use crate::time::Instant;

impl Subscription {
    /// Makes rejected resources that are due pending, if they are still present and subscribed. Resources that
    /// changed since are news anyway, and those that were subscribed again were answered.
    pub(super) fn retry<S: Source>(&mut self, now: Instant, source: &S, limit: usize) {
        let due = self.exchange.take_due_retries(now);
        let whole = due.extents.iter().any(|(extent, _)| extent.whole);
        let names = if whole { BTreeSet::new() } else { names(self.of(source), &self.wanted, &due) };
        for name in &names {
            self.pending.add(name.clone(), &self.wanted, limit);
        }
        self.exchange.retry(names, whole, due.tries);
    }
}

/// Returns the names by which the resources of rejected responses are subscribed.
fn names<S: Source>(of: OfType<'_, S>, wanted: &Wanted, due: &DueRetries) -> BTreeSet<ResourceName> {
    let mut names = BTreeSet::new();
    for (extent, again) in &due.extents {
        let mut take = |entry: Entry<'_>| {
            let rejected =
                |resource: &&Resource| entry.since <= extent.to && !was_asked(again, resource.name(), &entry);
            if let Some(resource) = entry.resource().filter(rejected) {
                let own = wanted.covers(resource.name().as_str()).then(|| resource.name());
                names.extend(own.or_else(|| wanted.aliases_of(of, resource).min()).cloned());
            }
        };
        each_resource(of, extent, &mut take);
    }
    names
}

/// Visits the resources of a response that are still present.
fn each_resource<'s, S: Source>(of: OfType<'s, S>, extent: &Extent, take: &mut impl FnMut(Entry<'s>)) {
    let had = |entry: &Entry<'_>| {
        let had =
            |resource: &Resource| extent.more.as_ref().is_some_and(|more| more.leaves_out(resource.name(), entry));
        entry.resource().is_some_and(had)
    };
    if extent.after != Some(extent.to) {
        of.changes(extent.after.unwrap_or_default()).filter(|entry| !had(entry)).for_each(&mut *take);
    }
    let Some(more) = &extent.more else { return };
    for name in more.names.iter().chain(&more.retried) {
        take(of.get(name));
        if name.is_glob() {
            of.members(name).filter(|entry| !had(entry)).for_each(&mut *take);
        }
    }
    let pages = more.pages.iter().flat_map(|pages| pages.resources(of));
    pages.map(|name| of.get(&name)).filter(|entry| !had(entry)).for_each(&mut *take);
}

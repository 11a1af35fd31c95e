//! Retries of rejected resources, where the configuration enables them.

use alloc::collections::BTreeSet;

use super::extent::Extent;
use super::of_type::OfType;
use super::rejections::Retrying;
use super::resource::Resource;
use super::source::{Entry, Source};
use super::subscription::Subscription;
use super::wanted::Wanted;
use crate::name::ResourceName;
use crate::time::Instant;

impl Subscription {
    /// Makes the resources of a rejected response pending, if their retry is due and they are still present and
    /// subscribed. Resources that changed since are news anyway, and those that were subscribed again were answered.
    /// Nothing else is pending. `limit` bounds the names.
    pub(super) fn retry<S: Source>(&mut self, now: Instant, source: &S, limit: usize) -> Option<Retrying> {
        let limit = limit.max(1);
        while let Some(mut due) = self.exchange.take_due_retry(now) {
            if due.extent().whole {
                return Some(due);
            }
            due.names = names(self.of(source), &self.wanted, &due);
            if due.names.is_empty() {
                continue;
            }
            for name in due.names.iter().take(self.wanted.names().len() + limit) {
                self.pending.add(name.clone(), &self.wanted, limit);
            }
            return Some(due);
        }
        None
    }

    /// Notes that a response has as much of a retry as there was room for. The rest is no longer pending, because its
    /// turn may come after that of other types.
    pub(super) fn note_retried(&mut self, now: Instant, retrying: Retrying, extent: &mut Extent) {
        if let Some(rest) = retrying.split(extent, now) {
            rest.names.iter().for_each(|name| self.pending.remove(name));
            self.exchange.put_back(rest);
        }
    }
}

/// Returns the names by which the resources of a rejected response are subscribed.
fn names<S: Source>(of: OfType<'_, S>, wanted: &Wanted, due: &Retrying) -> BTreeSet<ResourceName> {
    let (mut names, extent) = (BTreeSet::new(), due.extent());
    let sent_at = extent.sent_at();
    let mut take = |entry: Entry<'_>| {
        let rejected = |resource: &&Resource| entry.since <= sent_at && !due.is_again(resource.name());
        if let Some(resource) = entry.resource().filter(rejected) {
            let own = wanted.covers(resource.name().as_str()).then(|| resource.name());
            names.extend(own.or_else(|| wanted.aliases_of(of, resource).min()).cloned());
        }
    };
    each_resource(of, extent, &mut take);
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
        let between = |entry: &Entry<'_>| extent.is_between(entry) && !had(entry);
        of.changes(extent.after.unwrap_or_default()).filter(between).for_each(&mut *take);
    }
    let Some(more) = &extent.more else { return };
    more.ahead.iter().for_each(|name| take(of.get(name)));
    for name in more.names.iter().chain(&more.retried) {
        take(of.get(name));
        if name.is_glob() {
            of.members(name).filter(|entry| !had(entry)).for_each(&mut *take);
        }
    }
    let pages = more.pages.iter().flat_map(|pages| pages.resources(of));
    pages.map(|name| of.get(&name)).filter(|entry| !had(entry)).for_each(&mut *take);
}

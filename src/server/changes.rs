//! The subscribed changes that are news to a client.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::draft::{Behind, Draft};
use super::of_type::OfType;
use super::resource::Resource;
use super::source::{Entry, Source, State};
use super::view::View;
use super::wanted::Wanted;
use crate::name::ResourceName;
use crate::revision::Revision;

/// Takes the subscribed resources that are news, the latest first. Iterates over the smaller of the changes and the
/// subscribed names.
#[inline]
pub(super) fn each_change<'s, S: Source>(
    of: OfType<'s, S>,
    wanted: &Wanted,
    view: &View,
    mut take: impl FnMut(Revision, &'s Resource),
) {
    let Some(sent_to) = view.sent_to() else { return };
    let mut take_news = |entry: Entry<'s>| {
        if let Some(resource) = entry.resource().filter(|resource| view.is_news(resource.name(), &entry)) {
            take(entry.since, resource);
        }
    };
    if wanted.wildcard() {
        of.changes(sent_to).for_each(take_news);
    } else if wanted.is_few(of.changes(sent_to)) {
        let of_wanted = |entry: &Entry<'_>| entry.resource().is_some_and(|resource| wanted.wants(of, resource));
        of.changes(sent_to).filter(of_wanted).for_each(take_news);
    } else {
        for name in wanted.names() {
            let entry = wanted.get(of, name);
            if !entry.resource().is_some_and(|resource| wanted.comes_by_another(of, resource, name)) {
                take_news(entry);
            }
        }
    }
}

/// Returns whether a subscribed resource became present or changed.
pub(super) fn has_change<S: Source>(of: OfType<'_, S>, wanted: &Wanted, view: &View) -> bool {
    let Some(sent_to) = view.sent_to() else { return false };
    if of.revision() <= sent_to {
        return false;
    }
    let is_news = |entry: Entry<'_>| {
        let is_news = |resource: &Resource| view.is_news(resource.name(), &entry) && wanted.wants(of, resource);
        entry.resource().is_some_and(is_news)
    };
    if wanted.wildcard() || wanted.is_few(of.changes(sent_to)) {
        of.changes(sent_to).any(is_news)
    } else {
        wanted.names().iter().any(|name| is_news(wanted.get(of, name)))
    }
}

/// Returns the subscribed names whose absence is news, with the revision of each; also resources that were sent by an
/// alias.
pub(super) fn removals<S: Source>(
    of: OfType<'_, S>,
    wanted: &Wanted,
    view: &View,
) -> Result<Vec<(Revision, ResourceName)>, Behind> {
    let removals = || of.removals(view.removals_sent_to());
    let is_news = |name: &ResourceName, entry: &Entry<'_>| view.is_removal_news(name, entry);
    Ok(match removals() {
        None if wanted.stands_for_many() => return Err(Behind),
        Some(few) if wanted.wildcard() || wanted.is_few(removals().into_iter().flatten()) => {
            let gone = few.filter(|(name, entry)| may_have(of, wanted, view, name) && is_news(name, entry));
            gone.map(|(name, entry)| (entry.since, name.clone())).collect()
        }
        _ => removals_of_names(of, wanted, view),
    })
}

/// Returns the subscribed names whose absence is news, without a list of removals.
#[inline(never)]
fn removals_of_names<S: Source>(of: OfType<'_, S>, wanted: &Wanted, view: &View) -> Vec<(Revision, ResourceName)> {
    let gone = |name: &ResourceName| {
        let entry = wanted.get(of, name);
        let is_news = entry.state == State::Absent && view.is_removal_news(name, &entry);
        is_news.then(|| (entry.since, name.clone()))
    };
    let by_alias = view.aliases().iter().filter(|(alias, _)| wanted.names().contains(alias));
    wanted.names().iter().chain(by_alias.map(|(_, name)| name)).filter_map(gone).collect()
}

/// Returns whether a removed name was subscribed, or the client has it by an alias: neither wildcard nor collection
/// covers an alias.
fn may_have<S: Source>(of: OfType<'_, S>, wanted: &Wanted, view: &View, name: &ResourceName) -> bool {
    wanted.names().contains(name)
        || (wanted.covers(name.as_str()) && !of.was_alias(name))
        || has_by_alias(wanted, view, name)
}

/// Returns whether the client has a resource by a subscribed alias, whatever that stands for now.
pub(super) fn has_by_alias(wanted: &Wanted, view: &View, name: &ResourceName) -> bool {
    view.aliases().of(name).any(|alias| wanted.names().contains(alias))
}

/// Returns whether a subscribed resource became absent; `true` also if the source no longer remembers.
pub(super) fn has_removal<S: Source>(of: OfType<'_, S>, wanted: &Wanted, view: &View) -> bool {
    view.sent_to().is_some()
        && of.revision() > view.removals_sent_to()
        && removals(of, wanted, view).map_or(true, |removed| !removed.is_empty())
}

/// Returns whether there is an orphan: a resource that the client has by an alias, that changed, and that no name
/// subscribes to any more. If removals of orphans are still to be sent, unchanged resources count too.
#[inline(never)]
pub(super) fn has_orphan<S: Source>(of: OfType<'_, S>, wanted: &Wanted, view: &View) -> bool {
    let mut changed = BTreeSet::new();
    add_changed(of, wanted, view, &mut changed);
    changed.into_iter().any(|name| is_orphan(of, wanted, view, name))
}

/// Returns the resources that the client has by an alias, and that no name subscribes to any more: among those that
/// changed, and those of the names in the draft.
#[inline(never)]
pub(super) fn orphans<S: Source>(
    of: OfType<'_, S>,
    wanted: &Wanted,
    view: &View,
    draft: &Draft,
) -> BTreeSet<ResourceName> {
    let aliases = view.aliases();
    let announced = draft.answered.iter().chain(&draft.removed);
    let sent = draft.resources().flat_map(|resource| resource.aliases().iter().chain([resource.name()]));
    let mut touched: BTreeSet<&ResourceName> = announced.chain(sent).flat_map(|name| aliases.resources(name)).collect();
    if !draft.has_only_answers() {
        add_changed(of, wanted, view, &mut touched);
    }
    touched.into_iter().filter(|name| is_orphan(of, wanted, view, name)).cloned().collect()
}

/// Adds the changed resources that the client has by an alias, or all of these if removals are still to be sent.
/// Iterates over the smaller of the changes and the aliases.
fn add_changed<'a, S: Source>(of: OfType<'a, S>, wanted: &Wanted, view: &'a View, to: &mut BTreeSet<&'a ResourceName>) {
    let (Some(sent_to), aliases) = (view.sent_to(), view.aliases()) else { return };
    match of.removals(view.removals_sent_to()) {
        Some(removals) if !aliases.has_unsent() && wanted.is_few(of.changes(sent_to)) => {
            let changed = of.changes(sent_to).filter_map(|entry| entry.resource()).map(Resource::name);
            to.extend(removals.map(|(name, _)| name).chain(changed).filter(|name| has_by_alias(wanted, view, name)));
        }
        _ => to.extend(aliases.iter().map(|(_, name)| name)),
    }
}

/// Returns whether the client has a resource by an alias, and no name subscribes to it any more.
pub(super) fn is_orphan<S: Source>(of: OfType<'_, S>, wanted: &Wanted, view: &View, name: &ResourceName) -> bool {
    if wanted.covers(name.as_str()) || !has_by_alias(wanted, view, name) {
        return false;
    }
    let entry = of.get(name);
    // An alias with an unknown target may still stand for this resource, or may come back to it.
    let may_stand = |alias: &ResourceName| wanted.names().contains(alias) && of.get(alias).state == State::Unknown;
    match entry.state {
        State::Present(resource) if resource.name() == name => !wanted.wants(of, resource),
        State::Unknown => !view.aliases().of(name).any(may_stand),
        State::Present(_) | State::Absent => true,
    }
}

//! Answers to pending names and to the wildcard, as far as there is room.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::super::changes;
use super::super::draft::Draft;
use super::super::extent::Pages;
use super::super::of_type::OfType;
use super::super::parts::Part;
use super::super::pending::Wildcard;
use super::super::resource::Resource;
use super::super::response_limit::Progress;
use super::super::source::{Entry, Source, State};
use super::super::subscription::Subscription;
use super::super::view::View;
use crate::globs::Globs;
use crate::name::ResourceName;

/// Answers what is pending, and puts back the rest; `limit` bounds what is kept by name. Returns whether there was room
/// for all.
pub(super) fn add<S: Source>(of: &mut Subscription, source: &S, draft: &mut Draft, limit: usize) -> bool {
    let mut all = add_names(of, source, draft);
    of.settle_answered(source, draft, limit);
    if *of.pending.wildcard() == Wildcard::Claimed {
        draft.claimed = true;
        of.pending.set_progress(None);
    } else if all && of.pending.has_wildcard() {
        let progress = add_pages(of, source, draft);
        all = progress.is_none();
        of.pending.set_progress(progress);
    }
    all && add_gone(of, source, draft)
}

/// Answers names in their order.
fn add_names<S: Source>(subscription: &mut Subscription, source: &S, draft: &mut Draft) -> bool {
    let Subscription { resource_type, wanted, view, pending, .. } = subscription;
    let of = OfType::new(source, resource_type.type_url());
    let mut names = pending.take_names();
    if names.len() > 64 && names.len() > wanted.names().len() / 2 {
        wanted.pack_names();
    }
    let mut globs = Globs::default();
    if !wanted.globs().is_empty() {
        names.iter().for_each(|name| _ = globs.insert(name));
    }
    if draft.budget.is_limited() {
        // Collections that may not fit are answered by the names of their members, each in its turn.
        names.extend(globs.iter().flat_map(|glob| members(of, view, glob)).map(|member| member.name().clone()));
    }
    // The pages have all present resources except those that the client has, unless some pages were sent before.
    let paged = *pending.wildcard() == Wildcard::Asked;
    let has_page = |resource: &Resource, since| paged && !view.is_sent_ahead(resource.name(), since);
    let is_gone = |name| pending.claims().is_some_and(|claims| claims.has_gone(name));
    // Names that need no answer of their own: another name of the resource was answered before, or is answered later.
    let (mut answered_with, mut comes_with, mut unknown) = (BTreeSet::new(), Vec::new(), Vec::new());
    let mut no_room_for = None;
    for name in &names {
        if answered_with.contains(name) {
            continue;
        }
        let entry = of.get(name);
        if let Some(resource) = entry.resource().filter(|resource| resource.name() != name) {
            // S-DELTA-42: a resource is sent once, whatever other names subscribe to it.
            let own = resource.name();
            let by_glob = || globs.cover(own.as_str()) && !view.is_sent_ahead(own, entry.since);
            if names.contains(own) || by_glob() {
                comes_with.push((name.clone(), own.clone()));
                continue;
            }
        }
        let fits = match entry.state {
            State::Present(resource) => has_page(resource, entry.since) || draft.add(of.type_url(), resource),
            State::Absent if globs.contains(name.as_str()) => {
                of.members(name).next().is_some() || draft.remove(name) // S-DELTA-45
            }
            State::Absent => {
                let had = is_gone(name) || view.is_removal_news(name, &entry);
                match resource_type.has_heartbeats() || had {
                    true => draft.remove(name),
                    false => draft.add_part(of.type_url(), Part::NotFound(Resource::not_found(name.clone()))),
                }
            }
            State::Unknown => {
                unknown.push(name.clone());
                true
            }
        };
        if !fits {
            no_room_for = Some(name.clone());
            break;
        }
        if let Some(resource) = entry.resource() {
            wanted.share_name(resource.name());
            answered_with.insert(resource.name().clone());
            answered_with
                .extend(resource.aliases().iter().filter(|alias| of.stands_for(alias, resource.name())).cloned());
        }
    }
    if let Some(name) = no_room_for {
        let mut rest = names.split_off(&name);
        let waits = comes_with.into_iter().filter(|(_, own)| rest.contains(own)).map(|(alias, _)| alias);
        let waits: Vec<ResourceName> = waits.collect();
        waits.iter().for_each(|alias| _ = names.remove(alias));
        rest.extend(waits);
        rest.retain(|name| !answered_with.contains(name));
        pending.put_back(rest);
    } else if !draft.budget.is_limited() && !paged {
        // Members of collections that are not answered by name.
        let members = globs.iter().flat_map(|glob| members(of, view, glob));
        members.filter(|member| !names.contains(member.name())).for_each(|member| draft.push(member));
    }
    draft.answers = draft.parts.len();
    let all = pending.names().is_empty();
    if paged {
        // These are in the pages, perhaps in those of a later response.
        let comes_by_page = |entry: Entry<'_>| entry.resource().is_some_and(|resource| has_page(resource, entry.since));
        names.retain(|name| !comes_by_page(of.get(name)));
    }
    draft.answered = names;
    for alias in &unknown {
        // The client may have a former target by another name, which may be unsubscribed before the alias is known.
        view.note_former_targets(of, alias, |name| wanted.covers(name.as_str()));
    }
    all
}

/// Returns the members of a collection that the client does not have.
fn members<'s, S: Source>(of: OfType<'s, S>, view: &View, glob: &ResourceName) -> impl Iterator<Item = &'s Resource> {
    let members = of.members(glob).filter_map(|entry| Some((entry.resource()?, entry.since)));
    members.filter(|(member, since)| !view.is_sent_ahead(member.name(), *since)).map(|(member, _)| member)
}

/// Adds removals of resources that the client had before this stream, or has by an alias alone since a name was
/// unsubscribed.
#[inline(never)]
fn add_gone<S: Source>(subscription: &mut Subscription, source: &S, draft: &mut Draft) -> bool {
    let Subscription { resource_type, wanted, view, pending, .. } = subscription;
    let of = OfType::new(source, resource_type.type_url());
    let Some(mut claims) = pending.take_claims() else { return true };
    // A client drops by itself what it had by an alias, and no name subscribes to any more.
    let may_have = |name: &ResourceName| {
        let has = || wanted.covers(name.as_str()) || changes::has_by_alias(wanted, view, name);
        !claims.has_left(name) || has()
    };
    let is_gone = |name: &&ResourceName| {
        let is_gone = || of.get(name).state == State::Absent || changes::is_orphan(of, wanted, view, name);
        !draft.answered.contains(*name) && may_have(name) && is_gone()
    };
    let names: BTreeSet<ResourceName> = claims.gone().filter(is_gone).cloned().collect();
    let rest: BTreeSet<ResourceName> = names.iter().skip_while(|name| draft.remove(name)).cloned().collect();
    let all = rest.is_empty();
    // Their removals are no changes between the bounds of the response.
    draft.answered.extend(names.into_iter().filter(|name| !rest.contains(name)));
    claims.keep_gone(&rest);
    pending.set_claims(*claims);
    all
}

/// Adds the resources of the wildcard, page by page. Returns the position to continue from.
fn add_pages<S: Source>(subscription: &mut Subscription, source: &S, draft: &mut Draft) -> Option<Progress> {
    let Subscription { resource_type, view, pending, .. } = subscription;
    let of = OfType::new(source, resource_type.type_url());
    let from = match pending.wildcard() {
        Wildcard::Begun(progress) => (**progress).clone(),
        Wildcard::Asked | Wildcard::Answered | Wildcard::Claimed => Progress::default(),
    };
    let apart: BTreeSet<ResourceName> = draft.resources().map(|resource| resource.name().clone()).collect();
    let to = pages_from(of, view, &apart, &from, draft);
    draft.pages = Some(Pages { from, to: to.clone() });
    to
}

fn pages_from<S: Source>(
    of: OfType<'_, S>,
    view: &View,
    apart: &BTreeSet<ResourceName>,
    from: &Progress,
    draft: &mut Draft,
) -> Option<Progress> {
    let mut after = from.after.as_ref();
    for (number, page) in of.pages().enumerate().skip(from.page) {
        // Resources that were sent by name or claimed are not sent (S-DELTA-06).
        let is_sent_ahead = |name: &ResourceName| view.has_sent_ahead() && view.is_sent_ahead(name, of.get(name).since);
        let is_new = |resource: &&Resource| {
            let name = resource.name();
            !apart.contains(name) && !is_sent_ahead(name) && after.is_none_or(|after| after < name)
        };
        let count = page.resources().len();
        let plain = after.is_none() && apart.is_empty() && !view.has_sent_ahead();
        let whole = plain || page.resources().iter().all(|resource| is_new(&resource));
        if count == 0 || (whole && draft.budget.take(count, || page.delta_len(of.type_url()))) {
            draft.parts.extend((count > 0).then_some(Part::Page(page)));
            after = None;
            continue;
        }
        let mut new: Vec<&Resource> = page.resources().iter().filter(is_new).collect();
        if draft.budget.is_limited() {
            new.sort_unstable_by(|a, b| a.name().cmp(b.name()));
        }
        let mut last = None;
        for resource in new {
            if !draft.add(of.type_url(), resource) {
                return Some(Progress { page: number, after: last.or(after.cloned()) });
            }
            last = Some(resource.name().clone());
        }
        after = None;
    }
    None
}

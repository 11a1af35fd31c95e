//! Complete responses of a full-state type: all subscribed resources, whatever changed.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::super::changes;
use super::super::draft::{Changed, Draft, Order};
use super::super::errors;
use super::super::heartbeat;
use super::super::of_type::OfType;
use super::super::parts::{Part, Parts};
use super::super::resource::Resource;
use super::super::source::{Source, State};
use super::super::subscription::Subscription;
use super::super::view::View;
use super::super::wanted::Wanted;
use crate::name::ResourceName;

/// Adds all subscribed resources if one of them changed (S-SOTW-60). A new name is a change even if it does not exist:
/// the client may still have the resource from an earlier subscription.
pub(super) fn add<S: Source>(
    of: &mut Subscription,
    source: &S,
    order: Order,
    all_asked: bool,
    changed: &[&Resource],
    draft: &mut Draft,
) {
    let Subscription { resource_type, wanted, view, .. } = of;
    let of = OfType::new(source, resource_type.type_url());
    let defers = order.defer_removals || !view.deferred().is_empty();
    let (deferred, removes) = match view.sent_to().filter(|_| defers && !all_asked) {
        Some(_) => defer(of, wanted, view, order.defer_removals, draft),
        None => (Vec::new(), false),
    };
    draft.defers = !deferred.is_empty();
    let asked = all_asked || !draft.answered.is_empty() || !draft.errors.is_empty();
    let news = || !changed.is_empty() || removes || (!defers && changes::has_removal(of, wanted, view));
    draft.must_send = draft.must_send || asked || news();
    if draft.must_send {
        draft.whole = true;
        // Some clients take absence for a removal, whatever they were sent before.
        draft.errors = errors::standing(of, wanted, view, &deferred, core::mem::take(&mut draft.errors));
        draft.parts = all_wanted(of, wanted);
        draft.parts.extend(deferred.iter().cloned().map(Part::One));
        if view.sent_to().is_some() && !all_asked {
            let answers = named(of, wanted, &draft.answered).into_iter();
            draft.changed = Changed::These(answers.chain(changed.iter().copied()).cloned().collect());
        }
    }
    view.set_deferred(deferred);
}

/// Returns removed resources to keep until the resources that refer to them were sent, in the form that the client
/// has and without pending names; and whether other resources are removed now.
fn defer<S: Source>(
    of: OfType<'_, S>,
    wanted: &Wanted,
    view: &View,
    defer_removals: bool,
    draft: &Draft,
) -> (Vec<Resource>, bool) {
    let Ok(gone) = changes::removals(of, wanted, view) else { return (Vec::new(), true) };
    let is_removed = |name: &ResourceName| {
        wanted.covers(name.as_str()) && !draft.answered.contains(name) && of.get(name).state == State::Absent
    };
    let mut deferred: Vec<Resource> = view.deferred().to_vec();
    deferred.retain(|resource| is_removed(resource.name()));
    let is_new = |name: &&ResourceName| is_removed(name) && deferred.iter().all(|old| old.name() != *name);
    let new: Vec<&ResourceName> = gone.iter().map(|(_, name)| name).filter(is_new).collect();
    let all = deferred.len() + new.len();
    if defer_removals {
        let sent_to = view.sent_to().unwrap_or_default();
        deferred.extend(new.into_iter().filter_map(|name| of.previous(name, sent_to)).cloned());
    } else {
        deferred.clear();
    }
    let removes = deferred.len() < all;
    (deferred, removes)
}

/// Adds all subscribed resources, if one of them has a TTL.
pub(super) fn add_heartbeats<S: Source>(of: OfType<'_, S>, wanted: &Wanted, view: &View, draft: &mut Draft) {
    if heartbeat::expiring(of, wanted).next().is_some() {
        draft.errors = errors::standing(of, wanted, view, view.deferred(), core::mem::take(&mut draft.errors));
        draft.parts = all_wanted(of, wanted);
        draft.parts.extend(view.deferred().iter().cloned().map(Part::One));
        draft.whole = true;
        draft.must_send = true;
        draft.changed = Changed::These(Vec::new());
    }
}

/// Returns all subscribed resources.
pub(super) fn all_wanted<S: Source>(of: OfType<'_, S>, wanted: &Wanted) -> Parts {
    if wanted.wildcard() {
        return of.pages().filter(|page| !page.resources().is_empty()).map(Part::Page).collect();
    }
    named(of, wanted, wanted.names()).into_iter().cloned().map(Part::One).collect()
}

/// Returns the resources that these names stand for, each once.
pub(super) fn named<'s, S: Source>(
    of: OfType<'s, S>,
    wanted: &Wanted,
    names: &BTreeSet<ResourceName>,
) -> Vec<&'s Resource> {
    let mut all: Vec<_> = names.iter().filter_map(|name| wanted.get(of, name).resource()).collect();
    if !wanted.globs().is_empty() {
        for glob in names.iter().filter(|name| name.is_glob()) {
            let members = of.members(glob).filter_map(|entry| entry.resource());
            all.extend(members.filter(|member| !names.contains(member.name())));
        }
    }
    all
}

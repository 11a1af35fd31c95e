//! Pushed changes and removals, as far as there is room.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::super::changes;
use super::super::draft::{Behind, Draft};
use super::super::of_type::OfType;
use super::super::parts::Part;
use super::super::source::{Source, State};
use super::super::subscription::Subscription;
use super::super::view::Reach;
use crate::name::ResourceName;
use crate::revision::Revision;

/// Adds the changes that the last heartbeats left out, before everything that waits for later portions: the TTLs
/// continue to run, and a change may be reverted before its turn (S-TTL-04).
pub(super) fn add_left_out<S: Source>(of: &Subscription, source: &S, draft: &mut Draft) {
    let Subscription { wanted, view, pending, heartbeat, .. } = of;
    let of = of.of(source);
    for name in heartbeat.left_out(of, wanted, view, pending) {
        let entry = of.get(&name);
        let Some(resource) = entry.resource().filter(|_| view.is_news(&name, &entry)) else { continue };
        if !wanted.is_among(pending.names(), resource) && !draft.add(of.type_url(), resource) {
            return;
        }
    }
}

/// Adds the changes, the oldest first. Returns whether there was room for all.
pub(super) fn add_changes<S: Source>(of: &mut Subscription, source: &S, draft: &mut Draft) -> bool {
    let Subscription { resource_type, wanted, view, .. } = of;
    let of = OfType::new(source, resource_type.type_url());
    if draft.parts.is_empty() && !draft.budget.is_limited() {
        // The usual case, without a list of resources that may not fit.
        let parts = &mut draft.parts;
        changes::each_change(of, wanted, view, |_, resource| parts.push(Part::One(resource.clone())));
        parts.reverse();
        draft.content = Reach::All;
        return true;
    }
    let mut changed = Vec::new();
    changes::each_change(of, wanted, view, |since, resource| changed.push((since, resource)));
    if !changed.is_empty() {
        let there: BTreeSet<&ResourceName> = draft.resources().map(|resource| resource.name()).collect();
        changed.retain(|(_, resource)| !there.contains(resource.name()));
    }
    changed.reverse();
    changed.sort_by_key(|&(since, _)| since);
    let mut taken = view.sent_to();
    for (since, resource) in changed {
        if !draft.add(of.type_url(), resource) {
            if taken != Some(since) {
                draft.content = taken.map_or(Reach::Nowhere, Reach::Upto);
                return false;
            }
            draft.push(resource); // two changes of a source at one revision: both or none
        }
        taken = Some(since);
    }
    draft.content = Reach::All;
    true
}

/// Adds the removals, the oldest first, or marks them as deferred if `defer` is set. Returns whether there was room for
/// all.
pub(super) fn add_removals<S: Source>(
    of: &Subscription,
    source: &S,
    defer: bool,
    draft: &mut Draft,
) -> Result<bool, Behind> {
    let Subscription { wanted, view, .. } = of;
    let of = of.of(source);
    if view.sent_to().is_none() || of.revision() <= view.removals_sent_to() {
        draft.removals = Reach::All;
        return Ok(true);
    }
    let mut removed: Vec<(Revision, ResourceName)> = changes::removals(of, wanted, view)?;
    removed.retain(|(_, name)| !draft.answered.contains(name) && !draft.removed.contains(name));
    if defer && !removed.is_empty() {
        draft.defers = true;
        return Ok(true);
    }
    if draft.budget.is_limited() {
        removed.sort();
    }
    let mut taken = view.removals_sent_to();
    for (since, name) in &removed {
        if !draft.remove(name) {
            if taken != *since {
                draft.removals = Reach::Upto(taken);
                return Ok(false);
            }
            draft.removed.push(name.clone());
        }
        taken = *since;
    }
    draft.removals = Reach::All;
    Ok(true)
}

/// Adds removals of resources that the client has by an alias and that no name subscribes to any more, as far as there
/// is room. With `defer`, a resource that no longer exists is deferred like any other removal. The rest is found again
/// with the next changes, and waits for other types as they do.
pub(super) fn add_orphans<S: Source>(subscription: &mut Subscription, source: &S, defer: bool, draft: &mut Draft) {
    let Subscription { resource_type, wanted, view, .. } = subscription;
    if view.aliases().is_empty() {
        return; // nearly always
    }
    let of = OfType::new(source, resource_type.type_url());
    let mut unsent = draft.has_only_answers() && view.aliases().has_unsent();
    let mut orphans = changes::orphans(of, wanted, view, draft);
    draft.removed.iter().for_each(|removed| _ = orphans.remove(removed));
    for name in &orphans {
        if defer && view.sent_to().is_some() && of.get(name).state == State::Absent {
            (draft.defers, unsent) = (true, true); // the positions may be beyond it
        } else {
            unsent |= !draft.remove(name);
        }
    }
    view.change_aliases(|aliases| aliases.set_unsent(unsent));
}

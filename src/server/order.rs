//! The order of the types on an aggregated stream ([design rule 11](crate::manual::rules#rule-11)): types that wait
//! for others, and dependent resources.

use alloc::vec::Vec;

use super::draft::{Changed, Draft};
use super::resource::Resource;
use super::source::Source;
use super::subscription::Subscription;
use super::variant::Protocol;
use crate::name::{ResourceName, TypeUrl};
use crate::resource_type::PushOrder;
use crate::time::Instant;

/// Returns whether there are unsent clusters: resources that refer to clusters then wait too, for a bounded time, unless
/// they are pending answers. Clusters that are not known wait for the source, and hold up nothing.
pub(super) fn has_unsent_clusters<S: Source>(types: &[Subscription], now: Instant, source: &S) -> bool {
    let is_asked = |of: &Subscription| match of.exchange.waits_until(now) {
        Some(_) => !of.pending.is_empty(),
        // Names of which nothing is known wait for the source as well.
        None => of.pending.has_wildcard() || of.pending.names().iter().any(|name| of.of(source).is_known(name)),
    };
    let unsent = |of: &Subscription| source.is_known(of.type_url()) && (is_asked(of) || of.has_change(source));
    types.iter().any(|of| of.resource_type.push_order() == PushOrder::Cluster && unsent(of))
}

/// Returns whether a resource that refers to clusters is unsent: its targets are not to be removed before it is sent.
#[inline]
pub(super) fn has_unsent_front<V: Protocol, S: Source>(types: &[Subscription], source: &S) -> bool {
    let unsent = |of: &Subscription| !of.pending.is_empty() || V::has_push(of, source);
    types.iter().any(|of| of.resource_type.push_order().refers_to_clusters() && unsent(of))
}

/// Makes the resources pending that a client needs again once it has received the draft (S-ADS-20): the endpoints of
/// the clusters that changed.
pub(super) fn refresh_dependents<S: Source>(
    types: &mut [Subscription],
    type_url: &TypeUrl,
    draft: &Draft,
    source: &S,
    limit: usize,
) {
    let Some(dependent_type) = source.dependent_type(type_url) else { return };
    let Some(dependents) = types.iter_mut().find(|other| other.type_url() == dependent_type) else { return };
    let mut refresh = |resource: &Resource| {
        let Some(name) = source.dependent(type_url, resource) else { return };
        let Some(dependent) = source.get(dependents.type_url(), &name).resource() else { return };
        let wanted = &dependents.wanted;
        let own = match wanted.names().get(&name) {
            Some(own) => Some(own.clone()),
            None => wanted.covers(name.as_str()).then_some(name),
        };
        let aliases = wanted.aliases_of(dependents.of(source), dependent).cloned();
        // All names of the resource become pending, because some may be unsubscribed.
        let names: Vec<ResourceName> = own.into_iter().chain(aliases).collect();
        names.into_iter().for_each(|name| dependents.ask_again(name, limit));
    };
    match &draft.changed {
        Changed::WhatIsSent => draft.sent().for_each(refresh), // a heartbeat changes nothing
        Changed::These(resources) => resources.iter().for_each(&mut refresh),
    }
}

//! The incremental variant. A request changes the subscribed names, and is honoured whatever its nonce; a response
//! has changed resources, answers to subscriptions, and removals.

mod answers;
mod pushes;

use alloc::collections::BTreeSet;
use alloc::sync::Arc;

use super::claims::Claims;
use super::config::{Limits, Settings};
use super::draft::{Draft, Order};
use super::encoding::{Encoding, Piece};
use super::errors::{self, Which};
use super::pending::Wildcard;
use super::size::Size;
use super::source::Source;
use super::subscription::{Subscription, SubscriptionChange};
use super::variant::{Protocol, Variant, check_name, check_names};
use super::view::Reach;
use crate::error::{PeerMisbehaved, Status};
use crate::message::delta::Request;
use crate::message::{Node, feature};
use crate::name::{Nonce, ResourceName, TypeUrl, Version, WILDCARD};
use crate::variant::Delta;
use crate::wire::{Element, Writer};

impl Variant for Delta {}

impl Encoding for Delta {
    const NUMBER: usize = 1;
    const CONTROL_PLANE: u8 = 7;
    const ERRORS: u8 = 9;

    #[inline(always)]
    fn put_page_element(element: &Element<'_>, to: &mut Writer<'_>) {
        element.put_delta(to);
    }

    fn element_len(_: bool, _: Piece<'_>, element: &Element<'_>) -> usize {
        element.delta_len()
    }

    fn put_element(_: bool, _: Piece<'_>, element: &Element<'_>, to: &mut Writer<'_>) {
        element.put_delta(to);
    }
}

impl Protocol for Delta {
    const NAMES_REMOVALS: bool = true;
    const ALIASES: bool = true;
    const ANSWERS_AT_ONCE: bool = true;

    fn node(request: &Request) -> Option<&Arc<Node>> {
        request.node.as_ref()
    }

    fn type_url(request: &mut Request) -> &mut TypeUrl {
        &mut request.type_url
    }

    fn take_answer(request: &mut Request) -> (Nonce, Option<Status>, Option<Version>) {
        (core::mem::take(&mut request.nonce), request.error.take(), None)
    }

    fn check(request: &mut Request, known: Option<&Subscription>, settings: &Settings) -> Result<Size, PeerMisbehaved> {
        if let Some(known) = known.filter(|_| says_nothing(request)) {
            return Ok(known.wanted.size()); // most requests: an ACK or NACK
        }
        let (type_url, limits) = (&request.type_url, &settings.limits);
        check_names(type_url, &request.subscribe, limits)?;
        check_names(type_url, &request.unsubscribe, limits)?;
        check_claims(request, limits)?;
        if settings.named_by_initial_versions && known.is_none() && !subscribes_to_all(request, settings) {
            let names = request.initial_versions.iter().map(|(name, _)| ResourceName::from(name));
            let unsubscribe: BTreeSet<&ResourceName> = request.unsubscribe.iter().collect();
            request.subscribe.extend(names.filter(|name| !unsubscribe.contains(name)));
        }
        let size = known.map_or(Size::default(), |known| known.wanted.size());
        let most = size + Size::of(&request.subscribe);
        if settings.limits.allow(most) {
            return Ok(most);
        }
        Ok(size_with(request, known))
    }

    fn initial_bytes(request: &Request) -> usize {
        request.initial_versions.sizes().text
    }

    fn apply_request(request: Request, to: &mut Subscription, first: bool, settings: &Settings) -> SubscriptionChange {
        let mut change = SubscriptionChange::default();
        if !first && says_nothing(&request) {
            return change;
        }
        let limit = settings.limits.names_per_type;
        let nothing = request.subscribe.is_empty() && request.unsubscribe.is_empty();
        // S-DELTA-36: for a name in both lists the unsubscription counts.
        let unsubscribe: BTreeSet<&ResourceName> = request.unsubscribe.iter().collect();
        if first && nothing && to.resource_type.has_legacy_wildcard() {
            to.subscribe_to_all(); // design rule 12
            change.wildcard = true;
        }
        for name in request.subscribe.into_iter().filter(|name| !unsubscribe.contains(name)) {
            if name.is_wildcard() {
                change.wildcard |= !to.wanted.wildcard();
                to.subscribe_to_all();
            } else if to.subscribe(name.clone(), limit) {
                change.added.push(name); // design rule 5: every subscription is answered, known or not
            }
        }
        for name in unsubscribe {
            to.pending.unclaim(name);
            if name.is_wildcard() {
                if to.wanted.wildcard() {
                    to.unsubscribe_from_all();
                    to.pending.set_reply(false);
                    change.wildcard = true;
                }
            } else if let Some(name) = to.unsubscribe(name.as_str()) {
                if to.wanted.covers(name.as_str()) && !name.is_glob() {
                    to.pending.set_new(true);
                    to.ask(name.clone(), limit); // S-DELTA-34: the client cannot tell whether the wildcard covers it
                }
                change.removed.push(name);
            }
        }
        if first {
            to.pending.set_claims(Claims::new(request.initial_versions));
        }
        change
    }

    /// Only an ACK or NACK of a response that is not in flight is stale: the nonce does not apply to the names of the
    /// request.
    fn is_stale(nonce: &Nonce, _: &Subscription) -> bool {
        !nonce.is_empty()
    }

    fn has_push<S: Source>(of: &Subscription, source: &S) -> bool {
        of.has_change(source) || of.has_removal(source) || of.has_orphan(source)
    }

    fn draft<S: Source>(of: &mut Subscription, source: &S, order: Order, draft: &mut Draft) -> Result<(), Status> {
        draft.budget = order.budget;
        let asked_for_all = matches!(of.pending.wildcard(), Wildcard::Asked | Wildcard::Claimed);
        if order.budget.is_limited() && !order.answers_only {
            pushes::add_left_out(of, source, draft);
        }
        let mut all = of.pending.is_empty() || answers::add(of, source, draft, order.names);
        let all_asked = asked_for_all && (draft.pages.is_some() || draft.claimed);
        let mut which = Which::Answered;
        // Changes and removals take turns if there is no room for both.
        let removals_first = of.pending.removals_first() && all && !all_asked && !order.answers_only;
        if removals_first {
            all = pushes::add_removals(of, source, order.defer_removals, draft)?;
            pushes::add_orphans(of, source, order.defer_removals, draft);
        }
        if all_asked {
            // The changes are part of the pages, now or in their turn.
            (draft.content, which) = (Reach::All, Which::All);
        } else if all && !order.answers_only {
            which = Which::News;
            all = pushes::add_changes(of, source, draft);
        }
        let pushes = which != Which::Answered;
        if all && pushes && !removals_first {
            all = pushes::add_removals(of, source, order.defer_removals && !all_asked, draft)?;
        }
        pushes::add_orphans(of, source, order.defer_removals && (removals_first || which == Which::News), draft);
        if which == Which::News || removals_first {
            let waits = !all || of.view.aliases().has_unsent();
            of.pending.set_removals_first(waits && !removals_first);
        }
        // A name may be removed for more than one of these reasons.
        draft.removed.sort();
        draft.removed.dedup();
        draft.errors = errors::errors(of.of(source), &of.wanted, &of.view, draft, which);
        draft.must_send |= !draft.is_empty();
        Ok(())
    }

    fn heartbeats_with_all(_: &Subscription) -> bool {
        false
    }

    fn version_of_heartbeats(_: &Subscription) -> Option<Version> {
        None
    }

    fn add_heartbeats<S: Source>(of: &mut Subscription, source: &S, draft: &mut Draft) {
        if of.resource_type.has_heartbeats() {
            of.add_heartbeats(source, false, draft);
        }
    }

    fn supports_ttl(node: &Node) -> bool {
        node.has_feature(feature::TTL)
    }
}

/// Returns whether a request changes no names; the wildcard counts as one.
fn says_nothing(request: &Request) -> bool {
    request.subscribe.is_empty() && request.unsubscribe.is_empty() && request.initial_versions.is_empty()
}

/// Returns whether the first request of a type subscribes to the wildcard.
fn subscribes_to_all(request: &Request, settings: &Settings) -> bool {
    let Request { type_url, subscribe, unsubscribe, .. } = request;
    let is = |names: &[ResourceName]| names.iter().any(ResourceName::is_wildcard);
    let nothing_said = subscribe.is_empty() && unsubscribe.is_empty();
    (nothing_said && settings.resource_type(type_url).has_legacy_wildcard()) || (is(subscribe) && !is(unsubscribe))
}

/// Checks the claims of a request, and leaves out the wildcard: no resource has this name, so it would be announced as
/// removed.
fn check_claims(request: &mut Request, limits: &Limits) -> Result<(), PeerMisbehaved> {
    let (type_url, claims) = (&request.type_url, &request.initial_versions);
    let (count, limit) = (claims.len(), limits.initial_versions);
    if count > limit {
        return Err(PeerMisbehaved::TooManyInitialVersions { type_url: type_url.clone(), count, limit });
    }
    let sizes = claims.sizes();
    let are_short = sizes.longest_name <= limits.name_bytes && sizes.longest_version <= limits.version_bytes;
    if are_short && sizes.shortest_name > WILDCARD.len() {
        return Ok(()); // most requests: all names and versions are of good lengths, and none is the wildcard
    }
    let mut has_wildcard = false;
    for (name, version) in claims {
        check_name(type_url, name.len(), limits)?;
        has_wildcard |= name == WILDCARD;
        let (len, limit) = (version.len(), limits.version_bytes);
        if len > limit {
            return Err(PeerMisbehaved::VersionTooLong { type_url: type_url.clone(), len, limit });
        }
    }
    if has_wildcard {
        request.initial_versions = claims.without(WILDCARD);
    }
    Ok(())
}

/// Returns the exact size of the type's names with a request: near a limit the new and the removed names are worth
/// counting. The sets avoid scanning a list for each name, which would take ten seconds for a request of 4 MiB.
fn size_with(request: &Request, known: Option<&Subscription>) -> Size {
    let is_known = |name: &ResourceName| known.is_some_and(|known| known.wanted.names().contains(name));
    let unsubscribe: BTreeSet<&ResourceName> = request.unsubscribe.iter().collect();
    let is_new = |name: &&ResourceName| !name.is_wildcard() && !unsubscribe.contains(name) && !is_known(name);
    let new: BTreeSet<_> = request.subscribe.iter().filter(is_new).collect();
    let size = known.map_or(Size::default(), |known| known.wanted.size());
    let removed = Size::of(unsubscribe.into_iter().filter(|name| is_known(name)));
    size - removed + Size::of(new)
}

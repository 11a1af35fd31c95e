//! The state-of-the-world variant. A request replaces the previous one; a response has all subscribed resources for a
//! full-state type, and only the news for a partial type.

mod whole;

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::changes;
use super::config::Settings;
use super::draft::{Draft, Order};
use super::encoding::{Encoding, Piece};
use super::errors::{self, Which};
use super::extent::Pages;
use super::of_type::OfType;
use super::parts::Part;
use super::resource::Resource;
use super::size::Size;
use super::source::Source;
use super::subscription::{Subscription, SubscriptionChange};
use super::variant::{Protocol, Variant, check_names};
use super::view::Reach;
use super::wanted::Wanted;
use crate::error::{PeerMisbehaved, Status};
use crate::message::sotw::Request;
use crate::message::{Node, feature};
use crate::name::{Nonce, ResourceName, TypeUrl, Version, WILDCARD};
use crate::variant::Sotw;
use crate::wire::{Element, Writer};

impl Variant for Sotw {}

impl Encoding for Sotw {
    const NUMBER: usize = 0;
    const CONTROL_PLANE: u8 = 6;
    const ERRORS: u8 = 7;

    fn put_page_element(element: &Element<'_>, to: &mut Writer<'_>) {
        element.put_sotw(to);
    }

    fn element_len(ttl: bool, piece: Piece<'_>, element: &Element<'_>) -> usize {
        if piece.is_wrapped(ttl) { element.wrapped_len() } else { element.sotw_len() }
    }

    fn put_element(ttl: bool, piece: Piece<'_>, element: &Element<'_>, to: &mut Writer<'_>) {
        if piece.is_wrapped(ttl) { element.put_wrapped(to) } else { element.put_sotw(to) }
    }
}

impl Protocol for Sotw {
    const NAMES_REMOVALS: bool = false;
    const ALIASES: bool = false;
    const ANSWERS_AT_ONCE: bool = false;

    fn node(request: &Request) -> Option<&Arc<Node>> {
        request.node.as_ref()
    }

    fn type_url(request: &mut Request) -> &mut TypeUrl {
        &mut request.type_url
    }

    fn take_answer(request: &mut Request) -> (Nonce, Option<Status>, Option<Version>) {
        (core::mem::take(&mut request.nonce), request.error.take(), Some(core::mem::take(&mut request.version)))
    }

    fn check(request: &mut Request, _: Option<&Subscription>, settings: &Settings) -> Result<Size, PeerMisbehaved> {
        check_names(&request.type_url, &request.names, &settings.limits)?;
        request.names.sort_unstable(); // in place: a request that changes nothing allocates nothing
        request.names.dedup();
        Ok(Size::of(request.names.iter().filter(|name| !name.is_wildcard())))
    }

    fn initial_bytes(_: &Request) -> usize {
        0
    }

    fn apply_request(request: Request, to: &mut Subscription, first: bool, settings: &Settings) -> SubscriptionChange {
        let (names, limit) = (request.names, settings.limits.names_per_type);
        // design rule 12: an empty list means the wildcard until the first name, and nothing after.
        let legacy = !to.wanted.note_named(!names.is_empty()) && to.resource_type.has_legacy_wildcard();
        let wildcard = legacy || names.binary_search_by(|name| name.as_str().cmp(WILDCARD)).is_ok();
        let was_wildcard = to.wanted.wildcard();
        let known_by_wildcard = was_wildcard && !wildcard && !to.pending.has_wildcard();
        let (added, removed) = differences(to.wanted.names(), names);
        for name in &removed {
            to.unsubscribe(name.as_str());
        }
        for name in &added {
            if known_by_wildcard {
                // S-SOTW-56: the client has it from the wildcard that subscribed to it until now.
                to.wanted.add(name.clone());
            } else {
                // S-SOTW-30: a name that was not subscribed is answered, changed or not.
                to.subscribe(name.clone(), limit);
            }
        }
        match (was_wildcard, wildcard) {
            (false, true) => to.subscribe_to_all(),
            (true, false) => to.unsubscribe_from_all(), // after the names: those that are pending stay pending
            _ => {}
        }
        if first && to.resource_type.is_full_state() && !to.wanted.is_empty() {
            to.pending.set_reply(true);
        }
        if to.wanted.is_empty() {
            // S-SOTW-36: a client may send no ACK or NACK for a type that it no longer subscribes to.
            to.exchange.abandon();
            to.pending.set_reply(false);
        }
        SubscriptionChange { added, removed, wildcard: was_wildcard != wildcard }
    }

    /// [design rule 4](crate::manual::rules#rule-4), the server's half: any nonce but the last is stale, except that
    /// a client may also send none while no response is in flight.
    fn is_stale(nonce: &Nonce, of: &Subscription) -> bool {
        nonce != of.exchange.nonce() && (of.exchange.is_out() || !nonce.is_empty())
    }

    fn has_push<S: Source>(of: &Subscription, source: &S) -> bool {
        of.has_change(source) || (of.resource_type.is_full_state() && of.has_removal(source))
    }

    fn draft<S: Source>(of: &mut Subscription, source: &S, order: Order, draft: &mut Draft) -> Result<(), Status> {
        let type_url = of.type_url().clone();
        let of_type = OfType::new(source, &type_url);
        let full_state = of.resource_type.is_full_state();
        let all_asked = of.pending.has_wildcard();
        // A response of a full-state type is never partial: changes are sent with it.
        let answers_only = order.answers_only && !full_state && !all_asked;
        draft.answered = of.pending.take_names();
        let mut changed = Vec::new();
        changes::each_change(of_type, &of.wanted, &of.view, |_, resource| changed.push(resource));
        if answers_only {
            draft.waits = changed.iter().any(|resource| !of.wanted.is_among(&draft.answered, resource));
            changed.clear();
        } else {
            changed.reverse(); // the oldest first
            (draft.content, draft.removals) = (Reach::All, Reach::All);
        }
        let which = match (answers_only, all_asked) {
            (true, _) => Which::Answered,
            (false, true) => Which::All,
            (false, false) => Which::News,
        };
        add_errors(of, source, which, draft);
        if full_state {
            whole::add(of, source, order, all_asked, &changed, draft);
        } else if all_asked {
            draft.parts = whole::all_wanted(of_type, &of.wanted);
            draft.pages = Some(Pages::ALL);
        } else {
            add_new(of_type, &of.wanted, &changed, draft);
        }
        of.pending.set_progress(None);
        errors::note_reported(of_type, &of.wanted, &mut of.view, &draft.errors, order.names)?;
        // S-SOTW-61: a partial type announces neither removals nor names that do not exist.
        draft.must_send |= !draft.is_empty();
        Ok(())
    }

    fn heartbeats_with_all(of: &Subscription) -> bool {
        of.resource_type.is_full_state()
    }

    /// A heartbeat has only the version of its response, which a client compares with the one that it accepted last
    /// (C-TTL-03). New content has another version and is sent separately. Beside an unanswered response the version is
    /// that of the response, and resources are sent with their content, because its verdict is not known.
    fn version_of_heartbeats(of: &Subscription) -> Option<Version> {
        let apart = !of.resource_type.is_full_state() && !of.pending.has_wildcard();
        of.exchange.version_out().or(of.heartbeat.accepted()).filter(|_| apart).cloned()
    }

    /// A full-state type sends everything: some clients take a heartbeat among resources for a removal, and all
    /// clients take a resource that is left out for one (S-TTL-06).
    fn add_heartbeats<S: Source>(of: &mut Subscription, source: &S, draft: &mut Draft) {
        if of.resource_type.is_full_state() && draft.parts.is_empty() {
            whole::add_heartbeats(of.of(source), &of.wanted, &of.view, draft);
        }
    }

    fn supports_ttl(node: &Node) -> bool {
        node.has_feature(feature::TTL) && feature::WRAPPER.iter().any(|wrapper| node.has_feature(wrapper))
    }
}

/// Returns the names of a list that are new, and the known names that are missing from it. Both lists are sorted, so
/// one pass suffices.
fn differences(known: &BTreeSet<ResourceName>, names: Vec<ResourceName>) -> (Vec<ResourceName>, Vec<ResourceName>) {
    let (mut added, mut removed) = (Vec::new(), Vec::new());
    let mut names = names.into_iter().filter(|name| !name.is_wildcard()).peekable();
    for known in known {
        while let Some(new) = names.next_if(|name| name < known) {
            added.push(new);
        }
        if names.next_if(|name| name == known).is_none() {
            removed.push(known.clone());
        }
    }
    added.extend(names);
    (added, removed)
}

/// Adds the errors that are news, and NOT_FOUND for absent names whose last sent state was an error.
fn add_errors<S: Source>(of: &mut Subscription, source: &S, which: Which, draft: &mut Draft) {
    let Subscription { resource_type, wanted, view, .. } = of;
    let of = OfType::new(source, resource_type.type_url());
    draft.errors = errors::errors(of, wanted, view, draft, which);
    let ended = errors::ended(of, wanted, view, &draft.answered, which != Which::Answered);
    if !ended.is_empty() {
        let reported = draft.errors.drain(..).map(|error| error.name);
        draft.errors = errors::named(of, reported.chain(ended).collect());
    }
}

/// Adds the answers to names, and all other changes.
fn add_new<S: Source>(of: OfType<'_, S>, wanted: &Wanted, changed: &[&Resource], draft: &mut Draft) {
    whole::named(of, wanted, &draft.answered).into_iter().for_each(|resource| draft.push(resource));
    draft.answers = draft.parts.len();
    for resource in changed.iter().filter(|resource| !wanted.is_among(&draft.answered, resource)) {
        draft.parts.push(Part::One((*resource).clone()));
    }
}

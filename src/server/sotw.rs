//! The state-of-the-world variant. A request replaces the one before; a response of a full-state type has all that is
//! wanted, one of a partial type what is new.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::config::Settings;
use super::parts::{Part, Parts};
use super::resource::Resource;
use super::response::Piece;
use super::source::{Source, State};
use super::subscription::{Changed, Draft, Heard, Subscription};
use super::variant::{Behind, Order, Protocol, Size, Variant, check_names};
use crate::error::{PeerMisbehaved, Status};
use crate::message::sotw::Request;
use crate::message::{Node, feature};
use crate::name::{Nonce, ResourceName, TypeUrl, Version, WILDCARD};
use crate::variant::Sotw;
use crate::wire::{Element, Writer};

impl Variant for Sotw {}

impl Protocol for Sotw {
    type Request = Request;

    const NUMBER: usize = 0;
    const NAMES_REMOVALS: bool = false;
    const CONTROL_PLANE: u8 = 6;
    const ERRORS: u8 = 7;
    const ALIASES: bool = false;

    fn node(request: &Request) -> Option<&Arc<Node>> {
        request.node.as_ref()
    }

    fn type_url(request: &mut Request) -> &mut TypeUrl {
        &mut request.type_url
    }

    fn take_answer(request: &mut Request) -> (Nonce, Option<Status>) {
        (core::mem::take(&mut request.nonce), request.error.take())
    }

    fn check(request: &mut Request, known: Option<&Subscription>, settings: &Settings) -> Result<Size, PeerMisbehaved> {
        check_names(&request.type_url, &request.names, &settings.limits)?;
        request.names.sort_unstable(); // in place: a request that changes nothing allocates nothing
        request.names.dedup();
        let names = &request.names;
        let leaving =
            known.filter(|known| known.interest.stands_for_many()).into_iter().flat_map(Subscription::lingering);
        let leaving = leaving.filter(|name| names.binary_search(name).is_err());
        Ok(Size::of(names.iter().filter(|name| !name.is_wildcard()).chain(leaving)))
    }

    fn initial_bytes(_: &Request) -> usize {
        0
    }

    fn hear(request: Request, to: &mut Subscription, first: bool) -> Heard {
        let mut heard = Heard::default();
        let names = request.names;
        // DESIGN rule 12: an empty list means everything until the first name, and nothing after.
        to.explicit |= !names.is_empty();
        let legacy = !to.explicit && to.kind.has_legacy_wildcard();
        let wildcard = legacy || names.binary_search_by(|name| name.as_str().cmp(WILDCARD)).is_ok();
        let was_wildcard = to.interest.wildcard;
        let known_by_wildcard = was_wildcard && !wildcard && !to.sweep;
        heard.turned = was_wildcard != wildcard;

        // Both lists are in order: one pass finds what is new and what is not there any more.
        let mut wanted = names.into_iter().filter(|name| !name.is_wildcard()).peekable();
        for known in &to.interest.names {
            while let Some(new) = wanted.next_if(|name| name < known) {
                heard.added.push(new);
            }
            if wanted.next_if(|name| name == known).is_none() {
                heard.removed.push(known.clone());
            }
        }
        heard.added.extend(wanted);
        for name in &heard.removed {
            to.remove_name(name.as_str());
        }
        for name in &heard.added {
            to.add_name(name.clone());
            // S-SOTW-30: a name that was not wanted before is answered, changed or not. (S-SOTW-56: one that was
            // wanted by the wildcard just now has been.)
            if !known_by_wildcard {
                to.owed.insert(name.clone());
            }
        }
        match (was_wildcard, wildcard) {
            (false, true) => to.add_wildcard(),
            (true, false) => to.remove_wildcard(), // after the names: what is owed of them stays owed
            _ => {}
        }
        if first {
            to.answer |= to.kind.is_full_state() && !to.interest.is_empty();
        }
        if to.interest.is_empty() {
            // S-SOTW-36: a client may not answer for a type that it has left.
            to.late = to.out.take().or(to.late.take());
            to.answer = false;
        }
        heard
    }

    /// DESIGN rule 4, the server's half: anything but the last nonce, though while no response is out a client may
    /// also send none.
    fn is_stale(nonce: &Nonce, of: &Subscription) -> bool {
        *nonce != of.nonce && (of.out.is_some() || !nonce.is_empty())
    }

    fn has_push<S: Source>(of: &Subscription, source: &S) -> bool {
        of.has_change(source) || (of.kind.is_full_state() && of.has_removal(source))
    }

    fn draft<S: Source>(of: &mut Subscription, source: &S, order: Order, draft: &mut Draft) -> Result<(), Behind> {
        // A full-state type has no part of an answer: what changed comes with it.
        let answers_only = order.answers_only && !of.kind.is_full_state() && !of.sweep;
        draft.behind = answers_only;
        let owed = core::mem::take(&mut of.owed);
        draft.errors = of.new_errors(source, Some(&owed), draft);
        of.add_endings(source, &owed, draft);
        let mut changed = Vec::new();
        if !answers_only {
            of.each_change(source, |_, resource| changed.push(resource));
            changed.reverse(); // the oldest first
        }
        if of.kind.is_full_state() {
            // S-SOTW-60: any change of what is wanted sends all that is wanted. So does a new name, even if it does not
            // exist: the client may have it still from before it was last unwanted.
            let holds = order.hold_removals || of.kept.is_some();
            let (kept, goes) = if holds { keep(of, source, order, &owed) } else { (Vec::new(), false) };
            draft.held = !kept.is_empty();
            draft.send |= of.sweep || !changed.is_empty() || !owed.is_empty() || goes;
            draft.send = draft.send || !draft.errors.is_empty() || (!holds && of.has_removal(source));
            if draft.send {
                draft.whole = true;
                // Some clients take absence for a removal, whatever they were told before.
                of.add_standing_errors(source, &kept, draft);
                draft.parts = all_wanted(of, source);
                draft.parts.extend(kept.iter().cloned().map(Part::One));
                if of.cursor.is_some() && !of.sweep {
                    let owed = named(of, source, &owed);
                    draft.changed = Changed::These(owed.into_iter().chain(changed).cloned().collect());
                }
            }
            of.kept = (!kept.is_empty()).then(|| Box::new(kept));
        } else if of.sweep {
            draft.parts = all_wanted(of, source);
        } else {
            let answers = named(of, source, &owed);
            answers.iter().for_each(|resource| draft.push(resource));
            let by_glob =
                |name: &ResourceName| of.interest.globs.of(name.as_str()).is_some_and(|glob| owed.contains(glob));
            for resource in changed {
                if !owed.contains(resource.name()) && !by_glob(resource.name()) {
                    draft.push(resource);
                }
            }
        }
        of.note_errors(source, draft, order.names);
        // S-SOTW-61: of a partial type a removal is silence, and so is a name that does not exist.
        draft.send |= !draft.is_empty();
        draft.answered = (!owed.is_empty()).then_some(owed);
        Ok(())
    }

    fn beats_with_all(of: &Subscription) -> bool {
        of.kind.is_full_state()
    }

    /// A heartbeat has no version but that of its response, which a client compares with what it accepted last (C-TTL-03).
    /// New content has another: it goes apart.
    fn version_of_beats(of: &Subscription) -> Option<Version> {
        Some(of.accepted.clone()).filter(|accepted| !of.kind.is_full_state() && !of.sweep && !accepted.is_empty())
    }

    /// Of a full-state type everything is sent: a heartbeat among resources reads as a removal to some clients, and a
    /// resource that is left out as one to all (S-TTL-06).
    fn add_heartbeats<S: Source>(of: &Subscription, source: &S, draft: &mut Draft) {
        if of.kind.is_full_state() && draft.parts.is_empty() && of.expiring(source).next().is_some() {
            of.add_standing_errors(source, of.kept.as_deref().map_or(&[], Vec::as_slice), draft);
            draft.parts = all_wanted(of, source);
            draft.parts.extend(of.kept.iter().flat_map(|kept| kept.iter()).cloned().map(Part::One));
            draft.send = true;
            draft.changed = Changed::These(Vec::new());
        }
    }

    fn supports_ttl(node: &Node) -> bool {
        node.has_feature(feature::TTL) && feature::WRAPPER.iter().any(|wrapper| node.has_feature(wrapper))
    }

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

/// What is gone and stays until what refers to it has gone too: as the client has it, and nothing of what it asks for
/// just now. And whether something else goes.
fn keep(of: &Subscription, source: &impl Source, order: Order, owed: &BTreeSet<ResourceName>) -> (Vec<Resource>, bool) {
    let Some(cursor) = of.cursor.filter(|_| !of.sweep) else { return (Vec::new(), false) };
    let Ok(gone) = of.removals(source) else { return (Vec::new(), true) };
    let goes = |name: &ResourceName| {
        let absent = || source.get(of.type_url(), name.as_str()).state == State::Absent;
        of.interest.covers(name.as_str()) && !owed.contains(name) && absent()
    };
    let mut kept: Vec<Resource> = of.kept.iter().flat_map(|kept| kept.iter()).cloned().collect();
    kept.retain(|resource| goes(resource.name()));
    let new = gone.iter().map(|(_, name)| name).filter(|name| goes(name));
    let new: Vec<&ResourceName> = new.filter(|name| kept.iter().all(|old| old.name() != *name)).collect();
    let all = kept.len() + new.len();
    if order.hold_removals {
        let former = |name: &ResourceName| source.was(of.type_url(), name.as_str(), cursor).cloned();
        kept.extend(new.into_iter().filter_map(former));
    } else {
        kept.clear();
    }
    let goes = kept.len() < all;
    (kept, goes)
}

fn all_wanted(of: &Subscription, source: &impl Source) -> Parts {
    if of.interest.wildcard {
        let pages = source.pages(of.type_url()).filter(|page| !page.resources().is_empty());
        return pages.map(Part::Page).collect();
    }
    named(of, source, &of.interest.names).into_iter().cloned().map(Part::One).collect()
}

/// The resources that these names stand for, each once.
fn named<'s, S: Source>(of: &Subscription, source: &'s S, names: &BTreeSet<ResourceName>) -> Vec<&'s Resource> {
    let mut all: Vec<_> = names.iter().filter_map(|name| of.get(source, name).resource()).collect();
    if !of.interest.globs.is_empty() {
        for glob in names.iter().filter(|name| name.is_glob()) {
            let members = source.members(of.type_url(), glob.as_str()).filter_map(|entry| entry.resource());
            all.extend(members.filter(|member| !names.contains(member.name())));
        }
    }
    all
}

//! The incremental variant. A request says what changed in what is wanted, and is honoured whatever its nonce; a
//! response has what changed, what was subscribed to, and what is gone.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::config::Settings;
use super::parts::Part;
use super::portion::Progress;
use super::resource::Resource;
use super::response::Piece;
use super::source::{Entry, Revision, Source, State};
use super::subscription::{Draft, Heard, Initial, Subscription};
use super::variant::{Behind, Order, Protocol, Size, Variant, check_names};
use crate::error::{PeerMisbehaved, Status};
use crate::message::delta::Request;
use crate::message::{Node, feature};
use crate::name::{Nonce, ResourceName, TypeUrl, Version, WILDCARD};
use crate::variant::Delta;
use crate::wire::{Element, Writer};
use crate::xdstp::{Globs, Parts};

impl Variant for Delta {}

impl Protocol for Delta {
    type Request = Request;

    const NUMBER: usize = 1;
    const NAMES_REMOVALS: bool = true;
    const CONTROL_PLANE: u8 = 7;
    const ERRORS: u8 = 9;
    const ALIASES: bool = true;

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
        if let Some(known) = known.filter(|_| says_nothing(request)) {
            return Ok(known.size()); // most requests: a verdict
        }
        let (type_url, limits) = (&request.type_url, &settings.limits);
        check_names(type_url, &request.subscribe, limits)?;
        check_names(type_url, &request.unsubscribe, limits)?;
        let (count, limit) = (request.initial_versions.len(), limits.initial_versions);
        if count > limit {
            return Err(PeerMisbehaved::TooManyInitialVersions { type_url: type_url.clone(), count, limit });
        }
        request.initial_versions.remove(WILDCARD); // no resource has this name, so it would be said to be gone
        check_names(type_url, request.initial_versions.keys(), limits)?;
        for version in request.initial_versions.values() {
            let (len, limit) = (version.as_str().len(), limits.version_bytes);
            if len > limit {
                return Err(PeerMisbehaved::VersionTooLong { type_url: type_url.clone(), len, limit });
            }
        }
        if settings.named_by_initial_versions && known.is_none() && !wants_everything(request, settings) {
            let named = request.initial_versions.keys().filter(|name| !request.unsubscribe.contains(name));
            request.subscribe.extend(named.cloned());
        }
        let size = known.map_or(Size::default(), Subscription::size);
        let most = size + Size::of(&request.subscribe);
        if settings.limits.allow(most) {
            return Ok(most);
        }
        // Near a limit it is worth the work to count what is really new. Not by looking through a list for each name:
        // that would take ten seconds for a request of 4 MiB.
        let unsubscribe: BTreeSet<&ResourceName> = request.unsubscribe.iter().collect();
        let is_new = |name: &&ResourceName| {
            !name.is_wildcard()
                && !unsubscribe.contains(name)
                && !known.is_some_and(|known| known.interest.names.contains(name.as_str()))
        };
        let new: BTreeSet<_> = request.subscribe.iter().filter(is_new).collect();
        Ok(size + Size::of(new.iter().copied()))
    }

    fn initial_bytes(request: &Request) -> usize {
        Initial::bytes(&request.initial_versions)
    }

    fn hear(request: Request, to: &mut Subscription, first: bool) -> Heard {
        let mut heard = Heard::default();
        if !first && says_nothing(&request) {
            return heard;
        }
        if first && !request.initial_versions.is_empty() {
            to.initial = Some(Box::new(Initial { versions: request.initial_versions, ..Initial::default() }));
        }
        if first && request.subscribe.is_empty() && request.unsubscribe.is_empty() && to.kind.has_legacy_wildcard() {
            to.add_wildcard(); // DESIGN rule 12
            heard.turned = true;
        }
        // S-DELTA-36: of a name in both lists the unsubscription counts.
        let unsubscribe: BTreeSet<&ResourceName> = request.unsubscribe.iter().collect();
        for name in request.subscribe {
            if unsubscribe.contains(&name) {
                continue;
            }
            if let Some(initial) = to.initial.as_deref_mut().filter(|_| !first) {
                initial.doubt(&name);
            }
            if name.is_wildcard() {
                heard.turned |= !to.interest.wildcard;
                to.add_wildcard();
            } else {
                if to.add_name(name.clone()) {
                    heard.added.push(name.clone());
                }
                to.owed.insert(name); // DESIGN rule 5: every subscription is answered, known or not
            }
        }
        for name in unsubscribe {
            if let Some(initial) = to.initial.as_deref_mut().filter(|_| !first) {
                initial.doubt(name);
            }
            if name.is_wildcard() {
                if to.interest.wildcard {
                    to.note_left();
                    to.remove_wildcard();
                    to.answer = false;
                    heard.turned = true;
                }
            } else if let Some(name) = to.remove_name(name.as_str()) {
                to.note_left();
                if to.interest.covers(name.as_str()) && !name.is_glob() {
                    to.owe_leaving(name.clone()); // S-DELTA-34: the client can't tell whether the wildcard has it
                }
                heard.removed.push(name);
            }
        }
        heard
    }

    /// Only an answer to something else than the last response: the nonce of a request says nothing about its names.
    fn is_stale(nonce: &Nonce, of: &Subscription) -> bool {
        !nonce.is_empty() && (of.out.is_none() || *nonce != of.nonce)
    }

    fn has_push<S: Source>(of: &Subscription, source: &S) -> bool {
        of.has_change(source) || of.has_removal(source)
    }

    fn draft<S: Source>(of: &mut Subscription, source: &S, order: Order, draft: &mut Draft) -> Result<(), Behind> {
        draft.room = order.room;
        draft.behind = order.answers_only && !of.sweep;
        if of.owed.is_empty() && !of.sweep && of.initial.is_none() {
            // What most responses are: something changed.
            if !draft.behind {
                add_changes(of, source, &NOTHING_OWED, draft);
                add_removals(of, source, order, &NOTHING_OWED, draft)?;
            }
        } else {
            draft.answered = Some(answer(of, source, order, draft)?);
        }
        // A name may be gone for more than one of these reasons.
        draft.removed.sort();
        draft.removed.dedup();
        draft.errors = of.new_errors(source, draft.answered.as_ref(), draft);
        if let Some(initial) = &mut of.initial {
            initial.replace(of.kind.type_url(), source, draft); // the rest of the answer goes by what the client will have
        }
        draft.send |= !draft.is_empty();
        Ok(())
    }

    fn beats_with_all(_: &Subscription) -> bool {
        false
    }

    fn version_of_beats(_: &Subscription) -> Option<Version> {
        None
    }

    fn add_heartbeats<S: Source>(of: &Subscription, source: &S, draft: &mut Draft) {
        if of.kind.has_heartbeats() {
            draft.add_heartbeats(of, source);
        }
    }

    fn supports_ttl(node: &Node) -> bool {
        node.has_feature(feature::TTL)
    }

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

impl Subscription {
    /// Of a type with heartbeats a name is simply removed. Of another, something without content says so, but not of what
    /// the client may hold.
    fn how_to_say_nowhere(&self, name: &ResourceName, entry: &Entry<'_>, initial: Option<&Initial>) -> Nowhere {
        if self.kind.has_heartbeats() || self.is_gone(name, entry) {
            return Nowhere::Removed;
        }
        match initial.and_then(|initial| initial.versions.get(name)) {
            Some(version) if *version == Resource::nowhere_version() => Nowhere::Known,
            Some(_) => Nowhere::Removed,
            None => Nowhere::Stub,
        }
    }

    /// The names that the client had and that nothing wanted, of what is wanted now by a collection.
    fn take_unheard(&mut self, owed: &Owed) -> BTreeSet<ResourceName> {
        let Some(names) = &mut self.unheard else { return BTreeSet::new() };
        let wanted: BTreeSet<_> = names.iter().filter(|name| owed.globs.cover(name.as_str())).cloned().collect();
        names.retain(|name| !wanted.contains(name));
        wanted
    }

    /// The bytes of what the client said that it has, as far as it is kept.
    pub(super) fn initial_bytes(&self) -> usize {
        let unheard = self.unheard.iter().flat_map(|names| names.iter()).map(|name| name.as_str().len());
        self.initial.as_ref().map_or(0, |initial| Initial::bytes(&initial.versions)) + unheard.sum::<usize>()
    }
}

/// Whether a request says nothing of names, the wildcard among them.
fn says_nothing(request: &Request) -> bool {
    request.subscribe.is_empty() && request.unsubscribe.is_empty() && request.initial_versions.is_empty()
}

/// Answers what is owed, and adds what changed besides, as far as there is room. Returns the names that were answered.
fn answer<S: Source>(
    of: &mut Subscription,
    source: &S,
    order: Order,
    draft: &mut Draft,
) -> Result<BTreeSet<ResourceName>, Behind> {
    let (begun, mut initial) = (of.progress.take(), of.initial.take());
    draft.resumed = begun.is_some();
    let mut owed = Owed::take(of);
    let rest = answer_names(of, source, initial.as_deref(), &mut owed, draft);
    if owed.names.len() > of.interest.names.len() / 2 && owed.names.len() > 64 {
        of.pack_names();
    }
    draft.names_left = !rest.is_empty();
    if draft.names_left {
        of.owed = rest;
        (of.progress, of.initial) = (begun, initial);
    } else if of.sweep {
        of.progress = sweep(of, source, initial.as_deref_mut(), &owed, begun, draft).map(Box::new);
        of.initial = initial.filter(|_| of.progress.is_some());
    } else {
        of.unheard = initial.as_ref().and_then(|initial| initial.unheard(of)).or(of.unheard.take());
        if !draft.behind {
            add_changes(of, source, &owed, draft);
        }
    }
    if !draft.behind && !draft.names_left && !draft.resumed {
        add_removals(of, source, order, &owed, draft)?;
    } else if !owed.globs.is_empty() {
        of.removed_to = of.left.map_or(of.removed_to, |left| left.min(of.removed_to)); // to be told when there is room
    }
    Ok(owed.names)
}

/// Answers what is owed by name, as far as there is room. Returns the names that are owed still.
fn answer_names<S: Source>(
    of: &mut Subscription,
    source: &S,
    initial: Option<&Initial>,
    owed: &mut Owed,
    draft: &mut Draft,
) -> BTreeSet<ResourceName> {
    let type_url = of.type_url().clone();
    // The pages have what is there, unless some of them went before.
    let swept = of.sweep && initial.is_none() && !draft.resumed;
    let is_new = |resource: &Resource| {
        !swept && !initial.is_some_and(|initial| initial.has(resource.name(), resource.version()))
    };
    let mut no_room_for = None;
    for name in &owed.names {
        let entry = source.get(&type_url, name.as_str());
        let fits = match entry.state {
            State::Present(resource) if resource.name() == name => {
                of.share_name(resource.name());
                !is_new(resource) || draft.add(&type_url, resource)
            }
            State::Present(resource) => {
                // By an alias (S-DELTA-42): once, whatever other names it is wanted by, but also if the client has it:
                // it may not know yet that it is what the alias stands for.
                let others = owed.names.contains(resource.name()) || owed.globs.cover(resource.name().as_str());
                let comes = swept || (others && is_new(resource)) || owed.by_alias.contains(resource.name());
                let fits = comes || draft.add(&type_url, resource);
                if fits {
                    owed.by_alias.insert(resource.name().clone());
                }
                fits
            }
            State::Absent if name.is_glob() && !owed.globs.is_empty() => true,
            State::Absent => match of.how_to_say_nowhere(name, &entry, initial) {
                Nowhere::Removed => draft.remove(name),
                Nowhere::Stub => draft.add_part(&type_url, Part::Nowhere(Resource::nowhere(name.clone()))),
                Nowhere::Known => true,
            },
            State::Unknown => true,
        };
        if !fits {
            no_room_for = Some(name.clone());
            break;
        }
        let own = matches!(entry.state, State::Present(resource) if resource.name() == name);
        if !own && entry.state != State::Unknown {
            draft.removed.extend(of.strays(source, name, Revision::default()).cloned());
        }
    }
    if let Some(name) = no_room_for {
        let mut rest = owed.names.split_off(&name);
        for glob in owed.globs.iter() {
            owed.names.remove(glob);
            rest.insert(glob.clone());
        }
        return rest;
    }
    answer_collections(of, source, initial, owed, &is_new, draft)
}

/// What there is no room for is owed by the names of the members.
fn answer_collections<S: Source>(
    of: &mut Subscription,
    source: &S,
    initial: Option<&Initial>,
    owed: &Owed,
    is_new: &dyn Fn(&Resource) -> bool,
    draft: &mut Draft,
) -> BTreeSet<ResourceName> {
    let (type_url, mut rest) = (of.type_url().clone(), BTreeSet::new());
    if owed.globs.is_empty() {
        return rest;
    }
    for glob in owed.globs.iter() {
        let mut members = source.members(&type_url, glob.as_str()).peekable();
        if members.peek().is_none() && !draft.remove(glob) {
            rest.insert(glob.clone()); // S-DELTA-45, with the next portion
        }
        let resources = members.filter_map(|entry| entry.resource());
        for member in resources.filter(|member| !owed.names.contains(member.name()) && is_new(member)) {
            if !draft.add(&type_url, member) {
                rest.insert(member.name().clone());
            }
        }
    }
    // What the client has by a collection, and is gone.
    let had = initial.filter(|_| !of.sweep).into_iter().flat_map(|initial| initial.versions.keys());
    let had = had.filter(|name| owed.globs.cover(name.as_str()));
    let unheard = of.take_unheard(owed);
    for name in unheard.iter().chain(had) {
        let absent = source.get(&type_url, name.as_str()).state == State::Absent;
        if absent && !owed.names.contains(name) && !draft.remove(name) {
            rest.insert(name.clone());
        }
    }
    rest
}

/// Whether the first request of a type is for everything.
fn wants_everything(request: &Request, settings: &Settings) -> bool {
    let Request { type_url, subscribe, unsubscribe, .. } = request;
    let is = |names: &[ResourceName]| names.iter().any(ResourceName::is_wildcard);
    let nothing_said = subscribe.is_empty() && unsubscribe.is_empty();
    (nothing_said && settings.kind(type_url).has_legacy_wildcard()) || (is(subscribe) && !is(unsubscribe))
}

/// Adds all that the wildcard has, as far as there is room. Returns where to go on.
fn sweep<S: Source>(
    of: &mut Subscription,
    source: &S,
    initial: Option<&mut Initial>,
    owed: &Owed,
    begun: Option<Box<Progress>>,
    draft: &mut Draft,
) -> Option<Progress> {
    // What is owed is in the response already, if it is not left to the pages.
    let owed_apart = begun.is_some() || initial.is_some();
    let Progress { page: first, mut after } = begun.map_or_else(Progress::default, |begun| *begun);
    for (number, page) in source.pages(of.type_url()).enumerate().skip(first) {
        let is_new = |resource: &&Resource| {
            let name = resource.name();
            // S-DELTA-06: what the client has is not sent.
            let had = initial.as_ref().is_some_and(|initial| initial.has_by_wildcard(name, resource.version()));
            let goes_apart = owed_apart && owed.has(name);
            !had && !goes_apart && after.as_ref().is_none_or(|after| after < name)
        };
        let count = page.resources().len();
        let plain = initial.is_none() && after.is_none();
        let whole = plain && (!owed_apart || owed.names.is_empty() || page.resources().iter().all(|one| is_new(&one)));
        if count == 0 || (whole && draft.room.take(count, || page.delta_len(of.type_url()))) {
            draft.parts.extend((count > 0).then_some(Part::Page(page)));
            continue;
        }
        let mut new: Vec<&Resource> = page.resources().iter().filter(is_new).collect();
        if draft.room.is_limited() {
            new.sort_unstable_by(|a, b| a.name().cmp(b.name()));
        }
        let mut last = None;
        for resource in new {
            if !draft.add(of.type_url(), resource) {
                return Some(Progress { page: number, after: last.or(after) });
            }
            last = Some(resource.name().clone());
        }
        after = None;
    }
    // S-DELTA-06: what it has and is gone is removed. So is what it had when nobody wanted it.
    let mut no_room_for = |names: &mut dyn Iterator<Item = &ResourceName>| {
        let gone = |name: &&ResourceName| {
            !owed.names.contains(*name) && source.get(of.kind.type_url(), name.as_str()).state == State::Absent
        };
        names.filter(gone).find(|name| !draft.remove(name)).cloned()
    };
    let pages_are_done = Progress { page: usize::MAX, after: None };
    if let Some(initial) = initial {
        if let Some(name) = no_room_for(&mut initial.versions.keys()) {
            initial.versions = initial.versions.split_off(&name);
            return Some(pages_are_done);
        }
        initial.versions.clear();
    }
    if let Some(mut unheard) = of.unheard.take() {
        if let Some(name) = no_room_for(&mut unheard.iter()) {
            *unheard = unheard.split_off(&name);
            of.unheard = Some(unheard);
            return Some(pages_are_done);
        }
    }
    None
}

/// Adds what changed, the oldest first, as far as there is room.
fn add_changes<S: Source>(of: &Subscription, source: &S, owed: &Owed, draft: &mut Draft) {
    if !draft.room.is_limited() {
        // No list of what may not fit.
        let before = draft.parts.len();
        of.each_change(source, |_, resource| {
            if !owed.has(resource.name()) {
                draft.push(resource);
                if !resource.aliases().is_empty() {
                    draft.removed.extend(of.strays_for(source, resource).cloned());
                }
            }
        });
        draft.parts[before..].reverse();
        return;
    }
    let mut changes = Vec::new();
    of.each_change(source, |since, resource| {
        if !owed.has(resource.name()) {
            changes.push((since, resource));
        }
    });
    changes.reverse();
    changes.sort_by_key(|&(since, _)| since);
    let mut taken = of.cursor;
    for (since, resource) in changes {
        if !draft.add(of.type_url(), resource) {
            if taken != Some(since) {
                draft.cursor = taken;
                return;
            }
            draft.push(resource); // a source that has two changes at one revision: both or none
        }
        draft.removed.extend(of.strays_for(source, resource).cloned());
        taken = Some(since);
    }
    draft.more = false;
}

/// Adds what is gone: what the client was served, or may have taken. The longest gone first, as far as there is room.
fn add_removals<S: Source>(
    of: &mut Subscription,
    source: &S,
    order: Order,
    owed: &Owed,
    draft: &mut Draft,
) -> Result<(), Behind> {
    if of.cursor.is_none() {
        return Ok(());
    }
    let by_names = !of.interest.wildcard && of.interest.globs.is_empty();
    if by_names && of.aliases && source.removals(of.type_url(), of.removed_to).is_none() {
        of.note_left(); // what an alias stood for may be forgotten, and with the client
    }
    let left = of.left.filter(|_| of.sweep || !owed.globs.is_empty());
    let mut taken = left.map_or(of.removed_to, |left| left.min(of.removed_to));
    if draft.more {
        draft.removed_to = Some(taken);
        return Ok(());
    }
    let mut removed = if of.sweep && left.is_some() { Vec::new() } else { of.removals(source)? };
    if let Some(left) = left {
        // DESIGN rule 5: whatever went since the client first left may have crossed on the wire with what it took.
        let gone = source.removals(of.type_url(), left).ok_or(Behind)?;
        let wanted = |name: &ResourceName| of.sweep || owed.globs.cover(name.as_str());
        let gone = gone.filter(|(name, _)| wanted(name) && of.may_have_held(source, name));
        removed.extend(gone.map(|(name, entry)| (entry.since, name.clone())));
    }
    if removed.is_empty() {
        return Ok(());
    }
    removed.retain(|(_, name)| !owed.names.contains(name));
    if order.hold_removals && !of.sweep {
        draft.held = !removed.is_empty();
        of.removed_to = taken;
        return Ok(());
    }
    if draft.room.is_limited() {
        removed.sort();
    }
    for (since, name) in &removed {
        if !draft.remove(name) {
            if taken != *since {
                draft.removed_to = Some(taken);
                return Ok(());
            }
            draft.removed.push(name.clone());
        }
        draft.removed.extend(of.strays(source, name, Revision::default()).cloned());
        taken = *since;
    }
    draft.more = false;
    Ok(())
}

/// How a name that does not exist is answered.
enum Nowhere {
    Removed,
    /// As an alias of nothing (S-DELTA-43).
    Stub,
    /// The client has heard it before.
    Known,
}

/// What is to be answered, changed or not.
struct Owed {
    names: BTreeSet<ResourceName>,
    /// Those of the names that stand for collections.
    globs: Globs,
    /// Names of resources that aliases among the names stand for.
    by_alias: BTreeSet<ResourceName>,
}

/// For who is owed nothing: made once, for to drop three empty trees takes time.
static NOTHING_OWED: Owed = Owed { names: BTreeSet::new(), globs: Globs::NONE, by_alias: BTreeSet::new() };

impl Owed {
    fn take(of: &mut Subscription) -> Self {
        let (names, mut globs) = (core::mem::take(&mut of.owed), Globs::default());
        if !of.interest.globs.is_empty() {
            names.iter().for_each(|name| _ = globs.insert(name));
        }
        Self { names, globs, by_alias: BTreeSet::new() }
    }

    /// Whether a resource of this name comes with the answer.
    fn has(&self, name: &ResourceName) -> bool {
        !self.names.is_empty()
            && (self.names.contains(name) || self.globs.cover(name.as_str()) || self.by_alias.contains(name))
    }
}

impl Initial {
    /// The names that are not wanted (any more).
    #[allow(clippy::box_collection)] // as it is kept
    fn unheard(&self, of: &Subscription) -> Option<Box<BTreeSet<ResourceName>>> {
        let names: BTreeSet<_> =
            self.versions.keys().filter(|name| !of.interest.covers(name.as_str())).cloned().collect();
        (!names.is_empty()).then(|| Box::new(names))
    }

    /// The bytes of names and versions.
    fn bytes(versions: &BTreeMap<ResourceName, Version>) -> usize {
        versions.iter().map(|(name, version)| name.as_str().len() + version.as_bytes().len()).sum()
    }

    pub(super) fn doubt(&mut self, name: &ResourceName) {
        if name.is_wildcard() {
            self.all_doubted = true;
        } else if let Some(glob) = Parts::of(name.as_str()).filter(|_| name.is_glob()) {
            let members = self.versions.iter_mut().filter(|(name, _)| glob.has(name.as_str()));
            members.for_each(|(_, version)| *version = Version::default());
        } else if let Some(version) = self.versions.get_mut(name) {
            *version = Version::default();
        }
    }

    /// What the client is sent replaces what it had. An error ends with content only, be it what it had; and with an alias
    /// may go what it stood for.
    fn replace<S: Source>(&mut self, type_url: &TypeUrl, source: &S, sent: &Draft) {
        for resource in sent.parts.iter().flat_map(Part::resources) {
            if let Some(version) = self.versions.get_mut(resource.name()) {
                *version = resource.version().clone();
            }
        }
        for name in sent.removed.iter().chain(sent.parts.iter().filter_map(Part::nowhere)) {
            self.versions.remove(name);
            let stood_for = source.former(type_url, name.as_str()).map_or(&[][..], |(_, names)| names);
            stood_for.iter().for_each(|name| self.doubt(name));
        }
        sent.errors.iter().for_each(|error| self.doubt(&error.name));
    }

    /// Whether the client has this version of a resource that it named.
    fn has(&self, name: &ResourceName, version: &Version) -> bool {
        !version.is_empty() && self.versions.get(name) == Some(version)
    }

    /// Whether the client has this version of a resource that the wildcard brings.
    fn has_by_wildcard(&self, name: &ResourceName, version: &Version) -> bool {
        !self.all_doubted && self.has(name, version)
    }
}

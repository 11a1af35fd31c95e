//! One type of one stream: what its client wants, and up to where it was served.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;

use super::parts::{Part, Parts};
use super::portion::{Progress, Room};
use super::resource::Resource;
use super::retry::Retries;
use super::source::{Entry, Revision, Source, State};
use super::variant::{Behind, Size};
use crate::interest::Interest;
use crate::message::ResourceError;
use crate::model::{Label, Relabel};
use crate::name::{Nonce, ResourceName, TypeUrl, Version};
use crate::resource_type::ResourceType;
use crate::time::Instant;

/// However short a TTL is, heartbeats are not more frequent than this.
const SHORTEST_BEAT: Duration = Duration::from_millis(1);

/// Nothing of what was sent is kept by name: a response brings the client up to a revision of the source, so that
/// one number says it all. A NACK needs no memory either: the cursor has passed what was rejected, and only a
/// change makes it news again (S-SOTW-12, S-DELTA-24).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Subscription {
    pub(super) kind: ResourceType,
    pub(super) interest: Interest,
    /// Names may be aliases (delta).
    pub(super) aliases: bool,
    /// The bytes of the names.
    pub(super) name_bytes: usize,
    /// The names that left while everything is wanted, and are owed an answer all the same or had one ahead of what
    /// changed. They count as long as they are kept, or a client that never acknowledges could make the stream hold any
    /// number of them.
    pub(super) leaving: Size,
    /// The client has named something: an empty list no longer means everything (SotW).
    pub(super) explicit: bool,

    /// What was there at this revision was sent, unless it is owed. `None`: nothing was looked at yet.
    pub(super) cursor: Option<Revision>,
    /// The same for removals, which may be held back (delta).
    pub(super) removed_to: Revision,
    /// Until when they may.
    pub(super) held_until: Option<Instant>,
    /// What was answered since, while what changed had to wait, and at which revision.
    pub(super) ahead: BTreeMap<ResourceName, Revision>,
    /// Among that is the removal of something that an alias stands for: it is known by its own name only, and stays known
    /// though that leaves.
    pub(super) gone_by_alias: bool,
    /// Something newer than the cursor was sent besides: all that is newer is news, and may have been sent.
    pub(super) inexact: bool,
    /// The oldest revision at which a name or the wildcard was unsubscribed since the wildcard was last answered
    /// (delta): what is gone since then may be with the client, if it took what was in flight (DESIGN rule 5).
    pub(super) left: Option<Revision>,

    /// Names to answer, changed or not.
    pub(super) owed: BTreeSet<ResourceName>,
    /// The wildcard is to be answered with all there is.
    pub(super) sweep: bool,
    /// How far that is, if it has begun: it goes in portions.
    pub(super) progress: Option<Box<Progress>>,
    /// An answer is owed even if it is empty: the client waits for one (S-SOTW-04, S-DELTA-05).
    pub(super) answer: bool,
    /// What the client had before this stream, until it is first served (delta).
    pub(super) initial: Option<Box<Initial>>,

    /// Names that the client had before this stream and that nothing said when it was first served wanted: should the
    /// wildcard come (back), those that are gone are removed (delta).
    #[allow(clippy::box_collection)] // seldom there, and a word in every subscription
    pub(super) unheard: Option<Box<BTreeSet<ResourceName>>>,

    /// Names of which the client was told an error (SotW): their absence has to be told too.
    #[allow(clippy::box_collection)] // seldom there
    pub(super) failing: Option<Box<BTreeSet<ResourceName>>>,

    /// The nonce of the last response, and its version while it is unanswered.
    pub(super) nonce: Nonce,
    pub(super) out: Option<Version>,
    /// The version of a response whose answer is no longer waited for, since nothing is wanted (S-SOTW-36).
    pub(super) late: Option<Version>,
    /// The version that was accepted last, if the client takes TTLs.
    pub(super) accepted: Version,
    /// Stale requests since the last that was not.
    pub(super) stale: u32,
    /// What is gone and was sent beside what is there, or stays with the client without a word (SotW).
    #[allow(clippy::box_collection)] // seldom there, and a word in every subscription
    pub(super) kept: Option<Box<Vec<Resource>>>,
    /// What was rejected and is to be tried again, if the configuration says so.
    pub(super) retries: Option<Box<Retries>>,
    /// When to say that resources with a TTL live on, and the revision when that was last said; `None` if something changed
    /// since and was not sent, for it came to nothing.
    pub(super) beat: Option<(Instant, Option<Revision>)>,
}

/// `initial_resource_versions`, and what of it is not believed any more: a name that was said again before the first
/// answer, for the client may have dropped it in between, has lost its version.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Initial {
    pub(super) versions: BTreeMap<ResourceName, Version>,
    /// The wildcard was said again.
    pub(super) all_doubted: bool,
}

/// What a request changed.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    pub(super) added: Vec<ResourceName>,
    pub(super) removed: Vec<ResourceName>,
    /// Of the wildcard.
    pub(super) turned: bool,
}

/// A response in the making.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    pub(super) parts: Parts,
    pub(super) removed: Vec<ResourceName>,
    /// In the order of the names.
    pub(super) errors: Vec<ResourceError>,
    /// Whether it is to be sent, though it be empty.
    pub(super) send: bool,
    /// Which resources in it are new or changed.
    pub(super) changed: Changed,
    /// Names that were owed, if there were any.
    pub(super) answered: Option<BTreeSet<ResourceName>>,
    /// Removals stayed back.
    pub(super) held: bool,
    /// What changed stayed back.
    pub(super) behind: bool,

    /// It has all that is wanted (SotW).
    pub(super) whole: bool,
    /// How much there is room for.
    pub(super) room: Room,
    /// There was no room for all.
    pub(super) more: bool,
    /// Not even for the names that are owed.
    pub(super) names_left: bool,
    /// The answer to the wildcard had begun before.
    pub(super) resumed: bool,
    /// Up to where changes were taken, if there was no room for all.
    pub(super) cursor: Option<Revision>,
    /// Up to where removals were.
    pub(super) removed_to: Option<Revision>,
    /// The answer to the wildcard is at its end: if nothing of it is to be sent, there may be something else.
    pub(super) again: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) enum Changed {
    #[default]
    WhatIsSent,
    /// The response has more than what changed, because its type is full state.
    These(Vec<Resource>),
}

impl Draft {
    pub(super) fn push(&mut self, resource: &Resource) {
        self.parts.push(Part::One(resource.clone()));
    }

    /// Adds a resource if there is room.
    pub(super) fn add(&mut self, of: &TypeUrl, resource: &Resource) -> bool {
        self.add_part(of, Part::One(resource.clone()))
    }

    pub(super) fn add_part(&mut self, of: &TypeUrl, part: Part) -> bool {
        self.more = !self.room.take(1, || part.delta_len(of));
        if !self.more {
            self.parts.push(part);
        }
        !self.more
    }

    /// Adds the name of what is gone if there is room.
    pub(super) fn remove(&mut self, name: &ResourceName) -> bool {
        const KEY_AND_LENGTH: usize = 6;
        self.more = !self.room.take(1, || name.as_str().len() + KEY_AND_LENGTH);
        if !self.more {
            self.removed.push(name.clone());
        }
        !self.more
    }

    /// Adds a heartbeat for each wanted resource with a TTL, but for those that changed since the last time: these were
    /// sent, or are still to be.
    pub(super) fn add_heartbeats<S: Source>(&mut self, of: &Subscription, source: &S) {
        let Some((_, sent_to)) = of.beat else { return };
        let sent: BTreeSet<ResourceName> =
            self.parts.iter().flat_map(Part::resources).map(|resource| resource.name().clone()).collect();
        for entry in of.expiring(source).filter(|entry| sent_to.is_none_or(|sent_to| entry.since <= sent_to)) {
            let lives_on = |resource: &&Resource| {
                let name = resource.name();
                !sent.contains(name) && !of.interest.is_owed(name, &of.owed) && !of.is_new(resource, &entry)
            };
            if let Some(resource) = entry.resource().filter(lives_on) {
                self.parts.push(Part::Heartbeat(resource.clone()));
                self.send = true;
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.removed.is_empty() && self.errors.is_empty()
    }
}

impl Subscription {
    pub(super) fn new(kind: ResourceType, aliases: bool) -> Self {
        Self {
            kind,
            interest: Interest::default(),
            aliases,
            name_bytes: 0,
            leaving: Size::default(),
            explicit: false,
            cursor: None,
            removed_to: Revision::default(),
            held_until: None,
            ahead: BTreeMap::new(),
            gone_by_alias: false,
            inexact: false,
            left: None,
            owed: BTreeSet::new(),
            sweep: false,
            progress: None,
            answer: false,
            initial: None,
            unheard: None,
            failing: None,
            nonce: Nonce::default(),
            out: None,
            late: None,
            accepted: Version::default(),
            stale: 0,
            beat: None,
            kept: None,
            retries: None,
        }
    }

    pub(super) fn size(&self) -> Size {
        Size { names: self.interest.names.len(), bytes: self.name_bytes } + self.leaving
    }

    pub(super) fn type_url(&self) -> &TypeUrl {
        self.kind.type_url()
    }

    // What is wanted.

    /// `true` if the name was not wanted before.
    pub(super) fn add_name(&mut self, name: ResourceName) -> bool {
        if self.interest.names.contains(&name) {
            return false;
        }
        let Size { names, bytes } = Size::of([&name]);
        if self.lingers(&name) {
            // It left and comes back: it counts once.
            let left = self.leaving;
            self.leaving = Size { names: left.names.saturating_sub(names), bytes: left.bytes.saturating_sub(bytes) };
        }
        self.name_bytes += bytes;
        self.interest.insert(name)
    }

    pub(super) fn remove_name(&mut self, name: &str) -> Option<ResourceName> {
        let name = self.interest.take(name)?;
        self.name_bytes -= name.as_str().len();
        if name.is_glob() {
            self.owed.remove(&name);
            self.ahead.remove(&name);
            self.drop_unwanted();
        } else {
            if !self.interest.covers(name.as_str()) {
                self.owed.remove(&name);
                if !self.gone_by_alias {
                    self.ahead.remove(&name);
                }
            }
            if self.lingers(&name) {
                self.leaving = self.leaving + Size::of([&name]);
            }
        }
        Some(name)
    }

    /// Something that stood for many names left: what only it wanted is of no interest any more.
    pub(super) fn drop_unwanted(&mut self) {
        let interest = &self.interest;
        self.owed.retain(|name| interest.covers(name.as_str()));
        if !self.gone_by_alias {
            self.ahead.retain(|name, _| interest.covers(name.as_str()));
        }
        self.count_leaving();
    }

    fn count_leaving(&mut self) {
        self.leaving = Size::of(self.lingering().filter(|name| !self.interest.names.contains(*name)));
    }

    /// A name that left is to be answered once more.
    pub(super) fn owe_leaving(&mut self, name: ResourceName) {
        if !self.lingers(&name) {
            self.leaving = self.leaving + Size::of([&name]);
        }
        self.owed.insert(name);
    }

    /// Whether a name is kept even if nobody wants it by name.
    fn lingers(&self, name: &ResourceName) -> bool {
        self.owed.contains(name) || self.ahead.contains_key(name)
    }

    /// The names that are.
    pub(super) fn lingering(&self) -> impl Iterator<Item = &ResourceName> {
        self.owed.iter().chain(self.ahead.keys().filter(|name| !self.owed.contains(*name)))
    }

    /// Everything is wanted, from now on or again.
    pub(super) fn add_wildcard(&mut self) {
        self.interest.wildcard = true;
        self.sweep = true;
        self.progress = None;
        self.answer = true;
    }

    pub(super) fn remove_wildcard(&mut self) {
        self.interest.wildcard = false;
        self.progress = None;
        if core::mem::take(&mut self.sweep) {
            self.owed = self.interest.names.clone(); // what the wildcard would have brought
        }
        self.drop_unwanted();
    }

    /// The oldest revision of which the client may take what it no longer wants.
    pub(super) fn note_left(&mut self) {
        if let Some(cursor) = self.cursor {
            let since = cursor.min(self.removed_to);
            self.left = Some(self.left.map_or(since, |left| left.min(since)));
        }
    }

    // What is to be said.

    /// Whether something was promised, apart from what may have changed.
    pub(super) fn owes(&self) -> bool {
        self.answer || self.sweep || !self.owed.is_empty() || self.initial.is_some()
    }

    /// Whether nothing can be to say. Costs nothing.
    pub(super) fn is_quiet(&self, source: &impl Source) -> bool {
        let served = self.cursor.map_or(Revision::default(), |cursor| cursor.min(self.removed_to));
        !self.owes()
            && self.kept.is_none()
            && (self.interest.is_empty() || source.type_revision(self.type_url()) <= served)
    }

    /// Up to when what became of a resource was served, if anything was.
    fn served_to(&self, resource: &Resource) -> Option<Revision> {
        let by_alias = || resource.aliases().iter().filter_map(|alias| self.ahead.get(alias)).max().copied();
        let ahead = if self.ahead.is_empty() { None } else { self.ahead_of(resource.name()).max(by_alias()) };
        self.cursor.map(|cursor| ahead.map_or(cursor, |at| at.max(cursor)))
    }

    /// Whether a resource that is there is news to the client.
    fn is_new(&self, resource: &Resource, entry: &Entry<'_>) -> bool {
        let is_news = |to| if self.inexact { entry.since > to } else { entry.is_news(to, to) };
        self.served_to(resource).is_some_and(is_news)
    }

    /// At which revision a name was answered though what changed had to wait, by itself or as one of a collection.
    fn ahead_of(&self, name: &ResourceName) -> Option<Revision> {
        if self.ahead.is_empty() {
            return None;
        }
        let by_glob = self.interest.globs.of(name.as_str()).and_then(|glob| self.ahead.get(glob));
        self.ahead.get(name).max(by_glob).copied()
    }

    /// Whether a removal is.
    pub(super) fn is_gone(&self, name: &ResourceName, entry: &Entry<'_>) -> bool {
        let Some(cursor) = self.cursor else { return false };
        let at = self.ahead.get(name);
        if self.inexact {
            return entry.since > at.map_or(self.removed_to, |at| self.removed_to.max(*at));
        }
        // The answer to a collection says what is there, not what has gone.
        let by_glob = || self.ahead_of(name).is_some_and(|at| entry.is_news(at, at));
        at.map_or_else(|| entry.is_news(self.removed_to, cursor), |at| entry.is_news(*at, *at)) || by_glob()
    }

    /// Takes the wanted resources that became present or changed since the cursor. Looks at the fewer of what changed,
    /// the newest first, and what is wanted.
    pub(super) fn each_change<'s, S: Source>(&self, source: &'s S, mut take: impl FnMut(Revision, &'s Resource)) {
        let Some(cursor) = self.cursor else { return };
        let mut take_news = |entry: Entry<'s>| match entry.resource() {
            Some(resource) if self.is_new(resource, &entry) => take(entry.since, resource),
            _ => {}
        };
        if self.interest.wildcard {
            source.changes(self.type_url(), cursor).for_each(take_news);
        } else if self.is_few(source.changes(self.type_url(), cursor)) {
            for entry in source.changes(self.type_url(), cursor) {
                if entry.resource().is_some_and(|resource| self.wants(source, resource)) {
                    take_news(entry);
                }
            }
        } else {
            for name in &self.interest.names {
                let entry = self.get(source, name);
                // What is wanted by more than one name comes by the first.
                let another =
                    |resource: &Resource| resource.name() != name && self.first_name(source, resource) != Some(name);
                if !entry.resource().is_some_and(another) {
                    take_news(entry);
                }
            }
        }
    }

    /// What is to be said of a name that is wanted.
    pub(super) fn get<'s, S: Source>(&self, source: &'s S, name: &ResourceName) -> Entry<'s> {
        let entry = source.get(self.type_url(), name.as_str());
        if self.aliases { entry } else { entry.named(name.as_str()) }
    }

    /// Whether a resource is wanted, by whatever name.
    pub(super) fn wants(&self, source: &impl Source, resource: &Resource) -> bool {
        self.interest.covers(resource.name().as_str()) || self.alias_of(source, resource).is_some()
    }

    /// The aliases by which a resource is wanted.
    pub(super) fn aliases_of<'a>(
        &self,
        source: &impl Source,
        resource: &'a Resource,
    ) -> impl Iterator<Item = &'a ResourceName> {
        let aliases = resource.aliases().iter().filter(|_| self.aliases);
        let wanted = aliases.filter(|alias| self.interest.names.contains(*alias));
        wanted.filter(|alias| {
            let stands_for = source.get(self.type_url(), alias.as_str()).resource();
            stands_for.is_some_and(|other| other.name() == resource.name())
        })
    }

    /// The first of them.
    fn alias_of<'a>(&self, source: &impl Source, resource: &'a Resource) -> Option<&'a ResourceName> {
        self.aliases_of(source, resource).min()
    }

    /// The first of the names by which a resource is wanted, but for those that stand for many.
    fn first_name<'a>(&self, source: &impl Source, resource: &'a Resource) -> Option<&'a ResourceName> {
        let own = self.interest.names.contains(resource.name()).then(|| resource.name());
        own.or_else(|| self.alias_of(source, resource))
    }

    /// The wanted names that became absent, and when.
    pub(super) fn removals<S: Source>(&self, source: &S) -> Result<Vec<(Revision, ResourceName)>, Behind> {
        let removals = || source.removals(self.type_url(), self.removed_to);
        Ok(match removals() {
            None if self.interest.wildcard || !self.interest.globs.is_empty() => return Err(Behind),
            Some(few) if self.interest.wildcard || self.is_few(removals().into_iter().flatten()) => {
                let gone = few.filter(|(name, entry)| self.may_have_held(source, name) && self.is_gone(name, entry));
                gone.map(|(name, entry)| (entry.since, name.clone())).collect()
            }
            _ => {
                let gone = |name: &ResourceName| {
                    let entry = self.get(source, name);
                    let gone = entry.state == State::Absent && self.is_gone(name, &entry);
                    gone.then(|| (entry.since, name.clone()))
                };
                self.interest.names.iter().filter_map(gone).collect()
            }
        })
    }

    /// Whether a name that is gone is one that was wanted: of many together an alias is none.
    pub(super) fn may_have_held(&self, source: &impl Source, name: &ResourceName) -> bool {
        self.interest.names.contains(name)
            || (self.interest.covers(name.as_str()) && source.former(self.type_url(), name.as_str()).is_none())
    }

    /// What the client may have by an alias that stands for it no longer, since a revision, if it wants that by no other
    /// name.
    pub(super) fn strays<'s, S: Source>(
        &self,
        source: &'s S,
        alias: &ResourceName,
        since: Revision,
    ) -> impl Iterator<Item = &'s ResourceName> {
        let former = source.former(self.type_url(), alias.as_str()).filter(|&(then, _)| then > since);
        former.into_iter().flat_map(|(_, names)| names).filter(|name| {
            let there = source.get(self.type_url(), name.as_str()).resource();
            let by_alias = there.is_some_and(|resource| self.wants(source, resource));
            !by_alias && !self.interest.covers(name.as_str())
        })
    }

    /// The same for the aliases of a resource that changed.
    pub(super) fn strays_for<'s, S: Source>(
        &'s self,
        source: &'s S,
        resource: &'s Resource,
    ) -> impl Iterator<Item = &'s ResourceName> {
        let since = self.cursor.unwrap_or_default();
        let aliases = resource.aliases().iter().filter(|alias| self.interest.names.contains(*alias));
        aliases.flat_map(move |alias| self.strays(source, alias, since))
    }

    /// The wanted resources that have a TTL.
    pub(super) fn expiring<'s, S: Source>(&self, source: &'s S) -> impl Iterator<Item = Entry<'s>> {
        let wanted = |resource: &Resource| self.wants(source, resource);
        source.with_ttl(self.type_url()).filter(move |entry| entry.resource().is_some_and(wanted))
    }

    /// Sets the time of the next heartbeat: a third of the shortest TTL from now, so that one may be lost and one late
    /// (S-TTL-04). One that is due before that stays, unless it was sent now, or everything that it is about was: a response
    /// says nothing of the rest.
    pub(super) fn schedule_beat<S: Source>(&mut self, now: Instant, source: &S, sent: &Draft, beats: bool) {
        let ttls = || self.expiring(source).filter_map(|entry| entry.resource()?.ttl());
        let Some(shortest) = ttls().min() else {
            self.beat = None;
            return;
        };
        let next = now + (shortest / 3).max(SHORTEST_BEAT);
        let sent_all = || {
            let sent = sent.parts.iter().flat_map(Part::resources).filter(|resource| resource.ttl().is_some());
            sent.count() == ttls().count()
        };
        self.beat = match self.beat {
            Some((due, sent_to)) if !beats && !sent_all() => Some((due.min(next), sent_to)),
            _ => Some((next, Some(source.revision()))),
        };
    }

    /// Notes that something with a TTL changed and is no news, before it counts as served: else it would have no heartbeat
    /// either, as what was sent.
    pub(super) fn note_flaps<S: Source>(&mut self, source: &S) {
        let Some((due, Some(sent_to))) = self.beat else { return };
        let is_owed = |resource: &Resource| {
            let by_alias = || resource.aliases().iter().any(|alias| self.owed.contains(alias));
            self.interest.is_owed(resource.name(), &self.owed) || by_alias()
        };
        let flapped = |entry: &Entry<'_>, resource: &Resource| {
            let changed = self.served_to(resource).is_some_and(|to| entry.since > to.max(sent_to));
            changed && !self.is_new(resource, entry) && !is_owed(resource)
        };
        if self.expiring(source).any(|entry| entry.resource().is_some_and(|resource| flapped(&entry, resource))) {
            self.beat = Some((due, None));
        }
    }

    /// Whether heartbeats are due, and may be sent.
    #[inline]
    pub(super) fn beats(&self, now: Instant) -> bool {
        self.next_beat().is_some_and(|due| due <= now)
    }

    /// When the next heartbeat may be sent. Not while a response is unanswered: that would be one more.
    #[inline]
    pub(super) fn next_beat(&self) -> Option<Instant> {
        self.beat.filter(|_| self.out.is_none() && self.progress.is_none()).map(|(due, _)| due)
    }

    /// Whether changes are fewer than what is wanted, which with a collection is any number.
    pub(super) fn is_few<T>(&self, changes: impl Iterator<Item = T>) -> bool {
        if !self.interest.globs.is_empty() {
            return true;
        }
        let names = self.interest.names.len();
        changes.take(names + 1).count() <= names
    }

    /// Whether something wanted became present or changed.
    pub(super) fn has_change(&self, source: &impl Source) -> bool {
        let Some(cursor) = self.cursor else { return false };
        if source.type_revision(self.type_url()) <= cursor {
            return false;
        }
        let wanted = |entry: Entry<'_>| {
            entry.resource().is_some_and(|resource| self.wants(source, resource) && self.is_new(resource, &entry))
        };
        if self.interest.wildcard || self.is_few(source.changes(self.type_url(), cursor)) {
            source.changes(self.type_url(), cursor).any(wanted)
        } else {
            let mut names = self.interest.names.iter();
            names.any(|name| wanted(self.get(source, name)))
        }
    }

    /// Whether something wanted became absent; also if that is not known.
    pub(super) fn has_removal(&self, source: &impl Source) -> bool {
        self.cursor.is_some()
            && source.type_revision(self.type_url()) > self.removed_to
            && self.removals(source).map_or(true, |removed| !removed.is_empty())
    }

    /// The client was sent what is in a draft, which was made at this revision; or there was nothing to send.
    pub(super) fn served<S: Source>(&mut self, now: Instant, hold: Duration, source: &S, draft: &mut Draft) {
        let revision = source.revision();
        self.answer = false;
        if draft.names_left && self.cursor.is_none() {
            // What is there now is owed; nothing was said that could be gone.
            (self.cursor, self.removed_to) = (Some(revision), revision);
        }
        if draft.names_left || (draft.behind && self.cursor.is_some()) {
            return self.answered_ahead(source, draft, revision);
        }
        if self.sweep {
            self.sweep = self.progress.is_some();
            if draft.resumed {
                draft.again = !self.sweep;
                return self.answered_ahead(source, draft, revision);
            }
            self.left = None;
        }
        // From now on what was there at this revision was sent, or will be by the page.
        let (first, goes_on) = (self.cursor.is_none(), self.sweep);
        let cut = goes_on || draft.cursor.is_some() || draft.removed_to.is_some();
        match draft.cursor {
            Some(cursor) => {
                self.cursor = Some(cursor);
                self.answered_ahead(source, draft, revision);
            }
            None => {
                if !self.ahead.is_empty() {
                    self.ahead.clear();
                    self.gone_by_alias = false;
                }
                self.leaving = Size::default();
                self.cursor = Some(revision);
            }
        }
        self.inexact |= cut;
        if draft.held {
            self.held_until.get_or_insert(now + hold);
            if self.kept.is_some() {
                self.removed_to = revision; // what is kept is kept by name
            }
        } else if cut && !first {
            self.removed_to = draft.removed_to.unwrap_or(self.removed_to);
        } else {
            self.removed_to = revision;
            self.held_until = None;
            self.inexact = cut;
        }
    }

    /// Notes what was answered, though the cursor does not say so: by all the names that it is wanted by, for some may leave.
    fn answered_ahead<S: Source>(&mut self, source: &S, draft: &mut Draft, revision: Revision) {
        let mut names = draft.answered.take().unwrap_or_default();
        self.gone_by_alias =
            self.gone_by_alias || (self.aliases && names.iter().any(|name| self.was_wanted_by_alias(source, name)));
        if !(names.is_empty() && self.interest.names.is_empty()) {
            for resource in draft.parts.iter().flat_map(Part::resources) {
                let mut aliases = self.aliases_of(source, resource).peekable();
                // By one that left, too.
                let by_alias = aliases.peek().is_some() || resource.aliases().iter().any(|alias| names.contains(alias));
                let with_others = by_alias && self.interest.covers(resource.name().as_str());
                names.extend(aliases.cloned());
                if with_others || self.interest.names.contains(resource.name()) {
                    names.insert(resource.name().clone());
                }
            }
        }
        let unnamed = names.iter().any(|name| !self.interest.names.contains(name));
        self.ahead.extend(names.into_iter().map(|name| (name, revision)));
        if unnamed {
            self.count_leaving();
        }
    }

    /// Whether a name that is gone was that of something an alias stood for.
    fn was_wanted_by_alias<S: Source>(&self, source: &S, name: &ResourceName) -> bool {
        let before = Revision(source.get(self.type_url(), name.as_str()).since.0.saturating_sub(1));
        let was = source.was(self.type_url(), name.as_str(), before);
        was.is_some_and(|was| was.aliases().iter().any(|alias| self.interest.names.contains(alias)))
    }

    /// Takes the store's own string for a name, so that it is kept once.
    pub(super) fn share_name(&mut self, name: &ResourceName) {
        if self.interest.names.get(name).is_some_and(|own| !own.shares_with(name)) {
            self.interest.names.replace(name.clone());
        }
    }

    /// Packs the names after many came: a tree that grew one by one is half empty.
    pub(super) fn pack_names(&mut self) {
        self.interest.names = core::mem::take(&mut self.interest.names).into_iter().collect();
    }
}

impl Relabel for Subscription {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.cursor.relabel(by);
        self.removed_to.relabel(by);
        self.held_until.relabel(by);
        self.ahead.values_mut().for_each(|at| at.relabel(by));
        self.left.relabel(by);
        if let Some(retries) = &mut self.retries {
            retries.relabel(by);
        }
        self.nonce.relabel(by);
        if let Some((due, sent_to)) = &mut self.beat {
            due.relabel(by);
            sent_to.relabel(by);
        }
    }
}

//! One type of one stream: its subscribed names, the sent state, pending answers, and verdicts.
//!
//! Each of these is a value of its own, behind methods of its own. This file connects them: where a request is
//! applied, where a response is made, and where a sent response is noted.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

use super::changes;
use super::draft::Draft;
use super::exchange::{Answered, Exchange};
use super::extent::{Extent, More, PageNames};
use super::heartbeat::{self, Heartbeat};
use super::of_type::OfType;
use super::parts::Part;
use super::pending::{Pending, Wildcard};
use super::resource::Resource;
use super::source::{Source, State};
use super::view::{Reach, View};
use super::wanted::Wanted;
use crate::model::{Label, Relabel};
use crate::name::{Nonce, ResourceName, TypeUrl, Version};
use crate::resource_type::ResourceType;
use crate::revision::Revision;
use crate::time::Instant;

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Subscription {
    pub(super) resource_type: ResourceType,
    pub(super) wanted: Wanted,
    pub(super) view: View,
    pub(super) pending: Pending,
    pub(super) exchange: Exchange,
    pub(super) heartbeat: Heartbeat,
    /// The time until which removals may be deferred.
    pub(super) defer_until: Option<Instant>,
    /// The time at which something that waits for an ACK or NACK is sent all the same. `None`: nothing waits.
    pub(super) hold: Option<Instant>,
    /// The time until which the changes that wait may wait for clusters: it counts from the first change that waited.
    pub(super) clusters_until: Option<Instant>,
}

/// The change that a request makes to the subscribed names.
#[derive(Clone, Debug, Default)]
pub struct SubscriptionChange {
    pub(super) added: Vec<ResourceName>,
    pub(super) removed: Vec<ResourceName>,
    /// Whether the wildcard was added or removed.
    pub(super) wildcard: bool,
}

impl SubscriptionChange {
    pub(super) fn is_empty(&self) -> bool {
        !self.wildcard && self.added.is_empty() && self.removed.is_empty()
    }
}

impl Subscription {
    /// Creates the state of a type. `aliases`: names may be aliases.
    pub(super) fn new(resource_type: ResourceType, aliases: bool) -> Self {
        Self {
            resource_type,
            wanted: Wanted::new(aliases),
            view: View::default(),
            pending: Pending::default(),
            exchange: Exchange::default(),
            heartbeat: Heartbeat::default(),
            defer_until: None,
            hold: None,
            clusters_until: None,
        }
    }

    pub(super) fn type_url(&self) -> &TypeUrl {
        self.resource_type.type_url()
    }

    pub(super) fn of<'s, S: Source>(&'s self, source: &'s S) -> OfType<'s, S> {
        OfType::new(source, self.type_url())
    }

    // Subscribed names.

    /// Subscribes to a name, which is answered even if it was subscribed before. Returns whether the name is new.
    pub(super) fn subscribe(&mut self, name: ResourceName, limit: usize) -> bool {
        let new = self.wanted.add(name.clone());
        let is_late = self.exchange.is_out() && self.wanted.aliases() && !name.is_glob();
        let late = is_late.then(|| name.clone());
        self.ask(name, limit);
        self.pending.set_new(true);
        late.into_iter().for_each(|name| self.pending.note_late(name));
        new
    }

    /// Makes a name pending again: its earlier responses and claims no longer count.
    pub(super) fn ask(&mut self, name: ResourceName, limit: usize) {
        self.pending.unclaim(&name);
        if name.is_glob() {
            let of_collection = |sent: &ResourceName| self.wanted.globs().of(sent.as_str()) == Some(&name);
            self.view.forget_sent_ahead(of_collection);
            self.view.note_resubscribed(false);
        }
        let covered = self.pending.add(name, &self.wanted, limit);
        if !covered.is_empty() {
            self.view.forget_sent_ahead(|sent| covered.contains(sent));
        }
    }

    /// Makes a subscribed name pending again though nothing changed, unless it is about to be sent anyway.
    pub(super) fn ask_again(&mut self, name: ResourceName, limit: usize) {
        let comes = self.view.sent_to().is_none() || *self.pending.wildcard() == Wildcard::Asked;
        if comes {
            // The pending response sends the resource even if the client claimed it or was sent it by name.
            self.pending.unclaim(&name);
            self.view.forget_sent_ahead(|sent| *sent == name);
        } else {
            self.ask(name, limit);
        }
    }

    pub(super) fn unsubscribe(&mut self, name: &str) -> Option<ResourceName> {
        let name = self.wanted.remove(name)?;
        if name.is_glob() {
            self.pending.remove(&name);
            self.pending.retain_wanted(&self.wanted);
        } else if !self.wanted.covers(name.as_str()) {
            self.pending.remove(&name);
        }
        self.note_unsubscribed(&name);
        Some(name)
    }

    /// Notes that a name was unsubscribed. The resources of an alias are forgotten, unless a response is in flight: the
    /// client may accept that response, and subscribe again. A client that unsubscribes from a wildcard, collection or
    /// alias and resubscribes, to be answered anew, keeps what it has.
    #[inline(never)]
    fn note_unsubscribed(&mut self, name: &ResourceName) {
        let waiting = self.exchange.is_out();
        let Self { wanted, view, pending, .. } = self;
        let stands_for_many = name.is_wildcard() || name.is_glob();
        if wanted.aliases() {
            pending.note_parted();
        }
        let by_name: Vec<ResourceName> = view.aliases().resources(name).cloned().collect();
        if waiting || stands_for_many || !by_name.is_empty() {
            view.note_unsubscribed();
        }
        if !waiting && !by_name.is_empty() {
            view.change_aliases(|aliases| aliases.remove_alias(name));
        }
        // The client may have these by an alias alone from now on, which may stand for something else.
        let all = view.aliases().iter().filter(|_| stands_for_many).map(|(_, resource)| resource);
        let left = all.chain(&by_name).chain([name]).filter(|left| changes::has_by_alias(wanted, view, left));
        pending.note_left(left.filter(|left| !wanted.covers(left.as_str())));
    }

    /// Subscribes to the wildcard, for the first time or again.
    pub(super) fn subscribe_to_all(&mut self) {
        self.wanted.set_wildcard(true);
        self.pending.unclaim(&crate::WILDCARD.into());
        self.exchange.forget_rejections();
        self.view.forget_sent_ahead(|_| true);
        self.view.note_resubscribed(true);
        self.pending.add_wildcard();
        self.pending.set_new(true);
    }

    pub(super) fn unsubscribe_from_all(&mut self) {
        self.wanted.set_wildcard(false);
        self.pending.remove_wildcard(&self.wanted);
        self.note_unsubscribed(&crate::WILDCARD.into());
    }

    /// Handles the nonce of a request, and its error message if it is a NACK. Returns the response that has its ACK or
    /// NACK by it; `None` if no response with this nonce waits for one. `limit` bounds what is kept by name.
    pub(super) fn handle_answer(
        &mut self,
        nonce: &Nonce,
        version: Option<&Version>,
        rejection: Option<&str>,
        limit: usize,
    ) -> Option<Answered> {
        let answered = self.exchange.handle_answer(nonce, version, rejection)?;
        if rejection.is_none() {
            self.heartbeat.accept(&answered.version);
        } else {
            answered.beats.iter().for_each(|name| self.ask_for_content(name, limit));
        }
        Some(answered)
    }

    /// Makes a resource pending whose heartbeat was rejected: the client no longer has it, because its TTL ran out
    /// (S-TTL-04).
    fn ask_for_content(&mut self, name: &ResourceName, limit: usize) {
        if self.wanted.covers(name.as_str()) {
            return self.ask(name.clone(), limit);
        }
        let is_wanted = |alias: &&ResourceName| self.wanted.names().contains(*alias);
        let aliases: Vec<ResourceName> = self.view.aliases().of(name).filter(is_wanted).cloned().collect();
        aliases.into_iter().for_each(|alias| self.ask(alias, limit));
    }

    // Responses.

    /// Returns whether there is certainly nothing to send, at constant cost.
    #[inline]
    pub(super) fn is_quiet<S: Source>(&self, source: &S) -> bool {
        self.pending.is_empty() && !self.has_news(source)
    }

    /// Returns whether there may be changes or removals to send, apart from pending answers, at constant cost.
    #[inline]
    pub(super) fn has_news<S: Source>(&self, source: &S) -> bool {
        !self.view.deferred().is_empty()
            || self.view.aliases().has_unsent()
            || (!self.wanted.is_empty() && self.of(source).revision() > self.view.complete_to())
    }

    /// Returns whether a subscribed resource became present or changed.
    pub(super) fn has_change<S: Source>(&self, source: &S) -> bool {
        changes::has_change(self.of(source), &self.wanted, &self.view)
    }

    /// Returns whether a subscribed resource became absent; `true` also if the source no longer remembers.
    pub(super) fn has_removal<S: Source>(&self, source: &S) -> bool {
        changes::has_removal(self.of(source), &self.wanted, &self.view)
    }

    /// Compares the claimed versions with the source, when it is read for the first time. `limited`: the answer may not
    /// fit in one response. `limit` bounds what is kept by name.
    pub(super) fn settle_claims<S: Source>(&mut self, source: &S, limited: bool, limit: usize) {
        let Self { resource_type, wanted, view, pending, .. } = self;
        let (Some(mut claims), mut names) = (pending.take_claims(), pending.take_names()) else { return };
        let rest =
            claims.settle(OfType::new(source, resource_type.type_url()), wanted, view, &mut names, limited, limit);
        pending.put_back(names);
        if let Some(rest) = rest.filter(|_| *pending.wildcard() == Wildcard::Asked) {
            pending.note_claimed(rest.into_iter());
        }
        pending.set_claims(*claims);
    }

    /// Notes what the client may have by names that were subscribed while the last response was in flight, or while
    /// others were unsubscribed.
    #[inline]
    pub(super) fn settle_late<S: Source>(&mut self, source: &S) {
        let Self { resource_type, view, pending, .. } = self;
        let Some(mut claims) = pending.take_late() else { return };
        claims.settle_late(OfType::new(source, resource_type.type_url()), view, pending.names());
        pending.set_claims(*claims);
    }

    /// Notes what the client may have by the answered names, as far as it claims resources that no name covers.
    pub(super) fn settle_answered<S: Source>(&mut self, source: &S, draft: &Draft, limit: usize) {
        let Self { resource_type, wanted, view, pending, .. } = self;
        let Some(mut claims) = pending.take_claims() else { return };
        let of = OfType::new(source, resource_type.type_url());
        claims.settle_answered(of, wanted, view, &draft.answered, limit);
        pending.set_claims(*claims);
    }

    /// Returns whether a resource that the client has by an alias changed, and no name subscribes to it any more.
    pub(super) fn has_orphan<S: Source>(&self, source: &S) -> bool {
        !self.view.aliases().is_empty() && changes::has_orphan(self.of(source), &self.wanted, &self.view)
    }

    /// Adds a heartbeat for each resource with a TTL that the client has, except those in the draft. `with_content`: with
    /// their content, but for those in rejected responses, which are not sent again.
    pub(super) fn add_heartbeats<S: Source>(&mut self, source: &S, with_content: bool, draft: &mut Draft) {
        let (alive, left_out) = heartbeat::alive(self.of(source), &self.wanted, &self.view, &self.pending);
        self.heartbeat.leave_out(left_out);
        if alive.is_empty() {
            return;
        }
        let sent: BTreeSet<ResourceName> = draft.resources().map(|resource| resource.name().clone()).collect();
        let of = self.of(source);
        let paged = PageNames::new(of, self.exchange.rejected_extents());
        for resource in alive.into_iter().filter(|resource| !sent.contains(resource.name())) {
            // The client may have it all the same, because it accepted a part of the response.
            let name = resource.name();
            let had = |extent: &Extent| extent.has(name, &of.get(name), |range| paged.have(range, name));
            let may_have = self.exchange.rejection(name, had).is_none();
            match with_content {
                true if may_have => {
                    draft.answered.insert(resource.name().clone());
                    draft.parts.push(Part::One(resource));
                }
                true => {}
                false => {
                    draft.beats.extend(may_have.then(|| resource.name().clone()));
                    draft.parts.push(Part::Heartbeat(resource));
                }
            }
        }
        draft.must_send |= !draft.parts.is_empty();
    }

    /// Makes heartbeats due for resources that the last ones left out, and that are no longer about to be sent.
    pub(super) fn note_left_out<S: Source>(&mut self, now: Instant, source: &S) {
        let Self { resource_type, wanted, view, pending, heartbeat, .. } = self;
        heartbeat.note_left_out(now, OfType::new(source, resource_type.type_url()), wanted, view, pending);
    }

    /// Schedules the next heartbeats. `was_due`: heartbeats were due now.
    pub(super) fn schedule_heartbeats<S: Source>(&mut self, now: Instant, source: &S, was_due: bool, draft: &Draft) {
        let of = OfType::new(source, self.resource_type.type_url());
        self.heartbeat.schedule(now, of, &self.wanted, was_due, draft);
    }

    /// Notes that a draft is sent, or that there was nothing to send. Removals may be deferred for `delay` from now;
    /// `limit` bounds the names that are kept. Returns the extent of the draft.
    pub(super) fn note_sent<S: Source>(
        &mut self,
        now: Instant,
        delay: Duration,
        limit: usize,
        source: &S,
        draft: &mut Draft,
    ) -> Extent {
        let Self { resource_type, wanted, view, pending, exchange, defer_until, .. } = self;
        let of = OfType::new(source, resource_type.type_url());
        let before = view.sent_to();
        let removals_after = view.removals_sent_to();
        // A name that was sent ahead in an earlier form is not left out.
        let has = |name: &&ResourceName| view.is_sent_ahead(name, of.get(name).since);
        let but = view.has_sent_ahead().then(|| view.names_sent_ahead().filter(has).cloned().collect::<BTreeSet<_>>());
        let but = but.filter(|but| !but.is_empty());
        pending.set_reply(false);
        pending.set_new(false);
        // A wildcard or collection is answered in part: the resources sent for it are kept by name.
        let paging = pending.has_wildcard() || pending.names().iter().any(ResourceName::is_glob);
        view.advance(of.now(), draft.content, draft.removals, paging);
        if exchange.has_rejections() {
            note_sent_again(of, exchange, draft, limit);
        }
        let is_ahead = paging || view.complete_to() < of.now();
        let ahead = is_ahead.then(|| note_sent_ahead(of, wanted, view, draft, paging, limit));
        let ahead = ahead.filter(|ahead| !ahead.is_empty());
        let ahead_to = if is_ahead { of.now() } else { Revision::default() };
        if wanted.aliases() {
            note_aliases(of, wanted, view, draft, limit);
        }
        if draft.defers {
            defer_until.get_or_insert(now + delay);
        } else if before.is_none() || draft.removals == Reach::All {
            *defer_until = None;
        }
        let to = view.sent_to().unwrap_or_default();
        let after = match (before, &draft.pages) {
            (_, Some(pages)) if pages.is_all() => None,
            (_, None) if draft.claimed => None,
            // The changes are part of the pages, of which these are the first.
            (_, Some(pages)) if pages.is_first() => Some(to),
            (Some(before), _) if draft.content != Reach::Nowhere => Some(before),
            _ => Some(to),
        };
        let removals = (removals_after, view.removals_sent_to());
        let apart = before.is_some() && (after, to) != (Some(removals.0), removals.1);
        let mut extent = Extent { after, to, whole: draft.whole, more: None };
        let pages = draft.pages.take().filter(|pages| !pages.is_all());
        let more = pages.is_some() || but.is_some() || ahead.is_some() || apart || draft.claimed;
        if more || !draft.answered.is_empty() {
            let mut names = core::mem::take(&mut draft.answered);
            if draft.budget.is_limited() {
                // Members are answered by their own names, and the response may not have all of a collection.
                names.retain(|name| !name.is_glob() || of.members(name).next().is_none());
            }
            let (but, ahead) = (but.unwrap_or_default(), ahead.unwrap_or_default());
            let (removals, claimed) = (apart.then_some(removals), draft.claimed);
            let more = More { names, pages, but, ahead, ahead_to, removals, claimed };
            extent.more = Some(more.into());
        }
        extent
    }
}

/// Notes that rejected resources are sent again. Of a collection there may be members that are not.
#[inline(never)]
fn note_sent_again<S: Source>(of: OfType<'_, S>, exchange: &mut Exchange, draft: &Draft, limit: usize) {
    let answered = draft.answered.iter().filter(|name| !name.is_glob());
    let sent = draft.sent().map(Resource::name);
    exchange.note_sent(answered.chain(sent).map(|name| (name, of.get(name).since)), limit);
}

/// Notes the names whose state was sent ahead of the positions. Returns those that the response did not answer by name;
/// beyond `limit` they are not kept.
fn note_sent_ahead<S: Source>(
    of: OfType<'_, S>,
    wanted: &Wanted,
    view: &mut View,
    draft: &Draft,
    paging: bool,
    limit: usize,
) -> BTreeSet<ResourceName> {
    let mut ahead = BTreeSet::new();
    let (sent_to, removals_sent_to, now) = (view.sent_to().unwrap_or_default(), view.removals_sent_to(), of.now());
    for (at, part) in draft.parts.iter().enumerate().filter(|(_, part)| !matches!(part, Part::Heartbeat(_))) {
        let by_name = paging && at < draft.answers;
        for resource in part.resources() {
            let newer = of.get(resource.name()).since > sent_to;
            if by_name || newer {
                view.note_sent_ahead(resource.name(), now, limit);
                if ahead.len() < limit && !wanted.is_among(&draft.answered, resource) {
                    ahead.insert(resource.name().clone());
                }
            }
        }
    }
    let stubs = draft.parts.iter().filter_map(Part::not_found);
    for name in draft.removed.iter().chain(stubs) {
        let entry = of.get(name);
        if entry.state == State::Absent && entry.since > removals_sent_to {
            view.note_sent_ahead(name, now, limit);
            if ahead.len() < limit && !draft.answered.contains(name) {
                ahead.insert(name.clone());
            }
        }
    }
    for error in &draft.errors {
        if of.get(&error.name).since > sent_to {
            view.note_sent_ahead(&error.name, now, limit);
        }
    }
    ahead
}

/// Notes the targets of the aliases of sent resources.
fn note_aliases<S: Source>(of: OfType<'_, S>, wanted: &Wanted, view: &mut View, draft: &Draft, limit: usize) {
    if !view.aliases().is_empty() {
        drop_aliases(of, wanted, view, draft, limit);
    }
    if wanted.names().is_empty() {
        return;
    }
    for resource in draft.resources().filter(|resource| !resource.aliases().is_empty()) {
        view.note_aliases(of, wanted, resource);
    }
}

/// Drops the aliases of removed resources. Beyond the number of subscribed names and `limit`, a former target is kept
/// only while no other name subscribes to it.
#[inline(never)]
fn drop_aliases<S: Source>(of: OfType<'_, S>, wanted: &Wanted, view: &mut View, draft: &Draft, limit: usize) {
    view.change_aliases(|aliases| {
        draft.removed.iter().for_each(|name| aliases.remove_resource(name));
        if aliases.len() > wanted.names().len() + limit {
            aliases.retain(|alias, resource| {
                let is_former = || !of.stands_for(alias, resource);
                wanted.names().contains(alias) && !(wanted.covers(resource.as_str()) && is_former())
            });
        }
    });
}

impl Relabel for Subscription {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.view.relabel(by);
        self.exchange.relabel(by);
        self.heartbeat.relabel(by);
        self.defer_until.relabel(by);
        self.hold.relabel(by);
        self.clusters_until.relabel(by);
    }
}

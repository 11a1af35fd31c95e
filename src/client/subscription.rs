//! One type of one client: what is wanted, what is held, what is out, and what this stream was told.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write;

use super::action::{Action, Effect, Failed};
use super::config::{DataErrors, Settings};
use super::failure::{Cause, Failure, News};
use super::incoming::Incoming;
use super::links::{Links, judge_other_names};
use super::timers::{Asked, Timers};
use super::update::{Offer, Rejection, Token, Update, Verdict};
use super::variant::Protocol;
use crate::error::{Code, Misuse, Status};
use crate::globs::Globs;
use crate::model::{Label, Relabel};
use crate::name::{Nonce, ResourceName, Version, WILDCARD};
use crate::resource_type::ResourceType;
use crate::time::Instant;

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Subscription<V: Protocol> {
    pub(super) kind: ResourceType,
    /// It is asked for even if nothing of it is wanted (delta).
    pub(super) on_demand: bool,
    /// Names that the application wants and that nobody has looked at yet. Ten thousand that come one by one are put in
    /// order once.
    fresh: Vec<ResourceName>,
    /// What the application wants; the wildcard is a name among the others.
    pub(super) wishes: BTreeMap<ResourceName, Wish>,
    /// Those of the names that stand for collections.
    pub(super) globs: Globs,
    pub(super) links: Links,
    /// What the application was given and accepted, and still wants.
    pub(super) held: BTreeMap<ResourceName, Held>,
    /// What is wrong, of what is wanted: of those of which something is.
    pub(super) failures: BTreeMap<ResourceName, Failure>,
    /// How often something left `held` but by an update: what a response was compared with may be gone.
    pub(super) losses: u64,
    /// The version of the last response that was accepted whole.
    pub(super) version: Version,
    /// Something held is not as an update that is accepted whole leaves it: has a version of its own, though that is
    /// implied, or is not claimed.
    pub(super) mixed: bool,
    /// The update that waits for its verdict: one at a time (DESIGN rule 2). It belongs to the session, not to
    /// the stream.
    pub(super) out: Option<Out>,
    /// The application is to be given no update now.
    pub(super) on_hold: bool,

    // From here on: of this stream only.
    /// Whether a request of this type was sent.
    pub(super) asked: bool,
    /// How many wishes were not told to the server.
    pub(super) untold: usize,
    /// Names that the server was told, that are (or were meanwhile) unwanted, and that it must be told are gone.
    pub(super) departed: BTreeSet<ResourceName>,
    /// Responses that wait for the verdict before theirs.
    pub(super) waiting: VecDeque<Incoming>,
    /// What is to be answered, in order.
    pub(super) answers: VecDeque<Answer>,
    /// How many responses came.
    pub(super) serial: u64,
    /// The nonce of the last.
    pub(super) nonce: Nonce,
    pub(super) timers: Timers,
    /// The application has something that the server should have been told of with the first request, and was not.
    pub(super) unsaid: bool,
    /// What expired, though the server may believe that it lives on: a heartbeat was late. As many as may be held.
    lapsed: BTreeSet<ResourceName>,
    pub(super) told: V::Told,
}

/// A name that is wanted.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Wish {
    /// Whether the server was told on this stream.
    pub(super) told: bool,
    /// The resource is known, or taken, not to exist, and the application knows.
    pub(super) missing: bool,
    /// The last content of this name was rejected.
    pub(super) rejected: bool,
    /// Of the wildcard: everything was delivered since it is wanted.
    pub(super) complete: bool,
    /// Of a collection: something came of it. Of the wildcard: a response answered it, and nothing that came was lost since.
    pub(super) answered: bool,
}

/// A resource that the application has.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Held {
    /// Empty where it is implied: of a full-state type in SotW what is claimed has that of the last response that was
    /// accepted whole.
    pub(super) version: Version,
    /// Whether the server may be told so. It may not for what was unwanted for a while when its update was
    /// accepted: the application has it, so its removal counts, but it must be asked for (DESIGN rule 14).
    pub(super) claimed: bool,
}

/// An update that the application has not answered.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Out {
    pub(super) token: Token,
    pub(super) offer: Arc<Offer>,
    /// What the machine itself rejected of the same response.
    pub(super) faults: Vec<Rejection>,
    /// Whether the response came on this stream, so that its answer can be sent.
    pub(super) live: bool,
    /// Names in the offer that were unwanted at some time since.
    pub(super) left: BTreeSet<ResourceName>,
    /// Those of them that were not wanted when a later stream began, so that its first request did not claim them (delta).
    pub(super) unsaid: BTreeSet<ResourceName>,
    seen: Option<Seen>,
}

/// How the resources of a response compare with what is held: found out as it was read, and good as long as nothing is
/// lost since. It spares a full-state type, of which each response has everything, two more passes.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Seen {
    losses: u64,
    /// Which are not held, by their number.
    new: Vec<usize>,
    /// None has a TTL.
    plain: bool,
}

/// An ACK or NACK that is to be sent.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Answer {
    pub(super) nonce: Nonce,
    pub(super) serial: u64,
    /// The version to claim, as it was at the verdict.
    pub(super) version: Version,
    pub(super) error: Option<Status>,
}

impl<V: Protocol> Subscription<V> {
    pub(super) fn new(kind: ResourceType) -> Self {
        Self {
            kind,
            on_demand: false,
            fresh: Vec::new(),
            wishes: BTreeMap::new(),
            globs: Globs::default(),
            links: Links::default(),
            held: BTreeMap::new(),
            failures: BTreeMap::new(),
            losses: 0,
            version: Version::default(),
            mixed: false,
            out: None,
            on_hold: false,
            asked: false,
            untold: 0,
            departed: BTreeSet::new(),
            waiting: VecDeque::new(),
            answers: VecDeque::new(),
            serial: 0,
            nonce: Nonce::default(),
            timers: Timers::default(),
            unsaid: false,
            lapsed: BTreeSet::new(),
            told: V::Told::default(),
        }
    }

    pub(super) fn on_demand(kind: ResourceType) -> Self {
        Self { on_demand: true, ..Self::new(kind) }
    }

    // What the application wants.

    /// To be followed by [`look`](Self::look) before anything else that depends on what is wanted.
    pub(super) fn subscribe(&mut self, name: ResourceName) {
        self.fresh.push(name);
    }

    /// Takes in the names that were subscribed to since.
    pub(super) fn look(&mut self) {
        if self.fresh.is_empty() {
            return;
        }
        let fresh = core::mem::take(&mut self.fresh);
        fresh.iter().for_each(|name| _ = self.globs.insert(name));
        if self.wishes.is_empty() && V::never_spoke(self) {
            // A tree that is made at once is made faster, and of fuller nodes.
            self.wishes = fresh.into_iter().map(|name| (name, Wish::default())).collect();
            self.untold = self.wishes.len();
            return;
        }
        for name in fresh {
            if !self.wishes.contains_key(&name) {
                V::subscribed(self, &name);
                if !self.held.contains_key(&name) {
                    self.failures.remove(&name); // who asks by name is answered, though it be the same as before
                }
                self.wishes.insert(name, Wish::default());
                self.untold += 1;
            }
        }
    }

    /// Names that nobody has looked at yet.
    pub(super) fn fresh(&self) -> impl Iterator<Item = &ResourceName> {
        self.fresh.iter()
    }

    /// Whether a name was subscribed to that was not before.
    pub(super) fn has_new_wish(&self) -> bool {
        self.fresh.iter().any(|name| !self.wishes.contains_key(name))
    }

    /// Whether a name is among those that nobody has looked at.
    pub(super) fn is_fresh(&self, name: &str) -> bool {
        self.fresh.iter().any(|fresh| fresh == name)
    }

    pub(super) fn wants_anything(&self) -> bool {
        !self.wishes.is_empty() || !self.fresh.is_empty() || self.on_demand
    }

    pub(super) fn unsubscribe(&mut self, name: &str, settings: &Settings) {
        let Some((name, wish)) = self.wishes.remove_entry(name) else { return };
        self.timers.stop(&name);
        V::unsubscribed(self, &name, wish.told);
        self.losses += 1;
        let stood_for = self.links.target(name.as_str()).cloned();
        self.let_go(&name);
        self.let_go_failures(&name, stood_for, settings);
        if wish.told {
            self.departed.insert(name);
        } else {
            self.untold -= 1;
        }
    }

    pub(super) fn wants(&self, name: &str) -> bool {
        self.wishes.contains_key(name)
    }

    // What happens to the stream.

    /// Forgets all that is of a stream: nonces, answers and the backlog die with it.
    pub(super) fn leave_stream(&mut self) {
        for wish in self.wishes.values_mut() {
            wish.told = false;
        }
        self.untold = self.wishes.len();
        self.asked = false;
        self.departed.clear();
        self.waiting.clear();
        self.answers.clear();
        self.serial = 0;
        self.nonce = Nonce::default();
        self.timers.stop_all();
        self.failures.values_mut().for_each(|failure| failure.standing = false);
        self.told = V::Told::default();
        self.unsaid = false;
        self.lapsed.clear();
        if let Some(out) = &mut self.out {
            out.live = false;
            out.unsaid.clear();
        }
    }

    /// How many responses are not answered.
    pub(super) fn unanswered(&self) -> usize {
        self.unjudged() + self.answers.len()
    }

    /// How many responses of this stream wait for a verdict.
    pub(super) fn unjudged(&self) -> usize {
        let out = self.out.as_ref().is_some_and(|out| out.live);
        self.waiting.len() + usize::from(out)
    }

    pub(super) fn receive(&mut self, response: V::Response, settings: &Settings) {
        self.look();
        self.serial += 1;
        let mut incoming = V::read(response, settings, self);
        if !settings.ttl {
            incoming.resources.drop_ttls();
        }
        self.nonce = incoming.nonce.clone();
        // C-TIMER-07: what came, though it be broken or wait its turn, exists.
        if self.timers.running() <= incoming.resources.len() {
            self.timers.stop_where(|name| incoming.mentions(name));
        } else {
            let aliases = incoming.resources.with_aliases().flat_map(|resource| resource.aliases());
            for name in incoming.resources.names().chain(incoming.others()).chain(aliases) {
                self.timers.stop(name);
                if let Some(glob) = self.globs.of(name.as_str()) {
                    self.timers.stop(glob);
                }
            }
        }
        // What it was compared with is what it will be applied to, unless it has to wait.
        incoming.compared &= self.waiting.is_empty() && self.out.is_none() && !self.on_hold;
        self.waiting.push_back(incoming);
    }

    /// The transport took a request: the existence timers of what it asked for start.
    pub(super) fn sent(&mut self, now: Instant, seq: u64, settings: &Settings) {
        while let Some(asked) = self.timers.take_asked(seq) {
            let names = match asked {
                Asked::All => self.wishes.keys().cloned().collect(),
                Asked::These(names) => names,
            };
            for name in names {
                if let Some(timeout) = V::timeout(self, &name, settings).filter(|_| self.is_awaited(&name)) {
                    self.timers.start(name, now + timeout);
                }
            }
        }
    }

    /// Whether a wanted name has no content, and none on its way (C-TIMER-03, C-TIMER-07).
    pub(super) fn is_awaited(&self, name: &ResourceName) -> bool {
        self.is_unknown(name) && self.wishes.get(name).is_some_and(|wish| !wish.answered || name.is_wildcard())
    }

    /// Whether nothing is known of a wanted name, be it that it was known once.
    pub(super) fn is_unknown(&self, name: &ResourceName) -> bool {
        let waiting = self.waiting.iter().any(|incoming| incoming.mentions(name.as_str()));
        let out = self.out.as_ref().is_some_and(|out| out.offer.resources.have(name.as_str()));
        let failed = |failure: &Failure| failure.standing && !failure.status.is(Code::NotFound);
        let heard = self.held.contains_key(name)
            || self.links.target(name.as_str()).is_some()
            || self.failures.get(name).is_some_and(failed)
            || (name.is_glob() && self.members(name).next().is_some());
        self.wishes.get(name).is_some_and(|wish| !wish.missing && !wish.rejected) && !heard && !waiting && !out
    }

    // What to do with responses.

    /// Processes the responses that wait, up to one that the application has to see.
    pub(super) fn advance(&mut self, now: Instant, epoch: u64, settings: &Settings, act: &mut impl FnMut(Action)) {
        while self.out.is_none() && !self.on_hold {
            let Some(incoming) = self.waiting.pop_front() else { return };
            self.process(now, epoch, incoming, settings, act);
        }
    }

    fn process(
        &mut self,
        now: Instant,
        epoch: u64,
        mut incoming: Incoming,
        settings: &Settings,
        act: &mut impl FnMut(Action),
    ) {
        if let Some(reason) = self.too_many_with(&incoming, settings.limits.resources_per_type) {
            incoming.refuse(reason);
        }
        self.split_nowhere(&mut incoming);
        let all_answered = self.hears_all(&incoming);
        // A heartbeat beside it may be all that there is to say of what the wildcard stands for.
        let awaits_all = self.wishes.get(WILDCARD).is_some_and(|wish| wish.told && !wish.answered);
        let answers = all_answered || awaits_all || incoming.heartbeats.is_empty();
        let synced = answers && incoming.brings_nothing();
        V::processed(self, &incoming);
        for name in incoming.faults.iter().filter_map(|fault| fault.name.as_ref()) {
            if let Some(wish) = self.wishes.get_mut(name) {
                wish.rejected = true;
            }
        }
        let mut news = self.gone_with(&incoming);
        self.hear_deletions(now, incoming.resources.version(), settings, &mut news);
        self.hear_errors(now, &mut incoming, settings, &mut news);
        self.beat(now, &mut incoming);
        // C-RES-12: what is not wanted is ignored, faults and all.
        incoming.faults.retain(|fault| fault.name.as_ref().is_none_or(|name| V::takes(self, name.as_str())));
        self.note_faults(now, &incoming, settings, &mut news);
        if !V::takes(self, WILDCARD) {
            let owners = self.alias_owners(&incoming);
            let mut by_alias = owners.iter().filter(|(alias, _)| V::takes(self, alias.as_str())).map(|(_, name)| name);
            let by_alias: BTreeSet<&ResourceName> = by_alias.by_ref().collect();
            let stays = |name: &ResourceName| news.removed.binary_search(name).is_err(); // by its last alias, it may not
            incoming.resources.retain(|resource| {
                let name = resource.name();
                (V::takes(self, name.as_str()) || by_alias.contains(name)) && stays(name)
            });
        }
        let type_url = self.kind.type_url();
        if !news.failed.is_empty() {
            act(Action::Errors { type_url: type_url.clone(), errors: news.take_failed() });
        }
        if !news.missing.is_empty() {
            act(Action::Missing { type_url: type_url.clone(), names: news.missing });
        }
        if !incoming.faults.is_empty() {
            act(Action::Rejected {
                type_url: self.kind.type_url().clone(),
                nonce: incoming.nonce.clone(),
                faults: incoming.faults.clone(),
            });
        }
        let seen = incoming.compared.then(|| Seen {
            losses: self.losses,
            new: core::mem::take(&mut incoming.new),
            plain: incoming.resources.is_plain(),
        });
        let token = Token {
            client: settings.id,
            type_url: self.kind.type_url().clone(),
            epoch,
            serial: incoming.serial,
            nonce: incoming.nonce,
        };
        let drops_rejected = settings.data_errors == DataErrors::Drop;
        let all_fails = self.failures.contains_key(WILDCARD);
        let offer = Offer { resources: incoming.resources, removed: news.removed, drops_rejected, all_fails };
        let nothing = offer.resources.is_empty() && offer.removed.is_empty();
        let offer = Arc::new(offer);
        let (left, unsaid) = (BTreeSet::new(), BTreeSet::new());
        let out = Out { token, offer, faults: incoming.faults, live: true, left, unsaid, seen };
        if nothing {
            if synced && out.faults.is_empty() && !self.wishes.is_empty() {
                act(Action::Synced { type_url: self.kind.type_url().clone() });
            }
            self.settle(now, out, Vec::new(), settings);
        } else {
            act(Action::Apply(Update { token: out.token.clone(), offer: out.offer.clone() }));
            self.out = Some(out);
        }
    }

    /// Whether this is the first answer to the wildcard.
    fn hears_all(&mut self, incoming: &Incoming) -> bool {
        let first = self.wishes.get(WILDCARD).is_some_and(|wish| !wish.answered) && V::answers_all(self, incoming);
        if let Some(wish) = self.wishes.get_mut(WILDCARD).filter(|_| first) {
            wish.answered = true;
        }
        first
    }

    /// Whether a server that was asked for everything sends more than this.
    fn too_many_with(&self, incoming: &Incoming, limit: usize) -> Option<String> {
        if self.held.len() + incoming.resources.len() <= limit || (!self.wants(WILDCARD) && self.globs.is_empty()) {
            return None;
        }
        let held = |name: &&ResourceName| self.held.contains_key(*name);
        let gone = if V::absence_removes(self, incoming) {
            self.held.len() - incoming.resources.names().filter(held).count()
        } else {
            incoming.removed.iter().filter(held).count()
        };
        let count = self.held.len() - gone + incoming.resources.names().filter(|name| !held(name)).count();
        (count > limit).then(|| alloc::format!("{count} resources with the response, limit {limit}"))
    }

    /// Heartbeats: the TTL starts anew (C-TTL-02, C-TTL-03), nothing else happens. One that names a version that
    /// is not held is a resource without content.
    fn beat(&mut self, now: Instant, incoming: &mut Incoming) {
        for heartbeat in core::mem::take(&mut incoming.heartbeats) {
            let matches = |held: &Held| V::heartbeat_matches(self, held, &heartbeat, incoming.resources.version());
            if self.held.get(&heartbeat.name).is_some_and(matches) {
                self.timers.set_expiry(&heartbeat.name, heartbeat.ttl.map(|ttl| now + ttl));
            } else {
                incoming.fault(Some(heartbeat.name), "no content, and no heartbeat of what is held");
            }
        }
    }

    /// What the response says is gone, of what is held. What is not held but was asked for is missing.
    fn gone_with(&mut self, incoming: &Incoming) -> News {
        let mut news = News::default();
        if incoming.refused {
            return news;
        }
        if V::absence_removes(self, incoming) {
            if incoming.compared && incoming.held == self.held.len() {
                return news; // all is there
            }
            let mut present: BTreeSet<&ResourceName> = incoming.others().collect();
            let mut resources = incoming.resources.names().peekable();
            let absent = self.held.keys().filter(|&name| {
                while resources.next_if(|&other| other < name).is_some() {}
                let absent = resources.next_if(|&other| other == name).is_none() && !present.remove(name);
                absent && !self.is_excused(name)
            });
            news.removed = absent.cloned().collect();
            return news;
        }
        self.named_gone(incoming)
    }

    // What became of them.

    pub(super) fn verdict(&mut self, now: Instant, verdict: Verdict, settings: &Settings) -> Result<(), Misuse> {
        match self.out.take() {
            Some(out) if out.token == verdict.token => {
                self.look();
                self.settle(now, out, verdict.rejections, settings);
                Ok(())
            }
            other => {
                self.out = other;
                Err(Misuse::UnknownUpdate { type_url: self.kind.type_url().clone() })
            }
        }
    }

    /// Commits what was accepted of an update, and answers the response if its stream lives.
    fn settle(&mut self, now: Instant, out: Out, rejections: Vec<Rejection>, settings: &Settings) {
        let rejected: BTreeSet<&ResourceName> =
            rejections.iter().filter_map(|rejection| rejection.name.as_ref()).collect();
        let whole = rejections.is_empty() && out.faults.is_empty();
        self.hold(now, &out, &rejected, whole);
        self.note_verdict(now, &out, &rejections, &rejected, settings);
        for name in &out.offer.removed {
            if rejected.contains(name) && self.covers(name.as_str()) {
                self.links.found(name); // it stays, so it is not to be claimed to be nowhere
                continue;
            }
            self.held.remove(name);
            self.unlink(name);
            self.timers.set_expiry(name, None);
            // Wanted anew since, it has its own answer to come.
            if let Some(wish) = self.wishes.get_mut(name).filter(|_| !out.left.contains(name)) {
                let exists = |failure: &Failure| !failure.status.is(Code::NotFound);
                wish.missing = !self.failures.get(name).is_some_and(exists);
                wish.rejected = false; // there is nothing left that was
                self.timers.stop(name);
            } else {
                self.failures.remove(name);
            }
        }
        if whole {
            self.version = out.offer.resources.version().clone();
        }
        if out.live {
            if whole && self.kind.is_full_state() {
                self.lapsed.clear(); // it would have been there
            }
            // What expired on this stream may be there in any version.
            let complete = whole && V::completes(self) && self.lapsed.is_empty();
            if let Some(wish) = self.wishes.get_mut(WILDCARD) {
                wish.complete |= complete;
            }
            let error = (!whole).then(|| nack(out.faults.iter().chain(&rejections), settings.limits.error_bytes));
            let Token { nonce, serial, .. } = out.token;
            self.answers.push_back(Answer { nonce, serial, version: self.version.clone(), error });
        }
    }

    /// Takes in what was accepted of an update. `whole`: the response was at no fault.
    fn hold(&mut self, now: Instant, out: &Out, rejected: &BTreeSet<&ResourceName>, whole: bool) {
        let wildcard = self.wants(WILDCARD);
        let named = self.wishes.len() > usize::from(wildcard);
        if !wildcard && !named {
            return;
        }
        let implied = whole && V::implies_version(self);
        let seen = out.seen.as_ref().filter(|seen| seen.plain && seen.losses == self.losses);
        if let Some(seen) = seen.filter(|_| implied && !named && !self.mixed && self.timers.no_expiry()) {
            let new = seen.new.iter().map(|&at| out.offer.resources.at(at).name().clone());
            return self.add(new.map(|name| (name, Held { version: Version::default(), claimed: true })));
        }
        let was_mixed = core::mem::replace(&mut self.mixed, !implied);
        // With the wildcard, what is held and what came are much the same names in the same order.
        let dense = wildcard && out.offer.resources.len() > self.held.len() / 8;
        let mut ahead = dense.then(|| self.held.iter_mut().peekable());
        let (mut new, mut taken) = (Vec::new(), 0);
        for resource in out.offer.resources.iter() {
            let name = resource.name();
            let accepted = !rejected.contains(name);
            if named {
                let otherwise =
                    judge_other_names::<V>(&mut self.wishes, &self.globs, &mut self.links, resource, accepted);
                let wish = self.wishes.get_mut(name);
                if wish.is_none() && !wildcard && !otherwise {
                    continue;
                }
                if let Some(wish) = wish {
                    wish.rejected = !accepted;
                    wish.missing &= !accepted;
                }
            }
            if !accepted {
                continue;
            }
            self.timers.set_expiry(name, resource.ttl().map(|ttl| now + ttl));
            self.lapsed.remove(name);
            let claimed = !out.left.contains(name);
            let version = if implied && claimed { Version::default() } else { resource.version().clone() };
            let held = Held { version, claimed };
            self.mixed |= !claimed;
            taken += 1;
            if let Some(ahead) = &mut ahead {
                while ahead.next_if(|(other, _)| *other < name).is_some() {}
                if let Some((_, place)) = ahead.next_if(|(other, _)| *other == name) {
                    *place = held;
                    continue;
                }
            }
            new.push((name.clone(), held));
        }
        self.add(new.into_iter());
        if !out.unsaid.is_empty() {
            self.note_taken_unsaid(out, rejected);
        }
        if named {
            self.drop_namesakes(out);
        }
        // What was held and is not in the update, such as what had a heartbeat, is as it was.
        self.mixed |= was_mixed && self.held.len() > taken;
    }

    fn add(&mut self, new: impl Iterator<Item = (ResourceName, Held)>) {
        if self.held.is_empty() {
            self.held = new.collect(); // a tree that is made at once is made faster, and of fuller nodes
        } else {
            self.held.extend(new);
        }
    }

    // Time.

    /// What is due: names that are missing, and names that expired.
    pub(super) fn timeout(&mut self, now: Instant, settings: &Settings, act: &mut impl FnMut(Action)) {
        let (mut missing, mut failed) = (Vec::new(), Vec::new());
        while let Some(name) = self.timers.take_due(now) {
            if !V::asks_again(self, &name) && !name.is_wildcard() {
                if settings.transient_timeout {
                    let status = Status::new(Code::Unavailable, "the resource did not come in time");
                    self.fail(&name, Cause::TimedOut, status.clone(), &Version::default(), now, settings);
                    failed.push(Failed { name, status, effect: Effect::Fails });
                } else if let Some(wish) = self.wishes.get_mut(&name) {
                    wish.missing = true;
                    self.failures.remove(&name);
                    missing.push(name);
                }
            }
        }
        if !failed.is_empty() {
            failed.sort_by(|a, b| a.name.cmp(&b.name));
            act(Action::Errors { type_url: self.kind.type_url().clone(), errors: failed });
        }
        if !missing.is_empty() {
            missing.sort();
            act(Action::Missing { type_url: self.kind.type_url().clone(), names: missing });
        }
        let mut expired = Vec::new();
        while let Some(name) = self.timers.take_expired(now) {
            self.losses += 1;
            self.held.remove(&name);
            self.unlink(&name);
            if let Some(wish) = self.wishes.get_mut(&name) {
                wish.rejected = false; // no version of it may be claimed any more
            } else {
                self.failures.remove(&name);
            }
            if self.asked && self.lapsed.len() < settings.limits.resources_per_type {
                self.lapsed.insert(name.clone());
            }
            expired.push(name);
        }
        if !expired.is_empty() {
            expired.sort();
            if let Some(wish) = self.wishes.get_mut(WILDCARD) {
                (wish.complete, wish.answered) = (false, false);
            }
            act(Action::Expired { type_url: self.kind.type_url().clone(), names: expired });
        }
    }
}

impl Offer {
    pub(super) fn names(&self) -> impl Iterator<Item = &ResourceName> {
        self.resources.names().chain(&self.removed)
    }
}

/// The `error_detail` of a NACK. INVALID_ARGUMENT, and never 0 (C-SOTW-04).
fn nack<'a>(rejections: impl Iterator<Item = &'a Rejection>, limit: usize) -> Status {
    let mut message = String::new();
    for rejection in rejections {
        if message.len() > limit {
            break;
        }
        let gap = if message.is_empty() { "" } else { "; " };
        let written = match &rejection.name {
            Some(name) => write!(message, "{gap}{name}: {}", rejection.reason),
            None => write!(message, "{gap}{}", rejection.reason),
        };
        debug_assert!(written.is_ok(), "a string takes all there is");
    }
    let mut status = Status::new(Code::InvalidArgument, message);
    status.truncate(limit);
    status
}

impl<V: Protocol> Relabel for Subscription<V> {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        let type_url = self.kind.type_url();
        by(Label::Loss(type_url, &mut self.losses));
        by(Label::Response(type_url, &mut self.serial));
        self.nonce.relabel(by);
        if let Some(out) = &mut self.out {
            out.token.relabel(by);
            out.seen.iter_mut().for_each(|seen| by(Label::Loss(type_url, &mut seen.losses)));
        }
        for incoming in &mut self.waiting {
            by(Label::Response(type_url, &mut incoming.serial));
            incoming.nonce.relabel(by);
        }
        for answer in &mut self.answers {
            by(Label::Response(type_url, &mut answer.serial));
            answer.nonce.relabel(by);
        }
        self.failures.values_mut().for_each(|failure| failure.at.relabel(by));
        self.timers.relabel(by);
        V::each_serial(&mut self.told, &mut |serial| by(Label::Response(type_url, serial)));
    }
}

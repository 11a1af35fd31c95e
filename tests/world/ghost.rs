//! What must hold after each step. Written from the specification, with a memory of its own: it reads no machine.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use xds_machine::client::{Dialect, Intent, Rejection, Update};
use xds_machine::model::{Label, Relabel};
use xds_machine::server::{Action, Cache, Source, State};
use xds_machine::{Code, Instant, Nonce, ResourceName, Version, WILDCARD, type_url};

use super::variant::{Both, Response};
use super::{Application, Bug, Made, is_resource, resource, stands_for};

/// Whether a response was accepted, and the versions of which one was the last accepted by then.
type Judged = (bool, BTreeSet<Version>);

/// One type's memory.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
struct Memory {
    // The client's side of the stream.
    /// A request was sent.
    asked: bool,
    /// A name was sent.
    named: bool,
    /// Responses that the client read and did not answer, in order, with the verdict and what may have
    /// been accepted by then.
    unanswered: VecDeque<(Nonce, Version, Option<Judged>)>,
    /// The last nonce that the client read.
    read: Option<Nonce>,
    /// The version of the last response that was accepted whole. More than one if the stream broke before the answer
    /// to a response that was accepted unseen.
    accepted: BTreeSet<Version>,
    /// Responses with heartbeats that the client read and did not look at yet.
    beats: VecDeque<Beats>,
    /// Those in which it found a fault.
    faulty: BTreeSet<Nonce>,
    /// What expired on this stream and did not come since: the server knows nothing of it.
    lapsed: BTreeSet<ResourceName>,

    // The server's side.
    /// A heartbeat may be due.
    due: bool,
    /// Until when there is no heartbeat of what changed.
    fresh: BTreeMap<ResourceName, Instant>,
    /// The response that waits for an answer, with its resources.
    out: Option<(Nonce, BTreeMap<ResourceName, u8>)>,
    sent: Option<Nonce>,
    /// What the client rejected and the server may not send again.
    rejected: BTreeMap<ResourceName, u8>,
    /// How often that may happen all the same.
    retries: u32,
    /// What was sent again since it changed, in portions.
    twice: BTreeSet<ResourceName>,
    /// The response that is out was sent again.
    again: bool,
    /// The whole of the response that was rejected, for full-state types.
    rejected_whole: Option<BTreeMap<ResourceName, u8>>,
    /// What the requests up to now add up to.
    listed: BTreeSet<ResourceName>,
    /// The server was told a name; in delta: anything.
    named_to_server: bool,
    /// Something was asked for since the last response.
    asked_since: bool,
    /// What the client was sent, as far as it was not taken back.
    delivered: BTreeMap<ResourceName, u8>,
    /// What changed since it was delivered.
    unseen: BTreeSet<ResourceName>,
    /// Something with a TTL changed and is as it was: what was just sent may be said to live on together with that.
    flapped: bool,
    /// Endpoints that have to go again.
    cold: BTreeSet<ResourceName>,
    /// What was asked for, or changed, since the last response.
    stirred: BTreeSet<ResourceName>,
}

/// The heartbeats of a response.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Beats {
    nonce: Nonce,
    versions: BTreeMap<ResourceName, Version>,
}

/// What the server said, apart from what had to be said.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told {
    /// Endpoints went again that a cluster was waiting for.
    pub warm: bool,
    /// That something lives on.
    pub beats: bool,
}

impl Memory {
    /// Whether a name is wanted as far as the server can know.
    fn server_wants(&self, name: &ResourceName) -> bool {
        covers(&self.listed, name)
    }
}

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Ghost {
    types: Vec<Memory>,
    up: bool,
    /// Time passed on this stream while something was under way: a heartbeat may come late.
    late: bool,
    requests: u64,
}

impl Ghost {
    pub fn new(types: usize) -> Self {
        Self { types: vec![Memory::default(); types], up: false, late: false, requests: 0 }
    }

    pub fn open(&mut self, apps: &[Application]) {
        assert!(!self.up, "one stream at a time");
        self.up = true;
        self.late = false;
        for (memory, app) in self.types.iter_mut().zip(apps) {
            if app.wanted.is_empty() && app.judging.is_none() || memory.accepted.is_empty() {
                memory.accepted = BTreeSet::from([Version::default()]); // of what nobody wants, nothing is remembered
            }
        }
    }

    pub fn close(&mut self) {
        self.up = false;
        self.requests = 0;
        for memory in &mut self.types {
            let unseen = memory.unanswered.iter().filter(|(.., verdict)| verdict.is_none());
            let mut accepted = memory.accepted.clone();
            accepted.extend(unseen.map(|(_, version, _)| version.clone()));
            *memory = Memory { accepted, ..Memory::default() };
        }
    }

    pub fn client_says<V: Both>(
        &mut self,
        setup: &Made,
        cache: &Cache,
        apps: &[Application],
        intent: Intent,
        request: &V::Req,
    ) {
        assert!(self.up, "a request with no stream");
        let request = V::request(request);
        let t = setup.type_number(request.type_url);
        let (memory, app) = (&mut self.types[t], &apps[t]);
        self.requests = 1;

        assert_eq!(intent == Intent::Initial, !memory.asked, "the first request of a type is its first");
        assert_eq!(request.error.is_some(), intent == Intent::Nack, "NACK is the presence of an error");
        assert!(app.paused == 0 || intent == Intent::Initial, "something is said of a type that is held back");
        match intent {
            Intent::Ack | Intent::Nack => {
                let (nonce, version, verdict) =
                    memory.unanswered.pop_front().expect("an answer to a response that was read");
                assert_eq!(*request.nonce, nonce, "responses are answered in order");
                // What is answered unseen had nothing in it that is wanted.
                let accepted = intent == Intent::Ack;
                let by_then = match verdict {
                    Some((verdict, by_then)) => {
                        assert_eq!(verdict, accepted, "the answer is the verdict");
                        by_then
                    }
                    None => {
                        assert!(accepted, "nobody rejected this");
                        if memory.unanswered.iter().all(|(.., verdict)| verdict.is_none()) {
                            memory.accepted = BTreeSet::from([version.clone()]);
                        }
                        BTreeSet::from([version])
                    }
                };
                if let Some(claimed) = request.version {
                    assert!(by_then.contains(claimed), "{claimed} is claimed, {by_then:?} was accepted");
                }
            }
            Intent::Initial => {
                assert!(request.nonce.is_empty(), "nonces do not outlive streams");
                // Who claims what the server has is sent nothing.
                let claims = request.version.is_some_and(|version| *version == cache.version(&setup.types[t]));
                let lost = app.expired.iter().find(|name| content(setup, cache, t, name).is_some());
                assert!(!claims || lost.is_none(), "{lost:?} expired, and all is claimed");
                for (name, version) in &request.initial {
                    let out = app.judging.as_ref().is_some_and(|update| update.resource(name.as_str()).is_some());
                    let held = app.applied.get(*name).map(|&content| version_of(setup, name, content));
                    assert!(held.as_ref() == Some(*version) || version.is_empty(), "{name} is not held at {version}");
                    assert!(held.is_some() || out, "{name} is claimed, and not there");
                }
            }
            Intent::Subscribe => {
                if V::LISTS {
                    assert_eq!(
                        Some(request.nonce),
                        memory.read.as_ref().or(Some(&Nonce::default())),
                        "the newest nonce"
                    );
                    assert!(memory.unanswered.is_empty(), "nothing else is said while a response is unanswered");
                } else {
                    assert!(request.nonce.is_empty(), "a request that answers nothing has no nonce");
                }
            }
        }
        // To an istiod a NACK says what was said before.
        let bare = intent == Intent::Nack && setup.dialect == Dialect::Istio;
        if V::LISTS && request.names.is_empty() && !memory.named && !bare {
            assert!(app.wanted.iter().any(|name| name.is_wildcard()), "an empty list, and nobody wants everything");
        }
        assert!(
            V::LISTS || intent != Intent::Initial || !request.names.is_empty() || !app.wanted.is_empty(),
            "a first request that wants nothing"
        );
        memory.asked = true;
        memory.named |= !request.names.is_empty();
    }

    /// Whether the server takes the request.
    pub fn server_reads<V: Both>(&mut self, setup: &Made, request: &V::Req) -> bool {
        let request = V::request(request);
        let memory = &mut self.types[setup.type_number(request.type_url)];
        let answers = memory.sent.as_ref() == Some(request.nonce);
        if setup.strict_server && V::LISTS && memory.sent.is_some() && !answers {
            return false;
        }
        if answers {
            if let Some((_, mut resources)) = memory.out.take() {
                if !std::mem::take(&mut memory.again) {
                    memory.retries = setup.retry.unwrap_or(0);
                }
                if request.error.is_some() && !memory.stirred.contains(WILDCARD) {
                    memory.rejected_whole = memory.stirred.is_empty().then(|| resources.clone());
                    resources.retain(|name, _| !covers(&memory.stirred, name));
                    memory.rejected.extend(resources);
                }
            }
        }
        let again: BTreeSet<ResourceName> = if V::LISTS {
            // Names that were not in the list before.
            let mut listed: BTreeSet<ResourceName> = request.names.iter().cloned().collect();
            memory.named_to_server |= !listed.is_empty();
            if !memory.named_to_server && setup.legacy_wildcard {
                listed.insert(WILDCARD.into());
            }
            let new: BTreeSet<ResourceName> = listed.difference(&memory.listed).cloned().collect();
            memory.listed = listed;
            if memory.listed.is_empty() {
                memory.out = None; // nobody waits for answers of a type that nothing is wanted of
            }
            new
        } else {
            let first = !std::mem::replace(&mut memory.named_to_server, true);
            let nothing = request.names.is_empty() && request.unsubscribe.is_empty();
            memory.asked_since |= first;
            if !request.initial.is_empty() {
                memory.due = true; // it may have little time left
                memory.fresh.clear();
            }
            for (name, version) in &request.initial {
                // What the client has need not be sent.
                let content = (0..2).find(|&content| version_of(setup, name, content) == **version);
                memory.delivered.extend(content.map(|content| ((*name).clone(), content)));
            }
            if first && nothing && setup.legacy_wildcard {
                memory.listed.insert(WILDCARD.into());
            }
            memory.listed.extend(request.names.iter().cloned());
            memory.listed.retain(|name| !request.unsubscribe.contains(name));
            request.names.iter().chain(request.unsubscribe).cloned().collect()
        };
        memory.asked_since |= !again.is_empty();
        let listed = &memory.listed;
        memory.delivered.retain(|name, _| covers(listed, name));
        memory.cold.retain(|name| covers(listed, name));
        // What is asked for again is sent again, rejected or not.
        memory.stirred.extend(again.iter().cloned());
        if again.contains(WILDCARD) {
            memory.rejected.clear();
        }
        if !again.is_empty() {
            memory.rejected_whole = None;
        }
        memory.rejected.retain(|name, _| !covers(&again, name));
        memory.twice.retain(|name| !covers(&again, name));
        true
    }

    pub fn server_acts(&mut self, setup: &Made, action: Action) {
        match action {
            Action::Close(status) => panic!("the stream is to close: {status}"),
            Action::DropStale { .. } if setup.strict_server => panic!("stale requests do not get here"),
            _ => {}
        }
    }

    /// Whether the stream is to end: only if the store may have forgotten what the client should hear.
    pub fn server_closes(&mut self, setup: &Made, action: Action) -> bool {
        match action {
            Action::Close(status) if setup.tombstones < 10 => status.code == Code::Unavailable.number(),
            other => panic!("nothing happened, and yet {other:?}"),
        }
    }

    pub fn server_sends<V: Both>(&mut self, setup: &Made, now: Instant, cache: &Cache, response: &V::Resp) -> Told {
        let response = V::response(response);
        let t = setup.type_number(&response.type_url);
        let memory = &mut self.types[t];
        assert!(memory.out.is_none(), "one response of a type is out at a time");
        assert!(!response.nonce.is_empty() && !response.version.is_empty(), "a response has a nonce and a version");
        let due = memory.due;
        assert!(due || response.beats.is_empty(), "a heartbeat before its time");
        for name in response.beats.keys() {
            assert!(memory.server_wants(name), "{name} lives on, and is not wanted as far as the server can know");
            let there = content(setup, cache, t, name);
            assert!(there.is_some() && there.as_ref() == memory.delivered.get(name), "{name} lives on unsent");
            let fresh = memory.fresh.get(name).is_some_and(|until| now < *until);
            assert!(!fresh || memory.flapped, "{name} just changed, and lives on");
        }
        memory.flapped &= response.beats.is_empty();
        if response.resources.is_empty() && !response.beats.is_empty() && response.removed.is_empty() {
            memory.out = Some((response.nonce.clone(), BTreeMap::new()));
            memory.sent = Some(response.nonce);
            memory.due = false;
            return Told { warm: false, beats: true };
        }
        let same = |(name, content): &(ResourceName, u8)| memory.delivered.get(name) == Some(content);
        let again = due && V::LISTS && setup.full_state && response.resources.iter().all(same);
        if !again {
            self.check_order::<V>(setup, now, cache, t, &response);
        }
        let memory = &mut self.types[t];
        memory.due &= !again && response.beats.is_empty();
        let count = response.resources.len();
        let resources: BTreeMap<ResourceName, u8> = response.resources.into_iter().collect();
        assert_eq!(resources.len(), count, "a name is in a response once");
        assert!(resources.keys().all(|name| !response.removed.contains(name)), "a name is there or gone");
        for name in &response.errors {
            assert!(memory.server_wants(name), "{name} has an error, and is not wanted as far as the server can know");
            assert!(!resources.contains_key(name), "{name} is there, and has an error");
        }
        for name in resources.keys() {
            assert!(memory.server_wants(name), "{name} is sent, and not wanted as far as the server can know");
        }
        if V::LISTS && setup.full_state {
            let rejected = memory.rejected_whole.as_ref().filter(|_| setup.bug != Some(Bug::NackLoop));
            memory.again = rejected == Some(&resources);
            // Who says that all lives on says all.
            assert!(!memory.again || memory.retries > 0 || due, "what was rejected is sent again");
            let there = |name: &&ResourceName| memory.server_wants(name) && content(setup, cache, t, name).is_some();
            let all: BTreeSet<&ResourceName> = setup.names.iter().filter(there).collect();
            let mut gone = resources.keys().filter(|name| !all.contains(name));
            // Clusters and endpoints may stay for a time; only what the client has.
            let stays = |name: &ResourceName| {
                let same = memory.delivered.get(name) == resources.get(name);
                setup.hold && [type_url::CLUSTER, type_url::ENDPOINT].contains(&setup.types[t].as_str()) && same
            };
            assert!(gone.all(stays), "a full-state type has what is wanted");
            let there = resources.keys().filter(|name| all.contains(name));
            assert!(all.iter().copied().eq(there), "a full-state type has all that is wanted");
        } else {
            memory.again = false; // the answer to the last may not have counted
            for (name, content) in resources.iter().filter(|_| setup.bug != Some(Bug::NackLoop)) {
                let again = Some(content) == memory.rejected.get(name);
                // In portions what is wanted for two reasons goes for both, and what changes before its page with that too.
                let twice = again && setup.portion.is_some() && memory.twice.insert(name.clone());
                assert!(!again || twice || memory.retries > 0, "{name} was rejected and is sent again");
                memory.again |= again && !twice;
            }
        }
        memory.retries = memory.retries.saturating_sub(u32::from(memory.again));
        let mut warm = false;
        for name in resources.keys().chain(&response.removed) {
            memory.unseen.remove(name);
            memory.rejected.remove(name);
            warm |= memory.cold.remove(name);
        }
        memory.rejected_whole = None;
        memory.stirred.clear();
        // What fills a portion may not be the whole answer.
        let fills = |portion: usize| count + response.removed.len() >= portion;
        memory.asked_since &= !V::LISTS && setup.portion.is_some_and(fills);
        memory.sent = Some(response.nonce.clone());

        let new = |(name, content): &(&ResourceName, &u8)| memory.delivered.get(*name) != Some(*content);
        let changed: BTreeSet<ResourceName> = resources.iter().filter(new).map(|(name, _)| name.clone()).collect();
        if V::LISTS && setup.full_state {
            memory.delivered.clear();
        }
        memory.delivered.extend(resources.iter().map(|(name, content)| (name.clone(), *content)));
        memory.delivered.retain(|name, _| !response.removed.contains(name));
        memory.out = Some((response.nonce, resources.clone()));
        self.parent_sent(setup, cache, t, &resources, &changed);
        Told { warm, beats: again || !response.beats.is_empty() }
    }

    /// Once a cluster that is new or changed is sent, its endpoints have to go again, if they went before.
    fn parent_sent(
        &mut self,
        setup: &Made,
        cache: &Cache,
        t: usize,
        sent: &BTreeMap<ResourceName, u8>,
        changed: &BTreeSet<ResourceName>,
    ) {
        let endpoints = setup.types.iter().position(|url| url == type_url::ENDPOINT);
        let Some(endpoints) = endpoints.filter(|_| setup.types[t] == type_url::CLUSTER) else { return };
        let memory = &mut self.types[endpoints];
        for name in sent.keys() {
            let there = content(setup, cache, endpoints, name).is_some();
            if there && memory.server_wants(name) {
                // What was rejected may come again too: the cluster may be another.
                memory.rejected.remove(name);
                memory.rejected_whole = None;
                memory.stirred.insert(name.clone());
                if memory.delivered.contains_key(name) && changed.contains(name) {
                    memory.cold.insert(name.clone());
                }
            }
        }
    }

    /// DESIGN rule 11: pushes of listeners wait for clusters that are not sent, and clusters go away after them.
    fn check_order<V: Both>(&self, setup: &Made, now: Instant, cache: &Cache, t: usize, response: &Response) {
        let number = |url: &str| setup.types.iter().position(|known| known == url);
        let (Some(listeners), Some(clusters)) = (number(type_url::LISTENER), number(type_url::CLUSTER)) else { return };
        let unsent = |t: usize| {
            let memory = &self.types[t];
            setup.names.iter().filter(|name| is_resource(name) && memory.server_wants(name)).any(|name| {
                let there = content(setup, cache, t, name);
                there.is_some() && there.as_ref() != memory.delivered.get(name)
            })
        };
        if t == listeners && !self.types[t].asked_since {
            assert!(!unsent(clusters), "listeners are pushed before clusters");
        }
        // A removal that nobody asked about; time may end the wait.
        let delivered = &self.types[t].delivered;
        let is_gone = |name: &ResourceName| {
            let there = response.resources.iter().any(|(other, _)| other == name);
            let memory = &self.types[t];
            // What changed before it went is not known as the client has it, nor is what the store forgot; and what has an
            // error is not gone.
            let known = setup.tombstones >= 10 && !memory.unseen.contains(name);
            let fails = || cache.error(&setup.types[t], name.as_str()).is_some();
            let kept = setup.hold && V::LISTS && setup.full_state && memory.server_wants(name) && known && !fails();
            response.removed.contains(name) || (kept && !there)
        };
        let gone = delivered.keys().any(is_gone);
        if t == clusters && gone && !self.types[t].asked_since && now == Instant::EPOCH {
            assert!(!unsent(listeners), "clusters go away before the listeners that may refer to them");
        }
    }

    /// A resource changed: what was rejected of it may be sent again, should it come back.
    pub fn changes(&mut self, setup: &Made, now: Instant, t: usize, name: &ResourceName, there: Option<u8>) {
        let fresh = &mut self.types[t].fresh;
        fresh.retain(|_, until| now < *until);
        if let Some(content) = there {
            fresh.extend(setup.told_ttl().filter(|_| self.up).map(|ttl| (name.clone(), now + ttl / 3)));
            self.types[t].unseen.insert(name.clone());
            self.types[t].flapped |= setup.ttl.is_some() && self.types[t].delivered.get(name) == Some(&content);
        } else {
            self.types[t].cold.remove(name);
        }
        self.types[t].stirred.insert(name.clone());
        self.types[t].rejected.remove(name);
        self.types[t].twice.remove(name);
        self.types[t].rejected_whole = None;
    }

    /// Nothing is known of a resource any more, nor what it was.
    pub fn fails(&mut self, setup: &Made, now: Instant, t: usize, name: &ResourceName) {
        self.changes(setup, now, t, name, None);
        self.types[t].unseen.insert(name.clone());
    }

    pub fn client_reads<V: Both>(&mut self, setup: &Made, response: &V::Resp) {
        let response = V::response(response);
        let memory = &mut self.types[setup.type_number(&response.type_url)];
        memory.unanswered.push_back((response.nonce.clone(), response.version, None));
        memory.lapsed.retain(|name| !response.resources.iter().any(|(other, _)| other == name));
        if !response.beats.is_empty() {
            memory.beats.push_back(Beats { nonce: response.nonce.clone(), versions: response.beats });
        }
        memory.read = Some(response.nonce);
    }

    /// The client finds a fault with a response of ours: a heartbeat of what is not there (any more).
    pub fn finds_faults<V: Both>(
        &mut self,
        setup: &Made,
        t: usize,
        app: &Application,
        nonce: &Nonce,
        faults: &[Rejection],
    ) {
        let memory = &mut self.types[t];
        let beats = memory.beats.iter_mut().find(|beats| beats.nonce == *nonce).expect("there is no fault");
        for fault in faults {
            let name = fault.name.as_ref().expect("a name");
            let version = beats.versions.get(name).expect("a heartbeat of it");
            let held = app.applied.get(name).map(|&content| version_of(setup, name, content));
            let lives = if V::LISTS { memory.accepted.contains(version) } else { held.as_ref() == Some(version) };
            assert!(held.is_none() || !lives, "{name} lives on, and that is rejected");
            beats.versions.remove(name);
        }
        memory.faulty.insert(nonce.clone());
        self.verdict(t, nonce, None, true);
    }

    /// The client looked at the responses up to one that the application judges: what they say lives on does.
    pub fn beat<V: Both>(&mut self, setup: &Made, now: Instant, t: usize, app: &mut Application) {
        let Memory { beats, unanswered, .. } = &mut self.types[t];
        let place = |nonce: &Nonce| unanswered.iter().position(|(other, ..)| other == nonce);
        while let Some(first) = beats.front() {
            let waits = app.judging.as_ref().is_some_and(|update| place(&first.nonce) > place(update.nonce()));
            if waits {
                return;
            }
            let Some((ttl, Beats { versions, .. })) = setup.told_ttl().zip(beats.pop_front()) else { return };
            // Of what left and came back the client ignores news until it said so, and a heartbeat of that is none.
            let lives = |(name, version): &(ResourceName, Version)| {
                let held = app.applied.get(name).map(|&content| version_of(setup, name, content));
                held.is_some_and(|held| V::LISTS || held == *version)
            };
            let live: Vec<_> = versions.into_iter().filter(lives).collect();
            app.until.extend(live.into_iter().map(|(name, _)| (name, now + ttl)));
        }
    }

    /// Time passed: that of a heartbeat may have come.
    pub fn is_due(&mut self) {
        self.types.iter_mut().for_each(|memory| memory.due = true);
    }

    pub fn is_late(&mut self) {
        self.late = true;
    }

    pub fn expire(&mut self, t: usize, names: &[ResourceName]) {
        if self.up {
            self.types[t].lapsed.extend(names.iter().cloned());
        }
    }

    pub fn has_lapsed(&self, t: usize, name: &ResourceName) -> bool {
        self.types[t].lapsed.contains(name)
    }

    /// Whether the server must have said that a resource lives on, as it was sent last.
    pub fn lives(&self, t: usize, name: &ResourceName) -> bool {
        self.up && !self.late && !self.types[t].rejected.contains_key(name) && self.types[t].rejected_whole.is_none()
    }

    pub fn applies(&self, app: &Application, update: &Update) {
        let t = self.types.iter().position(|memory| memory.beats.iter().any(|beats| beats.nonce == *update.nonce()));
        let beats = t.and_then(|t| self.types[t].beats.iter().find(|beats| beats.nonce == *update.nonce()));
        for resource in update.resources() {
            let beaten = beats.is_some_and(|beats| beats.versions.contains_key(resource.name()));
            assert!(!beaten, "{} lives on, and that is no content", resource.name());
            assert!(app.wants(resource.name()), "{} is not wanted", resource.name());
        }
        for name in update.removed() {
            assert!(app.applied.contains_key(name), "{name} was never there, and is removed");
        }
        assert!(update.resources().len() > 0 || !update.removed().is_empty(), "there is something to apply");
    }

    pub fn judged(&mut self, t: usize, update: &Update, rejected: bool) {
        let rejected = rejected || self.types[t].faulty.contains(update.nonce());
        self.verdict(t, update.nonce(), Some(update.version()), rejected);
    }

    fn verdict(&mut self, t: usize, judged: &Nonce, version: Option<&Version>, rejected: bool) {
        let memory = &mut self.types[t];
        // What came before this and was answered unseen is accepted by now.
        let mut accepted = memory.accepted.clone();
        let live = memory.unanswered.iter().any(|(nonce, ..)| nonce == judged);
        for (nonce, version, verdict) in memory.unanswered.iter().filter(|_| live) {
            match verdict {
                _ if nonce == judged => break,
                Some((_, by_then)) => accepted = by_then.clone(),
                None => accepted = BTreeSet::from([version.clone()]),
            }
        }
        if let Some(version) = version.filter(|_| !rejected) {
            accepted = BTreeSet::from([version.clone()]);
        }
        memory.accepted = accepted.clone();
        if let Some((.., verdict)) = memory.unanswered.iter_mut().find(|(nonce, ..)| nonce == judged) {
            *verdict = Some((!rejected, accepted));
        }
    }

    pub fn check_settled(&self, t: usize) {
        assert!(self.types[t].unanswered.is_empty(), "type {t}: every response is answered");
        assert!(self.types[t].cold.is_empty(), "type {t}: clusters wait for {:?}", self.types[t].cold);
    }
}

fn content(setup: &Made, cache: &Cache, t: usize, name: &ResourceName) -> Option<u8> {
    match cache.get(&setup.types[t], name.as_str()).state {
        State::Present(resource) => resource.body().last().copied(),
        State::Absent | State::Unknown => None,
    }
}

fn version_of(setup: &Made, name: &ResourceName, content: u8) -> Version {
    resource(setup, name, content).version().clone()
}

/// Whether one of these names stands for another.
fn covers(names: &BTreeSet<ResourceName>, name: &ResourceName) -> bool {
    names.iter().any(|wanted| stands_for(wanted, name))
}

impl Relabel for Ghost {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        for memory in &mut self.types {
            memory.unanswered.iter_mut().for_each(|(nonce, ..)| nonce.relabel(by));
            memory.read.relabel(by);
            memory.out.iter_mut().for_each(|(nonce, _)| nonce.relabel(by));
            memory.sent.relabel(by);
            memory.beats.iter_mut().for_each(|beats| beats.nonce.relabel(by));
            memory.faulty = std::mem::take(&mut memory.faulty)
                .into_iter()
                .map(|mut nonce| {
                    nonce.relabel(by);
                    nonce
                })
                .collect();
            memory.fresh.values_mut().for_each(|until| until.relabel(by));
        }
    }
}

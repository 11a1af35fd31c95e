//! A server that is not this project's, written from the specification alone, with other choices, and with bugs if
//! wanted.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use xds_conformance::message::{Item, Request, Response, Variant};
use xds_conformance::resource::{self, Put};
use xds_conformance::run::{Event, Op, Peer, StreamId, Trouble, Wait};

use crate::bug::Bug;
use crate::style::Style;

#[derive(Default)]
struct OfType {
    names: BTreeSet<String>,
    wildcard: bool,
    named: bool,
    nonce: String,
    /// Whether the last response has an answer, and its names.
    answered: bool,
    last: Vec<String>,
    /// The names that were ever sent, and those that were reported as missing.
    sent: BTreeSet<String>,
    missing: BTreeSet<String>,
    /// The contents that were ever sent.
    contents: BTreeSet<(String, u64)>,
    /// The number of responses.
    responses: u32,
    /// The changes that wait for an answer.
    waiting: BTreeSet<String>,
    rejected: bool,
}

struct Stream {
    variant: Variant,
    single: Option<String>,
    types: BTreeMap<String, OfType>,
    nonces: u32,
}

/// A server that sends at once, and waits for an ACK only if its style does.
pub(crate) struct Plain {
    style: Style,
    bugs: Vec<Bug>,
    resources: BTreeMap<(String, String), (Put, u64)>,
    versions: BTreeMap<String, u64>,
    streams: BTreeMap<StreamId, Stream>,
    opened: StreamId,
    events: VecDeque<Event>,
}

impl Plain {
    pub(crate) fn new(style: Style) -> Self {
        let (bugs, resources, versions) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        Self { style, bugs, resources, versions, streams: BTreeMap::new(), opened: 0, events: VecDeque::new() }
    }

    /// Makes a server with bugs.
    pub(crate) fn with(bugs: &[Bug]) -> Self {
        Self { bugs: bugs.to_vec(), ..Self::new(Style::default()) }
    }

    fn has(&self, bug: Bug) -> bool {
        self.bugs.contains(&bug)
    }

    fn item(&self, type_url: &str, name: &str, variant: Variant) -> Option<Item> {
        let (put, version) = self.resources.get(&(type_url.to_owned(), name.to_owned()))?;
        let delta = variant == Variant::Delta;
        Some(Item {
            name: name.to_owned(),
            version: match delta {
                true if self.has(Bug::OneVersion) => "1".into(),
                true => version.to_string(),
                false => String::new(),
            },
            body: Some(put.body().into()),
            any_type: if self.has(Bug::OtherAnyType) { "type.googleapis.com/x.Other".into() } else { type_url.into() },
            revision: Some(put.revision),
            ..Item::default()
        })
    }

    fn wanted(&self, id: StreamId, type_url: &str) -> Vec<String> {
        let of = &self.streams[&id].types[type_url];
        let all = self.resources.keys().filter(|(other, _)| other == type_url).map(|(_, name)| name);
        all.filter(|name| of.wildcard || of.names.contains(*name)).cloned().collect()
    }

    fn send(&mut self, id: StreamId, type_url: &str, names: &[String], removed: &[String]) {
        let variant = self.streams[&id].variant;
        let mut items: Vec<Item> = names.iter().filter_map(|name| self.item(type_url, name, variant)).collect();
        if self.has(Bug::SaysTwice) {
            items.extend(items.first().cloned());
        }
        let own = match variant {
            Variant::Delta => self.style.split,
            Variant::Sotw => self.style.parts && !resource::is_full_state(type_url) && items.len() > 1,
        };
        let parts: Vec<(Vec<Item>, Vec<String>)> = if own {
            let one = items.into_iter().map(|item| (vec![item], Vec::new()));
            one.chain(removed.iter().map(|name| (Vec::new(), vec![name.clone()]))).collect()
        } else {
            vec![(items, removed.to_vec())]
        };
        let version = match self.has(Bug::OneVersion) {
            true => "1".into(),
            false => self.versions.get(type_url).copied().unwrap_or(1).to_string(),
        };
        let (one_nonce, own_nonces, fresh) =
            (self.has(Bug::OneNonce), self.style.own_nonces, self.style.fresh_versions);
        for (resources, removed) in parts {
            let stream = self.streams.get_mut(&id).expect("a stream");
            stream.nonces += 1;
            let number = stream.nonces;
            let of = stream.types.get_mut(type_url).expect("a type");
            of.responses += 1;
            let number = if own_nonces { of.responses } else { number };
            let nonce = if one_nonce { "n".into() } else { format!("n{number}") };
            let version = if fresh { format!("{version}.{nonce}") } else { version.clone() };
            of.contents.extend(resources.iter().filter_map(|item| Some((item.name.clone(), item.revision?))));
            of.nonce.clone_from(&nonce);
            of.answered = false;
            of.last = names.to_vec();
            of.sent.extend(names.iter().cloned());
            let response =
                Response { type_url: type_url.to_owned(), version, nonce, resources, removed, errors: Vec::new() };
            self.events.push_back(Event::Response(id, response));
        }
    }

    fn read_list(&mut self, id: StreamId, type_url: &str, request: &Request) {
        let (style, bugs) = (self.style, self.bugs.clone());
        let has = |bug| bugs.contains(&bug);
        let version = self.versions.get(type_url).copied().unwrap_or(1).to_string();
        let stream = self.streams.get_mut(&id).expect("a stream");
        let first = !stream.types.contains_key(type_url);
        let of = stream.types.entry(type_url.to_owned()).or_default();
        if !first && style.drops_stale && request.nonce != of.nonce {
            return;
        }
        let stale = !first && request.nonce != of.nonce;
        let nack = request.error.is_some();
        let again = of.answered;
        of.answered |= !first && !stale;
        let last = of.last.clone();
        if (stale && has(Bug::AnswersStale)) || (nack && has(Bug::ResendsRejected) && !stale && !again) {
            return self.send(id, type_url, &last, &[]);
        }
        if !first && !stale {
            let ignored = if nack { has(Bug::NackNamesIgnored) } else { !again && has(Bug::AckNamesIgnored) };
            if ignored || (again && has(Bug::SecondRequestIgnored)) {
                return;
            }
        }
        of.rejected = nack;
        if !first && has(Bug::ShrinksNotRead) && of.names.iter().any(|name| !request.names.contains(name)) {
            return;
        }
        let (had, names) = (std::mem::take(&mut of.names), request.names.iter().cloned().collect::<BTreeSet<_>>());
        of.named |= !names.is_empty();
        let star = names.contains("*") && !has(Bug::StarIsAName);
        let legacy = !of.named || (names.is_empty() && has(Bug::EmptyMeansAll));
        let wildcard = star || (legacy && resource::is_full_state(type_url));
        let was_all = std::mem::replace(&mut of.wildcard, wildcard);
        of.names = names.iter().filter(|name| *name != "*").cloned().collect();
        if has(Bug::NeverForgets) {
            of.names.extend(had.iter().cloned());
        }
        let grows_all = wildcard && !was_all;
        let added: Vec<String> = of.names.iter().filter(|name| !had.contains(*name)).cloned().collect();
        if stale && !style.drops_stale {
            // The list is heeded, and answered with the next request that is not stale: added names stay unknown until
            // then.
            of.names = of.names.intersection(&had).cloned().collect();
            of.wildcard &= was_all;
            return;
        }
        let before = of.sent.clone();
        let wanted = self.wanted(id, type_url);
        let trusts = has(Bug::TrustsAnyVersion) && !request.version.is_empty();
        if first && (trusts || (has(Bug::TrustsTheVersion) && request.version == version)) {
            return;
        }
        let silent = |name: &String| has(Bug::ComesBackSilent) && before.contains(name);
        let is_new = |name: &&String| (grows_all || added.contains(name) || first) && !silent(name);
        let new: Vec<String> = wanted.iter().filter(is_new).cloned().collect();
        let all = resource::is_full_state(type_url) || style.answers_all;
        // The client may name a resource that it has from the wildcard, and that is gone meanwhile: only a response
        // without the resource shows that.
        let is_gone = |name: &String| before.contains(name) && !wanted.contains(name);
        let is_lost = added.iter().any(is_gone) || (grows_all && before.iter().any(is_gone));
        let gone = resource::is_full_state(type_url) && !has(Bug::SilentDeletion) && is_lost;
        if !new.is_empty() || gone {
            let sent = if all { wanted } else { new };
            self.send(id, type_url, &sent, &[]);
        } else if first && (style.empty || resource::is_full_state(type_url)) {
            self.send(id, type_url, &[], &[]);
        }
    }

    fn read_changes(&mut self, id: StreamId, type_url: &str, request: &Request) {
        let bugs = self.bugs.clone();
        let has = |bug| bugs.contains(&bug);
        let stream = self.streams.get_mut(&id).expect("a stream");
        let first = !stream.types.contains_key(type_url);
        let of = stream.types.entry(type_url.to_owned()).or_default();
        let (mut send, mut removed) = (BTreeSet::new(), BTreeSet::new());
        let stale = !first && !request.nonce.is_empty() && request.nonce != of.nonce;
        let waits = !first && !of.answered && request.nonce.is_empty();
        of.answered |= !first && request.nonce == of.nonce;
        if (stale && has(Bug::DropsStale)) || (waits && has(Bug::DropsWithoutNonce)) {
            return;
        }
        if request.error.is_some() && has(Bug::ResendsRejected) {
            let last = of.last.clone();
            return self.send(id, type_url, &last, &[]);
        }
        if has(Bug::PhantomEnds) && request.unsubscribe.iter().any(|name| name != "*" && !of.names.contains(name)) {
            return self.end(id, "nothing to unsubscribe from");
        }
        let nothing = request.names.is_empty() && request.unsubscribe.is_empty();
        let all = (first && nothing) || request.names.iter().any(|name| name == "*");
        of.wildcard |= all;
        of.rejected = request.error.is_some() || (of.rejected && request.nonce.is_empty());
        let half = has(Bug::HalfRead) && !request.names.is_empty();
        let (resumes, claims) = (first && all && !request.initial.is_empty(), &request.initial);
        for name in request.names.iter().filter(|name| *name != "*") {
            if of.names.insert(name.clone()) || !has(Bug::KnownNotSentAgain) {
                send.insert(name.clone());
            }
        }
        for name in request.unsubscribe.iter().filter(|_| !half) {
            send.remove(name);
            if name == "*" {
                of.wildcard &= has(Bug::WildcardForEver);
                if has(Bug::LeavingWildcardLeavesAll) {
                    of.names.clear();
                }
            } else if of.names.remove(name) {
                let told = if of.wildcard { !has(Bug::LeftInWildcardSilent) } else { has(Bug::AnswersUnsubscribe) };
                send.extend(told.then(|| name.clone()));
            }
        }
        let left_all = !request.unsubscribe.is_empty() && of.names.is_empty();
        of.wildcard |= left_all && has(Bug::LastNameIsWildcard);
        let (sent, missing) = (of.sent.clone(), of.missing.clone());
        if all {
            send.extend(self.wanted(id, type_url));
        }
        let exists = |name: &String| self.resources.contains_key(&(type_url.to_owned(), name.clone()));
        removed.extend(send.iter().filter(|name| !exists(name)).cloned());
        let told = |name: &String| {
            let never = has(Bug::MissingNotTold) && !sent.contains(name) && !request.unsubscribe.contains(name);
            let again = has(Bug::MissingToldOnce) && missing.contains(name);
            !(never || again)
        };
        removed.retain(told);
        let absent: Vec<String> = send.iter().filter(|name| !exists(name)).cloned().collect();
        if first {
            let of = &self.streams[&id].types[type_url];
            let wants = |name: &String| (of.wildcard && !has(Bug::ClaimedGoneNotTold)) || of.names.contains(name);
            removed.extend(request.initial.keys().filter(|name| !exists(name) && wants(name)).cloned());
            if !self.style.resends_claimed {
                let current = |name: &String| {
                    let version = self.item(type_url, name, Variant::Delta).map(|item| item.version);
                    version.is_some() && request.initial.get(name) == version.as_ref()
                };
                send.retain(|name| !current(name));
            }
        }
        let skips = |name: &String| match claims.contains_key(name) {
            true => has(Bug::ResumeSkipsChanged),
            false => has(Bug::ResumeSkipsNew),
        };
        send.retain(|name| !(resumes && skips(name)));
        let send: Vec<String> =
            send.into_iter().filter(|name| !removed.contains(name) && !absent.contains(name)).collect();
        let of = self.streams.get_mut(&id).and_then(|stream| stream.types.get_mut(type_url)).expect("a type");
        of.missing.extend(removed.iter().cloned());
        let removed: Vec<String> = removed.into_iter().collect();
        if !send.is_empty() || !removed.is_empty() || (first && all && self.style.empty) {
            self.send(id, type_url, &send, &removed);
        }
    }

    fn push(&mut self, type_url: &str, changed: &[String]) {
        let mut ids: Vec<StreamId> = self.streams.keys().copied().collect();
        if self.has(Bug::NewestStreamOnly) {
            ids = ids.into_iter().max().into_iter().collect();
        }
        for id in ids {
            let waits = self.style.waits;
            let Some(of) = self.streams.get_mut(&id).and_then(|stream| stream.types.get_mut(type_url)) else {
                continue;
            };
            if waits && !of.answered && !of.nonce.is_empty() {
                of.waiting.extend(changed.iter().cloned());
                continue;
            }
            self.push_on(id, type_url, changed);
        }
    }

    /// Sends the changes that have waited for an answer, if there is one.
    fn push_waiting(&mut self, id: StreamId, type_url: &str) {
        let of = self.streams.get_mut(&id).and_then(|stream| stream.types.get_mut(type_url));
        let Some(of) = of.filter(|of| of.answered) else { return };
        let changed: Vec<String> = std::mem::take(&mut of.waiting).into_iter().collect();
        if !changed.is_empty() {
            self.push_on(id, type_url, &changed);
        }
    }

    fn push_on(&mut self, id: StreamId, type_url: &str, changed: &[String]) {
        let Some(of) = self.streams[&id].types.get(type_url) else { return };
        let remembers = |name: &String| !self.has(Bug::ForgetsMissing) || of.sent.contains(name);
        let all = |name: &String| of.wildcard && (!self.has(Bug::WildcardIsASnapshot) || of.sent.contains(name));
        let is_wanted = |name: &&String| all(name) || (of.names.contains(*name) && remembers(name));
        let names: Vec<String> = changed.iter().filter(is_wanted).cloned().collect();
        if names.is_empty() {
            let left = of.named && of.names.is_empty() && !of.wildcard;
            if left && self.has(Bug::EmptyAfterLeaving) && self.streams[&id].variant == Variant::Sotw {
                self.send(id, type_url, &[], &[]);
            }
            return;
        }
        let exists = |name: &String| self.resources.contains_key(&(type_url.to_owned(), name.clone()));
        let (mut there, mut gone): (Vec<String>, Vec<String>) = names.into_iter().partition(exists);
        let wanted = self.wanted(id, type_url);
        if self.has(Bug::NackStopsType) && of.rejected {
            return;
        }
        let delta = self.streams[&id].variant == Variant::Delta;
        let is_lost = self.has(Bug::RemovalLostBeforeAck) && !of.answered;
        if is_lost || (self.has(Bug::RemovalLostAfterNack) && of.rejected) {
            gone.clear();
        }
        if self.has(Bug::ClaimedNeverRemoved) && delta {
            gone.retain(|name| of.sent.contains(name));
        }
        if self.has(Bug::ChangeLostBeforeAck) && delta && !of.answered {
            there.clear();
        }
        if self.has(Bug::OldContentNotSent) {
            let known = |name: &String| {
                let content = self.resources.get(&(type_url.to_owned(), name.clone()));
                content.is_some_and(|(put, _)| of.contents.contains(&(name.clone(), put.revision)))
            };
            there.retain(|name| !known(name));
            if there.is_empty() && gone.is_empty() {
                return;
            }
        }
        if self.streams[&id].variant == Variant::Sotw {
            if there.is_empty() && self.has(Bug::SilentDeletion) {
                return;
            }
        } else if self.has(Bug::SendsAllOnChange) && !there.is_empty() {
            there.clone_from(&wanted);
        }
        if self.has(Bug::RemovalUnsubscribes) {
            let of = self.streams.get_mut(&id).and_then(|stream| stream.types.get_mut(type_url)).expect("a type");
            of.names.retain(|name| !gone.contains(name));
        }
        if self.streams[&id].variant == Variant::Delta && there.is_empty() && gone.is_empty() {
            return;
        }
        if self.streams[&id].variant == Variant::Delta {
            self.send(id, type_url, &there, &gone);
        } else if resource::is_full_state(type_url) || (self.style.whole && !there.is_empty()) {
            self.send(id, type_url, &wanted, &[]);
        } else if !there.is_empty() || self.style.empty {
            self.send(id, type_url, &there, &[]);
        }
        // A client that has a new cluster waits for its endpoints.
        let endpoints = resource::type_url("eds");
        if !self.has(Bug::NoWarming)
            && type_url == resource::type_url("cds")
            && self.streams[&id].types.contains_key(endpoints)
        {
            let children: Vec<String> =
                self.wanted(id, endpoints).into_iter().filter(|name| there.contains(name)).collect();
            if !children.is_empty() {
                self.send(id, endpoints, &children, &[]);
            }
        }
    }
}

impl Plain {
    fn end(&mut self, id: StreamId, why: &str) {
        self.streams.remove(&id);
        self.events.push_back(Event::Closed(id, why.into()));
    }
}

impl Peer for Plain {
    fn open(&mut self, variant: Variant, single: Option<&str>) -> Result<StreamId, Trouble> {
        self.opened += 1;
        let single = single.map(str::to_owned);
        self.streams.insert(self.opened, Stream { variant, single, types: BTreeMap::new(), nonces: 0 });
        Ok(self.opened)
    }

    fn send(&mut self, id: StreamId, variant: Variant, request: &Request) -> Result<(), Trouble> {
        let Some(stream) = self.streams.get(&id) else { return Ok(()) };
        let type_url = if request.type_url.is_empty() { stream.single.clone() } else { Some(request.type_url.clone()) };
        let Some(type_url) = type_url else {
            self.end(id, "no type");
            return Ok(());
        };
        if self.has(Bug::UnknownTypeEnds) && resource::TYPES.iter().all(|(_, url)| *url != type_url) {
            self.end(id, "a type that nobody knows");
            return Ok(());
        }
        let is_first = !self.streams[&id].types.contains_key(&type_url);
        if self.has(Bug::NodeForEachType) && is_first && request.node.is_none() {
            return Ok(());
        }
        match variant {
            Variant::Sotw => self.read_list(id, &type_url, request),
            Variant::Delta => self.read_changes(id, &type_url, request),
        }
        if self.streams.contains_key(&id) {
            self.push_waiting(id, &type_url);
        }
        Ok(())
    }

    fn send_bytes(&mut self, id: StreamId, _: &[u8]) -> Result<(), Trouble> {
        self.close(id);
        Ok(())
    }

    fn close(&mut self, id: StreamId) {
        self.streams.remove(&id);
    }

    fn poll(&mut self, _: Wait) -> Option<Event> {
        self.events.pop_front()
    }

    fn pass(&mut self, _: Duration) {}

    fn control(&mut self, ops: &[Op]) -> Result<(), Trouble> {
        let mut changed: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for op in ops {
            let (type_url, name) = match op {
                Op::Put(put) => (&put.type_url, &put.name),
                Op::Delete { type_url, name } => (type_url, name),
                _ => return Err(Trouble("neither errors nor restarts".into())),
            };
            let version = self.versions.entry(type_url.clone()).or_insert(1);
            *version += 1;
            let version = *version;
            let key = (type_url.clone(), name.clone());
            match op {
                Op::Put(put) => _ = self.resources.insert(key, (put.clone(), version)),
                _ => _ = self.resources.remove(&key),
            }
            changed.entry(type_url.clone()).or_default().push(name.clone());
        }
        let first = if self.has(Bug::EndpointsFirst) { ["eds", "cds"] } else { ["cds", "eds"] };
        for word in first.into_iter().chain(["lds", "rds"]) {
            if let Some(names) = changed.get(resource::type_url(word)) {
                self.push(resource::type_url(word), names);
            }
        }
        Ok(())
    }

    fn is_instant(&self) -> bool {
        true
    }
}

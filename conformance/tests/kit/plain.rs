//! Correct servers that are not this project's: written from the specification alone, and with other choices. The kit must
//! not complain of any.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use xds_conformance::message::{Item, Request, Response, Variant};
use xds_conformance::resource::{self, Put};
use xds_conformance::run::{Event, Op, Peer, StreamId, Trouble, Verdict, Wait};
use xds_conformance::story::Story;
use xds_conformance::suite;

/// The choices that the specification leaves open.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Style {
    /// Delta: each resource has a response of its own.
    split: bool,
    /// SotW: a response of a partial type has everything that is wanted, too.
    whole: bool,
    /// Nothing is said by an empty response.
    empty: bool,
    /// SotW: stale requests are dropped, names and all.
    drops_stale: bool,
    /// Delta: claimed resources are sent all the same.
    resends_claimed: bool,
    /// SotW: a growing list is answered with everything that is wanted.
    answers_all: bool,
}

#[derive(Default)]
struct OfType {
    names: BTreeSet<String>,
    wildcard: bool,
    named: bool,
    nonce: String,
}

struct Stream {
    variant: Variant,
    single: Option<String>,
    types: BTreeMap<String, OfType>,
    nonces: u32,
}

/// A server that sends at once, and never waits for an ACK.
pub(crate) struct Plain {
    style: Style,
    resources: BTreeMap<(String, String), (Put, u64)>,
    versions: BTreeMap<String, u64>,
    streams: BTreeMap<StreamId, Stream>,
    opened: StreamId,
    events: VecDeque<Event>,
}

impl Plain {
    pub(crate) fn new(style: Style) -> Self {
        let (resources, versions) = (BTreeMap::new(), BTreeMap::new());
        Self { style, resources, versions, streams: BTreeMap::new(), opened: 0, events: VecDeque::new() }
    }

    fn item(&self, type_url: &str, name: &str, variant: Variant) -> Option<Item> {
        let (put, version) = self.resources.get(&(type_url.to_owned(), name.to_owned()))?;
        let delta = variant == Variant::Delta;
        Some(Item {
            name: name.to_owned(),
            version: if delta { version.to_string() } else { String::new() },
            body: Some(put.body().into()),
            any_type: type_url.to_owned(),
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
        let items: Vec<Item> = names.iter().filter_map(|name| self.item(type_url, name, variant)).collect();
        let parts: Vec<(Vec<Item>, Vec<String>)> = if self.style.split && variant == Variant::Delta {
            let one = items.into_iter().map(|item| (vec![item], Vec::new()));
            one.chain(removed.iter().map(|name| (Vec::new(), vec![name.clone()]))).collect()
        } else {
            vec![(items, removed.to_vec())]
        };
        let version = self.versions.get(type_url).copied().unwrap_or(1).to_string();
        for (resources, removed) in parts {
            let stream = self.streams.get_mut(&id).expect("a stream");
            stream.nonces += 1;
            let nonce = format!("n{}", stream.nonces);
            let of = stream.types.get_mut(type_url).expect("a type");
            of.nonce.clone_from(&nonce);
            let response = Response {
                type_url: type_url.to_owned(),
                version: version.clone(),
                nonce,
                resources,
                removed,
                errors: Vec::new(),
            };
            self.events.push_back(Event::Response(id, response));
        }
    }

    fn read_list(&mut self, id: StreamId, type_url: &str, request: &Request) {
        let style = self.style;
        let stream = self.streams.get_mut(&id).expect("a stream");
        let first = !stream.types.contains_key(type_url);
        let of = stream.types.entry(type_url.to_owned()).or_default();
        if !first && style.drops_stale && request.nonce != of.nonce {
            return;
        }
        let stale = !first && request.nonce != of.nonce;
        let (had, names) = (std::mem::take(&mut of.names), request.names.iter().cloned().collect::<BTreeSet<_>>());
        of.named |= !names.is_empty();
        let wildcard = names.contains("*") || (!of.named && resource::is_full_state(type_url));
        let was_all = std::mem::replace(&mut of.wildcard, wildcard);
        of.names = names.iter().filter(|name| *name != "*").cloned().collect();
        let grows_all = wildcard && !was_all;
        let added: Vec<String> = of.names.iter().filter(|name| !had.contains(*name)).cloned().collect();
        if stale && !style.drops_stale {
            // Heeded, and answered with the next request that is not stale: what was added stays unknown until then.
            of.names = of.names.intersection(&had).cloned().collect();
            of.wildcard &= was_all;
            return;
        }
        let wanted = self.wanted(id, type_url);
        let new: Vec<String> =
            wanted.iter().filter(|name| grows_all || added.contains(name) || first).cloned().collect();
        let all = resource::is_full_state(type_url) || style.answers_all;
        if !new.is_empty() {
            let sent = if all { wanted } else { new };
            self.send(id, type_url, &sent, &[]);
        } else if first && (style.empty || resource::is_full_state(type_url)) {
            self.send(id, type_url, &[], &[]);
        }
    }

    fn read_changes(&mut self, id: StreamId, type_url: &str, request: &Request) {
        let stream = self.streams.get_mut(&id).expect("a stream");
        let first = !stream.types.contains_key(type_url);
        let of = stream.types.entry(type_url.to_owned()).or_default();
        let (mut send, mut removed) = (BTreeSet::new(), BTreeSet::new());
        let nothing = request.names.is_empty() && request.unsubscribe.is_empty();
        let all = (first && nothing) || request.names.iter().any(|name| name == "*");
        of.wildcard |= all;
        for name in request.names.iter().filter(|name| *name != "*") {
            of.names.insert(name.clone());
            send.insert(name.clone());
        }
        for name in &request.unsubscribe {
            send.remove(name);
            if name == "*" {
                of.wildcard = false;
            } else if of.names.remove(name) && of.wildcard {
                send.insert(name.clone());
            }
        }
        if all {
            send.extend(self.wanted(id, type_url));
        }
        let exists = |name: &String| self.resources.contains_key(&(type_url.to_owned(), name.clone()));
        removed.extend(send.iter().filter(|name| !exists(name)).cloned());
        if first {
            let of = &self.streams[&id].types[type_url];
            let wants = |name: &String| of.wildcard || of.names.contains(name);
            removed.extend(request.initial.keys().filter(|name| !exists(name) && wants(name)).cloned());
            if !self.style.resends_claimed {
                let current = |name: &String| {
                    let version = self.item(type_url, name, Variant::Delta).map(|item| item.version);
                    version.is_some() && request.initial.get(name) == version.as_ref()
                };
                send.retain(|name| !current(name));
            }
        }
        let send: Vec<String> = send.into_iter().filter(|name| !removed.contains(name)).collect();
        let removed: Vec<String> = removed.into_iter().collect();
        if !send.is_empty() || !removed.is_empty() || (first && all && self.style.empty) {
            self.send(id, type_url, &send, &removed);
        }
    }

    fn push(&mut self, type_url: &str, changed: &[String]) {
        let ids: Vec<StreamId> = self.streams.keys().copied().collect();
        for id in ids {
            let Some(of) = self.streams[&id].types.get(type_url) else { continue };
            let names: Vec<String> =
                changed.iter().filter(|name| of.wildcard || of.names.contains(*name)).cloned().collect();
            if names.is_empty() {
                continue;
            }
            let exists = |name: &String| self.resources.contains_key(&(type_url.to_owned(), name.clone()));
            let (there, gone): (Vec<String>, Vec<String>) = names.into_iter().partition(exists);
            let wanted = self.wanted(id, type_url);
            if self.streams[&id].variant == Variant::Delta {
                self.send(id, type_url, &there, &gone);
            } else if resource::is_full_state(type_url) || (self.style.whole && !there.is_empty()) {
                self.send(id, type_url, &wanted, &[]);
            } else if !there.is_empty() || self.style.empty {
                self.send(id, type_url, &there, &[]);
            }
            // Whoever has a new cluster waits for its endpoints.
            let endpoints = resource::type_url("eds");
            if type_url == resource::type_url("cds") && self.streams[&id].types.contains_key(endpoints) {
                let children: Vec<String> =
                    self.wanted(id, endpoints).into_iter().filter(|name| there.contains(name)).collect();
                if !children.is_empty() {
                    self.send(id, endpoints, &children, &[]);
                }
            }
        }
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
            self.streams.remove(&id);
            self.events.push_back(Event::Closed(id, "no type".into()));
            return Ok(());
        };
        match variant {
            Variant::Sotw => self.read_list(id, &type_url, request),
            Variant::Delta => self.read_changes(id, &type_url, request),
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
        for word in ["cds", "eds", "lds", "rds"] {
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

pub(crate) fn styles() -> impl Iterator<Item = Style> {
    (0..64).map(|bits| {
        let bit = |at: u32| bits >> at & 1 == 1;
        Style {
            split: bit(0),
            whole: bit(1),
            empty: bit(2),
            drops_stale: bit(3),
            resends_claimed: bit(4),
            answers_all: bit(5),
        }
    })
}

#[test]
fn no_case_fails_against_another_correct_server() {
    let mut faults = BTreeSet::new();
    for style in styles() {
        for (variant, story) in suite::server().expect("stories") {
            let story: Arc<Story> = story;
            if story.features.iter().any(|feature| !["ads-order", "per-type"].contains(&feature.as_str())) {
                continue;
            }
            // What a claimed resource is worth, two sentences say differently: the case is a SHOULD for that reason.
            if style.resends_claimed && story.id == "server/delta/reconnect-current" {
                continue;
            }
            let mut peer = Plain::new(style);
            let mut played = suite::play(&story, variant, &story.types, "k-", None, &mut peer);
            for played in &mut played {
                if played.outcome.verdict == Verdict::Pass {
                    played.outcome = played.runner.tail(&mut peer);
                }
            }
            let outcome = suite::worst(&played);
            if outcome.verdict != Verdict::Pass {
                faults.insert(format!(
                    "{} {variant:?}: {}\n{style:?}\n  {}",
                    story.id,
                    outcome.why,
                    outcome.ladder.join("\n  ")
                ));
            }
        }
    }
    let (count, some) = (faults.len(), faults.into_iter().take(40).collect::<Vec<_>>());
    assert!(some.is_empty(), "{count} false alarms:\n{}", some.join("\n"));
}

//! A naive client that follows the letter of the specification: a plain map of the received resources. An alias only
//! finds a resource, and a moved alias has no consequence.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use xds_machine::message::{Node, feature};
use xds_machine::resource_type::ResourceType;
use xds_machine::{Code, Instant, Nonce, ResourceName, Status, Version, WILDCARD};

use super::truth::covers;
use super::walk::{Fault, ensure};
use super::wire::{Ask, Item, Said};

type Names = BTreeSet<ResourceName>;

pub(super) struct Client {
    delta: bool,
    pub types: Vec<OfType>,
    /// Present until the first request of a stream is sent.
    node: Option<Arc<Node>>,
}

#[derive(Debug)]
pub(super) struct Held {
    pub content: u8,
    version: Version,
    pub aliases: Vec<ResourceName>,
    until: Option<Instant>,
}

pub(super) struct OfType {
    delta: bool,
    kind: ResourceType,
    pub wanted: Names,
    pub held: BTreeMap<ResourceName, Held>,
    /// The resources that the server reported an error of.
    pub errors: BTreeMap<ResourceName, i32>,
    /// The names that the server has reported anything about since they were requested.
    pub answered: Names,
    /// The rejected contents of each resource that were not replaced since; `None` is a rejected removal.
    pub rejected: BTreeMap<ResourceName, BTreeSet<Option<u8>>>,
    /// The resources that were held until they expired.
    pub lapsed: Names,
    accepted: Version,
    /// Whether that version means that every subscribed resource has arrived.
    sound: bool,
    stream: Stream,
}

#[derive(Default)]
struct Stream {
    asked: bool,
    /// Whether a name was sent: after that an empty list is not the wildcard (SotW).
    named: bool,
    nonce: Nonce,
    /// Names that were not sent yet.
    fresh: Names,
    left: Names,
    dirty: bool,
    /// A name was requested after the first request, or a resource was rejected: a version does not mean that every
    /// resource has arrived.
    grown: bool,
}

impl Client {
    pub(super) fn new(types: &[ResourceType], delta: bool) -> Self {
        let of = |kind: &ResourceType| OfType {
            delta,
            kind: kind.clone(),
            wanted: Names::new(),
            held: BTreeMap::new(),
            errors: BTreeMap::new(),
            answered: Names::new(),
            rejected: BTreeMap::new(),
            lapsed: Names::new(),
            accepted: Version::default(),
            sound: false,
            stream: Stream::default(),
        };
        Self { delta, types: types.iter().map(of).collect(), node: None }
    }

    /// Opens a stream. Without claims everything is requested anew; `2` claims half of the held resources.
    pub(super) fn open(&mut self, claims: u8) {
        let mut node = Node::new("n");
        node.client_features = [feature::TTL, feature::WRAPPER[0]].map(String::from).to_vec();
        self.node = Some(node.into());
        for of in &mut self.types {
            let mut number = 0;
            of.held.retain(|_, _| {
                number += 1;
                claims == 1 || (claims == 2 && self.delta && number % 2 == 0)
            });
            if claims != 1 || !of.sound {
                of.accepted = Version::default();
                of.sound = false;
            }
            of.answered.clear();
            of.errors.clear();
            of.stream = Stream { fresh: of.wanted.clone(), dirty: !of.wanted.is_empty(), ..Stream::default() };
        }
    }

    pub(super) fn subscribe(&mut self, t: usize, name: ResourceName) -> Vec<Ask> {
        let of = &mut self.types[t];
        // If no list left the name out, a list with the name has no effect, and the server does not send a dropped
        // resource (SotW).
        let left = of.stream.left.iter().any(|left| covers(left, &name));
        let first = if !self.delta && left { self.request(t, true) } else { None };
        let of = &mut self.types[t];
        if of.wanted.insert(name.clone()) {
            of.answered.remove(&name);
            of.stream.left.remove(&name);
            of.stream.fresh.insert(name);
            of.stream.dirty = true;
            (of.sound, of.stream.grown) = (false, true);
        }
        first.into_iter().collect()
    }

    pub(super) fn unsubscribe(&mut self, t: usize, name: &ResourceName) -> Vec<Ask> {
        let of = &mut self.types[t];
        if !of.wanted.contains(name) {
            return Vec::new();
        }
        // The legacy wildcard can't become an empty subscription: an empty list is the wildcard until a name was sent.
        let leaves_all = !self.delta && of.wanted.len() == 1 && of.stream.asked && !of.stream.named;
        let first = leaves_all.then(|| {
            of.stream.named = true;
            Ask { names: vec![WILDCARD.into()], ..of.blank() }
        });
        of.wanted.remove(name);
        of.stream.fresh.remove(name);
        of.stream.left.insert(name.clone());
        of.stream.dirty = true;
        let OfType { wanted, held, errors, stream, .. } = of;
        // A resource of an alias that was just subscribed to is sent again.
        let told: Names = wanted.difference(&stream.fresh).cloned().collect();
        let none = Vec::new();
        held.retain(|name, held| is_wanted(wanted, name, &none) || is_wanted(&told, name, &held.aliases));
        errors.retain(|name, _| is_wanted(wanted, name, &none));
        first.into_iter().collect()
    }

    /// Returns the unsent changes, unless a stream needs no request.
    pub(super) fn request(&mut self, t: usize, up: bool) -> Option<Ask> {
        let of = &mut self.types[t];
        let first = !of.stream.asked;
        if !up || !of.stream.dirty || (first && of.wanted.is_empty()) {
            return None;
        }
        let ask = of.tell();
        Some(self.signed(ask))
    }

    /// Handles a response, and returns the ACK or NACK.
    pub(super) fn read(&mut self, now: Instant, said: &Said, accept: bool, plain: bool) -> Result<Ask, Fault> {
        let of = self.types.iter_mut().find(|of| of.kind.type_url() == &said.type_url).expect("a known type");
        ensure(of.stream.asked, "a response of a type that was not asked for", || said.to_string())?;
        OfType::check(said)?;
        of.stream.nonce = said.nonce.clone();
        if accept {
            of.apply(now, said);
        } else {
            of.reject(said);
        }
        let mut ask = if plain && self.delta { of.blank() } else { of.tell() };
        ask.nonce = said.nonce.clone();
        ask.error = (!accept).then(|| Status::new(Code::InvalidArgument, "no"));
        Ok(self.signed(ask))
    }

    /// Removes expired resources. Returns the type, name and content of each.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<(usize, ResourceName, u8)> {
        let mut gone = Vec::new();
        for (t, of) in self.types.iter_mut().enumerate() {
            let due = |held: &Held| held.until.is_some_and(|until| until <= now);
            gone.extend(
                of.held.iter().filter(|(_, held)| due(held)).map(|(name, held)| (t, name.clone(), held.content)),
            );
            of.held.retain(|_, held| !due(held));
        }
        for (t, name, _) in &gone {
            self.types[*t].sound = false;
            self.types[*t].lapsed.insert(name.clone());
        }
        gone
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.types.iter().flat_map(|of| of.held.values()).filter_map(|held| held.until).min()
    }

    fn signed(&mut self, ask: Ask) -> Ask {
        Ask { node: self.node.take(), ..ask }
    }
}

impl OfType {
    /// Makes a request without changes.
    fn blank(&self) -> Ask {
        Ask {
            node: None,
            type_url: self.kind.type_url().clone(),
            names: Vec::new(),
            leave: Vec::new(),
            claims: BTreeMap::new(),
            version: if self.delta { Version::default() } else { self.accepted.clone() },
            nonce: if self.delta { Nonce::default() } else { self.stream.nonce.clone() },
            error: None,
        }
    }

    /// Makes a request with all unsent changes.
    fn tell(&mut self) -> Ask {
        let mut ask = self.blank();
        let first = !std::mem::replace(&mut self.stream.asked, true);
        let (fresh, left) = (std::mem::take(&mut self.stream.fresh), std::mem::take(&mut self.stream.left));
        self.stream.dirty = false;
        let only_all = self.wanted.len() == 1 && self.wanted.contains(WILDCARD);
        let legacy = only_all && !self.stream.named && self.kind.has_legacy_wildcard();
        if self.delta {
            (ask.names, ask.leave) = (fresh.into_iter().collect(), left.into_iter().collect());
            if first {
                ask.leave.clear();
                ask.claims = self.held.iter().map(|(name, held)| (name.clone(), held.version.clone())).collect();
                if legacy {
                    ask.names.clear();
                }
            }
        } else if !legacy {
            ask.names = self.wanted.iter().cloned().collect();
            self.stream.named |= !ask.names.is_empty();
        }
        ask
    }

    /// Checks that a response has no forbidden part.
    fn check(said: &Said) -> Result<(), Fault> {
        let mut names = Names::new();
        let all = said.items.iter().map(|item| &item.name).chain(&said.removed);
        for name in all.chain(said.errors.iter().map(|(name, _)| name).filter(|name| !said.removed.contains(name))) {
            ensure(names.insert(name.clone()), "a name is in a response twice", || format!("{name} in {said}"))?;
        }
        Ok(())
    }

    fn apply(&mut self, now: Instant, said: &Said) {
        let first = self.accepted.as_str().is_empty();
        self.accepted = said.version.clone();
        self.sound |= first && !self.stream.grown;
        let until = |ttl: Option<Duration>| ttl.map(|ttl| now + ttl);
        let named: Names = said.items.iter().map(|item| item.name.clone()).collect();
        if !self.delta && self.kind.is_full_state() {
            let fails = |name: &ResourceName| {
                said.errors.iter().any(|(of, code)| of == name && *code != Code::NotFound.number())
            };
            self.held.retain(|name, _| named.contains(name) || fails(name));
            self.rejected.retain(|name, _| named.contains(name));
        }
        for item in &said.items {
            let Item { name, version, aliases, content, ttl } = item.clone();
            self.answered.insert(name.clone());
            self.answered.extend(aliases.iter().cloned());
            match content {
                // The resource's own name and aliases are not subscribed to, or not any more.
                Some(_) if !is_wanted(&self.wanted, &name, &aliases) => _ = self.held.remove(&name),
                Some(content) => {
                    self.errors.remove(&name);
                    self.rejected.remove(&name);
                    self.lapsed.remove(&name);
                    self.held.insert(name, Held { content, version, aliases, until: until(ttl) });
                }
                None => {
                    let held = self.held.get_mut(&name).filter(|held| !self.delta || held.version == version);
                    held.into_iter().for_each(|held| held.until = until(ttl));
                }
            }
        }
        let missing = said.errors.iter().filter(|(_, code)| *code == Code::NotFound.number()).map(|(name, _)| name);
        for name in said.removed.iter().chain(missing) {
            self.answered.insert(name.clone());
            self.held.remove(name);
            self.errors.remove(name);
            self.rejected.remove(name);
            self.lapsed.remove(name);
        }
        for (name, code) in &said.errors {
            self.answered.insert(name.clone());
            self.errors.insert(name.clone(), *code);
        }
    }

    fn reject(&mut self, said: &Said) {
        (self.sound, self.stream.grown) = (false, true);
        for item in &said.items {
            self.rejected.entry(item.name.clone()).or_default().insert(item.content);
            self.answered.insert(item.name.clone());
            self.answered.extend(item.aliases.iter().cloned());
        }
        let missing = said.errors.iter().map(|(name, _)| name).chain(&said.removed);
        for name in missing {
            self.rejected.entry(name.clone()).or_default().insert(None);
            self.answered.insert(name.clone());
        }
        if !self.delta && self.kind.is_full_state() {
            // Resources that are omitted were to be removed.
            for name in self.held.keys().filter(|name| !said.items.iter().any(|item| item.name == **name)) {
                self.rejected.entry(name.clone()).or_default().insert(None);
            }
        }
    }
}

/// Returns whether names select a resource that has these aliases.
pub(super) fn is_wanted(wanted: &Names, name: &ResourceName, aliases: &[ResourceName]) -> bool {
    wanted.iter().any(|wish| covers(wish, name) || aliases.contains(wish))
}

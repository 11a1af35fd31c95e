//! Two machines, a wire, an application, a store, and a reference that shares no code with the machines.
//!
//! One alphabet, [`Step`], drives all of it: the model check, proptest, the fuzz targets, the simulation and the
//! committed regressions. What must hold after every step is in [`ghost`]; what must hold when nothing is left to do
//! is in [`World::settled`].

#![allow(dead_code, unreachable_pub)] // each engine uses its part

mod ghost;
pub mod variant;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use xds_machine::client::{self, Client, Rejection, Update};
use xds_machine::message::Node;
use xds_machine::server::{self, Cache, Resource, Server, Source, StreamId};
use xds_machine::{Instant, Place, ResourceName, ResourceType, TypeUrl, Types, Version, WILDCARD};

use self::ghost::Ghost;
pub use self::variant::Both;

/// The types of the world. The second is the parent of the first on ADS, as clusters are of endpoints.
pub const CHILD: usize = 0;
pub const PARENT: usize = 1;

/// What can happen. `t` is a type, `n` a name, both by their number.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Step {
    // The protocol: what drivers do without being asked.
    /// A stream comes up.
    Open,
    /// The client hands a request to the transport, which takes it.
    ClientSends,
    /// A request arrives.
    ServerReads,
    /// The server hands a response to the transport.
    ServerSends,
    /// A response arrives.
    ClientReads,
    /// The application accepts the update of a type.
    Accept(usize),
    /// Time passes until the next thing is due.
    Tick,

    // The environment: what happens to the protocol. Each kind has a budget.
    /// The stream breaks; what is on the wire is lost.
    Cut,
    /// The application rejects all of an update.
    Reject(usize),
    /// The application rejects one resource of an update and accepts the others.
    RejectOne(usize, usize),
    Subscribe(usize, usize),
    Unsubscribe(usize, usize),
    Put(usize, usize),
    Delete(usize, usize),
    /// The application asks again for what it has.
    Refetch(usize, usize),
}

impl Step {
    /// Whether the protocol takes this step by itself.
    pub fn is_protocol(self) -> bool {
        matches!(
            self,
            Self::Open
                | Self::ClientSends
                | Self::ServerReads
                | Self::ServerSends
                | Self::ClientReads
                | Self::Accept(_)
                | Self::Tick
        )
    }
}

/// How often each kind of environment step may happen.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Budget {
    pub cuts: u8,
    pub rejects: u8,
    pub subscribes: u8,
    pub unsubscribes: u8,
    pub puts: u8,
    pub deletes: u8,
    pub refetches: u8,
}

/// What does not change during a run.
#[derive(Debug)]
pub struct Setup {
    /// Of each type, what the server side calls it, in the order of the constants above.
    pub types: Vec<TypeUrl>,
    /// Names; the wildcard may be one of them, and then is only subscribed to.
    pub names: Vec<ResourceName>,
    pub full_state: bool,
    pub legacy_wildcard: bool,
    pub budget: Budget,
    /// Drop stale SotW requests before the server sees them, as go-control-plane and Istio do.
    pub strict_server: bool,
    /// Skip, on a new stream, what the client's version says it has, as some SotW servers do.
    pub existence_timeout: Option<Duration>,
    pub client: client::Config,
    pub server: server::Config,
}

impl Setup {
    pub fn new(full_state: bool, types: usize, names: &[&str], budget: Budget) -> Self {
        Self::with(full_state, full_state, types, names, budget, false, Some(Duration::from_secs(15)))
    }

    pub fn with(
        full_state: bool,
        legacy_wildcard: bool,
        types: usize,
        names: &[&str],
        budget: Budget,
        strict_server: bool,
        existence_timeout: Option<Duration>,
    ) -> Self {
        let urls: Vec<TypeUrl> = ["type/child", "type/parent"][..types].iter().map(|&url| url.into()).collect();
        let places = [Place::Endpoint, Place::Cluster];
        let kinds = urls.iter().zip(places).map(|(url, place)| {
            let kind =
                if full_state { ResourceType::full_state(url.clone()) } else { ResourceType::partial(url.clone()) };
            kind.with_legacy_wildcard(legacy_wildcard).at(place)
        });
        let types = Types::new(kinds);
        Self {
            types: urls,
            names: names.iter().map(|&name| name.into()).collect(),
            full_state,
            legacy_wildcard,
            budget,
            strict_server,
            existence_timeout,
            client: client::Config::new(Node::new("n"))
                .with_types(types.clone())
                .with_existence_timeout(existence_timeout),
            server: server::Config::ads().with_types(types),
        }
    }

    fn type_number(&self, type_url: &TypeUrl) -> usize {
        self.types.iter().position(|known| known == type_url).expect("one of the world's types")
    }
}

/// What the application did with resources, and thinks of them: written down by hand, read from no machine.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Application {
    pub wanted: BTreeSet<ResourceName>,
    pub applied: BTreeMap<ResourceName, Version>,
    pub rejected: BTreeMap<ResourceName, Version>,
    pub missing: BTreeSet<ResourceName>,
    /// The update that waits for a verdict.
    pub judging: Option<Update>,
    /// Names that were unwanted at some time since it is out.
    pub left: BTreeSet<ResourceName>,
}

impl Application {
    pub fn wants(&self, name: &ResourceName) -> bool {
        self.wanted.contains(name) || self.wanted.contains(WILDCARD)
    }
}

#[derive(Clone, Debug)]
pub struct World<V: Both> {
    pub setup: Arc<Setup>,
    pub budget: Budget,
    pub now: Instant,
    pub client: Client<V>,
    pub server: Option<Server<V>>,
    pub streams: u64,
    pub cache: Cache,
    pub up: VecDeque<V::Req>,
    pub down: VecDeque<V::Resp>,
    pub apps: Vec<Application>,
    pub ghost: Ghost,
}

impl<V: Both> Hash for World<V> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        let Self { setup: _, budget, now, client, server, streams, cache, up, down, apps, ghost } = self;
        (budget, now, client, server, streams, cache, up, down, apps, ghost).hash(state);
    }
}

impl<V: Both> World<V> {
    pub fn new(setup: Arc<Setup>) -> Self {
        Self {
            budget: setup.budget,
            now: Instant::EPOCH,
            client: Client::new(setup.client.clone()),
            server: None,
            streams: 0,
            cache: Cache::new(1),
            up: VecDeque::new(),
            down: VecDeque::new(),
            apps: vec![Application::default(); setup.types.len()],
            ghost: Ghost::new(setup.types.len()),
            setup,
        }
    }

    /// The steps that can be taken now.
    pub fn steps(&self, steps: &mut Vec<Step>) {
        self.protocol_steps(steps);
        let Budget { cuts, rejects, subscribes, unsubscribes, puts, deletes, refetches } = self.budget;
        if cuts > 0 && self.server.is_some() {
            steps.push(Step::Cut);
        }
        for (t, app) in self.apps.iter().enumerate() {
            if rejects > 0 {
                if let Some(update) = &app.judging {
                    steps.push(Step::Reject(t));
                    if update.resources().len() > 1 {
                        let names = self.setup.names.iter().enumerate();
                        let offered = names.filter(|(_, name)| update.resources().any(|r| r.name() == *name));
                        steps.extend(offered.map(|(n, _)| Step::RejectOne(t, n)));
                    }
                }
            }
            for (n, name) in self.setup.names.iter().enumerate() {
                let wanted = app.wanted.contains(name);
                if subscribes > 0 && !wanted {
                    steps.push(Step::Subscribe(t, n));
                }
                if unsubscribes > 0 && wanted {
                    steps.push(Step::Unsubscribe(t, n));
                }
                if refetches > 0 && wanted && app.applied.contains_key(name) {
                    steps.push(Step::Refetch(t, n));
                }
                if !name.is_wildcard() {
                    if puts > 0 {
                        steps.push(Step::Put(t, n));
                    }
                    if deletes > 0 && self.content(t, name).is_some() {
                        steps.push(Step::Delete(t, n));
                    }
                }
            }
        }
    }

    pub fn protocol_steps(&self, steps: &mut Vec<Step>) {
        let before = steps.len();
        if self.server.is_none() && self.client.wants_stream() {
            steps.push(Step::Open);
        }
        if self.client.wants_transmit() {
            steps.push(Step::ClientSends);
        }
        if !self.up.is_empty() {
            steps.push(Step::ServerReads);
        }
        if self.server.as_ref().is_some_and(|server| server.clone().poll_transmit(self.now, &self.cache).is_some()) {
            steps.push(Step::ServerSends);
        }
        if !self.down.is_empty() && self.client.wants_response() {
            steps.push(Step::ClientReads);
        }
        for (t, app) in self.apps.iter().enumerate() {
            if app.judging.is_some() {
                steps.push(Step::Accept(t));
            }
        }
        // Time is slow: what is due comes when the wire is quiet.
        if steps.len() == before && self.next_due().is_some() {
            steps.push(Step::Tick);
        }
    }

    fn next_due(&self) -> Option<Instant> {
        let server = self.server.as_ref().and_then(Server::poll_timeout);
        self.client.poll_timeout().into_iter().chain(server).min()
    }

    /// Takes a step. Panics if what must hold does not.
    pub fn take(&mut self, step: Step) {
        let setup = self.setup.clone();
        match step {
            Step::Open => {
                self.streams += 1;
                self.server = Some(Server::new(setup.server.clone(), StreamId(self.streams)));
                self.client.handle_open(self.now);
                self.ghost.open(&self.apps);
            }
            Step::Cut => {
                self.budget.cuts -= 1;
                self.server = None;
                self.up.clear();
                self.down.clear();
                self.client.handle_close(self.now);
                self.ghost.close();
            }
            Step::ClientSends => {
                let transmit = self.client.poll_transmit().expect("wants_transmit said so");
                self.ghost.client_sends::<V>(&setup, &self.apps, &transmit);
                self.client.handle_sent(self.now, transmit.sent);
                self.up.push_back(transmit.request);
            }
            Step::ServerReads => {
                let request = self.up.pop_front().expect("a request is on the wire");
                if !self.ghost.server_reads::<V>(&setup, &request) {
                    return; // a strict server drops what is stale
                }
                let server = self.server.as_mut().expect("a stream is up");
                server.handle_request(self.now, request).expect("a client of ours keeps the rules");
                while let Some(action) = server.poll_action() {
                    self.ghost.server_acts(&setup, action);
                }
            }
            Step::ServerSends => {
                let server = self.server.as_mut().expect("a stream is up");
                let response = server.poll_transmit(self.now, &self.cache).expect("there is something to send");
                let response = V::message(&response);
                assert!(server.poll_action().is_none(), "nothing happened");
                self.ghost.server_sends::<V>(&setup, &self.cache, &response);
                self.down.push_back(response);
            }
            Step::ClientReads => {
                let response = self.down.pop_front().expect("a response is on the wire");
                self.ghost.client_reads::<V>(&setup, &response);
                self.client.handle_response(self.now, response).expect("a server of ours keeps the rules");
            }
            Step::Accept(t) => self.judge(t, |_| false),
            Step::Reject(t) => {
                self.budget.rejects -= 1;
                self.judge(t, |_| true);
            }
            Step::RejectOne(t, n) => {
                self.budget.rejects -= 1;
                self.judge(t, |name| *name == setup.names[n]);
            }
            Step::Subscribe(t, n) => {
                self.budget.subscribes -= 1;
                self.client.subscribe(&setup.types[t], [setup.names[n].clone()]).expect("a good name");
                self.apps[t].wanted.insert(setup.names[n].clone());
            }
            Step::Unsubscribe(t, n) => {
                self.budget.unsubscribes -= 1;
                self.client.unsubscribe(&setup.types[t], [setup.names[n].as_str()]);
                let app = &mut self.apps[t];
                app.wanted.remove(&setup.names[n]);
                let unwanted = setup.names.iter().filter(|name| !app.wants(name)).cloned();
                app.left.extend(unwanted.collect::<Vec<_>>());
                app.missing.remove(&setup.names[n]);
                let wanted = app.wanted.clone();
                let wants = |name: &ResourceName| wanted.contains(name) || wanted.contains(WILDCARD);
                app.applied.retain(|name, _| wants(name));
                app.rejected.retain(|name, _| wants(name));
            }
            Step::Refetch(t, n) => {
                self.budget.refetches -= 1;
                self.client.refetch(&setup.types[t], [setup.names[n].as_str()]);
            }
            Step::Put(t, n) => {
                self.budget.puts -= 1;
                let (type_url, name) = (&setup.types[t], &setup.names[n]);
                let content = self.content(t, name).map_or(0, |content| 1 - content);
                assert!(self.cache.insert(type_url, Resource::new(name.clone(), body(name, content))));
                self.ghost.changes(t, name);
            }
            Step::Delete(t, n) => {
                self.budget.deletes -= 1;
                assert!(self.cache.remove(&setup.types[t], setup.names[n].as_str()));
                self.ghost.changes(t, &setup.names[n]);
            }
            Step::Tick => {
                self.now = self.now.max(self.next_due().expect("something is due"));
                self.client.handle_timeout(self.now);
                if let Some(server) = &mut self.server {
                    server.handle_timeout(self.now);
                }
            }
        }
        self.drain();
    }

    /// The application takes what there is to take.
    fn drain(&mut self) {
        while let Some(action) = self.client.poll_action() {
            match action {
                client::Action::Apply(update) => {
                    let t = self.setup.type_number(update.type_url());
                    self.ghost.applies(&self.apps[t], &update);
                    self.apps[t].left.clear();
                    let before = self.apps[t].judging.replace(update);
                    assert_eq!(before, None, "one update of a type at a time");
                }
                client::Action::Missing { type_url, names } => {
                    let app = &mut self.apps[self.setup.type_number(&type_url)];
                    for name in names {
                        assert!(app.wanted.contains(&name), "{name} is missing, and nobody asked");
                        assert!(!app.applied.contains_key(&name), "{name} is missing, and there");
                        assert!(app.missing.insert(name.clone()), "{name} is missing twice");
                    }
                }
                client::Action::Synced { .. } => {}
                other => panic!("nobody asked for {other:?}"),
            }
        }
    }

    fn judge(&mut self, t: usize, reject: impl Fn(&ResourceName) -> bool) {
        let app = &mut self.apps[t];
        let update = app.judging.take().expect("an update is out");
        let mut rejections = Vec::new();
        for resource in update.resources() {
            let (name, version) = (resource.name().clone(), resource.version().clone());
            let content = version_of(resource.body(), &name);
            let rejected = reject(&name);
            if rejected {
                rejections.push(Rejection::new(name.clone(), "no"));
            }
            if !app.wants(&name) {
                continue;
            }
            app.missing.remove(&name);
            if rejected {
                app.rejected.insert(name, content);
            } else {
                app.rejected.remove(&name);
                app.applied.insert(name, content);
            }
            let _ = version;
        }
        for name in update.removed() {
            app.applied.remove(name);
            app.rejected.remove(name);
            if app.wanted.contains(name) && !app.left.contains(name) {
                app.missing.insert(name.clone());
            }
        }
        app.left.clear();
        self.ghost.judged(t, &update, !rejections.is_empty());
        self.client.handle_verdict(self.now, update.reject(rejections)).expect("the update is out");
    }

    fn content(&self, t: usize, name: &ResourceName) -> Option<u8> {
        let resource = match self.cache.get(&self.setup.types[t], name.as_str()).state {
            server::State::Present(resource) => resource,
            _ => return None,
        };
        resource.body().last().copied()
    }

    /// Whether nothing is left to do.
    pub fn is_settled(&self) -> bool {
        let mut steps = Vec::new();
        self.protocol_steps(&mut steps);
        steps.is_empty()
    }

    /// What must hold when nothing is left to do: the client has what the server has, of what is wanted, and the
    /// server knows what is wanted.
    pub fn check_settled(&self) {
        for (t, app) in self.apps.iter().enumerate() {
            let type_url = &self.setup.types[t];
            if let Some(server) = &self.server {
                let names: BTreeSet<ResourceName> = match server.interest(type_url) {
                    Some(interest) => {
                        let star = interest.wildcard().then(|| WILDCARD.into());
                        interest.names().cloned().chain(star).collect()
                    }
                    None => BTreeSet::new(),
                };
                assert_eq!(names, app.wanted, "type {t}: the server's view of what is wanted");
            } else {
                assert!(app.wanted.is_empty(), "type {t}: no stream, though something is wanted");
            }
            self.ghost.check_settled(t);
            for name in self.setup.names.iter().filter(|name| !name.is_wildcard()) {
                let there = self.cache.get(type_url, name.as_str()).resource_version();
                let has = app.applied.get(name);
                if !app.wants(name) {
                    assert_eq!(has, None, "type {t}: {name} is not wanted");
                    continue;
                }
                match there {
                    Some(version) => {
                        let rejected = app.rejected.get(name) == Some(&version);
                        assert!(has == Some(&version) || rejected, "type {t}: {name} is {version:?}, applied {has:?}");
                        assert!(!app.missing.contains(name), "type {t}: {name} is there, reported as missing");
                    }
                    None if V::REMOVES || self.setup.full_state => {
                        assert_eq!(has, None, "type {t}: {name} does not exist");
                        if app.wanted.contains(name) && self.setup.existence_timeout.is_some() {
                            let known = app.missing.contains(name) || app.rejected.contains_key(name);
                            assert!(known, "type {t}: {name} does not exist, and the application waits");
                        }
                    }
                    None => {
                        // A partial type does not say so in SotW.
                        let known = has.is_some() || app.missing.contains(name) || app.rejected.contains_key(name);
                        let asked = app.wanted.contains(name) && self.setup.existence_timeout.is_some();
                        assert!(known || !asked, "type {t}: {name} does not exist, and the application waits");
                    }
                }
            }
        }
    }
}

trait ResourceVersion {
    fn resource_version(&self) -> Option<Version>;
}

impl ResourceVersion for server::Entry<'_> {
    fn resource_version(&self) -> Option<Version> {
        match self.state {
            server::State::Present(resource) => Some(resource.version().clone()),
            _ => None,
        }
    }
}

/// An encoded resource: its name in field 1, its content in field 15.
pub fn body(name: &ResourceName, content: u8) -> Vec<u8> {
    let mut body = vec![0x0a, name.as_str().len() as u8];
    body.extend_from_slice(name.as_str().as_bytes());
    body.extend_from_slice(&[0x78, content]);
    body
}

fn version_of(body: &[u8], name: &ResourceName) -> Version {
    Resource::new(name.clone(), body.to_vec()).version().clone()
}

//! The scripts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use xds_machine::client::{self, Action, Client, Rejection, Update, Verdict};
use xds_machine::message::Node;
use xds_machine::server::{self, Cache, Resource, Server, StreamId};
use xds_machine::{Instant, Nonce, ResourceName, TypeUrl, Version, type_url};

use super::pipe::{Pipe, Received};
use crate::variant::Both;
use crate::world::store::body;

/// A fault of a driver.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Failure {
    /// The rule that the driver violates: a sentence.
    pub rule: &'static str,
    /// The observed behaviour.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.what)
    }
}

impl std::error::Error for Failure {}

/// The time that a peer waits for a driver. A correct driver never lets the peer wait that long.
const PATIENCE: Duration = Duration::from_secs(5);
const NAMES: [&str; 2] = ["a", "b"];
/// Content that the application rejects.
const BAD: u8 = 13;
/// Not a message of either variant: shorter than the announced length.
const GARBAGE: &[u8] = &[0x0a, 0x7f];

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn ensure(holds: bool, rule: &'static str, what: impl FnOnce() -> String) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(Failure { rule, what: what() }) }
}

// Drivers of clients.

/// The environment of a client driver: connections, and an application.
#[derive(Clone, Debug)]
pub struct Network {
    connections: Sender<Pipe>,
    over: Arc<Mutex<bool>>,
    applied: Arc<Mutex<BTreeMap<ResourceName, u8>>>,
}

impl Network {
    /// Returns the type that the driver's client has to subscribe to before it connects.
    pub fn type_url(&self) -> TypeUrl {
        type_url::CLUSTER.into()
    }

    /// Returns the names that the driver's client has to subscribe to.
    pub fn names(&self) -> Vec<ResourceName> {
        NAMES.map(ResourceName::from).to_vec()
    }

    /// Opens a stream. Returns `None` when the check is over: the driver must then return.
    pub fn connect(&self) -> Option<Pipe> {
        if *lock(&self.over) {
            return None;
        }
        let (own, peer) = Pipe::new();
        self.connections.send(peer).ok().map(|()| own)
    }

    /// Judges an update of [`Action::Apply`], as the application.
    pub fn apply(&self, update: Update) -> Verdict {
        let (mut applied, mut rejections) = (lock(&self.applied), Vec::new());
        for resource in update.resources() {
            match resource.body().last() {
                Some(&BAD) => rejections.push(Rejection::new(resource.name().clone(), "bad")),
                content => _ = applied.insert(resource.name().clone(), content.copied().unwrap_or_default()),
            }
        }
        update.removed().iter().for_each(|name| _ = applied.remove(name));
        if rejections.is_empty() { update.accept() } else { update.reject(rejections) }
    }
}

/// Runs a driver of a client against a scripted server: first requests, updates that are accepted and rejected, a
/// stream that ends, undecodable bytes, a response that the client refuses, a removal.
///
/// The driver receives a [`Network`], and runs in its own thread. It makes a client that subscribes to
/// [`names`](Network::names) of [`type_url`](Network::type_url), and runs the driver loop on each stream of
/// [`connect`](Network::connect), with [`apply`](Network::apply) as the application. The driver decides how long to
/// wait between streams.
///
/// # Errors
///
/// Returns the first rule that the driver violates.
pub fn check_driver<V: Both>(drive: impl FnOnce(Network) + Send + 'static) -> Result<(), Failure> {
    let (connections, accepts) = mpsc::channel();
    let network = Network { connections, over: Arc::default(), applied: Arc::default() };
    let given = network.clone();
    let driver = thread::spawn(move || drive(given));
    let mut peer = Peer::<V> { network: network.clone(), accepts, cache: Cache::new(1), streams: 0, stream: None };
    let played = peer.play();
    *lock(&network.over) = true;
    peer.close();
    // Releases a driver that waits in `connect`.
    drop(peer);
    played?;
    join(driver, "the driver returns when there is no network any more")
}

/// Waits for the end of a thread.
fn join(driver: JoinHandle<()>, rule: &'static str) -> Result<(), Failure> {
    let end = std::time::Instant::now() + PATIENCE;
    while !driver.is_finished() && std::time::Instant::now() < end {
        thread::yield_now();
    }
    ensure(driver.is_finished(), rule, || "it runs still".into())?;
    driver.join().or(Err(Failure { rule: PANICS, what: "see above".into() }))
}

const PANICS: &str = "nothing that a peer sends makes a driver panic";

/// A scripted server: the machine, and the inputs of the script.
struct Peer<V: Both> {
    network: Network,
    accepts: Receiver<Pipe>,
    cache: Cache,
    streams: u64,
    stream: Option<(Pipe, Server<V>)>,
}

impl<V: Both> Peer<V> {
    fn play(&mut self) -> Result<(), Failure> {
        self.put("a", 1);
        self.put("b", 1);
        self.open("the driver opens a stream when the client wants one")?;
        let claims = self.first_request()?;
        ensure(claims.is_empty(), "a first client has nothing to claim", || format!("{claims:?}"))?;
        let nonce = self.say();
        self.answer(&nonce, false, "an update goes to the application, and what the client has to say then is sent")?;
        self.applied(&[("a", 1), ("b", 1)])?;

        self.put("a", 2);
        let nonce = self.say();
        self.answer(&nonce, false, "each response is answered")?;
        self.put("b", BAD);
        let nonce = self.say();
        self.answer(&nonce, true, "what the application rejects is rejected")?;
        self.applied(&[("a", 2), ("b", 1)])?;

        self.close();
        self.open("after a stream that ended comes another one")?;
        let claims = self.first_request()?;
        let held = if V::DELTA { NAMES.map(ResourceName::from).to_vec() } else { Vec::new() };
        ensure(
            claims.len() == held.len(),
            "on a new stream the client claims what it has (`handle_close` was called)",
            || format!("{claims:?}"),
        )?;

        let (pipe, _) = self.stream.as_ref().expect("a stream");
        pipe.send(GARBAGE);
        self.ends("what can't be read ends the stream")?;
        self.open("the driver lives on after what can't be read")?;
        self.first_request()?;

        self.put("a", 3);
        self.refuse();
        self.ends("an error of `handle_response` ends the stream")?;
        self.open("the driver lives on after an error of `handle_response`")?;
        self.first_request()?;

        self.put("b", 2);
        self.cache.remove(&self.network.type_url(), "a");
        let nonce = self.say();
        self.answer(&nonce, false, "a removal is answered")?;
        self.applied(&[("b", 2)])
    }

    fn put(&mut self, name: &str, content: u8) {
        let resource = Resource::new(name, body(&name.into(), content));
        self.cache.insert(&self.network.type_url(), resource);
    }

    fn open(&mut self, rule: &'static str) -> Result<(), Failure> {
        let Ok(pipe) = self.accepts.recv_timeout(PATIENCE) else {
            return Err(Failure { rule, what: "no stream was opened".into() });
        };
        self.streams += 1;
        self.stream = Some((pipe, Server::new(server::Config::ads(), StreamId(self.streams))));
        Ok(())
    }

    fn close(&mut self) {
        if let Some((pipe, _)) = self.stream.take() {
            pipe.close();
        }
    }

    fn request(&mut self, rule: &'static str) -> Result<V::Request, Failure> {
        let (pipe, server) = self.stream.as_mut().expect("a stream");
        let seen = match pipe.recv(Some(PATIENCE)) {
            Received::Message(bytes) => match V::decode_request(bytes) {
                Ok(request) => {
                    let taken = server.handle_request(Instant::EPOCH, request.clone());
                    ensure(taken.is_ok(), "a server takes what the driver sends", || format!("{taken:?}"))?;
                    return Ok(request);
                }
                Err(error) => {
                    return Err(Failure { rule: "what the driver sends can be read", what: error.to_string() });
                }
            },
            Received::Timeout => "nothing came".into(),
            other => format!("{other:?}"),
        };
        Err(Failure { rule, what: seen })
    }

    /// Checks the first request of a stream: the subscribed names and the node. Returns the claimed versions.
    fn first_request(&mut self) -> Result<BTreeMap<ResourceName, Version>, Failure> {
        let request = self.request("the first request goes as soon as the stream is up (`handle_open` was called)")?;
        let view = V::request(&request);
        let names: BTreeSet<&ResourceName> = view.names.iter().collect();
        let wanted = self.network.names();
        ensure(names == wanted.iter().collect(), "the client subscribes to the names of the check", || {
            format!("{names:?}")
        })?;
        ensure(view.nonce.is_empty(), "a first request answers nothing", || format!("{}", view.nonce))?;
        let claims = view.initial.clone();
        let (_, server) = self.stream.as_ref().expect("a stream");
        ensure(server.node().is_some(), "the node goes with the first request of each stream", || {
            format!("{names:?}")
        })?;
        Ok(claims)
    }

    /// Sends the pending response. Returns its nonce.
    fn say(&mut self) -> Nonce {
        let (pipe, server) = self.stream.as_mut().expect("a stream");
        let response = server.poll_transmit(Instant::EPOCH, &self.cache).expect("there is something to say");
        pipe.send(V::encode_response(&V::message(&response)));
        response.nonce().clone()
    }

    /// Sends a response that every client refuses: its nonce exceeds any limit.
    fn refuse(&mut self) {
        let (pipe, server) = self.stream.as_mut().expect("a stream");
        let response = server.poll_transmit(Instant::EPOCH, &self.cache).expect("there is something to say");
        let mut message = V::message(&response);
        *V::nonce_mut(&mut message) = "n".repeat(1 << 20).into();
        pipe.send(V::encode_response(&message));
    }

    fn answer(&mut self, nonce: &Nonce, rejects: bool, rule: &'static str) -> Result<(), Failure> {
        let request = self.request(rule)?;
        let view = V::request(&request);
        ensure(view.nonce == nonce && view.error.is_some() == rejects, rule, || {
            format!("the answer to {} has the error {:?}", view.nonce, view.error)
        })
    }

    /// Checks that the driver closes the stream; requests before that are ignored.
    fn ends(&mut self, rule: &'static str) -> Result<(), Failure> {
        let (pipe, _) = self.stream.as_ref().expect("a stream");
        ends(pipe, rule)
    }

    fn applied(&self, expected: &[(&str, u8)]) -> Result<(), Failure> {
        let applied = lock(&self.network.applied).clone();
        let expected = expected.iter().map(|&(name, content)| (name.into(), content)).collect();
        ensure(applied == expected, "the application has what it accepted", || format!("{applied:?}"))
    }
}

// Drivers of servers.

/// The environment of a server driver: streams to serve, and a store to serve from.
#[derive(Clone, Debug)]
pub struct Listener {
    streams: Arc<Mutex<Receiver<Pipe>>>,
    store: Arc<Mutex<Cache>>,
}

impl Listener {
    /// Waits for the next stream. Returns `None` when the check is over: the driver must then return.
    pub fn accept(&self) -> Option<Pipe> {
        lock(&self.streams).recv().ok()
    }

    /// Returns the current store to serve from. A stream receives [`Received::Changed`] after each change.
    pub fn store(&self) -> Cache {
        lock(&self.store).clone()
    }
}

/// Runs a driver of a server against scripted clients: a first response, a change that is pushed to two streams at
/// once, a client that disconnects, undecodable bytes, a request that the server refuses.
///
/// The driver receives a [`Listener`], and runs in its own thread. It serves each stream that it
/// [accepts](Listener::accept) from the [store](Listener::store), and must not block other streams meanwhile.
///
/// # Errors
///
/// Returns the first rule that the driver violates.
pub fn check_server_driver<V: Both>(drive: impl FnOnce(Listener) + Send + 'static) -> Result<(), Failure> {
    let (connect, streams) = mpsc::channel();
    let listener = Listener { streams: Arc::new(Mutex::new(streams)), store: Arc::new(Mutex::new(Cache::new(1))) };
    let given = listener.clone();
    let driver = thread::spawn(move || drive(given));
    let mut peers = Peers { connect, store: listener.store.clone(), open: Vec::new() };
    let played = peers.play::<V>();
    peers.open.iter().for_each(Pipe::close);
    drop(peers);
    played?;
    join(driver, "the driver returns when no more streams come")
}

struct Peers {
    connect: Sender<Pipe>,
    store: Arc<Mutex<Cache>>,
    open: Vec<Pipe>,
}

impl Peers {
    fn play<V: Both>(&mut self) -> Result<(), Failure> {
        self.put(1);
        let (one, mut first) = self.open::<V>()?;
        hear(&one, &mut first, 1, "a request is answered")?;
        let (two, mut second) = self.open::<V>()?;
        hear(&two, &mut second, 1, "two streams are served at once")?;
        self.put(2);
        hear(&one, &mut first, 2, "a change goes to each stream")?;
        hear(&two, &mut second, 2, "a change goes to each stream")?;
        one.close();
        self.put(3);
        hear(&two, &mut second, 3, "a client that leaves changes nothing for others")?;

        let (broken, _) = self.open::<V>()?;
        broken.send(GARBAGE);
        ends(&broken, "what can't be read ends the stream")?;
        let (refused, _) = self.open::<V>()?;
        let mut request = V::empty(&"".into());
        V::request_mut(&mut request).names.push("a".into());
        refused.send(V::encode_request(&request));
        ends(&refused, "an error of `handle_request` ends the stream")?;
        self.put(4);
        hear(&two, &mut second, 4, "a stream that breaks a rule changes nothing for others")
    }

    /// Changes the store, once each stream has read its messages: a driver that forgets changes would notice the change
    /// with an ACK that it reads later.
    fn put(&mut self, content: u8) {
        self.open.iter().for_each(|pipe| pipe.settle(PATIENCE));
        let resource = Resource::new("a", body(&"a".into(), content));
        lock(&self.store).insert(&type_url::CLUSTER.into(), resource);
        self.open.iter().for_each(Pipe::tell_changed);
    }

    fn open<V: Both>(&mut self) -> Result<(Pipe, Client<V>), Failure> {
        let (own, peer) = Pipe::new();
        let gone = |_| Failure { rule: PANICS, what: "the driver accepts no stream any more".into() };
        self.connect.send(peer).map_err(gone)?;
        self.open.push(own.clone());
        let mut client = Client::new(client::Config::new(Node::new("n")).with_existence_timeout(None));
        client.resources_mut(&type_url::CLUSTER.into()).subscribe(["a"]).expect("a good name");
        client.handle_open();
        send(&own, &mut client);
        Ok((own, client))
    }
}

fn send<V: Both>(pipe: &Pipe, client: &mut Client<V>) {
    while let Some(transmit) = client.poll_transmit() {
        pipe.send(V::encode_request(&transmit.request));
        client.handle_sent(Instant::EPOCH, transmit.sent);
    }
}

/// Checks that the next response has the resource with this content, and accepts the response.
fn hear<V: Both>(pipe: &Pipe, client: &mut Client<V>, content: u8, rule: &'static str) -> Result<(), Failure> {
    let bytes = match pipe.recv(Some(PATIENCE)) {
        Received::Message(bytes) => bytes,
        other => return Err(Failure { rule, what: format!("{other:?}") }),
    };
    let response = V::decode_response(bytes)
        .map_err(|error| Failure { rule: "what the driver sends can be read", what: error.to_string() })?;
    let taken = client.handle_response(Instant::EPOCH, response);
    ensure(taken.is_ok(), "a client takes what the driver sends", || format!("{taken:?}"))?;
    let mut seen = None;
    while let Some(action) = client.poll_action() {
        if let Action::Apply(update) = action {
            seen = update.resource("a").and_then(|resource| resource.body().last().copied());
            client.handle_verdict(Instant::EPOCH, update.accept()).expect("the update is out");
        }
    }
    send(pipe, client);
    ensure(seen == Some(content), rule, || format!("content {seen:?} came, and the store has {content}"))
}

fn ends(pipe: &Pipe, rule: &'static str) -> Result<(), Failure> {
    loop {
        match pipe.recv(Some(PATIENCE)) {
            Received::Message(_) => {}
            Received::Closed => return Ok(()),
            other => return Err(Failure { rule, what: format!("{other:?}") }),
        }
    }
}

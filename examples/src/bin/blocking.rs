//! Drives the machines without an async runtime: blocking threads, connected by channels that carry encoded bytes.
//!
//! `cargo run -p examples --bin blocking`

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{self, Duration};

use bytes::Bytes;
use xds_machine::client::{self, Action, Backoff, Client, Update, Verdict};
use xds_machine::message::Node;
use xds_machine::server::{self, Cache, Server, StreamId};
use xds_machine::{Instant, Sotw, TypeUrl, WILDCARD, proto, type_url};

fn main() {
    let clusters = TypeUrl::from(type_url::CLUSTER);
    let plane = ControlPlane::start();
    plane.change(|cache| cache.insert(&clusters, cluster("a", "one")));
    plane.change(|cache| cache.insert(&clusters, cluster("b", "one")));

    let (said, news) = channel();
    let network = plane.clone();
    let client = thread::spawn(move || run_client(&network, &said));
    let next = || println!("{}", news.recv_timeout(Duration::from_secs(20)).expect("news from the client"));

    next(); // connected
    next(); // a and b
    plane.change(|cache| cache.insert(&clusters, cluster("b", "bad")));
    next(); // the client rejects b
    plane.change(|cache| cache.insert(&clusters, cluster("b", "two")));
    next();
    plane.set_door(Door::Closed);
    next(); // disconnected
    plane.change(|cache| cache.remove(&clusters, "a"));
    plane.set_door(Door::Open);
    next(); // connected
    next(); // a is gone: it was removed while the client was disconnected
    plane.set_door(Door::Gone);
    next(); // disconnected
    client.join().expect("no panic");
}

/// A cluster with a name and an `alt_stat_name`.
fn cluster(name: &str, content: &str) -> server::Resource {
    let mut body = vec![0x0a, name.len() as u8];
    body.extend_from_slice(name.as_bytes());
    body.extend_from_slice(&[0xe2, 0x01, content.len() as u8]);
    body.extend_from_slice(content.as_bytes());
    server::Resource::new(name, body)
}

// The client's thread.

/// Connects repeatedly, until the server is gone for good.
fn run_client(network: &ControlPlane, said: &Sender<String>) {
    let epoch = time::Instant::now();
    let now = || Instant::from_epoch(epoch.elapsed());
    let say = |line: String| said.send(line).expect("main listens");
    let mut client = Client::<Sotw>::new(client::Config::new(Node::new("blocking")));
    client.resources_mut(&type_url::CLUSTER.into()).subscribe([WILDCARD]).expect("a name");
    let mut backoff = Backoff::envoy();
    loop {
        let (requests, responses) = match network.connect() {
            Ok(stream) => stream,
            Err(Door::Gone) => return,
            Err(_) => {
                thread::sleep(backoff.next_delay(RandomState::new().hash_one(())));
                continue;
            }
        };
        say("connected".into());
        client.handle_open();
        loop {
            while let Some(action) = client.poll_action() {
                if let Action::Apply(update) = action {
                    let verdict = apply(update, &say);
                    client.handle_verdict(now(), verdict).expect("the update was polled just now");
                }
            }
            while let Some(transmit) = client.poll_transmit() {
                let bytes = proto::sotw::encode_request(&transmit.request);
                if requests.send(Event::Request(bytes)).is_ok() {
                    client.handle_sent(now(), transmit.sent);
                }
            }
            let wait = client.poll_timeout().map_or(Duration::MAX, |due| due.saturating_since(now()));
            match responses.recv_timeout(wait) {
                Ok(bytes) => {
                    backoff.reset();
                    let response = proto::sotw::decode_response(bytes).expect("this server encodes well");
                    if let Err(error) = client.handle_response(now(), response) {
                        say(error.to_string());
                        break;
                    }
                }
                Err(RecvTimeoutError::Timeout) => client.handle_timeout(now()),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        client.handle_close();
        say("disconnected".into());
        thread::sleep(backoff.next_delay(RandomState::new().hash_one(())));
    }
}

/// The application: accepts the valid resources and reports an error for each of the others.
fn apply(update: Update, say: &impl Fn(String)) -> Verdict {
    let mut words: Vec<String> = update.removed().iter().map(|name| format!("no {name}")).collect();
    let verdict = update.check(|resource| {
        let name = resource.name();
        let content = String::from_utf8_lossy(&resource.body()[name.as_str().len() + 5..]);
        words.push(format!("{name} is {content}"));
        if content == "bad" { Err("it says so itself") } else { Ok(()) }
    });
    words.extend(
        verdict.rejections().iter().flat_map(|rejection| &rejection.name).map(|name| format!("{name} rejected")),
    );
    say(words.join(", "));
    verdict
}

// The server's threads, one per stream.

/// An event that wakes up a stream.
enum Event {
    Request(Vec<u8>),
    Changed,
    HangUp,
}

/// Determines whether streams may be opened.
#[derive(Clone, Copy, PartialEq)]
enum Door {
    Open,
    Closed,
    Gone,
}

#[derive(Clone)]
struct ControlPlane(Arc<Mutex<State>>);

struct State {
    cache: Cache,
    /// The number of streams opened so far.
    opened: u64,
    streams: HashMap<u64, Sender<Event>>,
    door: Door,
}

impl ControlPlane {
    fn start() -> Self {
        let state = State { cache: Cache::new(1), opened: 0, streams: HashMap::new(), door: Door::Open };
        Self(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().expect("no thread panicked")
    }

    fn change(&self, change: impl FnOnce(&mut Cache) -> bool) {
        let mut state = self.state();
        if change(&mut state.cache) {
            state.streams.retain(|_, stream| stream.send(Event::Changed).is_ok());
        }
    }

    /// Sets whether streams may be opened; ends all streams unless they may.
    fn set_door(&self, door: Door) {
        let mut state = self.state();
        state.door = door;
        if door != Door::Open {
            state.streams.drain().for_each(|(_, stream)| _ = stream.send(Event::HangUp));
        }
    }

    /// Opens a stream and returns its two ends: a sender for requests and a receiver for responses.
    fn connect(&self) -> Result<(Sender<Event>, Receiver<Bytes>), Door> {
        let ((requests, events), (outbound, responses)) = (channel(), channel());
        let mut state = self.state();
        if state.door != Door::Open {
            return Err(state.door);
        }
        state.opened += 1;
        let stream = state.opened;
        state.streams.insert(stream, requests.clone());
        let plane = self.clone();
        thread::spawn(move || plane.run_stream(StreamId(stream), &events, &outbound));
        Ok((requests, responses))
    }

    fn run_stream(&self, stream: StreamId, events: &Receiver<Event>, outbound: &Sender<Bytes>) {
        let epoch = time::Instant::now();
        let now = || Instant::from_epoch(epoch.elapsed());
        let mut server = Server::<Sotw>::new(server::Config::ads(), stream);
        loop {
            while let Some(response) = server.poll_transmit(now(), &self.state().cache) {
                let bytes: Vec<u8> = response.chunks().flatten().collect();
                if outbound.send(bytes.into()).is_err() {
                    return;
                }
            }
            while let Some(action) = server.poll_action() {
                if let server::Action::Close(_) = action {
                    return;
                }
            }
            let wait = server.poll_timeout().map_or(Duration::MAX, |due| due.saturating_since(now()));
            match events.recv_timeout(wait) {
                Ok(Event::Request(bytes)) => {
                    let request = proto::sotw::decode_request(bytes.into()).expect("this client encodes well");
                    if server.handle_request(now(), request).is_err() {
                        return; // which closes the stream
                    }
                }
                Ok(Event::Changed) => {}
                Err(RecvTimeoutError::Timeout) => server.handle_timeout(now()),
                Ok(Event::HangUp) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}

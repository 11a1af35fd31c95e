//! A client without rules, and a store that changes at any time.

use std::collections::BTreeMap;
use std::time::Duration;

use xds_machine::server::{Action, Cache, Config, Limits, Resource, Server, Source, StreamId};
use xds_machine::{Error, Instant, Nonce, TypeUrl, type_url};

use super::message::body;
use super::{Hostile, Input};

/// Small limits, so that they are reached.
pub const LIMITS: Limits = Limits {
    names_per_type: 8,
    names_per_stream: 16,
    name_bytes_per_stream: 120,
    name_bytes: 45,
    initial_versions: 6,
    version_bytes: 40,
    types: 4,
    type_url_bytes: 75,
    error_bytes: 16,
    stale_requests: 10,
    waiting_actions: 8,
};

/// A server and its environment.
struct Play<V: Hostile> {
    server: Server<V>,
    cache: Cache,
    now: Instant,
    /// The last two nonces that were sent for each type.
    nonces: BTreeMap<TypeUrl, [Nonce; 2]>,
    closed: bool,
}

/// Plays the bytes. Returns the server in its final state.
pub fn play<V: Hostile>(data: &[u8]) -> Server<V> {
    let mut input = Input(data);
    let config = match input.below(8) {
        0 => Config::single(type_url::CLUSTER),
        1 => Config::single(type_url::ENDPOINT),
        2 => Config::ads().with_node_required(),
        3 => Config::ads().with_removal_delay(Duration::ZERO),
        _ => Config::ads(),
    };
    let cache = match input.below(4) {
        0 => Cache::unknown(1),
        1 => Cache::new(1).with_tombstones(1),
        _ => Cache::new(1),
    };
    let server = Server::<V>::new(config.with_limits(LIMITS), StreamId(7));
    let mut play = Play { server, cache, now: Instant::EPOCH, nonces: BTreeMap::new(), closed: false };
    while !input.is_empty() {
        play.step(&mut input);
        if let Err(what) = play.server.check_invariants() {
            panic!("invariant: {what}");
        }
    }
    if let Err(what) = play.cache.check_invariants() {
        panic!("invariant: {what}");
    }
    play.server
}

impl<V: Hostile> Play<V> {
    fn step(&mut self, input: &mut Input<'_>) {
        match input.below(20) {
            0..7 => self.ask(input),
            7..10 => self.poll(),
            10 | 11 => {
                let (type_url, name, content) = (input.type_url(), input.name(), input.byte());
                let resource = Resource::new(name.clone(), body(&name, content));
                let resource = match content {
                    0..16 => resource.with_ttl(Duration::from_secs(u64::from(content))),
                    16..32 => resource.with_aliases(["alias"]),
                    32..128 => resource.with_version(["1", "2", "3"][usize::from(content) % 3]),
                    _ => resource,
                };
                self.cache.insert(&type_url, resource);
            }
            12 | 13 => _ = self.cache.remove(&input.type_url(), input.name().as_str()),
            14 => _ = self.cache.set_unknown(&input.type_url(), input.name()),
            15 => {
                self.cache.set_known(&input.type_url());
                self.cache.publish::<V>();
            }
            16 | 17 => self.act(),
            _ => {
                let far = input.byte();
                let due = self.server.poll_timeout().filter(|_| far < 200);
                self.now = self.now.max(due.unwrap_or(self.now + Duration::from_secs(u64::from(far))));
                self.server.handle_timeout(self.now);
            }
        }
    }

    fn ask(&mut self, input: &mut Input<'_>) {
        let nonces = &self.nonces;
        let request = V::any_request(input, |input, type_url| {
            let [last, before] = nonces.get(type_url).cloned().unwrap_or_default();
            match input.below(8) {
                0..5 => last,
                5 => before,
                6 => Nonce::default(),
                _ => input.word().into(),
            }
        });
        let before = self.server.clone();
        if let Err(error) = self.server.handle_request(self.now, request) {
            assert_eq!(self.server, before, "{error}: a refused request changes nothing");
            if matches!(error, Error::Caller(_)) {
                let mut server = self.server.clone();
                let waiting = std::iter::from_fn(|| server.poll_action()).count();
                assert!(waiting >= LIMITS.waiting_actions, "{error}, though {waiting} wait");
            }
        }
    }

    fn poll(&mut self) {
        let Some(response) = self.server.poll_transmit(self.now, &self.cache) else {
            let mut again = self.server.clone();
            assert!(again.poll_transmit(self.now, &self.cache).is_none(), "nothing to say, and then something");
            return;
        };
        assert!(!self.closed, "a closed stream says nothing");
        let encoded: Vec<u8> = response.chunks().flatten().collect();
        assert_eq!(encoded.len(), response.encoded_len());
        assert_eq!(
            V::decode_response(encoded.into()).expect("a server of ours writes what can be read"),
            V::message(&response)
        );
        let [last, _] = self.nonces.get(response.type_url()).cloned().unwrap_or_default();
        assert_ne!(last, *response.nonce(), "nonces are unique");
        for resource in response.resources() {
            let entry = self.cache.get(response.type_url(), resource.name());
            assert_eq!(entry.state, xds_machine::server::State::Present(resource), "what is sent is what is there");
            let interest = self.server.interest(response.type_url()).expect("a type that was asked for");
            assert!(interest.covers(resource.name().as_str()), "{} is sent and not wanted", resource.name());
        }
        for name in response.removed() {
            // A client that claims a resource that no subscribed name covers may have it by an alias.
            let interest = self.server.interest(response.type_url()).expect("a type that was asked for");
            let is_gone = self.cache.get(response.type_url(), name).state == xds_machine::server::State::Absent;
            assert!(is_gone || !interest.covers(name.as_str()), "{name} is removed, and is neither gone nor unwanted");
        }
        self.nonces.insert(response.type_url().clone(), [response.nonce().clone(), last]);
    }

    fn act(&mut self) {
        while let Some(action) = self.server.poll_action() {
            assert!(!self.closed, "a closed stream does nothing");
            self.closed = matches!(action, Action::Close(_));
        }
    }
}

//! A machine is a value: it can be cloned, compared and hashed, and it acts only when it is called. So code
//! around a machine can be checked in ways that no mock allows. This file shows two of them: a model of your own, and a
//! fuzz function of your own.
//!
//! The example is a proxy that keeps clusters in a table. Its rule for updates is the code under test,
//! [`Proxy::apply`]: everything else on this page is what you would write once.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use xds_machine::client::{self, Action, Client, Update, Verdict};
use xds_machine::message::{Node, delta};
use xds_machine::server::{self, Cache, Resource, Server, StreamId};
use xds_machine::{Delta, Instant, ResourceName, TypeUrl, WILDCARD, type_url};

// The code under test.

/// Your proxy, which accepts clusters with content, and rejects those without.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
struct Proxy {
    table: BTreeMap<ResourceName, Vec<u8>>,
}

impl Proxy {
    fn apply(&mut self, update: Update) -> Verdict {
        for name in update.removed() {
            self.table.remove(name);
        }
        for resource in update.resources().filter(|resource| !resource.body().is_empty()) {
            self.table.insert(resource.name().clone(), resource.body().to_vec());
        }
        update.check(|resource| if resource.body().is_empty() { Err("a cluster needs content") } else { Ok(()) })
    }
}

// 1. A model of your own.

/// The complete state in one value: your code, the machines, and the wire between them. Nothing is mocked, and there is
/// no adapter: the machines that you ship are the state that is explored. With stateright this is the `State`, and
/// [`Step`] the `Action`.
#[derive(Clone, Eq, Hash, PartialEq)]
struct World {
    proxy: Proxy,
    client: Client<Delta>,
    /// The control plane's end of the stream, while the stream is open.
    server: Option<Server<Delta>>,
    streams: u64,
    cache: Cache,
    up: VecDeque<delta::Request>,
    down: VecDeque<delta::Response>,
    /// The remaining budget of the environment. Without bounds the search would not end.
    puts: u8,
    deletes: u8,
    cuts: u8,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    // Steps of your driver.
    Open,
    ClientSends,
    ServerReads,
    ServerSends,
    ClientReads,
    Apply,
    // Events of its environment.
    Put(&'static str, &'static [u8]),
    Delete(&'static str),
    Cut,
}

const STEPS: [Step; 11] = [
    Step::Open,
    Step::ClientSends,
    Step::ServerReads,
    Step::ServerSends,
    Step::ClientReads,
    Step::Apply,
    Step::Put("a", b"one"),
    Step::Put("a", b""),
    Step::Put("b", b"two"),
    Step::Delete("a"),
    Step::Cut,
];

/// Time is constant here; in a model with time-outs it belongs to the state.
const NOW: Instant = Instant::EPOCH;

fn clusters() -> TypeUrl {
    type_url::CLUSTER.into()
}

impl World {
    fn new() -> Self {
        let mut client = Client::new(client::Config::new(Node::new("proxy")));
        client.resources_mut(&clusters()).subscribe([WILDCARD]).expect("a good name");
        Self {
            proxy: Proxy::default(),
            client,
            server: None,
            streams: 0,
            cache: Cache::new(1),
            up: VecDeque::new(),
            down: VecDeque::new(),
            puts: 2,
            deletes: 1,
            cuts: 1,
        }
    }

    /// The world after a step; `None` if the step can't be taken, or has no effect.
    fn after(&self, step: Step) -> Option<Self> {
        let mut next = self.clone();
        match step {
            Step::Open => {
                if next.server.is_some() {
                    return None;
                }
                next.streams += 1;
                next.server = Some(Server::new(server::Config::ads(), StreamId(next.streams)));
                next.client.handle_open();
            }
            Step::ClientSends => next.up.push_back(next.client.poll_transmit()?.request),
            Step::ServerReads => {
                let request = next.up.pop_front()?;
                let server = next.server.as_mut()?;
                server.handle_request(NOW, request).expect("a good request");
                while server.poll_action().is_some() {}
            }
            Step::ServerSends => {
                let response = next.server.as_mut()?.poll_transmit(NOW, &next.cache)?;
                next.down.push_back((&response).into());
            }
            Step::ClientReads => {
                let response = next.down.pop_front()?;
                next.client.handle_response(NOW, response).expect("a good response");
            }
            Step::Apply => match next.client.poll_action()? {
                Action::Apply(update) => {
                    let verdict = next.proxy.apply(update);
                    next.client.handle_verdict(NOW, verdict).expect("made from its update");
                }
                Action::Synced { .. } => {}
                other => panic!("what to do with {other:?}?"),
            },
            Step::Put(name, content) => {
                next.puts = next.puts.checked_sub(1)?;
                next.cache.insert(&clusters(), Resource::new(name, content));
            }
            Step::Delete(name) => {
                next.deletes = next.deletes.checked_sub(1)?;
                next.cache.remove(&clusters(), name);
            }
            Step::Cut => {
                next.cuts = next.cuts.checked_sub(1)?;
                next.server.take()?;
                (next.up, next.down) = Default::default();
                next.client.handle_close();
            }
        }
        (next != *self).then_some(next)
    }

    /// Checks the world whenever nothing is left to do.
    fn check_settled(&self) {
        for resource in self.cache.resources(&clusters()) {
            let has = self.proxy.table.get(resource.name());
            // After a rejection the last good content stays.
            let good = resource.body().is_empty() || has.is_some_and(|has| has == resource.body());
            assert!(good, "{} is {:?}, the proxy has {has:?}", resource.name(), resource.body());
        }
        let there: BTreeSet<_> = self.cache.resources(&clusters()).map(Resource::name).collect();
        let left = self.proxy.table.keys().find(|name| !there.contains(name));
        assert_eq!(left, None, "is gone, and the proxy has it");
    }
}

/// Visits each reachable world once: a model checker in some ten lines.
///
/// This checker leaves out two things. It does not report how a fault was reached: keep with each world the step that
/// led to it. And it does not see that two worlds differ only in the number of nonces so far ([`xds_machine::model`]):
/// without that, the search of a model with cycles has no end. The crate `xds-machine-testing` has both, and a client
/// and a server to build a model around.
#[test]
fn a_model_of_a_proxy_converges_in_every_order() {
    let mut seen = HashSet::from([World::new()]);
    let mut queue = VecDeque::from([World::new()]);
    let mut settled = 0;
    while let Some(world) = queue.pop_front() {
        let own_steps = STEPS.iter().filter(|step| !matches!(step, Step::Put(..) | Step::Delete(_) | Step::Cut));
        if own_steps.filter_map(|&step| world.after(step)).next().is_none() {
            settled += 1;
            world.check_settled();
        }
        for next in STEPS.iter().filter_map(|&step| world.after(step)) {
            // The machines check their own invariants.
            assert_eq!(next.client.check_invariants(), Ok(()));
            if seen.insert(next.clone()) {
                queue.push_back(next);
            }
        }
    }
    println!("{} worlds, {settled} of them settled", seen.len());
    assert!(seen.len() > 1_000 && settled > 10, "a model that explores nothing proves nothing");
}

// 2. A fuzz function of your own.

/// Turns bytes from a fuzzer into steps. A cargo-fuzz target needs one line:
///
/// ```ignore
/// libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz(data));
/// ```
///
/// Each byte means the same step at every position, so that a fuzzer's knowledge of one input holds for the next.
fn fuzz(data: &[u8]) {
    let mut world = World { puts: 99, deletes: 99, cuts: 99, ..World::new() };
    for &byte in data {
        // A byte whose step is not possible now is skipped.
        if let Some(next) = world.after(STEPS[usize::from(byte) % STEPS.len()]) {
            world = next;
        }
    }
    // After any events, the driver's own steps lead to rest, and the state at rest is correct.
    while let Some(next) = STEPS[..6].iter().find_map(|&step| world.after(step)) {
        world = next;
    }
    world.check_settled();
}

/// Runs without a fuzzer: 2,000 inputs, the same in each run.
#[test]
fn a_proxy_converges_after_fuzzed_steps() {
    let mut random = 1_u64;
    for len in 0..2_000 {
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 40) as u8
        })
        .take(len % 100)
        .collect();
        fuzz(&bytes);
    }
}

//! The same questions as to the other servers, for our machine.

use std::fmt::Write;

use benches::data::{NOW, body, clusters, name, resource};
use benches::stream::Wire;
use harness::Probe;
use xds_machine::message::delta;
use xds_machine::server::{self, Cache, Resource, Server, StreamId};
use xds_machine::{Delta, Nonce, Sotw, Status};

pub fn all() -> Vec<Probe> {
    vec![
        change(),
        nack(),
        nack_delta(),
        star(),
        last_name(),
        initial_versions(),
        missing(),
        names_in_an_ack(),
        removed_before_its_ack(),
        rejected(),
    ]
}

/// A store, and a stream of it.
struct World<V: server::Variant> {
    cache: Cache,
    server: Server<V>,
}

impl<V: Wire> World<V> {
    fn new(n: usize, first: V::Message) -> Self {
        let server = Server::new(server::Config::ads(), StreamId(1));
        let mut this = Self { cache: benches::data::cache(&clusters(), n), server };
        this.say(first);
        this
    }

    fn say(&mut self, request: V::Message) {
        self.server.handle_request(NOW, request).expect("a good request");
        while self.server.poll_action().is_some() {}
    }

    /// Returns the names in the next response, and its nonce.
    fn next(&mut self) -> (String, Nonce) {
        let Some(response) = self.server.poll_transmit(NOW, &self.cache) else { return ("nothing".into(), "".into()) };
        let names: Vec<_> = response.resources().map(|resource| resource.name().as_str()).collect();
        let removed: Vec<_> = response.removed().iter().map(|name| name.as_str()).collect();
        (format!("resources {names:?}, removed {removed:?}"), response.nonce().clone())
    }

    /// Returns the names in the next response, and acknowledges it.
    fn take(&mut self) -> String {
        let (said, nonce) = self.next();
        self.say(V::ack(&clusters(), &[], nonce));
        said
    }
}

fn subscribe(names: &[&str]) -> delta::Request {
    Delta::subscribe(&clusters(), names)
}

fn no() -> Option<Status> {
    Some(Status::new(xds_machine::Code::InvalidArgument, "no"))
}

fn change() -> Probe {
    let mut world = World::<Delta>::new(2, subscribe(&[]));
    world.take();
    world.cache.insert(&clusters(), resource(0, 1));
    let (got, _) = world.next();
    let right = got == format!("resources [{:?}], removed []", name(0));
    Probe::new("delta, wildcard, 2 resources, ACK; 1 changes", "it is sent", got, right)
}

fn nack() -> Probe {
    let mut world = World::<Sotw>::new(2, Sotw::subscribe(&clusters(), &[]));
    let mut sent = 0;
    loop {
        let (said, nonce) = world.next();
        if said == "nothing" || sent == 1000 {
            break;
        }
        sent += 1;
        let mut request = Sotw::ack(&clusters(), &[], nonce);
        request.error = no();
        world.say(request);
    }
    Probe::new(
        "SotW, wildcard, 2 resources; the client rejects each response (no version, error_detail)",
        "1 response: what was rejected is not sent again until it changes",
        format!("{sent} response"),
        sent == 1,
    )
}

fn nack_delta() -> Probe {
    let mut world = World::<Delta>::new(2, subscribe(&[]));
    let mut sent = 0;
    loop {
        let (said, nonce) = world.next();
        if said == "nothing" || sent == 1000 {
            break;
        }
        sent += 1;
        world.say(delta::Request { error: no(), ..Delta::ack(&clusters(), &[], nonce) });
    }
    Probe::new(
        "delta, wildcard, 2 resources; the client rejects each response (nonce, error_detail)",
        "1 response: what was rejected is not sent again until it changes",
        format!("{sent} response"),
        sent == 1,
    )
}

fn star() -> Probe {
    let mut world = World::<Delta>::new(2, subscribe(&["*"]));
    let (got, _) = world.next();
    let right = got.contains(&name(0)) && got.contains(&name(1));
    Probe::new("delta, subscribe to \"*\", 2 resources", "both are sent", got, right)
}

fn last_name() -> Probe {
    let mut world = World::<Delta>::new(3, subscribe(&[&name(0)]));
    world.take();
    world.say(delta::Request { unsubscribe: vec![name(0).into()], ..delta::Request::new(clusters()) });
    let mut got = world.take();
    world.say(delta::Request::new(clusters()));
    let _ = write!(got, "; then {}", world.take());
    let right = got == "nothing; then nothing";
    Probe::new(
        "delta, 3 resources, subscribe to one, ACK, unsubscribe from it; then a request without names",
        "nothing is sent: who wants nothing gets nothing",
        got,
        right,
    )
}

fn initial_versions() -> Probe {
    let mut world = World::<Delta>::new(2, subscribe(&["nobody"]));
    let types = clusters();
    let held = world.cache.resources(&types);
    let initial_versions = held.map(|resource| (resource.name(), resource.version())).collect();
    world.server = Server::new(server::Config::ads(), StreamId(2));
    world.say(delta::Request { initial_versions, ..subscribe(&[]) });
    let (got, _) = world.next();
    let right = got == "resources [], removed []";
    Probe::new(
        "delta, wildcard, 2 resources; a new stream with the versions of both in initial_resource_versions",
        "an empty response: the client has both",
        got,
        right,
    )
}

fn missing() -> Probe {
    let mut world = World::<Delta>::new(2, subscribe(&["nobody"]));
    let (got, _) = world.next();
    let right = got == "resources [], removed [\"nobody\"]";
    Probe::new("delta, subscribe to a name that does not exist", "it is said to be removed", got, right)
}

fn names_in_an_ack() -> Probe {
    let mut world = World::<Delta>::new(2, subscribe(&[&name(0)]));
    let (_, nonce) = world.next();
    world.say(delta::Request { nonce, ..subscribe(&[&name(1)]) });
    let (got, _) = world.next();
    let right = got == format!("resources [{:?}], removed []", name(1));
    Probe::new("delta, 2 resources, subscribe to one; the ACK subscribes to the other", "the other is sent", got, right)
}

fn removed_before_its_ack() -> Probe {
    let mut world = World::<Delta>::new(2, subscribe(&[]));
    let (_, nonce) = world.next();
    world.cache.remove(&clusters(), &name(0));
    let (meanwhile, _) = world.next();
    world.say(Delta::ack(&clusters(), &[], nonce));
    let (then, _) = world.next();
    let right = then == format!("resources [], removed [{:?}]", name(0));
    Probe::new(
        "delta, wildcard, 2 resources are sent; 1 is removed, then the ACK comes",
        "it is said to be removed",
        format!("{meanwhile}; after the ACK: {then}"),
        right,
    )
}

fn rejected() -> Probe {
    let mut world = World::<Delta>::new(0, subscribe(&[]));
    let put = |world: &mut World<Delta>, name: &str, round| {
        world.cache.insert(&clusters(), Resource::new(name.to_string(), body(name, round)));
    };
    ["a", "b"].iter().for_each(|name| put(&mut world, name, 0));
    world.take();
    put(&mut world, "a", 1);
    let (first, nonce) = world.next();
    world.say(delta::Request { error: no(), ..Delta::ack(&clusters(), &[], nonce) });
    put(&mut world, "b", 1);
    let (then, _) = world.next();
    let right = then == "resources [\"b\"], removed []";
    Probe::new(
        "a and b are sent and acknowledged; a changes and the client rejects it; b changes",
        "only b is sent: what was rejected is not sent again until it changes",
        format!("{first}, then {then}"),
        right,
    )
}

//! F11: the cost of doing nothing: an idle poll, a time-out that is not due, a stale request without a new name.

use xds_machine::message::sotw;
use xds_machine::server::{self, Cache, Server};
use xds_machine::{ResourceName, Sotw, TypeUrl};

use crate::data::{NOW, cache, endpoints, name, resource};
use crate::measure::Work;
use crate::stream::{Wire, stream};

/// Repetitions per round, enough for the clock's resolution.
pub const TIMES: usize = 1000;

fn named(names: usize) -> (Cache, Server<Sotw>, TypeUrl, Vec<ResourceName>) {
    let types = endpoints();
    let cache = cache(&types, names);
    let held: Vec<ResourceName> = (0..names).map(|at| name(at).into()).collect();
    let list: Vec<&str> = held.iter().map(ResourceName::as_str).collect();
    let subscribe = [Sotw::subscribe(&types, &list)];
    let server = stream::<Sotw>(&server::Config::ads(), 1, &cache, &subscribe, &held);
    (cache, server, types, held)
}

pub struct Poll(Cache, Server<Sotw>);

impl Poll {
    pub fn new(names: usize) -> Self {
        let (cache, server, ..) = named(names);
        Self(cache, server)
    }
}

impl Work for Poll {
    type Input = ();
    type Output = ();

    fn prepare(&mut self) {}

    fn run(&mut self, (): ()) {
        (0..TIMES).for_each(|_| assert!(self.1.poll_transmit(NOW, &self.0).is_none()));
    }
}

pub struct Timeout(Server<Sotw>);

impl Timeout {
    pub fn new(names: usize) -> Self {
        Self(named(names).1)
    }
}

impl Work for Timeout {
    type Input = ();
    type Output = ();

    fn prepare(&mut self) {}

    fn run(&mut self, (): ()) {
        (0..TIMES).for_each(|_| self.0.handle_timeout(NOW));
    }
}

/// A request that does not match the response in flight.
pub struct Stale {
    server: Server<Sotw>,
    types: TypeUrl,
    held: Vec<ResourceName>,
}

impl Stale {
    pub fn new(names: usize) -> Self {
        let (mut cache, mut server, types, held) = named(names);
        cache.insert(&types, resource(0, 1));
        server.poll_transmit(NOW, &cache).expect("a change");
        Self { server, types, held }
    }
}

impl Work for Stale {
    type Input = sotw::Request;
    type Output = ();

    fn prepare(&mut self) -> sotw::Request {
        Sotw::ack(&self.types, &self.held, "stale".into())
    }

    fn run(&mut self, request: sotw::Request) {
        self.server.handle_request(NOW, request).expect("a good request");
        while self.server.poll_action().is_some() {}
    }
}

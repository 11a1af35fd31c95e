//! H1: the worst requests that a client may send, of 1 MiB and of 4 MiB.

use xds_machine::message::{delta, sotw};
use xds_machine::server::{self, Server, StreamId};
use xds_machine::{Delta, ResourceName, Sotw, Version};

use crate::data::{NOW, endpoints};
use crate::measure::Work;
use crate::stream::Wire;

/// A request on a stream, after an optional earlier one.
pub struct Hostile<V: Wire> {
    before: Option<V::Request>,
    request: V::Request,
}

impl<V: Wire> Work for Hostile<V> {
    type Input = (Server<V>, V::Request);
    type Output = Server<V>;

    fn prepare(&mut self) -> Self::Input {
        let mut server = Server::<V>::new(server::Config::ads(), StreamId(1));
        if let Some(before) = &self.before {
            server.handle_request(NOW, before.clone()).expect("a good request");
            while server.poll_action().is_some() {}
        }
        (server, self.request.clone())
    }

    fn run(&mut self, (mut server, request): Self::Input) -> Server<V> {
        server.handle_request(NOW, request).expect("a good request");
        server
    }
}

/// The maximum number of names.
pub const NAMES: usize = 100_000;

/// Returns names of equal length, in an unfavourable order.
fn names(from: usize, count: usize) -> Vec<ResourceName> {
    (from..from + count).rev().map(|i| format!("{:032}", i * 7919 % 1_000_003).as_str().into()).collect()
}

fn sotw(from: usize, count: usize) -> sotw::Request {
    sotw::Request { names: names(from, count), ..sotw::Request::new(endpoints()) }
}

fn delta(subscribe: Vec<ResourceName>, unsubscribe: Vec<ResourceName>) -> delta::Request {
    delta::Request { subscribe, unsubscribe, ..delta::Request::new(endpoints()) }
}

impl Hostile<Sotw> {
    pub fn new_names(count: usize) -> Self {
        Self { before: None, request: sotw(0, count) }
    }

    pub fn other_names(count: usize) -> Self {
        Self { before: Some(sotw(0, count)), request: sotw(NAMES, count) }
    }
}

impl Hostile<Delta> {
    pub fn new_names_delta(count: usize) -> Self {
        Self { before: None, request: delta(names(0, count), Vec::new()) }
    }

    pub fn claims(count: usize) -> Self {
        let versions = names(0, count).into_iter().map(|name| (name, Version::from("1"))).collect();
        Self { before: None, request: delta::Request { initial_versions: versions, ..delta(names(0, 1), Vec::new()) } }
    }

    /// A request that subscribes and unsubscribes the same names, on a stream that has the maximum of other names.
    pub fn come_and_go(count: usize) -> Self {
        let request = delta(names(NAMES, count / 2), names(NAMES, count / 2));
        Self { before: Some(delta(names(0, NAMES), Vec::new())), request }
    }
}

//! F8: many names on one stream: one name is added, or one resource changes.

use xds_machine::server::{self, Cache, Resource, Server};
use xds_machine::{Nonce, ResourceName, TypeUrl};

use crate::data::{NOW, cache, endpoints, name, resource};
use crate::floor;
use crate::measure::Work;
use crate::stream::{Wire, push, stream};

/// The number of names that can be added.
const MORE: usize = 1000;

/// Events per round, enough for the clock's resolution.
pub const EVENTS: usize = 10;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Change {
    Name,
    Resource,
}

pub struct Named<V: Wire> {
    types: TypeUrl,
    cache: Cache,
    server: Server<V>,
    names: Vec<ResourceName>,
    held: usize,
    nonce: Nonce,
    change: Change,
    round: u8,
}

/// A change, with the names as decoded from the client's message: separate strings.
pub struct Event<M> {
    request: Option<M>,
    changed: Option<Resource>,
    names: Vec<ResourceName>,
}

impl<V: Wire> Named<V> {
    pub fn new(names: usize, change: Change) -> Self {
        let types = endpoints();
        let cache = cache(&types, names + MORE);
        let all: Vec<ResourceName> = (0..names + MORE).map(|at| name(at).into()).collect();
        let first: Vec<&str> = all[..names].iter().map(ResourceName::as_str).collect();
        let subscribe = [V::subscribe(&types, &first)];
        let server = stream::<V>(&server::Config::ads(), 1, &cache, &subscribe, &all[..names]);
        Self { types, cache, server, names: all, held: names, nonce: Nonce::default(), change, round: 0 }
    }
}

/// Returns a request with all names, in prost.
pub fn all_names(names: usize) -> floor::SotwRequest {
    floor::SotwRequest {
        resource_names: (0..names).map(name).collect(),
        type_url: endpoints().to_string(),
        response_nonce: "1.1".into(),
        ..floor::SotwRequest::default()
    }
}

impl<V: Wire> Named<V> {
    fn next(&mut self) -> Event<V::Request> {
        self.round = self.round.wrapping_add(1);
        if self.change == Change::Name {
            self.held += 1;
        }
        let names = V::said(&self.names[..self.held]);
        match self.change {
            Change::Name => Event { request: Some(V::more(&self.types, &names)), changed: None, names },
            Change::Resource => Event { request: None, changed: Some(resource(self.held / 2, self.round)), names },
        }
    }
}

impl<V: Wire> Work for Named<V> {
    type Input = Vec<Event<V::Request>>;
    type Output = Vec<Vec<ResourceName>>;

    fn prepare(&mut self) -> Self::Input {
        (0..EVENTS).map(|_| self.next()).collect()
    }

    fn run(&mut self, events: Self::Input) -> Self::Output {
        let mut said = Vec::with_capacity(EVENTS);
        for event in events {
            if let Some(mut request) = event.request {
                V::answer(&mut request, &self.nonce);
                self.server.handle_request(NOW, request).expect("a good request");
                while self.server.poll_action().is_some() {}
            }
            if let Some(changed) = event.changed {
                self.cache.insert(&self.types, changed);
            }
            self.nonce = push(&mut self.server, &self.cache, &self.types, &event.names).1;
            said.push(event.names);
        }
        said
    }
}

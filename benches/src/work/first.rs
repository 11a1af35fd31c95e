//! The start of a stream: F5 with a client that has no resources, F6 with a client that has all.

use std::hint::black_box;

use xds_machine::Delta;
use xds_machine::message::delta;
use xds_machine::server::{self, Cache, Server, Source, StreamId};

use crate::data::{NOW, cache, clusters};
use crate::floor;
use crate::measure::Work;
use crate::stream::Wire;

/// F5: the first stream that is sent all resources, which pays for the encoding.
pub struct FirstSync {
    n: usize,
    config: server::Config,
    request: delta::Request,
}

/// F5: each further stream.
pub struct FurtherSync {
    cache: Cache,
    first: FirstSync,
}

impl FirstSync {
    pub fn new(n: usize) -> Self {
        Self { n, config: server::Config::ads(), request: Delta::subscribe(&clusters(), &[]) }
    }

    fn sync(&self, id: u64, cache: &Cache) -> usize {
        let mut server = Server::<Delta>::new(self.config.clone(), StreamId(id));
        server.handle_request(NOW, self.request.clone()).expect("a good request");
        let response = server.poll_transmit(NOW, cache).expect("everything");
        response.chunks().map(|chunk| black_box(chunk).len()).sum()
    }
}

impl Work for FirstSync {
    type Input = Cache;
    type Output = (Cache, usize);

    fn prepare(&mut self) -> Cache {
        cache(&clusters(), self.n)
    }

    fn run(&mut self, mut cache: Cache) -> (Cache, usize) {
        cache.publish::<Delta>();
        let bytes = self.sync(1, &cache);
        (cache, bytes)
    }
}

impl FurtherSync {
    pub fn new(n: usize) -> Self {
        let mut cache = cache(&clusters(), n);
        cache.publish::<Delta>();
        Self { cache, first: FirstSync::new(n) }
    }
}

impl Work for FurtherSync {
    type Input = ();
    type Output = usize;

    fn prepare(&mut self) {}

    fn run(&mut self, (): ()) -> usize {
        self.first.sync(2, &self.cache)
    }
}

/// F6: a client that has all resources reconnects, until it has the empty response.
pub struct Reconnect {
    cache: Cache,
    request: delta::Request,
}

impl Reconnect {
    pub fn new(n: usize) -> Self {
        let types = clusters();
        let mut cache = cache(&types, n);
        cache.publish::<Delta>();
        let mut request = Delta::subscribe(&types, &[]);
        let held = cache.resources(&types).map(|resource| (resource.name(), resource.version()));
        request.initial_versions = held.collect();
        Self { cache, request }
    }

    pub fn floor(&self) -> floor::DeltaRequest {
        let versions = self.request.initial_versions.iter();
        floor::DeltaRequest {
            type_url: self.request.type_url.to_string(),
            initial_resource_versions: versions
                .map(|(name, version)| (name.to_string(), version.to_string()))
                .collect(),
            ..floor::DeltaRequest::default()
        }
    }
}

impl Work for Reconnect {
    type Input = delta::Request;
    type Output = Server<Delta>;

    fn prepare(&mut self) -> delta::Request {
        self.request.clone()
    }

    fn run(&mut self, request: delta::Request) -> Server<Delta> {
        let mut server = Server::<Delta>::new(server::Config::ads(), StreamId(1));
        server.handle_request(NOW, request).expect("a good request");
        let response = server.poll_transmit(NOW, &self.cache).expect("the empty answer");
        assert_eq!(response.resources().count(), 0);
        assert_eq!(response.version(), &self.cache.version(&clusters()));
        server
    }
}

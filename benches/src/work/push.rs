//! One of many resources changes, and is sent to streams: F1, F2 (delta) and F7 (SotW).

use xds_machine::server::{Cache, Resource, Server};
use xds_machine::{Delta, Sotw, TypeUrl};

use crate::data::{cache, clusters, resource};
use crate::measure::Work;
use crate::stream::{Wire, push, streams};

/// F1, F2: from the change until each wildcard stream has its encoded response, and its ACK is processed.
pub struct OneChange {
    types: TypeUrl,
    cache: Cache,
    streams: Vec<Server<Delta>>,
    n: usize,
    round: u8,
    times: usize,
}

impl OneChange {
    pub fn new(n: usize, s: usize) -> Self {
        Self::repeated(n, s, 1)
    }

    /// Makes several changes in a row, enough for the clock's resolution.
    pub fn repeated(n: usize, s: usize, times: usize) -> Self {
        let types = clusters();
        let mut cache = cache(&types, n);
        cache.publish::<Delta>(); // or each stream would begin with an encoding of its own
        let streams = streams(s, &cache, &[Delta::subscribe(&types, &[])]);
        Self { types, cache, streams, n, round: 0, times }
    }

    pub fn cache(&self) -> &Cache {
        &self.cache
    }
}

impl Work for OneChange {
    type Input = Vec<Resource>;
    type Output = usize;

    fn prepare(&mut self) -> Vec<Resource> {
        let Self { n, round, times, .. } = self;
        let mut next = || {
            *round = round.wrapping_add(1);
            resource(*n / 2, *round)
        };
        (0..*times).map(|_| next()).collect()
    }

    fn run(&mut self, changes: Vec<Resource>) -> usize {
        let Self { types, cache, streams, .. } = self;
        let mut bytes = 0;
        for changed in changes {
            cache.insert(types, changed);
            bytes += streams.iter_mut().map(|stream| push(stream, cache, types, &[]).0).sum::<usize>();
        }
        bytes
    }
}

/// F7: the first wildcard stream, which pays for the new encoding; or each further one.
pub struct FullState {
    types: TypeUrl,
    cache: Cache,
    streams: Vec<Server<Sotw>>,
    n: usize,
    round: u8,
    further: bool,
}

impl FullState {
    pub fn new(n: usize, s: usize, further: bool) -> Self {
        let types = clusters();
        let mut cache = cache(&types, n);
        cache.publish::<Sotw>();
        let streams = streams(s, &cache, &[Sotw::subscribe(&types, &[])]);
        Self { types, cache, streams, n, round: 0, further }
    }

    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    fn change(&mut self, changed: Resource) -> usize {
        self.cache.insert(&self.types, changed);
        self.cache.publish::<Sotw>();
        push(&mut self.streams[0], &self.cache, &self.types, &[]).0
    }

    fn others(&mut self) -> usize {
        let Self { types, cache, streams, .. } = self;
        streams[1..].iter_mut().map(|stream| push(stream, cache, types, &[]).0).sum()
    }
}

impl Work for FullState {
    type Input = Option<Resource>;
    type Output = usize;

    fn prepare(&mut self) -> Option<Resource> {
        if !self.further && self.round > 0 {
            self.others();
        }
        self.round = self.round.wrapping_add(1);
        let changed = resource(self.n / 2, self.round);
        if self.further {
            self.change(changed);
            return None;
        }
        Some(changed)
    }

    fn run(&mut self, changed: Option<Resource>) -> usize {
        match changed {
            Some(changed) => self.change(changed),
            None => self.others(),
        }
    }
}

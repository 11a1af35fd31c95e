//! A cache, and the times of its changes.

use std::collections::VecDeque;
use std::time::Instant;

use xds_machine::server::{Cache, Revision, Source};
use xds_machine::{Delta, Sotw, TypeUrl, service};

use crate::control_plane::news::{Change, Known};

/// A cache, and the times of its last changes.
#[derive(Clone, Debug)]
pub struct Held {
    pub cache: Cache,
    times: VecDeque<(TypeUrl, Revision, Instant)>,
}

/// The number of changes whose times are kept: an answer to an earlier change is not measured.
const TIMES: usize = 256;

impl Held {
    pub fn new(cache: Cache) -> Self {
        Self { cache, times: VecDeque::new() }
    }

    /// Makes changes, and encodes the changed resources once for all streams.
    pub fn change(&mut self, changes: &[Change]) {
        let now = Instant::now();
        let mut types = Vec::new();
        for ((type_url, name), known) in changes {
            let changed = match known {
                Known::Present(resource) => self.cache.insert(type_url, resource.clone()),
                Known::Absent => self.cache.remove(type_url, name.clone()),
                Known::Unknown => self.cache.set_unknown(type_url, name.clone()),
            };
            if changed && !types.contains(&type_url) {
                types.push(type_url);
            }
        }
        for type_url in types {
            self.times.push_back((type_url.clone(), self.cache.type_revision(type_url), now));
        }
        let excess = self.times.len().saturating_sub(TIMES);
        self.times.drain(..excess);
        self.publish();
    }

    /// Notes that the cache holds all resources that exist.
    pub fn set_known(&mut self) {
        service::types().for_each(|type_url| self.cache.set_known(&type_url.into()));
        self.publish();
    }

    /// Returns the time of the first change of a type after a revision and a time, up to a revision.
    pub fn changed(&self, type_url: &TypeUrl, after: (Revision, Instant), to: Revision) -> Option<Instant> {
        let is_it = |of: &TypeUrl, at: &Revision, time: &Instant| {
            of == type_url && after.0 < *at && *at <= to && after.1 < *time
        };
        let (.., time) = self.times.iter().find(|(of, at, time)| is_it(of, at, time))?;
        Some(*time)
    }

    fn publish(&mut self) {
        self.cache.publish::<Sotw>();
        self.cache.publish::<Delta>();
    }
}

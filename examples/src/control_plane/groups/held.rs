//! A cache, and the times of its changes.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use xds_machine::server::{Cache, Revision, Source};
use xds_machine::{Delta, Sotw, TypeUrl, service};

use crate::control_plane::news::{Change, Key, Known};

/// A cache, and the times of its last changes.
#[derive(Clone, Debug)]
pub struct Held {
    pub cache: Cache,
    times: VecDeque<(TypeUrl, Revision, Instant)>,
    /// Whether everything that exists was known once.
    was_complete: bool,
    /// Changes that would say of something unknown that it does not exist.
    waiting: BTreeMap<Key, Known>,
}

/// The number of changes whose times are kept: an answer to an earlier change is not measured.
const TIMES: usize = 256;

impl Held {
    pub fn new(cache: Cache) -> Self {
        Self { cache, times: VecDeque::new(), was_complete: false, waiting: BTreeMap::new() }
    }

    /// Makes changes, and encodes the changed resources once for all streams.
    ///
    /// While not all that exists is known, no removal is made: what has gone may be in a file that can't be read. Before
    /// all was known once, no change is made at all, because a first answer without a resource removes it too.
    pub fn change(&mut self, changes: &[Change], is_complete: bool) {
        let has_news = !changes.is_empty() || (is_complete && (!self.was_complete || !self.waiting.is_empty()));
        if !has_news {
            return;
        }
        let now = Instant::now();
        let mut types = Vec::new();
        self.was_complete |= is_complete;
        for (key, known) in changes {
            self.waiting.insert(key.clone(), known.clone());
        }
        let (waiting, ready) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|(_, known)| !is_complete && (!self.was_complete || *known == Known::Absent));
        self.waiting = waiting;
        let ready: BTreeMap<Key, Known> = ready;
        for ((type_url, name), known) in ready {
            let changed = match known {
                Known::Present(resource) => self.cache.insert(&type_url, resource),
                Known::Absent => self.cache.remove(&type_url, name),
                Known::Unknown => self.cache.set_unknown(&type_url, name),
            };
            if changed && !types.contains(&type_url) {
                types.push(type_url);
            }
        }
        for type_url in types {
            self.times.push_back((type_url.clone(), self.cache.type_revision(&type_url), now));
        }
        let excess = self.times.len().saturating_sub(TIMES);
        self.times.drain(..excess);
        if is_complete {
            service::types().for_each(|type_url| self.cache.set_known(&type_url.into()));
        }
        self.cache.publish::<Sotw>();
        self.cache.publish::<Delta>();
    }

    /// Returns the time of the first change of a type after a revision and a time, up to a revision.
    pub fn changed(&self, type_url: &TypeUrl, after: (Revision, Instant), to: Revision) -> Option<Instant> {
        let is_it = |of: &TypeUrl, at: &Revision, time: &Instant| {
            of == type_url && after.0 < *at && *at <= to && after.1 < *time
        };
        let (.., time) = self.times.iter().find(|(of, at, time)| is_it(of, at, time))?;
        Some(*time)
    }
}

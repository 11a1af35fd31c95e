//! The counters of one entry: which of them a report takes, and which stay.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::mem;
use core::time::Duration;

use bytes::Bytes;

use super::config::{Limits, Quirks};
use super::excess::Excess;
use super::message::{ClusterStats, Dropped, EndpointStats, Load, LocalityStats, Metric, add_drops, find_drops};
use super::place::{Counts, Place};
use crate::error::Misuse;
use crate::message::Locality;
use crate::name::ResourceName;
use crate::time::Instant;

/// The metrics that have fields of their own (R-LRS-28).
pub(super) const UTILIZATIONS: [&str; 3] = ["cpu_utilization", "mem_utilization", "application_utilization"];

/// The identity of an entry: a cluster, and the name of its service if that differs from the cluster's (R-LRS-17).
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) struct Key {
    pub(super) cluster: ResourceName,
    pub(super) service: ResourceName,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Counters {
    key: Arc<Key>,
    /// The number of handles that are not released.
    pub(super) references: u32,
    /// The beginning of the window: the last report, or when the entry was made or its cluster selected. Without a
    /// window only calls in progress are counted: loads of clusters that are not selected are not kept (R-LRS-11).
    pub(super) since: Option<Instant>,
    localities: Vec<AtLocality>,
    /// Dropped calls without a category.
    uncategorized: u64,
    drops: Vec<Dropped>,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct AtLocality {
    locality: Arc<Locality>,
    priority: u32,
    load: Load,
    endpoints: Vec<EndpointStats>,
}

impl AtLocality {
    fn new(locality: Arc<Locality>, priority: u32) -> Self {
        Self { locality, priority, load: Load::default(), endpoints: Vec::new() }
    }

    fn cmp(&self, locality: &Arc<Locality>, priority: u32) -> Ordering {
        let by_name = if Arc::ptr_eq(&self.locality, locality) {
            Ordering::Equal
        } else {
            let (one, other) = (&*self.locality, &**locality);
            (&one.region, &one.zone, &one.sub_zone).cmp(&(&other.region, &other.zone, &other.sub_zone))
        };
        by_name.then(self.priority.cmp(&priority))
    }
}

impl Counters {
    pub(super) fn new(key: Arc<Key>, since: Option<Instant>) -> Self {
        Self { key, references: 0, since, localities: Vec::new(), uncategorized: 0, drops: Vec::new() }
    }

    pub(super) fn key(&self) -> &Arc<Key> {
        &self.key
    }

    /// Checks that no more calls end than are in progress, at the locality and at the endpoint (R-LRS-20).
    pub(super) fn check(&self, place: &Place, counts: Counts) -> Result<(), Misuse> {
        let locality = self.find(&place.locality, place.priority).ok().and_then(|at| self.localities.get(at));
        let endpoint = |address: &Bytes| {
            let endpoints = &locality?.endpoints;
            Some(&endpoints[find_endpoint(endpoints, address).ok()?].load)
        };
        let holds = |load| progress(load, counts).is_some();
        let all = holds(locality.map(|at| &at.load)) && place.endpoint.as_ref().is_none_or(|at| holds(endpoint(at)));
        if all { Ok(()) } else { Err(Misuse::CallNotStarted { cluster: self.key.cluster.clone() }) }
    }

    /// Counts calls. A locality and its endpoint count the same calls.
    ///
    /// # Errors
    ///
    /// If more calls end than are in progress, or a limit is exceeded; then nothing is counted.
    pub(super) fn add(&mut self, place: &Place, counts: Counts, limits: &Limits) -> Result<(), Misuse> {
        self.check(place, counts)?;
        let at = self.place(place, limits)?;
        count(&mut self.localities[at].load, counts);
        if let Some(load) = self.endpoint(at, place) {
            count(load, counts);
        }
        if self.since.is_none() && self.localities[at].forget() {
            self.localities.remove(at);
        }
        Ok(())
    }

    /// Adds to a metric. Returns whether there is room for its name.
    ///
    /// # Errors
    ///
    /// If there is no room for the place.
    pub(super) fn add_metric(
        &mut self,
        place: &Place,
        name: &str,
        metric: Metric,
        limits: &Limits,
    ) -> Result<bool, Misuse> {
        if self.since.is_none() {
            return Ok(true);
        }
        let at = self.place(place, limits)?;
        let has_room =
            |load: &Load| load.metrics.len() < limits.metrics || load.metrics.iter().any(|known| known.name == name);
        if !has_room(&self.localities[at].load) {
            return Ok(false);
        }
        self.localities[at].load.add_metric(name, metric);
        if let Some(load) = self.endpoint(at, place).filter(|load| has_room(load)) {
            load.add_metric(name, metric);
        }
        Ok(true)
    }

    /// Counts dropped calls. A dropped call is not issued, and belongs to no locality (R-LRS-19).
    ///
    /// # Errors
    ///
    /// If there is no room for the category.
    pub(super) fn add_dropped(&mut self, category: &str, count: u64, limits: &Limits) -> Result<(), Misuse> {
        if self.since.is_none() {
            return Ok(());
        }
        if category.is_empty() {
            self.uncategorized = self.uncategorized.saturating_add(count);
        } else if count > 0 {
            if find_drops(&self.drops, category).is_err() && self.drops.len() >= limits.categories {
                return Err(Misuse::TooMuchLoad { what: Excess::Categories, limit: limits.categories });
            }
            add_drops(&mut self.drops, category, count);
        }
        Ok(())
    }

    /// Takes the counts since the last report, and begins a new window (R-LRS-12, R-LRS-14). Calls in progress stay. An
    /// idle locality is removed from the entry.
    pub(super) fn take(&mut self, now: Instant, endpoints: bool, quirks: Quirks) -> ClusterStats {
        let Key { cluster, service } = &*self.key;
        let mut stats = ClusterStats::new(cluster, service);
        let window = self.since.replace(now).map(|since| now.saturating_since(since));
        stats.window = window.filter(|window| !window.is_zero());
        // Drops by circuit breaking have no category, and are in the total alone (R-LRS-18).
        stats.drops = mem::take(&mut self.drops);
        stats.dropped = stats.categorized().saturating_add(mem::take(&mut self.uncategorized));
        self.localities.retain_mut(|at| {
            let is_idle = at.load.is_idle();
            // Calls in progress alone are reported too, and so are metrics alone (R-LRS-13).
            if !is_idle || quirks.idle_localities {
                stats.localities.push(at.take(endpoints, quirks.metrics_by_name));
            }
            !is_idle
        });
        stats
    }

    /// Discards all counts. Calls in progress stay.
    pub(super) fn forget(&mut self) {
        self.uncategorized = 0;
        self.drops.clear();
        self.localities.retain_mut(|at| !at.forget());
    }

    /// Takes back the counts of a report that was made at this time and not sent. Its window joins the current one.
    pub(super) fn give_back(&mut self, stats: ClusterStats, made: Instant) {
        let began = made.since_epoch().saturating_sub(stats.window.unwrap_or(Duration::ZERO));
        let began = Instant::from_epoch(began);
        self.since = Some(self.since.map_or(began, |since| since.min(began)));
        self.uncategorized = self.uncategorized.saturating_add(stats.dropped.saturating_sub(stats.categorized()));
        for Dropped { category, count } in stats.drops {
            add_drops(&mut self.drops, &category, count);
        }
        for stats in stats.localities {
            let at = self.find(&stats.locality, stats.priority).unwrap_or_else(|at| {
                self.localities.insert(at, AtLocality::new(stats.locality.clone(), stats.priority));
                at
            });
            self.localities[at].give_back(stats);
        }
    }

    /// Returns whether no calls are in progress.
    pub(super) fn is_drained(&self) -> bool {
        self.localities.iter().all(|at| at.load.in_progress == 0)
    }

    /// Returns whether nothing happened, and nothing is in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.uncategorized == 0 && self.drops.is_empty() && self.localities.iter().all(|at| at.load.is_idle())
    }

    fn find(&self, locality: &Arc<Locality>, priority: u32) -> Result<usize, usize> {
        self.localities.binary_search_by(|known| known.cmp(locality, priority))
    }

    /// Returns the position of the place's locality. A new locality is added, and so is a new endpoint.
    fn place(&mut self, place: &Place, limits: &Limits) -> Result<usize, Misuse> {
        let found = self.find(&place.locality, place.priority);
        let known = found.ok().map(|at| &self.localities[at].endpoints);
        if found.is_err() && self.localities.len() >= limits.localities {
            return Err(Misuse::TooMuchLoad { what: Excess::Localities, limit: limits.localities });
        }
        if let Some(address) = &place.endpoint {
            let is_known = known.is_some_and(|known| find_endpoint(known, address).is_ok());
            if !is_known && known.map_or(0, Vec::len) >= limits.endpoints {
                return Err(Misuse::TooMuchLoad { what: Excess::Endpoints, limit: limits.endpoints });
            }
        }
        let at = found.unwrap_or_else(|at| {
            insert(&mut self.localities, at, AtLocality::new(place.locality.clone(), place.priority));
            at
        });
        if let Some(address) = &place.endpoint {
            let endpoints = &mut self.localities[at].endpoints;
            if let Err(at) = find_endpoint(endpoints, address) {
                insert(endpoints, at, EndpointStats { address: address.clone(), load: Load::default() });
            }
        }
        Ok(at)
    }

    fn endpoint(&mut self, at: usize, place: &Place) -> Option<&mut Load> {
        let address = place.endpoint.as_ref()?;
        let endpoints = &mut self.localities[at].endpoints;
        let at = find_endpoint(endpoints, address).ok()?;
        Some(&mut endpoints[at].load)
    }
}

impl AtLocality {
    /// Discards all counts. Returns whether no call is in progress.
    fn forget(&mut self) -> bool {
        take_counts(&mut self.load);
        self.endpoints.retain_mut(|endpoint| {
            take_counts(&mut endpoint.load);
            endpoint.load.in_progress > 0
        });
        self.load.in_progress == 0
    }

    fn take(&mut self, endpoints: bool, metrics_by_name: bool) -> LocalityStats {
        let mut stats = LocalityStats {
            locality: self.locality.clone(),
            priority: self.priority,
            load: take_counts(&mut self.load),
            ..LocalityStats::default()
        };
        if !metrics_by_name {
            let mut own = |name| {
                let at = stats.load.metrics.iter().position(|known| known.name == name)?;
                Some(stats.load.metrics.remove(at).metric)
            };
            [stats.cpu, stats.mem, stats.application] = UTILIZATIONS.map(&mut own);
        }
        self.endpoints.retain_mut(|endpoint| {
            let is_idle = endpoint.load.is_idle();
            let load = take_counts(&mut endpoint.load);
            // R-LRS-29: an endpoint in which something is not zero is reported beside the sum of the locality.
            if endpoints && !is_idle {
                stats.endpoints.push(EndpointStats { address: endpoint.address.clone(), load });
            }
            !is_idle
        });
        stats
    }

    fn give_back(&mut self, stats: LocalityStats) {
        let own = UTILIZATIONS.into_iter().zip([stats.cpu, stats.mem, stats.application]);
        for (name, metric) in own.filter_map(|(name, metric)| Some((name, metric?))) {
            self.load.add_metric(name, metric);
        }
        give_back(&mut self.load, &stats.load);
        for EndpointStats { address, load } in stats.endpoints {
            let at = find_endpoint(&self.endpoints, &address).unwrap_or_else(|at| {
                self.endpoints.insert(at, EndpointStats { address, load: Load::default() });
                at
            });
            give_back(&mut self.endpoints[at].load, &load);
        }
    }
}

/// Finds an endpoint among those of a locality, which are in the order of their addresses.
fn find_endpoint(endpoints: &[EndpointStats], address: &Bytes) -> Result<usize, usize> {
    endpoints.binary_search_by(|known| known.address.cmp(address))
}

/// Returns the calls in progress after these counts, or `None` if more end than there are.
fn progress(load: Option<&Load>, counts: Counts) -> Option<u64> {
    let before = load.map_or(0, |load| load.in_progress);
    let ended = u128::from(counts.ok) + u128::from(counts.error);
    let left = (u128::from(before) + u128::from(counts.issued)).checked_sub(ended)?;
    Some(u64::try_from(left).unwrap_or(u64::MAX))
}

fn count(load: &mut Load, counts: Counts) {
    load.in_progress = progress(Some(load), counts).unwrap_or(0);
    let Counts { issued, ok, error } = counts;
    load.add_counts(&Load { issued, ok, error, ..Load::default() });
}

/// Takes everything but the gauge (R-LRS-12).
fn take_counts(load: &mut Load) -> Load {
    let in_progress = load.in_progress;
    mem::replace(load, Load { in_progress, ..Load::default() })
}

/// Gives back everything but the gauge, whose value is current.
fn give_back(load: &mut Load, taken: &Load) {
    load.add_counts(taken);
    for named in &taken.metrics {
        load.add_metric(&named.name, named.metric);
    }
}

/// Inserts an item, and reserves at most as much again as there is: most entries have one locality, and a vector would
/// reserve room for four.
fn insert<T>(items: &mut Vec<T>, at: usize, item: T) {
    if items.len() == items.capacity() {
        items.reserve_exact(items.len().max(1));
    }
    items.insert(at, item);
}

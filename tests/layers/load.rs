//! Load reports, rule by rule.

mod client;
mod hostile;
mod model;
mod server;

use std::time::Duration;

use xds_machine::Instant;
use xds_machine::load::{ClusterStats, Load, LocalityStats, Place};
use xds_machine::message::Locality;

/// Returns a moment, in milliseconds.
fn at(millis: u64) -> Instant {
    Instant::from_epoch(Duration::from_millis(millis))
}

fn zone(zone: &str) -> Place {
    Place::new(locality(zone))
}

fn locality(zone: &str) -> Locality {
    Locality { zone: zone.into(), ..Locality::default() }
}

/// Returns the stats of an entry, with a window in milliseconds.
fn stats(cluster: &str, window: u64, localities: Vec<LocalityStats>) -> ClusterStats {
    let window = Some(Duration::from_millis(window)).filter(|window| !window.is_zero());
    ClusterStats { window, localities, ..ClusterStats::new(cluster, "") }
}

/// Returns the stats of a locality: issued, ok, error, in progress.
fn of(name: &str, [issued, ok, error, in_progress]: [u64; 4]) -> LocalityStats {
    let load = Load { issued, ok, error, in_progress, metrics: Vec::new() };
    LocalityStats { locality: locality(name).into(), load, ..LocalityStats::default() }
}

//! A cluster with a TTL beside another one that warms for longer than that: its first health check takes its time.
//! Heartbeats go on, and nothing expires.

use std::time::{Duration, Instant};

use super::cast::Cast;
use super::checked::{Mute, cluster};
use crate::scenarios::CDS;
use crate::wait::{self, so};

/// How long Envoy is watched: beyond the health check, and twice the TTL.
const WATCHED: Duration = Duration::from_secs(30);
const TTL: &str = "12s";
/// The time of the first health check.
const SLOW: &str = "25s";

pub fn play(cast: &mut Cast) -> Result<(), String> {
    let mute = Mute::start()?;
    cast.shelf.put_for(cluster("brief", cast.backends[0], None), TTL)?;
    wait::until(|| has(cast, "brief"))?;
    cast.shelf.put([cluster("slow", mute.port, Some(SLOW))])?;
    cast.warms("slow")?;
    let (mark, begun) = (cast.control_plane.mark()?, Instant::now());
    wait::throughout(WATCHED, || has(cast, "brief"))
        .map_err(|error| format!("{error} after {:.1?}", begun.elapsed()))?;
    wait::until(|| has(cast, "slow"))?;
    let events = cast.control_plane.since(mark)?;
    let nack = events.iter().find(|event| event.is_any("nack"));
    so(nack.is_none(), || format!("{nack:?}"))?;
    // Without heartbeats there would have been no TTL.
    let beats = events.iter().filter(|event| event.is("send", CDS) && event.names("resources").contains(&"brief"));
    let beats = beats.count();
    so(beats > 1, || format!("{beats} heartbeats"))
}

/// Checks that Envoy has an active cluster.
fn has(cast: &Cast, cluster: &str) -> Result<(), String> {
    let (clusters, begin) = (cast.envoy.admin("/clusters")?, format!("{cluster}::"));
    so(clusters.lines().any(|line| line.starts_with(&begin)), || format!("Envoy has no {cluster}"))
}

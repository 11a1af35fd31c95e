//! An Envoy beside a cluster that never gets warm: its endpoints never come, or its first health check does not end.
//! Envoy answers a response of clusters when they are warm: it holds this answer, and every other change arrives all the
//! same.

use std::time::Duration;

use super::arrivals::{Arrivals, Sight};
use super::cast::Cast;
use super::checked::{Mute, cluster};
use crate::control_plane::count;
use crate::etcd::Op;
use crate::etcd::resources::{cluster_of, endpoints, listener, route};
use crate::scenarios::CDS;
use crate::wait::so;

/// The time between two changes: longer than the control plane waits for an answer.
const APART: Duration = Duration::from_millis(1500);
/// The time between the changes of a burst: shorter than that, and long enough that the control plane sees each change.
const CLOSE: Duration = Duration::from_millis(200);
/// The time of a health check that does not end within the test.
const LONG: &str = "3600s";

/// Plays the changes: within less than the 15 s after which Envoy, by default, does without endpoints.
pub fn play(cast: &mut Cast, delta: bool) -> Result<(), String> {
    let mute = Mute::start()?;
    // In delta the server reports endpoints that do not exist, and Envoy does not wait for them.
    let (slow, op) = if delta { ("slow", cluster("slow", mute.port, Some(LONG))) } else { ("c9", cluster_of(9, 1)) };
    cast.shelf.put([op])?;
    cast.warms(slow)?;
    let mark = cast.control_plane.mark()?;
    let mut arrivals = Arrivals::default();
    for (what, time, sight, ops) in changes(cast) {
        arrivals.made(what, sight, || cast.shelf.put(ops))?;
        arrivals.watch(time, &mut |place| cast.envoy.admin(place));
    }
    let result = arrivals.finish(&mut |place| cast.envoy.admin(place));
    // Envoy must have held its answer, or this shows nothing.
    let events = cast.control_plane.since(mark)?;
    so(result.is_err() || count(&events, "ack", CDS) == 0, || "Envoy has not waited".to_owned())?;
    so(events.iter().all(|event| !event.is_any("nack")), || "a NACK".to_owned())?;
    result?;
    cast.serve("b")
}

/// Returns the changes, each with the time before the next, and its effect at Envoy, which no other change has.
fn changes(cast: &Cast) -> [(&'static str, Duration, Sight, Vec<Op>); 9] {
    let (b, [first, second]) = (cast.backends[1], cast.ports);
    let with_cluster = |number| vec![cluster_of(number, 1), endpoints(number, b)];
    [
        ("cluster", APART, hosts(3, b), with_cluster(3)),
        ("route", APART, leads_to(3), vec![route(1, 3)]),
        ("listener", APART, counts_as("new"), vec![counting_as(1, first, "new")]),
        ("endpoints", APART, hosts(1, b), vec![endpoints(1, b)]),
        ("next cluster", CLOSE, hosts(4, b), with_cluster(4)),
        // This one has to wait for the answer to the one before, and the rest must not wait for long behind it.
        ("cluster after it", CLOSE, hosts(5, b), with_cluster(5)),
        ("next route", CLOSE, leads_to(4), vec![route(2, 4)]),
        ("next listener", CLOSE, counts_as("newer"), vec![counting_as(2, second, "newer")]),
        ("next endpoints", CLOSE, hosts(2, b), vec![endpoints(2, b)]),
    ]
}

/// Returns a put of a listener that has another prefix of statistics.
fn counting_as(number: u32, port: u16, prefix: &str) -> Op {
    let (key, content) = listener(number, Some(port));
    let (old, new) = (format!(r#""statPrefix":"l{number}""#), format!(r#""statPrefix":"{prefix}""#));
    (key, content.map(|content| content.replace(&old, &new)))
}

/// An active cluster has an endpoint.
fn hosts(cluster: u32, port: u16) -> Sight {
    ("/clusters", format!("c{cluster}::127.0.0.1:{port}::"))
}

/// The route leads to a cluster.
fn leads_to(cluster: u32) -> Sight {
    ("/config_dump?resource=dynamic_route_configs", format!(r#""cluster": "c{cluster}""#))
}

/// The active listener has a prefix of statistics.
fn counts_as(prefix: &str) -> Sight {
    ("/config_dump?resource=dynamic_listeners&mask=active_state", format!(r#""stat_prefix": "{prefix}""#))
}

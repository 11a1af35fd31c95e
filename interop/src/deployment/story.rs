//! The events of the deployment, with their times.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::Value;

use super::cast::{Cast, ENVOYS, REPLICAS};
use super::traffic::{Request, Traffic};
use crate::etcd::Op;
use crate::etcd::resources::{cluster_of, endpoints, key, route};
use crate::install::Installed;
use crate::wait::{self, so};

/// The time between two changes.
const PACE: Duration = Duration::from_millis(600);

/// The number of changes between two acts.
const ACT: u32 = 8;

/// All observations.
pub struct Told {
    pub begin: Timestamp,
    pub end: Timestamp,
    /// The requests through each Envoy.
    pub requests: Vec<Vec<Request>>,
    pub changes: Vec<Change>,
    pub acts: Vec<Act>,
    /// The events of streams of each replica.
    pub events: Vec<Vec<Seen>>,
}

/// A change in etcd.
pub struct Change {
    pub at: Timestamp,
    /// When etcd had the change.
    pub done: Timestamp,
    /// Whether it is a transaction: one makes a cluster, the next routes to it and removes the old one.
    pub is_transaction: bool,
}

/// A kill, or a restart.
pub struct Act {
    pub at: Timestamp,
    /// `replica-1` or `etcd-2`, for example.
    pub who: String,
    pub is_kill: bool,
}

/// An event of a stream in the log of a replica.
pub struct Seen {
    pub at: Timestamp,
    pub event: String,
    pub node: String,
    /// The resources that were sent.
    pub resources: usize,
}

struct Story {
    cast: Cast,
    changes: Vec<Change>,
    acts: Vec<Act>,
    /// The number of the cluster that has the traffic.
    cluster: u32,
}

pub fn play(installed: &Installed, etcd: PathBuf, dir: &Path) -> Result<Told, String> {
    let cast = Cast::start(installed, etcd, dir)?;
    for port in cast.ports {
        wait::until(|| crate::net::get(port, "/").and_then(|(status, body)| so(status == 200, || body)))?;
    }
    let mut story = Story { cast, changes: Vec::new(), acts: Vec::new(), cluster: 1 };
    let begin = Timestamp::now();
    let traffic = story.cast.ports.map(Traffic::start);
    story.changes(ACT)?;
    // The replica that configures the first Envoy.
    let with_stream =
        |replica: &usize| events(&dir.join(REPLICAS[*replica])).is_ok_and(|events| serves(&events, ENVOYS[0]));
    let replica = (0..2).find(with_stream).ok_or("no replica has the first Envoy")?;
    story.act(REPLICAS[replica].into(), true);
    story.cast.replicas[replica].stop();
    story.changes(ACT)?;
    story.act(REPLICAS[replica].into(), false);
    story.cast.replicas[replica].restart()?;
    story.changes(ACT)?;
    let leader = story.cast.members.settle()?;
    story.act(format!("etcd-{}", leader + 1), true);
    story.cast.members.kill(leader);
    story.changes(ACT)?;
    story.act(format!("etcd-{}", leader + 1), false);
    story.cast.members.restart(leader)?;
    story.changes(ACT)?;
    let requests = traffic.into_iter().map(Traffic::end).collect::<Result<_, _>>()?;
    let end = Timestamp::now();
    let events = REPLICAS.map(|name| events(&dir.join(name))).into_iter().collect::<Result<_, _>>()?;
    Ok(Told { begin, end, requests, changes: story.changes, acts: story.acts, events })
}

impl Story {
    fn act(&mut self, who: String, is_kill: bool) {
        self.acts.push(Act { at: Timestamp::now(), who, is_kill });
    }

    /// Makes changes at a steady pace: endpoints that move the traffic twice, a transaction that makes a cluster, and
    /// one that routes to it and removes the old one. (If one transaction made the cluster and routed to it, an Envoy
    /// would get the route some milliseconds before the endpoints, which it requests once it has the cluster.)
    fn changes(&mut self, count: u32) -> Result<(), String> {
        for number in 0..count {
            let (start, at) = (Instant::now(), Timestamp::now());
            let [a, b] = self.cast.backends;
            let ops = match number % 4 {
                0 => vec![endpoints(self.cluster, a)],
                1 => vec![endpoints(self.cluster, b)],
                2 => self.make(b),
                _ => self.switch(),
            };
            let is_transaction = ops.len() > 1;
            self.cast.members.change(&ops)?;
            self.changes.push(Change { at, done: Timestamp::now(), is_transaction });
            thread::sleep(PACE.saturating_sub(start.elapsed()));
        }
        Ok(())
    }

    fn make(&self, backend: u16) -> Vec<Op> {
        let new = self.cluster + 1;
        vec![cluster_of(new, 1), endpoints(new, backend)]
    }

    fn switch(&mut self) -> Vec<Op> {
        let old = self.cluster;
        self.cluster += 1;
        let gone = [format!("c{old}"), format!("e{old}")].map(|name| (key("_", &name), None));
        gone.into_iter().chain([route(1, self.cluster)]).collect()
    }
}

/// Returns whether a node has a stream at the end of the events.
fn serves(events: &[Seen], node: &str) -> bool {
    let last = events.iter().rev().find(|seen| seen.node == node);
    last.is_some_and(|seen| seen.event != "close")
}

/// Reads the events of streams of all lives of a replica.
fn events(dir: &Path) -> Result<Vec<Seen>, String> {
    let mut all = Vec::new();
    for life in 1.. {
        let Ok(log) = fs::read_to_string(dir.join(format!("control_plane.{life}.jsonl"))) else { break };
        for line in log.rsplit_once('\n').map_or("", |(whole, _)| whole).lines() {
            let event: Value = serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))?;
            let text = |key: &str| event[key].as_str().unwrap_or_default();
            if event["stream"].is_null() {
                continue;
            }
            all.push(Seen {
                at: text("ts").parse().map_err(|error| format!("{line}: {error}"))?,
                event: text("event").into(),
                node: text("node").into(),
                resources: event["resources"].as_array().map_or(0, Vec::len),
            });
        }
    }
    Ok(all)
}

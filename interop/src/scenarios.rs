//! The scenarios for each client whose traffic can be observed.

use std::time::{Duration, Instant};

use crate::control_plane::{ControlPlane, Event, count};
use crate::mesh::{Cluster, Mesh};
use crate::peer::Peer;
use crate::wait::{self, so};

pub struct Stage {
    pub control_plane: ControlPlane,
    pub mesh: Mesh,
    pub peer: Box<dyn Peer>,
    /// The ports of the backends `a` and `b`.
    pub backends: [u16; 2],
    pub delta: bool,
    /// Whether all types share one stream, which gives them an order.
    pub ads: bool,
}

pub type Scenario = (&'static str, fn(&mut Stage) -> Result<(), String>);

/// Each scenario starts where the one before it ended. The first starts with the services 1, 2 and 3, on backend `a`.
pub const ALL: [Scenario; 8] = [
    ("initial load", initial_load),
    ("endpoint change moves traffic", endpoint_change),
    ("cluster change, endpoints again", cluster_change),
    ("NACK: old traffic flows, no resend", invalid_cluster),
    ("return to what was accepted", fix),
    ("removal of cluster and listener", removal),
    ("restart of the control plane", restart),
    ("changes while it is away", changes_while_away),
];

pub const CDS: &str = ".Cluster";
pub const EDS: &str = ".ClusterLoadAssignment";
pub const LDS: &str = ".Listener";
pub const RDS: &str = ".RouteConfiguration";

/// The time after which a client gives up waiting for a resource.
const FETCH: Duration = Duration::from_secs(15);
/// The time during which nothing else may happen.
pub const QUIET: Duration = Duration::from_millis(1500);

fn initial_load(stage: &mut Stage) -> Result<(), String> {
    for service in 1..=3 {
        stage.reaches(service, "a")?;
    }
    stage.all_accepted(0)?;
    let events = stage.control_plane.events()?;
    for kind in [CDS, EDS, LDS, RDS] {
        so(count(&events, "send", kind) > 0, || format!("no response of {kind}"))?;
        so(count(&events, "subscribed", kind) > 0, || format!("nobody subscribed to {kind}"))?;
    }
    so(events.iter().all(|event| event.is_any("open") || event.text("node") == "interop"), || "no node".to_owned())
}

fn endpoint_change(stage: &mut Stage) -> Result<(), String> {
    let mark = stage.control_plane.mark()?;
    stage.mesh.service(1)?.backend = stage.backends[1];
    stage.mesh.write()?;
    stage.reaches(1, "b")?;
    stage.still_answers(2, "a")?;
    // The traffic may move before the control plane has logged what it sent.
    wait::until(|| {
        let events = stage.control_plane.since(mark)?;
        so(count(&events, "send", EDS) > 0, || "no response of endpoints".to_owned())
    })?;
    stage.all_accepted(mark)?;
    let events = stage.control_plane.since(mark)?;
    let sent: Vec<Vec<&str>> =
        events.iter().filter(|event| event.is_any("send")).map(|event| event.names("resources")).collect();
    so(sent == [["e1"]], || format!("sent {sent:?}, not just the endpoints that changed"))
}

/// A client may use the changed cluster, and acknowledge it, only once it has the cluster's endpoints.
fn cluster_change(stage: &mut Stage) -> Result<(), String> {
    let mark = stage.control_plane.mark()?;
    stage.mesh.service(1)?.timeout = 2;
    stage.mesh.write()?;
    let start = Instant::now();
    wait::until(|| {
        let events = stage.control_plane.since(mark)?;
        so(count(&events, "ack", CDS) == 1, || "no ACK of the cluster".to_owned())
    })?;
    // The client did not run into its time-out of 15 s.
    so(start.elapsed() < FETCH / 2, || format!("the ACK took {:?}", start.elapsed()))?;
    stage.all_accepted(mark)?;
    if stage.ads {
        let events = stage.control_plane.since(mark)?;
        let again = events.iter().filter(|event| event.is("send", EDS)).map(|event| event.names("resources"));
        let again: Vec<Vec<&str>> = again.collect();
        so(again == [["e1"]], || format!("sent the endpoints {again:?}, not just those of the cluster"))?;
    }
    stage.still_answers(1, "b")
}

fn invalid_cluster(stage: &mut Stage) -> Result<(), String> {
    let mark = stage.control_plane.mark()?;
    stage.mesh.service(1)?.cluster = Cluster::Invalid;
    stage.mesh.write()?;
    wait::until(|| {
        let events = stage.control_plane.since(mark)?;
        let nack = events.iter().find(|event| event.is("nack", CDS)).ok_or("no NACK of the cluster")?;
        so(nack.text("message").contains("c1"), || format!("the NACK doesn't say why: {nack:?}"))
    })?;
    wait::throughout(QUIET, || {
        stage.still_answers(1, "b")?;
        stage.still_answers(2, "a")
    })?;
    let events = stage.control_plane.since(mark)?;
    let (sent, rejected) = (count(&events, "send", CDS), count(&events, "nack", CDS));
    so((sent, rejected) == (1, 1), || format!("{sent} responses and {rejected} NACKs of the broken cluster"))
}

fn fix(stage: &mut Stage) -> Result<(), String> {
    let mark = stage.control_plane.mark()?;
    stage.mesh.service(1)?.cluster = Cluster::Good;
    stage.mesh.write()?;
    wait::until(|| {
        let events = stage.control_plane.since(mark)?;
        so(count(&events, "ack", CDS) == 1, || "no ACK of the cluster".to_owned())
    })?;
    stage.all_accepted(mark)?;
    stage.still_answers(1, "b")
}

fn removal(stage: &mut Stage) -> Result<(), String> {
    let mark = stage.control_plane.mark()?;
    stage.mesh.services.remove(&2);
    stage.mesh.write()?;
    wait::until(|| {
        stage.still_answers(1, "b")?;
        stage.peer.is_gone(2)
    })?;
    stage.all_accepted(mark)?;
    let events = stage.control_plane.since(mark)?;
    if stage.delta && stage.ads {
        let removed = |kind, name| {
            events.iter().position(|event| event.is("send", kind) && event.names("removed").contains(&name))
        };
        let (listener, cluster) = (removed(LDS, "l2"), removed(CDS, "c2"));
        let in_order = listener.is_some() && listener < cluster;
        so(in_order, || format!("removed the listener at {listener:?}, its cluster at {cluster:?}"))?;
    }
    stage.still_answers(1, "b")
}

fn restart(stage: &mut Stage) -> Result<(), String> {
    stage.control_plane.stop();
    wait::throughout(Duration::from_millis(300), || stage.still_answers(1, "b"))?;
    stage.control_plane.restart()?;
    back_again(&stage.control_plane)?;
    wait::throughout(QUIET, || {
        stage.still_answers(1, "b")?;
        stage.still_answers(3, "a")
    })?;
    stage.all_accepted(0)?;
    if stage.delta {
        let events = stage.control_plane.events()?;
        let again = events.iter().find(|event| event.is_any("send") && !event.names("resources").is_empty());
        so(again.is_none(), || format!("sent again, though nothing changed: {again:?}"))?;
    }
    Ok(())
}

fn changes_while_away(stage: &mut Stage) -> Result<(), String> {
    stage.control_plane.stop();
    stage.mesh.service(1)?.backend = stage.backends[0];
    stage.mesh.services.remove(&3);
    stage.mesh.write()?;
    stage.control_plane.restart()?;
    stage.reaches(1, "a")?;
    wait::until(|| stage.peer.is_gone(3))?;
    back_again(&stage.control_plane)?;
    stage.all_accepted(0)?;
    if stage.delta {
        let events = stage.control_plane.events()?;
        let sent: Vec<&str> = events.iter().flat_map(|event| event.names("resources")).collect();
        so(sent == ["e1"], || format!("sent {sent:?}, though only e1 changed"))?;
    }
    stage.still_answers(1, "a")
}

impl Stage {
    /// Waits until a backend serves the requests to a service.
    fn reaches(&mut self, service: u32, backend: &str) -> Result<(), String> {
        wait::until(|| self.still_answers(service, backend))
    }

    fn still_answers(&mut self, service: u32, backend: &str) -> Result<(), String> {
        let answer = self.peer.request(service).map_err(|error| format!("l{service}: {error}"))?;
        so(answer == backend, || format!("l{service} answers {answer}, not {backend}"))
    }

    fn all_accepted(&self, mark: usize) -> Result<(), String> {
        all_accepted(&self.control_plane, mark)
    }
}

/// Waits until every response is acknowledged, and checks that none was rejected. (A client may end a stream of one
/// resource without an ACK, once it has unsubscribed.)
pub fn all_accepted(control_plane: &ControlPlane, mark: usize) -> Result<(), String> {
    wait::until(|| {
        let events = control_plane.since(mark)?;
        let closed: Vec<u64> = events.iter().filter(|event| event.is_any("close")).map(Event::stream).collect();
        let open = |event: &&Event| !closed.contains(&event.stream());
        let count = |what| events.iter().filter(open).filter(|event| event.is_any(what)).count();
        so(count("nack") == 0, || "a NACK".to_owned())?;
        let (sent, accepted) = (count("send"), count("ack"));
        so(sent == accepted, || format!("{sent} responses, {accepted} ACKs"))
    })
}

/// Waits until every type is subscribed to after a restart.
pub fn back_again(control_plane: &ControlPlane) -> Result<(), String> {
    wait::until(|| {
        let events = control_plane.events()?;
        let missing = [CDS, EDS, LDS, RDS].into_iter().find(|kind| count(&events, "subscribed", kind) == 0);
        so(missing.is_none(), || format!("no subscription to {missing:?}"))
    })
}

//! gRPC clients with a channel whose cluster has no endpoints, beside another channel of the same client whose
//! resources change.

use std::path::Path;

use super::arrivals::Arrivals;
use super::shelf::Shelf;
use crate::control_plane::ControlPlane;
use crate::etcd::Op;
use crate::etcd::resources::{cluster_of, endpoints, listener, route, service};
use crate::grpc::{Beside, Grpc};
use crate::install::{self, Installed};
use crate::scenarios::EDS;
use crate::wait::{self, so};

/// The number of the service whose endpoints never come.
const NEVER: u32 = 9;

pub fn c_core(installed: &Installed, dir: &Path) -> Result<(), String> {
    let (control_plane, shelf) = start(installed, dir)?;
    let mut client = Grpc::start(&installed.python, &installed.sources, dir, control_plane.port())?;
    let backends = client.backends()?;
    play(&mut client, backends, &control_plane, shelf)
}

/// Plays with the packages of gRPC for JavaScript in a folder.
pub fn js(installed: &Installed, dir: &Path) -> Result<(), String> {
    let packages = install::grpc_js()?;
    let (control_plane, shelf) = start(installed, dir)?;
    let Installed { python, sources, .. } = installed;
    let Beside { mut client, mut backends } = Beside::js(&packages, python, sources, dir, control_plane.port())?;
    let ports = backends.backends()?;
    play(&mut client, ports, &control_plane, shelf)
}

fn start(installed: &Installed, dir: &Path) -> Result<(ControlPlane, Shelf), String> {
    let mut shelf = Shelf::new(dir, false);
    shelf.put([])?;
    Ok((ControlPlane::start(installed.programs.join("control_plane"), "spec", dir)?, shelf))
}

fn play(client: &mut Grpc, [a, b]: [u16; 2], control_plane: &ControlPlane, mut shelf: Shelf) -> Result<(), String> {
    let never = format!("e{NEVER}");
    let slow = service(NEVER, NEVER, a).into_iter().filter(|(key, _)| !key.ends_with(&never));
    shelf.put(service(1, 1, a).into_iter().chain(slow))?;
    wait::until(|| client.ask("rpc l1").and_then(|answer| so(answer == "a", || answer)))?;
    client.ask(&format!("connect l{NEVER}"))?;
    wait::until(|| {
        let events = control_plane.events()?;
        let asks = events.iter().any(|event| event.is("subscribed", EDS) && event.names("names").contains(&&*never));
        so(asks, || format!("no request for {never}"))
    })?;
    for (what, backend, ops) in changes(a, b) {
        let mut arrivals = Arrivals::default();
        arrivals.made(what, ("rpc l1", backend.to_owned()), || shelf.put(ops))?;
        arrivals.finish(&mut |call| client.ask(call))?;
    }
    let slow = client.ask(&format!("rpc l{NEVER}"));
    so(slow.is_err(), || format!("l{NEVER} answers {slow:?}"))
}

/// Returns changes, each with the backend that serves the calls afterwards.
fn changes(a: u16, b: u16) -> [(&'static str, &'static str, Vec<Op>); 4] {
    let (key, content) = listener(1, None);
    let to_new_route =
        (key, content.map(|content| content.replace(r#""routeConfigName":"r1""#, r#""routeConfigName":"r2""#)));
    [
        ("route to a new cluster", "b", vec![cluster_of(2, 1), endpoints(2, b), route(1, 2)]),
        ("endpoints", "a", vec![endpoints(2, a)]),
        ("cluster with other endpoints", "b", vec![cluster_of(3, 1), endpoints(3, b), route(1, 3)]),
        ("listener with another route", "a", vec![route(2, 2), to_new_route]),
    ]
}

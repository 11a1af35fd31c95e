//! Polls over REST, and files: an Envoy and `xds_client` that poll `control_plane`, and an Envoy that reads the files
//! that `control_plane` serves.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::control_plane::{ControlPlane, Event};
use crate::envoy::Envoy;
use crate::install::Installed;
use crate::mesh::{Cluster, Mesh, Scope, Service};
use crate::net;
use crate::peer::Peer;
use crate::process::Process;
use crate::scenarios::{CDS, EDS, LDS, QUIET, RDS};
use crate::wait::{self, so};
use crate::{Line, folder, report, xds_client};

/// The statistics of an Envoy's clusters from a server.
const CLUSTERS: &str = "cluster_manager.cds";

pub fn play(installed: &Installed, wanted: impl Fn(&str) -> bool, lines: &mut Vec<Line>) {
    if wanted("envoy-rest-spec") {
        let stage = folder(installed, "envoy-rest-spec").and_then(|dir| Stage::rest(installed, &dir));
        run(("Envoy 1.40.0", "rest"), stage, &REST, lines);
    }
    if wanted("envoy-files") {
        let stage = folder(installed, "envoy-files").and_then(|dir| Stage::files(installed, &dir));
        run(("Envoy 1.40.0", "files"), stage, &FILES, lines);
    }
    if wanted("xds_client-rest-spec") {
        let stage = folder(installed, "xds_client-rest-spec").and_then(|dir| Own::start(&installed.programs, &dir));
        run(("xds_client", "rest"), stage, &OWN, lines);
    }
}

/// A scenario of an Envoy or `xds_client`.
type Play<S> = (&'static str, fn(&mut S) -> Result<(), String>);

/// Plays the scenarios until one fails: each starts where the one before it ended.
fn run<S>(
    (peer, mode): (&'static str, &'static str),
    stage: Result<S, String>,
    plays: &[Play<S>],
    lines: &mut Vec<Line>,
) {
    let mut stage = stage;
    for &(scenario, play) in plays {
        let result = stage.as_mut().map_err(|error| error.clone()).and_then(play);
        let failed = result.is_err();
        report(Line { peer, mode, dialect: "spec", scenario, result }, lines);
        if failed {
            stage = Err("not tried".to_owned());
        }
    }
}

struct Stage {
    control_plane: ControlPlane,
    mesh: Mesh,
    envoy: Envoy,
    backends: [u16; 2],
    /// The version of the clusters before the broken one.
    good: String,
}

const REST: [Play<Stage>; 7] = [
    ("initial load", initial_load),
    ("long polls: 304, no failure", long_polls),
    ("endpoint change moves traffic", endpoint_change),
    ("rejection: old traffic flows", rejection),
    ("return to what was accepted", fix),
    ("removal of cluster and listener", removal),
    ("restart of the control plane", restart),
];

const FILES: [Play<Stage>; 3] = [
    ("initial load", files_load),
    ("endpoint change moves traffic", endpoint_change),
    ("rejection: old traffic flows", files_rejection),
];

impl Stage {
    fn rest(installed: &Installed, dir: &Path) -> Result<Self, String> {
        Self::start(installed, dir, Scope::Rest, "rest", 2)
    }

    /// Starts with one service, because an Envoy takes one resource of endpoints, or of routes, from a file.
    fn files(installed: &Installed, dir: &Path) -> Result<Self, String> {
        Self::start(installed, dir, Scope::Files, "files", 1)
    }

    fn start(installed: &Installed, dir: &Path, scope: Scope, mode: &str, services: u32) -> Result<Self, String> {
        let backends = [net::backend("a")?, net::backend("b")?];
        let mut mesh = Mesh::new(dir, scope);
        let mut ports = Vec::new();
        for number in 1..=services {
            let port = net::free_port()?;
            ports.push((number, port));
            mesh.services.insert(number, Service::new(Some(port), backends[0]));
        }
        mesh.write()?;
        let control_plane = ControlPlane::start(installed.programs.join("control_plane"), "spec", dir)?;
        let bootstrap = installed.sources.join("envoy").join(format!("{mode}.yaml"));
        let config = fs::read_to_string(&bootstrap).map_err(|error| format!("{}: {error}", bootstrap.display()))?;
        let bootstrap = dir.join("bootstrap.yaml");
        let config = config.replace("RESOURCES", &dir.join("resources").to_string_lossy());
        fs::write(&bootstrap, config).map_err(|error| error.to_string())?;
        let envoy = Envoy::start(&installed.envoy, &bootstrap, dir, control_plane.port(), ports)?;
        Ok(Self { control_plane, mesh, envoy, backends, good: String::new() })
    }

    fn reaches(&mut self, service: u32, backend: &str) -> Result<(), String> {
        wait::until(|| self.answers(service, backend))
    }

    fn answers(&mut self, service: u32, backend: &str) -> Result<(), String> {
        let answer = self.envoy.request(service).map_err(|error| format!("l{service}: {error}"))?;
        so(answer == backend, || format!("l{service} answers {answer}, not {backend}"))
    }

    /// Returns the answers to polls of a type since the first `mark`, each with the version of its request.
    fn polls(&self, kind: &str, mark: usize) -> Result<Vec<(u64, String)>, String> {
        let polls = self.control_plane.polls()?.into_iter().skip(mark);
        let polls = polls.filter(|event| event.is("poll", kind));
        Ok(polls.map(|event| (event.number("status"), event.text("version").to_owned())).collect())
    }

    fn mark(&self) -> Result<usize, String> {
        self.control_plane.polls().map(|polls| polls.len())
    }
}

fn initial_load(stage: &mut Stage) -> Result<(), String> {
    stage.reaches(1, "a")?;
    stage.reaches(2, "a")?;
    let polls = stage.control_plane.polls()?;
    for kind in [CDS, EDS, LDS, RDS] {
        let first = polls.iter().find(|event| event.is("poll", kind)).ok_or_else(|| format!("no poll of {kind}"))?;
        let (status, version) = (first.number("status"), first.text("version"));
        so((status, version) == (200, ""), || format!("the first poll of {kind}: {status}, version {version:?}"))?;
    }
    // An Envoy polls separately for the endpoints of each cluster.
    for name in ["e1", "e2"] {
        let own = |event: &Event| event.is("poll", EDS) && event.names("names") == [name];
        so(polls.iter().any(own), || format!("no poll of {name}"))?;
    }
    so(polls.iter().all(|event| event.text("node") == "interop"), || "no node".to_owned())
}

fn long_polls(stage: &mut Stage) -> Result<(), String> {
    let mark = stage.mark()?;
    let updates = stage.envoy.stat(&format!("{CLUSTERS}.update_success"))?;
    wait::until(|| {
        let polls = stage.polls(CDS, mark)?;
        so(polls.len() >= 2, || format!("{} polls of the clusters", polls.len()))
    })?;
    for kind in [CDS, EDS, LDS, RDS] {
        let polls = stage.polls(kind, mark)?;
        so(polls.iter().all(|(status, _)| *status == 304), || format!("nothing changed, and {kind}: {polls:?}"))?;
    }
    for (name, expected) in [("update_success", updates), ("update_failure", 0)] {
        let count = stage.envoy.stat(&format!("{CLUSTERS}.{name}"))?;
        so(count == expected, || format!("{name} is {count}, not {expected}"))?;
    }
    Ok(())
}

fn endpoint_change(stage: &mut Stage) -> Result<(), String> {
    stage.mesh.service(1)?.backend = stage.backends[1];
    stage.mesh.write()?;
    stage.reaches(1, "b")?;
    if stage.mesh.services.contains_key(&2) {
        stage.answers(2, "a")?;
    }
    Ok(())
}

/// Writes a cluster that Envoy rejects, and waits for the rejection.
fn break_a_cluster(stage: &mut Stage) -> Result<(), String> {
    stage.mesh.service(1)?.cluster = Cluster::Invalid;
    stage.mesh.write()?;
    wait::until(|| {
        let rejected = stage.envoy.stat(&format!("{CLUSTERS}.update_rejected"))?;
        so(rejected > 0, || "the broken cluster is not rejected".to_owned())
    })
}

fn rejection(stage: &mut Stage) -> Result<(), String> {
    stage.good = stage.polls(CDS, 0)?.pop().map(|(_, version)| version).unwrap_or_default();
    break_a_cluster(stage)?;
    let mark = stage.mark()?;
    wait::throughout(QUIET, || {
        stage.answers(1, "b")?;
        stage.answers(2, "a")
    })?;
    // An Envoy does not report a rejection: it polls with the same version again, and is answered with the same
    // content.
    let polls = stage.polls(CDS, mark)?;
    let again = (200, stage.good.clone());
    so(polls.len() >= 2 && polls.iter().all(|poll| *poll == again), || format!("{polls:?}, not each {again:?}"))
}

fn fix(stage: &mut Stage) -> Result<(), String> {
    stage.mesh.service(1)?.cluster = Cluster::Good;
    stage.mesh.write()?;
    let good = (304, stage.good.clone());
    wait::until(|| {
        let last = stage.polls(CDS, 0)?.pop();
        so(last.as_ref() == Some(&good), || format!("the last poll of the clusters: {last:?}, not {good:?}"))
    })?;
    stage.answers(1, "b")
}

fn removal(stage: &mut Stage) -> Result<(), String> {
    stage.mesh.services.remove(&2);
    stage.mesh.write()?;
    wait::until(|| {
        stage.answers(1, "b")?;
        stage.envoy.is_gone(2)
    })?;
    let mark = stage.mark()?;
    wait::throughout(QUIET * 2, || Ok(()))?;
    let polls = stage.control_plane.polls()?;
    let of_gone = polls.iter().skip(mark).find(|event| event.names("names") == ["e2"] && event.number("status") != 304);
    so(of_gone.is_none(), || format!("e2 is polled for: {of_gone:?}"))
}

fn restart(stage: &mut Stage) -> Result<(), String> {
    stage.control_plane.stop();
    wait::throughout(Duration::from_millis(300), || stage.answers(1, "b"))?;
    stage.control_plane.restart()?;
    wait::until(|| {
        for kind in [CDS, EDS, LDS, RDS] {
            let polls = stage.polls(kind, 0)?;
            // Versions are hashes of content, so they are the same after a restart.
            so(polls.iter().any(|(status, _)| *status == 304), || format!("{kind}: {polls:?}"))?;
            so(polls.iter().all(|(status, _)| *status != 200), || format!("sent again: {kind}: {polls:?}"))?;
        }
        Ok(())
    })?;
    stage.mesh.service(1)?.backend = stage.backends[0];
    stage.mesh.write()?;
    stage.reaches(1, "a")
}

fn files_load(stage: &mut Stage) -> Result<(), String> {
    stage.reaches(1, "a")?;
    let count = stage.envoy.stat(&format!("{CLUSTERS}.update_success"))?;
    so(count > 0, || "no update of the clusters".to_owned())
}

fn files_rejection(stage: &mut Stage) -> Result<(), String> {
    break_a_cluster(stage)?;
    wait::throughout(QUIET, || stage.answers(1, "b"))
}

/// An `xds_client` that polls.
struct Own {
    control_plane: ControlPlane,
    mesh: Mesh,
    log: PathBuf,
    _process: Process,
}

const OWN: [Play<Own>; 6] = [
    ("initial load", own_load),
    ("endpoint change", own_change),
    ("what can't be written takes nothing else", own_broken),
    ("return to what was accepted", own_fix),
    ("removal of cluster and endpoints", own_removal),
    ("restart of the control plane", own_restart),
];

impl Own {
    fn start(programs: &Path, dir: &Path) -> Result<Self, String> {
        let mesh = xds_client::mesh(dir)?;
        let control_plane = ControlPlane::start(programs.join("control_plane"), "spec", dir)?;
        let (server, log) = (format!("http://127.0.0.1:{}", control_plane.port()), dir.join("xds_client.jsonl"));
        let mut arguments = vec!["--server", &server, "--variant", "rest", "--node", "interop", "--for", "300"];
        arguments.extend(["--refresh", "200ms", "--request-timeout", "2s"]);
        for types in ["cds", "lds", "eds=e1,e2,e3", "rds=r1,r2,r3"] {
            arguments.extend(["--subscribe", types]);
        }
        let process = Process::start(&programs.join("xds_client"), &arguments, &log, &dir.join("xds_client.err"))?;
        Ok(Self { control_plane, mesh, log, _process: process })
    }

    fn lines(&self, event: &str) -> Result<Vec<Value>, String> {
        let log = fs::read_to_string(&self.log).map_err(|error| error.to_string())?;
        let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let parse = |line| serde_json::from_str::<Value>(line).map_err(|error| format!("{line}: {error}"));
        let lines: Vec<Value> = whole.lines().map(parse).collect::<Result<_, _>>()?;
        Ok(lines.into_iter().filter_map(|line| line.get(event).cloned()).collect())
    }

    /// Returns the sizes of the resources that the client holds, by name.
    fn held(&self) -> Result<BTreeMap<String, u64>, String> {
        let mut held = BTreeMap::new();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for apply in self.lines("apply")? {
            for resource in apply["resources"].as_array().into_iter().flatten() {
                held.insert(text(&resource["name"]), resource["size"].as_u64().unwrap_or_default());
            }
            for name in apply["removed"].as_array().into_iter().flatten() {
                held.remove(&text(name));
            }
        }
        Ok(held)
    }
}

fn own_load(own: &mut Own) -> Result<(), String> {
    wait::until(|| {
        let held = own.held()?.len();
        so(held == 12, || format!("{held} of 12 resources"))
    })?;
    let open = own.lines("open")?.len();
    so(open == 1, || format!("{open} times open"))
}

fn own_change(own: &mut Own) -> Result<(), String> {
    let before = own.held()?;
    own.mesh.service(1)?.backend = 300;
    own.mesh.write()?;
    wait::until(|| so(own.held()?.get("e1") != before.get("e1"), || "e1 is as it was".to_owned()))?;
    let applied = own.lines("apply")?.pop().unwrap_or_default();
    so(applied["type_url"].as_str().is_some_and(|of| of.ends_with(EDS)), || format!("applied last: {applied}"))
}

/// A cluster that can't be decoded can't be written as JSON: polls are answered without it, and it takes no other with
/// it.
fn own_broken(own: &mut Own) -> Result<(), String> {
    let before = own.held()?;
    own.mesh.service(1)?.cluster = Cluster::Malformed;
    own.mesh.services.insert(4, Service::new(None, 1));
    own.mesh.write()?;
    wait::until(|| {
        let held = own.held()?;
        so(held.contains_key("c4") && held.contains_key("l4"), || "c4 or l4 is not applied".to_owned())
    })?;
    wait::throughout(QUIET, || Ok(()))?;
    let held = own.held()?;
    let lost: Vec<&String> = before.keys().filter(|name| !held.contains_key(*name)).collect();
    so(lost == ["c1"], || format!("lost {lost:?}"))
}

fn own_fix(own: &mut Own) -> Result<(), String> {
    own.mesh.service(1)?.cluster = Cluster::Good;
    own.mesh.write()?;
    wait::until(|| so(own.held()?.contains_key("c1"), || "c1 is not applied".to_owned()))
}

fn own_removal(own: &mut Own) -> Result<(), String> {
    own.mesh.services.remove(&2);
    own.mesh.write()?;
    wait::until(|| {
        let held = own.held()?;
        let left: Vec<&String> = held.keys().filter(|name| name.ends_with('2')).collect();
        so(left.is_empty(), || format!("{left:?} are still held"))
    })?;
    let missing = own.lines("missing")?;
    let names: Vec<&str> = missing.iter().filter_map(|missing| missing["name"].as_str()).collect();
    so(names.contains(&"e2") && names.contains(&"r2") && names.len() == 2, || format!("missing: {names:?}"))
}

fn own_restart(own: &mut Own) -> Result<(), String> {
    own.control_plane.stop();
    wait::until(|| so(own.lines("close")?.len() == 1, || "the client does not say that nobody answers".to_owned()))?;
    let applied = own.lines("apply")?.len();
    own.control_plane.restart()?;
    wait::until(|| so(own.lines("open")?.len() == 2, || "the client does not say that it is answered".to_owned()))?;
    wait::throughout(QUIET, || Ok(()))?;
    let again = own.lines("apply")?.split_off(applied);
    so(again.is_empty(), || format!("applied again, though nothing changed: {again:?}"))
}

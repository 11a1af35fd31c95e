//! `xds_client`, the crate's own client.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::control_plane::{ControlPlane, count};
use crate::mesh::{Cluster, Mesh, Scope, Service};
use crate::process::Process;
use crate::scenarios::{CDS, EDS, LDS, QUIET, RDS, all_accepted, back_again};
use crate::wait::{self, so};
use crate::{Line, report};

struct Stage {
    control_plane: ControlPlane,
    mesh: Mesh,
    log: PathBuf,
    delta: bool,
    /// The resources that the client held when it was last up to date.
    had: Held,
    _process: Process,
}

/// Versions, by the end of the type URL and the name.
type Held = BTreeMap<(&'static str, String), String>;

type Scenario = (&'static str, fn(&mut Stage) -> Result<(), String>);

const ALL: [Scenario; 7] = [
    ("initial load", initial_load),
    ("endpoint change", endpoint_change),
    ("NACK: the rest applies, no resend", malformed_cluster),
    ("return to what was accepted", fix),
    ("removal of cluster and listener", removal),
    ("restart of the control plane", restart),
    ("changes while it is away", changes_while_away),
];

/// Plays all scenarios with a variant.
pub fn play(programs: &Path, dir: &Path, variant: &str, dialect: &'static str, lines: &mut Vec<Line>) {
    let mut stage = start(programs, dir, variant, dialect);
    let mode = if variant == "delta" { "ads-delta" } else { "ads-sotw" };
    for (scenario, play) in ALL {
        let result = stage.as_mut().map_err(|error| error.clone()).and_then(play);
        let failed = result.is_err();
        report(Line { peer: "xds_client", mode, dialect, scenario, result }, lines);
        if failed {
            stage = Err("not tried".to_owned());
        }
    }
}

/// Writes a mesh of three services, of 12 resources altogether.
pub fn mesh(dir: &Path) -> Result<Mesh, String> {
    let mut mesh = Mesh::new(dir, Scope::Ads);
    for number in 1..=3 {
        mesh.services.insert(number, Service::new(None, 1));
    }
    mesh.write()?;
    Ok(mesh)
}

fn start(programs: &Path, dir: &Path, variant: &str, dialect: &str) -> Result<Stage, String> {
    let mesh = mesh(dir)?;
    let control_plane = ControlPlane::start(programs.join("control_plane"), "spec", dir)?;
    let (server, log) = (format!("http://127.0.0.1:{}", control_plane.port()), dir.join("xds_client.jsonl"));
    let mut arguments = vec!["--server", &server, "--variant", variant, "--node", "interop", "--for", "300"];
    arguments.extend(["--dialect", dialect]);
    for types in ["cds", "lds", "eds=e1,e2,e3", "rds=r1,r2,r3"] {
        arguments.extend(["--subscribe", types]);
    }
    let process = Process::start(&programs.join("xds_client"), &arguments, &log, &dir.join("xds_client.err"))?;
    Ok(Stage { control_plane, mesh, log, delta: variant == "delta", had: Held::new(), _process: process })
}

fn initial_load(stage: &mut Stage) -> Result<(), String> {
    wait::until(|| {
        let held = stage.held()?.len();
        so(held == 12, || format!("{held} of 12 resources"))
    })?;
    stage.settle(0)
}

fn endpoint_change(stage: &mut Stage) -> Result<(), String> {
    stage.mesh.service(1)?.backend = 300;
    stage.expect(&[(EDS, "e1")])
}

/// The broken cluster is rejected, and the one sent with it is applied.
fn malformed_cluster(stage: &mut Stage) -> Result<(), String> {
    let mark = stage.control_plane.mark()?;
    stage.mesh.service(1)?.cluster = Cluster::Malformed;
    stage.mesh.services.insert(4, Service::new(None, 1));
    stage.mesh.write()?;
    wait::until(|| {
        let events = stage.control_plane.since(mark)?;
        let nack = events.iter().find(|event| event.is("nack", CDS)).ok_or("no NACK of the cluster")?;
        so(nack.text("message").contains("c1"), || format!("the NACK doesn't name it: {nack:?}"))
    })?;
    stage.expect_held(&[(CDS, "c4"), (LDS, "l4")])?;
    wait::throughout(QUIET, || Ok(()))?;
    stage.expect_held(&[(CDS, "c4"), (LDS, "l4")])?;
    let events = stage.control_plane.since(mark)?;
    let (sent, rejected) = (count(&events, "send", CDS), count(&events, "nack", CDS));
    so((sent, rejected) == (1, 1), || format!("{sent} responses and {rejected} NACKs of the broken cluster"))?;
    stage.had = stage.held()?;
    Ok(())
}

fn fix(stage: &mut Stage) -> Result<(), String> {
    let mark = stage.control_plane.mark()?;
    stage.mesh.service(1)?.cluster = Cluster::Good;
    stage.mesh.write()?;
    wait::until(|| {
        let events = stage.control_plane.since(mark)?;
        so(count(&events, "ack", CDS) == 1, || "no ACK of the cluster".to_owned())
    })?;
    stage.expect_held(&[])?;
    stage.settle(mark)
}

fn removal(stage: &mut Stage) -> Result<(), String> {
    stage.mesh.services.remove(&2);
    // In SotW the absence of a route or of endpoints is no removal.
    let partial: &[_] = if stage.delta { &[(EDS, "e2"), (RDS, "r2")] } else { &[] };
    stage.expect(&[[(CDS, "c2"), (LDS, "l2")].as_slice(), partial].concat())
}

fn restart(stage: &mut Stage) -> Result<(), String> {
    stage.control_plane.stop();
    wait::until(|| {
        let closed = stage.lines()?.iter().any(|line| line["close"].is_object());
        so(closed, || "the client doesn't say that the stream is gone".to_owned())
    })?;
    let applied = stage.applied()?.len();
    stage.control_plane.restart()?;
    back_again(&stage.control_plane)?;
    stage.settle(0)?;
    wait::throughout(QUIET, || stage.expect_held(&[]))?;
    if stage.delta {
        let events = stage.control_plane.events()?;
        let again = events.iter().find(|event| event.is_any("send") && !event.names("resources").is_empty());
        so(again.is_none(), || format!("sent again, though nothing changed: {again:?}"))?;
        let again = stage.applied()?.split_off(applied);
        so(again.is_empty(), || format!("applied again, though nothing changed: {again:?}"))?;
    }
    Ok(())
}

fn changes_while_away(stage: &mut Stage) -> Result<(), String> {
    stage.control_plane.stop();
    stage.mesh.service(1)?.backend = 20_000;
    stage.mesh.services.remove(&3);
    stage.mesh.write()?;
    stage.control_plane.restart()?;
    let partial: &[_] = if stage.delta { &[(EDS, "e3"), (RDS, "r3")] } else { &[] };
    stage.expect_held(&[[(EDS, "e1"), (CDS, "c3"), (LDS, "l3")].as_slice(), partial].concat())?;
    back_again(&stage.control_plane)?;
    stage.settle(0)
}

impl Stage {
    /// Changes the files, and waits until exactly these resources have changed at the client.
    fn expect(&mut self, changed: &[(&str, &str)]) -> Result<(), String> {
        let mark = self.control_plane.mark()?;
        self.mesh.write()?;
        self.expect_held(changed)?;
        self.settle(mark)
    }

    /// Waits until exactly these resources differ from the recorded ones: changed, added or removed.
    fn expect_held(&self, changed: &[(&str, &str)]) -> Result<(), String> {
        let mut changed: Vec<(&str, String)> = changed.iter().map(|(kind, name)| (*kind, (*name).into())).collect();
        changed.sort();
        wait::until(|| {
            let held = self.held()?;
            let keys = self.had.keys().chain(held.keys().filter(|key| !self.had.contains_key(*key)));
            let mut found: Vec<(&str, String)> =
                keys.filter(|key| self.had.get(*key) != held.get(*key)).cloned().collect();
            found.sort();
            so(found == changed, || format!("changed: {found:?}, not {changed:?}"))
        })
    }

    /// Waits until all responses are accepted, and records the resources that the client holds.
    fn settle(&mut self, mark: usize) -> Result<(), String> {
        all_accepted(&self.control_plane, mark)?;
        self.had = self.held()?;
        Ok(())
    }

    fn lines(&self) -> Result<Vec<Value>, String> {
        let log = fs::read_to_string(&self.log).map_err(|error| error.to_string())?;
        let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(|line| serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))).collect()
    }

    /// Returns the applied updates, in order.
    fn applied(&self) -> Result<Vec<Value>, String> {
        let lines = self.lines()?.into_iter();
        Ok(lines.map(|mut line| line["apply"].take()).filter(Value::is_object).collect())
    }

    fn held(&self) -> Result<Held, String> {
        let mut held = Held::new();
        for apply in self.applied()? {
            let type_url = text(&apply["type_url"]);
            let kinds = [CDS, EDS, LDS, RDS];
            let kind = kinds.into_iter().find(|kind| type_url.ends_with(kind)).ok_or("another type")?;
            for resource in apply["resources"].as_array().into_iter().flatten() {
                // In SotW the version describes all resources together. The size stands in for it, because ports of
                // other lengths change the size.
                let version = if self.delta { text(&resource["version"]) } else { resource["size"].to_string() };
                held.insert((kind, text(&resource["name"])), version);
            }
            for name in apply["removed"].as_array().into_iter().flatten() {
                held.remove(&(kind, text(name)));
            }
        }
        Ok(held)
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

//! Tests real clients, and `xds_client`, against `control_plane`: `cargo xtask interop [PART OF A MODE'S NAME]`.

mod control_plane;
mod csds;
mod deployment;
mod envoy;
mod etcd;
mod grpc;
mod install;
mod loads;
mod mesh;
mod net;
mod oracle;
mod peer;
mod process;
mod rest;
mod scenarios;
mod wait;
mod warming;
mod xds_client;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use control_plane::ControlPlane;
use envoy::Envoy;
use grpc::{Beside, Grpc};
use install::Installed;
use mesh::{Mesh, Scope, Service};
use scenarios::Stage;

/// The result of one run: a line of the table.
pub struct Line {
    pub peer: &'static str,
    pub mode: &'static str,
    /// The dialect that this crate's side uses.
    pub dialect: &'static str,
    pub scenario: &'static str,
    pub result: Result<(), String>,
}

impl Line {
    /// Returns the result in words.
    fn said(&self) -> String {
        let Self { peer, mode, dialect, scenario, result } = self;
        let result = result.as_ref().map_or_else(|error| format!("FAILED: {error}"), |()| "ok".into());
        format!("{peer}, {mode}, {dialect}: {scenario}: {result}")
    }
}

/// Envoy's modes, each with a bootstrap in `envoy/`, and the dialect of the control plane.
const ENVOY: [(&str, Scope, bool, &str); 10] = [
    ("ads-sotw", Scope::Ads, false, "spec"),
    ("ads-sotw-unified", Scope::Ads, false, "spec"),
    ("ads-delta", Scope::Ads, true, "spec"),
    ("ads-delta-unified", Scope::Ads, true, "spec"),
    ("sotw", Scope::Each("GRPC"), false, "spec"),
    ("delta", Scope::Each("DELTA_GRPC"), true, "spec"),
    ("ads-sotw", Scope::Ads, false, "istio"),
    ("ads-delta", Scope::Ads, true, "istio"),
    ("ads-sotw", Scope::Ads, false, "go-control-plane"),
    ("ads-delta", Scope::Ads, true, "go-control-plane"),
];

/// The control plane's dialects in the tests with gRPC.
const GRPC: [&str; 3] = ["spec", "istio", "go-control-plane"];

/// The dialects of `xds_client`.
const OWN: [&str; 4] = ["spec", "envoy", "grpc", "istio"];

fn main() -> ExitCode {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let start = Instant::now();
    let lines = match run(&filter) {
        Ok(lines) => lines,
        Err(error) => {
            eprintln!("interop: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!("\n{:20} {:18} {:18} {:38} ok", "peer", "mode", "dialect", "scenario");
    for Line { peer, mode, dialect, scenario, result } in &lines {
        println!("{peer:20} {mode:18} {dialect:18} {scenario:38} {}", if result.is_ok() { "yes" } else { "NO" });
    }
    // The failures are printed once more, at the end of a long log.
    let failed: Vec<&Line> = lines.iter().filter(|line| line.result.is_err()).collect();
    failed.iter().for_each(|line| println!("{}", line.said()));
    println!("{} of {} in {:.0?}", lines.len() - failed.len(), lines.len(), start.elapsed());
    if failed.is_empty() && (!lines.is_empty() || filter.contains("oracle-")) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn run(filter: &str) -> Result<Vec<Line>, String> {
    if filter == "oracle-record" {
        return oracle::record(&install::python()?).map(|()| vec![]);
    }
    if let Some(seed) = filter.strip_prefix("oracle-from-") {
        let seed = seed.parse().map_err(|_| format!("{seed} is no number"))?;
        return oracle::play_from(&install::python()?, seed).map(|()| vec![]);
    }
    let installed = install::install()?;
    let wanted = |run: &str| run.contains(filter);
    let mut lines = Vec::new();
    for (mode, scope, delta, dialect) in ENVOY {
        let run = format!("envoy-{mode}-{dialect}");
        if wanted(&run) {
            let dir = folder(&installed, &run)?;
            let stage = with_envoy(&installed, &dir, mode, scope, delta, dialect);
            play(("Envoy 1.40.0", mode, dialect), stage, &mut lines);
        }
    }
    for dialect in GRPC {
        let run = format!("grpc-ads-sotw-{dialect}");
        if wanted(&run) {
            let stage = with_grpc(&installed, &folder(&installed, &run)?, dialect);
            play(("gRPC C-core 1.85.1", "ads-sotw", dialect), stage, &mut lines);
        }
    }
    for dialect in GRPC {
        let run = format!("tower-ads-sotw-{dialect}");
        if wanted(&run) {
            let stage = with_tower(&installed, &folder(&installed, &run)?, dialect);
            play(("tower channel", "ads-sotw", dialect), stage, &mut lines);
        }
    }
    for (variant, dialect) in ["sotw", "delta"].into_iter().flat_map(|variant| OWN.map(|dialect| (variant, dialect))) {
        let run = format!("xds_client-ads-{variant}-{dialect}");
        if wanted(&run) {
            let dir = folder(&installed, &run)?;
            xds_client::play(&installed.programs, &dir, variant, dialect, &mut lines);
        }
    }
    if wanted("oracle") {
        oracle::play(&installed.python, &mut lines);
    }
    if wanted("csds") {
        csds::play(&installed, &folder(&installed, "csds")?, &mut lines);
    }
    for reporter in loads::Kind::ALL {
        let run = format!("loads-{}", reporter.name());
        if wanted(&run) {
            loads::play(&installed, &folder(&installed, &run)?, reporter, &mut lines);
        }
    }
    rest::play(&installed, wanted, &mut lines);
    warming::play(&installed, wanted, &mut lines);
    if wanted("deployment") {
        deployment::play(&installed, &folder(&installed, "deployment")?, filter == "deployment", &mut lines);
    }
    if wanted("etcd") {
        etcd::play(&installed, &folder(&installed, "etcd")?, &mut lines);
    }
    Ok(lines)
}

/// Returns an empty folder for the files of a run.
pub fn folder(installed: &Installed, run: &str) -> Result<PathBuf, String> {
    let dir = installed.logs.join(run);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    Ok(dir)
}

fn with_envoy(
    installed: &Installed,
    dir: &Path,
    mode: &str,
    scope: Scope,
    delta: bool,
    dialect: &'static str,
) -> Result<Stage, String> {
    let backends = [net::backend("a")?, net::backend("b")?];
    let mut mesh = Mesh::new(dir, scope);
    let mut ports = Vec::new();
    for number in 1..=3 {
        let port = net::free_port()?;
        ports.push((number, port));
        mesh.services.insert(number, Service::new(Some(port), backends[0]));
    }
    mesh.write()?;
    let control_plane = ControlPlane::start(installed.programs.join("control_plane"), dialect, dir)?;
    let bootstrap = installed.sources.join("envoy").join(format!("{mode}.yaml"));
    let peer = Box::new(Envoy::start(&installed.envoy, &bootstrap, dir, control_plane.port(), ports)?);
    Ok(Stage { control_plane, mesh, peer, backends, delta, ads: scope == Scope::Ads })
}

fn with_grpc(installed: &Installed, dir: &Path, dialect: &'static str) -> Result<Stage, String> {
    let (mesh, control_plane) = for_grpc(installed, dir, dialect)?;
    let mut peer = Grpc::start(&installed.python, &installed.sources, dir, control_plane.port())?;
    let backends = peer.backends()?;
    staged(mesh, control_plane, Box::new(peer), backends)
}

fn with_tower(installed: &Installed, dir: &Path, dialect: &'static str) -> Result<Stage, String> {
    let (mesh, control_plane) = for_grpc(installed, dir, dialect)?;
    let Installed { programs, python, sources, .. } = installed;
    let mut peer = Beside::tower(programs, python, sources, dir, control_plane.port())?;
    let backends = peer.backends.backends()?;
    staged(mesh, control_plane, Box::new(peer), backends)
}

fn for_grpc(installed: &Installed, dir: &Path, dialect: &'static str) -> Result<(Mesh, ControlPlane), String> {
    let mut mesh = Mesh::new(dir, Scope::Ads);
    mesh.write()?;
    Ok((mesh, ControlPlane::start(installed.programs.join("control_plane"), dialect, dir)?))
}

fn staged(
    mut mesh: Mesh,
    control_plane: ControlPlane,
    peer: Box<dyn peer::Peer>,
    backends: [u16; 2],
) -> Result<Stage, String> {
    for number in 1..=3 {
        mesh.services.insert(number, Service::new(None, backends[0]));
    }
    mesh.write()?;
    Ok(Stage { control_plane, mesh, peer, backends, delta: false, ads: true })
}

/// Plays the scenarios until one fails: each starts where the one before it ended.
fn play(run: (&'static str, &'static str, &'static str), stage: Result<Stage, String>, lines: &mut Vec<Line>) {
    let ((peer, mode, dialect), mut stage) = (run, stage);
    for (scenario, play) in scenarios::ALL {
        let result = match &mut stage {
            Ok(stage) => play(stage),
            Err(error) => Err(error.clone()),
        };
        report(Line { peer, mode, dialect, scenario, result: result.clone() }, lines);
        if result.is_err() {
            stage = Err("not tried".to_owned());
        }
    }
}

/// Prints a result at once, and keeps it for the table.
pub fn report(line: Line, lines: &mut Vec<Line>) {
    println!("{}", line.said());
    lines.push(line);
}

//! Real clients against `control_plane`, and `xds_client` against it: `cargo xtask interop [PART OF A MODE'S NAME]`.

mod control_plane;
mod envoy;
mod grpc;
mod install;
mod mesh;
mod net;
mod peer;
mod process;
mod scenarios;
mod wait;
mod xds_client;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use control_plane::ControlPlane;
use envoy::Envoy;
use grpc::Grpc;
use install::Installed;
use mesh::{Mesh, Scope, Service};
use scenarios::Stage;

/// What one run of the table said.
pub struct Line {
    pub peer: &'static str,
    pub mode: &'static str,
    pub scenario: &'static str,
    pub result: Result<(), String>,
}

/// Envoy's modes, each with a bootstrap in `envoy/`.
const ENVOY: [(&str, Scope, bool); 6] = [
    ("ads-sotw", Scope::Ads, false),
    ("ads-sotw-unified", Scope::Ads, false),
    ("ads-delta", Scope::Ads, true),
    ("ads-delta-unified", Scope::Ads, true),
    ("sotw", Scope::Each("GRPC"), false),
    ("delta", Scope::Each("DELTA_GRPC"), true),
];

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
    println!("\n{:20} {:18} {:38} ok", "peer", "mode", "scenario");
    for Line { peer, mode, scenario, result } in &lines {
        println!("{peer:20} {mode:18} {scenario:38} {}", if result.is_ok() { "yes" } else { "NO" });
    }
    let failed = lines.iter().filter(|line| line.result.is_err()).count();
    println!("{} of {} in {:.0?}", lines.len() - failed, lines.len(), start.elapsed());
    if failed == 0 && !lines.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(filter: &str) -> Result<Vec<Line>, String> {
    let installed = install::install()?;
    let wanted = |peer: &str, mode: &str| format!("{peer} {mode}").contains(filter);
    let mut lines = Vec::new();
    for (mode, scope, delta) in ENVOY.into_iter().filter(|(mode, ..)| wanted("envoy", mode)) {
        let stage = folder(&installed, "envoy", mode).and_then(|dir| with_envoy(&installed, &dir, mode, scope, delta));
        play("Envoy 1.40.0", mode, stage, &mut lines);
    }
    if wanted("grpc", "ads-sotw") {
        let stage = folder(&installed, "grpc", "ads-sotw").and_then(|dir| with_grpc(&installed, &dir));
        play("gRPC C-core 1.85.1", "ads-sotw", stage, &mut lines);
    }
    for variant in ["sotw", "delta"].into_iter().filter(|variant| wanted("xds_client ads", variant)) {
        let dir = folder(&installed, "xds_client", variant)?;
        xds_client::play(&installed.programs, &dir, variant, &mut lines);
    }
    Ok(lines)
}

/// An empty folder for all that a run leaves behind.
fn folder(installed: &Installed, peer: &str, mode: &str) -> Result<PathBuf, String> {
    let dir = installed.logs.join(format!("{peer}-{mode}"));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    Ok(dir)
}

fn with_envoy(installed: &Installed, dir: &Path, mode: &str, scope: Scope, delta: bool) -> Result<Stage, String> {
    let backends = [net::backend("a")?, net::backend("b")?];
    let mut mesh = Mesh::new(dir, scope);
    let mut ports = Vec::new();
    for number in 1..=3 {
        let port = net::free_port()?;
        ports.push((number, port));
        mesh.services.insert(number, Service::new(Some(port), backends[0]));
    }
    mesh.write()?;
    let control_plane = ControlPlane::start(installed.programs.join("control_plane"), dir)?;
    let bootstrap = installed.sources.join("envoy").join(format!("{mode}.yaml"));
    let peer = Box::new(Envoy::start(&installed.envoy, &bootstrap, dir, control_plane.port(), ports)?);
    Ok(Stage { control_plane, mesh, peer, backends, delta, ads: scope == Scope::Ads })
}

fn with_grpc(installed: &Installed, dir: &Path) -> Result<Stage, String> {
    let mut mesh = Mesh::new(dir, Scope::Ads);
    mesh.write()?;
    let control_plane = ControlPlane::start(installed.programs.join("control_plane"), dir)?;
    let mut peer = Box::new(Grpc::start(&installed.python, &installed.sources, dir, control_plane.port())?);
    let backends = peer.backends()?;
    for number in 1..=3 {
        mesh.services.insert(number, Service::new(None, backends[0]));
    }
    mesh.write()?;
    Ok(Stage { control_plane, mesh, peer, backends, delta: false, ads: true })
}

/// Plays all scenarios, until one fails: those after it start where it should have ended.
fn play(peer: &'static str, mode: &'static str, stage: Result<Stage, String>, lines: &mut Vec<Line>) {
    let mut stage = stage;
    for (scenario, play) in scenarios::ALL {
        let result = match &mut stage {
            Ok(stage) => play(stage),
            Err(error) => Err(error.clone()),
        };
        report(Line { peer, mode, scenario, result: result.clone() }, lines);
        if result.is_err() {
            stage = Err("not tried".to_owned());
        }
    }
}

/// Says how it went, now, and keeps it for the table.
pub fn report(line: Line, lines: &mut Vec<Line>) {
    let Line { peer, mode, scenario, result } = &line;
    match result {
        Ok(()) => println!("{peer}, {mode}: {scenario}: ok"),
        Err(error) => println!("{peer}, {mode}: {scenario}: FAILED: {error}"),
    }
    lines.push(line);
}

//! Load reports: real clients, and `xds_client`, report to `control_plane`, and the sums are the calls that were made.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::control_plane::ControlPlane;
use crate::envoy::Envoy;
use crate::grpc::Grpc;
use crate::install::Installed;
use crate::mesh::{Mesh, Scope, Service};
use crate::peer::Peer;
use crate::wait::{self, so};
use crate::{Line, csds, net, report};

/// A client that reports.
#[derive(Clone, Copy, Eq, PartialEq)]
pub enum Kind {
    Envoy,
    Grpc,
    Own,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Envoy, Self::Grpc, Self::Own];

    pub fn name(self) -> &'static str {
        match self {
            Self::Envoy => "envoy",
            Self::Grpc => "grpc",
            Self::Own => "xds_client",
        }
    }

    fn peer(self) -> &'static str {
        match self {
            Self::Envoy => "Envoy 1.40.0",
            Self::Grpc => "gRPC C-core 1.85.1",
            Self::Own => "xds_client",
        }
    }
}

/// `xds_client --load-report`, which receives a line for each call.
struct Own(Child, Option<ChildStdin>);

impl Own {
    fn start(program: &Path, dir: &Path, xds: u16, dialect: &str) -> Result<Self, String> {
        let (out, err) = (dir.join("xds_client.jsonl"), dir.join("xds_client.err"));
        let mut command = Command::new(program);
        command.args(["--server", &format!("http://127.0.0.1:{xds}"), "--variant", "sotw", "--subscribe", "cds"]);
        command.args(["--node", "interop", "--dialect", dialect, "--load-report", "--for", "300"]);
        let file = |path| std::fs::File::create(path).map_err(|error| error.to_string());
        command.stdin(Stdio::piped()).stdout(file(out)?).stderr(file(err)?);
        let mut child = command.spawn().map_err(|error| format!("can't start xds_client: {error}"))?;
        let input = child.stdin.take();
        Ok(Self(child, input))
    }

    fn say(&mut self, line: &str) -> Result<(), String> {
        let input = self.1.as_mut().ok_or("no input")?;
        writeln!(input, "{line}").map_err(|error| error.to_string())
    }
}

impl Peer for Own {
    fn request(&mut self, service: u32) -> Result<String, String> {
        self.say(&format!("call c{service} r/z/ ok")).map(|()| "a".to_owned())
    }

    fn is_gone(&mut self, _: u32) -> Result<(), String> {
        Ok(())
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Stage {
    kind: Kind,
    control_plane: ControlPlane,
    peer: Box<dyn Peer>,
    /// The number of calls to c1, those before a restart of the control plane included.
    made: u64,
    /// The number of calls that were reported before the last restart of the control plane.
    told: u64,
    begun: Instant,
    mesh: Mesh,
}

type Scenario = (&'static str, fn(&mut Stage) -> Result<(), String>);

const ALL: [Scenario; 4] = [
    ("sums equal to the calls made", sums),
    ("windows add up to the time", windows),
    ("calls while the server is away", away),
    ("one report in each interval", intervals),
];

/// Plays the scenarios until one fails.
pub fn play(installed: &Installed, dir: &Path, kind: Kind, lines: &mut Vec<Line>) {
    let mut stage = start(installed, dir, kind);
    for (scenario, play) in ALL {
        let result = stage.as_mut().map_err(|error| error.clone()).and_then(play);
        let failed = result.is_err();
        report(Line { peer: kind.peer(), mode: "loads", dialect: "spec", scenario, result }, lines);
        if failed {
            stage = Err("not tried".to_owned());
        }
    }
    if kind == Kind::Grpc {
        let result = same_as_grpc(installed, dir);
        report(Line { peer: "xds_client", mode: "loads", dialect: "grpc", scenario: "as C-core", result }, lines);
        let result = metrics(installed, dir);
        report(
            Line { peer: "xds_client", mode: "loads", dialect: "grpc", scenario: "metrics as C-core", result },
            lines,
        );
    }
}

fn start(installed: &Installed, dir: &Path, kind: Kind) -> Result<Stage, String> {
    let mut mesh = Mesh::new(dir, Scope::Ads);
    mesh.lrs = kind == Kind::Grpc;
    mesh.write()?;
    let program = installed.programs.join("control_plane");
    let control_plane = ControlPlane::start_with(program, "spec", dir, &["--load-interval", "1s"])?;
    let port = control_plane.port();
    let begun = Instant::now();
    let peer: Box<dyn Peer> = match kind {
        Kind::Envoy => {
            let (listener, backend) = (net::free_port()?, net::backend("a")?);
            mesh.services.insert(1, Service::new(Some(listener), backend));
            let bootstrap = installed.sources.join("envoy/loads.yaml");
            Box::new(Envoy::start(&installed.envoy, &bootstrap, dir, port, vec![(1, listener)])?)
        }
        Kind::Grpc => {
            let mut grpc = Grpc::start(&installed.python, &installed.sources, dir, port)?;
            mesh.services.insert(1, Service::new(None, grpc.backends()?[0]));
            Box::new(grpc)
        }
        Kind::Own => {
            mesh.services.insert(1, Service::new(None, 1));
            Box::new(Own::start(&installed.programs.join("xds_client"), dir, port, "spec")?)
        }
    };
    mesh.write()?;
    Ok(Stage { kind, control_plane, peer, made: 0, told: 0, begun, mesh })
}

/// Makes calls until one succeeds and is reported, and then 20 more.
fn sums(stage: &mut Stage) -> Result<(), String> {
    if stage.kind != Kind::Own {
        wait::until(|| stage.call())?;
    }
    // Envoy does not report the calls that it counted before the server asked, or in the period in which the cluster
    // was added; nor does `xds_client`. From the first report of the cluster on, every call is counted.
    if stage.kind == Kind::Own {
        wait::until(|| {
            stage.call()?;
            stage.reported().map(drop)
        })?;
    }
    let before = wait::until(|| stage.reported())?;
    if stage.kind == Kind::Grpc {
        return settle(stage); // C-core counts from its first call on
    }
    std::thread::sleep(Duration::from_millis(1500)); // the next report has all calls so far
    let told = stage.reported()?.max(before);
    (stage.made, stage.told) = (told, 0);
    settle(stage)
}

fn settle(stage: &mut Stage) -> Result<(), String> {
    for _ in 0..20 {
        stage.call()?;
    }
    stage.all_told()
}

fn windows(stage: &mut Stage) -> Result<(), String> {
    let rows = stage.rows()?;
    let sum: u64 = rows.iter().filter_map(|row| row["interval_ms"].as_u64()).sum();
    let all = u64::try_from(stage.begun.elapsed().as_millis()).map_err(|error| error.to_string())?;
    // The first window begins, and the last one ends, within the time that passed.
    so(sum <= all && sum + 4000 >= all, || format!("windows of {sum} ms in {all} ms"))
}

fn away(stage: &mut Stage) -> Result<(), String> {
    stage.told += stage.reported()?;
    stage.control_plane.stop();
    for _ in 0..7 {
        stage.call()?;
    }
    stage.control_plane.restart()?;
    wait::until(|| stage.reported())?;
    for _ in 0..3 {
        stage.call()?;
    }
    stage.all_told()
}

fn intervals(stage: &mut Stage) -> Result<(), String> {
    let before = stage.rows()?.len();
    for _ in 0..6 {
        stage.call()?; // C-core sends no report without calls
        std::thread::sleep(Duration::from_millis(500));
    }
    let more = stage.rows()?.len() - before;
    so((2..=4).contains(&more), || format!("{more} reports in 3 s"))?;
    stage.all_told()
}

/// The outcome of a call.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Call {
    Succeeded,
    Failed,
    Dropped,
}

/// The sums of the reports: issued, succeeded and failed calls of each locality, and all dropped calls.
type Sums = (BTreeMap<String, [u64; 3]>, u64);

/// Sums are equal, locality by locality, to those of `xds_client` in C-core's dialect for the same calls: calls that
/// succeed, calls that the server fails, and calls that are dropped by a category.
fn same_as_grpc(installed: &Installed, dir: &Path) -> Result<(), String> {
    let (theirs, ours) = (dir.join("theirs"), dir.join("ours"));
    let create = |dir: &Path| std::fs::create_dir_all(dir).map_err(|error| error.to_string());
    create(&theirs)?;
    create(&ours)?;

    let mut stage = start(installed, &theirs, Kind::Grpc)?;
    let mut grpc = Grpc::start(&installed.python, &installed.sources, &theirs, stage.control_plane.port())?;
    stage.mesh.services.insert(1, Service::new(None, grpc.backends()?[0]));
    stage.mesh.write()?;
    wait::until(|| grpc.ask("rpc l1"))?;
    let mut calls = vec![Call::Succeeded];
    calls.extend((0..9).map(|_| grpc.ask("rpc l1").map(|_| Call::Succeeded)).collect::<Result<Vec<_>, _>>()?);
    for _ in 0..5 {
        let answer = grpc.ask("fail l1");
        let expected = Err("error StatusCode.INTERNAL as asked".to_owned());
        so(answer == expected, || format!("a call that fails: {answer:?}"))?;
        calls.push(Call::Failed);
    }
    stage.mesh.drops = true;
    stage.mesh.write()?;
    wait::until(|| {
        calls.push(if grpc.ask("rpc l1").is_ok() { Call::Succeeded } else { Call::Dropped });
        so(calls.last() == Some(&Call::Dropped), || "no call is dropped".to_owned())
    })?;
    for _ in 0..6 {
        let answer = grpc.ask("rpc l1");
        so(answer.is_err(), || format!("a call that is dropped: {answer:?}"))?;
        calls.push(Call::Dropped);
    }
    let theirs = stage.sums_of(&calls)?;

    let stage = start(installed, &ours, Kind::Own)?;
    let program = installed.programs.join("xds_client");
    let mut client = Own::start(&program, &ours, stage.control_plane.port(), "grpc")?;
    for call in &calls {
        client.say(match call {
            Call::Succeeded => "call c1 r/z/ ok",
            Call::Failed => "call c1 r/z/ error",
            Call::Dropped => "drop c1 all",
        })?;
    }
    let ours = stage.sums_of(&calls)?;
    so(theirs == ours, || format!("C-core says {theirs:?}, and xds_client {ours:?}"))
}

/// The metrics of calls, summed: `loads.py`. The events of `control_plane` have none, so a server of the script's own
/// collects them.
fn metrics(installed: &Installed, dir: &Path) -> Result<(), String> {
    let mut command = Command::new(&installed.python);
    command.arg("-B").arg(installed.sources.join("loads.py")); // no byte code beside the sources
    command.arg(installed.programs.join("xds_client")).arg(dir);
    csds::finish(command, dir, "metrics")
}

impl Stage {
    fn call(&mut self) -> Result<(), String> {
        self.peer.request(1).map_err(|error| format!("a call: {error}"))?;
        self.made += 1;
        Ok(())
    }

    /// Returns the rows of c1 since the last start of the control plane.
    fn rows(&self) -> Result<Vec<Value>, String> {
        let events = self.control_plane.events()?;
        let loads = events.iter().filter(|event| event.is_any("load"));
        Ok(loads.filter_map(|event| event.load("c1").cloned()).collect())
    }

    /// Returns how many calls were reported since the last start of the control plane.
    fn reported(&self) -> Result<u64, String> {
        let rows = self.rows()?;
        so(!rows.is_empty(), || "no report of c1".to_owned())?;
        Ok(rows.iter().filter_map(|row| row["ok"].as_u64()).sum())
    }

    /// Waits until all of these calls are reported, and returns the sums.
    fn sums_of(&self, calls: &[Call]) -> Result<Sums, String> {
        let sums = || {
            let (mut sums, mut dropped) = Sums::default();
            for row in self.rows()? {
                dropped += row["dropped"].as_u64().unwrap_or_default();
                for at in row["localities"].as_array().into_iter().flatten() {
                    let name = format!("{}/{}/{}/{}", at["region"], at["zone"], at["sub_zone"], at["priority"]);
                    let sum = sums.entry(name).or_default();
                    for (sum, field) in sum.iter_mut().zip(["issued", "ok", "error"]) {
                        *sum += at[field].as_u64().unwrap_or_default();
                    }
                }
            }
            let told = dropped + sums.values().map(|[_, ok, error]| ok + error).sum::<u64>();
            so(told >= calls.len() as u64, || format!("{told} calls are reported, {} were made", calls.len()))?;
            Ok((sums, dropped))
        };
        wait::until(sums)?;
        std::thread::sleep(Duration::from_millis(1200)); // none is reported twice
        sums()
    }

    /// Waits until every call is reported, and checks that none is reported twice.
    fn all_told(&self) -> Result<(), String> {
        let check = || {
            let told = self.told + self.reported()?;
            so(told == self.made, || format!("{told} calls are reported, {} were made", self.made))
        };
        wait::until(check)?;
        std::thread::sleep(Duration::from_millis(1200));
        check()
    }
}

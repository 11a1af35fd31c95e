//! The rows E1 to E7 and their limits.

use std::collections::HashMap;

use prost::Message;
use xds_machine::server::Resource;

use super::Variant;
use super::generator::Fleet;
use super::process::{Kind, Process};
use super::wire::nothing;
use crate::data::{cache, clusters};
use crate::figures::{Check, Figure};
use crate::floor::{Decode, DecodeAnd};
use crate::measure::{Row, median, median_time};

const KIB: f64 = 1024.0;

/// A server and its clients.
#[derive(Clone, Copy)]
struct Scene {
    variant: Variant,
    n: usize,
    streams: usize,
    connections: usize,
}

/// The cost of a phase for the server.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    /// Processor time in nanoseconds.
    cpu: f64,
    /// The growth of the resident set at its peak, in bytes a stream.
    peak: f64,
}

pub(super) fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, work)
}

impl Scene {
    fn delta(n: usize, streams: usize) -> Self {
        Self { variant: Variant::Delta, n, streams, connections: streams }
    }

    fn start(self, kind: Kind) -> Process {
        Process::start(kind, self.variant, self.n)
    }

    /// Opens the streams, and waits until all are up to date.
    async fn open(self, process: &Process) -> (Fleet, Cost) {
        let (before, cpu) = (process.resident(), process.quiet().await);
        let fleet =
            Fleet::open(process.port, self.connections, self.streams, self.variant, &nothing(self.variant)).await;
        assert_eq!(fleet.responses().await, self.n * self.streams, "each stream gets all resources once");
        let cpu = (process.quiet().await - cpu) as f64;
        (fleet, Cost { cpu, peak: (process.peak() - before) / self.streams as f64 })
    }

    /// Returns the median of the processor times of changes.
    async fn changes(self, process: &mut Process, fleet: &Fleet, times: usize) -> f64 {
        let mut costs = Vec::new();
        let resources = if self.variant == Variant::Sotw { self.n } else { 1 };
        for _ in 0..times {
            let before = process.quiet().await;
            process.step();
            assert_eq!(fleet.responses().await, resources * self.streams);
            costs.push((process.quiet().await - before) as f64);
        }
        median(&mut costs)
    }

    fn row(self, workload: &'static str, changed: usize) -> Row {
        Row::new(workload, self.n, self.streams, changed)
    }
}

/// Fills in processor times.
pub(super) fn timed(row: Row, ours: f64, bare: f64) -> Row {
    Row { ns: ours, floor_ns: bare, ratio: ours / bare, ..row }
}

/// Measures a first sync in a new process.
async fn first_sync(kind: Kind, scene: Scene) -> Cost {
    let process = scene.start(kind);
    let (fleet, cost) = scene.open(&process).await;
    fleet.close().await;
    cost
}

const E1: (usize, usize) = (10_000, 200);
const E2: (usize, usize) = (100_000, 50);

/// First sync: the growth of the resident set at its peak.
fn peak(workload: &'static str, (n, streams): (usize, usize), limit: f64) -> Figure {
    let scene = Scene::delta(n, streams);
    let [ours, bare] = run(async { [first_sync(Kind::Ours, scene).await, first_sync(Kind::Bare, scene).await] });
    let row = timed(scene.row(workload, 0), ours.cpu, bare.cpu);
    let check = Check::most(format!("{workload}: KiB a stream at the peak"), ours.peak / KIB, limit);
    ([Row { bytes: ours.peak, ..row }].into(), [check].into())
}

pub fn e1() -> Figure {
    peak("E1", E1, 80.0)
}

pub fn e2() -> Figure {
    peak("E2", E2, 320.0)
}

/// First sync: processor time.
pub fn e3() -> Figure {
    let figure = |(n, streams)| {
        let scene = Scene::delta(n, streams);
        let [ours, bare] = run(async {
            let mut costs = [Vec::new(), Vec::new()];
            for _ in 0..5 {
                costs[0].push(first_sync(Kind::Ours, scene).await.cpu);
                costs[1].push(first_sync(Kind::Bare, scene).await.cpu);
            }
            costs.map(|mut costs| median(&mut costs))
        });
        let row = timed(scene.row("E3", 0), ours, bare);
        let check = Check::most(format!("E3: first sync of {n}: of the bare server's processor time"), row.ratio, 1.3);
        (row, check)
    };
    [E1, E2].map(figure).into_iter().unzip()
}

/// A change that all streams get.
fn change(workload: &'static str, scene: Scene, times: usize, limit: f64) -> Figure {
    let [ours, bare] = [Kind::Ours, Kind::Bare].map(|kind| {
        run(async {
            let mut process = scene.start(kind);
            let (fleet, _) = scene.open(&process).await;
            let cost = scene.changes(&mut process, &fleet, times).await;
            fleet.close().await;
            cost
        })
    });
    let row = timed(scene.row(workload, 1), ours, bare);
    let check = Check::most(format!("{workload}: of the bare server's processor time"), row.ratio, limit);
    ([row].into(), [check].into())
}

pub fn e4() -> Figure {
    change("E4", Scene { connections: 16, ..Scene::delta(100_000, 1000) }, 21, 1.5)
}

/// Returns the bytes of an idle stream, after some changes.
async fn idle(kind: Kind, scene: Scene) -> f64 {
    let mut process = scene.start(kind);
    let before = process.resident();
    let (fleet, _) = scene.open(&process).await;
    scene.changes(&mut process, &fleet, 3).await;
    let bytes = (process.resident() - before) / scene.streams as f64;
    fleet.close().await;
    bytes
}

/// Idle streams: the resident set, the median of three processes each.
pub fn e5() -> Figure {
    let scene = Scene::delta(1, 2000);
    let kinds = [Kind::Ours, Kind::Bare, Kind::Tonic];
    let mut bytes = kinds.map(|_| Vec::new());
    for _ in 0..3 {
        kinds.iter().zip(&mut bytes).for_each(|(&kind, bytes)| bytes.push(run(idle(kind, scene))));
    }
    let [ours, bare, tonic] = bytes.map(|mut bytes| median(&mut bytes));
    let row = Row { bytes: ours, ratio: ours / bare, ..scene.row("E5", 0) };
    let checks = [
        Check::most("E5: an idle stream, of the bare server's resident set", row.ratio, 1.15),
        Check::most("E5: the same, of the bare server's behind tonic", ours / tonic, 1.15),
        Check::most("E5: KiB of an idle stream", ours / KIB, 40.0),
    ];
    ([row].into(), checks.into())
}

/// A request as prost's generated code has it, with its default map.
#[derive(Clone, PartialEq, Message)]
struct Request {
    #[prost(string, tag = "2")]
    type_url: String,
    #[prost(map = "string, string", tag = "5")]
    initial_resource_versions: HashMap<String, String>,
}

/// Streams of clients that reconnect.
pub fn e6() -> Figure {
    let scene = Scene::delta(10_000, 1000);
    let stored = cache(&clusters(), scene.n);
    let version = |resource: &Resource| {
        let is_stale = resource.name().as_str() == crate::data::name(0);
        let (name, version) = name_and_version(resource);
        (name, if is_stale { "0".into() } else { version })
    };
    let initial_resource_versions = stored.resources(&clusters()).map(version).collect();
    let request = Request { type_url: clusters().to_string(), initial_resource_versions };
    let prost = median_time(51, &mut Decode::new(&request)) * scene.streams as f64;
    // Any server that answers compares each version with that of the resource.
    let store: HashMap<String, String> = stored.resources(&clusters()).map(name_and_version).collect();
    let compare = |request: Request| {
        let is_stale = |(name, version): &(String, String)| store.get(name) != Some(version);
        request.initial_resource_versions.into_iter().filter(is_stale).count()
    };
    let comparing = median_time(51, &mut DecodeAnd::new(&request, compare)) * scene.streams as f64;
    let request = request.encode_to_vec().into();
    let measure = |kind| {
        run(async {
            let mut process = scene.start(kind);
            let (fleet, _) = scene.open(&process).await;
            scene.changes(&mut process, &fleet, 1).await; // the bare server sends the last change
            fleet.close().await;
            let (first, _) = scene.open(&process).await;
            let before = process.resident();
            first.close().await;
            let cpu = process.quiet().await;
            let fleet = Fleet::open(process.port, scene.connections, scene.streams, scene.variant, &request).await;
            assert_eq!(fleet.responses().await, scene.streams, "each stream gets one resource");
            let cpu = (process.quiet().await - cpu) as f64;
            let after = process.resident();
            fleet.close().await;
            (cpu, before, after)
        })
    };
    let [(ours, before, after), (bare, bare_before, bare_after)] = [Kind::Ours, Kind::Bare].map(measure);
    let rows = [
        Row { bytes: after, ..timed(scene.row("E6", 1), ours, 1.2 * bare + 0.6 * prost) },
        timed(scene.row("E6 with comparing", 1), ours, bare + comparing),
    ];
    let checks = [
        Check::most("E6: of 1.2 x bare + 0.6 x prost", rows[0].ratio, 1.0),
        Check::most("E6: of bare, prost decoding, and a look-up of each name", rows[1].ratio, 1.0),
        Check::most("E6: resident set, of that before", after / before, 1.05),
        // The bare server drops the requests piece by piece.
        Check::most("E6: the same, of the same for bare", after / before / (bare_after / bare_before), 1.05),
    ];
    (rows.into(), checks.into())
}

fn name_and_version(resource: &Resource) -> (String, String) {
    (resource.name().to_string(), resource.version().to_string())
}

/// One of 10,000 resources changes, in SotW.
pub fn e7() -> Figure {
    change("E7", Scene { variant: Variant::Sotw, ..Scene::delta(10_000, 1000) }, 5, 1.3)
}

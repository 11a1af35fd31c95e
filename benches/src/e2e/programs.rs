//! E8, the control plane of the examples, and E9, the client.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use prost::Message as _;

use super::Variant;
use super::figures::{run, timed};
use super::generator::Fleet;
use super::process::{Kind, Process};
use super::wire::nothing;
use crate::data::{body, cache, clusters, delta_response, name};
use crate::figures::{Check, Figure};
use crate::floor::{Any, Decode, DecodeAnd, DeltaResponse, Resource, SotwResponse};
use crate::measure::{Row, median, median_time};

/// A folder that is removed in the end.
struct Folder(PathBuf);

impl Folder {
    /// Makes a folder with a file for each of N clusters.
    fn new(n: usize) -> std::io::Result<Self> {
        let folder = Self(std::env::temp_dir().join(format!("xds-machine-e8-{}", std::process::id())));
        fs::create_dir_all(folder.served())?;
        (0..n).try_for_each(|i| write(&folder.served(), i, 0).map(drop))?;
        Ok(folder)
    }

    fn served(&self) -> PathBuf {
        self.0.join("served")
    }

    /// Moves a changed file into place.
    fn change(&self, i: usize, round: u8) -> std::io::Result<()> {
        let file = write(&self.0, i, round)?;
        fs::rename(&file, self.served().join(file.file_name().unwrap_or_default()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

fn write(folder: &Path, i: usize, round: u8) -> std::io::Result<PathBuf> {
    let (name, type_url) = (name(i), clusters().to_string());
    let file = folder.join(format!("{name}.pb"));
    let resources = vec![Any { type_url: type_url.clone(), value: body(&name, round) }];
    fs::write(&file, SotwResponse { resources, type_url, ..SotwResponse::default() }.encode_to_vec())?;
    Ok(file)
}

/// The control plane of the examples.
struct Program {
    child: Child,
    port: u16,
}

impl Program {
    /// Starts the program that was built beside this one.
    fn start(folder: &Path) -> Self {
        let program = std::env::current_exe().expect("a program has a path").with_file_name("control_plane");
        let mut command = Command::new(program);
        command.args(["--listen", "127.0.0.1:0", "--log", "json", "--resources"]).arg(folder);
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("control_plane was built: cargo build --release -p examples");
        let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let mut lines = lines.map_while(Result::ok);
        let port = lines.find_map(|line| line.strip_prefix("listening on ")?.rsplit(':').next()?.parse().ok());
        std::thread::spawn(move || lines.for_each(drop)); // a full pipe would stop the program
        Self { child, port: port.expect("the program says where it listens") }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Measures E8: a file is moved into place among 10,000, until the last of 100 streams has the change.
pub fn e8() -> Figure {
    let (n, streams) = (10_000, 100);
    let mut times = run(async {
        let folder = Folder::new(n).expect("a folder for temporary files");
        let program = Program::start(&folder.served());
        let fleet = Fleet::open(program.port, streams, streams, Variant::Delta, &nothing(Variant::Delta)).await;
        assert_eq!(fleet.responses().await, n * streams);
        let mut times = Vec::new();
        for round in 1..=21 {
            let start = Instant::now();
            folder.change(usize::from(round) * 100, round).expect("a folder for temporary files");
            assert_eq!(fleet.responses().await, streams);
            times.push(start.elapsed().as_nanos() as f64);
        }
        fleet.close().await;
        times
    });
    let middle = median(&mut times);
    let checks = [
        Check::most("E8: ms until the last stream has it", middle / 1e6, 100.0),
        Check::most("E8: ms of the slowest change of 21", times.last().copied().unwrap_or_default() / 1e6, 100.0),
    ];
    ([Row { ns: middle, ..Row::new("E8", n, streams, 1) }].into(), checks.into())
}

/// Measures E9: a client receives all resources. Processor time, and the time from the start until the last update.
pub fn e9() -> Figure {
    let n = 100_000;
    let response = delta_response(&cache(&clusters(), n), &clusters());
    let decoding = median_time(9, &mut Decode::<DeltaResponse>::new(&response));
    // The versions, and the content of the resources, are kept by name.
    let keep = |response: DeltaResponse| {
        let entry = |Resource { name, version, resource }: Resource| {
            let content = Arc::new(resource.unwrap_or_default().value);
            ((name.clone(), version), (name, content))
        };
        let (held, programs): (Vec<_>, Vec<_>) = response.resources.into_iter().map(entry).unzip();
        (BTreeMap::from_iter(held), BTreeMap::from_iter(programs))
    };
    let keeping = median_time(9, &mut DecodeAnd::new(&response, keep));
    let [(ours, ours_elapsed), (bare, bare_elapsed)] = run(async {
        let server = Process::start(Kind::Bare, Variant::Delta, n);
        let mut clients =
            [Kind::Ours, Kind::Bare].map(|kind| (Process::receive(kind, server.port, n), Vec::new(), Vec::new()));
        for _ in 0..7 {
            for (client, times, elapsed) in &mut clients {
                let before = client.quiet().await;
                elapsed.push(client.step());
                times.push((client.quiet().await - before) as f64);
                client.step();
            }
        }
        clients.map(|(_, mut times, mut elapsed)| (median(&mut times), median(&mut elapsed)))
    });
    let row = |workload| Row::new(workload, n, 1, n);
    let rows = [
        timed(row("E9"), ours, bare),
        timed(row("E9 with decoding"), ours, bare + decoding),
        timed(row("E9 with decoding and keeping"), ours, bare + keeping),
        timed(row("E9 elapsed, with decoding and keeping"), ours_elapsed, bare_elapsed + keeping),
    ];
    let checks = [
        Check::most("E9: of a client that receives and decodes nothing", rows[0].ratio, 1.5),
        Check::most("E9: of a client that receives, and prost decoding", rows[1].ratio, 1.5),
        Check::most("E9: of a client that receives, prost decoding, and two maps of what came", rows[2].ratio, 1.5),
        Check::most("E9: time until the last update, of the same", rows[3].ratio, 1.5),
    ];
    (rows.into(), checks.into())
}

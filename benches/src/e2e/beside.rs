//! Servers of other projects beside ours and the bare one: programs with the input and output of `serve`, started as
//! `PROGRAM serve N`.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tokio::time::timeout;

use super::Variant;
use super::figures::run;
use super::generator::Fleet;
use super::process::{Kind, Process};
use super::wire::nothing;
use crate::measure::median;

const SCENES: [(usize, usize); 2] = [(1_000, 100), (10_000, 100)];
const CHANGES: usize = 5;
/// The most looks at a server until it is quiet, because some servers never are.
const LOOKS: u32 = 50;
/// How long the streams wait for a change.
const PATIENCE: Duration = Duration::from_secs(20);

/// Prints a table of a first sync and of one change, for each program.
pub fn beside(programs: &[String]) {
    println!(
        "| | N | streams | first sync: ms of processor | KiB a stream at the peak | one change: ms | resources sent |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|");
    for (n, streams) in SCENES {
        for kind in [Kind::Ours, Kind::Bare] {
            print(kind.as_str(), n, streams, || Process::start(kind, Variant::Delta, n));
        }
        for program in programs {
            let name = Path::new(program).file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
            print(&name, n, streams, || {
                let mut command = Command::new(program);
                command.args(["serve", &n.to_string()]);
                Process::of(command)
            });
        }
    }
}

fn print(name: &str, n: usize, streams: usize, start: impl FnOnce() -> Process) {
    let cells = run(async {
        let mut process = start();
        let (before, cpu) = (process.resident(), process.quiet_within(LOOKS).await);
        let fleet = Fleet::open(process.port, streams, streams, Variant::Delta, &nothing(Variant::Delta)).await;
        assert_eq!(fleet.responses().await, n * streams, "each stream gets all resources once");
        let sync = (process.quiet_within(LOOKS).await - cpu) as f64 / 1e6;
        let peak = (process.peak() - before) / (streams as f64 * 1024.0);
        let (mut times, mut sent) = (Vec::new(), 0);
        for _ in 0..CHANGES {
            let before = process.quiet_within(LOOKS).await;
            process.step();
            let Ok(resources) = timeout(PATIENCE, fleet.responses()).await else { break };
            sent = resources / streams;
            times.push((process.quiet_within(LOOKS).await - before) as f64 / 1e6);
        }
        let change = match times.is_empty() {
            true => "no stream hears of it".into(),
            false => format!("{:.2}", median(&mut times)),
        };
        format!("{sync:.0} | {peak:.0} | {change} | {sent}")
    });
    println!("| {name} | {n} | {streams} | {cells} |");
}

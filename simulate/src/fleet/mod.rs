//! A fleet of proxies and replicas: `simulate fleet` writes the costs of restarts, waves and changes, from the measured
//! costs of one stream, as a table (`fleet.md`) and plots (`fleet.svg`).

mod costs;
mod draw;
mod world;

use std::fmt::Write;
use std::path::Path;
use std::{fs, io};

use self::costs::{CHANGE, COME_BACK, EVERYTHING, FLEET, Job};
use self::draw::Plot;
use self::world::{Outcome, World};

/// The seconds between the return of a replica and the restart of the next.
const REST: f64 = 20.0;

/// The seconds without any replica before a wave.
const OUTAGE: f64 = 5.0;

/// Runs all simulations, and writes the table and the plots into the folder of this package.
///
/// # Errors
///
/// If a file can't be written.
pub fn write(seed: u64) -> io::Result<()> {
    let (come_back, everything) = (FLEET.scaled(COME_BACK), FLEET.scaled(EVERYTHING));
    let rolling = rolling(come_back, seed);
    let waves =
        [("delta: what a proxy has is not sent again", come_back), ("SotW, or proxies that have nothing", everything)]
            .map(|(name, job)| (name, wave(job, seed)));
    let mut table = String::from("<!-- written by `simulate fleet` -->\n\n");
    for line in [
        format!("| a replica holds | {:.1} GB with {} streams |", FLEET.memory(streams()) / 1e9, streams()),
        format!("| a replica reads all keys in | {:.0} s on one core |", FLEET.load()),
    ] {
        let _ = writeln!(table, "{}{line}", if table.ends_with("\n\n") { "| at rest | |\n|---|---|\n" } else { "" });
    }
    table.push_str(
        "\n| | received | sent | core seconds | most cores in a second | refused | 99 % are served | all are |\n",
    );
    table.push_str("|---|---:|---:|---:|---:|---:|---:|---:|\n");
    row(&mut table, "rolling restart, delta", &rolling, 0.0, true);
    for (name, outcome) in &waves {
        row(&mut table, &format!("all replicas away for {OUTAGE:.0} s; {name}"), outcome, OUTAGE, false);
    }
    changes(&mut table);
    let most = rolling.streams.last().map(|(_, streams)| streams.iter().max().copied().unwrap_or_default());
    let _ = writeln!(
        table,
        "\nAfter the rolling restart the fullest replica has {} streams of {} on average, the emptiest {}.",
        most.unwrap_or_default(),
        streams(),
        rolling.streams.last().map_or(0, |(_, streams)| streams.iter().min().copied().unwrap_or_default())
    );
    print!("{table}");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::write(folder.join("fleet.md"), &table)?;
    fs::write(folder.join("fleet.svg"), draw::draw(&plots(&rolling, &waves)))
}

fn streams() -> usize {
    FLEET.proxies / FLEET.replicas
}

/// Restarts one replica after the other. Each replica reads all keys before it takes streams.
fn rolling(job: Job, seed: u64) -> Outcome {
    let mut world = World::new(&FLEET, job, seed);
    for replica in 0..FLEET.replicas {
        world.restart(replica, 1.0 + replica as f64 * (FLEET.load() + REST), FLEET.load());
    }
    world.run()
}

/// Takes all replicas away at once, and brings them back at once.
fn wave(job: Job, seed: u64) -> Outcome {
    let mut world = World::new(&FLEET, job, seed);
    (0..FLEET.replicas).for_each(|replica| world.restart(replica, 0.0, OUTAGE));
    world.run()
}

fn row(table: &mut String, name: &str, outcome: &Outcome, from: f64, is_away: bool) {
    // In a rolling restart the time of each proxy counts, in a wave the time since the replicas are back.
    let mut times = if is_away { outcome.away.clone() } else { outcome.served.iter().map(|at| at - from).collect() };
    times.sort_by(f64::total_cmp);
    let at = |part: f64| times.get(((times.len() - 1) as f64 * part) as usize).copied().unwrap_or_default();
    let _ = writeln!(
        table,
        "| {name} | {} | {} | {:.0} | {:.1} | {} | {:.1} s | {:.1} s |",
        bytes(outcome.received),
        bytes(outcome.sent),
        outcome.processor.iter().sum::<f64>(),
        outcome.processor.iter().copied().fold(0.0, f64::max),
        outcome.refused,
        at(0.99),
        at(1.0)
    );
}

/// Writes the cost of a change of one resource, for a group and for all proxies. No proxy loses its stream, so there is
/// nothing to simulate.
fn changes(table: &mut String) {
    for (name, proxies) in
        [("one resource of a group changes", FLEET.proxies / FLEET.groups), ("one that all see", FLEET.proxies)]
    {
        let all = proxies as f64;
        let processor = all * CHANGE.processor;
        let time = processor / (FLEET.replicas * FLEET.cores) as f64;
        let _ = writeln!(
            table,
            "| {name} | {} | {} | {processor:.2} | | | | {:.1} ms |",
            bytes(all * CHANGE.received),
            bytes(all * CHANGE.sent),
            time * 1e3
        );
    }
}

fn bytes(bytes: f64) -> String {
    match bytes {
        _ if bytes >= 1e9 => format!("{:.1} GB", bytes / 1e9),
        _ if bytes >= 1e6 => format!("{:.1} MB", bytes / 1e6),
        _ => format!("{:.0} kB", bytes / 1e3),
    }
}

fn plots(rolling: &Outcome, waves: &[(&str, Outcome)]) -> Vec<Plot> {
    let served = |outcome: &Outcome| {
        let mut at = outcome.served.clone();
        at.sort_by(f64::total_cmp);
        let all = at.len() as f64;
        at.iter().enumerate().step_by(500).map(|(count, at)| (at - OUTAGE, count as f64 / all * 100.0)).collect()
    };
    let of = |replica: usize| rolling.streams.iter().step_by(4).map(|(at, all)| (*at, all[replica] as f64)).collect();
    let cores =
        |outcome: &Outcome| outcome.processor.iter().enumerate().map(|(at, cores)| (at as f64, *cores)).collect();
    vec![
        Plot {
            title: "Served again after all replicas were away".into(),
            curves: waves.iter().map(|(name, outcome)| ((*name).into(), served(outcome))).collect(),
            unit: "% of the proxies",
        },
        Plot {
            title: "Rolling restart: streams of each replica".into(),
            curves: (0..FLEET.replicas).map(|replica| (format!("replica {}", replica + 1), of(replica))).collect(),
            unit: "streams",
        },
        Plot {
            title: "Rolling restart: cores in use, of all replicas".into(),
            curves: vec![("delta".into(), cores(rolling))],
            unit: "cores",
        },
    ]
}

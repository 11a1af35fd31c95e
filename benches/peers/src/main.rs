//! Runs every peer, each piece of work in a process of its own with a cap on time and memory, beside our machine:
//! `peers [--small] [PEER ..] [WORK ..] > FILE`, a JSON object a line; `peers table FILE` makes tables of it.

mod build;
mod cell;
mod plan;
mod table;

use std::collections::HashMap;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::cell::{Cell, Limits};
use crate::plan::{OURS, PEERS, Peer};

const USAGE: &str = "usage: peers [--small] [PEER ..] [WORK ..] | peers table FILE";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [command, file] = &arguments[..]
        && command == "table"
    {
        return match std::fs::read_to_string(file) {
            Ok(rows) => {
                print!("{}", table::tables(&rows));
                ExitCode::SUCCESS
            }
            Err(error) => usage(&format!("{file}: {error}")),
        };
    }
    let (options, only): (Vec<_>, Vec<_>) = arguments.into_iter().partition(|argument| argument.starts_with('-'));
    if options.iter().any(|option| option != "--small") {
        return usage(USAGE);
    }
    let (works, names): (Vec<_>, Vec<_>) = only.into_iter().partition(|only| plan::works().contains(&only.as_str()));
    if let Some(unknown) = names.iter().find(|name| !PEERS.iter().any(|peer| peer.name == **name)) {
        let names: Vec<_> = PEERS.iter().map(|peer| peer.name).collect();
        return usage(&format!("no peer or work {unknown}: {}; {}", names.join(", "), plan::works().join(", ")));
    }
    let peers =
        PEERS.iter().filter(|peer| peer.name == OURS || names.is_empty() || names.iter().any(|name| name == peer.name));
    let mut cells = plan::cells(!options.is_empty());
    cells.retain(|cell| works.is_empty() || works.iter().any(|work| work == cell.work));
    all(&peers.collect::<Vec<_>>(), &cells);
    ExitCode::SUCCESS
}

fn usage(why: &str) -> ExitCode {
    eprintln!("{why}");
    ExitCode::from(2)
}

/// Builds all peers before any is measured, because compilers disturb measurements.
fn all(peers: &[&Peer], cells: &[Cell]) {
    let built: Vec<_> = peers.iter().map(|peer| (*peer, build::version(peer), build::build(peer))).collect();
    println!("{}", json!({ "machine": machine() }));
    // The times of our machine, by piece of work, for comparison with those of the other peers.
    let mut ours = HashMap::new();
    for cell in cells {
        for (peer, version, program) in &built {
            if !peer.does(cell) {
                continue;
            }
            let rows = match program {
                Ok(program) => cell::run(program, cell, &Limits::default()),
                Err(error) => vec![row(cell, &format!("does not build: {error}"))],
            };
            for mut row in rows {
                let key = (row["workload"].to_string(), row["n"].to_string(), row["s"].to_string());
                if peer.name == OURS {
                    ours.insert(key, row["ns"].as_f64());
                } else if let (Some(Some(ours)), Some(ns)) = (ours.get(&key), row["ns"].as_f64()) {
                    row["times_ours"] = json!((ns / ours * 10.0).round() / 10.0);
                }
                let mut line = json!({ "peer": peer.name, "version": version });
                line.as_object_mut().expect("an object").extend(row.as_object_mut().cloned().unwrap_or_default());
                println!("{line}");
            }
        }
    }
    println!("{}", json!({ "machine": machine() }));
}

/// Returns the cores of the computer, and its load.
fn machine() -> Value {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: Vec<&str> = load.split_whitespace().take(3).collect();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    json!({ "cores": cores, "load": load.join(" ") })
}

/// Returns the row of a piece of work that failed.
fn row(cell: &Cell, outcome: &str) -> Value {
    json!({ "workload": cell.shown, "n": cell.n, "s": cell.s, "outcome": outcome })
}

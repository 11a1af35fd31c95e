//! Runs the benches: figures, scaling, and instruction counts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

use crate::run::{Result, cargo, root, run};

/// The growth of a ratio that needs no explanation.
const TOLERANCE: f64 = 1.05;

/// The workloads whose instructions are counted, each with its floor.
const COUNTED: [(&str, &str); 10] = [
    ("f1", "encode_delta"),
    ("f2", "encode_delta"),
    ("f5_first", "encode_delta"),
    ("f8_delta_change", "decode_names"),
    ("f8_delta_name", "decode_names"),
    ("f9", "decode_sotw"),
    ("f9_with_decoding", "decode_sotw"),
    ("f11_poll", "decode_names"),
    ("f11_timeout", "decode_names"),
    ("f11_stale", "decode_names"),
];

/// The path of the count in the harness's summary.
const INSTRUCTIONS: &str = "/profiles/0/data/parts/0/metrics/Ir/values/new";

/// Runs one of the programs of `benches`.
pub fn program(name: &str, arguments: &[&str]) -> Result {
    run(cargo(&["run", "--quiet", "--release", "-p", "benches", "--bin", name, "--"]).args(arguments))
}

/// Runs the figures, all or some. E8 measures the control plane of the examples.
pub fn figures(arguments: &[&str]) -> Result {
    let some = arguments.iter().any(|argument| !argument.starts_with('-'));
    if !some || arguments.contains(&"E8") {
        run(&mut cargo(&["build", "--quiet", "--release", "-p", "examples", "--bin", "control_plane"]))?;
    }
    program("bench-json", arguments)
}

/// Runs the peers, which are a separate workspace.
pub fn peers(arguments: &[&str]) -> Result {
    let peers = ["run", "--quiet", "--release", "--manifest-path", "benches/peers/Cargo.toml", "--"];
    run(cargo(&peers).args(arguments))
}

pub fn scaling() -> Result {
    let rows = cargo(&["run", "--quiet", "--release", "-p", "benches", "--bin", "scaling"]).output()?;
    if !rows.status.success() {
        return Err(format!("scaling: {}\n{}", rows.status, String::from_utf8_lossy(&rows.stderr)).into());
    }
    let rows: Vec<Value> =
        String::from_utf8(rows.stdout)?.lines().map(serde_json::from_str).collect::<std::result::Result<_, _>>()?;
    let folder = root().join("benches");
    fs::write(folder.join("scaling.md"), crate::plot::table(&rows))?;
    fs::write(folder.join("scaling.svg"), crate::plot::svg(&rows))?;
    println!("wrote benches/scaling.md and benches/scaling.svg");
    Ok(())
}

/// Fails if the instructions of a workload, relative to those of its floor, have grown beyond the baseline. With a
/// reason, the baseline is replaced by the new counts.
pub fn counts(reason: Option<&str>) -> Result {
    let (counted, mut baseline) = (ratios(&count()?)?, read_baseline()?);
    let mut grown = String::new();
    println!("{:18} {:>12} {:>12} {:>8}", "of the floor", "baseline", "now", "");
    for (workload, now) in counted {
        let before = baseline.get(workload).map(|(ratio, _)| *ratio);
        let change = before.map_or(f64::INFINITY, |before| now / before);
        println!("{workload:18} {:>12.6} {now:>12.6} {:>+7.1}%", before.unwrap_or_default(), (change - 1.0) * 100.0);
        if change > TOLERANCE {
            writeln!(grown, "{workload}: {now:.6} of its floor, baseline {:.6}", before.unwrap_or_default())?;
        }
        let moved = !(1.0 / TOLERANCE..=TOLERANCE).contains(&change);
        if let Some(reason) = reason.filter(|_| moved) {
            baseline.insert(workload.into(), (now, reason.into()));
        }
    }
    if reason.is_some() {
        return write_baseline(&baseline);
    }
    if grown.is_empty() {
        return Ok(());
    }
    Err(format!("instructions have grown by more than 5 %:\n{grown}If it must be: cargo xtask counts REASON").into())
}

fn ratios(counts: &BTreeMap<String, f64>) -> Result<Vec<(&'static str, f64)>> {
    let count = |of: &str| counts.get(of).copied().ok_or_else(|| format!("{of} was not counted"));
    COUNTED.iter().map(|&(workload, floor)| Ok((workload, count(workload)? / count(floor)?))).collect()
}

/// Counts the instructions of each workload and floor.
fn count() -> Result<BTreeMap<String, f64>> {
    let summaries = folder().join("target/gungraun");
    if summaries.exists() {
        fs::remove_dir_all(&summaries)?; // it would compare with the last run
    }
    let mut bench = cargo(&["bench", "--quiet", "--manifest-path", "benches/counts/Cargo.toml", "--"]);
    let output = bench.arg("--output-format=json").env("GUNGRAUN_RUNNER", runner()?).output()?;
    if !output.status.success() {
        return Err(format!("{bench:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)).into());
    }
    let mut counts = BTreeMap::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let summary: Value = serde_json::from_str(line)?;
        let (name, count) = (summary["function_name"].as_str(), summary.pointer(INSTRUCTIONS).and_then(Value::as_f64));
        match (name, count) {
            (Some(name), Some(count)) => _ = counts.insert(name.to_owned(), count),
            _ => return Err(format!("a summary without a name or {INSTRUCTIONS}: {line}").into()),
        }
    }
    Ok(counts)
}

/// Returns the harness's runner, whose version must match the library's. Installs it if necessary, without
/// optimization, because its own instructions are not counted.
fn runner() -> Result<PathBuf> {
    if let Some(runner) = env::var_os("GUNGRAUN_RUNNER") {
        return Ok(runner.into());
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        return Err("valgrind is not installed".into());
    }
    let manifest = fs::read_to_string(folder().join("Cargo.toml"))?;
    let version = manifest.lines().find_map(|line| line.strip_prefix("gungraun = \"=")?.strip_suffix('"'));
    let version = version.ok_or("benches/counts/Cargo.toml names no exact version of gungraun")?;
    let at = folder().join(format!("target/runner-{version}"));
    let runner = at.join("bin/gungraun-runner");
    if !runner.exists() {
        let install = ["install", "--quiet", "--locked", "--debug", "--version", version, "gungraun-runner", "--root"];
        run(cargo(&install).arg(&at))?;
    }
    Ok(runner)
}

fn folder() -> PathBuf {
    root().join("benches/counts")
}

type Baseline = BTreeMap<String, (f64, String)>;

/// Reads the baseline: lines of a workload, its ratio, and the reason for it.
fn read_baseline() -> Result<Baseline> {
    let mut baseline = Baseline::new();
    let path = folder().join("baseline.txt");
    if !path.exists() {
        return Ok(baseline);
    }
    for line in fs::read_to_string(path)?.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.splitn(3, ' ');
        let (Some(workload), Some(ratio), Some(reason)) = (words.next(), words.next(), words.next()) else {
            return Err(format!("benches/counts/baseline.txt: {line:?} is no workload, ratio and reason").into());
        };
        baseline.insert(workload.into(), (ratio.parse()?, reason.into()));
    }
    Ok(baseline)
}

fn write_baseline(baseline: &Baseline) -> Result {
    let mut text = "\
# Instructions of each workload, as a part of those of its floor, and why: `cargo xtask counts` compares, and
# `cargo xtask counts REASON` writes what has changed by more than 5 %.
"
    .to_owned();
    for (workload, (ratio, reason)) in baseline {
        writeln!(text, "{workload} {ratio:.6} {reason}")?;
    }
    Ok(fs::write(folder().join("baseline.txt"), text)?)
}

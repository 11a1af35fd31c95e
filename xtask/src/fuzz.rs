//! Runs the fuzz targets, on stable and without a sanitizer: in code without `unsafe` a sanitizer finds little, and
//! costs most of the speed.

use std::fs;

use crate::run::{Result, cargo, root, run};

const TARGETS: [&str; 10] =
    ["world", "client", "server", "wire", "csds", "variants", "poll", "load", "bootstrap", "resources"];

/// The maximum input length: enough for a story, and short enough to be read.
const LEN: &str = "-max_len=512";

/// Fuzzes one target for a number of seconds. New inputs go to `fuzz/work`, which is not committed.
pub fn fuzz(target: &str, seconds: &str) -> Result {
    let work = work(target)?;
    let (seconds, corpus) = (format!("-max_total_time={seconds}"), format!("corpus/{target}"));
    run(fuzzer(&["run", "--sanitizer", "none", target, &work, &corpus, "--", &seconds, LEN, "-print_final_stats=1"])
        .current_dir(root().join("fuzz")))
}

/// Reduces the committed corpus to the fewest inputs that reach the same code.
pub fn minimise(target: &str) -> Result {
    let work = work(target)?;
    let (all, corpus) = (root().join("fuzz").join(&work), root().join("fuzz/corpus").join(target));
    fs::create_dir_all(&corpus)?;
    for input in fs::read_dir(&corpus)? {
        let input = input?;
        fs::rename(input.path(), all.join(input.file_name()))?;
    }
    // Counts edges without their frequency, which keeps a few dozen inputs instead of thousands.
    let corpus = format!("corpus/{target}");
    run(fuzzer(&[
        "run",
        "--sanitizer",
        "none",
        target,
        &corpus,
        &work,
        "--",
        "-set_cover_merge=1",
        "-use_counters=0",
        LEN,
    ])
    .current_dir(root().join("fuzz")))
}

/// Replays the committed corpus without a fuzzer, and builds all targets.
pub fn corpus() -> Result {
    let replay = ["test", "--manifest-path", "fuzz/Cargo.toml", "--no-default-features", "--test", "corpus"];
    run(cargo(&replay).args(["--", "--nocapture"]))?;
    run(&mut cargo(&["build", "--manifest-path", "fuzz/Cargo.toml", "--bins"]))
}

fn fuzzer(arguments: &[&str]) -> std::process::Command {
    let mut command = cargo(&["fuzz"]);
    command.args(arguments);
    command
}

fn work(target: &str) -> Result<String> {
    if !TARGETS.contains(&target) {
        return Err(format!("no target {target}: {}", TARGETS.join(", ")).into());
    }
    let work = format!("work/{target}");
    fs::create_dir_all(root().join("fuzz").join(&work))?;
    Ok(work)
}

//! The tests that a mutant faces, fast ones first.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::results::Outcome;
use super::tree::{Tree, cargo_in};
use crate::run::{Result, root};

/// How a program is run: arguments, environment.
type Way = (&'static [&'static str], &'static [(&'static str, &'static str)]);

/// A check of the first states of everything.
const GLANCE: Way = (&["deeper", "--exact", "--ignored"], &[("ONLY", "t"), ("LIMIT", "400")]);
const WHOLE: Way = (&["everything_holds_in_every_order", "--exact"], &[]);
/// Those that take the longest.
pub const SLOW: [&str; 3] = ["machines_are_values", "model", "seeded_bugs"];
/// They read the sources, and what is written about them.
const NOT_ABOUT_CODE: [&str; 2] = ["rules", "dialects"];

/// Memory, in KiB.
const MEMORY: u32 = 4_000_000;

struct Stage {
    name: String,
    program: PathBuf,
    way: Way,
    limit: Duration,
    time: Duration,
    /// The mutants that it comes across.
    reached: HashSet<usize>,
}

pub struct Suite(Vec<Stage>);

impl Suite {
    /// Builds the tests, and runs them with no mutant on.
    pub fn measure(tree: &Tree, wanted: impl Fn(&str) -> bool, last: bool) -> Result<Suite> {
        let build = ["test", "--release", "--quiet", "--package", "xds-machine", "--all-features", "--lib", "--no-run"];
        let mut arguments = [&build[..], &["--message-format=json"]].concat();
        let targets = targets()?;
        for target in targets.iter().filter(|target| wanted(target)) {
            arguments.extend(["--test", target]);
        }
        let output = cargo_in(&tree.root, &arguments).output()?;
        if !output.status.success() {
            return Err("the tests do not compile".into());
        }
        let mut stages = Vec::new();
        for line in String::from_utf8(output.stdout)?.lines() {
            let message: Value = serde_json::from_str(line)?;
            let (Some(program), Some(name)) = (message["executable"].as_str(), message["target"]["name"].as_str())
            else {
                continue;
            };
            let ways: Vec<Way> = match name {
                "model" if last => vec![GLANCE, WHOLE],
                "model" => vec![GLANCE],
                _ => vec![(&[], &[])],
            };
            for way in ways {
                let mut stage = Stage {
                    name: [name, way.0.first().unwrap_or(&"")].join(" "),
                    program: program.into(),
                    way,
                    limit: Duration::from_secs(600),
                    time: Duration::ZERO,
                    reached: HashSet::new(),
                };
                if stage.measure()? {
                    println!("{}: {:?}, {} mutants", stage.name, stage.time, stage.reached.len());
                    stages.push(stage);
                } else {
                    println!("{}: fails with no mutant on, and is left out", stage.name);
                }
            }
        }
        stages.sort_by_key(|stage| stage.time);
        Ok(Suite(stages))
    }

    /// What becomes of a mutant, and which tests caught it.
    pub fn face(&self, id: usize) -> (Outcome, Option<&str>) {
        for stage in self.0.iter().filter(|stage| stage.reached.contains(&id)) {
            match stage.run("MUTANT", &id.to_string()) {
                Some(true) => {}
                Some(false) => return (Outcome::Caught, Some(&stage.name)),
                None => return (Outcome::TimedOut, Some(&stage.name)),
            }
        }
        (Outcome::Survived, None)
    }
}

/// The names of the tests.
fn targets() -> Result<Vec<String>> {
    let mut targets = Vec::new();
    for entry in fs::read_dir(root().join("tests"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "rs") || path.join("main.rs").exists() {
            targets.extend(path.file_stem().and_then(|name| name.to_str()).map(str::to_owned));
        }
    }
    targets.retain(|target| !NOT_ABOUT_CODE.contains(&target.as_str()));
    Ok(targets)
}

impl Stage {
    fn measure(&mut self) -> Result<bool> {
        let path = root().join("target/mutants/reached");
        fs::write(&path, "")?;
        let start = Instant::now();
        if self.run("MUTANTS_REACHED", path.to_str().ok_or("no text")?) != Some(true) {
            return Ok(false);
        }
        self.time = start.elapsed();
        self.limit = Duration::from_secs(10) + 8 * self.time;
        self.reached = fs::read_to_string(&path)?.lines().map(str::parse).collect::<std::result::Result<_, _>>()?;
        Ok(true)
    }

    /// Whether it passes; `None`: in time, it says nothing.
    fn run(&self, key: &str, value: &str) -> Option<bool> {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -v {MEMORY}; exec \"$@\""), "sh"]).arg(&self.program);
        command.args(self.way.0).envs(self.way.1.iter().copied()).env(key, value);
        command
            .current_dir(root().join("target/mutants/tree"))
            .env("RUST_TEST_THREADS", "1")
            .env("PROPTEST_RNG_SEED", "1")
            .env("PROPTEST_CASES", "32")
            .env("WALKS", "8");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let end = Instant::now() + self.limit;
        let mut pause = Duration::from_millis(2);
        loop {
            if let Some(status) = child.try_wait().ok()? {
                return Some(status.success());
            }
            if Instant::now() > end {
                _ = child.kill();
                _ = child.wait();
                return None;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }
}

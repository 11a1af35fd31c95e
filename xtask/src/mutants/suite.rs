//! The tests that run against a mutant, fast ones first.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::results::Outcome;
use super::subject::Subject;
use super::tree::{Tree, cargo_in};
use crate::run::{Result, root};

/// The arguments and the environment of a program.
type Way = (Vec<String>, &'static [(&'static str, &'static str)]);

/// The model check: complete, and of its first states only.
const MODEL: &str = "model";
const WHOLE: [&str; 2] = ["the_invariants_hold_in_every_order", "--exact"];
const GLANCE: [&str; 3] = ["the_invariants_hold_in_deeper_shapes", "--exact", "--ignored"];
const A_GLANCE: [(&str, &str); 2] = [("ONLY", "t"), ("LIMIT", "400")];
/// The random simulation: 100 runs of 10,000 steps each, on one thread.
const SIMULATION: &str = "simulation";
const RUNS: [&str; 3] = ["1", "1", "1"];
/// The slowest tests.
pub const SLOW: [&str; 7] =
    ["machines_are_values", MODEL, "second_checker", "seeded_bugs", "servers", SIMULATION, "watches"];
/// Tests that read the sources and their documentation.
const NOT_ABOUT_CODE: [&str; 2] = ["rules", "dialects"];

/// The memory limit, in KiB.
const MEMORY: u32 = 4_000_000;

struct Stage {
    name: String,
    program: PathBuf,
    /// The copy of the project.
    tree: PathBuf,
    way: Way,
    limit: Duration,
    time: Duration,
    /// The mutants that the tests execute.
    reached: HashSet<usize>,
}

pub struct Suite(Vec<Stage>);

impl Suite {
    /// Builds the tests, and runs them without a mutant, each module of a program separately.
    pub fn measure(subject: &Subject, tree: &Tree, wanted: impl Fn(&str) -> bool, last: bool) -> Result<Suite> {
        let package = subject.package;
        let build = ["test", "--release", "--quiet", "--package", package, "--all-features", "--lib", "--no-run"];
        let mut arguments = [&build[..], &["--message-format=json"]].concat();
        let model = (subject.model && wanted(MODEL)).then_some(MODEL);
        for program in subject.programs.iter().copied().chain(model) {
            arguments.extend(["--test", program]);
        }
        let mut programs = built(subject, tree, &arguments)?;
        if subject.model && wanted(SIMULATION) {
            let build = ["build", "--release", "--quiet", "--package", "simulate", "--message-format=json"];
            programs.extend(built(subject, tree, &build)?);
        }
        let mut stages = Vec::new();
        for (name, program) in programs {
            let name = name.as_str();
            let mut ways: Vec<(String, Way)> = Vec::new();
            if name == "simulate" {
                ways.push((SIMULATION.into(), (RUNS.map(str::to_owned).into(), &[][..])));
            } else if subject.model && name == MODEL {
                ways.push(("model, a glance".into(), (GLANCE.map(str::to_owned).into(), &A_GLANCE)));
                ways.extend(last.then(|| ("model".into(), (WHOLE.map(str::to_owned).into(), &[][..]))));
            } else if subject.programs.contains(&name) && !subject.stages.is_empty() {
                let stages = subject.stages.iter().filter(|stage| wanted(stage));
                ways.extend(stages.map(|stage| ((*stage).into(), (vec![(*stage).into()], &[][..]))));
            } else if subject.programs.contains(&name) {
                let modules = modules(&program)?.into_iter().filter(|(module, _)| wanted(module));
                ways.extend(modules.map(|(module, path)| (module, (vec![format!("{path}::")], &[][..]))));
            } else if wanted(name) {
                ways.push((name.into(), (Vec::new(), &[])));
            }
            for (name, way) in ways {
                let mut stage = Stage {
                    name,
                    program: program.clone(),
                    tree: tree.root.clone(),
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

    /// Runs the tests against a mutant. Returns its outcome, and the tests that caught it.
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

/// Builds programs in the copy, and returns them with their names.
fn built(subject: &Subject, tree: &Tree, arguments: &[&str]) -> Result<Vec<(String, PathBuf)>> {
    let output = cargo_in(subject, &tree.root, arguments).output()?;
    if !output.status.success() {
        return Err("the tests do not compile".into());
    }
    let mut programs = Vec::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let message: Value = serde_json::from_str(line)?;
        if let (Some(program), Some(name)) = (message["executable"].as_str(), message["target"]["name"].as_str()) {
            programs.push((name.to_owned(), program.into()));
        }
    }
    Ok(programs)
}

/// Returns the modules of a program that have tests, with their paths: each is in a folder of `tests/`.
fn modules(program: &Path) -> Result<BTreeMap<String, String>> {
    let listed = Command::new(program).args(["--list", "--format", "terse"]).output()?;
    let tests = String::from_utf8(listed.stdout)?;
    let modules = tests.lines().filter_map(|test| {
        let (folder, module) = test.split_once("::")?;
        let (module, _) = module.split_once("::")?;
        Some((module.to_owned(), format!("{folder}::{module}")))
    });
    Ok(modules.filter(|(module, _)| !NOT_ABOUT_CODE.contains(&module.as_str())).collect())
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

    /// Returns whether the tests pass; `None` if they take too long.
    fn run(&self, key: &str, value: &str) -> Option<bool> {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -v {MEMORY}; exec \"$@\""), "sh"]).arg(&self.program);
        command.args(&self.way.0).envs(self.way.1.iter().copied()).env(key, value);
        command
            .current_dir(&self.tree)
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

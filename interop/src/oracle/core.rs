//! Plays cases to C-core: several processes at once, because C-core can crash.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;

use serde::Deserialize;

use super::answer::{Raw, Seen};
use super::case::Case;
use super::encode;

/// What C-core did in each step, or `None` if C-core crashed.
pub type Played = Option<Vec<Seen>>;

pub struct Core {
    pub python: PathBuf,
    pub script: PathBuf,
}

#[derive(Deserialize)]
struct Ports {
    backends: Vec<u16>,
}

#[derive(Deserialize)]
struct Answered {
    id: String,
    steps: Vec<Raw>,
}

/// A process that is killed when this value is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Core {
    /// Plays cases, each with its number.
    ///
    /// # Errors
    ///
    /// If the program can't be started, or its output can't be read.
    pub fn play(&self, cases: &[(u64, Case)], shards: usize, patience: f64) -> Result<BTreeMap<u64, Played>, String> {
        let (crashing, others): (Vec<_>, Vec<_>) = cases.iter().partition(|(_, case)| case.may_crash());
        let mut work: Vec<Vec<&(u64, Case)>> = vec![Vec::new(); shards];
        others.into_iter().enumerate().for_each(|(place, case)| work[place % shards].push(case));
        work.extend(crashing.into_iter().map(|case| vec![case]));
        work.reverse(); // taken from the end
        let (work, done) = (Mutex::new(work), Mutex::new(Ok(BTreeMap::new())));
        let take = || work.lock().ok()?.pop();
        thread::scope(|scope| {
            for _ in 0..shards {
                scope.spawn(|| {
                    while let Some(batch) = take() {
                        let played = self.batch(&batch, patience);
                        let Ok(mut done) = done.lock() else { return };
                        match (&mut *done, played) {
                            (Ok(done), Ok(played)) => done.extend(played),
                            (done, Err(error)) => *done = Err(error),
                            (Err(_), Ok(_)) => {}
                        }
                    }
                });
            }
        });
        done.into_inner().map_err(|error| error.to_string())?
    }

    /// Plays cases in one process. If the process ends early, the cases without an answer are played again in two
    /// halves, down to one that makes C-core crash by itself.
    fn batch(&self, cases: &[&(u64, Case)], patience: f64) -> Result<BTreeMap<u64, Played>, String> {
        let mut done = self.process(cases, patience)?;
        let rest: Vec<_> = cases.iter().copied().filter(|(id, _)| !done.contains_key(id)).collect();
        match &rest[..] {
            [] => {}
            [(id, _)] if cases.len() == 1 => drop(done.insert(*id, None)),
            rest => {
                let (one, other) = rest.split_at(rest.len().div_ceil(2));
                done.extend(self.batch(one, patience)?);
                done.extend(if other.is_empty() { BTreeMap::new() } else { self.batch(other, patience)? });
            }
        }
        Ok(done)
    }

    fn process(&self, cases: &[&(u64, Case)], patience: f64) -> Result<BTreeMap<u64, Played>, String> {
        let mut command = Command::new(&self.python);
        command.arg(&self.script).env("GRPC_VERBOSITY", "NONE").stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = command.stderr(Stdio::null()).spawn().map_err(|error| format!("can't start python: {error}"))?;
        let mut child = Killed(child);
        let mut input = child.0.stdin.take().ok_or("no input")?;
        let mut lines = BufReader::new(child.0.stdout.take().ok_or("no output")?).lines();
        let mut next = || lines.next().transpose().map_err(|error| error.to_string());
        let first = next()?.ok_or("the oracle does not start")?;
        let Ports { backends } = serde_json::from_str(&first).map_err(|error| format!("{first}: {error}"))?;
        let mut text = String::new();
        for (id, case) in cases {
            text += &encode::line(case, &target(*id), &backends, patience);
            text.push('\n');
        }
        // A process that ends meanwhile has crashed.
        let writer = thread::spawn(move || drop(input.write_all(text.as_bytes())));
        let mut done = BTreeMap::new();
        while let Some(line) = next()? {
            let Ok(Answered { id, steps }) = serde_json::from_str::<Answered>(&line) else { break };
            let number = id.strip_prefix('t').and_then(|number| number.parse().ok()).ok_or("an unknown case")?;
            done.insert(number, Some(steps.into_iter().map(|raw| raw.read(&id)).collect()));
        }
        drop(child);
        drop(writer.join());
        Ok(done)
    }
}

fn target(id: u64) -> String {
    format!("t{id}")
}

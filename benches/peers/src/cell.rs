//! A piece of work in a process of its own.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::row;

/// A piece of work: its name to the program and in the output, resources, and streams.
#[derive(Clone, Debug)]
pub struct Cell {
    pub work: &'static str,
    pub shown: &'static str,
    pub n: usize,
    pub s: usize,
}

/// The signals at the limit of time on a processor.
const XCPU: i32 = 24;
const KILL: i32 = 9;

/// The limits of a process: time on a processor, elapsed time (it may wait for a processor), and memory.
#[derive(Debug)]
pub struct Limits {
    seconds: u64,
    time: Duration,
    bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { seconds: 60, time: Duration::from_secs(240), bytes: 4 << 30 }
    }
}

/// Runs a piece of work. Returns its rows, and one more that tells how it ended if it failed.
pub fn run(program: &Path, cell: &Cell, limits: &Limits) -> Vec<Value> {
    // Every program has its probes under the name `probe`.
    let work = cell.work.rsplit(' ').next().unwrap_or_default();
    let mut child = match Command::new(program)
        .args([work, &cell.n.to_string(), &cell.s.to_string()])
        .env("PEERS_BYTES", limits.bytes.to_string())
        .env("PEERS_SECONDS", limits.seconds.to_string())
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
    {
        Ok(child) => child,
        Err(error) => return vec![row(cell, &format!("does not start: {error}"))],
    };
    let rows = child.stdout.take().map(|out| {
        thread::spawn(move || {
            let lines = BufReader::new(out).lines().map_while(Result::ok);
            lines.filter_map(|line| serde_json::from_str(&line).ok()).collect::<Vec<Value>>()
        })
    });
    let said = child.stderr.take().map(|err| thread::spawn(move || tail(err)));
    let start = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            _ if start.elapsed() > limits.time => {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            _ => thread::sleep(Duration::from_millis(5)),
        }
    };
    let mut rows = rows.and_then(|rows| rows.join().ok()).unwrap_or_default();
    let said = said.and_then(|said| said.join().ok()).unwrap_or_default();
    if let Some(ended) = ended(status, &said, limits) {
        rows.push(row(cell, &ended));
    }
    rows
}

/// Returns how a process ended, if it failed.
fn ended(status: Option<ExitStatus>, said: &[String], limits: &Limits) -> Option<String> {
    let last = said.last().map_or("nothing", String::as_str);
    let Some(status) = status else {
        return Some(format!("beyond {} s; came to: {last}", limits.time.as_secs()));
    };
    if status.success() {
        return None;
    }
    // The kernel kills a process beyond a limit that can't be raised.
    if matches!(status.signal(), Some(XCPU | KILL)) {
        return Some(format!("beyond {} s on a processor; came to: {last}", limits.seconds));
    }
    if let Some(at) = said.iter().position(|line| line.starts_with("memory allocation of")) {
        let before = at.checked_sub(1).map_or("nothing", |before| said[before].as_str());
        return Some(format!("beyond {} GiB; came to: {before}", limits.bytes >> 30));
    }
    if let Some(panic) = said.iter().position(|line| line.contains("panicked at")) {
        return Some(format!("panics: {}", said[panic..].join(" ")));
    }
    Some(if status.code() == Some(1) { last.into() } else { format!("{status}; came to: {last}") })
}

/// Returns the last lines.
fn tail(err: impl Read) -> Vec<String> {
    let mut last = Vec::new();
    for line in BufReader::new(err).lines().map_while(Result::ok) {
        if last.len() == 8 {
            last.remove(0);
        }
        last.push(line);
    }
    last
}

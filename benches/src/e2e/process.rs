//! A server in a process of its own, and its use of processors and memory.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use super::Variant;

/// The measured program, and the bare ones beside it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Ours,
    Bare,
    /// The bare server behind tonic's transport.
    Tonic,
}

impl Kind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Bare => "bare",
            Self::Tonic => "tonic",
        }
    }
}

pub(super) struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The port of a server.
    pub(super) port: u16,
}

impl Process {
    /// Starts a server of N resources.
    pub(super) fn start(kind: Kind, variant: Variant, n: usize) -> Self {
        Self::spawn(&["serve", kind.as_str(), variant.as_str(), &n.to_string()])
    }

    /// Starts a client of the server on that port.
    pub(super) fn receive(kind: Kind, port: u16, n: usize) -> Self {
        Self::spawn(&["receive", kind.as_str(), &port.to_string(), &n.to_string()])
    }

    fn spawn(arguments: &[&str]) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("a program has a path"));
        command.args(arguments);
        Self::of(command)
    }

    /// Starts a program that prints its port first, with the allocator's own defaults.
    pub(super) fn of(mut command: Command) -> Self {
        command.env_remove("MALLOC_TRIM_THRESHOLD_").env_remove("MALLOC_MMAP_THRESHOLD_");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("this program starts");
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let mut process = Self { child, input, output: BufReader::new(output), port: 0 };
        process.port = process.line().parse().expect("a port");
        process
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the server answers");
        line.trim().into()
    }

    /// Makes a server change a resource, or a client take its next step. Returns how long that took, in nanoseconds.
    pub(super) fn step(&mut self) -> f64 {
        writeln!(self.input).expect("the process reads");
        self.line().parse().expect("a number")
    }

    /// Returns the processor time of all threads in nanoseconds. Exact only while they sleep.
    fn cpu(&self) -> u64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("the server runs");
        let time = |task: std::io::Result<fs::DirEntry>| {
            let all = fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
            all.split(' ').next()?.parse::<u64>().ok()
        };
        tasks.filter_map(time).sum()
    }

    /// Waits until the process has nothing more to do, and returns its processor time.
    pub(super) async fn quiet(&self) -> u64 {
        self.quiet_within(u32::MAX).await
    }

    /// As [`quiet`](Self::quiet), with at most `looks` looks of 20 ms: a server that works at intervals is never quiet.
    pub(super) async fn quiet_within(&self, looks: u32) -> u64 {
        let (mut last, mut times) = (self.cpu(), 0);
        for _ in 0..looks {
            if times == 3 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            let now = self.cpu();
            times = if now == last { times + 1 } else { 0 };
            last = now;
        }
        last
    }

    /// Returns the resident set in bytes.
    pub(super) fn resident(&self) -> f64 {
        self.status("VmRSS:")
    }

    /// Returns the largest resident set so far.
    pub(super) fn peak(&self) -> f64 {
        self.status("VmHWM:")
    }

    fn status(&self, field: &str) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("the server runs");
        let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("every process has this field");
        let kib: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kib * 1024.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

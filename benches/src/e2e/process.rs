//! A server in a process of its own: what it has used of processors and memory.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use super::Variant;

/// The program that is measured, and the one beside it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Ours,
    Bare,
}

pub(super) struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pub(super) port: u16,
}

impl Process {
    /// Starts a server of N resources, with the allocator's own defaults.
    pub(super) fn start(kind: Kind, variant: Variant, n: usize) -> Self {
        let kind = if kind == Kind::Ours { "ours" } else { "bare" };
        let mut command = Command::new(std::env::current_exe().expect("a program has a path"));
        command.args(["serve", kind, variant.as_str(), &n.to_string()]);
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

    /// Changes a resource, and returns when the change is made.
    pub(super) fn change(&mut self) {
        writeln!(self.input, "change").expect("the server reads");
        assert_eq!(self.line(), "changed");
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
        let (mut last, mut times) = (self.cpu(), 0);
        while times < 3 {
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

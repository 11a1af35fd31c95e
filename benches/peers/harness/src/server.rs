//! The work of a server: all resources for a new stream, one change for many streams, and the memory of an idle stream.

use std::process::ExitCode;

use benches::alloc;

use crate::clock::{Start, rounds};
use crate::data::encode_all;
use crate::{Probe, Row, cap};

/// The variant of the protocol on the streams.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Variant {
    Delta,
    Sotw,
}

/// The response that one stream was sent.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Sent {
    /// The bytes of the encoded response, all of which has to exist.
    pub bytes: usize,
    /// The resources in the response, if they were counted.
    pub resources: usize,
}

/// Why a peer can't do the work, or does it wrongly.
pub type Wrong = String;

/// A server with its streams.
pub trait Server: Sized {
    /// How the server is driven, and which part of that is not its own work.
    const DRIVE: &'static str;

    /// Creates a server with a store of `n` resources (`data::name`, `data::body`), and no stream yet.
    fn new(n: usize, variant: Variant) -> Result<Self, Wrong>;

    /// Opens one more wildcard stream. Returns once its encoded response exists, and its ACK, which is given decoded,
    /// is processed.
    fn open(&mut self) -> Result<Sent, Wrong>;

    /// Changes a resource. Returns once each stream has its encoded response, and each ACK is processed: the response
    /// to the first stream, with its resources counted if `count`.
    fn change(&mut self, at: usize, round: u8, count: bool) -> Result<Sent, Wrong>;

    /// Returns the answers of the server to further questions.
    fn probes() -> Vec<Probe>;
}

/// Runs the program of a peer: `WORKLOAD N S`. Prints a line for each measurement.
pub fn serve<T: Server>() -> ExitCode {
    alloc::keep();
    cap::cap();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|number| number.parse().ok()).unwrap_or(0);
    let (n, s) = (number(1), number(2));
    let result = match arguments.first().map(String::as_str) {
        Some("sync") => sync::<T>(n),
        Some("push") => change::<T>(n, s, Variant::Delta),
        Some("full") => change::<T>(n, s, Variant::Sotw),
        Some("idle") => idle::<T>(n, s),
        Some("probe") => {
            T::probes().iter().for_each(|probe| probe.print(T::DRIVE));
            Ok(())
        }
        _ => Err("usage: sync N | push N S | full N S | idle N S | probe".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            eprintln!("{wrong}");
            ExitCode::FAILURE
        }
    }
}

/// Measures F5: the first stream of a server, and each further one.
fn sync<T: Server>(n: usize) -> Result<(), Wrong> {
    let floor_ns = encode_all(n, Variant::Delta);
    let mut sent = Sent::default();
    let mut last = None;
    let (took, done) = rounds(5, |_| {
        last = None; // two stores at once would be more than a server has
        let mut server = T::new(n, Variant::Delta)?;
        say(format_args!("filled"));
        let start = Start::now();
        sent = server.open()?;
        let took = start.took();
        last = Some(server);
        Ok::<_, Wrong>(took)
    })?;
    let row = |workload: &str, took, rounds, sent: Sent| Row {
        workload: workload.into(),
        n,
        s: 1,
        changed: 0,
        took,
        rounds,
        bytes: sent.bytes as f64,
        resources: sent.resources,
        floor_ns,
        wrong: expect(n, sent.resources),
        drive: T::DRIVE,
    };
    row("first sync", took, done, sent).print();
    let Some(mut server) = last else { return Ok(()) };
    let (took, done) = rounds(11, |_| {
        let start = Start::now();
        sent = server.open()?;
        Ok::<_, Wrong>(start.took())
    })?;
    row("further sync", took, done, sent).print();
    Ok(())
}

/// Measures F1, F2, F7: one of N resources changes, and S streams are sent the change.
fn change<T: Server>(n: usize, s: usize, variant: Variant) -> Result<(), Wrong> {
    let floor_ns = encode_all(n, variant);
    let mut server = filled::<T>(n, s, variant)?;
    let mut sent = Sent::default();
    let (took, rounds) = rounds(15, |round| {
        let start = Start::now();
        let first = server.change(n / 2, (round % 250) as u8 + 1, round == 0)?;
        let took = start.took();
        say(format_args!("{} changes", round + 1));
        if round == 0 {
            sent = first;
        }
        Ok::<_, Wrong>(took)
    })?;
    let (workload, right) = match variant {
        Variant::Delta => ("delta change", 1),
        Variant::Sotw => ("SotW change", n),
    };
    let (bytes, resources, wrong) = (sent.bytes as f64, sent.resources, expect(right, sent.resources));
    let workload = workload.into();
    Row { workload, n, s, changed: 1, took, rounds, bytes, resources, floor_ns, wrong, drive: T::DRIVE }.print();
    Ok(())
}

/// Measures F3: the memory of a stream that has all resources.
fn idle<T: Server>(n: usize, s: usize) -> Result<(), Wrong> {
    let mut server = T::new(n, Variant::Delta)?;
    server.open()?; // makes what all streams share
    let (before, start) = (alloc::live(), Start::now());
    for opened in 0..s {
        server.open()?;
        say(format_args!("{} of {s} streams", opened + 1));
    }
    let (bytes, took) = ((alloc::live().saturating_sub(before)) as f64 / s as f64, start.took());
    Row {
        workload: "idle stream".into(),
        n,
        s,
        changed: 0,
        took,
        rounds: 1,
        bytes,
        resources: 0,
        floor_ns: 0.0,
        wrong: None,
        drive: T::DRIVE,
    }
    .print();
    drop(server);
    Ok(())
}

fn filled<T: Server>(n: usize, s: usize, variant: Variant) -> Result<T, Wrong> {
    let mut server = T::new(n, variant)?;
    for opened in 0..s {
        server.open()?;
        say(format_args!("{} of {s} streams", opened + 1));
    }
    Ok(server)
}

fn expect(right: usize, resources: usize) -> Option<Wrong> {
    (right != resources).then(|| format!("each stream was sent {resources} resources instead of {right}"))
}

/// Prints the progress: the last line shows how far a peer came that was ended.
fn say(progress: std::fmt::Arguments<'_>) {
    eprintln!("{progress}");
}

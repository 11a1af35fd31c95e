//! L1 and L2: counting calls among many entries, and the memory of an idle one.

use std::collections::HashMap;

use xds_machine::load::{Config, Counts, Entry, Place, Reporter, Response};
use xds_machine::message::{Locality, Node};
use xds_machine::{Instant, ResourceName};

use crate::alloc;
use crate::measure::{Row, Work};

/// Additions per round.
const TIMES: usize = 1000;

/// A step through the entries that visits all of them, in no order that helps the processor.
const STRIDE: usize = 7919;

fn name(at: usize) -> ResourceName {
    format!("cluster-{at:06}").as_str().into()
}

/// Returns a reporter that is asked for all clusters, and its entries.
fn reporter(n: usize) -> (Reporter, Vec<Entry>) {
    let mut reporter = Reporter::new(Config::new(Node::new("n")));
    reporter.handle_open();
    reporter.poll_transmit(Instant::EPOCH);
    let all = Response { send_all_clusters: true, ..Response::default() };
    reporter.handle_response(Instant::EPOCH, all).expect("a good response");
    let entries = (0..n).map(|at| reporter.entry(Instant::EPOCH, name(at), "").expect("room")).collect();
    (reporter, entries)
}

fn place() -> Place {
    Place::new(Locality { region: "region".into(), zone: "zone".into(), sub_zone: String::new() })
}

/// L1: a call is added to one of many entries.
pub struct Add {
    reporter: Reporter,
    entries: Vec<Entry>,
    place: Place,
    at: usize,
}

impl Add {
    pub fn new(n: usize) -> Self {
        let ((mut reporter, entries), place) = (reporter(n), place());
        for entry in &entries {
            reporter.add(entry, &place, Counts::succeeded(1)).expect("an entry");
        }
        Self { reporter, entries, place, at: 0 }
    }
}

impl Work for Add {
    type Input = ();
    type Output = ();

    fn prepare(&mut self) {}

    fn run(&mut self, (): ()) {
        for _ in 0..TIMES {
            self.at = (self.at + STRIDE) % self.entries.len();
            let entry = &self.entries[self.at];
            self.reporter.add(entry, &self.place, Counts::succeeded(1)).expect("an entry");
        }
    }
}

/// The floor of L1: a counter in a map by name.
pub struct LookUp {
    counters: HashMap<ResourceName, u64>,
    names: Vec<ResourceName>,
    at: usize,
}

impl LookUp {
    pub fn new(n: usize) -> Self {
        Self { counters: (0..n).map(|at| (name(at), 0)).collect(), names: (0..n).map(name).collect(), at: 0 }
    }
}

impl Work for LookUp {
    type Input = ();
    type Output = ();

    fn prepare(&mut self) {}

    fn run(&mut self, (): ()) {
        for _ in 0..TIMES {
            self.at = (self.at + STRIDE) % self.names.len();
            *self.counters.get_mut(&self.names[self.at]).expect("a counter") += 1;
        }
    }
}

/// L2: an idle entry with one locality of its own, without the bytes of its names.
pub fn idle_entry(n: usize) -> Row {
    let before = alloc::live();
    let (mut reporter, entries) = reporter(n);
    for entry in &entries {
        reporter.add(entry, &place(), Counts::succeeded(1)).expect("an entry");
    }
    drop(entries);
    let names = name(0).as_str().len() + "region".len() + "zone".len();
    let bytes = (alloc::live() - before) as f64 / n as f64 - names as f64;
    drop(reporter);
    Row { bytes, ratio: bytes / 400.0, ..Row::new("L2", n, 0, 0) }
}

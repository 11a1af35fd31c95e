//! What must hold after each step. Written from the specification, with a memory of its own: it reads no machine.

mod client;
mod server;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use xds_machine::model::{Label, Relabel};
use xds_machine::{Nonce, ResourceName, Version};

use super::time::A_WHILE;
use super::{Application, Made, resource, stands_for};

/// Whether a response was accepted, and the versions of which one was the last accepted by then.
type Judged = (bool, BTreeSet<Version>);

/// One type's memory.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
struct Memory {
    // The client's side of the stream.
    /// A request was sent.
    asked: bool,
    /// A name was sent.
    named: bool,
    /// Responses that the client read and did not answer, in order, with the verdict and what may have
    /// been accepted by then.
    unanswered: VecDeque<(Nonce, Version, Option<Judged>)>,
    /// The last nonce that the client read.
    read: Option<Nonce>,
    /// The version of the last response that was accepted whole. More than one if the stream broke before the answer
    /// to a response that was accepted unseen.
    accepted: BTreeSet<Version>,
    /// Responses with heartbeats that the client read and did not look at yet.
    beats: VecDeque<Beats>,
    /// Those in which it found a fault.
    faulty: BTreeSet<Nonce>,
    /// What expired on this stream and did not come since: the server knows nothing of it.
    lapsed: BTreeSet<ResourceName>,

    // The server's side.
    /// A heartbeat may be due.
    due: bool,
    /// How much time passed since the client answered last, while something was under way.
    busy: Duration,
    /// That was too much on this stream: a heartbeat may come late.
    late: bool,
    /// All came to rest on this stream, so that the server had time to say that what the client has lives on.
    spoke: bool,
    /// The response that waits for an answer.
    out: Option<Out>,
    sent: Option<Nonce>,
    /// What the client rejected, and how often it may be sent again though nothing changed.
    rejected: BTreeMap<ResourceName, Rejected>,
    /// The same of a response of a full-state type as a whole.
    rejected_whole: Option<(BTreeMap<ResourceName, u8>, u32)>,
    /// What the requests up to now add up to.
    listed: BTreeSet<ResourceName>,
    /// The server was told a name; in delta: anything.
    named_to_server: bool,
    /// Something was asked for since the last response.
    asked_since: bool,
    /// The first request said what the client has.
    claimed: bool,
    /// What the client was sent, as far as it was not taken back.
    delivered: BTreeMap<ResourceName, u8>,
    /// What changed since it was delivered.
    unseen: BTreeSet<ResourceName>,
    /// Endpoints that have to go again.
    cold: BTreeSet<ResourceName>,
    /// What changed or was asked for since it was sent: a reason to send it.
    reasons: BTreeSet<ResourceName>,
}

/// A response that waits for an answer.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Out {
    nonce: Nonce,
    resources: BTreeMap<ResourceName, u8>,
    /// What was sent for no other reason than that it had been rejected, and how often that may happen again.
    again: BTreeMap<ResourceName, u32>,
    /// The same of all of it.
    again_whole: Option<u32>,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Rejected {
    content: u8,
    retries: u32,
}

/// The heartbeats of a response.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Beats {
    nonce: Nonce,
    versions: BTreeMap<ResourceName, Version>,
}

/// What the server said, apart from what had to be said.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told {
    /// Endpoints went again that a cluster was waiting for.
    pub warm: bool,
    /// That something lives on.
    pub beats: bool,
    /// What was rejected and did not change went again.
    pub again: bool,
}

impl Memory {
    /// Whether a name is wanted as far as the server can know.
    fn server_wants(&self, name: &ResourceName, content: Option<u8>) -> bool {
        covers(&self.listed, name, content)
    }
}

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Ghost {
    types: Vec<Memory>,
    up: bool,
    requests: u64,
    /// Time went by since the stream began.
    aged: bool,
}

impl Ghost {
    pub fn new(types: usize) -> Self {
        Self { types: vec![Memory::default(); types], up: false, requests: 0, aged: false }
    }

    pub fn open(&mut self, apps: &[Application]) {
        assert!(!self.up, "one stream at a time");
        (self.up, self.aged) = (true, false);
        for (memory, app) in self.types.iter_mut().zip(apps) {
            if app.wanted.is_empty() && app.judging.is_none() || memory.accepted.is_empty() {
                memory.accepted = BTreeSet::from([Version::default()]); // of what nobody wants, nothing is remembered
            }
        }
    }

    pub fn close(&mut self) {
        self.up = false;
        self.requests = 0;
        for memory in &mut self.types {
            let unseen = memory.unanswered.iter().filter(|(.., verdict)| verdict.is_none());
            let mut accepted = memory.accepted.clone();
            accepted.extend(unseen.map(|(_, version, _)| version.clone()));
            *memory = Memory { accepted, ..Memory::default() };
        }
    }

    /// Time passed: that of a heartbeat may have come.
    pub fn is_due(&mut self) {
        self.types.iter_mut().for_each(|memory| memory.due = true);
    }

    pub fn time_passes(&mut self, passed: Duration, idle: bool) {
        self.aged |= self.up && !passed.is_zero();
        for memory in &mut self.types {
            memory.busy = if idle { Duration::ZERO } else { memory.busy + passed };
            memory.late |= memory.busy > A_WHILE;
            memory.spoke |= idle;
        }
    }

    pub fn expire(&mut self, t: usize, names: &[ResourceName]) {
        if self.up {
            self.types[t].lapsed.extend(names.iter().cloned());
        }
    }

    pub fn has_lapsed(&self, t: usize, name: &ResourceName) -> bool {
        self.types[t].lapsed.contains(name)
    }

    /// Whether the server must have said that a resource lives on, as it was sent last.
    pub fn lives(&self, t: usize, name: &ResourceName) -> bool {
        let memory = &self.types[t];
        self.up
            && memory.spoke
            && !memory.late
            && !memory.rejected.contains_key(name)
            && memory.rejected_whole.is_none()
    }

    pub fn check_settled(&self, t: usize) {
        assert!(self.types[t].unanswered.is_empty(), "type {t}: every response is answered");
        assert!(self.types[t].cold.is_empty(), "type {t}: clusters wait for {:?}", self.types[t].cold);
    }
}

fn version_of(setup: &Made, name: &ResourceName, content: u8) -> Version {
    resource(setup, name, content).version().clone()
}

/// Whether one of these names stands for another.
fn covers(names: &BTreeSet<ResourceName>, name: &ResourceName, content: Option<u8>) -> bool {
    names.iter().any(|wanted| stands_for(wanted, name, content))
}

impl Relabel for Ghost {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        for memory in &mut self.types {
            memory.unanswered.iter_mut().for_each(|(nonce, ..)| nonce.relabel(by));
            memory.read.relabel(by);
            memory.out.iter_mut().for_each(|out| out.nonce.relabel(by));
            memory.sent.relabel(by);
            memory.beats.iter_mut().for_each(|beats| beats.nonce.relabel(by));
            memory.faulty = std::mem::take(&mut memory.faulty)
                .into_iter()
                .map(|mut nonce| {
                    nonce.relabel(by);
                    nonce
                })
                .collect();
        }
    }
}

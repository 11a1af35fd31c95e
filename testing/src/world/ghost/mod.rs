//! The checks after each step. Written from the specification, with a memory of its own: no machine is read.

mod absence;
mod client;
mod cost;
mod delivery;
mod features;
mod hunger;
mod needless;
mod outs;
mod response;
mod revision;
mod server;
mod waiting;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use xds_machine::model::{Label, Relabel};
use xds_machine::{Instant, Nonce, ResourceName, Version};

use super::{Application, Made, resource, stands_for};

/// A response that the client read and did not answer.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Unanswered {
    nonce: Nonce,
    version: Version,
    /// The names of its contents.
    names: BTreeSet<ResourceName>,
    /// Whether it was accepted, and the version of the last accepted response at that time.
    verdict: Option<(bool, Version)>,
}

/// The memory of one type.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
struct Memory {
    // The client's side of the stream.
    /// A request was sent.
    asked: bool,
    /// A name was sent.
    named: bool,
    /// Responses that the client read and did not answer, in order. Of those without a verdict the client processed the
    /// ones up to the response of the update that is judged, merged into one, and the others wait.
    unanswered: VecDeque<Unanswered>,
    /// The last nonce that the client read.
    read: Option<Nonce>,
    /// The version of the last completely accepted response.
    accepted: Version,
    /// Responses with heartbeats that the client read and did not process yet.
    beats: VecDeque<Beats>,
    /// Responses in which the client found a fault.
    faulty: BTreeSet<Nonce>,
    /// The names that the requests subscribe to.
    requested: BTreeSet<ResourceName>,
    /// The names that all requests of the stream subscribe to (SotW).
    from_start: BTreeSet<ResourceName>,
    /// The version that the next stream has to claim, and for which names at most.
    claimable: Option<(Version, BTreeSet<ResourceName>)>,
    /// The names about which the application asked for something since the last request.
    mentioned: BTreeSet<ResourceName>,

    /// The names that the store has had ever since the server read the request for them, until the application has the
    /// answer.
    promised: BTreeSet<ResourceName>,

    // The server's side.
    /// The names whose removal was sent, and which did not change since.
    told_gone: BTreeSet<ResourceName>,
    /// The names whose error was sent, and which did not change since.
    told_errors: BTreeSet<ResourceName>,
    /// A heartbeat may be due.
    due: bool,
    /// Resources that were absent or unknown since the client read a response with them: no heartbeat of them was due.
    /// `true`: the server sent such a response, and the client did not read it.
    silent: BTreeMap<ResourceName, bool>,
    /// The responses in flight, the oldest first.
    outs: Vec<Out>,
    sent: Option<Nonce>,
    /// The content that the client rejected, and that is not sent again without a change.
    rejected: BTreeMap<ResourceName, u8>,
    /// The same for a complete response of a full-state type.
    rejected_whole: Option<BTreeMap<ResourceName, u8>>,
    /// The content that the client rejected last, and did not accept since.
    refused: BTreeMap<ResourceName, u8>,
    /// The number of rejected responses, up to more than a server keeps apart.
    rejections: u8,
    /// The sum of the requests so far.
    listed: BTreeSet<ResourceName>,
    /// The server received a name; in delta: any request.
    named_to_server: bool,
    /// A name was requested since the last response.
    asked_since: bool,
    /// The first request claimed versions.
    claimed: bool,
    /// In delta with limited responses, the wildcard, a collection or an alias was subscribed to again: the server may
    /// repeat removals of before, which are deferred too.
    resubscribed: bool,
    /// The resources that were sent to the client and not removed.
    delivered: BTreeMap<ResourceName, u8>,
    /// The resources that changed since they were delivered.
    unseen: BTreeSet<ResourceName>,
    /// The resources that were sent on this stream.
    had: BTreeSet<ResourceName>,
    /// The resources that were absent or unknown at some time since they were sent last.
    gone: BTreeSet<ResourceName>,
    deferral: Deferral,
    /// Two responses with content were in flight at once: what is said of the delivery of their resources is not checked.
    several: bool,
    /// Time has passed since the server had nothing left to send.
    time_passed: bool,
    /// The resources that were unknown at some time since they were absent.
    doubted: BTreeSet<ResourceName>,
    /// Endpoints that must be sent again.
    cold: BTreeSet<ResourceName>,
    /// The resources that changed or were requested since they were sent: the reasons to send them.
    reasons: BTreeSet<ResourceName>,
}

/// Whether the server may defer removals of resources that the client has.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
enum Deferral {
    /// No resource of the client was removed since the server looked at the store and found none that is.
    #[default]
    None,
    Waits,
    /// Time has passed, and the server need not wait any longer.
    Over,
}

/// A response in flight.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Out {
    nonce: Nonce,
    version: Version,
    /// The time until which it holds back the next response; `None` for heartbeats alone.
    until: Option<Instant>,
    resources: BTreeMap<ResourceName, u8>,
    beats: BTreeSet<ResourceName>,
    removed: BTreeSet<ResourceName>,
}

/// The heartbeats of a response.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Beats {
    nonce: Nonce,
    resources: BTreeMap<ResourceName, (Version, Option<Duration>)>,
}

/// Optional parts of a server's response.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told {
    /// Endpoints that a cluster was waiting for were sent again.
    pub warm: bool,
    /// A heartbeat was sent.
    pub beats: bool,
}

impl Memory {
    /// Returns whether a name is subscribed to as far as the server can know.
    fn server_wants(&self, name: &ResourceName, content: Option<u8>) -> bool {
        covers(&self.listed, name, content)
    }
}

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Ghost {
    types: Vec<Memory>,
    up: bool,
    requests: u64,
    cost: cost::Cost,
    hunger: hunger::Hunger,
    revisions: revision::Revisions,
    /// Time passed since the stream began.
    aged: bool,
}

impl Ghost {
    pub fn new(types: usize) -> Self {
        Self {
            types: vec![Memory::default(); types],
            up: false,
            requests: 0,
            cost: cost::Cost::default(),
            hunger: hunger::Hunger::default(),
            revisions: revision::Revisions::default(),
            aged: false,
        }
    }

    pub fn open(&mut self, apps: &[Application]) {
        assert!(!self.up, "one stream at a time");
        (self.up, self.aged) = (true, false);
        for (memory, app) in self.types.iter_mut().zip(apps) {
            if app.wanted.is_empty() && app.judging.is_none() {
                memory.accepted = Version::default(); // nothing is remembered of an unsubscribed type
            }
        }
    }

    pub fn close(&mut self, apps: &[Application]) {
        self.up = false;
        self.requests = 0;
        self.cost = cost::Cost::default();
        self.hunger = hunger::Hunger::default();
        self.new_stream();
        for (memory, app) in self.types.iter_mut().zip(apps) {
            let accepted = std::mem::take(&mut memory.accepted);
            let is_judged = |nonce: &Nonce| app.judging.as_ref().is_some_and(|update| update.nonce() == nonce);
            memory.faulty.retain(is_judged);
            let faulty = std::mem::take(&mut memory.faulty);
            let claimable = memory.claimable.take();
            let (silent, doubted) = (std::mem::take(&mut memory.silent), std::mem::take(&mut memory.doubted));
            *memory = Memory { accepted, faulty, silent, doubted, claimable, ..Memory::default() };
        }
    }

    /// Records that time passed: a heartbeat may be due.
    pub fn is_due(&mut self) {
        self.types.iter_mut().for_each(|memory| memory.due = true);
    }

    pub fn time_passes(&mut self, passed: Duration) {
        self.aged |= self.up && !passed.is_zero();
        for memory in &mut self.types {
            memory.time_passed |= !passed.is_zero();
            if memory.deferral == Deferral::Waits && !passed.is_zero() {
                memory.deferral = Deferral::Over;
            }
            memory.may_repeat(); // a time-out may ask once more
        }
    }

    pub fn expire(&mut self, t: usize, names: &[ResourceName]) {
        names.iter().for_each(|name| self.types[t].mention(name));
    }

    /// Returns whether a resource must not expire: the server has sent it as the client has it.
    pub fn lives(&self, t: usize, name: &ResourceName) -> bool {
        let memory = &self.types[t];
        self.up
            && memory.sent.is_some()
            && !memory.silent.contains_key(name)
            && !memory.rejected.contains_key(name)
            && memory.rejected_whole.is_none()
    }

    /// Returns whether the client rejected a response with a resource: its content is not sent again before it changes.
    pub fn is_rejected(&self, t: usize, name: &ResourceName) -> bool {
        let memory = &self.types[t];
        memory.rejected.contains_key(name) || memory.rejected_whole.is_some() || memory.several
    }

    /// Returns whether a response of any type is unanswered, as far as the server knows.
    pub fn is_any_out(&self) -> bool {
        self.types.iter().any(|memory| !memory.outs.is_empty())
    }

    pub fn check_settled(&self, t: usize) {
        assert!(self.types[t].unanswered.is_empty(), "type {t}: every response is answered");
        assert!(self.types[t].cold.is_empty(), "type {t}: clusters wait for {:?}", self.types[t].cold);
    }
}

fn version_of(setup: &Made, name: &ResourceName, content: u8) -> Version {
    resource(setup, name, content).version().clone()
}

/// Returns whether one of these names selects another.
fn covers(names: &BTreeSet<ResourceName>, name: &ResourceName, content: Option<u8>) -> bool {
    names.iter().any(|wanted| stands_for(wanted, name, content))
}

impl Relabel for Ghost {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.hunger.relabel(by);
        for memory in &mut self.types {
            memory.unanswered.iter_mut().for_each(|unanswered| unanswered.nonce.relabel(by));
            memory.read.relabel(by);
            for out in &mut memory.outs {
                out.nonce.relabel(by);
                out.until.relabel(by);
            }
            memory.sent.relabel(by);
            memory.beats.iter_mut().for_each(|beats| beats.nonce.relabel(by));
            let faulty = std::mem::take(&mut memory.faulty).into_iter().map(|mut nonce| {
                nonce.relabel(by);
                nonce
            });
            memory.faulty = faulty.collect();
        }
    }
}

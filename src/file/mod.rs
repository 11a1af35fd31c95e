//! Resources from files: the third way to subscribe, beside streams and polls (`path_config_source`).
//!
//! A file holds one `DiscoveryResponse` of one type. The driver reads it at the start, and whenever an entry was moved
//! into place; nothing is sent. [`Files`] decides when to read, and handles the content. The path, the watch and the
//! format are the driver's.
//!
//! ```text
//!   subscribe ──►┌─────────┐──► Read ───────► the driver reads and decodes
//! handle_moved ─►│  Files  │◄── handle_content ◄──┘
//!      retry  ──►│         │──► Client(Apply(update)) ──► the application
//!                └─────────┘◄── handle_verdict ◄─────────┘
//! ```
//!
//! - Only moves count: a file that is written in place can be seen half-written (R-FS-02). With a watched directory, a
//!   move of any entry into it counts, such as the swap of a symbolic link by Kubernetes (R-FS-03). A driver whose
//!   watch has lost events reports a move (R-FS-15).
//! - A file that can't be read, or that is rejected, changes nothing: the accepted resources stay (R-FS-07).
//! - A rejected file is not read again by itself. A file that depends on another, as listeners depend on clusters, is
//!   judged again after [`retry`](Files::retry) (R-FS-09).
//!
//! ```
//! use xds_machine::client::{self, Config};
//! use xds_machine::file::{Action, Files};
//! use xds_machine::message::{Any, Node, sotw};
//! use xds_machine::{Instant, type_url};
//!
//! let now = Instant::EPOCH;
//! let mut files = Files::new(Config::new(Node::new("me")), type_url::CLUSTER);
//! files.subscribe(["*"])?;
//! assert_eq!(files.poll_action(), Some(Action::Read));
//!
//! let c = Any { type_url: type_url::CLUSTER.into(), value: (&b"\x0a\x01c"[..]).into() };
//! let content = sotw::Response {
//!     version: "1".into(),
//!     resources: vec![sotw::Item::Bare(c)],
//!     type_url: type_url::CLUSTER.into(),
//!     nonce: "".into(),
//!     control_plane: String::new(),
//!     errors: vec![],
//! };
//! files.handle_content(now, Ok(content))?;
//! let Some(Action::Client(client::Action::Apply(update))) = files.poll_action() else { panic!("an update") };
//! files.handle_verdict(now, update.accept())?;
//!
//! // The file is gone: that is no news of its resources.
//! files.handle_moved();
//! assert_eq!(files.poll_action(), Some(Action::Read));
//! files.handle_content(now, Err("no such file".into()))?;
//! assert_eq!(files.client().states().count(), 2, "the wildcard, and the cluster that it brought");
//! # Ok::<(), xds_machine::Misuse>(())
//! ```

use alloc::string::String;

use crate::client::{self, Client, Config, Verdict};
use crate::ensure::ensure;
use crate::error::Misuse;
use crate::fetch::{Fetch, Outcome};
use crate::message::sotw;
use crate::model::{Label, Relabel};
use crate::name::{ResourceName, TypeUrl};
use crate::queue::Queue;
use crate::time::Instant;
use crate::variant::Sotw;

/// A report of [`Files`] to its driver.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// Read the file, and call [`Files::handle_content`].
    Read,
    /// An action of a client on a stream: an update to judge, a file that is rejected, and so on. A file that can't be
    /// read counts as rejected (R-FS-06).
    Client(client::Action),
}

/// The numbers of reads so far, by outcome, as Envoy counts them (R-FS-06).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Counters {
    /// Reads.
    pub attempts: u64,
    /// Files that were accepted, also if their content was the same as before (R-FS-04).
    pub successes: u64,
    /// Files that were read and not accepted.
    pub rejected: u64,
    /// Files that could not be read or parsed.
    pub failures: u64,
}

/// The subscription of one type that is read from a file.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Files {
    fetch: Fetch,
    phase: Phase,
    /// Whether the file was moved since the last [`Action::Read`].
    moved: bool,
    actions: Queue<Action>,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Phase {
    Idle,
    Reading,
    Judging,
}

impl Files {
    /// Creates a subscription without names. Whether there is a file is not checked (R-FS-14).
    pub fn new(config: Config, type_url: impl Into<TypeUrl>) -> Self {
        let fetch = Fetch::new(config, type_url.into());
        let (phase, actions, counters) = (Phase::Idle, Queue::new(), Counters::default());
        Self { fetch, phase, moved: false, actions, counters }
    }

    // Subscriptions.

    /// Subscribes to these resources of the file; [`WILDCARD`](crate::WILDCARD) stands for all. New names make the
    /// driver read the file (R-FS-01); other resources of the file are ignored (R-FS-10).
    ///
    /// # Errors
    ///
    /// Those of [`ResourcesMut::subscribe`](client::ResourcesMut::subscribe).
    pub fn subscribe(&mut self, names: impl IntoIterator<Item = impl Into<ResourceName>>) -> Result<(), Misuse> {
        if self.fetch.subscribe(names)? {
            self.handle_moved();
        }
        Ok(())
    }

    /// Unsubscribes from these resources. If none is left, the file is not read.
    pub fn unsubscribe(&mut self, names: impl IntoIterator<Item = impl Into<ResourceName>>) {
        self.fetch.unsubscribe(names);
    }

    // Events.

    /// Reports that the file was moved into place, or may have been: an entry was moved into the watched directory, or
    /// events were lost. While the last content is read or judged, the file is read once more afterwards (R-FS-16).
    pub fn handle_moved(&mut self) {
        self.moved = true;
        self.go_on();
    }

    /// Reads the file again, because something that its resources depend on has changed (R-FS-09). The same as a move.
    pub fn retry(&mut self) {
        self.handle_moved();
    }

    /// Takes the content of the file, or the reason why it can't be read or parsed. Content without an [`Action::Read`]
    /// is ignored.
    ///
    /// # Errors
    ///
    /// [`Misuse::ActionsWaiting`] if too many actions wait to be polled; the machine is unchanged.
    pub fn handle_content(&mut self, now: Instant, content: Result<sotw::Response, String>) -> Result<(), Misuse> {
        if self.phase != Phase::Reading {
            return Ok(());
        }
        let limit = self.client().config().limits().waiting_actions;
        if self.actions.len() >= limit {
            return Err(Misuse::ActionsWaiting { limit });
        }
        if self.fetch.ask().is_none() {
            self.phase = Phase::Idle; // nothing is wanted any more
            return Ok(());
        }
        let is_readable = content.is_ok();
        let Self { fetch, actions, .. } = self;
        let outcome = fetch.take(now, content, &mut |action| actions.push(Action::Client(action)))?;
        if is_readable {
            self.conclude(outcome);
        } else {
            self.counters.failures += 1;
            self.phase = Phase::Idle;
            self.go_on();
        }
        Ok(())
    }

    /// Reports that there is nothing to read, or nothing new in the file: accepted resources stay, and nothing is
    /// rejected. For a driver that knows the content of the last read.
    pub fn handle_unchanged(&mut self) {
        if self.phase == Phase::Reading {
            self.phase = Phase::Idle;
            self.go_on();
        }
    }

    /// Takes the application's verdict on an update.
    ///
    /// # Errors
    ///
    /// [`Misuse::UnknownUpdate`] if the update had a verdict already, or belongs to another machine.
    pub fn handle_verdict(&mut self, now: Instant, verdict: Verdict) -> Result<(), Misuse> {
        let Self { fetch, actions, .. } = self;
        let outcome = fetch.verdict(now, verdict, &mut |action| actions.push(Action::Client(action)))?;
        self.conclude(outcome);
        Ok(())
    }

    /// Handles TTLs that ran out. A file has no other time-outs (R-FS-08).
    pub fn handle_timeout(&mut self, now: Instant) {
        let Self { fetch, actions, .. } = self;
        fetch.timeout(now, &mut |action| actions.push(Action::Client(action)));
    }

    // Work to do.

    /// Returns the next action.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop()
    }

    /// Returns the time at which [`handle_timeout`](Self::handle_timeout) is to be called, if a TTL runs.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.fetch.next_timeout()
    }

    // Queries.

    /// Returns the client behind the file, to query the names and the state of each resource.
    pub fn client(&self) -> &Client<Sotw> {
        self.fetch.client()
    }

    /// Returns the type of the resources.
    pub fn type_url(&self) -> &TypeUrl {
        self.fetch.type_url()
    }

    /// Returns the numbers of reads so far, by outcome.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Checks the invariants of the machine, for tests, fuzz targets and custom models.
    ///
    /// # Errors
    ///
    /// The violated invariant, which is a bug in this crate.
    pub fn check_invariants(&self) -> Result<(), String> {
        self.client().check_invariants()?;
        let judging = self.phase == Phase::Judging;
        ensure!(judging == self.fetch.is_judged(), "an update is out, or not, in phase {:?}", self.phase);
        let idle = self.phase == Phase::Idle && self.fetch.is_wanted();
        ensure!(!idle || !self.moved, "the file was moved, and nobody reads it");
        Ok(())
    }

    // Private.

    fn conclude(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Judging => {
                self.phase = Phase::Judging;
                return;
            }
            Outcome::Accepted => self.counters.successes += 1,
            Outcome::Rejected => self.counters.rejected += 1,
        }
        self.phase = Phase::Idle;
        self.go_on();
    }

    fn go_on(&mut self) {
        if self.phase == Phase::Idle && self.moved && self.fetch.is_wanted() {
            self.phase = Phase::Reading;
            self.moved = false;
            self.counters.attempts += 1;
            self.actions.push(Action::Read);
        }
    }
}

impl Relabel for Files {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.fetch.relabel(by);
        for action in self.actions.iter_mut() {
            if let Action::Client(action) = action {
                action.relabel(by);
            }
        }
        let Counters { attempts, successes, rejected, failures } = &mut self.counters;
        [attempts, successes, rejected, failures].into_iter().for_each(|count| by(Label::Count(count)));
    }
}

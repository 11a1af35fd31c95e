//! A world of load reports: a reporter, a collector for each stream, and a transport that takes a report, gives it
//! back, or loses it with the stream. The expectations (`ghost.rs`) are kept without reading the machines.

mod bug;
mod ghost;

use std::time::Duration;

pub use bug::Bug;
use ghost::{Ghost, Row};
use xds_machine::load::{
    Action, Call, Collector, CollectorConfig, Config, Counts, Entry, Outcome, Place, Reporter, Request, Response,
    SEND_ALL_CLUSTERS, Selection,
};
use xds_machine::message::Node;
use xds_machine::{Instant, ResourceName};

use crate::search::Model;

/// The clusters of the client.
pub const CLUSTERS: [&str; 2] = ["a", "b"];

/// The time that passes in a step, and the shortest interval.
const SECOND: Duration = Duration::from_secs(1);

/// A step of the protocol or of the environment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    // Protocol steps.
    /// A stream opens.
    Open,
    /// The client makes a message, and the transport takes it.
    Send,
    /// The server reads a message.
    Receive,
    /// The server answers.
    Answer,
    /// The client reads the answer.
    Hear,
    /// The client ends a stream that it does not need any more.
    Finish,

    // Environment steps.
    /// Time passes.
    Tick,
    /// A call starts and ends well, in the cluster of this number.
    Call(usize),
    /// A call starts.
    Start(usize),
    /// The oldest call in progress fails.
    End,
    /// A call is dropped.
    Drop(usize),
    /// The client releases its handle to the cluster of this number, or gets one again.
    Toggle(usize),
    /// The server chooses the selection of this number.
    Select(usize),
    /// The transport gives the last message back, unless it was read.
    Unsent,
    /// The stream is lost, and the message with it.
    Cut,
    /// The stream is lost, and the transport gives the message back.
    CutUnsent,
    /// The client stops.
    Stop,
}

/// How often each event may happen.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[allow(missing_docs, reason = "the names are those of the steps")]
pub struct Budget {
    pub ticks: u8,
    pub calls: u8,
    pub starts: u8,
    pub drops: u8,
    pub toggles: u8,
    pub selects: u8,
    pub unsent: u8,
    pub cuts: u8,
    pub stops: u8,
}

/// No events.
pub const NONE: Budget =
    Budget { ticks: 0, calls: 0, starts: 0, drops: 0, toggles: 0, selects: 0, unsent: 0, cuts: 0, stops: 0 };

/// The shape of a world.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The events of the environment.
    pub budget: Budget,
    /// Whether the client takes `send_all_clusters`.
    pub takes_all: bool,
    /// The selections that the server chooses from; the first is chosen at the beginning.
    pub selections: &'static [Asked],
    /// The defect, if any.
    pub bug: Option<Bug>,
}

/// A selection: the clusters by number, `None` for all; and the interval in seconds.
pub type Asked = (Option<&'static [usize]>, u64);

/// The complete state.
#[derive(Clone, Hash)]
pub struct World {
    reporter: Reporter,
    /// The server's side of the open stream.
    collector: Option<Collector>,
    entries: [Option<Entry>; 2],
    calls: Vec<(usize, Call)>,
    /// The message that the transport has taken, and the server has not read.
    up: Option<Request>,
    down: Option<Response>,
    selected: usize,
    now: Instant,
    ghost: Ghost,
    budget: Budget,
    stopped: bool,
    bug: Option<Bug>,
    selections: Selections,
}

/// The selections to choose from. They never change, so they are no part of a state.
#[derive(Clone, Copy)]
struct Selections(&'static [Asked]);

impl std::hash::Hash for Selections {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

fn place() -> Place {
    Place::default()
}

impl World {
    /// Creates a world without a stream.
    pub fn new(setup: Setup) -> Self {
        let mut config = Config::new(Node::new("n"));
        config = bug::configure(setup.bug, config);
        let mut reporter = Reporter::new(config);
        let now = Instant::EPOCH;
        let entries = CLUSTERS.map(|cluster| Some(reporter.entry(now, cluster, "").expect("room")));
        Self {
            reporter,
            collector: None,
            entries,
            calls: Vec::new(),
            up: None,
            down: None,
            selected: 0,
            now,
            ghost: Ghost::new(setup.takes_all),
            budget: setup.budget,
            stopped: false,
            bug: setup.bug,
            selections: Selections(setup.selections),
        }
    }

    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    fn selection(&self) -> Selection {
        let (clusters, seconds) = self.selections.0[self.selected];
        let interval = Duration::from_secs(seconds);
        match clusters {
            None => Selection::all(interval).or_clusters([CLUSTERS[0]]),
            Some(clusters) => Selection::clusters(interval, clusters.iter().map(|at| CLUSTERS[*at])),
        }
    }

    fn is_open(&self) -> bool {
        self.collector.is_some()
    }

    /// Returns what the reporter would send now.
    fn next_message(&self) -> Option<Request> {
        self.reporter.clone().poll_transmit(self.now)
    }

    fn close(&mut self) {
        self.reporter.handle_close();
        if self.has(Bug::ForgetsAtClose) {
            self.reporter = Reporter::new(Config::new(Node::new("n")));
            self.entries = CLUSTERS.map(|cluster| Some(self.reporter.entry(self.now, cluster, "").expect("room")));
            self.calls.clear();
        }
        if let Some(lost) = self.up.take() {
            self.ghost.lost(&lost);
        }
        (self.collector, self.down) = (None, None);
        self.ghost.close();
    }

    fn send(&mut self) {
        let request = self.reporter.poll_transmit(self.now).expect("a step that can be taken");
        let request = bug::sent(self.bug, request);
        self.ghost.report(self.now, self.stopped, &request);
        self.up = Some(request);
    }

    fn receive(&mut self) {
        let (Some(mut request), Some(collector)) = (self.up.take(), &mut self.collector) else {
            panic!("a step that can be taken")
        };
        if let Some(node) = request.node.take() {
            // The feature is that of the setup, because the client's node does not have it.
            let node = Node::clone(&node);
            let features = if self.ghost.takes_all { vec![SEND_ALL_CLUSTERS.into()] } else { vec![] };
            request.node = Some(Node { client_features: features, ..node }.into());
        }
        collector.handle_request(request).expect("a good message");
        let mut chosen = false;
        while let Some(action) = collector.poll_action() {
            match action {
                Action::Node(_) => chosen = true,
                Action::Report(report) => self.ghost.received(&report),
                Action::Close => panic!("the stream ends unasked"),
            }
        }
        self.ghost.totals(self.collector.as_ref().expect("open").totals());
        if chosen {
            self.choose();
        }
    }

    /// Sets the selection of the collector, which may end the stream.
    fn choose(&mut self) {
        let selection = self.selection();
        let Some(collector) = &mut self.collector else { return };
        collector.set_selection(Some(selection));
        match collector.poll_action() {
            None => {}
            Some(Action::Close) => self.close(),
            Some(action) => panic!("{action:?}"),
        }
    }

    fn answer(&mut self) {
        let collector = self.collector.as_mut().expect("a step that can be taken");
        let response = collector.poll_transmit().expect("a step that can be taken");
        let response = bug::answered(self.bug, response);
        self.ghost.answer(&response);
        self.down = Some(response);
    }

    fn hear(&mut self) {
        let response = self.down.take().expect("a step that can be taken");
        self.ghost.hear(self.now, self.stopped, &response);
        for response in bug::heard(self.bug, response) {
            self.reporter.handle_response(self.now, response).expect("a good response");
        }
    }

    fn call(&mut self, at: usize) {
        let entry = self.entries[at].clone().expect("a step that can be taken");
        self.reporter.add(&entry, &place(), Counts::succeeded(1)).expect("an entry");
        self.ghost.count(at, Row { issued: 1, ok: 1, ..Row::default() });
    }

    fn start(&mut self, at: usize) {
        let entry = self.entries[at].clone().expect("a step that can be taken");
        let call = self.reporter.started(&entry, &place()).expect("an entry");
        self.calls.push((at, call));
        self.ghost.count(at, Row { issued: 1, ..Row::default() });
        self.ghost.in_progress[at] += 1;
    }

    fn end(&mut self) {
        let (at, call) = self.calls.remove(0);
        self.reporter.finished(call, Outcome::Error, []).expect("it was started");
        self.ghost.count(at, Row { error: 1, ..Row::default() });
        self.ghost.in_progress[at] -= 1;
        self.ghost.settle(at, self.entries[at].is_some());
    }

    fn drop(&mut self, at: usize) {
        let entry = self.entries[at].clone().expect("a step that can be taken");
        self.reporter.dropped(&entry, "x", 1).expect("an entry");
        if self.has(Bug::DropsAreCalls) {
            self.reporter.add(&entry, &place(), Counts::failed(1)).expect("an entry");
        }
        self.ghost.count(at, Row { dropped: 1, ..Row::default() });
    }

    fn toggle(&mut self, at: usize) {
        match self.entries[at].take() {
            Some(entry) => {
                if self.has(Bug::LosesTheLastCounts) && self.ghost.waits() {
                    bug::reset(&mut self.reporter, self.now);
                }
                self.reporter.release(entry).expect("a handle");
                self.ghost.settle(at, false);
            }
            None => {
                self.entries[at] = Some(self.reporter.entry(self.now, CLUSTERS[at], "").expect("room"));
                self.ghost.enter(self.now, at);
            }
        }
    }

    fn unsent(&mut self, request: Request) {
        self.ghost.unsent(&request);
        match self.bug {
            Some(Bug::LosesUnsent) => {}
            Some(Bug::GivesBackTwice) => {
                let mut twice = request.clone();
                twice.clusters.extend(request.clusters.clone());
                self.reporter.handle_unsent(twice).expect("it was under way");
            }
            _ => self.reporter.handle_unsent(request).expect("it was under way"),
        }
    }

    fn stop(&mut self) {
        self.stopped = true;
        self.ghost.stop();
        if self.has(Bug::NoLastReport) {
            self.reporter.handle_response(self.now, Response::default()).ok();
        }
        self.reporter.stop();
        self.reporter.stop();
    }
}

impl Model for World {
    type Step = Step;

    fn steps(&self, steps: &mut Vec<Step>) {
        let mut may = |can: bool, step| {
            if can {
                steps.push(step);
            }
        };
        let budget = &self.budget;
        may(!self.is_open() && self.reporter.wants_stream(), Step::Open);
        may(self.is_open() && self.up.is_none() && self.next_message().is_some(), Step::Send);
        may(self.is_open() && self.up.is_some(), Step::Receive);
        let answers = || self.collector.clone().is_some_and(|mut collector| collector.poll_transmit().is_some());
        may(self.down.is_none() && answers(), Step::Answer);
        may(self.down.is_some(), Step::Hear);
        may(self.is_open() && self.up.is_none() && !self.reporter.wants_stream(), Step::Finish);
        may(budget.ticks > 0, Step::Tick);
        for at in 0..CLUSTERS.len() {
            let used = self.entries[at].is_some();
            may(used && budget.calls > 0, Step::Call(at));
            may(used && budget.starts > 0, Step::Start(at));
            may(used && budget.drops > 0, Step::Drop(at));
            may(budget.toggles > 0, Step::Toggle(at));
        }
        may(!self.calls.is_empty(), Step::End);
        if budget.selects > 0 {
            (0..self.selections.0.len()).for_each(|at| may(at != self.selected, Step::Select(at)));
        }
        may(budget.unsent > 0 && self.up.is_some(), Step::Unsent);
        may(budget.cuts > 0 && self.is_open(), Step::Cut);
        may(budget.cuts > 0 && budget.unsent > 0 && self.up.is_some(), Step::CutUnsent);
        may(budget.stops > 0, Step::Stop);
    }

    fn is_own(step: Step) -> bool {
        matches!(step, Step::Open | Step::Send | Step::Receive | Step::Answer | Step::Hear | Step::Finish)
    }

    /// Returns whether the step may repeat: a server that asks for nothing ends the stream, and the client opens it
    /// again.
    fn may_repeat(step: Step) -> bool {
        step == Step::Open
    }

    fn take(&mut self, step: Step) {
        let budget = &mut self.budget;
        match step {
            Step::Tick => budget.ticks -= 1,
            Step::Call(_) => budget.calls -= 1,
            Step::Start(_) => budget.starts -= 1,
            Step::Drop(_) => budget.drops -= 1,
            Step::Toggle(_) => budget.toggles -= 1,
            Step::Select(_) => budget.selects -= 1,
            Step::Unsent => budget.unsent -= 1,
            Step::Cut => budget.cuts -= 1,
            Step::CutUnsent => (budget.cuts, budget.unsent) = (budget.cuts - 1, budget.unsent - 1),
            Step::Stop => budget.stops -= 1,
            _ => {}
        }
        match step {
            Step::Open => {
                self.reporter.handle_open();
                self.collector = Some(Collector::new(CollectorConfig::new()));
                self.ghost.open();
            }
            Step::Send => self.send(),
            Step::Receive => self.receive(),
            Step::Answer => self.answer(),
            Step::Hear => self.hear(),
            Step::Cut => self.close(),
            Step::Finish => {
                self.ghost.finish();
                self.close();
            }
            Step::CutUnsent => {
                let request = self.up.take().expect("a step that can be taken");
                self.close();
                self.unsent(request);
            }
            Step::Tick => self.now = self.now + SECOND,
            Step::Call(at) => self.call(at),
            Step::Start(at) => self.start(at),
            Step::End => self.end(),
            Step::Drop(at) => self.drop(at),
            Step::Toggle(at) => self.toggle(at),
            Step::Select(at) => {
                self.selected = at;
                self.choose();
            }
            Step::Unsent => {
                let request = self.up.take().expect("a step that can be taken");
                self.unsent(request);
            }
            Step::Stop => self.stop(),
        }
        let known: Vec<&ResourceName> = self.reporter.entries().map(|(cluster, _)| cluster).collect();
        self.ghost.entries(&known);
        self.ghost.conserves();
    }

    fn check_settled(&self) {
        assert!(self.stopped || self.is_open() == self.reporter.wants_stream(), "a stream while it is needed");
        let due = self.reporter.poll_timeout();
        let expected = self.ghost.due().filter(|_| !self.stopped);
        assert_eq!(due, expected, "a report is due in time if it is asked for");
    }

    fn canonicalize(&mut self) {}
}

//! A model of polls over REST: the client machine, the server's function, and a transport that loses requests and
//! answers, and that delivers answers too late.
//!
//! When nothing is left to do, and polls are answered with "not modified", the application has the resources of the
//! source, except for content that it rejected.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use xds_machine::client::{self, Rejection, ResourceStatus, Update};
use xds_machine::message::{Node, sotw};
use xds_machine::model::{Label, Relabel, canonical};
use xds_machine::poll::{self, Action, Answer, Asked, Offers, Poll, Question, Reply, Transmit};
use xds_machine::server::{self, Cache, Resource, Source};
use xds_machine::{Instant, ResourceName, TypeUrl, Version, type_url};

use crate::search::{self, Model, Report};

/// The names of the model.
const NAMES: [&str; 2] = ["a", "b"];

/// A bug of a shipped implementation, or one that this design avoids.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Bug {
    /// The server compares the version of the type, and does not look at the names (L-02).
    VersionOfType,
    /// The server answers a first poll with "not modified" if nothing exists (L-06).
    FirstNotModified,
    /// The server takes the current content for the content that a client rejected.
    RejectsTheCurrent,
    /// The server takes the last response for the one that a client rejected, though that response may be lost.
    RejectsTheLast,
    /// The server sends rejected content again at once.
    SendsRejectedAgain,
    /// The client sends the version of a response though it has unsubscribed from the resources since.
    KeepsVersion,
}

/// The events of the environment, and how often each may happen.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Budget {
    /// Changes of the source.
    pub changes: u8,
    /// Requests and answers that are lost, or late.
    pub losses: u8,
    /// Subscriptions and unsubscriptions.
    pub wishes: u8,
    /// Rejections.
    pub rejects: u8,
}

/// A step of the model.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// The client composes a request.
    Ask,
    /// The server answers the request.
    Serve,
    /// The answer reaches the client.
    Deliver,
    /// The application accepts the update.
    Accept,
    /// The time of the next poll has come.
    Due,
    /// The application rejects a resource of the update.
    Reject(u8),
    /// The source changes a resource: removes it, or gives it this content.
    Change(u8, u8),
    /// The connection breaks.
    Break,
    /// The client gives the request up.
    GiveUp,
    /// An answer to a request that was given up reaches the client.
    DeliverLate,
    /// The application subscribes to a resource, or unsubscribes from it.
    Wish(u8),
}

/// A state of the model.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Polling {
    of: TypeUrl,
    bug: Option<Bug>,
    budget: Budget,
    now: Instant,
    poll: Poll,
    out: Option<Update>,
    /// The contents of the source; 0 is none.
    store: [u8; 2],
    offers: Offers,
    request: Option<(Asked, sotw::Request)>,
    answer: Option<(Asked, Answer)>,
    /// The answer to a request that was given up.
    late: Option<(Asked, Answer)>,
    /// The contents that the application has.
    has: BTreeMap<ResourceName, u8>,
    /// The contents that the application rejected.
    rejected: BTreeSet<(ResourceName, u8)>,
    /// The version that was accepted last, for a client that does not forget it.
    accepted: Version,
    /// The version that the server sent last.
    sent: Version,
    /// The version that was rejected last, as long as it may not come again.
    refused: Option<Version>,
    /// Whether the last poll began after the last event, and brought nothing new.
    quiet: bool,
    /// Whether the request under way was composed after the last event.
    fresh: bool,
}

impl Polling {
    /// Makes a poll for `a` of a type, with both resources or neither in the source.
    pub fn new(of: &str, full: bool, budget: Budget, bug: Option<Bug>) -> Self {
        let client = client::Config::new(Node::new("n")).without_ttl();
        let config = poll::Config::new(client, Duration::from_secs(1)).expect("a delay");
        let mut poll = Poll::new(config.with_initial_fetch_timeout(None), of).expect("a path");
        poll.subscribe(["a"]).expect("a name");
        Self {
            of: of.into(),
            bug,
            budget,
            now: Instant::EPOCH,
            poll,
            out: None,
            store: if full { [1; 2] } else { [0; 2] },
            offers: Offers::new(4),
            request: None,
            answer: None,
            late: None,
            has: BTreeMap::new(),
            rejected: BTreeSet::new(),
            accepted: Version::default(),
            sent: Version::default(),
            refused: None,
            quiet: false,
            fresh: false,
        }
    }

    /// Explores all states, or as many as `limit`.
    pub fn explore(self, limit: usize) -> Report<Step> {
        search::explore(self, limit)
    }

    fn source(&self) -> Cache {
        let mut cache = Cache::new(1);
        cache.set_known(&self.of);
        for (name, content) in NAMES.into_iter().zip(self.store).filter(|(_, content)| *content > 0) {
            let body = [0x0a, 1, name.as_bytes()[0], 0x12, 1, b'0' + content];
            cache.insert(&self.of, Resource::new(name, body.to_vec()));
        }
        cache
    }

    fn serve(&mut self, mut request: sotw::Request) -> Answer {
        let source = self.source();
        match self.bug {
            Some(Bug::RejectsTheCurrent) if request.error.is_some() => return Answer::NotModified,
            Some(Bug::RejectsTheLast) if request.error.is_some() => {
                let mut first = request.clone();
                (first.error, first.version) = (None, Version::default());
                let reply = poll::answer(&source, &server::Config::ads(), first);
                if matches!(&reply, Reply::Response(response) if *response.version() == self.sent) {
                    return Answer::NotModified;
                }
            }
            Some(Bug::VersionOfType) if request.version == source.version(&self.of) => return Answer::NotModified,
            Some(Bug::FirstNotModified) if request.version.is_empty() && self.store == [0; 2] => {
                return Answer::NotModified;
            }
            _ => assert!(!request.names.is_empty(), "an empty list asks for everything"),
        }
        assert!(request.nonce.is_empty() && request.node.is_some(), "{request:?}");
        assert!(request.names.is_sorted(), "{request:?}");
        if self.bug == Some(Bug::SendsRejectedAgain) && request.error.take().is_some() {
            request.version = Version::default();
        }
        let mut question = Question::new(&server::Config::ads(), request).expect("within the limits");
        self.offers.recall(&mut question);
        match question.answer(&source) {
            Reply::Response(response) => {
                self.offers.note("n", &question, &response);
                self.sent = response.version().clone();
                let mut message = sotw::Response::from(&response);
                if self.bug == Some(Bug::VersionOfType) {
                    message.version = source.version(&self.of);
                }
                Answer::Response(message)
            }
            Reply::NotModified => Answer::NotModified,
            other => Answer::Failed(format!("{other:?}")),
        }
    }

    fn answer(&mut self, asked: Asked, answer: Answer) {
        let is_quiet = matches!(answer, Answer::NotModified) && self.fresh;
        self.poll.handle_answer(self.now, asked, answer, 0).expect("no actions wait");
        self.quiet = is_quiet;
        self.look();
    }

    /// Handles the actions of the machine.
    fn look(&mut self) {
        while let Some(action) = self.poll.poll_action() {
            match action {
                Action::Client(client::Action::Apply(update)) => {
                    assert!(self.out.is_none(), "two updates at a time");
                    assert_ne!(self.refused.as_ref(), Some(update.version()), "what was rejected comes again");
                    self.out = Some(update);
                }
                Action::Client(client::Action::Rejected { faults, .. }) => panic!("{faults:?}"),
                _ => {}
            }
        }
    }

    fn judge(&mut self, rejected: Option<&str>) {
        let Some(update) = self.out.take() else { return };
        let wants = |name: &ResourceName| self.poll.client().resources(&self.of).interest().covers(name.clone());
        for resource in update.resources() {
            let content = *resource.body().last().expect("content") - b'0';
            if rejected == Some(resource.name().as_str()) {
                self.rejected.insert((resource.name().clone(), content));
            } else if wants(resource.name()) {
                self.has.insert(resource.name().clone(), content);
            }
        }
        for name in update.removed() {
            self.has.remove(name);
        }
        if rejected.is_none() {
            self.accepted = update.version().clone();
        }
        let rejections = rejected.map(|name| Rejection::new(name, "no"));
        self.poll.handle_verdict(self.now, update.reject(rejections)).expect("it is out");
        self.look();
    }

    fn wants(&self, name: &str) -> bool {
        self.poll.client().resources(&self.of).interest().names().any(|wanted| *wanted == name)
    }

    fn disturb(&mut self) {
        self.refused = None;
        self.quiet = false;
        self.fresh = false;
    }
}

impl Model for Polling {
    type Step = Step;

    fn steps(&self, steps: &mut Vec<Step>) {
        if self.poll.wants_transmit() {
            steps.push(Step::Ask);
        }
        if self.request.is_some() {
            steps.push(Step::Serve);
        }
        if self.answer.is_some() {
            steps.push(Step::Deliver);
        }
        if self.out.is_some() {
            steps.push(Step::Accept);
        }
        let under_way = self.poll.asked().is_some();
        let waits = !under_way && self.out.is_none() && self.poll.poll_timeout().is_some();
        if waits && !self.quiet {
            steps.push(Step::Due);
        }
        let Budget { changes, losses, wishes, rejects } = self.budget;
        if rejects > 0 {
            let names = self.out.iter().flat_map(|out| out.resources());
            let at = |name: &str| NAMES.iter().position(|other| *other == name);
            steps.extend(names.filter_map(|resource| Some(Step::Reject(at(resource.name().as_str())? as u8))));
        }
        if changes > 0 {
            let to = |at: usize| (0..3).filter(move |content| *content != self.store[at]);
            steps.extend((0..2).flat_map(|at| to(at).map(move |content| Step::Change(at as u8, content))));
        }
        if losses > 0 {
            if self.request.is_some() || self.answer.is_some() {
                steps.push(Step::Break);
            }
            if under_way {
                steps.push(Step::GiveUp);
            }
        }
        if self.late.is_some() {
            steps.push(Step::DeliverLate);
        }
        if wishes > 0 {
            steps.extend([Step::Wish(0), Step::Wish(1)]);
        }
    }

    fn is_own(step: Step) -> bool {
        matches!(step, Step::Ask | Step::Serve | Step::Deliver | Step::Accept | Step::Due)
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Ask => {
                let Transmit { mut request, asked, .. } = self.poll.poll_transmit(self.now).expect("it wants to");
                assert!(self.request.is_none() && self.answer.is_none(), "one request at a time");
                if self.bug == Some(Bug::KeepsVersion) {
                    request.version = self.accepted.clone();
                }
                self.request = Some((asked, request));
                self.fresh = true;
            }
            Step::Serve => {
                let (asked, request) = self.request.take().expect("a request");
                self.answer = Some((asked, self.serve(request)));
            }
            Step::Deliver => {
                let (asked, answer) = self.answer.take().expect("an answer");
                self.answer(asked, answer);
            }
            Step::DeliverLate => {
                let (asked, answer) = self.late.take().expect("an answer");
                let before = self.poll.clone();
                self.poll.handle_answer(self.now, asked, answer, 0).expect("it is ignored");
                assert_eq!(self.poll, before, "a late answer changes something");
            }
            Step::Accept => self.judge(None),
            Step::Reject(at) => {
                self.budget.rejects -= 1;
                self.disturb();
                // A second rejection for the same reason may be that of a response that was lost.
                let is_first = self.rejected.is_empty();
                self.refused = self.out.as_ref().filter(|_| is_first).map(|out| out.version().clone());
                self.judge(Some(NAMES[usize::from(at)]));
            }
            Step::Due => {
                self.now = self.poll.poll_timeout().expect("it waits");
                self.poll.handle_timeout(self.now, 0);
            }
            Step::Change(at, content) => {
                self.budget.changes -= 1;
                self.store[usize::from(at)] = content;
                self.disturb();
            }
            Step::Break => {
                self.budget.losses -= 1;
                let (request, answer) = (self.request.take(), self.answer.take());
                let asked = request.map(|(asked, _)| asked).or(answer.map(|(asked, _)| asked)).expect("one of both");
                self.disturb();
                self.answer(asked, Answer::Failed("the connection broke".into()));
            }
            Step::GiveUp => {
                self.budget.losses -= 1;
                self.now = self.poll.poll_timeout().expect("a time-out runs");
                self.poll.handle_timeout(self.now, 0);
                assert_eq!(self.poll.asked(), None, "it was given up");
                if let Some((asked, request)) = self.request.take() {
                    self.answer = Some((asked, self.serve(request)));
                }
                self.late = self.answer.take();
                self.disturb();
                self.look();
            }
            Step::Wish(at) => {
                self.budget.wishes -= 1;
                let name = NAMES[usize::from(at)];
                self.disturb();
                if self.wants(name) {
                    self.poll.unsubscribe([name]);
                    self.has.remove(name);
                    if self.poll.asked().is_none() {
                        (self.request, self.answer) = (None, None); // the transport drops it
                    }
                } else {
                    self.poll.subscribe([name]).expect("a name");
                }
                self.look();
            }
        }
        assert_eq!(self.poll.check_invariants(), Ok(()));
    }

    fn check_settled(&self) {
        let states = self.poll.client().resources(&self.of);
        for (name, content) in NAMES.into_iter().zip(self.store) {
            let has = self.has.get(&ResourceName::from(name)).copied().unwrap_or_default();
            if !self.wants(name) {
                assert_eq!(has, 0, "{name} is not wanted");
                continue;
            }
            if self.rejected.contains(&(name.into(), content)) {
                continue; // the application does not want this content
            }
            assert_eq!(has, content, "{name}: the source has another");
            let status = states.state(name).expect("it is wanted").status;
            let expected = if content == 0 { ResourceStatus::DoesNotExist } else { ResourceStatus::Acked };
            assert_eq!(status, expected, "{name}");
        }
    }

    fn canonicalize(&mut self) {
        let now = self.now;
        canonical(self, now);
        self.now = Instant::EPOCH;
    }
}

impl Relabel for Polling {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.poll.relabel(by);
        self.out.relabel(by);
        self.request.iter_mut().for_each(|(asked, _)| asked.relabel(by));
        self.answer.iter_mut().chain(&mut self.late).for_each(|(asked, _)| asked.relabel(by));
    }
}

/// The types whose polls the model has: a partial type, and a full-state type.
pub const TYPES: [&str; 2] = [type_url::ENDPOINT, type_url::CLUSTER];

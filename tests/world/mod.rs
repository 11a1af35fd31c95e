//! Machines of both sides, wires, applications, a store, and a reference that shares no code with the machines.
//!
//! One alphabet, [`Step`], drives all of it: the model check, proptest, the fuzz targets, the simulation and the committed
//! regressions. What must hold after every step is in `ghost`; what must hold when nothing is left to do is in `settled`.

#![allow(dead_code, unreachable_pub)] // each engine uses its part

mod application;
mod bug;
mod canonical;
mod ghost;
mod goal;
pub mod labels;
mod pages;
mod settled;
mod setup;
mod step;
mod variant;
pub mod words;

use std::collections::VecDeque;
use std::sync::Arc;

use xds_machine::client::{self, Client, Effect, Intent, Sent};
use xds_machine::server::{self, Cache, Resource, Server, Source, State, StreamId};
use xds_machine::{Code, Instant, ResourceName, Status, WILDCARD};

pub use self::application::Application;
pub use self::bug::Bug;
use self::bug::Faulty;
use self::ghost::{Ghost, Told};
pub use self::goal::{Goal, Goals};
use self::pages::SmallPages;
pub use self::setup::{Made, Setup};
pub use self::step::{Budget, Step};
pub use self::variant::Both;

/// Everything there is.
#[derive(Clone, Debug)]
pub struct World<V: Both> {
    pub setup: Arc<Made>,
    pub budget: Budget,
    pub now: Instant,
    pub cache: Cache,
    /// How many streams there were.
    pub streams: u64,
    pub pairs: Vec<Pair<V>>,
}

/// A client with its application, the server's side of its stream, and the wire between.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Pair<V: Both> {
    pub client: Client<V>,
    pub server: Option<Server<V>>,
    pub up: VecDeque<V::Req>,
    pub down: VecDeque<V::Resp>,
    /// What the transport is taking.
    pub sending: Option<Sent>,
    /// Of each type.
    pub apps: Vec<Application>,
    pub ghost: Ghost,
    pub faulty: Faulty<V>,
    pub goals: Goals,
}

impl<V: Both> World<V> {
    pub fn new(setup: Arc<Made>) -> Self {
        let pair = Pair {
            client: Client::new(setup.client.clone()),
            server: None,
            up: VecDeque::new(),
            down: VecDeque::new(),
            sending: None,
            apps: vec![Application::default(); setup.types.len()],
            ghost: Ghost::new(setup.types.len()),
            faulty: Faulty::default(),
            goals: Goals::default(),
        };
        Self {
            budget: setup.budget,
            now: Instant::EPOCH,
            cache: Cache::new(1).with_tombstones(setup.tombstones),
            streams: 0,
            pairs: vec![pair; setup.clients],
            setup,
        }
    }

    /// The steps that can be taken now.
    pub fn steps(&self, steps: &mut Vec<Step>) {
        self.protocol_steps(steps);
        let (types, names) = (self.setup.types.len(), self.setup.names.len());
        let mut add = |step| {
            if self.can(step) {
                steps.push(step);
            }
        };
        for c in 0..self.pairs.len() {
            add(Step::Cut { c });
            for t in 0..types {
                add(Step::Reject { c, t });
                add(Step::Pause { c, t });
                for n in 0..names {
                    add(Step::RejectOne { c, t, n });
                    add(Step::Subscribe { c, t, n });
                    add(Step::Unsubscribe { c, t, n });
                    add(Step::Refetch { c, t, n });
                    add(Step::Forget { c, t, n });
                }
            }
        }
        for (t, n) in (0..types).flat_map(|t| (0..names).map(move |n| (t, n))) {
            add(Step::Put { t, n });
            add(Step::Delete { t, n });
            add(Step::Fail { t, n });
        }
        add(Step::Beat);
    }

    /// Those of them that the protocol takes by itself.
    pub fn protocol_steps(&self, steps: &mut Vec<Step>) {
        let before = steps.len();
        for c in 0..self.pairs.len() {
            let own = [
                Step::Open { c },
                Step::ClientSends { c },
                Step::Sent { c },
                Step::ServerReads { c },
                Step::ServerSends { c },
                Step::ClientReads { c },
            ];
            let types = 0..self.setup.types.len();
            let accept = types.clone().map(|t| Step::Accept { c, t });
            let resume = types.map(|t| Step::Resume { c, t });
            steps.extend(own.into_iter().chain(accept).chain(resume).filter(|&step| self.can(step)));
        }
        // Time is slow: what is due comes when all is quiet.
        if steps.len() == before && self.can(Step::Tick) {
            steps.push(Step::Tick);
        }
    }

    /// Whether a step can be taken, apart from time, which waits.
    pub fn can(&self, step: Step) -> bool {
        let budget = &self.budget;
        let pair = |c: usize| &self.pairs[c];
        let name = |n: usize| &self.setup.names[n];
        match step {
            Step::Open { c } => pair(c).server.is_none() && pair(c).client.wants_stream(),
            Step::ClientSends { c } => pair(c).sending.is_none() && pair(c).client.wants_transmit(),
            Step::Sent { c } => pair(c).sending.is_some(),
            Step::ServerReads { c } => pair(c).server.is_some() && !pair(c).up.is_empty(),
            Step::ServerSends { c } => {
                pair(c).faulty.is_late() || pair(c).server.as_ref().is_some_and(|server| self.polls(server))
            }
            Step::ClientReads { c } => !pair(c).down.is_empty() && pair(c).client.wants_response(),
            Step::Accept { c, t } => pair(c).apps[t].judging.is_some(),
            Step::Resume { c, t } => pair(c).apps[t].paused > 0,
            Step::Pause { .. } => budget.pauses > 0,
            Step::Tick => self.ticks(),
            Step::Beat => budget.beats > 0 && self.beats(),
            Step::Cut { c } => budget.cuts > 0 && pair(c).server.is_some(),
            Step::Reject { c, t } => budget.rejects > 0 && pair(c).apps[t].judging.is_some(),
            Step::RejectOne { c, t, n } => {
                let update = pair(c).apps[t].judging.as_ref().filter(|update| update.resources().len() > 1);
                budget.rejects > 0 && update.is_some_and(|update| update.resource(name(n).as_str()).is_some())
            }
            Step::Subscribe { c, t, n } => budget.subscribes > 0 && !pair(c).apps[t].wanted.contains(name(n)),
            Step::Unsubscribe { c, t, n } => budget.unsubscribes > 0 && pair(c).apps[t].wanted.contains(name(n)),
            Step::Refetch { c, t, n } => budget.refetches > 0 && pair(c).apps[t].wanted.contains(name(n)),
            Step::Forget { c, t, n } => budget.forgets > 0 && pair(c).apps[t].applied.contains_key(name(n)),
            Step::Put { n, .. } => budget.puts > 0 && is_resource(name(n)),
            Step::Delete { t, n } => {
                budget.deletes > 0 && is_resource(name(n)) && self.state(t, name(n)) != State::Absent
            }
            Step::Fail { n, .. } => budget.fails > 0 && is_resource(name(n)),
        }
    }

    /// Whether the server has something to do when it is polled: a response, or some bookkeeping.
    fn polls(&self, server: &Server<V>) -> bool {
        let mut polled = server.clone();
        poll(&mut polled, &self.setup, self.now, &self.cache).is_some() || polled != *server
    }

    fn next_due(&self) -> Option<Instant> {
        let servers = self.pairs.iter().filter_map(|pair| pair.server.as_ref()?.poll_timeout());
        self.pairs.iter().filter_map(|pair| pair.client.poll_timeout()).chain(servers).min()
    }

    /// Whether time passes by itself. Not as far as a heartbeat, for these never end, unless something else waits for time:
    /// what lives on at a client is due later than a heartbeat.
    fn ticks(&self) -> bool {
        let Some(due) = self.next_due() else { return false };
        let Some(ttl) = self.setup.told_ttl() else { return true };
        let waits = |pair: &Pair<V>| pair.client.poll_timeout().is_some_and(|due| due <= self.now + ttl / 3);
        !self.is_of_servers(due) || self.pairs.iter().any(waits)
    }

    /// Whether a heartbeat is due next, or the end of a TTL.
    fn beats(&self) -> bool {
        let expires = |pair: &Pair<V>, due| pair.apps.iter().any(|app| app.until.values().any(|until| *until <= due));
        let is_of_ttl = |due| self.is_of_servers(due) || self.pairs.iter().any(|pair| expires(pair, due));
        self.setup.told_ttl().is_some() && self.next_due().is_some_and(is_of_ttl)
    }

    fn is_of_servers(&self, due: Instant) -> bool {
        let mut servers = self.pairs.iter().filter_map(|pair| pair.server.as_ref()?.poll_timeout());
        servers.any(|other| other <= due)
    }

    /// Whether a client has a stream and nothing is under way on it.
    fn is_idle(&self, c: usize) -> bool {
        let pair = &self.pairs[c];
        let own = [
            Step::ClientSends { c },
            Step::Sent { c },
            Step::ServerReads { c },
            Step::ServerSends { c },
            Step::ClientReads { c },
        ];
        let judging = pair.apps.iter().any(|app| app.judging.is_some() || app.paused > 0);
        pair.server.is_some() && !judging && !own.into_iter().any(|step| self.can(step))
    }

    /// Time passes until the next thing due.
    fn pass(&mut self) {
        let setup = self.setup.clone();
        self.now = self.now.max(self.next_due().expect("something is due"));
        let now = self.now;
        for c in 0..self.pairs.len() {
            let pair = &mut self.pairs[c];
            let before: Vec<_> = pair.apps.iter().map(|app| app.applied.clone()).collect();
            let forgets = setup.bug == Some(Bug::KeepsExpired) && pair.server.is_none();
            if !forgets {
                pair.client.handle_timeout(now);
            }
            if let Some(server) = &mut pair.server {
                pair.ghost.is_due();
                server.handle_timeout(now);
            }
            pair.drain(&setup, now);
            for (t, before) in before.iter().enumerate() {
                let pair = &self.pairs[c];
                let overdue = pair.apps[t].until.iter().find(|(_, until)| **until <= now);
                assert_eq!(overdue, None, "type {t}: a TTL ran out, and the application does not know");
                for (name, content) in before.iter().filter(|(name, _)| !pair.apps[t].applied.contains_key(*name)) {
                    // What came last and was rejected did not prolong what was there before.
                    let rejected = pair.apps[t].rejected.contains_key(name);
                    let lives = self.content(t, name) == Some(*content) && !rejected && pair.ghost.lives(t, name);
                    assert!(!lives, "type {t}: {name} expired, and the server has it");
                }
            }
        }
    }

    /// Takes a step. Panics if what must hold does not.
    pub fn take(&mut self, step: Step) {
        let (setup, now) = (self.setup.clone(), self.now);
        match step {
            Step::Put { t, n } => {
                self.budget.puts -= 1;
                let (type_url, name) = (&setup.types[t], &setup.names[n]);
                let content = self.content(t, name).map_or(0, |content| 1 - content);
                assert!(self.cache.insert(type_url, resource(&setup, name, content)));
                self.pairs.iter_mut().for_each(|pair| pair.ghost.changes(&setup, now, t, name, Some(content)));
            }
            Step::Delete { t, n } => {
                self.budget.deletes -= 1;
                assert!(self.cache.remove(&setup.types[t], setup.names[n].as_str()));
                self.pairs.iter_mut().for_each(|pair| pair.ghost.changes(&setup, now, t, &setup.names[n], None));
            }
            Step::Fail { t, n } => {
                self.budget.fails -= 1;
                let status = Status::new(Code::Unavailable, "no");
                self.cache.set_error(&setup.types[t], setup.names[n].clone(), status);
                self.pairs.iter_mut().for_each(|pair| pair.ghost.fails(&setup, now, t, &setup.names[n]));
            }
            Step::Tick => self.pass(),
            Step::Beat => {
                self.budget.beats -= 1;
                for c in 0..self.pairs.len() {
                    if !self.is_idle(c) {
                        self.pairs[c].ghost.is_late();
                    }
                }
                self.pass();
            }
            Step::Open { c } => {
                self.streams += 1;
                self.pairs[c].open(&setup, self.now, &self.cache, self.streams);
            }
            Step::ClientSends { c } => self.pairs[c].client_sends(&setup, self.now, &self.cache),
            Step::Sent { c } => self.pairs[c].sent(&setup, self.now),
            Step::ServerReads { c } => self.pairs[c].server_reads(&setup, self.now),
            Step::ServerSends { c } => self.pairs[c].server_sends(&setup, self.now, &self.cache),
            Step::ClientReads { c } => self.pairs[c].client_reads(&setup, self.now),
            Step::Accept { c, t } => {
                let never = setup.bug == Some(Bug::NackLoop);
                self.pairs[c].judge(&setup, self.now, t, |_| never);
            }
            Step::Cut { c } => {
                self.budget.cuts -= 1;
                self.pairs[c].close(&setup, self.now);
            }
            Step::Reject { c, t } => {
                self.budget.rejects -= 1;
                self.pairs[c].judge(&setup, self.now, t, |_| true);
            }
            Step::RejectOne { c, t, n } => {
                self.budget.rejects -= 1;
                self.pairs[c].judge(&setup, self.now, t, |name| *name == setup.names[n]);
            }
            Step::Pause { c, t } => {
                self.budget.pauses -= 1;
                self.pairs[c].pause(&setup, t);
            }
            Step::Resume { c, t } => self.pairs[c].resume(&setup, t),
            Step::Subscribe { c, t, n } => {
                self.budget.subscribes -= 1;
                let pair = &mut self.pairs[c];
                if !pair.down.is_empty() && pair.apps[t].left.contains(&setup.names[n]) {
                    pair.goals.reach(Goal::CameBack);
                }
                self.pairs[c].subscribe(&setup, self.now, t, &setup.names[n]);
            }
            Step::Unsubscribe { c, t, n } => {
                self.budget.unsubscribes -= 1;
                self.pairs[c].unsubscribe(&setup, self.now, t, &setup.names[n]);
            }
            Step::Refetch { c, t, n } => {
                self.budget.refetches -= 1;
                self.pairs[c].client.refetch(&setup.types[t], [setup.names[n].as_str()]);
                self.pairs[c].apps[t].missing.remove(&setup.names[n]);
                self.pairs[c].drain(&setup, self.now);
            }
            Step::Forget { c, t, n } => {
                self.budget.forgets -= 1;
                self.pairs[c].forget(&setup, self.now, t, &setup.names[n]);
            }
        }
        self.check_touched(step);
    }

    /// What must hold of the machines, whatever happened to them.
    pub fn check_invariants(&self) {
        self.cache.check_invariants().unwrap_or_else(|what| panic!("invariant: {what}"));
        self.pairs.iter().for_each(Pair::check_invariants);
    }

    /// The same of those that a step touched.
    fn check_touched(&self, step: Step) {
        match (step, step.client()) {
            (_, Some(c)) => self.pairs[c].check_invariants(),
            (Step::Tick | Step::Beat, None) => self.pairs.iter().for_each(Pair::check_invariants),
            _ => self.cache.check_invariants().unwrap_or_else(|what| panic!("invariant: {what}")),
        }
    }

    /// The content of a resource in the store.
    pub fn content(&self, t: usize, name: &ResourceName) -> Option<u8> {
        match self.state(t, name) {
            State::Present(resource) => resource.body().last().copied(),
            State::Absent | State::Unknown => None,
        }
    }

    pub fn state(&self, t: usize, name: &ResourceName) -> State<'_> {
        self.cache.get(&self.setup.types[t], name.as_str()).state
    }
}

impl<V: Both> Pair<V> {
    fn open(&mut self, setup: &Made, now: Instant, cache: &Cache, stream: u64) {
        self.server = Some(Server::new(setup.server.clone(), StreamId(stream)));
        self.client.handle_open(now);
        self.ghost.open(&self.apps);
        let wants = !self.apps[0].wanted.is_empty();
        if setup.bug.is_some_and(|bug| self.faulty.client_opens(bug, wants)) {
            self.ghost.client_says::<V>(setup, cache, &self.apps, Intent::Initial, &V::empty(&setup.types[0]));
        }
        self.drain(setup, now);
    }

    fn close(&mut self, setup: &Made, now: Instant) {
        self.server = None;
        if setup.bug == Some(Bug::OldAnswersOnNewStream) {
            self.up.retain(|request| !V::request(request).nonce.is_empty());
        } else {
            self.up.clear();
        }
        self.down.clear();
        self.sending = None;
        if self.apps.iter().any(|app| app.judging.is_some()) {
            self.goals.reach(Goal::LateVerdict);
        }
        self.client.handle_close(now);
        self.ghost.close();
        setup.bug.into_iter().for_each(|bug| self.faulty.close(bug));
    }

    fn client_sends(&mut self, setup: &Made, now: Instant, cache: &Cache) {
        let mut transmit = self.client.poll_transmit().expect("wants_transmit says so");
        let wants = self.apps.iter().any(|app| !app.wanted.is_empty());
        let say = |bug| self.faulty.client_says(bug, wants, &mut transmit.intent, &mut transmit.request);
        for _ in 0..setup.bug.map_or(1, say) {
            self.ghost.client_says::<V>(setup, cache, &self.apps, transmit.intent, &transmit.request);
            self.goals_of_request(setup, &transmit);
            self.up.push_back(transmit.request.clone());
        }
        self.sending = Some(transmit.sent);
        if !setup.slow_transport {
            self.sent(setup, now);
        }
    }

    fn goals_of_request(&mut self, setup: &Made, transmit: &client::Transmit<V::Req>) {
        let request = V::request(&transmit.request);
        let app = &self.apps[setup.type_number(request.type_url)];
        let goals = &mut self.goals;
        let wildcard = request.names.iter().any(|name| name.is_wildcard());
        if wildcard && !app.wanted.iter().any(|name| name.is_wildcard()) {
            goals.reach(Goal::StoodIn);
        }
        if wildcard && request.names.len() > 1 {
            goals.reach(Goal::WildcardAndNames);
        }
        match transmit.intent {
            Intent::Nack => goals.reach(Goal::Nack),
            Intent::Initial if app.paused > 0 => goals.reach(Goal::PausedFirst),
            Intent::Initial => {
                let version = request.version.is_some_and(|version| !version.is_empty());
                if version || request.initial.iter().any(|(_, version)| !version.is_empty()) {
                    goals.reach(Goal::Claimed);
                }
                if request.initial.iter().any(|(_, version)| version.is_empty()) {
                    goals.reach(Goal::ClaimedUnjudged);
                }
                if V::LISTS && !version && !app.applied.is_empty() {
                    goals.reach(Goal::NoClaim);
                }
            }
            _ => {}
        }
    }

    fn sent(&mut self, setup: &Made, now: Instant) {
        let sent = self.sending.take().expect("a request is on its way");
        self.client.handle_sent(now, sent);
        self.drain(setup, now);
    }

    fn server_reads(&mut self, setup: &Made, now: Instant) {
        let mut request = self.up.pop_front().expect("a request is on the wire");
        if !self.ghost.server_reads::<V>(setup, &request) {
            return; // a strict server drops what is stale
        }
        let server = self.server.as_mut().expect("a stream is up");
        if setup.bug.is_some_and(|bug| !self.faulty.server_hears(bug, server, &mut request)) {
            return;
        }
        self.server_hears(setup, now, request);
    }

    fn server_hears(&mut self, setup: &Made, now: Instant, request: V::Req) {
        let server = self.server.as_mut().expect("a stream is up");
        server.handle_request(now, request).expect("a client of ours keeps the rules");
        while let Some(action) = server.poll_action() {
            if matches!(action, server::Action::DropStale { .. }) {
                self.goals.reach(Goal::Stale);
            }
            self.ghost.server_acts(setup, action);
        }
    }

    fn server_sends(&mut self, setup: &Made, now: Instant, cache: &Cache) {
        let server = self.server.as_mut().expect("a stream is up");
        if let Some(response) = poll(server, setup, now, cache) {
            let mut message = V::message(&response);
            if setup.bug.is_none_or(|bug| self.faulty.server_says(bug, &mut message)) {
                let Told { warm, beats } = self.ghost.server_sends::<V>(setup, now, cache, &message);
                if warm {
                    self.goals.reach(Goal::Warmed);
                }
                if beats {
                    self.goals.reach(Goal::Beaten);
                }
                self.goals_of_response(setup, cache, &message);
                if V::response(&message).resources.len() > 1 {
                    self.goals.reach(Goal::Coalesced);
                }
                self.down.push_back(message);
            }
        }
        let server = self.server.as_mut().expect("a stream is up");
        let mut closed = false;
        while let Some(action) = server.poll_action() {
            closed |= self.ghost.server_closes(setup, action);
        }
        if server.poll_timeout().is_some() {
            self.goals.reach(Goal::Held);
        }
        if closed {
            self.goals.reach(Goal::Behind);
            return self.close(setup, now);
        }
        if let Some(late) = self.faulty.server_hears_late() {
            self.server_hears(setup, now, late);
        }
    }

    fn goals_of_response(&mut self, setup: &Made, cache: &Cache, message: &V::Resp) {
        let response = V::response(message);
        let size = response.resources.len() + response.removed.len();
        let t = setup.type_number(&response.type_url);
        let has = |name: &ResourceName| cache.resources(&setup.types[t]).any(|resource| resource.name() == name);
        if !response.resources.iter().all(|(name, _)| has(name)) {
            self.goals.reach(Goal::Union);
        }
        let Some(portion) = setup.portion.filter(|_| !V::LISTS) else { return };
        // What a store forgot went at one revision, and goes at once; and with an alias what it stood for.
        let at_once = setup.tombstones < 10 || setup.names.iter().any(|name| name.as_str().starts_with('~'));
        let size = size - if at_once { response.removed.len() } else { 0 };
        assert!(size <= portion, "{size} in a portion of {portion}");
        let lacks = |name: &&ResourceName| {
            let app = &self.apps[t];
            app.wants(name) && !app.applied.contains_key(*name) && has(name)
        };
        if setup.names.iter().filter(lacks).count() > portion {
            self.goals.reach(Goal::Portion);
        }
    }

    fn client_reads(&mut self, setup: &Made, now: Instant) {
        let mut response = self.down.pop_front().expect("a response is on the wire");
        self.ghost.client_reads::<V>(setup, &response);
        setup.bug.into_iter().for_each(|bug| self.faulty.client_hears(bug, &mut response));
        let app = &self.apps[setup.type_number(&V::response(&response).type_url)];
        if app.judging.is_some() {
            self.goals.reach(Goal::Waited);
        }
        if !V::response(&response).removed.is_empty() {
            self.goals.reach(Goal::Removed);
        }
        self.client.handle_response(now, response).expect("a server of ours keeps the rules");
        self.drain(setup, now);
    }

    fn check_invariants(&self) {
        let server = self.server.as_ref().map_or(Ok(()), |server| server.check_invariants());
        self.client.check_invariants().and(server).unwrap_or_else(|what| panic!("invariant: {what}"));
    }

    /// The application takes what there is to take.
    fn drain(&mut self, setup: &Made, now: Instant) {
        while let Some(action) = self.client.poll_action() {
            match action {
                client::Action::Apply(update) => {
                    let app = &mut self.apps[setup.type_number(update.type_url())];
                    self.ghost.applies(app, &update);
                    let all = app.wanted.contains(WILDCARD);
                    if !all && update.resources().any(|resource| !app.wanted.contains(resource.name())) {
                        self.goals.reach(Goal::ByAnotherName);
                    }
                    app.heard = true;
                    app.take(update);
                }
                client::Action::Errors { type_url, errors } => {
                    let app = &mut self.apps[setup.type_number(&type_url)];
                    for error in errors {
                        self.goals.reach(if error.effect == Effect::Fails { Goal::Failed } else { Goal::Ambient });
                        app.fail(error);
                    }
                }
                client::Action::Expired { type_url, names } => {
                    self.goals.reach(if self.server.is_some() { Goal::Expired } else { Goal::ExpiredAway });
                    let t = setup.type_number(&type_url);
                    self.ghost.expire(t, &names);
                    self.apps[t].expire(now, names);
                }
                client::Action::Rejected { type_url, nonce, faults } => {
                    let t = setup.type_number(&type_url);
                    self.ghost.finds_faults::<V>(setup, t, &self.apps[t], &nonce, &faults);
                    self.apps[t].heard = true; // a heartbeat of what expired may be all that answers a wildcard
                }
                client::Action::Missing { type_url, names } => {
                    self.goals.reach(Goal::TimedOut);
                    self.apps[setup.type_number(&type_url)].miss(names);
                }
                client::Action::Synced { type_url } => {
                    self.apps[setup.type_number(&type_url)].heard = true;
                    self.goals.reach(Goal::Synced);
                }
                other => panic!("nobody asked for {other:?}"),
            }
        }
        for (t, app) in self.apps.iter_mut().enumerate() {
            self.ghost.beat::<V>(setup, now, t, app);
        }
    }
}

/// What the server has to say.
fn poll<V: Both>(server: &mut Server<V>, setup: &Made, now: Instant, cache: &Cache) -> Option<server::Response<V>> {
    if setup.small_pages {
        server.poll_transmit(now, &SmallPages(cache, &setup.names))
    } else {
        server.poll_transmit(now, cache)
    }
}

/// Whether to want one name is to want another: the wildcard, a collection and an alias stand for others.
pub fn stands_for(wanted: &ResourceName, name: &ResourceName) -> bool {
    let (wanted, name) = (wanted.as_str(), name.as_str());
    wanted == name
        || wanted.strip_suffix('*').is_some_and(|start| name.starts_with(start))
        || wanted.strip_prefix('~') == Some(name)
}

/// Whether a name is that of a resource, and stands for no other.
pub fn is_resource(name: &ResourceName) -> bool {
    !name.as_str().ends_with('*') && !name.as_str().starts_with('~')
}

/// A resource of the store, with its alias if the world has one for it.
pub fn resource(setup: &Made, name: &ResourceName, content: u8) -> Resource {
    let resource = Resource::new(name.clone(), body(name, content));
    let resource = setup.ttl.into_iter().fold(resource, Resource::with_ttl);
    let aliases = setup.names.iter().filter(|alias| *alias != name && !alias.is_wildcard() && !alias.is_glob());
    let mut aliases = aliases.filter(|alias| stands_for(alias, name)).cloned().peekable();
    if aliases.peek().is_some() { resource.with_aliases(aliases) } else { resource }
}

/// An encoded resource: its name in field 1, its content in field 15.
pub fn body(name: &ResourceName, content: u8) -> Vec<u8> {
    let mut body = vec![0x0a, name.as_str().len() as u8];
    body.extend_from_slice(name.as_str().as_bytes());
    body.extend_from_slice(&[0x78, content]);
    body
}

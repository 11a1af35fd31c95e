//! A client with its application, the server's side of its stream, and the wire between.

use std::collections::VecDeque;

use xds_machine::client::{self, Client, Effect, Intent, Sent};
use xds_machine::server::{self, Revision, Server, Source, StreamId};
use xds_machine::{Code, Instant, ResourceName, Status, WILDCARD};

use super::{Application, Both, Bug, Faulty, Ghost, Goal, Goals, Made, Store, Told, is_alias, is_resource};
use crate::source::Counted;

/// A client, its application, and the server's side of its stream.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Pair<V: Both> {
    /// The client.
    pub client: Client<V>,
    /// The server's end of the stream, while the stream is open.
    pub server: Option<Server<V>>,
    /// Requests in flight.
    pub up: VecDeque<V::Request>,
    /// Responses in flight.
    pub down: VecDeque<V::Response>,
    /// The request that the transport is taking.
    pub sending: Option<Sent>,
    /// The applications, by type.
    pub apps: Vec<Application>,
    /// The reference, derived from the messages.
    pub ghost: Ghost,
    /// The memory of a seeded bug.
    pub faulty: Faulty<V>,
    /// The goals that were reached.
    pub goals: Goals,
}

impl<V: Both> Pair<V> {
    pub(super) fn new(setup: &Made, c: usize) -> Self {
        Self {
            client: Client::new(setup.client.clone().with_id(c as u64)),
            server: None,
            up: VecDeque::new(),
            down: VecDeque::new(),
            sending: None,
            apps: vec![Application::default(); setup.types.len()],
            ghost: Ghost::new(setup.types.len()),
            faulty: Faulty::default(),
            goals: Goals::default(),
        }
    }

    pub(super) fn open(&mut self, setup: &Made, now: Instant, store: &Store, stream: u64) {
        self.server = Some(Server::new(setup.server.clone(), StreamId(stream)));
        self.client.handle_open();
        self.ghost.open(&self.apps);
        let wants = !self.apps[0].wanted.is_empty();
        if setup.bug.is_some_and(|bug| self.faulty.client_opens(bug, wants)) {
            self.ghost.client_says::<V>(setup, store, &self.apps, Intent::Initial, &V::empty(&setup.types[0]));
        }
        self.drain(setup, now);
    }

    pub(super) fn close(&mut self, setup: &Made) {
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
        self.client.handle_close();
        for app in &mut self.apps {
            app.waiting.clear();
            app.end_extensions();
        }
        self.ghost.close(&self.apps);
        setup.bug.into_iter().for_each(|bug| self.faulty.close(bug));
    }

    pub(super) fn client_sends(&mut self, setup: &Made, now: Instant, store: &Store) {
        let mut transmit = self.client.poll_transmit().expect("wants_transmit says so");
        let wants = self.apps.iter().any(|app| !app.wanted.is_empty());
        let say = |bug| self.faulty.client_says(bug, wants, &mut transmit.intent, &mut transmit.request);
        for _ in 0..setup.bug.map_or(1, say) {
            self.ghost.client_says::<V>(setup, store, &self.apps, transmit.intent, &transmit.request);
            self.goals_of_request(setup, &transmit);
            self.up.push_back(transmit.request.clone());
        }
        self.sending = Some(transmit.sent);
        if !setup.slow_transport {
            self.sent(setup, now);
        }
    }

    fn goals_of_request(&mut self, setup: &Made, transmit: &client::Transmit<V::Request>) {
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

    pub(super) fn sent(&mut self, setup: &Made, now: Instant) {
        let sent = self.sending.take().expect("a request is on its way");
        self.client.handle_sent(now, sent);
        self.drain(setup, now);
    }

    pub(super) fn server_reads(&mut self, setup: &Made, now: Instant, store: &Store) {
        let mut request = self.up.pop_front().expect("a request is on the wire");
        let before = self.ghost.listed(setup.type_number(V::request(&request).type_url));
        if !self.ghost.server_reads::<V>(setup, store, &request) {
            return; // a strict server drops stale requests
        }
        if setup.recorded {
            self.ghost.note_cost_of_request(setup, &V::request(&request));
        }
        if setup.existence_timeout.is_some() {
            self.ghost.asks::<V>(setup, store, &before, &request);
        }
        let server = self.server.as_mut().expect("a stream is up");
        if setup.bug.is_some_and(|bug| !self.faulty.server_hears(bug, server, &mut request)) {
            return;
        }
        if setup.bug == Some(Bug::ClosesCrossed) && self.faulty.closes(&request) {
            let status = Status::new(Code::ResourceExhausted, "too many stale requests");
            self.ghost.server_acts::<V>(setup, server::Action::Close(status));
        }
        self.server_hears(setup, now, request);
    }

    fn server_hears(&mut self, setup: &Made, now: Instant, request: V::Request) {
        let server = self.server.as_mut().expect("a stream is up");
        server.handle_request(now, request).expect("a client of ours keeps the rules");
        while let Some(action) = server.poll_action() {
            if matches!(action, server::Action::DropStale { .. }) {
                self.goals.reach(Goal::Stale);
            }
            self.ghost.server_acts::<V>(setup, action);
        }
    }

    pub(super) fn server_sends(&mut self, setup: &Made, now: Instant, store: &Store) {
        if self.sends_kept(setup, store) {
            let message = self.faulty.take_kept().expect("a response is held back");
            self.ghost.server_sends::<V>(setup, store, now, &message);
            self.ghost.sends_unknown_revisions();
            return self.down.push_back(message);
        }
        let server = self.server.as_mut().expect("a stream is up");
        let (mut rests, mut is_idle) = (false, false);
        let source = Counted::new(&store.cache);
        if setup.bug == Some(Bug::ReadsAll) {
            setup.types.iter().for_each(|url| source.changes(url, Revision(0)).for_each(drop));
        }
        let message = server.poll_transmit(now, &source).as_ref().map(V::message);
        if setup.recorded {
            let said = message.as_ref().map(V::response);
            self.ghost.note_cost_of_poll(setup, source.reads(), said.as_ref());
        }
        if let Some(mut message) = message {
            let beats_wait = setup.bug == Some(Bug::BeatsWaitForAcks) && server.in_flight() > 0;
            let has_room = setup.bug != Some(Bug::NeedsRoom) || !self.ghost.is_any_out();
            let is_first = V::response(&message).type_url == setup.types[0];
            let waits = setup.bug == Some(Bug::FirstTypeWins) && !is_first && self.ghost.is_busy(setup, store, 0);
            if waits {
                self.faulty.keep(message.clone());
            }
            let is_said = has_room && !waits && (!beats_wait || V::response(&message).beats.is_empty());
            if is_said && setup.bug.is_none_or(|bug| self.faulty.server_says(bug, &mut message)) {
                // The features of messages in flight and of pending ones.
                self.goals.reach_pairs(&self.ghost.active(setup, store));
                let Told { warm, beats } = self.ghost.server_sends::<V>(setup, store, now, &message);
                if warm {
                    self.goals.reach(Goal::Warmed);
                }
                if beats {
                    self.goals.reach(Goal::Beaten);
                }
                self.goals_of_response(setup, store, &message);
                if V::response(&message).resources.len() > 1 {
                    self.goals.reach(Goal::Coalesced);
                }
                self.down.push_back(message);
                if setup.recorded {
                    self.ghost.overtakes(setup, store, now);
                    self.ghost.sends_revisions::<V>(setup, store, self.down.back().expect("the response"));
                }
            }
        } else {
            rests = server.is_settled();
            is_idle = true;
        }
        self.ghost.server_looks(setup, store);
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
            return self.close(setup);
        }
        if is_idle && setup.bug.is_none_or(|bug| bug == Bug::WaitsForEver) {
            let due = self.server.as_ref().and_then(Server::poll_timeout);
            self.ghost.check_waiting(setup, store, now, due);
        }
        if rests && (0..self.apps.len()).all(|t| !self.is_silent(setup, t)) {
            self.check_verdicts(setup, store);
        }
        if let Some(late) = self.faulty.server_hears_late() {
            self.server_hears(setup, now, late);
        }
    }

    fn goals_of_response(&mut self, setup: &Made, store: &Store, message: &V::Response) {
        let response = V::response(message);
        let size = response.resources.len() + response.removed.len();
        let t = setup.type_number(&response.type_url);
        self.goals.reach_pairs(&self.ghost.active(setup, store));
        let has = |name: &ResourceName| store.content(setup, t, name);
        if !response.resources.iter().all(|(name, _)| has(name).is_some()) {
            self.goals.reach(Goal::Union);
        }
        let Some(response_limit) = setup.response_limit.filter(|_| !V::LISTS) else { return };
        // A store forgets removals at one revision, and an alias is removed together with its target: both at once.
        let at_once = setup.is_forgetful() || setup.names.iter().any(is_alias);
        let size = size - if at_once { response.removed.len() } else { 0 };
        assert!(size <= response_limit, "{size} in a portion of {response_limit}");
        let lacks = |name: &&ResourceName| {
            let (app, there) = (&self.apps[t], has(name));
            is_resource(name) && there.is_some() && app.wants(name, there) && !app.applied.contains_key(*name)
        };
        if setup.names.iter().filter(lacks).count() > response_limit {
            self.goals.reach(Goal::ResponseLimit);
        }
    }

    pub(super) fn client_reads(&mut self, setup: &Made, now: Instant) {
        let mut response = self.down.pop_front().expect("a response is on the wire");
        self.ghost.client_reads::<V>(setup, &response);
        if setup.recorded {
            self.ghost.reads_revisions();
        }
        setup.bug.into_iter().for_each(|bug| self.faulty.client_hears(bug, &mut response));
        let t = setup.type_number(&V::response(&response).type_url);
        if setup.bug == Some(Bug::BeatsWaitForVerdicts) && self.apps[t].judging.is_some() {
            V::forget_beats(&mut response);
        }
        let app = &mut self.apps[t];
        for (name, content) in V::response(&response).resources {
            app.extend(&name, setup.told_ttl_of(&name, content).map(|ttl| now + ttl));
            if app.judging.is_some() {
                app.waiting.insert(name);
            }
        }
        if app.judging.is_some() {
            self.goals.reach(Goal::Waited);
            self.ghost.beat_at_once::<V>(setup, now, t, app);
        }
        if !V::response(&response).removed.is_empty() {
            self.goals.reach(Goal::Removed);
        }
        self.client.handle_response(now, response).expect("a server of ours keeps the rules");
        self.drain(setup, now);
    }

    pub(super) fn check_invariants(&self) {
        let server = self.server.as_ref().map_or(Ok(()), |server| server.check_invariants());
        self.client.check_invariants().and(server).unwrap_or_else(|what| panic!("invariant: {what}"));
    }

    /// Lets the application handle the client's actions.
    pub(super) fn drain(&mut self, setup: &Made, now: Instant) {
        while let Some(action) = self.client.poll_action() {
            match action {
                client::Action::Apply(update) => {
                    let t = setup.type_number(update.type_url());
                    if setup.recorded {
                        self.ghost.receives_revisions(t, &update);
                    }
                    let app = &mut self.apps[t];
                    self.ghost.applies(t, app, &update);
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
                    self.apps[t].heard = true; // a heartbeat after an expiry may be the only response
                }
                client::Action::DoesNotExist { type_url, names } => {
                    self.goals.reach(Goal::TimedOut);
                    self.apps[setup.type_number(&type_url)].miss(names);
                }
                client::Action::Synced { type_url, .. } => {
                    self.apps[setup.type_number(&type_url)].heard = true;
                    self.goals.reach(Goal::Synced);
                }
                other => panic!("nobody asked for {other:?}"),
            }
        }
        for (t, app) in self.apps.iter_mut().enumerate() {
            app.end_extensions();
            self.ghost.answered(t, app);
            self.ghost.rests::<V>(t, app);
            self.ghost.beat::<V>(setup, now, t, app);
        }
    }
}

//! Random legal walks of this project's client and server, in memory, under the eyes of the referee.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use xds_conformance::message::{Request, Response, RevisionOf};
use xds_conformance::referee::{ClientReferee, Complaint, ServerReferee, World};
use xds_conformance::resource;
use xds_machine::client::{self, Action, Client};
use xds_machine::message::{Node, delta, sotw};
use xds_machine::server::{self, Cache, Resource, Server, StreamId};
use xds_machine::{Delta, Instant, Sotw, TypeUrl, type_url};
use xds_machine_testing::random::Random;
use xds_machine_testing::world::{Both, Bug, Faulty};

/// A variant whose messages the referee reads.
pub(crate) trait Judged: Both {
    fn request(request: &Self::Request) -> Request;
    fn response(response: &Self::Response, revision_of: RevisionOf) -> Response;
}

impl Judged for Sotw {
    fn request(request: &sotw::Request) -> Request {
        request.into()
    }

    fn response(response: &sotw::Response, revision_of: RevisionOf) -> Response {
        Response::from_sotw(response, revision_of)
    }
}

impl Judged for Delta {
    fn request(request: &delta::Request) -> Request {
        request.into()
    }

    fn response(response: &delta::Response, revision_of: RevisionOf) -> Response {
        Response::from_delta(response, revision_of)
    }
}

const TYPES: [&str; 2] = [type_url::CLUSTER, type_url::ENDPOINT];
const NAMES: [&str; 3] = ["a", "b", "c"];

/// A client, a server with or without a defect, and the referee between them.
pub(crate) struct Walk<V: Judged> {
    random: Random,
    bug: Option<Bug>,
    faulty: Faulty<V>,
    client: Client<V>,
    server: Option<Server<V>>,
    up: VecDeque<V::Request>,
    down: VecDeque<V::Response>,
    cache: Cache,
    world: World,
    referee: Option<ServerReferee>,
    /// The referee of the client, at the server's end of the wires.
    watcher: Option<ClientReferee>,
    now: Instant,
    streams: u64,
    revision: u64,
    pub(crate) complaints: Vec<Complaint>,
    pub(crate) ladder: Vec<String>,
}

impl<V: Judged> Walk<V> {
    pub(crate) fn new(seed: u64, bug: Option<Bug>) -> Self {
        let config = client::Config::new(Node::new("n")).with_existence_timeout(None);
        Self {
            random: Random(seed),
            bug,
            faulty: Faulty::default(),
            client: Client::new(config),
            server: None,
            up: VecDeque::new(),
            down: VecDeque::new(),
            cache: Cache::new(1),
            world: World::controlled(""),
            referee: None,
            watcher: None,
            now: Instant::EPOCH,
            streams: 0,
            revision: 0,
            complaints: Vec::new(),
            ladder: Vec::new(),
        }
    }

    /// Walks this many steps, with a rest now and then and at the end. Stops at the first complaint.
    pub(crate) fn run(mut self, steps: usize) -> Self {
        for _ in 0..steps {
            self.step();
            if self.random.one_in(12) {
                self.rest();
            }
            if !self.complaints.is_empty() {
                return self;
            }
        }
        self.rest();
        self
    }

    fn step(&mut self) {
        let of = self.random.below(2);
        let (url, name) = (TYPES[of], self.random.pick(&NAMES));
        let type_url = TypeUrl::from(url);
        let wanted = if of == 0 && self.random.one_in(3) { "*" } else { name };
        let choice = self.random.below(16);
        if (2..=4).contains(&choice) {
            self.watcher.iter_mut().for_each(ClientReferee::unsettle);
        }
        match choice {
            0 => {
                self.revision += 1;
                let content = self.revision % 2 + 1; // contents come back
                let body = resource::body(url, name, content);
                self.cache.insert(&type_url, Resource::new(name, body));
                self.each_world(|world| world.put(url, name, content));
                self.referee.iter_mut().for_each(|referee| referee.put(url, name, content));
                self.ladder.push(format!("world put {} {name} {content}", resource::short(url)));
            }
            1 => {
                self.cache.remove(&type_url, name);
                self.each_world(|world| world.delete(url, name));
                self.referee.iter_mut().for_each(|referee| referee.delete(url, name));
                self.ladder.push(format!("world delete {} {name}", resource::short(url)));
            }
            2 => self.client.resources_mut(&type_url).subscribe([wanted]).expect("a good name"),
            3 => self.client.resources_mut(&type_url).unsubscribe([wanted]),
            4 => self.client.resources_mut(&type_url).refetch([name]),
            5 if self.random.one_in(4) => self.cut(),
            _ => _ = self.protocol(),
        }
        self.apply();
    }

    fn each_world(&mut self, change: impl Fn(&mut World)) {
        change(&mut self.world);
        self.world.settle();
    }

    /// Takes a random protocol step; returns whether there was one.
    fn protocol(&mut self) -> bool {
        let mut steps: Vec<fn(&mut Self)> = Vec::new();
        if self.server.is_none() && self.client.wants_stream() {
            steps.push(Self::open);
        }
        if self.client.wants_transmit() {
            steps.push(Self::client_sends);
        }
        if self.server.is_some() && !self.up.is_empty() {
            steps.push(Self::server_reads);
        }
        if self.polls() {
            steps.push(Self::server_sends);
        }
        if !self.down.is_empty() && self.client.wants_response() {
            steps.push(Self::client_reads);
        }
        if !steps.is_empty() {
            let step = self.random.pick(&steps);
            step(self);
            self.apply();
        }
        !steps.is_empty()
    }

    fn polls(&self) -> bool {
        self.server.as_ref().is_some_and(|server| {
            let mut polled = server.clone();
            polled.poll_transmit(self.now, &self.cache).is_some() || polled != *server || self.faulty.is_late()
        })
    }

    fn open(&mut self) {
        self.streams += 1;
        self.server = Some(Server::new(server::Config::ads(), StreamId(self.streams)));
        self.referee = Some(ServerReferee::new(V::VARIANT, None, self.world.clone()));
        let watcher = self.watcher.as_ref();
        self.watcher = Some(watcher.map_or_else(|| ClientReferee::new(V::VARIANT), ClientReferee::next));
        self.client.handle_open();
        self.ladder.push("stream".into());
    }

    fn client_sends(&mut self) {
        let mut transmit = self.client.poll_transmit().expect("wants_transmit says so");
        let wants = TYPES.iter().any(|url| !self.wanted(url).is_empty());
        let say = |bug| self.faulty.client_says(bug, wants, &mut transmit.intent, &mut transmit.request);
        let times = self.bug.map_or(1, say);
        self.client.handle_sent(self.now, transmit.sent);
        let request = <V as Judged>::request(&transmit.request);
        self.ladder.push(format!(
            "C> {} {:?} -{:?} irv{:?} v={} n={} {:?}",
            resource::short(&request.type_url),
            request.names,
            request.unsubscribe,
            request.initial,
            request.version,
            request.nonce,
            request.error
        ));
        if times > 0 {
            self.referee.as_mut().expect("a stream").request(&request);
        }
        self.up.extend(std::iter::repeat_n(transmit.request, times));
    }

    fn server_reads(&mut self) {
        let mut request = self.up.pop_front().expect("a request");
        let server = self.server.as_mut().expect("a stream");
        self.ladder.push("server reads".into());
        let read = <V as Judged>::request(&request);
        self.complaints.extend(self.watcher.as_mut().expect("a stream").request(&read));
        if self.bug.is_none_or(|bug| self.faulty.server_hears(bug, server, &mut request)) {
            server.handle_request(self.now, request).expect("a legal request");
        }
        while server.poll_action().is_some() {}
    }

    fn server_sends(&mut self) {
        let server = self.server.as_mut().expect("a stream");
        if let Some(response) = server.poll_transmit(self.now, &self.cache) {
            let mut message = V::message(&response);
            if self.bug.is_none_or(|bug| self.faulty.server_says(bug, &mut message)) {
                self.watcher
                    .as_mut()
                    .expect("a stream")
                    .response(&<V as Judged>::response(&message, resource::revision));
                self.down.push_back(message);
                self.ladder.push("server sends".into());
            }
        }
        if let Some(late) = self.faulty.server_hears_late() {
            server.handle_request(self.now, late).expect("a legal request");
        }
        while server.poll_action().is_some() {}
    }

    fn client_reads(&mut self) {
        let mut response = self.down.pop_front().expect("a response");
        let read = <V as Judged>::response(&response, resource::revision);
        let items = read.resources.iter().map(|item| format!("{}@{:?}", item.name, item.revision));
        self.ladder.push(format!(
            "S> {} {:?} rm{:?} v={} n={}",
            resource::short(&read.type_url),
            items.collect::<Vec<_>>(),
            read.removed,
            read.version,
            read.nonce
        ));
        self.complaints.extend(self.referee.as_mut().expect("a stream").response(&read));
        self.bug.into_iter().for_each(|bug| self.faulty.client_hears(bug, &mut response));
        // The client closes the stream if the server breaks a rule that no client can live with.
        if self.client.handle_response(self.now, response).is_err() {
            self.cut();
        }
    }

    fn apply(&mut self) {
        while let Some(action) = self.client.poll_action() {
            let Action::Apply(update) = action else { continue };
            let rejects = self.bug == Some(Bug::NackLoop) || self.random.one_in(5);
            let verdict = if rejects { update.reject_all("no") } else { update.accept() };
            self.client.handle_verdict(self.now, verdict).expect("the update is out");
        }
    }

    fn cut(&mut self) {
        if self.server.take().is_some() {
            self.up.clear();
            self.down.clear();
            self.client.handle_close();
            self.referee = None;
            match self.bug {
                Some(bug) => self.faulty.close(bug),
                None => self.faulty = Faulty::default(),
            }
            self.ladder.push("cut".into());
        }
    }

    /// Returns the names that the client is to be subscribed to.
    fn wanted(&self, type_url: &str) -> BTreeSet<String> {
        let interest = self.client.resources(&type_url.into()).interest();
        let names = interest.names().map(ToString::to_string);
        names.chain(interest.wildcard().then(|| "*".to_owned())).collect()
    }

    /// Lets the protocol come to rest, and time pass; the referee judges the silence. The walk gives up on a peer that
    /// never rests.
    pub(crate) fn rest(&mut self) {
        for _ in 0..500 {
            if !self.complaints.is_empty() {
                return;
            }
            if self.protocol() {
                continue;
            }
            let due = self.server.as_ref().and_then(Server::poll_timeout).into_iter().chain(self.client.poll_timeout());
            let Some(due) = due.min().filter(|due| *due > self.now) else {
                if let Some(referee) = &mut self.referee {
                    self.ladder.push("rest".into());
                    self.complaints.extend(referee.rest(true));
                }
                let wanted = TYPES.map(|url| (url.to_owned(), self.wanted(url))).into();
                let watcher = self.watcher.as_mut().filter(|_| self.server.is_some());
                let silence = watcher.map(|watcher| watcher.rest(&wanted));
                self.complaints.extend(silence.into_iter().flatten());
                return;
            };
            self.now = due.max(Instant::from_epoch(self.now.since_epoch() + Duration::from_millis(1)));
            self.client.handle_timeout(self.now);
            self.server.iter_mut().for_each(|server| server.handle_timeout(self.now));
        }
    }
}

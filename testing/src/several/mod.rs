//! A world of several servers, an application, and a reference that decides independently which server should be used.
//! The reference knows only the part of the layer that a driver and an application see.

mod budget;
mod bug;
mod canonical;
mod goal;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

pub use budget::Budget;
pub use bug::Bug;
use bug::Faulty;
use bytes::Bytes;
pub use goal::Goal;
use xds_machine::client::{self, Backoff, Sent, Update};
use xds_machine::message::Node;
use xds_machine::server::{self, Cache, Resource, Server, Source, StreamId};
use xds_machine::servers::{Action, Config, Connect, Policy, ServerId, Servers, Stream};
use xds_machine::{Instant, ResourceName, TypeUrl, type_url};

pub use crate::variant::Both;

/// A step among several servers, of the protocol or of the environment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    // Protocol steps.
    /// The driver opens a stream to the next server.
    Connect,
    /// An attempt succeeds.
    Opened {
        /// The number of the server.
        s: usize,
    },
    /// An attempt fails: the server is down.
    Refused {
        /// The number of the server.
        s: usize,
    },
    /// The client of a server writes a request.
    ClientSends {
        /// The number of the server.
        s: usize,
    },
    /// A server reads a request.
    ServerReads {
        /// The number of the server.
        s: usize,
    },
    /// A server writes a response.
    ServerSends {
        /// The number of the server.
        s: usize,
    },
    /// The client of a server reads a response.
    ClientReads {
        /// The number of the server.
        s: usize,
    },
    /// The application accepts an update.
    Accept {
        /// The number of the server.
        s: usize,
        /// The number of the type.
        t: usize,
    },
    /// Time passes until the next deadline: when nothing else is possible, as everywhere in these checks, or
    /// [early](Self::Early).
    Tick,

    // Environment steps.
    /// Time passes until the next deadline, although other steps are possible.
    Early,
    /// A server goes down; its streams break.
    Down {
        /// The number of the server.
        s: usize,
    },
    /// A server comes up again.
    Up {
        /// The number of the server.
        s: usize,
    },
    /// A stream breaks.
    Cut {
        /// The number of the server.
        s: usize,
    },
    /// The application rejects an update.
    Reject {
        /// The number of the server.
        s: usize,
        /// The number of the type.
        t: usize,
    },
    /// The application subscribes to a name.
    Subscribe {
        /// The number of the type.
        t: usize,
        /// The number of the name.
        n: usize,
    },
    /// The application unsubscribes from a name.
    Unsubscribe {
        /// The number of the type.
        t: usize,
        /// The number of the name.
        n: usize,
    },
    /// The application loses a resource.
    Forget {
        /// The number of the type.
        t: usize,
        /// The number of the name.
        n: usize,
    },
    /// A server gets new content for a resource.
    Put {
        /// The number of the server.
        s: usize,
        /// The number of the type.
        t: usize,
        /// The number of the name.
        n: usize,
    },
    /// A server removes a resource.
    Delete {
        /// The number of the server.
        s: usize,
        /// The number of the type.
        t: usize,
        /// The number of the name.
        n: usize,
    },
}

/// The shape of a world of several servers.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The policy of fallback.
    pub policy: Policy,
    /// The lists, by the authorities of names, each with the numbers of its servers; the first is that of names without
    /// authority.
    pub lists: &'static [(&'static str, &'static [usize])],
    /// The names that are subscribed to and put.
    pub names: &'static [&'static str],
    /// The first type.
    pub type_url: &'static str,
    /// Whether there is a second type, which is partial.
    pub another: bool,
    /// Whether every server has all resources at first.
    pub stocked: bool,
    /// Whether failed servers are retried at constant intervals, and the existence timeout is short.
    pub short: bool,
    /// The numbers of environment steps; `None`: unlimited.
    pub budget: Option<Budget>,
    /// The defect, if any.
    pub bug: Option<Bug>,
}

impl Setup {
    /// Makes a world of one name of endpoints, without a budget.
    pub const fn new(policy: Policy, lists: &'static [(&'static str, &'static [usize])]) -> Self {
        Self {
            policy,
            lists,
            names: &["a"],
            type_url: type_url::ENDPOINT,
            another: false,
            stocked: false,
            short: false,
            budget: None,
            bug: None,
        }
    }
}

/// A server, and the wires between it and the client.
#[derive(Clone, Hash)]
pub struct Side<V: Both> {
    up: bool,
    cache: Cache,
    stream: Option<Stream>,
    server: Option<Server<V>>,
    to: VecDeque<V::Request>,
    from: VecDeque<V::Response>,
    /// The last attempt had no response, and none has come since.
    failing: bool,
    answered: bool,
    /// The number of consecutive streams without any response (at most two are counted), and whether there ever was a
    /// response.
    failures: usize,
    ever: bool,
    /// Counts the puts.
    contents: u8,
}

/// The application's view of a type.
#[derive(Clone, Default, Hash)]
struct App {
    wanted: BTreeSet<ResourceName>,
    /// The server and the content of each resource.
    has: BTreeMap<ResourceName, (usize, u8)>,
    missing: BTreeSet<ResourceName>,
    /// Of `missing`, the resources that were removed; a server that never had one may report that it does not exist.
    removed: BTreeSet<ResourceName>,
    /// The resources that arrived and were not accepted.
    rejected: BTreeSet<ResourceName>,
    /// Resources whose rejection or removal may or may not count: they were unsubscribed meanwhile, or the server is no
    /// longer used.
    unclear: BTreeSet<ResourceName>,
    /// By server, the update and the names that were unsubscribed at some time since.
    judging: BTreeMap<usize, (Update, BTreeSet<ResourceName>)>,
}

impl App {
    fn doubt(&mut self, name: &ResourceName, doubtful: bool) {
        if doubtful {
            self.unclear.insert(name.clone());
        } else {
            self.unclear.remove(name);
        }
    }
}

/// The complete state: the layer, the servers, the wires, the applications.
#[derive(Clone)]
pub struct World<V: Both> {
    fixed: Arc<Fixed>,
    budget: Option<Budget>,
    servers: Servers<V>,
    sides: Vec<Side<V>>,
    /// By type.
    apps: Vec<App>,
    now: Instant,
    streams: u64,
    /// By list: the last reported switch.
    current: Vec<usize>,
    /// The authorities that were reported as unreachable.
    unreachable: BTreeSet<Option<Arc<str>>>,
    faulty: Faulty,
    /// The goals that were reached, a bit each.
    pub goals: u128,
}

/// The immutable part.
struct Fixed {
    setup: Setup,
    types: Vec<TypeUrl>,
    /// The names by type: a structured name contains its type.
    names: Vec<Vec<ResourceName>>,
}

impl<V: Both> World<V> {
    /// Makes a world without history.
    pub fn new(setup: Setup) -> Self {
        let count = setup.lists.iter().flat_map(|(_, list)| *list).max().expect("a server") + 1;
        let mut client = client::Config::new(Node::new("n"));
        if setup.short {
            client = client.with_existence_timeout(Some(Duration::from_secs(2)));
        }
        let ids = |list: &[usize]| list.iter().map(|&s| ServerId(s)).collect::<Vec<_>>();
        let mut config = Config::new(setup.policy, vec![client; count]).with_default(ids(setup.lists[0].1));
        for (authority, list) in &setup.lists[1..] {
            config = config.with_authority(*authority, ids(list));
        }
        if setup.short {
            config = config.with_backoff(Backoff::grpc().with_max(Duration::from_secs(1)));
        }
        let side = |_| Side {
            up: true,
            cache: Cache::new(1),
            stream: None,
            server: None,
            to: VecDeque::new(),
            from: VecDeque::new(),
            failing: false,
            answered: false,
            failures: 0,
            ever: false,
            contents: 0,
        };
        let types: Vec<&str> = [setup.type_url].into_iter().chain(setup.another.then_some(type_url::SECRET)).collect();
        let names = |url: &&str| {
            let own = url.strip_prefix("type.googleapis.com/").expect("a type of the API");
            setup.names.iter().map(|name| name.replace("/TYPE/", &format!("/{own}/")).into()).collect()
        };
        let fixed = Fixed {
            setup,
            names: types.iter().map(names).collect(),
            types: types.iter().map(|&url| url.into()).collect(),
        };
        let mut world = Self {
            budget: setup.budget,
            servers: Servers::new(config).expect("a good configuration"),
            sides: (0..count).map(side).collect(),
            apps: vec![App::default(); types.len()],
            now: Instant::EPOCH,
            streams: 0,
            current: vec![0; setup.lists.len()],
            unreachable: BTreeSet::new(),
            faulty: Faulty::default(),
            goals: 0,
            fixed: Arc::new(fixed),
        };
        if setup.stocked {
            (0..count).for_each(|s| world.all().for_each(|(t, n)| world.put(s, t, n)));
        }
        world
    }

    fn list_of(&self, name: &ResourceName) -> usize {
        let authority = |list: &&str| name.as_str().starts_with(&format!("xdstp://{list}/"));
        self.fixed.setup.lists.iter().position(|(list, _)| authority(list)).unwrap_or(0)
    }

    fn list(&self, l: usize) -> &'static [usize] {
        self.fixed.setup.lists[l].1
    }

    /// Returns the protocol steps (time only if there is no other), and the environment steps.
    pub fn steps(&self) -> (Vec<Step>, Vec<Step>) {
        let mut own = Vec::new();
        if self.next_connect().is_some() {
            own.push(Step::Connect);
        }
        for s in 0..self.sides.len() {
            let side = &self.sides[s];
            if let Some(stream) = side.stream {
                match &side.server {
                    None => own.push(if side.up { Step::Opened { s } } else { Step::Refused { s } }),
                    Some(server) => {
                        if self.servers.wants_transmit(stream) {
                            own.push(Step::ClientSends { s });
                        }
                        if !side.to.is_empty() {
                            own.push(Step::ServerReads { s });
                        }
                        let mut polled = server.clone();
                        if polled.poll_transmit(self.now, &side.cache).is_some() || polled != *server {
                            own.push(Step::ServerSends { s });
                        }
                    }
                }
                if !side.from.is_empty() && self.servers.wants_response(stream) {
                    own.push(Step::ClientReads { s });
                }
            }
        }
        for (t, app) in self.apps.iter().enumerate() {
            own.extend(app.judging.keys().map(|&s| Step::Accept { s, t }));
        }
        let mut others = Vec::new();
        for s in 0..self.sides.len() {
            others.push(if self.sides[s].up { Step::Down { s } } else { Step::Up { s } });
            if self.sides[s].server.is_some() {
                others.push(Step::Cut { s });
            }
            for (t, n) in self.all() {
                others.push(Step::Put { s, t, n });
                if matches!(self.there(s, t, n), server::State::Present(_)) {
                    others.push(Step::Delete { s, t, n });
                }
            }
        }
        for (t, n) in self.all() {
            let name = &self.fixed.names[t][n];
            let wanted = self.apps[t].wanted.contains(name);
            others.push(if wanted { Step::Unsubscribe { t, n } } else { Step::Subscribe { t, n } });
            if self.apps[t].has.contains_key(name) {
                others.push(Step::Forget { t, n });
            }
        }
        for (t, app) in self.apps.iter().enumerate() {
            others.extend(app.judging.keys().map(|&s| Step::Reject { s, t }));
        }
        if self.due().is_some() {
            others.push(Step::Early);
        }
        (own, others)
    }

    fn there(&self, s: usize, t: usize, n: usize) -> server::State<'_> {
        self.sides[s].cache.get(&self.fixed.types[t], &self.fixed.names[t][n]).state
    }

    fn all(&self) -> impl Iterator<Item = (usize, usize)> + use<V> {
        let (types, names) = (self.fixed.types.len(), self.fixed.setup.names.len());
        (0..types).flat_map(move |t| (0..names).map(move |n| (t, n)))
    }

    fn next_connect(&self) -> Option<Connect> {
        let next = self.servers.clone().poll_connect(self.now)?;
        (!self.is_overlooked(next)).then_some(next)
    }

    /// Returns the current time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns the time of the next deadline.
    pub fn due(&self) -> Option<Instant> {
        let servers = self.sides.iter().filter_map(|side| side.server.as_ref()?.poll_timeout());
        self.servers.poll_timeout().into_iter().chain(servers).min()
    }

    /// Takes a step. Panics if a check fails.
    pub fn take(&mut self, step: Step) {
        self.budget.iter_mut().for_each(|budget| budget.spend(step));
        match step {
            Step::Connect => self.connect(),
            Step::Opened { s } => {
                self.streams += 1;
                let stream = self.sides[s].stream.expect("an attempt");
                self.sides[s].server = Some(Server::new(server::Config::ads(), StreamId(self.streams)));
                self.sides[s].answered = false;
                self.servers.handle_open(stream);
            }
            Step::Refused { s } | Step::Cut { s } => self.end(s),
            Step::ClientSends { s } => self.client_sends(s),
            Step::ServerReads { s } => {
                let side = &mut self.sides[s];
                let request = side.to.pop_front().expect("a request");
                let server = side.server.as_mut().expect("a stream");
                server.handle_request(self.now, request).expect("a client of ours");
                while server.poll_action().is_some() {}
            }
            Step::ServerSends { s } => {
                let side = &mut self.sides[s];
                let server = side.server.as_mut().expect("a stream");
                side.from.extend(server.poll_transmit(self.now, &side.cache).map(|response| V::message(&response)));
                while server.poll_action().is_some() {}
            }
            Step::ClientReads { s } => self.client_reads(s),
            Step::Accept { s, t } => self.judge(s, t, true),
            Step::Reject { s, t } => self.judge(s, t, false),
            Step::Tick | Step::Early => {
                self.now = self.now.max(self.due().expect("something is due"));
                self.servers.handle_timeout(self.now);
                let servers = self.sides.iter_mut().filter_map(|side| side.server.as_mut());
                servers.for_each(|server| server.handle_timeout(self.now));
            }
            Step::Down { s } => {
                self.sides[s].up = false;
                if self.sides[s].server.is_some() {
                    self.end(s);
                }
            }
            Step::Up { s } => self.sides[s].up = true,
            Step::Subscribe { t, n } => {
                let name = self.fixed.names[t][n].clone();
                self.apps[t].wanted.insert(name.clone());
                self.servers.resources_mut(&self.fixed.types[t]).subscribe([name]).expect("a name with a server");
            }
            Step::Unsubscribe { t, n } => self.unsubscribe(t, n),
            Step::Forget { t, n } => {
                self.apps[t].has.remove(&self.fixed.names[t][n]);
                self.servers.resources_mut(&self.fixed.types[t]).forget([self.fixed.names[t][n].as_str()]);
            }
            Step::Put { s, t, n } => self.put(s, t, n),
            Step::Delete { s, t, n } => {
                _ = self.sides[s].cache.remove(&self.fixed.types[t], self.fixed.names[t][n].as_str())
            }
        }
        self.drain();
        let used: BTreeSet<usize> = (0..self.fixed.setup.lists.len()).flat_map(|l| self.used(l)).copied().collect();
        for (s, side) in self.sides.iter_mut().enumerate() {
            side.failing &= used.contains(&s);
        }
        assert_eq!(self.servers.check_invariants(), Ok(()));
        self.check_choice();
    }

    fn put(&mut self, s: usize, t: usize, n: usize) {
        let (side, name) = (&mut self.sides[s], &self.fixed.names[t][n]);
        if !name.is_wildcard() {
            side.contents = side.contents.wrapping_add(1);
            let body = body(name, s as u8, side.contents);
            side.cache.insert(&self.fixed.types[t], Resource::new(name.clone(), body));
        }
    }

    /// Returns the servers of a list that should have a stream.
    fn used(&self, l: usize) -> &'static [usize] {
        let wanted = self.apps.iter().any(|app| app.wanted.iter().any(|name| self.list_of(name) == l));
        match self.fixed.setup.policy {
            _ if !wanted => &[],
            Policy::Grpc => &self.list(l)[..=self.current[l]],
            Policy::Envoy => &self.list(l)[self.current[l]..=self.current[l]],
            other => panic!("no model of {other}"),
        }
    }

    fn connect(&mut self) {
        match self.servers.poll_connect(self.now).expect("something to do") {
            Connect::Open(stream) => {
                let s = stream.server().0;
                assert!(self.sides[s].stream.is_none(), "a second stream to {s}");
                assert!(self.is_wanted(s), "a stream to {s}, and nothing is wanted of it");
                self.sides[s].stream = Some(stream);
                self.sides[s].answered = false;
            }
            Connect::Close(stream) => {
                let side = &mut self.sides[stream.server().0];
                assert_eq!(side.stream, Some(stream), "what is closed is open");
                side.answered = false;
                if self.fixed.setup.bug == Some(Bug::KeepsStream) {
                    return;
                }
                (side.stream, side.server) = (None, None);
                side.to.clear();
                side.from.clear();
            }
        }
    }

    /// Returns whether anything is subscribed to in a list of the server.
    fn is_wanted(&self, s: usize) -> bool {
        let wants = |name: &ResourceName| self.list(self.list_of(name)).contains(&s);
        self.apps.iter().any(|app| app.wanted.iter().any(wants))
    }

    fn end(&mut self, s: usize) {
        let side = &mut self.sides[s];
        let stream = side.stream.take().expect("a stream");
        side.server = None;
        side.to.clear();
        side.from.clear();
        if !side.answered {
            side.failing = true;
            side.failures = (side.failures + 1).min(2);
            self.forget_all();
        }
        self.servers.handle_close(self.now, stream, 500);
    }

    fn client_sends(&mut self, s: usize) {
        let stream = self.sides[s].stream.expect("a stream");
        let mut transmit = self.servers.poll_transmit(stream).expect("wants_transmit says so");
        for name in V::request(&transmit.request).names {
            let list = self.list(self.list_of(name));
            assert!(list.contains(&s), "{name} is asked of {s}, which does not have it");
        }
        self.claim(s, &mut transmit.request);
        self.sides[s].to.push_back(transmit.request);
        let sent: Sent = transmit.sent;
        self.servers.handle_sent(self.now, stream, sent);
    }

    fn client_reads(&mut self, s: usize) {
        let side = &mut self.sides[s];
        let response = side.from.pop_front().expect("a response");
        let stream = side.stream.expect("a stream");
        (side.answered, side.failing) = (true, false);
        if (0..self.fixed.setup.lists.len()).any(|l| self.used(l).contains(&s)) {
            let side = &mut self.sides[s];
            (side.failures, side.ever) = (0, true);
        }
        self.servers.handle_response(self.now, stream, response).expect("a server of ours");
    }

    fn unsubscribe(&mut self, t: usize, n: usize) {
        let name = self.fixed.names[t][n].clone();
        self.servers.resources_mut(&self.fixed.types[t]).unsubscribe([name.as_str()]);
        let app = &mut self.apps[t];
        app.wanted.remove(&name);
        let wildcard = app.wanted.contains("*");
        for gone in self.fixed.names[t].iter().filter(|name| !app.wanted.contains(*name)) {
            app.missing.remove(gone);
            app.judging.values_mut().for_each(|(_, left)| _ = left.insert(gone.clone()));
            if !wildcard {
                app.has.remove(gone);
                app.rejected.remove(gone);
            }
        }
    }

    fn judge(&mut self, s: usize, t: usize, accept: bool) {
        if accept {
            self.note_accepted(s, t);
        }
        let used = |l| self.used(l).contains(&s);
        let asked: BTreeSet<usize> = (0..self.current.len()).filter(|&l| used(l)).collect();
        let lists: BTreeMap<ResourceName, usize> =
            self.fixed.names[t].iter().map(|name| (name.clone(), self.list_of(name))).collect();
        let app = &mut self.apps[t];
        let (update, left) = app.judging.remove(&s).expect("an update");
        for resource in update.resources() {
            let name = resource.name().clone();
            if !app.wanted.contains(&name) && !app.wanted.contains("*") {
                continue;
            }
            if accept {
                app.missing.remove(&name);
                app.rejected.remove(&name);
                app.unclear.remove(&name);
                let content = *resource.body().last().expect("a body");
                let from = resource.body()[resource.body().len() - 3];
                assert_eq!(usize::from(from), s, "what {s} sends is its own");
                app.has.insert(name, (s, content));
            } else {
                app.doubt(&name, left.contains(&name));
                app.rejected.insert(name);
            }
        }
        for name in update.removed() {
            if !accept {
                app.rejected.insert(name.clone());
            } else {
                app.has.remove(name);
                app.rejected.remove(name);
                if app.wanted.contains(name) && !left.contains(name) {
                    app.missing.insert(name.clone());
                    app.removed.insert(name.clone());
                    app.doubt(name, !asked.contains(&lists[name]));
                }
            }
        }
        let verdict = if accept { update.accept() } else { update.reject_all("no") };
        self.servers.handle_verdict(self.now, verdict).expect("the update is out");
    }

    fn drain(&mut self) {
        let mut further = Vec::new();
        while let Some(action) = self.servers.poll_action() {
            match action {
                Action::Client { server, action: client::Action::Apply(update) } => {
                    let t = self.fixed.types.iter().position(|known| known == update.type_url()).expect("a type");
                    let app = &mut self.apps[t];
                    for name in update.removed() {
                        assert!(app.has.contains_key(name), "{name} is removed, and the application has none");
                    }
                    let beside = |&other: &usize| {
                        self.fixed.setup.lists.iter().any(|(_, list)| list.contains(&other) && list.contains(&server.0))
                    };
                    // Servers that were asked for the same names take turns.
                    let beside = app.judging.iter().filter(|(other, _)| beside(other));
                    let names = beside.flat_map(|(_, (other, _))| other.resources().map(|one| one.name().clone()));
                    let both = { names }.find(|name| update.resource(name.clone()).is_some());
                    assert_eq!(both, None, "it is in two updates at the same time");
                    app.judging.insert(server.0, (update, BTreeSet::new()));
                }
                Action::Client { action: client::Action::DoesNotExist { type_url, names }, .. } => {
                    let t = self.fixed.types.iter().position(|known| *known == type_url).expect("a type");
                    for name in names {
                        assert!(!self.apps[t].has.contains_key(&name), "{name} is missing, and there");
                        let app = &mut self.apps[t];
                        app.unclear.remove(&name);
                        assert!(
                            app.missing.insert(name.clone()) | app.removed.remove(&name),
                            "{name} is missing twice"
                        );
                    }
                }
                Action::Client { .. } => {}
                Action::Switched { authority, to } => {
                    let of = |(list, _): &(&str, _)| authority.as_deref() == Some(*list);
                    let l = self.fixed.setup.lists.iter().position(of).unwrap_or(0);
                    let place = self.list(l).iter().position(|&s| s == to.0).expect("one of the list");
                    let on = place > self.current[l];
                    self.reach(if on { Goal::On } else { Goal::Back });
                    further.extend(on.then_some(l));
                    self.current[l] = place;
                }
                Action::Reachable { authority } => {
                    assert!(self.unreachable.remove(&authority), "{authority:?} is reachable, and was before");
                }
                Action::Unreachable { authority, server } => {
                    self.unreachable.insert(authority);
                    assert!(self.sides[server.0].failing, "{server:?} answers");
                    self.reach(Goal::Unreachable);
                }
                other => panic!("{other:?}"),
            }
        }
        for l in further.into_iter().filter(|_| self.fixed.setup.policy == Policy::Grpc) {
            assert!(self.may_lack(l).is_some() || self.lacks_all(l), "the next server is asked, and all is known");
        }
    }

    /// Returns whether the wildcard is subscribed to, and the application has nothing of the type.
    fn lacks_all(&self, l: usize) -> bool {
        l == 0 && self.apps.iter().any(|app| app.wanted.contains("*") && app.has.is_empty())
    }

    /// Returns a subscribed name of a list for which no report to the application is still valid.
    fn lacks(&self, l: usize) -> Option<&ResourceName> {
        let knows = |app: &App, name: &ResourceName| {
            let judged = app.judging.values().any(|(update, _)| update.resource(name.as_str()).is_some());
            app.missing.contains(name) || app.rejected.contains(name) || judged
        };
        self.lacks_unless(l, knows)
    }

    /// Like `lacks`, ignoring resources of unclear state.
    fn may_lack(&self, l: usize) -> Option<&ResourceName> {
        let knows = |app: &App, name: &ResourceName| {
            let of = |(update, left): &(Update, BTreeSet<ResourceName>)| {
                update.resource(name.as_str()).is_some() && !left.contains(name)
            };
            let told = app.missing.contains(name) || app.rejected.contains(name);
            told && !app.unclear.contains(name) || app.judging.values().any(of)
        };
        self.lacks_unless(l, knows)
    }

    fn lacks_unless(&self, l: usize, knows: impl Fn(&App, &ResourceName) -> bool) -> Option<&ResourceName> {
        self.apps.iter().find_map(|app| {
            let known = |name: &ResourceName| app.has.contains_key(name) || knows(app, name);
            let named = |name: &&ResourceName| self.list_of(name) == l && !name.is_wildcard();
            app.wanted.iter().filter(named).find(|name| !known(name))
        })
    }

    /// Checks which servers have streams, or should have, from the failures and the application's knowledge.
    fn check_choice(&self) {
        for (l, &(_, list)) in self.fixed.setup.lists.iter().enumerate() {
            let (current, wanted) = (self.current[l], !self.used(l).is_empty());
            match self.fixed.setup.policy {
                Policy::Grpc if wanted => {
                    for &s in &list[..current] {
                        assert!(
                            !self.sides[s].answered || self.sides[s].stream.is_none(),
                            "{s} answers, and is passed over"
                        );
                    }
                    if current + 1 < list.len() && self.sides[list[current]].failing {
                        assert_eq!(self.lacks(l), None, "server {} fails, and nobody else is asked", list[current]);
                    }
                }
                Policy::Grpc => assert_eq!(current, 0, "nothing is wanted, and it is not of the first"),
                Policy::Envoy => {
                    let first = &self.sides[list[0]];
                    assert!(current == 0 || !first.ever, "the primary answered once and is left");
                    assert!(current == 0 || first.failures >= 2, "the failover, after {} failures", first.failures);
                }
                other => panic!("no model of {other}"),
            }
        }
    }

    /// Checks a settled state: no superfluous server is used, and subscribed resources come from the best reachable
    /// server.
    pub fn check_settled(&self) {
        let late = self.due().filter(|due| *due <= self.now);
        let goes_on = !self.steps().0.is_empty() || self.fixed.setup.bug == Some(Bug::StaysOnFallback);
        assert!(late.is_none() || goes_on, "what is due is not done");
        let mut used = BTreeSet::<usize>::new();
        for (l, &(_, list)) in self.fixed.setup.lists.iter().enumerate() {
            if self.used(l).is_empty() {
                let told = self.unreachable.iter().any(|of| of.as_deref().unwrap_or("") == self.fixed.setup.lists[l].0);
                assert!(!told, "nothing is wanted, and nobody can be reached");
                continue;
            }
            used.extend(self.used(l));
            let current = self.current[l];
            let up = |s: &usize| self.sides[*s].up;
            let reachable = list.iter().position(up);
            match self.fixed.setup.policy {
                Policy::Grpc => {
                    if let Some(best) = reachable {
                        let silent = self.is_silent(list[best]);
                        assert!(current <= best || silent, "{best} can be reached, {current} is used");
                        assert!(current == best || self.lacks(l).is_none(), "{:?} is lacking", self.lacks(l));
                    }
                }
                Policy::Envoy => {
                    let stuck = self.sides[list[0]].ever;
                    assert!(stuck || reachable.is_none() || up(&list[current]), "{current} can't be reached");
                }
                other => panic!("no model of {other}"),
            }
            if up(&list[current]) {
                self.check_data(l, list[current]);
            }
            let told = self.unreachable.iter().any(|of| of.as_deref().unwrap_or("") == self.fixed.setup.lists[l].0);
            assert!(reachable.is_some() || told, "nobody can be reached, and that was not told");
            let silent = list.iter().any(|&s| self.is_silent(s) || !self.sides[s].answered);
            assert!(!told || silent || reachable.is_none(), "{:?} is there, and was told not to be", list[current]);
        }
        for (s, side) in self.sides.iter().enumerate() {
            assert!(used.contains(&s) || side.stream.is_none(), "a stream to {s}, and nobody needs it");
            assert!(!used.contains(&s) || !side.up || side.server.is_some(), "no stream to {s}");
        }
    }

    /// Returns whether a server without changes stays silent, so that the client can't tell that it works: in SotW
    /// without any subscribed resource; in delta with exactly the resources that the application already has and
    /// claims.
    fn is_silent(&self, s: usize) -> bool {
        let news = |t: usize, name: &ResourceName| {
            let has = self.apps[t].has.get(name).copied();
            match self.sides[s].cache.get(&self.fixed.types[t], name).state {
                server::State::Present(_) if !V::DELTA => true,
                server::State::Present(resource) => has != Some((s, *resource.body().last().expect("a body"))),
                _ => V::DELTA,
            }
        };
        let says = |(t, app): (usize, &App)| {
            let asked = |name: &&ResourceName| self.used(self.list_of(name)).contains(&s);
            app.wanted.contains("*") || app.wanted.iter().filter(asked).any(|name| news(t, name))
        };
        !self.sides[s].answered && !self.apps.iter().enumerate().any(says)
    }

    fn check_data(&self, l: usize, s: usize) {
        for (t, app) in self.apps.iter().enumerate() {
            let full = t == 0 && self.fixed.setup.type_url == type_url::CLUSTER;
            for name in self.fixed.names[t].iter().filter(|name| self.list_of(name) == l && !name.is_wildcard()) {
                if !app.wanted.contains(name) && !app.wanted.contains("*") || app.rejected.contains(name) {
                    continue;
                }
                let has = app.has.get(name).copied();
                match self.sides[s].cache.get(&self.fixed.types[t], name).state {
                    server::State::Present(resource) => {
                        let content = *resource.body().last().expect("a body");
                        assert_eq!(has, Some((s, content)), "{name} of type {t}, which {s} has");
                    }
                    // SotW reports no removal of a partial type.
                    _ if !V::DELTA && !full => {}
                    _ => assert_eq!(has, None, "{name} of type {t}, which {s} does not have"),
                }
                if app.wanted.contains(name) && has.is_none() {
                    assert!(app.missing.contains(name), "{name} of type {t} is not known not to exist");
                }
            }
        }
    }
}

/// Encodes the name, the server and the content.
fn body(name: &ResourceName, server: u8, content: u8) -> Bytes {
    let mut body = vec![0x0a, name.as_str().len() as u8];
    body.extend_from_slice(name.as_str().as_bytes());
    body.extend_from_slice(&[0x70, server, 0x78, content & 0x7f]);
    body.into()
}

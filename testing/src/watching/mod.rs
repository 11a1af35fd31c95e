//! A world around the layer of watchers: a real store, server and client with lossless wires, a driver, and watchers.
//! The expectations (`ghost.rs`) are derived without reading the layer.

mod budget;
mod bug;
mod canonical;
mod ghost;
mod goal;
mod settled;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

pub use budget::Budget;
pub use bug::Bug;
use bug::Layer;
use bytes::Bytes;
use ghost::{Ghost, NOTHING};
pub use goal::Goal;
use xds_machine::client::{self, Action, Client, Config, DataErrors, Verdict};
use xds_machine::message::Node;
use xds_machine::resource_type::{ResourceType, TypeRegistry};
use xds_machine::server::{self, Cache, Resource, Server, Source, State, StreamId};
use xds_machine::watch::{Subscribe, WatchId, Watches};
use xds_machine::{Code, Instant, Misuse, ResourceName, Status, TypeUrl};

pub use crate::variant::Both;

/// The initial content, and the contents that it may change to; the last can't be decoded.
const CONTENTS: [u8; 3] = [1, 2, BAD];
const BAD: u8 = 9;

/// A step around watchers, of the protocol or of the environment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    // Protocol steps.
    /// The stream opens.
    Open,
    /// An attempt to open a stream fails.
    Refused,
    /// The client sends a request, and the server reads it.
    Ask,
    /// The server sends a response, and the client reads it.
    Answer,
    /// The layer handles an action.
    Hear,
    /// The next watcher in turn receives an event.
    Tell,
    /// A watcher has finished its oldest event.
    Done {
        /// The number of the watcher.
        w: usize,
    },
    /// The client receives a verdict.
    Judge,
    /// Time passes until the next deadline, when nothing else is possible.
    Tick,

    // Environment steps.
    /// Time passes although other steps are possible.
    Early,
    /// A watcher is added.
    Watch {
        /// The number of the watcher.
        w: usize,
    },
    /// A watcher leaves.
    Unwatch {
        /// The number of the watcher.
        w: usize,
    },
    /// A chosen watcher receives an event.
    Pick {
        /// The number of the watcher.
        w: usize,
    },
    /// The server gets new content for a resource.
    Put {
        /// The number of the name.
        n: usize,
        /// The new content.
        content: u8,
    },
    /// The server removes a resource.
    Delete {
        /// The number of the name.
        n: usize,
    },
    /// The server reports an error of a resource.
    Fail {
        /// The number of the name.
        n: usize,
        /// The code of the error.
        code: Code,
    },
    /// The alias moves to an existing resource, or to nothing.
    Point {
        /// The new target of the alias.
        to: Option<usize>,
    },
    /// The stream breaks.
    Cut,
    /// The server goes down.
    Down,
    /// The server comes up again.
    Up,
}

impl Step {
    /// Returns whether this is a protocol step.
    pub fn is_own(self) -> bool {
        use Step::{Answer, Ask, Done, Hear, Judge, Open, Refused, Tell, Tick};
        matches!(self, Open | Refused | Ask | Answer | Hear | Tell | Done { .. } | Judge | Tick)
    }
}

/// The shape of a world.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The names of the resources.
    pub names: &'static [&'static str],
    /// Whether the last name is an alias, at first of the first resource.
    pub alias: bool,
    /// By watcher, the name that it watches.
    pub watchers: &'static [usize],
    /// The number of watchers at the beginning, which know the complete state.
    pub begun: usize,
    /// Whether the type is one of full state.
    pub full_state: bool,
    /// The handling of data errors for held resources.
    pub data_errors: DataErrors,
    /// Whether verdicts wait for watchers.
    pub waits: bool,
    /// The error codes that the server may report.
    pub codes: &'static [Code],
    /// Whether requests wait; otherwise they are sent as soon as they are pending.
    pub lazy: bool,
    /// The events of the environment, and their counts.
    pub budget: Budget,
    /// The defect of the layer, if any.
    pub bug: Option<Bug>,
}

impl Setup {
    /// Two names, three watchers, none added yet, no defect.
    pub const NEW: Self = Self {
        names: &["a", "b"],
        alias: false,
        watchers: &[0, 0, 1],
        begun: 0,
        full_state: false,
        data_errors: DataErrors::Delete,
        waits: false,
        codes: &[Code::Unavailable],
        lazy: false,
        budget: Budget::NONE,
        bug: None,
    };
}

/// The immutable part.
struct Fixed {
    setup: Setup,
    type_url: TypeUrl,
    types: TypeRegistry,
    names: Vec<ResourceName>,
}

fn is_whole(name: &ResourceName) -> bool {
    name.as_str().ends_with('*')
}

/// Returns whether the wildcard `*` or a collection such as `d/*` covers a name.
fn is_part(name: &ResourceName, of: &ResourceName) -> bool {
    let parent = of.as_str().strip_suffix('*');
    let rest = parent.and_then(|parent| name.as_str().strip_prefix(parent));
    !is_whole(name) && rest.is_some_and(|rest| of.is_wildcard() || !rest.contains('/'))
}

fn content_of(resource: &client::Resource<'_>) -> Result<u8, String> {
    match resource.body().last() {
        Some(&content) if content != BAD => Ok(content),
        _ => Err("bad".into()),
    }
}

/// Records the subscriptions at the client.
struct Spy<'a, V: Both> {
    client: &'a mut Client<V>,
    said: Vec<(&'static str, ResourceName)>,
}

impl<V: Both> Subscribe for Spy<'_, V> {
    fn subscribe(&mut self, type_url: &TypeUrl, name: ResourceName) -> Result<(), Misuse> {
        self.said.push(("subscribe", name.clone()));
        Subscribe::subscribe(self.client, type_url, name)
    }

    fn unsubscribe(&mut self, type_url: &TypeUrl, name: &ResourceName) {
        self.said.push(("unsubscribe", name.into()));
        Subscribe::unsubscribe(self.client, type_url, name);
    }
}

/// The complete state: the layer, its client, a server, the watchers.
#[derive(Clone)]
pub struct World<V: Both> {
    fixed: Arc<Fixed>,
    budget: Budget,
    now: Instant,
    cache: Cache,
    /// The target of the alias.
    pointed: Option<usize>,
    up: bool,
    client: Client<V>,
    server: Option<Server<V>>,
    /// The stream has carried a response.
    answered: bool,
    streams: u64,
    /// The driver's pending actions for the layer, and verdicts for the client.
    actions: VecDeque<Action>,
    layer: Layer,
    verdicts: VecDeque<Verdict>,
    /// By watcher.
    ids: Vec<Option<WatchId>>,
    ghost: Ghost,
    goals: u128,
}

impl<V: Both> World<V> {
    /// Makes a world whose initial watchers know the complete state.
    pub fn new(setup: Setup) -> Self {
        let kind = if setup.full_state { ResourceType::full_state("type") } else { ResourceType::partial("type") };
        let types = TypeRegistry::new([kind]);
        let config = Config::new(Node::new("n")).with_types(types.clone()).with_data_errors(setup.data_errors);
        let watches = Watches::new("type");
        let watches = if setup.waits { watches.with_back_pressure() } else { watches };
        let mut world = Self {
            fixed: Arc::new(Fixed {
                setup,
                type_url: "type".into(),
                types,
                names: setup.names.iter().map(|&name| name.into()).collect(),
            }),
            budget: setup.budget,
            now: Instant::EPOCH,
            cache: Cache::new(1),
            pointed: setup.alias.then_some(0),
            up: true,
            client: Client::new(config.with_existence_timeout(Some(Duration::from_secs(2)))),
            server: None,
            answered: false,
            streams: 0,
            actions: VecDeque::new(),
            layer: Layer::new(watches),
            verdicts: VecDeque::new(),
            ids: vec![None; setup.watchers.len()],
            ghost: Ghost::default(),
            goals: 0,
        };
        (0..setup.names.len()).for_each(|n| world.put(n, CONTENTS[0]));
        (0..setup.begun).for_each(|w| world.watch(w));
        let mut steps = Vec::new();
        while {
            steps.clear();
            world.own_steps(&mut steps);
            !steps.is_empty()
        } {
            world.happen(steps[0]);
        }
        world.goals = 0;
        world.layer.bug = setup.bug;
        world
    }

    // The possible steps.

    /// Adds the steps that can be taken now.
    pub fn steps(&self, steps: &mut Vec<Step>) {
        let allowed = |step: &Step| self.budget.allows(*step);
        self.own_steps(steps);
        let later = self.due().is_some_and(|due| due > self.now);
        let (quiet, mut others) = (steps.is_empty(), Vec::new());
        if later {
            others.push(if quiet { Step::Tick } else { Step::Early });
        }
        for (w, id) in self.ids.iter().enumerate() {
            others.push(if id.is_some() { Step::Unwatch { w } } else { Step::Watch { w } });
            if id.is_some_and(|id| !self.ghost.owed(id).is_empty()) {
                others.push(Step::Pick { w });
            }
        }
        for (n, name) in self.fixed.names.iter().enumerate() {
            let error = self.cache.error(&self.fixed.type_url, name);
            let codes = self.fixed.setup.codes.iter().filter(|_| !self.is_alias(n));
            for &code in codes.filter(|code| !error.is_some_and(|error| error.is(**code))) {
                others.push(Step::Fail { n, code });
            }
            if self.is_alias(n) {
                continue;
            }
            let there = self.there(name);
            if !is_whole(name) {
                let contents = CONTENTS.into_iter().filter(|&content| there != Some(content));
                others.extend(contents.map(|content| Step::Put { n, content }));
            }
            if there.is_some() || error.is_some() && !name.is_glob() {
                others.push(Step::Delete { n });
            }
        }
        if self.fixed.setup.alias {
            let there = |n: &usize| !self.is_alias(*n) && self.there(&self.fixed.names[*n]).is_some();
            let to = (0..self.fixed.names.len()).filter(there).map(Some).chain([None]);
            others.extend(to.filter(|to| *to != self.pointed).map(|to| Step::Point { to }));
        }
        if self.server.is_some() {
            others.push(Step::Cut);
        }
        others.push(if self.up { Step::Down } else { Step::Up });
        steps.extend(others.into_iter().filter(allowed));
    }

    fn own_steps(&self, steps: &mut Vec<Step>) {
        match &self.server {
            None if self.client.wants_stream() && self.up => steps.push(Step::Open),
            None if self.client.wants_stream() && self.ghost.away.is_none() => steps.push(Step::Refused),
            None => {}
            Some(server) => {
                if self.client.wants_transmit() {
                    steps.push(Step::Ask);
                }
                let mut polled = server.clone();
                let speaks = polled.poll_transmit(self.now, &self.cache).is_some() || polled != *server;
                if speaks && self.client.wants_response() {
                    steps.push(Step::Answer);
                }
            }
        }
        if !self.actions.is_empty() {
            steps.push(Step::Hear);
        }
        let mut layer = self.layer.clone();
        if layer.poll_event().is_some() || layer.watches != self.layer.watches {
            steps.push(Step::Tell);
        }
        for (w, id) in self.ids.iter().enumerate() {
            if id.is_some_and(|id| self.ghost.watchers[&id].unfinished > 0) {
                steps.push(Step::Done { w });
            }
        }
        if !self.verdicts.is_empty() {
            steps.push(Step::Judge);
        }
        // The bound of a server's wait is over until the server is polled.
        let waits_for_poll =
            steps.contains(&Step::Answer) && self.client.poll_timeout().is_none_or(|due| due > self.now);
        if self.due().is_some_and(|due| due <= self.now) && !waits_for_poll {
            steps.push(Step::Tick);
        }
    }

    fn there(&self, name: &ResourceName) -> Option<u8> {
        match self.cache.get(&self.fixed.type_url, name).state {
            State::Present(resource) => resource.body().last().copied(),
            _ => None,
        }
    }

    fn due(&self) -> Option<Instant> {
        let server = self.server.as_ref().and_then(Server::poll_timeout);
        self.client.poll_timeout().into_iter().chain(server).min()
    }

    // The steps.

    /// Takes a step. Panics if a check fails.
    pub fn take(&mut self, step: Step) {
        self.budget.spend(step);
        self.happen(step);
    }

    fn happen(&mut self, step: Step) {
        self.go(step);
        self.drive();
        use Step::{Answer, Cut, Done, Down, Hear, Pick, Refused, Tell, Unwatch, Watch};
        if matches!(
            step,
            Answer | Cut | Done { .. } | Down | Hear | Pick { .. } | Refused | Tell | Unwatch { .. } | Watch { .. }
        ) {
            self.check();
        }
    }

    fn go(&mut self, step: Step) {
        match step {
            Step::Open => {
                self.streams += 1;
                let config = server::Config::ads().with_types(self.fixed.types.clone());
                self.server = Some(Server::new(config, StreamId(self.streams)));
                self.answered = false;
                self.client.handle_open();
            }
            Step::Refused => self.set_away(true),
            Step::Ask => self.ask(),
            Step::Answer => {
                let server = self.server.as_mut().expect("a stream");
                if let Some(response) = server.poll_transmit(self.now, &self.cache) {
                    self.client.handle_response(self.now, V::message(&response)).expect("a server of ours");
                    self.answered = true;
                    self.set_away(false);
                }
            }
            Step::Hear => self.hear(),
            Step::Tell => {
                if let Some(event) = self.layer.poll_event() {
                    self.goals |= self.ghost.turn(event, self.fixed.setup.waits);
                }
            }
            Step::Pick { w } => {
                let id = self.ids[w].expect("a watcher");
                let event = self.layer.poll_watch(id).expect("there is something to be told");
                assert_eq!(event.watch, id);
                self.goals |= self.ghost.tell(event, self.fixed.setup.waits);
            }
            Step::Done { w } => {
                let id = self.ids[w].expect("a watcher");
                self.ghost.done(id);
                self.layer.handle_done(id);
            }
            Step::Judge => {
                let verdict = self.verdicts.pop_front().expect("a verdict");
                self.client.handle_verdict(self.now, verdict).expect("the update is out");
            }
            Step::Tick | Step::Early => {
                self.now = self.now.max(self.due().expect("something is due"));
                self.client.handle_timeout(self.now);
                self.server.iter_mut().for_each(|server| server.handle_timeout(self.now));
            }
            Step::Watch { w } => self.watch(w),
            Step::Unwatch { w } => self.unwatch(w),
            Step::Put { n, content } => self.put(n, content),
            Step::Delete { n } => {
                self.pointed = self.pointed.filter(|of| *of != n);
                self.cache.remove(&self.fixed.type_url, self.fixed.names[n].as_str());
            }
            Step::Point { to } => {
                let from = std::mem::replace(&mut self.pointed, to);
                for n in from.into_iter().chain(to) {
                    let content = self.there(&self.fixed.names[n]).expect("it is there");
                    self.put(n, content);
                }
            }
            Step::Fail { n, code } => {
                let status = Status::new(code, "no");
                self.cache.set_error(&self.fixed.type_url, self.fixed.names[n].clone(), status);
            }
            Step::Cut => self.end(),
            Step::Down => {
                self.up = false;
                if self.server.is_some() {
                    self.end();
                }
            }
            Step::Up => self.up = true,
        }
    }

    /// Runs the driver's steps after each input.
    fn drive(&mut self) {
        if self.server.is_some() && !self.client.wants_stream() {
            self.end();
        }
        while !self.fixed.setup.lazy && self.client.wants_transmit() {
            self.ask();
        }
        self.actions.extend(std::iter::from_fn(|| self.client.poll_action()));
        while self.server.as_mut().is_some_and(|server| server.poll_action().is_some()) {}
        while let Some(verdict) = self.layer.poll_verdict() {
            self.ghost.judge(&verdict);
            self.verdicts.push_back(verdict);
        }
    }

    fn ask(&mut self) {
        let transmit = self.client.poll_transmit().expect("wants_transmit says so");
        let server = self.server.as_mut().expect("a stream");
        server.handle_request(self.now, transmit.request).expect("a client of ours");
        self.client.handle_sent(self.now, transmit.sent);
    }

    fn watch(&mut self, w: usize) {
        let name = self.fixed.names[self.fixed.setup.watchers[w]].clone();
        let first = !self.ghost.is_watched(&name);
        let mut spy = Spy { client: &mut self.client, said: Vec::new() };
        let id = self.layer.watch(&mut spy, &name);
        let expected = first.then(|| ("subscribe", name.clone()));
        assert_eq!(spy.said, Vec::from_iter(expected), "the first who watches subscribes");
        self.ghost.watch(id, &name);
        self.ids[w] = Some(id);
    }

    fn unwatch(&mut self, w: usize) {
        let id = self.ids[w].take().expect("a watcher");
        let name = self.ghost.watchers[&id].name.clone();
        self.goals |= self.ghost.unwatch(id);
        let mut spy = Spy { client: &mut self.client, said: Vec::new() };
        self.layer.unwatch(&mut spy, id);
        let expected = (!self.ghost.is_watched(&name)).then_some(("unsubscribe", name));
        assert_eq!(spy.said, Vec::from_iter(expected), "the last who leaves unsubscribes");
    }

    fn hear(&mut self) {
        let action = self.actions.pop_front().expect("an action");
        let told_before = self.ghost.clone();
        self.goals |= self.ghost.hear(&action, self.fixed.setup.data_errors, self.fixed.setup.waits);
        let other = self.layer.handle_action(action, |resource| {
            assert!(told_before.wants(&resource), "{} is decoded for nobody", resource.name());
            content_of(&resource)
        });
        assert_eq!(other, None, "it is of the type");
    }

    /// Ends the stream. Without any response the server counts as unreachable (gRFC A57).
    fn end(&mut self) {
        self.server = None;
        self.client.handle_close();
        if !self.answered && self.client.wants_stream() {
            self.set_away(true);
        }
    }

    fn set_away(&mut self, away: bool) {
        let status = Status::new(Code::Unavailable, "away");
        self.ghost.away = away.then(|| status.clone());
        if away {
            self.layer.handle_unreachable(status);
        } else {
            self.layer.handle_reachable();
        }
        self.ghost.tidy();
    }

    fn put(&mut self, n: usize, content: u8) {
        let name = self.fixed.names[n].clone();
        if !is_whole(&name) && !self.is_alias(n) {
            let alias = self.fixed.names.last().filter(|_| self.pointed == Some(n)).cloned();
            let mut body = vec![0x0a, name.as_str().len() as u8];
            body.extend_from_slice(name.as_str().as_bytes());
            body.extend_from_slice(&[0x78, content]);
            self.cache.insert(&self.fixed.type_url, Resource::new(name, Bytes::from(body)).with_aliases(alias));
        }
    }

    fn is_alias(&self, n: usize) -> bool {
        self.fixed.setup.alias && n + 1 == self.fixed.names.len()
    }

    // The checks.

    fn check(&self) {
        assert_eq!(self.client.check_invariants(), Ok(()));
        for (name, truth) in &self.ghost.truth {
            let watches = &self.layer.watches;
            assert_eq!(watches.get(name.as_str()).copied(), truth.content, "what is held of {name}");
            if self.ghost.is_watched(name) {
                assert_eq!(watches.error(name.as_str()), truth.error.as_ref(), "what is wrong with {name}");
            }
        }
        // Each pending event is returned when polled, and no other.
        let (mut layer, mut ghost) = (self.layer.clone(), self.ghost.clone());
        while let Some(event) = layer.poll_event() {
            _ = ghost.turn(event, self.fixed.setup.waits);
        }
        for (&watch, watcher) in &ghost.watchers {
            assert_eq!(ghost.owed(watch), NOTHING, "{watch:?} of {} is told nothing", watcher.name);
            assert_eq!(layer.poll_watch(watch), None, "all was told");
        }
        assert!(ghost.is_quiet(), "an answer is not told");
        // Then the verdict waits for exactly the watchers that have not finished.
        let given = layer.poll_verdict().is_some();
        assert_eq!(given, ghost.judging.is_some() && !ghost.is_waited_for(), "the verdict of {:?}", ghost.judging);
    }
}

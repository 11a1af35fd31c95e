//! A world around the layer that watches: a store, a server and a client that are real, nothing lost between them, a
//! driver, and watchers. Nothing of the layer is read to know what to expect (`ghost.rs`).

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

/// What is there at first, and what may change to; the last can't be decoded.
const CONTENTS: [u8; 3] = [1, 2, BAD];
const BAD: u8 = 9;

/// What can happen around watchers, by itself or from outside.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    // What goes on by itself.
    /// The stream comes up.
    Open,
    /// An attempt to open a stream fails.
    Refused,
    /// The client sends a request, and the server reads it.
    Ask,
    /// The server sends a response, and the client reads it.
    Answer,
    /// The layer hears of an action.
    Hear,
    /// Whose turn it is takes an event.
    Tell,
    /// A watcher is done with what it took first.
    Done {
        /// The number of the watcher.
        w: usize,
    },
    /// The client has a verdict.
    Judge,
    /// Time passes until the next thing is due, when all is quiet.
    Tick,

    // What happens.
    /// Time passes though all is not quiet.
    Early,
    /// A watcher comes.
    Watch {
        /// The number of the watcher.
        w: usize,
    },
    /// A watcher leaves.
    Unwatch {
        /// The number of the watcher.
        w: usize,
    },
    /// A watcher takes an event.
    Pick {
        /// The number of the watcher.
        w: usize,
    },
    /// The server has a new content for a resource.
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
    /// The alias comes to stand for a resource that is there, or for nothing.
    Point {
        /// What the alias stands for from now on.
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
    /// Returns whether it happens by itself.
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
    /// The last of the names is an alias, at first of the first.
    pub alias: bool,
    /// By watcher, the name that it watches.
    pub watchers: &'static [usize],
    /// How many of them watch at first, and know all there is.
    pub begun: usize,
    /// Whether the type is one of full state.
    pub full_state: bool,
    /// What becomes of what is held when there is an error.
    pub data_errors: DataErrors,
    /// Verdicts wait for watchers.
    pub waits: bool,
    /// What the server may report.
    pub codes: &'static [Code],
    /// Requests wait; otherwise they are sent as soon as there is something to say.
    pub lazy: bool,
    /// What may happen from outside, and how often.
    pub budget: Budget,
    /// What the layer does wrong, if anything.
    pub bug: Option<Bug>,
}

impl Setup {
    /// Two names, three watchers, nothing begun, nothing wrong.
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

/// What never changes.
struct Fixed {
    setup: Setup,
    type_url: TypeUrl,
    types: TypeRegistry,
    names: Vec<ResourceName>,
}

fn is_whole(name: &ResourceName) -> bool {
    name.as_str().ends_with('*')
}

/// Whether a resource is part of a whole: `*` is all, and `d/*` the directory.
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

/// Says what is asked of the client.
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

/// Everything there is: the layer, its client, a server, the watchers.
#[derive(Clone)]
pub struct World<V: Both> {
    fixed: Arc<Fixed>,
    budget: Budget,
    now: Instant,
    cache: Cache,
    /// What the alias stands for.
    pointed: Option<usize>,
    up: bool,
    client: Client<V>,
    server: Option<Server<V>>,
    /// There was a response on the stream.
    answered: bool,
    streams: u64,
    /// What the driver has for the layer, and for the client.
    actions: VecDeque<Action>,
    layer: Layer,
    verdicts: VecDeque<Verdict>,
    /// By watcher.
    ids: Vec<Option<WatchId>>,
    ghost: Ghost,
    goals: u128,
}

impl<V: Both> World<V> {
    /// Makes a world, with those watchers that are there from the beginning told all there is.
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

    // What can happen.

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
        if self.due().is_some_and(|due| due <= self.now) {
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

    // What happens.

    /// Takes a step. Panics if what must hold does not.
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

    /// What a driver does after each input.
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

    /// The stream ends. If nothing came on it, the server can't be reached (gRFC A57).
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

    // What must hold.

    fn check(&self) {
        assert_eq!(self.client.check_invariants(), Ok(()));
        for (name, truth) in &self.ghost.truth {
            let watches = &self.layer.watches;
            assert_eq!(watches.get(name.as_str()).copied(), truth.content, "what is held of {name}");
            if self.ghost.is_watched(name) {
                assert_eq!(watches.error(name.as_str()), truth.error.as_ref(), "what is wrong with {name}");
            }
        }
        // Whatever is owed is told, to whoever asks now; and nothing else.
        let (mut layer, mut ghost) = (self.layer.clone(), self.ghost.clone());
        while let Some(event) = layer.poll_event() {
            _ = ghost.turn(event, self.fixed.setup.waits);
        }
        for (&watch, watcher) in &ghost.watchers {
            assert_eq!(ghost.owed(watch), NOTHING, "{watch:?} of {} is told nothing", watcher.name);
            assert_eq!(layer.poll_watch(watch), None, "all was told");
        }
        assert!(ghost.is_quiet(), "an answer is not told");
        // And then the verdict waits for those who are not done, and for nobody else.
        let given = layer.poll_verdict().is_some();
        assert_eq!(given, ghost.judging.is_some() && !ghost.is_waited_for(), "the verdict of {:?}", ghost.judging);
    }
}

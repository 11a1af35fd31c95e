//! This crate's client beside a naive server.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use xds_machine::client::{Action, Client, Config, Update};
use xds_machine::message::Node;
use xds_machine::resource_type::TypeRegistry;
use xds_machine::{Code, Instant, Nonce, ResourceName, Version};

use super::client::is_wanted;
use super::server::Stream;
use super::setup::{Setup, Step};
use super::truth::{State, There, Truth, covers};
use super::walk::{Fault, Story, Walk, ensure};
use super::wire::{Ask, Said, Variant, content_of, short};

type Names = BTreeSet<ResourceName>;

mod judge;

use self::judge::{KNOWN_ACCEPTED_AFTER_LEAVING, KNOWN_ALIASES_TAKEN_AWAY, KNOWN_NAMES_BEHIND_RETURNING};

pub(super) struct WithClient<V: Variant> {
    setup: Setup,
    now: Instant,
    late: Duration,
    client: Client<V>,
    apps: Vec<App>,
    truth: Vec<Truth>,
    /// The server's streams, one for each type.
    server: Option<Vec<Stream>>,
    streams: u64,
    /// Whether a request was sent on the stream.
    greeted: bool,
    up: VecDeque<Ask>,
    /// Responses in flight, with the subscriptions that the server knew.
    down: VecDeque<(Said, Names)>,
    story: Story,
}

/// The application's view of one type.
#[derive(Default)]
struct App {
    wanted: Names,
    applied: BTreeMap<ResourceName, Applied>,
    judging: VecDeque<Update>,
    /// Resources of responses that were read, some of which wait for their verdicts.
    unjudged: Names,
    rejected: BTreeMap<ResourceName, BTreeSet<Option<u8>>>,
    lapsed: Names,
    /// Names that were unsubscribed on this stream: heartbeats of an earlier subscription may arrive.
    left: Names,
    /// Wildcards and collections that were unsubscribed and subscribed to again, and not sent since.
    again: Names,
    /// Resources with an error that was read on this stream, and whether a name that covers them was unsubscribed since,
    /// or subscribed to again.
    erred: BTreeMap<ResourceName, bool>,
    /// Resources that arrived on this stream for an unsubscribed name; an alias of one may be, or may have been,
    /// subscribed to.
    raced: Names,
    asked: bool,
    /// Responses that were read and not answered: the nonces, the versions, and whether a resource was rejected, if
    /// known.
    reads: VecDeque<(Nonce, Version, Option<bool>)>,
    /// The last answer was a NACK of a response that was merged into a later one, of which the update was rejected.
    blamed: bool,
    nonce: Nonce,
    accepted: Version,
    /// The versions of responses that may have been accepted, and whose ACKs were not sent before their stream ended.
    unsent: BTreeSet<Version>,
}

struct Applied {
    content: u8,
    version: Version,
}

impl<V: Variant> Walk for WithClient<V> {
    fn new(setup: Setup) -> Self {
        let types = TypeRegistry::new(setup.types.iter().cloned());
        Self {
            now: Instant::EPOCH,
            late: Duration::ZERO,
            client: Client::new(Config::new(Node::new("n")).with_types(types)),
            apps: setup.types.iter().map(|_| App::default()).collect(),
            truth: setup.types.iter().map(|_| Truth::new(!setup.unknown)).collect(),
            server: None,
            streams: 0,
            greeted: false,
            up: VecDeque::new(),
            down: VecDeque::new(),
            story: Story::default(),
            setup,
        }
    }

    fn story(&mut self) -> &mut Story {
        &mut self.story
    }

    fn take(&mut self, step: Step) -> Result<(), Fault> {
        match step {
            Step::Subscribe { t, n } => self.subscribe(t, self.setup.wish(n)),
            Step::Unsubscribe { t, n } => self.unsubscribe(t, &self.setup.wish(n)),
            Step::Send { .. } => _ = self.ask()?,
            Step::Up => _ = self.up(),
            Step::Poll { mood } => _ = self.poll(mood),
            Step::Down { .. } => _ = self.down()?,
            Step::Judge { t, mood } => _ = self.judge(t, mood)?,
            Step::Put { t, n, content, aliases } => self.put(t, n, content, aliases),
            Step::Delete { t, n } => self.set(t, n, State::Absent),
            Step::Fail { t, n, code } if code == Code::NotFound.number() => self.set(t, n, State::Absent),
            Step::Fail { t, n, code } => self.set(t, n, State::Unknown(code)),
            Step::Doubt { t, n } => self.set(t, n, State::Unknown(0)),
            Step::Know { t } => self.truth[t].known = true,
            Step::Cut => self.cut(),
            Step::Open { .. } => self.open(),
            Step::Pass => self.pass()?,
            Step::Flow => self.flow()?,
            Step::Rest => self.rest()?,
        }
        self.drain()
    }
}

impl App {
    /// Forgets the resources of responses once none of these waits any more.
    fn forget_judged(&mut self) {
        if self.judging.is_empty() && self.reads.is_empty() {
            self.unjudged.clear();
        }
    }

    /// Notes that the server may have forgotten the errors of what a name covers, which the client keeps.
    fn doubt_errors(&mut self, name: &ResourceName) {
        self.erred.iter_mut().for_each(|(erred, left)| *left |= covers(name, erred));
    }
}

impl<V: Variant> WithClient<V> {
    // The store.

    fn put(&mut self, t: usize, n: usize, content: u8, mask: u8) {
        let aliases = self.setup.aliases.iter().enumerate().filter(|(i, _)| mask & (1 << i) != 0);
        let aliases = aliases.map(|(_, alias)| alias.clone()).collect();
        let there = There { content, aliases, ttl: self.setup.ttl(n, content) };
        for (name, there) in self.truth[t].put(&self.setup.names[n], there) {
            self.story.tell(|| format!("put {name}={} {:?}", there.content, there.aliases));
        }
    }

    fn set(&mut self, t: usize, n: usize, state: State) {
        let name = &self.setup.names[n];
        if self.truth[t].known && self.truth[t].state(name) != state {
            self.story.tell(|| format!("{name} is {state:?}"));
            self.truth[t].set(name, state);
        }
    }

    // The application.

    fn subscribe(&mut self, t: usize, name: ResourceName) {
        if self.apps[t].wanted.len() < self.setup.limit && self.apps[t].wanted.insert(name.clone()) {
            self.story.tell(|| format!("app wants {name}"));
            let app = &mut self.apps[t];
            app.again.extend(self.setup.many.iter().find(|many| **many == name && app.left.contains(*many)).cloned());
            if app.left.contains(&name) {
                app.doubt_errors(&name);
            }
            self.client.resources_mut(self.setup.url(t)).subscribe([name]).expect("a good name");
        }
    }

    fn unsubscribe(&mut self, t: usize, name: &ResourceName) {
        let app = &mut self.apps[t];
        if app.wanted.remove(name) {
            self.story.tell(|| format!("app wants {name} no longer"));
            self.client.resources_mut(self.setup.url(t)).unsubscribe([name.as_str()]);
            // The client decides which other possible targets of an alias it holds.
            let held = self.held(t);
            let app = &mut self.apps[t];
            if !KNOWN_NAMES_BEHIND_RETURNING && app.again.iter().any(|many| covers(many, name)) {
                app.raced.insert(name.clone());
            }
            app.again.remove(name);
            if !KNOWN_ACCEPTED_AFTER_LEAVING {
                app.raced.extend(app.unjudged.iter().filter(|resource| covers(name, resource)).cloned());
            }
            app.doubt_errors(name);
            app.left.insert(name.clone());
            // Of the responses in flight none is for a later subscription to the name.
            let url = self.setup.url(t);
            self.down
                .iter_mut()
                .filter(|(said, _)| said.type_url == *url)
                .for_each(|(_, wanted)| _ = wanted.remove(name));
            app.applied.retain(|name, _| held.contains(name));
        }
    }

    fn held(&self, t: usize) -> Names {
        let of_type = self.client.states().filter(|(url, ..)| *url == self.setup.url(t));
        of_type.filter(|(.., state)| state.version.is_some()).map(|(_, name, _)| name.clone()).collect()
    }

    /// Judges an update: rejects all of it, one resource, or nothing.
    fn judge(&mut self, t: usize, mood: u8) -> Result<bool, Fault> {
        let app = &mut self.apps[t];
        let Some(update) = app.judging.pop_front() else { return Ok(false) };
        let names: Names = update.resources().map(|resource| resource.name().clone()).collect();
        let rejects: Names = match mood {
            0 => names.iter().chain(update.removed()).cloned().collect(),
            1 => names.iter().take(1).cloned().collect(),
            _ => Names::new(),
        };
        self.story.tell(|| format!("app takes {names:?}, removed {:?}, but rejects {rejects:?}", update.removed()));
        for resource in update.resources() {
            let (name, content) = (resource.name().clone(), content_of(resource.body()));
            if rejects.contains(&name) {
                app.rejected.entry(name).or_default().insert(Some(content));
            } else {
                app.rejected.remove(&name);
                app.lapsed.remove(&name);
                app.applied.insert(name, Applied { content, version: resource.version().clone() });
            }
        }
        for name in update.removed() {
            if rejects.contains(name) {
                app.rejected.entry(name.clone()).or_default().insert(None);
            } else {
                app.applied.remove(name);
                app.rejected.remove(name);
            }
        }
        if let Some(read) = app.reads.iter_mut().find(|(nonce, ..)| nonce == update.nonce()) {
            read.2 = Some(read.2 == Some(true) || !rejects.is_empty());
        }
        let reject = |name: &ResourceName| xds_machine::client::Rejection::new(name.clone(), "no");
        let verdict = update.reject(rejects.iter().map(reject));
        self.client.handle_verdict(self.now, verdict).expect("it waits for this");
        app.forget_judged();
        // Unsubscribed resources are not held.
        let held = self.held(t);
        self.apps[t].applied.retain(|name, _| held.contains(name) || !names.contains(name));
        self.drain()?;
        Ok(true)
    }

    fn drain(&mut self) -> Result<(), Fault> {
        while let Some(action) = self.client.poll_action() {
            match action {
                Action::Apply(update) => {
                    let t = self.setup.type_number(update.type_url());
                    self.apps[t].judging.push_back(update);
                }
                Action::Expired { type_url, names } => {
                    let t = self.setup.type_number(&type_url);
                    self.story.tell(|| format!("{names:?} expire"));
                    names.into_iter().try_for_each(|name| self.expire(t, name))?;
                }
                Action::Rejected { type_url, nonce, faults } => {
                    // Only heartbeats of lost resources may be faulty.
                    let t = self.setup.type_number(&type_url);
                    let (app, truth) = (&mut self.apps[t], &self.truth[t]);
                    let left = |name: &ResourceName| app.left.iter().any(|left| truth.ever_asked_by(left, name));
                    let lost = |name: &ResourceName| {
                        app.lapsed.contains(name) || app.rejected.contains_key(name) || left(name)
                    };
                    let excused = faults.iter().all(|fault| fault.name.as_ref().is_some_and(lost));
                    ensure(excused, "the client finds fault with what is right", || format!("{faults:?}"))?;
                    app.reads.iter_mut().filter(|read| read.0 == nonce).for_each(|read| read.2 = Some(true));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn expire(&mut self, t: usize, name: ResourceName) -> Result<(), Fault> {
        let app = &mut self.apps[t];
        let had = app.applied.remove(&name).map(|applied| applied.content);
        let there = self.truth[t].there(&name).filter(|there| Some(there.content) == had);
        let taken_away = !KNOWN_ALIASES_TAKEN_AWAY && self.truth[t].had_alias(&name);
        let heard =
            !taken_away && self.late.is_zero() && self.up.is_empty() && self.down.is_empty() && app.judging.is_empty();
        let fault =
            there.is_some() && heard && self.server.is_some() && app.rejected.is_empty() && !app.raced.contains(&name);
        app.lapsed.insert(name.clone());
        ensure(!fault, "what is there expires", || name.to_string())
    }

    // The stream.

    fn open(&mut self) {
        if self.server.is_some() {
            return;
        }
        self.streams += 1;
        self.story.tell(|| "open".into());
        let stream = |kind: &xds_machine::resource_type::ResourceType| {
            let prefix = format!("{}.{}.", self.streams, short(kind.type_url()));
            Stream::new(kind.clone(), V::DELTA, self.setup.hold, prefix)
        };
        self.server = Some(self.setup.types.iter().map(stream).collect());
        self.client.handle_open();
        self.greeted = false;
        for app in &mut self.apps {
            (app.asked, app.nonce, app.blamed) = (false, Nonce::default(), false);
            let may_have = app.reads.drain(..).filter(|(.., rejected)| *rejected != Some(true));
            app.unsent.extend(may_have.map(|(_, version, _)| version));
            app.raced.clear();
            app.lapsed.clear(); // no version may be claimed that leaves an expired resource out
            app.left.clear();
            app.erred.clear();
            app.again.clear();
        }
    }

    fn cut(&mut self) {
        if self.server.take().is_some() {
            self.story.tell(|| "cut".into());
            self.client.handle_close();
            self.up.clear();
            self.down.clear();
        }
    }

    fn ask(&mut self) -> Result<bool, Fault> {
        let Some(transmit) = self.client.poll_transmit() else { return Ok(false) };
        self.client.handle_sent(self.now, transmit.sent);
        let ask = V::ask(&transmit.request);
        self.story.tell(|| format!("  client: {ask}"));
        self.apps[self.setup.type_number(&ask.type_url)].again.retain(|name| !ask.names.contains(name));
        self.check_request(&ask)?;
        self.up.push_back(ask);
        Ok(true)
    }

    fn up(&mut self) -> bool {
        let (Some(server), Some(ask)) = (&mut self.server, self.up.pop_front()) else { return false };
        let t = self.setup.type_number(&ask.type_url);
        self.story.tell(|| format!("    server reads {ask}"));
        server[t].hear(self.now, &ask, &self.truth[t]);
        true
    }

    fn poll(&mut self, mood: u8) -> bool {
        let Some(server) = &mut self.server else { return false };
        let mut streams = server.iter_mut().zip(&self.truth);
        let say = |(stream, truth): (&mut Stream, &Truth)| {
            stream.poll(self.now, truth, mood).map(|said| (said, stream.asked.wanted.clone()))
        };
        let Some((said, mut wanted)) = streams.find_map(say) else { return false };
        // A name that is unsubscribed, and subscribed to again, is another subscription by then.
        let app = &self.apps[self.setup.type_number(&said.type_url)];
        wanted.retain(|name| app.wanted.contains(name) && !app.again.contains(name));
        for ask in self.up.iter().filter(|ask| ask.type_url == said.type_url) {
            wanted.retain(|name| !ask.leave.contains(name) && (V::DELTA || ask.names.contains(name)));
        }
        self.story.tell(|| format!("  server: {said}"));
        self.down.push_back((said, wanted));
        true
    }

    fn down(&mut self) -> Result<bool, Fault> {
        if !self.client.wants_response() {
            return Ok(false);
        }
        let Some((said, wanted)) = self.down.pop_front() else { return Ok(false) };
        self.story.tell(|| format!("    client reads {said}"));
        let app = &mut self.apps[self.setup.type_number(&said.type_url)];
        let both: Names = app.wanted.intersection(&wanted).cloned().collect();
        let races = said.items.iter().filter(|item| !is_wanted(&both, &item.name, &item.aliases));
        app.raced.extend(races.map(|item| item.name.clone()));
        app.unjudged.extend(said.items.iter().map(|item| item.name.clone()));
        app.erred.extend(said.errors.iter().map(|(name, _)| (name.clone(), false)));
        app.nonce = said.nonce.clone();
        app.reads.push_back((said.nonce.clone(), said.version.clone(), None));
        let taken = self.client.handle_response(self.now, V::to_response(&said));
        ensure(taken.is_ok(), "a response that keeps the rules is refused", || format!("{taken:?}: {said}"))?;
        self.drain()?;
        Ok(true)
    }

    fn flow(&mut self) -> Result<(), Fault> {
        for _ in 0..1_000 {
            let mut moved = false;
            for t in 0..self.apps.len() {
                while self.judge(t, 9)? {
                    moved = true;
                }
            }
            moved |= self.ask()? | self.up() | self.poll(3) | self.down()?;
            if !moved {
                return Ok(());
            }
        }
        ensure(false, "it goes on for ever", String::new)
    }

    fn pass(&mut self) -> Result<(), Fault> {
        let judges = self.apps.iter().any(|app| !app.judging.is_empty());
        if self.ask()? || self.poll(3) || judges || !self.up.is_empty() || !self.down.is_empty() {
            if self.late < Duration::from_secs(15) {
                self.late += Duration::from_secs(3);
                self.advance(self.now + Duration::from_secs(3))?;
            }
            return Ok(());
        }
        self.late = Duration::ZERO;
        self.advance(self.due().unwrap_or(self.now + Duration::from_secs(10)))
    }

    fn due(&self) -> Option<Instant> {
        let beats = self.server.iter().flatten().filter_map(Stream::due);
        beats.chain(self.client.poll_timeout()).min()
    }

    fn advance(&mut self, now: Instant) -> Result<(), Fault> {
        self.now = self.now.max(now);
        self.story.tell(|| format!("it is {} s", self.now.since_epoch().as_secs()));
        if self.server.iter().flatten().filter_map(Stream::due).any(|due| due <= self.now) {
            self.flow()?;
        }
        self.client.handle_timeout(self.now);
        self.drain()
    }
}

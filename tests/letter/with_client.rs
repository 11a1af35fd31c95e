//! Our client beside a naive server.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use xds_machine::client::{Action, Client, Config, Update};
use xds_machine::message::Node;
use xds_machine::{Code, Instant, Nonce, ResourceName, Types, Version};

use super::client::is_wanted;
use super::server::Stream;
use super::setup::{Setup, Step, Ttls};
use super::truth::{State, There, Truth, covers};
use super::walk::{Fault, Story, Walk, ensure};
use super::wire::{Ask, Said, Variant, content_of, short};

type Names = BTreeSet<ResourceName>;

// What is known of our client, with the trace: `true` looks for it.

/// `+y +z -> {b [z]}; ACK; -> {b [y], c [z]}`: `c` is taken and `b` removed, for it was what `z` stood for; but `y` stands for
/// it now.
const KNOWN_ALIASES_CHANGE_HANDS: bool = false;

/// `+c +y -> {c [y]}; ACK; -> {c []}; ACK; -c`: the client keeps `c` for `y`, though `c` came without that alias. And what
/// such a `c` came with is applied, but an older version is claimed.
const KNOWN_ALIASES_TAKEN_AWAY: bool = false;

pub struct WithClient<V: Variant> {
    setup: Setup,
    now: Instant,
    late: Duration,
    client: Client<V>,
    apps: Vec<App>,
    truth: Vec<Truth>,
    /// A stream, of each type.
    server: Option<Vec<Stream>>,
    streams: u64,
    /// Whether a request was sent on the stream.
    greeted: bool,
    up: VecDeque<Ask>,
    /// With what the server knew to be wanted.
    down: VecDeque<(Said, Names)>,
    story: Story,
}

/// What the application knows of one type.
#[derive(Default)]
struct App {
    wanted: Names,
    applied: BTreeMap<ResourceName, Applied>,
    judging: VecDeque<Update>,
    rejected: BTreeMap<ResourceName, BTreeSet<Option<u8>>>,
    lapsed: Names,
    /// What came on this stream for a name that was left already; an alias of it may be wanted, or have been.
    raced: Names,
    asked: bool,
    /// What was read and is not answered: nonces, and whether something was rejected if that is known.
    reads: VecDeque<(Nonce, Version, Option<bool>)>,
    nonce: Nonce,
    accepted: Version,
}

struct Applied {
    content: u8,
    version: Version,
}

impl<V: Variant> Walk for WithClient<V> {
    fn new(setup: Setup) -> Self {
        let types = Types::new(setup.types.iter().cloned());
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
            self.client.subscribe(self.setup.url(t), [name]).expect("a good name");
        }
    }

    fn unsubscribe(&mut self, t: usize, name: &ResourceName) {
        let app = &mut self.apps[t];
        if app.wanted.remove(name) {
            self.story.tell(|| format!("app wants {name} no longer"));
            self.client.unsubscribe(self.setup.url(t), [name.as_str()]);
            // What else an alias may stand for is for the client to say.
            let held = self.held(t);
            self.apps[t].applied.retain(|name, _| held.contains(name));
        }
    }

    fn held(&self, t: usize) -> Names {
        let of_type = self.client.states().filter(|(url, ..)| *url == self.setup.url(t));
        of_type.filter(|(.., state)| state.version.is_some()).map(|(_, name, _)| name.clone()).collect()
    }

    /// Judges an update: rejects all of it, or one resource, or nothing.
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
        // What is not wanted any more is not held.
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
                    // Only a heartbeat of what was lost may be at fault.
                    let app = &mut self.apps[self.setup.type_number(&type_url)];
                    let lost = |name: &ResourceName| app.lapsed.contains(name) || app.rejected.contains_key(name);
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
        let there = self.truth[t].there(&name).filter(|there| Some(there.content) == had && there.ttl.is_some());
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
        let stream = |kind: &xds_machine::ResourceType| {
            let prefix = format!("{}.{}.", self.streams, short(kind.type_url()));
            Stream::new(kind.clone(), V::DELTA, self.setup.hold, prefix)
        };
        self.server = Some(self.setup.types.iter().map(stream).collect());
        self.client.handle_open(self.now);
        self.greeted = false;
        for app in &mut self.apps {
            (app.asked, app.nonce) = (false, Nonce::default());
            app.reads.clear();
            app.raced.clear();
        }
    }

    fn cut(&mut self) {
        if self.server.take().is_some() {
            self.story.tell(|| "cut".into());
            self.client.handle_close(self.now);
            self.up.clear();
            self.down.clear();
        }
    }

    fn ask(&mut self) -> Result<bool, Fault> {
        let Some(transmit) = self.client.poll_transmit() else { return Ok(false) };
        self.client.handle_sent(self.now, transmit.sent);
        let ask = V::ask(&transmit.request);
        self.story.tell(|| format!("  client: {ask}"));
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
        let Some((said, wanted)) = streams.find_map(say) else { return false };
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
        app.nonce = said.nonce.clone();
        app.reads.push_back((said.nonce.clone(), said.version.clone(), None));
        let taken = self.client.handle_response(self.now, V::response(&said));
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

    // What a request may say.

    fn check_request(&mut self, ask: &Ask) -> Result<(), Fault> {
        let t = self.setup.type_number(&ask.type_url);
        let (app, what) = (&mut self.apps[t], || ask.to_string());
        let first = !std::mem::replace(&mut app.asked, true);
        ensure(
            ask.node.is_some() || std::mem::replace(&mut self.greeted, true),
            "the first request has no node",
            what,
        )?;
        self.greeted = true;
        let all: Names = ask.names.iter().chain(&ask.leave).cloned().collect();
        ensure(all.len() == ask.names.len() + ask.leave.len(), "a name is in a request twice", what)?;
        let empty = all.is_empty();
        let legacy = app.wanted.contains("*");
        ensure(!first || !empty || legacy, "a first request asks for everything by mistake", what)?;
        ensure(first || ask.claims.is_empty(), "a later request has claims", what)?;
        for (name, version) in &ask.claims {
            // A claim without a version is of what came by a stream that is gone, judged or not: it has to come again.
            let same = |applied: &Applied| applied.version == *version;
            let taken_away = !KNOWN_ALIASES_TAKEN_AWAY && self.truth[t].had_alias(name);
            let had = taken_away || version.as_str().is_empty() || app.applied.get(name).is_some_and(same);
            ensure(had, "a claim of what is not held", || {
                let held = app.applied.get(name).map(|applied| &applied.version);
                format!("{name} {version}, held is {held:?}, in {ask}")
            })?;
        }
        if first {
            return ensure(ask.nonce.as_str().is_empty() && ask.error.is_none(), "a first request answers", what);
        }
        let answers = app.reads.front().is_some_and(|(nonce, ..)| *nonce == ask.nonce);
        if V::DELTA {
            ensure(answers || ask.nonce.as_str().is_empty(), "a nonce is not of what waits for an answer", what)?;
        } else {
            let last = app.nonce == ask.nonce;
            ensure(answers || last, "a nonce is not the last", what)?;
        }
        if !answers {
            return ensure(ask.error.is_none(), "a request that answers nothing rejects", what);
        }
        let (_, version, rejected) = app.reads.pop_front().expect("it is there");
        let rejects = ask.error.is_some();
        ensure(rejects == (rejected == Some(true)), "a verdict is not what was said", what)?;
        if !V::DELTA && !rejects {
            app.accepted = version;
        }
        ensure(V::DELTA || ask.version == app.accepted || ask.version.as_str().is_empty(), "another version", what)
    }

    // At rest.

    fn rest(&mut self) -> Result<(), Fault> {
        self.open();
        self.flow()?;
        self.late = Duration::ZERO;
        let (from, lives) = (self.now, self.setup.ttls != Ttls::None);
        for _ in 0..100 {
            let Some(due) = self.due() else { break };
            if lives && due > from + Duration::from_secs(200) {
                break;
            }
            self.advance(due)?;
            self.flow()?;
        }
        for t in 0..self.apps.len() {
            self.settled(t)?;
        }
        Ok(())
    }

    fn settled(&self, t: usize) -> Result<(), Fault> {
        let (truth, app) = (&self.truth[t], &self.apps[t]);
        let kind = short(self.setup.url(t));
        let deletes = V::DELTA || self.setup.types[t].is_full_state();
        let heard = self.server.as_ref().map(|server| &server[t].asked.wanted);
        ensure(heard == Some(&app.wanted), "the views of what is wanted differ", || {
            format!("{kind}: {heard:?} and {:?}", app.wanted)
        })?;
        ensure(app.reads.is_empty(), "a response is not answered", || format!("{kind}: {:?}", app.reads))?;
        for name in &self.setup.names {
            let has = app.applied.get(name).map(|applied| applied.content);
            let is_rejected = |what: &Option<u8>| app.rejected.get(name).is_some_and(|all| all.contains(what));
            match truth.state(name) {
                State::Present(there) if truth.is_wanted(&app.wanted, name) => {
                    let by_alias = !app.wanted.iter().any(|wish| covers(wish, name));
                    let excused = is_rejected(&Some(there.content))
                        || (has.is_none() && app.lapsed.contains(name))
                        || (has.is_none() && by_alias && !KNOWN_ALIASES_CHANGE_HANDS);
                    ensure(has == Some(there.content) || excused, "what is there is not held", || {
                        format!("{kind}: {name} is {}, held is {has:?}", there.content)
                    })?;
                }
                State::Unknown(_) => {}
                _ => {
                    let taken_away = !KNOWN_ALIASES_TAKEN_AWAY && truth.had_alias(name);
                    let mut doubts = app.wanted.iter().filter(|wish| truth.was_asked_by(wish, name));
                    let excused = is_rejected(&None)
                        || !deletes
                        || taken_away
                        || app.raced.contains(name)
                        || doubts.any(|wish| truth.is_doubtful(wish));
                    ensure(has.is_none() || excused, "what is gone is held", || {
                        format!("{kind}: {name} is {:?}, held is {has:?}", truth.state(name))
                    })?;
                }
            }
        }
        Ok(())
    }
}

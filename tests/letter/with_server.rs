//! Our server beside a naive client.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use xds_machine::server::{Action, Cache, Config, Portion, Resource, Retry, Server, StreamId};
use xds_machine::{Code, Instant, ResourceName, Status, Types};

use super::asked::Asked;
use super::client::{Client, is_wanted};
use super::setup::{Setup, Step, Ttls};
use super::truth::{State, There, Truth, covers};
use super::walk::{Fault, Story, Walk, ensure};
use super::wire::{Ask, Item, Said, Variant, body, short};

// What is known of our server, with the trace: `true` looks for it.

/// What the client is sent for another name, and keeps for an alias that the server has not heard of yet, or not with that
/// name, is not removed when the alias moves: `+c; put c [x] -> {c}` crosses `-c +x`, the client takes `c` in as what `x` stands for; `put c []; put b [x] -> {b}`: the
/// client keeps `c`. `put a [x]; +* -> {a}; ACK; put a []; +x -*` is answered by `removed=[x]`: the client keeps `a`.
const KNOWN_RACE_OF_ALIASES: bool = false;
/// `put a/90s; +a -> {a}; NACK`, and 30 s later a heartbeat of `a`, which who rejected it does not have.
const KNOWN_HEARTBEATS_OF_REJECTED: bool = false;
/// `put a; +a -> {a}; cut; put a [x]; open; +a +x has a` is silence: the version is the same, so `a` counts as had, and the
/// client never learns what `x` is.
const KNOWN_ALIASES_WITHOUT_VERSION: bool = false;
/// `put a [x]; fail a; put c [x]; del c; +a` is silence: the error is lost when the alias goes back to unknown. And
/// `put a [x]; fail a; put c [x]; doubt c; put a [x]; +x` is silence, though `x` is `a`.
const KNOWN_ALIASES_OF_UNKNOWN: bool = false;

pub struct WithServer<V: Variant> {
    setup: Setup,
    config: Config,
    now: Instant,
    /// For how long time passed while something was on the way.
    late: Duration,
    cache: Cache,
    truth: Vec<Truth>,
    client: Client,
    server: Option<Server<V>>,
    streams: u64,
    up: VecDeque<Ask>,
    /// With what the server knew to be wanted.
    down: VecDeque<(Said, BTreeSet<ResourceName>)>,
    views: Vec<View>,
    story: Story,
}

/// What the server was told on this stream of one type, and what it said.
#[derive(Default)]
struct View {
    asked: Asked,
    /// What the client was sent, and how often that had been touched.
    told: BTreeMap<ResourceName, (u8, u64)>,
    /// Of what the client was sent, what both knew to be wanted when it was read.
    known: BTreeMap<ResourceName, BTreeSet<ResourceName>>,
    /// What the client has from another stream.
    claimed: BTreeSet<ResourceName>,
    /// What was rejected.
    rejected: BTreeSet<ResourceName>,
    nonces: BTreeSet<String>,
    /// What was in each response that was not answered.
    out: BTreeMap<String, Vec<ResourceName>>,
}

impl<V: Variant> Walk for WithServer<V> {
    fn new(setup: Setup) -> Self {
        let portion = Portion { resources: setup.portion.unwrap_or(usize::MAX), ..Portion::default() };
        let config = Config::ads().with_types(Types::new(setup.types.iter().cloned())).with_portion(portion);
        let config = if setup.hold { config.with_sotw_removal_hold() } else { config };
        let retry = setup.retry.map(|times| Retry { after: Duration::from_secs(10), times });
        let config = retry.into_iter().fold(config, Config::with_retry);
        let cache = if setup.unknown { Cache::unknown(1) } else { Cache::new(1) };
        let cache = setup.page.into_iter().fold(cache.with_tombstones(setup.tombstones), Cache::with_page);
        Self {
            config,
            now: Instant::EPOCH,
            late: Duration::ZERO,
            cache,
            truth: setup.types.iter().map(|_| Truth::new(!setup.unknown)).collect(),
            client: Client::new(&setup.types, V::DELTA),
            server: None,
            streams: 0,
            up: VecDeque::new(),
            down: VecDeque::new(),
            views: Vec::new(),
            story: Story::default(),
            setup,
        }
    }

    fn story(&mut self) -> &mut Story {
        &mut self.story
    }

    fn take(&mut self, step: Step) -> Result<(), Fault> {
        match step {
            Step::Subscribe { t, n } => {
                let (name, wanted) = (self.setup.wish(n), &self.client.types[t].wanted);
                if wanted.len() < self.setup.limit && !wanted.contains(&name) {
                    self.story.tell(|| format!("client wants {name}"));
                    let asks = self.client.subscribe(t, name);
                    self.send(asks);
                }
            }
            Step::Unsubscribe { t, n } => {
                let name = self.setup.wish(n);
                if self.client.types[t].wanted.contains(&name) {
                    self.story.tell(|| format!("client wants {name} no longer"));
                    let asks = self.client.unsubscribe(t, &name);
                    self.send(asks);
                }
            }
            Step::Send { t } => _ = self.ask(t),
            Step::Up => _ = self.up()?,
            Step::Poll { .. } => _ = self.poll()?,
            Step::Down { accept, plain } => _ = self.down(accept, plain)?,
            Step::Judge { .. } => {}
            Step::Put { t, n, content, aliases } => self.put(t, n, content, aliases),
            Step::Delete { t, n } => self.set(t, n, State::Absent),
            Step::Fail { t, n, code } if code == Code::NotFound.number() => self.fail(t, n, code, State::Absent),
            Step::Fail { t, n, code } => self.fail(t, n, code, State::Unknown(code)),
            Step::Doubt { t, n } => self.set(t, n, State::Unknown(0)),
            Step::Know { t } => {
                self.story.tell(|| "the store knows the type".into());
                self.cache.set_known(self.setup.url(t));
                self.truth[t].known = true;
            }
            Step::Cut => self.cut(),
            Step::Open { claims } => self.open(claims),
            Step::Pass => self.pass()?,
            Step::Flow => self.flow()?,
            Step::Rest => self.rest()?,
        }
        Ok(())
    }
}

impl<V: Variant> WithServer<V> {
    // The store.

    fn put(&mut self, t: usize, n: usize, content: u8, mask: u8) {
        let aliases = self.setup.aliases.iter().enumerate().filter(|(i, _)| mask & (1 << i) != 0);
        let aliases = aliases.map(|(_, alias)| alias.clone()).collect();
        let there = There { content, aliases, ttl: self.setup.ttl(n, content) };
        for (name, there) in self.truth[t].put(&self.setup.names[n], there) {
            self.story.tell(|| format!("put {name}={} {:?}", there.content, there.aliases));
            let resource = Resource::new(name.clone(), body(&name, there.content));
            let resource = there.ttl.into_iter().fold(resource, Resource::with_ttl);
            self.cache.insert(self.setup.url(t), resource.with_aliases(there.aliases));
        }
    }

    fn set(&mut self, t: usize, n: usize, state: State) {
        let name = &self.setup.names[n];
        if self.truth[t].state(name) == state || (state == State::Absent && !self.truth[t].known) {
            return;
        }
        self.story.tell(|| format!("{name} is {state:?}"));
        match state {
            State::Absent => self.cache.remove(self.setup.url(t), name.as_str()),
            _ => self.cache.set_unknown(self.setup.url(t), name.clone()),
        };
        self.truth[t].set(name, state);
    }

    fn fail(&mut self, t: usize, n: usize, code: i32, state: State) {
        let name = &self.setup.names[n];
        self.story.tell(|| format!("{name} has error {code}"));
        let status = Status { code, ..Status::new(Code::Unavailable, "no") };
        self.cache.set_error(self.setup.url(t), name.clone(), status);
        self.truth[t].set(name, state);
    }

    // The stream.

    fn open(&mut self, claims: u8) {
        if self.server.is_some() {
            return;
        }
        self.story.tell(|| format!("open, claims {claims}"));
        self.streams += 1;
        self.server = Some(Server::new(self.config.clone(), StreamId(self.streams)));
        self.client.open(claims);
        self.views = self.setup.types.iter().map(|_| View::default()).collect();
    }

    fn cut(&mut self) {
        if self.server.take().is_some() {
            self.story.tell(|| "cut".into());
            self.up.clear();
            self.down.clear();
        }
    }

    fn send(&mut self, asks: Vec<Ask>) {
        if self.server.is_some() {
            asks.iter().for_each(|ask| self.story.tell(|| format!("  client: {ask}")));
            self.up.extend(asks);
        }
    }

    fn ask(&mut self, t: usize) -> bool {
        let ask = self.client.request(t, self.server.is_some());
        let some = ask.is_some();
        self.send(ask.into_iter().collect());
        some
    }

    fn up(&mut self) -> Result<bool, Fault> {
        let (Some(server), Some(ask)) = (&mut self.server, self.up.pop_front()) else { return Ok(false) };
        let t = self.setup.type_number(&ask.type_url);
        self.story.tell(|| format!("    server reads {ask}"));
        self.views[t].hear(&ask, &self.truth[t], V::DELTA, self.setup.types[t].has_legacy_wildcard());
        let taken = server.handle_request(self.now, V::request(&ask));
        ensure(taken.is_ok(), "a request that keeps the rules is refused", || format!("{taken:?}: {ask}"))?;
        while let Some(action) = server.poll_action() {
            let closes = matches!(action, Action::Close(_));
            ensure(!closes, "the server closes for a request", || format!("{action:?}"))?;
        }
        Ok(true)
    }

    fn poll(&mut self) -> Result<bool, Fault> {
        let Some(server) = &mut self.server else { return Ok(false) };
        let response = server.poll_transmit(self.now, &self.cache);
        let mut closed = false;
        while let Some(action) = server.poll_action() {
            closed |= matches!(action, Action::Close(_));
        }
        if closed {
            self.story.tell(|| "the server closes".into());
            self.cut();
            return Ok(true);
        }
        let Some(said) = response.map(|response| V::said(&response)) else { return Ok(false) };
        self.story.tell(|| format!("  server: {said}"));
        self.judge(&said)?;
        let wanted = self.views[self.setup.type_number(&said.type_url)].asked.wanted.clone();
        self.down.push_back((said, wanted));
        Ok(true)
    }

    fn down(&mut self, accept: bool, plain: bool) -> Result<bool, Fault> {
        let Some((said, wanted)) = self.down.pop_front() else { return Ok(false) };
        if !KNOWN_RACE_OF_ALIASES {
            let t = self.setup.type_number(&said.type_url);
            let both: BTreeSet<_> = self.client.types[t].wanted.intersection(&wanted).cloned().collect();
            let known = said.items.iter().map(|item| (item.name.clone(), both.clone()));
            self.views[t].known.extend(known);
        }
        let verb = if accept { "reads" } else { "rejects" };
        self.story.tell(|| format!("    client {verb} {said}"));
        let ask = self.client.read(self.now, &said, accept, plain)?;
        self.send(vec![ask]);
        Ok(true)
    }

    /// Everything that can arrive does. Whether there was anything.
    fn flow(&mut self) -> Result<(), Fault> {
        while self.hop()? {}
        Ok(())
    }

    fn hop(&mut self) -> Result<bool, Fault> {
        let mut moved = false;
        for t in 0..self.setup.types.len() {
            moved |= self.ask(t);
        }
        while self.up()? {
            moved = true;
        }
        while self.poll()? {
            moved = true;
        }
        while self.down(true, false)? {
            moved = true;
        }
        Ok(moved)
    }

    fn pass(&mut self) -> Result<(), Fault> {
        if self.poll()? || !self.up.is_empty() || !self.down.is_empty() {
            if self.late < Duration::from_secs(15) {
                self.late += Duration::from_secs(3);
                self.advance(self.now + Duration::from_secs(3))?;
            }
            return Ok(());
        }
        self.late = Duration::ZERO;
        let due = self.server.as_ref().and_then(Server::poll_timeout);
        let due = due.into_iter().chain(self.client.due()).min();
        self.advance(due.unwrap_or(self.now + Duration::from_secs(10)))
    }

    /// It is later, and what has lived its time goes, but what the server speaks of right now.
    fn advance(&mut self, now: Instant) -> Result<(), Fault> {
        self.now = self.now.max(now);
        self.story.tell(|| format!("it is {} s", self.now.since_epoch().as_secs()));
        let Some(server) = &mut self.server else {
            self.client.expire(self.now);
            return Ok(());
        };
        server.handle_timeout(self.now);
        let due = server.poll_timeout().is_some_and(|due| due <= self.now);
        if self.client.due().is_some_and(|until| until <= self.now) && due {
            self.flow()?;
        }
        for (t, name, content) in self.client.expire(self.now) {
            let of = &self.client.types[t];
            self.story.tell(|| format!("{name} expires"));
            let lives = self.truth[t].there(&name).is_some_and(|there| there.content == content && there.ttl.is_some());
            let rejected = of.rejected.contains_key(&name);
            let heard =
                self.views[t].told.contains_key(&name) && self.truth[t].is_wanted(&self.views[t].asked.wanted, &name);
            let on_time = self.late.is_zero() && self.up.is_empty() && self.down.is_empty();
            let fault = lives && !rejected && heard && on_time && self.server.is_some();
            ensure(!fault, "what is there expires", || name.to_string())?;
        }
        Ok(())
    }

    // At rest.

    fn rest(&mut self) -> Result<(), Fault> {
        self.open(1);
        self.flow()?;
        self.late = Duration::ZERO;
        let (from, lives) = (self.now, self.setup.ttls != Ttls::None);
        for _ in 0..100 {
            self.open(1); // a stream that was behind was closed
            self.flow()?;
            let due = self.server.as_ref().and_then(Server::poll_timeout);
            let Some(due) = due.into_iter().chain(self.client.due()).min() else { break };
            if lives && due > from + Duration::from_secs(200) {
                break;
            }
            self.advance(due)?;
        }
        self.open(1);
        self.flow()?;
        for t in 0..self.setup.types.len() {
            self.settled(t)?;
        }
        Ok(())
    }

    /// The client has what there is of what it wants.
    fn settled(&self, t: usize) -> Result<(), Fault> {
        let (truth, of) = (&self.truth[t], &self.client.types[t]);
        let kind = short(self.setup.url(t));
        let deletes = V::DELTA || self.setup.types[t].is_full_state();
        ensure(self.views[t].asked.wanted == of.wanted, "the views of what is wanted differ", || {
            format!("{kind}: {:?} and {:?}", self.views[t].asked.wanted, of.wanted)
        })?;
        for name in &self.setup.names {
            let has = of.held.get(name).map(|held| held.content);
            let is_rejected = |what: &Option<u8>| of.rejected.get(name).is_some_and(|all| all.contains(what));
            match truth.state(name) {
                State::Present(there) if truth.is_wanted(&of.wanted, name) => {
                    let is_sure = |wish: &ResourceName| covers(wish, name) || !truth.is_doubtful(wish);
                    let mut wishes = of.wanted.iter().filter(|wish| truth.is_asked_by(wish, name));
                    let excused = is_rejected(&Some(there.content))
                        || (has.is_none() && of.lapsed.contains(name))
                        || (!KNOWN_ALIASES_OF_UNKNOWN && !wishes.any(is_sure));
                    ensure(has == Some(there.content) || excused, "what is there is not held", || {
                        format!("{kind}: {name} is {}, held is {has:?}", there.content)
                    })?;
                }
                // The alias that it had moved on.
                State::Unknown(_) if !KNOWN_ALIASES_OF_UNKNOWN && truth.had_alias(name) => {}
                State::Unknown(code) if code != 0 => {
                    let knows = of.errors.contains_key(name) || !of.wanted.contains(name);
                    ensure(knows || is_rejected(&None), "an error is not told", || format!("{kind}: {name}"))?;
                }
                State::Unknown(_) => {}
                _ => {
                    let raced = self.views[t].known.get(name).is_some_and(|known| {
                        let both = known.intersection(&of.wanted).cloned().collect();
                        of.held.get(name).is_some_and(|held| !is_wanted(&both, name, &held.aliases))
                    });
                    // What an alias stands for that belonged to what is not known is not known either.
                    let mut doubts = of.wanted.iter().filter(|wish| truth.was_asked_by(wish, name));
                    let excused = is_rejected(&None) || !deletes || raced || doubts.any(|wish| truth.is_doubtful(wish));
                    ensure(has.is_none() || excused, "what is gone is held", || {
                        format!("{kind}: {name} is {:?}, held is {has:?}", truth.state(name))
                    })?;
                }
            }
        }
        for wish in of.wanted.iter().filter(|wish| V::DELTA && !wish.as_str().ends_with('*')) {
            let unknown = matches!(truth.state(wish), State::Unknown(_)) || truth.is_doubtful(wish);
            let knows = of.answered.contains(wish)
                || of.held.iter().any(|(name, held)| {
                    let unversioned = !KNOWN_ALIASES_WITHOUT_VERSION && truth.is_asked_by(wish, name);
                    name == wish || held.aliases.contains(wish) || unversioned
                });
            ensure(knows || unknown, "a name has no answer", || format!("{kind}: {wish}"))?;
        }
        Ok(())
    }

    // What a response may say.

    fn judge(&mut self, said: &Said) -> Result<(), Fault> {
        let t = self.setup.type_number(&said.type_url);
        let (view, truth, setup) = (&mut self.views[t], &self.truth[t], &self.setup);
        let nonce = said.nonce.as_str().to_owned();
        ensure(!nonce.is_empty() && view.nonces.insert(nonce.clone()), "a nonce is not new", || said.to_string())?;
        ensure(view.asked.any, "a response of a type that was not asked for", || said.to_string())?;
        for Item { name, content, aliases, ttl, .. } in &said.items {
            let fault = || format!("{name} in {said}");
            let Some(there) = truth.there(name) else {
                ensure(setup.hold && !V::DELTA, "what is not there is sent", fault)?;
                continue;
            };
            ensure(truth.is_wanted(&view.asked.wanted, name), "what is not wanted is sent", fault)?;
            ensure(*ttl == there.ttl, "another TTL is sent", fault)?;
            let Some(content) = content else {
                let rejected = !KNOWN_HEARTBEATS_OF_REJECTED && view.rejected.contains(name);
                let has = rejected
                    || view.claimed.contains(name)
                    || view.told.get(name).is_some_and(|(content, _)| *content == there.content);
                ensure(has, "a heartbeat of what was not sent", fault)?;
                continue;
            };
            let same = *content == there.content && aliases.iter().all(|alias| there.aliases.contains(alias));
            ensure(same, "another content is sent", fault)?;
            let now = (*content, truth.touched(name));
            let again = view.told.insert(name.clone(), now) == Some(now);
            // With portions what changes before its turn may go twice; endpoints go with their clusters; in SotW all does.
            let may = setup.portion.is_some() || setup.types.len() > 1 || (!V::DELTA && setup.types[t].is_full_state());
            ensure(may || !again, "what did not change is sent again", fault)?;
        }
        for name in &said.removed {
            let stands = truth.there(name).is_some() && truth.is_wanted(&view.asked.wanted, name);
            ensure(!stands, "what is there and wanted is removed", || format!("{name} in {said}"))?;
            view.told.remove(name);
        }
        for (name, _) in &said.errors {
            view.told.remove(name);
        }
        let complete = !V::DELTA && setup.types[t].is_full_state() && truth.known;
        for (name, _) in truth.present().filter(|(name, _)| complete && truth.is_wanted(&view.asked.wanted, name)) {
            let has = said.items.iter().any(|item| item.name == *name);
            ensure(has, "a response of a full-state type leaves something out", || format!("{name}: {said}"))?;
        }
        view.out.insert(nonce, said.items.iter().map(|item| item.name.clone()).collect());
        Ok(())
    }
}

impl View {
    fn hear(&mut self, ask: &Ask, truth: &Truth, delta: bool, legacy: bool) {
        self.asked.hear(ask, delta, legacy);
        let rejected = self.out.remove(ask.nonce.as_str()).filter(|_| ask.error.is_some());
        let rejected = rejected.unwrap_or_default();
        self.rejected.extend(rejected.iter().cloned());
        // What is asked for, or left though the wildcard may have it, may go again.
        let asks = |wish: &ResourceName, name: &ResourceName| covers(wish, name) || truth.is_asked_by(wish, name);
        for (name, told) in &mut self.told {
            let may = ask.names.iter().chain(&ask.leave).any(|wish| asks(wish, name));
            told.1 = if may { u64::MAX } else { told.1 };
        }
        self.told.retain(|name, _| !rejected.contains(name));
        self.told.retain(|name, _| truth.is_wanted(&self.asked.wanted, name));
        self.claimed.extend(ask.claims.keys().cloned());
        for name in ask.claims.keys() {
            if let Some(there) = truth.there(name) {
                self.told.insert(name.clone(), (there.content, u64::MAX));
            }
        }
    }
}

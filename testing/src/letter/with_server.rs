//! This crate's server beside a naive client.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use xds_machine::resource_type::TypeRegistry;
use xds_machine::server::{Action, Cache, Config, Limits, Resource, ResponseLimit, Server, StreamId};
use xds_machine::{Code, Instant, ResourceName, Status};

use super::asked::Asked;
use super::client::Client;
use super::setup::{Setup, Step};
use super::truth::{State, There, Truth};
use super::walk::{Fault, Story, Walk, ensure};
use super::wire::{Ask, Said, Variant, body};

mod judge;

use self::judge::KNOWN_RACE_OF_ALIASES;

pub(super) struct WithServer<V: Variant> {
    setup: Setup,
    config: Config,
    now: Instant,
    /// The time that passed with messages in flight.
    late: Duration,
    cache: Cache,
    truth: Vec<Truth>,
    client: Client,
    server: Option<Server<V>>,
    streams: u64,
    up: VecDeque<Ask>,
    /// Responses in flight, with the subscriptions that the server knew.
    down: VecDeque<(Said, BTreeSet<ResourceName>)>,
    views: Vec<View>,
    story: Story,
}

/// The requests that the server received for one type on this stream, and its responses.
#[derive(Default)]
struct View {
    asked: Asked,
    /// The resources sent to the client, each with its number of changes at that time.
    told: BTreeMap<ResourceName, (u8, u64)>,
    /// For the resources sent to the client, the subscriptions known to both when the client read or claimed them.
    known: BTreeMap<ResourceName, BTreeSet<ResourceName>>,
    /// The resources that the client has from another stream.
    claimed: BTreeSet<ResourceName>,
    /// The rejected resources.
    rejected: BTreeSet<ResourceName>,
    nonces: BTreeSet<String>,
    /// The resources of each unanswered response.
    out: BTreeMap<String, Vec<ResourceName>>,
}

impl<V: Variant> Walk for WithServer<V> {
    fn new(setup: Setup) -> Self {
        let response_limit =
            ResponseLimit { resources: setup.response_limit.unwrap_or(usize::MAX), ..ResponseLimit::default() };
        let config = Config::ads()
            .with_types(TypeRegistry::new(setup.types.iter().cloned()))
            .with_limits(Limits { stale_requests: 0, waiting_actions: 0, ..Limits::default() })
            .with_response_limit(response_limit);
        let config = if setup.hold { config.with_sotw_removal_delay() } else { config };
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
        let taken = server.handle_request(self.now, V::to_request(&ask));
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

    /// Delivers all messages in flight.
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

    /// Advances time. Resources expire, except those that the server is just renewing.
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
            let lives = self.truth[t].there(&name).is_some_and(|there| there.content == content);
            let rejected = of.rejected.contains_key(&name);
            let heard =
                self.views[t].told.contains_key(&name) && self.truth[t].is_wanted(&self.views[t].asked.wanted, &name);
            let on_time = self.late.is_zero() && self.up.is_empty() && self.down.is_empty();
            let fault = lives && !rejected && heard && on_time && self.server.is_some();
            ensure(!fault, "what is there expires", || name.to_string())?;
        }
        Ok(())
    }
}

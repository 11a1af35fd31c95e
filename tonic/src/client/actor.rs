//! The task of a client.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::uri::PathAndQuery;
use tokio::sync::mpsc::{Sender, UnboundedReceiver, WeakUnboundedSender};
use tokio::sync::{oneshot, watch};
use xds_machine::client::{self, Variant, Verdict};
use xds_machine::csds::{ClientConfig, Clock, Contents, ItemRef, dump_servers, merge};
use xds_machine::message::Node;
use xds_machine::proto::Wire;
use xds_machine::servers::{self, Action, Servers};
use xds_machine::service::Method;
use xds_machine::watch::WatchId;
use xds_machine::{Instant, Misuse, ResourceName, TypeUrl, service};
use xds_machine_driver::Runtime as _;

use super::engine::{Dials, Engine, type_of};
use super::raw::Raw;
use super::state::{Dumped, Phase, Report, ServerState};
use super::status_service::{EncodedStatus, StatusRequest};
use super::synced::Synced;
use super::types::{OfType, Wish};
use super::watch::WatchError;
use crate::TokioRuntime;

/// How long a client that is closed waits for its servers to end their streams.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Why an update is rejected that the program has dropped.
const NO_VERDICT: &str = "the application gave no verdict";

/// The number of one [`Updates`](super::Updates).
pub(super) type Owner = u64;

/// A command of a handle to the task.
pub(super) enum Command {
    Watch(Box<dyn Wish>),
    Unwatch {
        type_url: TypeUrl,
        watch: WatchId,
    },
    Updates {
        reports: Sender<Report>,
        commands: WeakUnboundedSender<Command>,
        reply: oneshot::Sender<Owner>,
    },
    Subscribe {
        owner: Owner,
        type_url: TypeUrl,
        names: Vec<ResourceName>,
        reply: oneshot::Sender<Result<(), WatchError>>,
    },
    Unsubscribe {
        owner: Owner,
        type_url: TypeUrl,
        names: Vec<ResourceName>,
    },
    Verdict {
        owner: Owner,
        verdict: Verdict,
        reply: oneshot::Sender<Result<(), Misuse>>,
    },
    /// The program has neither the update nor a verdict on it any more.
    Dropped {
        owner: Owner,
        update: client::Update,
    },
    Leave {
        owner: Owner,
    },
    Synced {
        types: Vec<TypeUrl>,
        reply: oneshot::Sender<()>,
    },
    Dump(oneshot::Sender<Vec<Dumped>>),
    Status {
        contents: bool,
        reply: oneshot::Sender<ClientConfig>,
    },
    EncodedStatus {
        request: StatusRequest,
        reply: oneshot::Sender<EncodedStatus>,
    },
    Close,
}

/// The recipient of the actions of a type.
enum Taker {
    Watchers(Box<dyn OfType>),
    Updates(Owner),
}

/// The state of the task. Dropped in the order of the fields: streams end before watches, and the handles notice last.
pub(super) struct Actor<V: Variant + Wire> {
    config: servers::Config,
    dials: Dials,
    /// One for all types, or one for each.
    engines: BTreeMap<Option<&'static str>, Engine<V>>,
    aggregated: bool,
    takers: BTreeMap<TypeUrl, Taker>,
    raws: BTreeMap<Owner, Raw>,
    owners: Owner,
    synced: Synced,
    runtime: TokioRuntime,
    clock: Clock,
    /// `None` if contents are not kept.
    contents: Option<Contents>,
    states: watch::Sender<Vec<ServerState>>,
    commands: UnboundedReceiver<Command>,
}

impl<V: Variant + Wire> Actor<V> {
    /// # Errors
    ///
    /// If the configuration is invalid.
    pub(super) fn new(
        config: servers::Config,
        dials: Dials,
        aggregated: bool,
        keeps_contents: bool,
        states: watch::Sender<Vec<ServerState>>,
        commands: UnboundedReceiver<Command>,
    ) -> Result<Self, servers::ConfigError> {
        let runtime = TokioRuntime::new();
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut actor = Self {
            config,
            dials,
            engines: BTreeMap::new(),
            aggregated,
            takers: BTreeMap::new(),
            raws: BTreeMap::new(),
            owners: 0,
            synced: Synced::default(),
            runtime,
            clock: Clock::new(runtime.now(), since_1970),
            contents: keeps_contents.then(Contents::new),
            states,
            commands,
        };
        // This checks the configuration even if the engine is not needed.
        let engine = actor.make_engine(Method { variant: V::VARIANT, type_url: None })?;
        if aggregated {
            actor.engines.extend(engine.map(|engine| (None, engine)));
        }
        actor.publish_states();
        Ok(actor)
    }

    /// Runs until the client is closed, or all handles to it are dropped.
    pub(super) async fn run(mut self) {
        loop {
            self.settle();
            self.publish_states();
            match poll_fn(|cx| self.poll(cx)).await {
                Some(command) => {
                    // Waiting commands are carried out before the next request is sent, so that it includes them.
                    let mut next = Some(command);
                    while let Some(command) = next {
                        if matches!(command, Command::Close) {
                            return self.close().await;
                        }
                        self.handle(command);
                        next = self.commands.try_recv().ok();
                    }
                }
                None if self.commands.is_closed() && self.commands.is_empty() => return,
                None => {}
            }
        }
    }

    /// Takes no more commands, and ends the streams from this side.
    async fn close(mut self) {
        self.commands.close();
        while self.commands.try_recv().is_ok() {} // callers that wait for a reply learn of the close
        let ended = poll_fn(|cx| {
            let finish = |engine: &mut Engine<V>| engine.links.poll_finish(cx).is_pending();
            if self.engines.values_mut().map(finish).fold(false, |some, is| some | is) {
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        });
        let _ = tokio::time::timeout(LAST_WORDS, ended).await; // the stream of a server that does not end it is reset
    }

    /// Waits for work: returns a command, or `None` after other work.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Command>> {
        if let Poll::Ready(command) = self.commands.poll_recv(cx) {
            return Poll::Ready(command);
        }
        let mut reads = true;
        for raw in self.raws.values_mut() {
            reads &= raw.poll_room(cx).is_ready();
        }
        for engine in self.engines.values_mut() {
            engine.links.set_reads(reads);
            if let Poll::Ready(reports) = engine.poll(cx) {
                for report in reports {
                    self.raws.values_mut().for_each(|raw| raw.report(report.clone()));
                }
                return Poll::Ready(None);
            }
        }
        Poll::Pending
    }

    /// Passes each action to the recipient of its type, and each verdict to the machine, until there are none.
    fn settle(&mut self) {
        loop {
            let mut verdicts = Vec::new();
            for engine in self.engines.values_mut() {
                while let Some(action) = engine.poll_action() {
                    if let (Some(contents), Some(update)) = (&mut self.contents, update_of(&action)) {
                        contents.handle_update(update);
                    }
                    self.synced.note_action(&action);
                    verdicts.extend(deliver(action, engine.type_url, &mut self.takers, &mut self.raws));
                }
            }
            for taker in self.takers.values_mut() {
                if let Taker::Watchers(watchers) = taker {
                    verdicts.extend(std::iter::from_fn(|| watchers.poll_verdict()));
                }
            }
            if verdicts.is_empty() {
                break;
            }
            for verdict in verdicts {
                let type_url = verdict.type_url().clone();
                if let Some(engine) = engine(&mut self.engines, &type_url) {
                    let judged = handle_verdict(engine, &mut self.contents, self.runtime.now(), verdict);
                    debug_assert_eq!(judged, Ok(()), "each update is judged once, and no action waits");
                    self.synced.note_verdict(&type_url);
                }
            }
        }
        for taker in self.takers.values_mut() {
            if let Taker::Watchers(watchers) = taker {
                watchers.wake();
            }
        }
    }

    fn handle(&mut self, command: Command) {
        match command {
            Command::Watch(wish) => self.watch(wish),
            Command::Unwatch { type_url, watch } => self.unwatch(&type_url, watch),
            Command::Updates { reports, commands, reply } => {
                self.owners += 1;
                self.raws.insert(self.owners, Raw::new(self.owners, reports, commands));
                if reply.send(self.owners).is_err() {
                    self.raws.remove(&self.owners);
                }
            }
            Command::Subscribe { owner, type_url, names, reply } => {
                _ = reply.send(self.subscribe(owner, type_url, names));
            }
            Command::Unsubscribe { owner, type_url, names } => self.unsubscribe(owner, &type_url, &names),
            Command::Verdict { owner, verdict, reply } => _ = reply.send(self.judge(owner, verdict)),
            Command::Dropped { owner, update } => self.reject_dropped(owner, update),
            Command::Leave { owner } => self.leave(owner),
            Command::Synced { types, reply } => self.synced.wait(types, reply),
            Command::Dump(reply) => _ = reply.send(self.dump()),
            Command::Status { contents, reply } => {
                let (node, items) = self.status(contents);
                let items = items.map(|item| item.to_item()).collect();
                _ = reply.send(ClientConfig { node: node.cloned(), scope: String::new(), items });
            }
            Command::EncodedStatus { request, reply } => {
                let (node, items) = self.status(request.contents());
                _ = reply.send(request.answer(node.map(Arc::as_ref), items));
            }
            Command::Close => {}
        }
    }

    fn watch(&mut self, wish: Box<dyn Wish>) {
        let type_url = wish.type_url();
        if let Err(error) = self.prepare(&type_url) {
            return wish.refuse(error);
        }
        let Some(engine) = engine(&mut self.engines, &type_url) else { return wish.refuse(WatchError::Closed) };
        let unreachable = &engine.unreachable;
        let taker = self.takers.entry(type_url.clone()).or_insert_with(|| {
            let mut watchers = wish.make();
            for (authority, &server) in unreachable {
                watchers.handle_action(Action::Unreachable { authority: authority.clone(), server });
            }
            Taker::Watchers(watchers)
        });
        let Taker::Watchers(watchers) = taker else { return wish.refuse(WatchError::InUse { type_url }) };
        wish.fulfil(watchers.as_mut(), &mut engine.servers);
        if watchers.is_empty() {
            self.takers.remove(&type_url);
        }
    }

    fn unwatch(&mut self, type_url: &TypeUrl, watch: WatchId) {
        let (Some(engine), Some(Taker::Watchers(watchers))) =
            (engine(&mut self.engines, type_url), self.takers.get_mut(type_url))
        else {
            return;
        };
        watchers.unwatch(&mut engine.servers, watch);
        if watchers.is_empty() {
            self.takers.remove(type_url);
            self.synced.forget(type_url);
        }
    }

    fn subscribe(&mut self, owner: Owner, type_url: TypeUrl, names: Vec<ResourceName>) -> Result<(), WatchError> {
        self.prepare(&type_url)?;
        let (Some(engine), Some(raw)) = (engine(&mut self.engines, &type_url), self.raws.get_mut(&owner)) else {
            return Err(WatchError::Closed);
        };
        match self.takers.get(&type_url) {
            Some(Taker::Updates(other)) if *other == owner => {}
            Some(_) => return Err(WatchError::InUse { type_url }),
            None => {}
        }
        engine.servers.resources_mut(&type_url).subscribe(&names)?;
        self.takers.insert(type_url.clone(), Taker::Updates(owner));
        raw.subscribed(type_url, names);
        Ok(())
    }

    fn unsubscribe(&mut self, owner: Owner, type_url: &TypeUrl, names: &[ResourceName]) {
        let Some(raw) = self.raws.get_mut(&owner) else { return };
        // An owner can't unsubscribe from names of another owner.
        let names = raw.unsubscribed(type_url, names);
        self.release(owner, type_url);
        if let Some(engine) = engine(&mut self.engines, type_url) {
            engine.servers.resources_mut(type_url).unsubscribe(&names);
        }
    }

    fn judge(&mut self, owner: Owner, verdict: Verdict) -> Result<(), Misuse> {
        let now = self.runtime.now();
        let type_url = verdict.type_url().clone();
        let unknown = || Misuse::UnknownUpdate { type_url: type_url.clone() };
        // The update of another owner waits for the verdict of that owner.
        let raw = self.raws.get_mut(&owner).filter(|raw| raw.awaits_verdict(&type_url)).ok_or_else(unknown)?;
        let engine = engine(&mut self.engines, &type_url).ok_or_else(unknown)?;
        handle_verdict(engine, &mut self.contents, now, verdict)?;
        raw.judged(&type_url);
        self.synced.note_verdict(&type_url);
        self.release(owner, &type_url);
        Ok(())
    }

    /// Rejects an update that the program has dropped, unless it was judged before.
    fn reject_dropped(&mut self, owner: Owner, update: client::Update) {
        if self.raws.get(&owner).is_some_and(|raw| raw.awaits_verdict_on(&update)) {
            _ = self.judge(owner, update.reject_all(NO_VERDICT));
        }
    }

    /// Frees a type for other owners once its owner is done with it.
    fn release(&mut self, owner: Owner, type_url: &TypeUrl) {
        let is_own = matches!(self.takers.get(type_url), Some(Taker::Updates(of)) if *of == owner);
        if is_own && self.raws.get(&owner).is_some_and(|raw| raw.is_done(type_url)) {
            self.takers.remove(type_url);
            self.synced.forget(type_url);
        }
    }

    /// Ends all subscriptions of an owner.
    fn leave(&mut self, owner: Owner) {
        let Some(raw) = self.raws.remove(&owner) else { return };
        let (names, updates) = raw.into_parts();
        self.takers.retain(|type_url, taker| {
            let is_left = matches!(taker, Taker::Updates(of) if *of == owner);
            if is_left {
                self.synced.forget(type_url);
            }
            !is_left
        });
        for (type_url, names) in names {
            if let Some(engine) = engine(&mut self.engines, &type_url) {
                engine.servers.resources_mut(&type_url).unsubscribe(names);
            }
        }
        for update in updates {
            let type_url = update.type_url().clone();
            if let Some(engine) = engine(&mut self.engines, &type_url) {
                // The resources are dropped with their subscription; a response without a verdict blocks its type.
                _ = handle_verdict(engine, &mut self.contents, self.runtime.now(), update.accept());
            }
        }
    }

    fn dump(&self) -> Vec<Dumped> {
        let rows = self.engines.values().flat_map(|engine| {
            engine.servers.states().map(|(server, type_url, name, state)| Dumped {
                server,
                authoritative: engine.servers.server_of(name.clone()) == Some(server),
                type_url: type_url.clone(),
                name: name.clone(),
                status: state.status,
                version: state.version.cloned(),
                error: state.error.cloned(),
            })
        });
        rows.collect()
    }

    fn status(&self, contents: bool) -> (Option<&Arc<Node>>, impl Iterator<Item = ItemRef<'_>>) {
        let contents = self.contents.as_ref().filter(|_| contents);
        let dumps = self.engines.values().map(|engine| dump_servers(&engine.servers, &self.clock, contents));
        (self.config.servers().next().map(|server| server.node()), merge(dumps.collect()))
    }

    /// Makes the engine of a type, if there is none yet.
    fn prepare(&mut self, type_url: &TypeUrl) -> Result<(), WatchError> {
        let no_service = || WatchError::NoService { type_url: type_url.clone() };
        if self.aggregated || engine(&mut self.engines, type_url).is_some() {
            return Ok(());
        }
        let own = service::types().find(|own| *own == type_url.as_str()).ok_or_else(no_service)?;
        let made = self.make_engine(Method { variant: V::VARIANT, type_url: Some(own) });
        let engine = made.ok().flatten().ok_or_else(no_service)?;
        self.engines.insert(Some(own), engine);
        Ok(())
    }

    /// Returns `None` if the method has no path.
    fn make_engine(&self, method: Method) -> Result<Option<Engine<V>>, servers::ConfigError> {
        let servers = Servers::new(self.config.clone())?;
        let path = method.path().and_then(|path| path.parse::<PathAndQuery>().ok());
        Ok(path.map(|path| Engine::new(servers, self.dials.clone(), path, method.type_url, self.runtime)))
    }

    fn publish_states(&self) {
        let states: Vec<ServerState> = self.engines.values().flat_map(Engine::states).collect();
        self.states.send_if_modified(|before| {
            let differs = *before != states;
            *before = states;
            differs
        });
    }
}

impl<V: Variant + Wire> Drop for Actor<V> {
    /// Publishes that no server has a stream any more. The last errors stay.
    fn drop(&mut self) {
        self.states.send_modify(|states| states.iter_mut().for_each(|state| state.phase = Phase::Unused));
    }
}

/// Passes a verdict to the machine, and notes which contents were accepted.
fn handle_verdict<V: Variant + Wire>(
    engine: &mut Engine<V>,
    contents: &mut Option<Contents>,
    now: Instant,
    verdict: Verdict,
) -> Result<(), Misuse> {
    let Some(contents) = contents else { return engine.servers.handle_verdict(now, verdict) };
    let (client, type_url, rejections) =
        (verdict.client_id(), verdict.type_url().clone(), verdict.rejections().to_vec());
    engine.servers.handle_verdict(now, verdict)?;
    let of_engine = engine.type_url;
    contents.handle_verdict(client, &type_url, &rejections, |of, name| {
        // The contents of another engine's types are kept: only that engine knows whether they are held.
        of_engine.is_some_and(|own| own != of.as_str()) || engine.servers.is_held(of, name)
    });
    Ok(())
}

/// Returns the update of an action, if it has one.
fn update_of(action: &Action) -> Option<&client::Update> {
    match action {
        Action::Client { action: client::Action::Apply(update), .. } => Some(update),
        _ => None,
    }
}

/// Returns the engine of a type.
fn engine<'a, V: Variant + Wire>(
    engines: &'a mut BTreeMap<Option<&'static str>, Engine<V>>,
    type_url: &TypeUrl,
) -> Option<&'a mut Engine<V>> {
    let (_, engine) = engines.iter_mut().find(|(own, _)| own.is_none_or(|own| own == type_url.as_str()))?;
    Some(engine)
}

/// Passes an action to the recipient of its type. Returns the verdict on an update whose type has no recipient.
fn deliver(
    action: Action,
    of_engine: Option<&str>,
    takers: &mut BTreeMap<TypeUrl, Taker>,
    raws: &mut BTreeMap<Owner, Raw>,
) -> Option<Verdict> {
    let Some(type_url) = type_of(&action) else {
        for (type_url, taker) in takers {
            if let Taker::Watchers(watchers) = taker {
                if of_engine.is_none_or(|own| own == type_url.as_str()) {
                    watchers.handle_action(action.clone());
                }
            }
        }
        raws.values_mut().for_each(|raw| raw.report(Report::Action(action.clone())));
        return None;
    };
    match (takers.get_mut(type_url), action) {
        (Some(Taker::Watchers(watchers)), action) => _ = watchers.handle_action(action),
        (Some(Taker::Updates(owner)), action) => {
            if let Some(raw) = raws.get_mut(owner) {
                raw.act(action);
            }
        }
        // The type has no recipient any more: the resources are dropped, and the verdict unblocks the type.
        (None, Action::Client { action: client::Action::Apply(update), .. }) => return Some(update.accept()),
        (None, action) => raws.values_mut().for_each(|raw| raw.report(Report::Action(action.clone()))),
    }
    None
}

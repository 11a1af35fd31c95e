//! The client side of xDS: the role of Envoy, of a gRPC channel or of a custom proxy towards a control plane.
//!
//! A [`Client`] is a value: commands and events go in, actions and requests come out. The manual shows
//! [a driver](crate::manual::_01_driver) and [a client that follows references](crate::manual::_02_references),
//! and draws [the life of a name](crate::manual::names).
//!
//! ```
//! use xds_machine::client::{Action, Client, Config};
//! use xds_machine::message::{Any, Node, sotw};
//! use xds_machine::{Instant, Sotw, TypeUrl, type_url};
//!
//! let now = Instant::EPOCH;
//! let endpoints = TypeUrl::from(type_url::ENDPOINT);
//! let mut client = Client::<Sotw>::new(Config::new(Node::new("example")));
//! client.resources_mut(&endpoints).subscribe(["a"])?;
//! client.handle_open();
//!
//! let first = client.poll_transmit().expect("there is something to ask for");
//! assert_eq!((first.request.names.len(), first.request.version.as_str()), (1, ""));
//! client.handle_sent(now, first.sent);
//!
//! # let any = |bytes: &'static [u8]| Any { type_url: endpoints.clone(), value: bytes.into() };
//! client.handle_response(now, sotw::Response {
//!     version: "1".into(),
//!     resources: vec![sotw::Item::Bare(any(b"\x0a\x01a"))],
//!     type_url: endpoints.clone(),
//!     nonce: "n1".into(),
//!     control_plane: String::new(),
//!     errors: vec![],
//! })?;
//! let Some(Action::Apply(update)) = client.poll_action() else { panic!("an update") };
//! assert!(update.resource("a").is_some());
//! client.handle_verdict(now, update.accept())?;
//!
//! let ack = client.poll_transmit().expect("every response is answered");
//! assert_eq!((ack.request.version.as_str(), ack.request.nonce.as_str()), ("1", "n1"));
//! # Ok::<(), xds_machine::Error>(())
//! ```

mod action;
mod announced;
mod apply;
mod backoff;
mod bindings;
mod classify;
mod config;
mod deadlines;
mod delta;
mod failure;
mod failures;
mod guard;
mod handle;
mod holdings;
mod in_flight;
mod incoming;
mod invariants;
mod known;
mod layer;
mod merge;
mod names;
mod reading;
mod resources;
mod sotw;
mod standing;
mod state;
mod subscription;
mod timers;
mod transmit;
mod turns;
mod update;
mod variant;
mod waiting;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

pub use self::action::{Action, DropReason, Effect, Failed};
pub use self::backoff::Backoff;
pub use self::config::{Config, DataErrors, Dialect, Limits};
pub use self::failure::Failure;
pub use self::handle::{Resources, ResourcesMut};
pub use self::holdings::Absence;
pub use self::layer::{Layer, LayerMut};
pub(crate) use self::names::check_wish;
use self::reading::Reading;
pub use self::resources::Resource;
pub use self::state::{ResourceState, ResourceStatus};
use self::subscription::Subscription;
pub use self::transmit::{Intent, Sent, Transmit};
use self::turns::Turns;
pub use self::update::{Rejection, Update, Verdict};
use self::variant::Of;
pub use self::variant::Variant;
use crate::error::{Error, Misuse};
use crate::model::{Label, Relabel};
use crate::name::{Nonce, TypeUrl};
use crate::queue::Queue;
use crate::time::Instant;

/// The client of one server: subscriptions, held resources, and the stream if one is open.
///
/// The methods follow quinn-proto: `handle_*` methods take events, `poll_*` methods return work to do, and the others
/// are queries. A driver calls them in any order and at any time, and polls after each call as much as it has room for;
/// no queue must be drained before another method may be called.
///
/// Subscriptions and resources are kept per type: [`resources_mut`](Self::resources_mut) subscribes, unsubscribes and
/// pauses, and [`resources`](Self::resources) queries their state. Layers that combine several clients also use
/// [`layer_mut`](Self::layer_mut) and [`layer`](Self::layer).
///
/// Subscriptions and received resources outlive a stream; all other state starts anew with
/// [`handle_open`](Self::handle_open).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Client<V: Variant> {
    config: Config,
    /// Types in the order of their first subscription, which is the order of the first requests (C-STREAM-05).
    types: Vec<Of<V>>,
    /// The types with pending ACKs or NACKs, in the order of their turns (C-ADS-03).
    pending_acks: VecDeque<TypeUrl>,
    /// Paused types, each with the number of pauses to be resumed.
    paused: BTreeMap<TypeUrl, u32>,
    actions: Queue<Action>,
    /// The number of streams opened so far.
    epoch: u64,
    stream: Option<Stream>,
}

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
struct Stream {
    /// The number of requests made on this stream.
    sent: u64,
    turns: Turns,
    reading: Reading,
    /// Whether a layer above takes no responses now.
    unread: bool,
}

impl<V: Variant> Client<V> {
    /// Creates a client without subscriptions.
    pub fn new(config: Config) -> Self {
        let settings = config.settings();
        let on_demand = settings.quirks.on_demand.iter();
        let types = on_demand.map(|type_url| Subscription::on_demand(settings.resource_type(type_url))).collect();
        Self {
            config,
            types,
            pending_acks: VecDeque::new(),
            paused: BTreeMap::new(),
            actions: Queue::new(),
            epoch: 0,
            stream: None,
        }
    }

    // Events.

    /// Reports that a stream was opened. A stream that was open before counts as closed.
    pub fn handle_open(&mut self) {
        self.handle_close();
        self.merge_added_names();
        self.epoch += 1;
        self.stream = Some(Stream::default());
        // A type without subscriptions and without an update in flight has no state to keep.
        self.types.retain(|of| !of.is_idle());
    }

    /// Takes a response that was received. While the type's last update waits for its verdict, the response waits,
    /// merged with those that wait already ([a slow application](crate::manual::slow)); heartbeats renew at once.
    ///
    /// # Errors
    ///
    /// [`Error::Peer`] if the response can't even be answered: close the stream. [`Error::Caller`] if no stream is
    /// open, if too many actions wait to be polled, or if too many responses of the stream wait
    /// ([`wants_response`](Self::wants_response)). On an error, the machine is unchanged.
    pub fn handle_response(&mut self, now: Instant, response: V::Response) -> Result<(), Error> {
        self.check_actions()?;
        if self.stream.is_none() {
            return Err(Misuse::NoStream.into());
        }
        let settings = self.config.settings();
        V::unanswerable(&response, settings)?;
        let type_url = V::type_url(&response);
        let is_read = self.is_read();
        let asked = |of: &&mut Of<V>| of.type_url() == type_url && of.announced.asked();
        let Some(subscription) = self.types.iter_mut().find(asked) else {
            let (type_url, nonce) = (type_url.clone(), V::nonce(&response).clone());
            self.drop_stale(type_url, nonce, DropReason::NotAsked); // C-SUB-08, C-RES-19, C-DELTA-24
            self.let_time_stand(now);
            return Ok(());
        };
        if !is_read {
            return Err(Misuse::ResponsesWaitingOnStream { limit: settings.limits.responses_per_stream }.into());
        }
        subscription.receive::<V>(now, response, settings);
        let type_url = subscription.resource_type.type_url().clone();
        self.advance(now, &type_url);
        let is_full = self.is_full();
        if let Some(stream) = &mut self.stream {
            stream.reading = Reading::after_response(now, is_full);
        }
        self.let_time_stand(now);
        Ok(())
    }

    /// Reports that the transport has taken a request and all requests before it, which starts the existence time-outs
    /// of the requested names (gRFC A57). A receipt of another stream than the present one is ignored.
    pub fn handle_sent(&mut self, now: Instant, sent: Sent) {
        self.merge_added_names();
        if self.stream.is_some() && sent.epoch == self.epoch {
            for subscription in &mut self.types {
                subscription.timers.note_sent(sent.seq);
            }
            self.let_time_stand(now);
            for subscription in &mut self.types {
                subscription.sent::<V>(now, sent.seq, self.config.settings());
            }
        }
    }

    /// Takes the application's verdict on an update. The response is answered if its stream is still open; accepted
    /// resources count as held in any case. After a verdict on an update of a former stream, check
    /// [`wants_new_stream`](Self::wants_new_stream).
    ///
    /// # Errors
    ///
    /// [`Misuse::UnknownUpdate`] if the update, or a clone of it, already had a verdict, or belongs to another machine;
    /// [`Misuse::ActionsWaiting`] if too many actions wait to be polled.
    pub fn handle_verdict(&mut self, now: Instant, verdict: Verdict) -> Result<(), Misuse> {
        self.check_actions()?;
        let type_url = verdict.type_url().clone();
        let settings = self.config.settings();
        let errors = match find(&mut self.types, &type_url) {
            Some(subscription) => subscription.verdict::<V>(now, verdict, settings)?,
            None => return Err(Misuse::UnknownUpdate { type_url }),
        };
        if !errors.is_empty() {
            self.actions.push(Action::Errors { type_url: type_url.clone(), errors });
        }
        // The next response is processed eagerly, so that `wants_transmit` is exact.
        self.advance(now, &type_url);
        self.let_time_stand(now);
        Ok(())
    }

    /// Reports that the stream was closed. Subscriptions and held resources stay; waiting responses are dropped, and
    /// existence time-outs stop, because silence proves nothing without a stream.
    pub fn handle_close(&mut self) {
        self.merge_added_names();
        if self.stream.take().is_some() {
            self.pending_acks.clear();
            self.types.iter_mut().for_each(Subscription::leave_stream);
        }
    }

    /// Handles the time-outs that are due; does nothing before the time that [`poll_timeout`](Self::poll_timeout)
    /// returned. Time-outs are handled even if actions wait to be polled, at most three more of each type.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.merge_added_names();
        let is_full = self.is_full();
        if let Some(stream) = &mut self.stream {
            stream.reading = stream.reading.at(now, is_full);
        }
        self.let_time_stand(now);
        self.time_out(now);
    }

    // Work to do.

    /// Returns the next action for the application.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.merge_added_names();
        self.actions.pop()
    }

    /// Returns the next request, composed from the current state: call it when the transport has room. ACKs and NACKs
    /// come first, in the order of the verdicts. While both wait, answers and changes of subscriptions take turns, and
    /// so do the types among each, so that none waits for more than two requests of each type.
    ///
    /// A caller that limits the rate of requests calls this method as often as the limit allows, and no queue grows:
    /// names that were subscribed to meanwhile go into one request of their type, without those that were unsubscribed
    /// again. Only ACKs and NACKs queue up, bounded by [`Limits::waiting_responses`] (in delta each one is to be sent,
    /// because the server waits for it).
    pub fn poll_transmit(&mut self) -> Option<Transmit<V::Request>> {
        self.merge_added_names();
        let stream = self.stream.as_mut()?;
        let (settings, paused) = (self.config.settings(), &self.paused);
        let answer = self.pending_acks.iter().position(|type_url| !paused.contains_key(type_url));
        let news =
            stream.turns.next(self.types.len(), |at| V::has_news(&self.types[at]) && may_go(paused, &self.types[at]));
        let (subscription, ack) = match stream.turns.choose(answer, news)? {
            Ok(answer) => {
                let type_url = self.pending_acks.remove(answer)?;
                let subscription = find(&mut self.types, &type_url)?;
                let ack = subscription.in_flight.take_answer()?;
                if subscription.in_flight.pending_acks() > 0 {
                    self.pending_acks.push_back(type_url);
                }
                (subscription, Some(ack))
            }
            Err(news) => (self.types.get_mut(news)?, None),
        };
        let answers = ack.is_some();
        let mut composed = V::compose(subscription, ack, settings);
        stream.sent += 1;
        subscription.announced.note_asked();
        subscription.timers.ask(stream.sent, composed.asked_for);
        if answers {
            subscription.timers.answer(stream.sent);
        }
        if stream.sent == 1 || settings.quirks.node_on_every_request {
            V::set_node(&mut composed.request, settings);
        }
        let sent = Sent { epoch: self.epoch, seq: stream.sent };
        if !self.wants_transmit() {
            self.stream.iter_mut().for_each(|stream| stream.turns = Turns::default());
        }
        Some(Transmit { request: composed.request, sent, intent: composed.intent })
    }

    /// Returns the time at which [`handle_timeout`](Self::handle_timeout) is to be called, or `None` if no time-out is
    /// running. Existence time-outs stand still while the type has an unanswered response, and while the stream is not
    /// [read](Self::wants_response): the answer may wait behind that.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let next = |of: &Of<V>| {
            // Time goes on from the next call that has the time.
            let goes_on = of.timers.stands_since().filter(|_| of.timers.running() > 0 && !self.stands(of));
            of.next_timeout().into_iter().chain(goes_on).min()
        };
        let reads = self.stream.as_ref().filter(|_| self.is_full()).and_then(|stream| stream.reading.from());
        self.types.iter().filter_map(next).chain(reads).min()
    }

    // Queries.

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns whether any subscription needs a stream.
    pub fn wants_stream(&self) -> bool {
        self.types.iter().any(Subscription::wants_anything)
    }

    /// Returns whether [`poll_transmit`](Self::poll_transmit) would return a request.
    pub fn wants_transmit(&self) -> bool {
        let news =
            |of: &Of<V>| (V::has_news(of) || (of.has_names_added() && V::may_speak(of))) && may_go(&self.paused, of);
        let pending_acks = || self.pending_acks.iter().any(|type_url| !self.paused.contains_key(type_url));
        self.stream.is_some() && (pending_acks() || self.types.iter().any(news))
    }

    /// Returns whether the driver should close this stream and open a new one, because the application has a resource
    /// that the server of this stream can't be asked about, and that would stay even if the server does not have it.
    /// This happens only in delta, for a resource that only the wildcard or a collection covers. Such a resource came
    /// from [elsewhere](LayerMut::adopt), or its update was received on a former stream and accepted late, and the
    /// resource was not subscribed to when this stream began. The first request of a new stream claims the resource.
    pub fn wants_new_stream(&self) -> bool {
        self.types.iter().any(|subscription| subscription.unannounced)
    }

    /// Returns whether the driver may read from the stream. No type stops the reading of others, whatever waits of it
    /// ([a slow application](crate::manual::slow)). Returns false without a stream, while as many actions wait to be
    /// polled as the configuration allows, and, if [`Limits::responses_per_stream`] is set, for at most a second while
    /// as many responses wait for a verdict. An unread stream holds the server back (HTTP/2 flow control).
    pub fn wants_response(&self) -> bool {
        self.stream.is_some() && self.is_read() && self.check_actions().is_ok()
    }

    // Private.

    fn of_type(&self, type_url: &TypeUrl) -> Option<&Of<V>> {
        self.types.iter().find(|of| of.type_url() == type_url)
    }

    /// Returns the number of responses of this stream that wait for a verdict.
    fn unjudged(&self) -> usize {
        self.types.iter().map(|of| of.in_flight.unjudged()).sum()
    }

    /// Handles the time-outs of all types that are due.
    fn time_out(&mut self, now: Instant) {
        let Self { types, actions, config, .. } = self;
        types.iter_mut().for_each(|of| of.timeout::<V>(now, config.settings(), &mut |action| actions.push(action)));
    }

    /// Merges the names that were subscribed to since the last call of any method.
    fn merge_added_names(&mut self) {
        self.types.iter_mut().for_each(|of| of.merge_added_names::<V>());
    }

    fn subscription_mut(&mut self, type_url: &TypeUrl) -> &mut Of<V> {
        let found = self.types.iter().position(|subscription| subscription.resource_type.type_url() == type_url);
        let at = found.unwrap_or_else(|| {
            let resource_type = self.config.settings().resource_type(type_url);
            self.types.push(Subscription::new(resource_type));
            self.types.len() - 1
        });
        &mut self.types[at]
    }

    fn check_actions(&self) -> Result<(), Misuse> {
        let limit = self.config.settings().limits.waiting_actions;
        if self.actions.len() < limit { Ok(()) } else { Err(Misuse::ActionsWaiting { limit }) }
    }

    fn advance(&mut self, now: Instant, type_url: &TypeUrl) {
        let Self { types, actions, pending_acks, config, epoch, .. } = self;
        let Some(subscription) = find(types, type_url) else { return };
        let settings = config.settings();
        subscription.advance::<V>(now, *epoch, settings, &mut |action| actions.push(action));
        if subscription.in_flight.pending_acks() > 0 && !pending_acks.contains(type_url) {
            pending_acks.push_back(type_url.clone());
        }
    }

    fn drop_stale(&mut self, type_url: TypeUrl, nonce: Nonce, reason: DropReason) {
        if let Some(Action::DropStale { type_url: last, nonce: last_nonce, reason: last_reason, count }) =
            self.actions.last_mut()
        {
            if *last == type_url && *last_reason == reason {
                *count += 1;
                *last_nonce = nonce;
                return;
            }
        }
        self.actions.push(Action::DropStale { type_url, nonce, reason, count: 1 });
    }
}

impl<V: Variant> Relabel for Client<V> {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        by(Label::Client(self.config.settings().id));
        by(Label::Epoch(&mut self.epoch));
        if let Some(stream) = &mut self.stream {
            by(Label::Request(&mut stream.sent));
            stream.reading.relabel(by);
        }
        for of in &mut self.types {
            of.relabel(by);
            let Subscription { resource_type, stream_state, .. } = of;
            V::each_serial(stream_state, &mut |serial| by(Label::Response(resource_type.type_url(), serial)));
        }
        self.actions.iter_mut().for_each(|action| action.relabel(by));
    }
}

fn find<'a, T>(types: &'a mut [Subscription<T>], type_url: &TypeUrl) -> Option<&'a mut Subscription<T>> {
    types.iter_mut().find(|subscription| subscription.resource_type.type_url() == type_url)
}

/// Returns whether a request that answers no response may be sent. A pause does not hold back the first request of a
/// type: a type that is paused when its stream breaks might otherwise never be requested again (C-ADS-08).
fn may_go<T>(paused: &BTreeMap<TypeUrl, u32>, of: &Subscription<T>) -> bool {
    paused.is_empty() || !of.announced.asked() || !paused.contains_key(of.resource_type.type_url())
}

//! The control plane: what all streams share.

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use tokio::time::timeout;
use tonic::Request;
use xds_machine::csds::Regex;
use xds_machine::message::Node;
use xds_machine::server::{Config, StreamId};
use xds_machine::service::{self, Method};
use xds_machine::{Code, Status};
use xds_machine_driver::server::{Shared, Store, Waiter, Wakers};

use super::client_status::{Calls, Compile, no_regexes};
use super::connection::{End, Incoming};
use super::poll::Polls;
use super::stream::lock;
use super::{Group, Observer, StreamInfo, XdsService};
use crate::TokioRuntime;
use crate::client_status::RESPONSE_BYTES;

pub(super) const DRAINING: &str = "the control plane shuts down";

type Assign<S> = dyn Fn(&Node, &Request<()>) -> Result<Group<S>, tonic::Status> + Send + Sync;

/// Limits on what clients may make a control plane hold, besides those of the machines
/// ([`server::Limits`](xds_machine::server::Limits)). Write `Limits { .., ..Limits::default() }`: a field may be added
/// in any release.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Streams that are open at one time. Further calls end with RESOURCE_EXHAUSTED. Default: 100,000.
    pub streams: usize,
    /// Bytes of one request. A larger one ends its stream with RESOURCE_EXHAUSTED. Default: 32 MiB; a client that
    /// comes back with the versions of 100,000 resources sends some 5 MB.
    pub request_bytes: usize,
    /// Bytes of one response of CSDS. A longer one ends its call with RESOURCE_EXHAUSTED. Default: 64 MiB.
    pub status_bytes: usize,
    /// Calls of CSDS that are open at one time. Further calls end with RESOURCE_EXHAUSTED. Default: 64.
    pub status_calls: usize,
    /// [Polls](ControlPlane::poll) that are held at one time. Further ones are answered at once. Default: 100,000.
    pub held_polls: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            streams: 100_000,
            request_bytes: 32 << 20,
            status_bytes: RESPONSE_BYTES,
            status_calls: 64,
            held_polls: 100_000,
        }
    }
}

/// A control plane: the streams of all services, variants and groups. Cheap to clone: a handle.
pub struct ControlPlane<S: Store = Shared>(Arc<Plane<S>>);

pub(super) struct Plane<S: Store> {
    pub(super) assign: Box<Assign<S>>,
    pub(super) observer: Option<Box<dyn Observer>>,
    pub(super) limits: Limits,
    pub(super) runtime: TokioRuntime,
    /// The configuration of each scope.
    configs: Vec<(Option<&'static str>, Config)>,
    pub(super) compile: Box<Compile>,
    pub(super) status_calls: Calls,
    streams: Mutex<Streams<S>>,
    pub(super) is_draining: AtomicBool,
    /// The streams, and the tasks that wait for the drain, to be woken when streams are to end.
    pub(super) ending: Wakers,
    /// Tasks that wait for streams to have ended.
    ended: Wakers,
    /// The end of connections whose clients stall.
    end: Arc<End>,
    pub(super) polls: Polls,
}

struct Streams<S: Store> {
    /// The number of streams that were ever opened.
    opened: u64,
    /// The open streams, and the group of each that is assigned.
    open: BTreeMap<StreamId, (StreamInfo, Option<Group<S>>)>,
}

/// Sets up a [`ControlPlane`].
pub struct Builder<S: Store = Shared> {
    assign: Box<Assign<S>>,
    observer: Option<Box<dyn Observer>>,
    limits: Limits,
    configure: Box<dyn Fn(Config) -> Config>,
    compile: Box<Compile>,
}

impl<S: Store> Builder<S> {
    /// Sets the configuration of the machines, by a function that is applied to the default of each service: dialect,
    /// identifier, limits, order. Default: unchanged.
    #[must_use]
    pub fn configure(self, configure: impl Fn(Config) -> Config + 'static) -> Self {
        Self { configure: Box::new(configure), ..self }
    }

    /// Sets the observer of the streams. Default: none.
    #[must_use]
    pub fn observe(self, observer: impl Observer) -> Self {
        Self { observer: Some(Box::new(observer)), ..self }
    }

    /// Sets the limits. Default: [`Limits::default`].
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Sets what makes the regular expressions in the node matchers of CSDS, or says why it can't. It has to limit what
    /// an expression may cost, and to match complete strings. Default: requests with regular expressions are refused.
    #[must_use]
    pub fn regexes(self, compile: impl Fn(&str) -> Result<Regex, String> + Send + Sync + 'static) -> Self {
        Self { compile: Box::new(compile), ..self }
    }

    /// Makes the control plane.
    pub fn build(self) -> ControlPlane<S> {
        let scopes = [None].into_iter().chain(service::types().map(Some));
        // The variant is not part of a configuration.
        let config = |type_url| Config::new(Method { variant: service::Variant::Delta, type_url });
        ControlPlane(Arc::new(Plane {
            assign: self.assign,
            observer: self.observer,
            limits: self.limits,
            runtime: TokioRuntime::new(),
            configs: scopes.map(|type_url| (type_url, (self.configure)(config(type_url)))).collect(),
            compile: self.compile,
            status_calls: Calls::new(0),
            streams: Mutex::new(Streams { opened: 0, open: BTreeMap::new() }),
            is_draining: AtomicBool::new(false),
            ending: Wakers::new(),
            ended: Wakers::new(),
            end: Arc::default(),
            polls: Polls::new(),
        }))
    }
}

impl<S: Store> ControlPlane<S> {
    /// Creates a control plane that serves all nodes from one group.
    pub fn new(group: Group<S>) -> Self {
        Self::builder(move |_, _| Ok(group.clone())).build()
    }

    /// Begins to set up a control plane, whose nodes are assigned to groups by a function of the node and of the call:
    /// its metadata, the address and the certificates of its connection ([`Request::remote_addr`],
    /// [`Request::extensions`]). The function is called once for each stream, after its first request. The node is
    /// empty if the client sent none. An error is the status that the stream ends with.
    pub fn builder<A>(assign: A) -> Builder<S>
    where
        A: Fn(&Node, &Request<()>) -> Result<Group<S>, tonic::Status> + Send + Sync + 'static,
    {
        let configure = Box::new(|config| config);
        let compile = Box::new(no_regexes);
        Builder { assign: Box::new(assign), observer: None, limits: Limits::default(), configure, compile }
    }

    /// Returns the service of all methods: ADS, and each type's own, in both variants. A tonic server or router takes
    /// it as it is.
    pub fn service(&self) -> XdsService<S> {
        XdsService::new(self.0.clone())
    }

    /// Makes accepted connections, such as those given to `serve_with_incoming_shutdown` of a tonic server, ones that a
    /// drain can end: they fail once its limit has passed. Without it the connection of a client that does not read
    /// stays open, for HTTP/2 does not ask a stream that waits for room whether it has ended.
    pub fn incoming<I>(&self, accepted: I) -> Incoming<I> {
        Incoming::new(accepted, self.0.end.clone())
    }

    pub(super) fn plane(&self) -> &Plane<S> {
        &self.0
    }

    /// Returns the open streams, in the order in which they were opened.
    pub fn streams(&self) -> Vec<StreamInfo> {
        lock(&self.0.streams).open.values().map(|(stream, _)| stream.clone()).collect()
    }

    /// Ends the streams for which `which` returns `true`, with UNAVAILABLE and this reason. Their clients come back,
    /// and are assigned anew: this is how a client changes its group, and how a group ends.
    pub fn disconnect(&self, reason: &str, which: impl Fn(&StreamInfo) -> bool) {
        let streams = self.streams();
        for stream in streams.iter().filter(|stream| which(stream)) {
            stream.end(Status::new(Code::Unavailable, reason));
        }
        self.0.ending.wake_all();
    }

    /// Drains the control plane: open streams end with UNAVAILABLE, and new ones are refused with it. Returns the
    /// streams that are still open after `limit`: those whose clients do not read. Then their
    /// [connections](Self::incoming) fail.
    pub async fn drain(&self, limit: Duration) -> Vec<StreamInfo> {
        self.0.is_draining.store(true, Ordering::Release);
        self.0.ending.wake_all();
        let mut waiter = Waiter::new();
        let all = poll_fn(|cx| {
            waiter.wait(&self.0.ended, cx.waker());
            if lock(&self.0.streams).open.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        });
        if timeout(limit, all).await.is_ok() {
            return Vec::new();
        }
        let left = self.streams();
        self.0.end.come();
        left
    }

    /// Waits until [`drain`](Self::drain) is called: the signal for `serve_with_incoming_shutdown` of a tonic server,
    /// which then announces the end on each connection (GOAWAY).
    pub fn draining(&self) -> impl Future<Output = ()> + Send + 'static {
        let (plane, mut waiter) = (self.0.clone(), Waiter::new());
        poll_fn(move |cx| {
            waiter.wait(&plane.ending, cx.waker());
            if plane.is_draining.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
        })
    }

    /// Runs a server until it ends, or until `shutdown` completes: then drains, and waits for the server for as long
    /// as `limit` in all. The server ends when its connections have, if its own signal is
    /// [`draining`](Self::draining). Those that have not ended by then fail, if they are of
    /// [`incoming`](Self::incoming).
    ///
    /// # Errors
    ///
    /// Returns the error of the server. That clients stall until the limit is no error.
    pub async fn run<E>(
        &self,
        server: impl Future<Output = Result<(), E>>,
        shutdown: impl Future<Output = ()>,
        limit: Duration,
    ) -> Result<(), E> {
        let mut server = pin!(server);
        tokio::select! {
            result = &mut server => return result,
            () = shutdown => {}
        }
        let mut ended = None;
        let drained = async { tokio::join!(self.drain(limit), async { ended = Some(server.as_mut().await) }) };
        let _ = timeout(limit, drained).await; // what is left ends now
        if let Some(result) = ended {
            return result;
        }
        self.0.end.come();
        tokio::select! {
            biased;
            result = server => result,
            () = self.0.end.clone().all_closed() => Ok(()),
        }
    }
}

impl<S: Store> Plane<S> {
    pub(super) fn config(&self, method: Method) -> Config {
        let known = self.configs.iter().find(|(type_url, _)| *type_url == method.type_url);
        known.map_or_else(|| Config::new(method), |(_, config)| config.clone())
    }

    /// Registers a stream with a new id.
    ///
    /// # Errors
    ///
    /// Returns the status of a call for which there is no room.
    pub(super) fn add<T>(&self, open: impl FnOnce(StreamId) -> (StreamInfo, T)) -> Result<(StreamInfo, T), Status> {
        let mut streams = lock(&self.streams);
        // Under the lock, so that a drain misses no stream.
        if self.is_draining.load(Ordering::Acquire) {
            return Err(Status::new(Code::Unavailable, DRAINING));
        }
        let limit = self.limits.streams;
        if streams.open.len() >= limit {
            return Err(Status::new(Code::ResourceExhausted, format!("{limit} streams are open, which is the limit")));
        }
        streams.opened += 1;
        let id = StreamId(streams.opened);
        let (stream, rest) = open(id);
        streams.open.insert(id, (stream.clone(), None));
        Ok((stream, rest))
    }

    /// Notes the group of a stream.
    pub(super) fn assigned_to(&self, id: StreamId, group: &Group<S>) {
        if let Some((_, of)) = lock(&self.streams).open.get_mut(&id) {
            *of = Some(group.clone());
        }
    }

    /// Returns the open streams that are assigned, each with its group.
    pub(super) fn assigned(&self) -> Vec<(StreamInfo, Group<S>)> {
        let streams = lock(&self.streams);
        let assigned = streams.open.values().filter_map(|(stream, group)| Some((stream.clone(), group.clone()?)));
        assigned.collect()
    }

    pub(super) fn remove(&self, id: StreamId) {
        let removed = lock(&self.streams).open.remove(&id);
        self.ended.wake_all();
        drop(removed);
    }
}

impl<S: Store> Clone for ControlPlane<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S: Store> fmt::Debug for ControlPlane<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let streams = lock(&self.0.streams).open.len();
        f.debug_struct("ControlPlane").field("streams", &streams).finish_non_exhaustive()
    }
}

impl<S: Store> fmt::Debug for Builder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("limits", &self.limits).finish_non_exhaustive()
    }
}

//! The control plane: what all streams share.

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
use super::load::LoadReports;
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
    /// reconnects with the versions of 100,000 resources sends some 5 MB.
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
    pub(super) loads: Option<Box<dyn LoadReports>>,
    /// Wakes the streams of load reports when they have to choose their selections again.
    pub(super) selecting: Wakers,
    /// Counts the changes of selections.
    pub(super) selections: AtomicU64,
    pub(super) limits: Limits,
    pub(super) runtime: TokioRuntime,
    /// The configuration of each service: of ADS (`None`), and of each type's own service.
    configs: Vec<(Option<&'static str>, Config)>,
    pub(super) compile: Box<Compile>,
    pub(super) status_calls: Calls,
    streams: Mutex<Streams<S>>,
    pub(super) is_draining: AtomicBool,
    /// Wakes the streams, and the tasks that wait for the drain, when streams have to end.
    pub(super) ending: Wakers,
    /// Wakes the tasks that wait until streams have ended.
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
    /// The number of open streams of load reports.
    loads: usize,
}

impl<S: Store> Streams<S> {
    fn is_empty(&self) -> bool {
        self.open.is_empty() && self.loads == 0
    }
}

/// Sets up a [`ControlPlane`].
pub struct Builder<S: Store = Shared> {
    assign: Box<Assign<S>>,
    observer: Option<Box<dyn Observer>>,
    loads: Option<Box<dyn LoadReports>>,
    limits: Limits,
    configure: Box<dyn Fn(Config) -> Config>,
    compile: Box<Compile>,
}

impl<S: Store> Builder<S> {
    /// Sets a function that changes the default configuration of each service's machines: dialect, identifier, limits,
    /// order. Default: unchanged.
    #[must_use]
    pub fn configure(self, configure: impl Fn(Config) -> Config + 'static) -> Self {
        Self { configure: Box::new(configure), ..self }
    }

    /// Sets the observer of the streams. Default: none.
    #[must_use]
    pub fn observe(self, observer: impl Observer) -> Self {
        Self { observer: Some(Box::new(observer)), ..self }
    }

    /// Serves load reports (LRS): `reports` selects what each client has to report, and receives the reports. Default:
    /// the service does not exist.
    #[must_use]
    pub fn load_reports(self, reports: impl LoadReports) -> Self {
        Self { loads: Some(Box::new(reports)), ..self }
    }

    /// Sets the limits. Default: [`Limits::default`].
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Sets the function that compiles the regular expressions in the node matchers of CSDS, or returns why it can't.
    /// The function has to limit the cost of an expression, and an expression has to match complete strings. Default:
    /// requests with regular expressions are refused.
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
            loads: self.loads,
            selecting: Wakers::new(),
            selections: AtomicU64::new(0),
            limits: self.limits,
            runtime: TokioRuntime::new(),
            configs: scopes.map(|type_url| (type_url, (self.configure)(config(type_url)))).collect(),
            compile: self.compile,
            status_calls: Calls::new(0),
            streams: Mutex::new(Streams { opened: 0, open: BTreeMap::new(), loads: 0 }),
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
    /// [`Request::extensions`]). The function is called once for each stream, after its first request, and once for
    /// each [poll](Self::poll). The node is empty if the client sent none. An error is the status that the stream ends
    /// with.
    pub fn builder<A>(assign: A) -> Builder<S>
    where
        A: Fn(&Node, &Request<()>) -> Result<Group<S>, tonic::Status> + Send + Sync + 'static,
    {
        let configure = Box::new(|config| config);
        let compile = Box::new(no_regexes);
        Builder { assign: Box::new(assign), observer: None, loads: None, limits: Limits::default(), configure, compile }
    }

    /// Returns the gRPC service, which has all methods: ADS and each type's own service in both variants, CSDS, and LRS
    /// if [`load_reports`](Builder::load_reports) are served. It can be added to a tonic server or router.
    pub fn service(&self) -> XdsService<S> {
        XdsService::new(self.0.clone())
    }

    /// Wraps accepted connections, such as those given to `serve_with_incoming_shutdown` of a tonic server, so that a
    /// drain can end them: they fail once its limit has passed. Without the wrapper, the connection of a client that
    /// does not read stays open, because HTTP/2 does not poll a stream that waits for room in the client's window.
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

    /// Ends the streams for which `which` returns `true`, with UNAVAILABLE and this reason. Their clients reconnect and
    /// are assigned anew: this is how a client changes its group, and how a group ends.
    pub fn disconnect(&self, reason: &str, which: impl Fn(&StreamInfo) -> bool) {
        let streams = self.streams();
        for stream in streams.iter().filter(|stream| which(stream)) {
            stream.end(Status::new(Code::Unavailable, reason));
        }
        self.0.ending.wake_all();
    }

    /// Asks the [`LoadReports`] again what each client has to report. Call this when [`LoadReports::select`] may return
    /// something else. A client receives a response only if the selection has changed for it.
    pub fn select_loads(&self) {
        self.0.selections.fetch_add(1, Ordering::Release);
        self.0.selecting.wake_all();
    }

    /// Drains the control plane: open streams end with UNAVAILABLE, and new ones are refused with it. If streams are
    /// still open after `limit`, because their clients do not read, all [connections](Self::incoming) fail. Returns
    /// these streams, except those of load reports.
    pub async fn drain(&self, limit: Duration) -> Vec<StreamInfo> {
        self.0.is_draining.store(true, Ordering::Release);
        self.0.ending.wake_all();
        let mut waiter = Waiter::new();
        let all = poll_fn(|cx| {
            waiter.wait(&self.0.ended, cx.waker());
            if lock(&self.0.streams).is_empty() { Poll::Ready(()) } else { Poll::Pending }
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

    /// Runs a server until it ends, or until `shutdown` completes: then drains the control plane and waits for the
    /// server, both together for at most `limit`. The server ends when its connections have ended, if its own shutdown
    /// signal is [`draining`](Self::draining). Connections that have not ended within `limit` fail, if they come from
    /// [`incoming`](Self::incoming).
    ///
    /// # Errors
    ///
    /// Returns the error of the server. Clients that stall until the limit are no error.
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
        let _ = timeout(limit, drained).await; // the connections that are left end now
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
    /// Returns the status of a call that is refused: there is no room, or the control plane shuts down.
    pub(super) fn add<T>(&self, open: impl FnOnce(StreamId) -> (StreamInfo, T)) -> Result<(StreamInfo, T), Status> {
        let mut streams = lock(&self.streams);
        let id = self.next_id(&mut streams)?;
        let (stream, rest) = open(id);
        streams.open.insert(id, (stream.clone(), None));
        Ok((stream, rest))
    }

    /// Counts a stream of load reports. Returns its id, which no other stream has.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub(super) fn add_loads(&self) -> Result<StreamId, Status> {
        let mut streams = lock(&self.streams);
        let id = self.next_id(&mut streams)?;
        streams.loads += 1;
        Ok(id)
    }

    pub(super) fn remove_loads(&self) {
        lock(&self.streams).loads -= 1;
        self.ended.wake_all();
    }

    fn next_id(&self, streams: &mut Streams<S>) -> Result<StreamId, Status> {
        // Under the lock, so that a drain misses no stream.
        if self.is_draining.load(Ordering::Acquire) {
            return Err(Status::new(Code::Unavailable, DRAINING));
        }
        let limit = self.limits.streams;
        if streams.open.len() + streams.loads >= limit {
            return Err(Status::new(Code::ResourceExhausted, format!("{limit} streams are open, which is the limit")));
        }
        streams.opened += 1;
        Ok(StreamId(streams.opened))
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

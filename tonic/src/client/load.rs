//! Load reports (LRS): a task of its own, which keeps a stream to one server.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use futures_sink::Sink;
use http::uri::PathAndQuery;
use tokio::sync::{Mutex as AsyncMutex, Notify};
use tokio::task::JoinHandle;
use tokio::time::{Sleep, sleep, timeout};
use xds_machine::client::Backoff;
use xds_machine::load::{Call, Config, Counts, Entry, Outcome, Place, Reporter, Request};
use xds_machine::{Instant, Misuse, ResourceName, service};
use xds_machine_driver::Runtime as _;

use super::connect::{Connect, Dial};
use super::inbound::{Responses, open};
use super::outbound::Requests;
use crate::TokioRuntime;
use crate::messages::Loads;

/// How long a reporter that stops waits for room for its last report, and for the server to end the stream.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The limit on the size of a response: 100,000 names of clusters take some megabytes.
const MAX_RESPONSE: usize = 32 << 20;

/// Counts the calls of a program, and reports them to one server. Clones are handles to the same reporter.
///
/// A stream is opened at once and kept open, independently of other streams to the same server; it ends with
/// [`stop`](Self::stop), or when all handles are dropped. To share a connection with an
/// [`XdsClient`](super::XdsClient), give both a [`Connect`] that hands out clones of one
/// [`Channel`](tonic::transport::Channel).
///
/// Each method takes a lock for a moment. A data path that must not take a lock counts by itself, and [adds](Self::add)
/// its counts now and then: nothing is reported more often than once a second.
#[derive(Clone)]
pub struct LoadReporter(Arc<Handle>);

struct Handle {
    shared: Arc<Shared>,
    task: AsyncMutex<Option<JoinHandle<()>>>,
}

struct Shared {
    reporter: Mutex<Reporter>,
    runtime: TokioRuntime,
    /// Tells the task that the reporter stops.
    stopped: Notify,
}

impl Shared {
    /// Waits until no stream is needed.
    async fn stopping(&self) {
        while lock(&self.reporter).wants_stream() {
            self.stopped.notified().await;
        }
    }
}

/// An event of the stream of a [`LoadReporter`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LoadEvent {
    /// The server has answered: the response selects the loads to report.
    Asked,
    /// The stream has ended, or could not be opened.
    Closed {
        /// Why; `None` if the server ended it with OK.
        reason: Option<String>,
        /// The time until the next attempt; `None` after the last.
        again_in: Option<Duration>,
    },
}

/// Configures a [`LoadReporter`]: see [`LoadReporter::builder`].
#[must_use = "nothing runs before `start`"]
pub struct LoadBuilder {
    config: Config,
    backoff: Backoff,
    observe: Box<dyn FnMut(LoadEvent) + Send>,
}

impl LoadBuilder {
    /// Sets how long the reporter waits after a stream before it opens the next one. Default: [`Backoff::grpc`].
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Sets the function that receives the events of the stream. It is called on the task. Default: none.
    pub fn observe(mut self, observe: impl FnMut(LoadEvent) + Send + 'static) -> Self {
        self.observe = Box::new(observe);
        self
    }

    /// Starts the task on tokio's current runtime, and connects.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, as [`tokio::spawn`].
    pub fn start(self, server: impl Connect) -> LoadReporter {
        let Self { config, backoff, observe } = self;
        let shared = Arc::new(Shared {
            reporter: Mutex::new(Reporter::new(config)),
            runtime: TokioRuntime::new(),
            stopped: Notify::new(),
        });
        let task = Task { shared: shared.clone(), server: Box::new(server), backoff, observe };
        let task = AsyncMutex::new(Some(tokio::spawn(task.run())));
        LoadReporter(Arc::new(Handle { shared, task }))
    }
}

impl LoadReporter {
    /// Begins to configure a reporter.
    pub fn builder(config: Config) -> LoadBuilder {
        LoadBuilder { config, backoff: Backoff::grpc(), observe: Box::new(|_| {}) }
    }

    /// Returns a handle to the loads of a cluster: [`Reporter::entry`].
    ///
    /// # Errors
    ///
    /// At the limit of clusters.
    pub fn entry(&self, cluster: impl Into<ResourceName>, service: impl Into<ResourceName>) -> Result<Entry, Misuse> {
        let now = self.0.shared.runtime.now();
        self.reporter().entry(now, cluster, service)
    }

    /// Gives a handle back: [`Reporter::release`].
    ///
    /// # Errors
    ///
    /// If it was given back before.
    pub fn release(&self, entry: Entry) -> Result<(), Misuse> {
        self.reporter().release(entry)
    }

    /// Counts the start of a call: [`Reporter::started`].
    ///
    /// # Errors
    ///
    /// If the entry was released, or at a limit.
    pub fn started(&self, entry: &Entry, place: &Place) -> Result<Call, Misuse> {
        self.reporter().started(entry, place)
    }

    /// Counts the end of a call, and its metrics: [`Reporter::finished`].
    ///
    /// # Errors
    ///
    /// If the call has ended before.
    pub fn finished<'a>(
        &self,
        call: Call,
        outcome: Outcome,
        metrics: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> Result<(), Misuse> {
        self.reporter().finished(call, outcome, metrics)
    }

    /// Adds counts: [`Reporter::add`].
    ///
    /// # Errors
    ///
    /// If more calls end than are in progress, the entry was released, or at a limit.
    pub fn add(&self, entry: &Entry, place: &Place, counts: Counts) -> Result<(), Misuse> {
        self.reporter().add(entry, place, counts)
    }

    /// Counts dropped calls: [`Reporter::dropped`].
    ///
    /// # Errors
    ///
    /// If the entry was released, or at a limit.
    pub fn dropped(&self, entry: &Entry, category: &str, calls: u64) -> Result<(), Misuse> {
        self.reporter().dropped(entry, category, calls)
    }

    /// Uses the machine, for several calls under one lock. `use_it` must not wait, and must not call the methods whose
    /// names begin with `handle_` or `poll_`: only the task calls these.
    pub fn with<T>(&self, use_it: impl FnOnce(&mut Reporter) -> T) -> T {
        use_it(&mut self.reporter())
    }

    /// Makes a last report, if something is asked for, and ends the stream, for all handles. Waits until that is done:
    /// up to a second for a server that does not read, and another for one that does not end its half.
    pub async fn stop(&self) {
        self.reporter().stop();
        self.0.shared.stopped.notify_one();
        let mut task = self.0.task.lock().await;
        if let Some(running) = task.as_mut() {
            let _ = running.await; // the task does not panic, unless the observer does
            *task = None;
        }
    }

    fn reporter(&self) -> MutexGuard<'_, Reporter> {
        lock(&self.0.shared.reporter)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        lock(&self.shared.reporter).stop();
        self.shared.stopped.notify_one();
    }
}

fn lock(reporter: &Mutex<Reporter>) -> MutexGuard<'_, Reporter> {
    reporter.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Task {
    shared: Arc<Shared>,
    server: Box<dyn Dial>,
    backoff: Backoff,
    observe: Box<dyn FnMut(LoadEvent) + Send>,
}

impl Task {
    async fn run(mut self) {
        let shared = self.shared.clone();
        while lock(&shared.reporter).wants_stream() {
            let reason = self.stream().await;
            let ended = !lock(&shared.reporter).wants_stream();
            let again_in = (!ended).then(|| self.backoff.next_delay(fastrand::u64(..)));
            (self.observe)(LoadEvent::Closed { reason, again_in });
            let Some(again_in) = again_in else { return };
            let _ = timeout(again_in, shared.stopping()).await;
        }
    }

    /// Runs a stream. Returns the reason of its end.
    async fn stream(&mut self) -> Option<String> {
        let (shared, dialing) = (self.shared.clone(), self.server.dial());
        let call = tokio::select! {
            call = dialing => match call {
                Ok(call) => call,
                Err(error) => return Some(error.to_string()),
            },
            () = shared.stopping() => return None,
        };
        let path = PathAndQuery::from_static(service::LOAD_REPORTS);
        let (inbound, outbound) = open::<Loads>(call, path, MAX_RESPONSE, || {});
        lock(&shared.reporter).handle_open();
        let mut link = Link { inbound, outbound, last: None, broken: None, timer: None };
        let ended = self.converse(&mut link).await;
        link.give_back(&shared);
        lock(&shared.reporter).handle_close();
        ended
    }

    /// Runs an open stream. Returns the reason of its end; `None` if the server ended it with OK, or if this side did.
    async fn converse(&mut self, link: &mut Link) -> Option<String> {
        let shared = self.shared.clone();
        loop {
            let polled = {
                let mut stopped = pin!(shared.stopped.notified());
                poll_fn(|cx| {
                    let _ = stopped.as_mut().poll(cx); // wakes the task when the reporter stops
                    match link.poll(cx, &shared) {
                        Poll::Pending if lock(&shared.reporter).is_stopping() => Poll::Ready(Polled::Stopped),
                        polled => polled,
                    }
                })
                .await
            };
            match polled {
                Polled::Ended(reason) => return reason,
                Polled::Response => {
                    self.backoff.reset();
                    (self.observe)(LoadEvent::Asked);
                }
                Polled::Stopped => {
                    let _ = timeout(LAST_WORDS, poll_fn(|cx| link.poll_last(cx, &shared))).await;
                    let _ = timeout(LAST_WORDS, poll_fn(|cx| link.poll_finish(cx))).await;
                    return None;
                }
            }
        }
    }
}

/// The result of a poll of a stream.
enum Polled {
    Response,
    Ended(Option<String>),
    Stopped,
}

/// An open stream.
struct Link {
    inbound: Responses<Loads>,
    outbound: Requests<Loads>,
    /// The last message, which the transport may not have taken.
    last: Option<Request>,
    /// The error of the outbound half, and the time that the inbound half has to report a better one.
    broken: Option<(String, Pin<Box<Sleep>>)>,
    timer: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl Link {
    fn poll(&mut self, cx: &mut Context<'_>, shared: &Shared) -> Poll<Polled> {
        loop {
            if self.broken.is_none() {
                if let Err(error) = self.poll_send(cx, shared) {
                    self.broken = Some((error, Box::pin(sleep(LAST_WORDS))));
                }
            }
            match Pin::new(&mut self.inbound).poll_next(cx) {
                Poll::Ready(None) => return Poll::Ready(Polled::Ended(None)),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Polled::Ended(Some(error.to_string()))),
                Poll::Ready(Some(Ok(response))) => {
                    let handled = lock(&shared.reporter).handle_response(shared.runtime.now(), response);
                    return Poll::Ready(match handled {
                        Ok(()) => Polled::Response,
                        Err(error) => Polled::Ended(Some(error.to_string())),
                    });
                }
                Poll::Pending => {}
            }
            if let Some((error, last_words)) = &mut self.broken {
                return last_words.as_mut().poll(cx).map(|()| Polled::Ended(Some(error.clone())));
            }
            if !self.poll_timer(cx, shared) {
                return Poll::Pending;
            }
        }
    }

    /// Sends while there is room.
    fn poll_send(&mut self, cx: &mut Context<'_>, shared: &Shared) -> Result<(), String> {
        loop {
            match Pin::new(&mut self.outbound).poll_ready(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Err(error)) => return Err(error.to_string()),
                Poll::Ready(Ok(())) => {}
            }
            self.last = None; // taken: there is room again
            let Some(request) = lock(&shared.reporter).poll_transmit(shared.runtime.now()) else { return Ok(()) };
            self.last = Some(request.clone());
            Pin::new(&mut self.outbound).start_send(request).map_err(|error| error.to_string())?;
        }
    }

    /// Waits for the machine's time-out. Returns whether it was due.
    fn poll_timer(&mut self, cx: &mut Context<'_>, shared: &Shared) -> bool {
        let Some(due) = lock(&shared.reporter).poll_timeout() else {
            self.timer = None;
            return false;
        };
        if self.timer.as_ref().is_none_or(|(at, _)| *at != due) {
            self.timer = Some((due, Box::pin(shared.runtime.sleep_until(due))));
        }
        let Some((_, timer)) = &mut self.timer else { return false };
        if timer.as_mut().poll(cx).is_pending() {
            return false;
        }
        self.timer = None;
        lock(&shared.reporter).handle_timeout(shared.runtime.now());
        true
    }

    /// Waits until the last report is taken.
    fn poll_last(&mut self, cx: &mut Context<'_>, shared: &Shared) -> Poll<()> {
        match self.poll_send(cx, shared) {
            Err(_) => Poll::Ready(()),
            Ok(()) if self.outbound.is_untaken() || lock(&shared.reporter).wants_stream() => Poll::Pending,
            Ok(()) => Poll::Ready(()),
        }
    }

    /// Closes the outbound half, and waits for the end of the inbound one.
    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let _ = Pin::new(&mut self.outbound).poll_close(cx);
        self.inbound_ended(cx)
    }

    fn inbound_ended(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match Pin::new(&mut self.inbound).poll_next(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None | Some(Err(_))) => return Poll::Ready(()),
                Poll::Ready(Some(Ok(_))) => {}
            }
        }
    }

    fn give_back(&mut self, shared: &Shared) {
        if let Some(request) = self.last.take().filter(|_| self.outbound.is_untaken()) {
            let given = lock(&shared.reporter).handle_unsent(request);
            debug_assert_eq!(given, Ok(()), "the last message is under way");
        }
    }
}

impl fmt::Debug for LoadReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadReporter").finish_non_exhaustive()
    }
}

impl fmt::Debug for LoadBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadBuilder").field("config", &self.config).finish_non_exhaustive()
    }
}

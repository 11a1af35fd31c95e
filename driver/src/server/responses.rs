//! One stream of a server: responses out, drawn from the machine when there is room for them.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_core::Stream;
use xds_machine::Status;
use xds_machine::message::Node;
use xds_machine::server::{Action, Response, Server, Source, Variant};

use super::wakers::Waiter;
use super::{Handler, Store};
use crate::Runtime;
use crate::timer::Timer;

/// The number of requests that a stream reads before it lets other tasks run.
const REQUESTS_AT_A_TIME: usize = 32;

/// One accepted stream: a [`Stream`] of responses over a stream of decoded requests.
///
/// Poll it only while the transport has room: a response is composed when it is polled, so a client that reads slowly
/// gets later changes merged, and nothing waits in a queue. Requests are read in the same poll. The task is woken by
/// requests, by changes of the store, and by time-outs.
///
/// The stream ends with `Err` and the status to close the stream with, or after the last request is answered with
/// `None` if the client has closed its half (status OK). A transport that loses the client drops it.
pub struct Responses<V: Variant, I, H: Handler<V>, R: Runtime> {
    server: Arc<Mutex<Server<V>>>,
    /// `None` once the client has closed its half.
    requests: Option<I>,
    handler: H,
    runtime: R,
    node: Option<Arc<Node>>,
    /// `None` before the first request.
    store: Option<H::Store>,
    changed: Waiter,
    timer: Timer<R>,
    ended: bool,
}

impl<V, I, H, R> Responses<V, I, H, R>
where
    V: Variant,
    I: Stream<Item = Result<V::Request, Status>> + Unpin,
    H: Handler<V>,
    R: Runtime,
{
    /// Creates a stream from the machine that serves it, and from the requests of the client. An error of `requests`
    /// ends the stream with that status.
    ///
    /// The machine may be shared for queries while the stream runs. Whoever else handles an event or polls it breaks
    /// the stream.
    pub fn new(server: Arc<Mutex<Server<V>>>, requests: I, handler: H, runtime: R) -> Self {
        Self {
            server,
            requests: Some(requests),
            handler,
            runtime,
            node: None,
            store: None,
            changed: Waiter::new(),
            timer: Timer::new(),
            ended: false,
        }
    }

    /// Returns the handler.
    pub fn handler(&self) -> &H {
        &self.handler
    }

    /// Returns the handler, to change it.
    pub fn handler_mut(&mut self) -> &mut H {
        &mut self.handler
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Response<V>>, Status>> {
        if let Poll::Ready(status) = self.handler.poll_close(cx) {
            return Poll::Ready(Err(status));
        }
        self.read(cx)?;
        if let Some(response) = self.transmit(cx)? {
            return Poll::Ready(Ok(Some(response)));
        }
        if self.requests.is_none() {
            return Poll::Ready(Ok(None));
        }
        let due = self.lock().poll_timeout();
        if self.timer.poll(cx, &self.runtime, due).is_pending() {
            return Poll::Pending;
        }
        let now = self.runtime.now();
        self.lock().handle_timeout(now);
        if let Some(response) = self.transmit(cx)? {
            return Poll::Ready(Ok(Some(response)));
        }
        let due = self.lock().poll_timeout();
        if self.timer.poll(cx, &self.runtime, due).is_ready() {
            cx.waker().wake_by_ref(); // the next time-out is due as well: other tasks run first
        }
        Poll::Pending
    }

    /// Reads the requests that have arrived.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<(), Status> {
        for _ in 0..REQUESTS_AT_A_TIME {
            let Some(requests) = &mut self.requests else { return Ok(()) };
            match Pin::new(requests).poll_next(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(None) => self.requests = None,
                Poll::Ready(Some(request)) => self.handle_request(request?)?,
            }
        }
        cx.waker().wake_by_ref();
        Ok(())
    }

    fn handle_request(&mut self, request: V::Request) -> Result<(), Status> {
        self.handler.handle_request(&request);
        let now = self.runtime.now();
        self.lock().handle_request(now, request)?;
        self.act()?;
        if self.store.is_none() {
            let node = self.node.take();
            self.store = Some(match &node {
                Some(node) => self.handler.assign(node)?,
                None => self.handler.assign(&Node::default())?,
            });
        }
        Ok(())
    }

    /// Passes the actions of the machine on. Returns an error if the stream has to end.
    fn act(&mut self) -> Result<(), Status> {
        loop {
            let Some(action) = self.lock().poll_action() else { return Ok(()) };
            self.handler.handle_action(&action);
            match action {
                Action::Node(node) => self.node = Some(node),
                Action::Close(status) => return Err(status),
                _ => {}
            }
        }
    }

    fn transmit(&mut self, cx: &mut Context<'_>) -> Result<Option<Response<V>>, Status> {
        let Some(store) = &self.store else { return Ok(None) };
        self.changed.wait(store.wakers(), cx.waker());
        let now = self.runtime.now();
        // The store is locked first, because a change of the store may look at the machines.
        let (response, revision, is_settled) = store.with(|source| {
            let mut server = lock(&self.server);
            let response = server.poll_transmit(now, source);
            (response, source.revision(), server.is_settled())
        });
        match &response {
            Some(response) => self.handler.handle_response(response),
            None => {
                self.act()?; // there was nothing to send because the stream has to end
                if is_settled {
                    self.handler.handle_settled(revision);
                }
            }
        }
        Ok(response)
    }

    fn lock(&self) -> MutexGuard<'_, Server<V>> {
        lock(&self.server)
    }
}

// Nothing in a stream is pinned in place.
impl<V: Variant, I, H: Handler<V>, R: Runtime> Unpin for Responses<V, I, H, R> {}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<V, I, H, R> Stream for Responses<V, I, H, R>
where
    V: Variant,
    I: Stream<Item = Result<V::Request, Status>> + Unpin,
    H: Handler<V>,
    R: Runtime,
{
    type Item = Result<Response<V>, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.ended {
            return Poll::Ready(None);
        }
        let poll = this.poll(cx).map(Result::transpose);
        if matches!(poll, Poll::Ready(None | Some(Err(_)))) {
            this.ended = true;
            this.requests = None;
            this.changed = Waiter::new();
        }
        poll
    }
}

//! Load reports (LRS): a stream runs on the task that sends its responses, as streams of resources do.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream as _;
use http::HeaderMap;
use http_body::{Body, Frame};
use tonic::Status;
use xds_machine::load::{Action, ClusterStats, Collector, CollectorConfig, Selection};
use xds_machine::message::Node;
use xds_machine::proto::load_stats;
use xds_machine::server::StreamId;
use xds_machine::{Code, Status as MachineStatus};
use xds_machine_driver::server::{Store, Waiter};

use super::control_plane::{DRAINING, Plane};
use super::requests::{Requests, gone};
use crate::messages::{Loads, prefix};
use crate::status::to_tonic;

/// The number of reports that a stream reads before it lets other tasks run.
const REPORTS_AT_A_TIME: usize = 32;

/// Selects what the clients of a control plane have to report, and receives their reports.
///
/// The methods are called on the task of the stream, with no lock held: a method that waits holds up its stream.
pub trait LoadReports: Send + Sync + 'static {
    /// Returns what a client has to report; `None` for nothing. Called after the first message of each stream, and
    /// after each [`select_loads`](super::ControlPlane::select_loads). The client receives a response only if the
    /// selection has changed for it; if nothing is selected any more, its stream ends with OK.
    fn select(&self, stream: &LoadStream) -> Option<Selection>;

    /// A message with stats has arrived. It may have clusters that were not asked for, and several entries for one
    /// cluster ([`merge`](xds_machine::load::merge)); its counts need not agree.
    fn reported(&self, stream: &LoadStream, report: &[ClusterStats]) {
        let _ = (stream, report);
    }

    /// Returns the limits of reports, and the minimum interval. Called once for each stream.
    fn config(&self) -> CollectorConfig {
        CollectorConfig::new().with_totals(false)
    }

    /// The stream has ended, with the status that was sent to the client. CANCELLED means that the client has left.
    fn closed(&self, stream: &LoadStream, status: &Status) {
        let _ = (stream, status);
    }
}

/// A stream of load reports.
#[derive(Clone, Debug)]
pub struct LoadStream {
    id: StreamId,
    peer: Option<SocketAddr>,
    node: Arc<Node>,
    collector: Collector,
}

impl LoadStream {
    /// Returns the id, which the control plane counts from 1 over all streams.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Returns the address of the client, if the transport provides it.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// Returns the node of the first message; empty before it, and if the client sent none.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Returns the machine, for its sums.
    pub fn collector(&self) -> &Collector {
        &self.collector
    }
}

/// The responses of a stream, then its status as trailers.
pub(super) struct LoadBody<S: Store, B> {
    plane: Arc<Plane<S>>,
    stream: LoadStream,
    /// `None` once the client has closed its half.
    requests: Option<Requests<B, Loads>>,
    /// The count of selections at the stream's last choice; `None` before the node is known.
    selected: Option<u64>,
    selecting: Waiter,
    ending: Waiter,
    is_open: bool,
}

impl<S: Store, B: Body + Unpin> LoadBody<S, B> {
    /// Opens a stream.
    ///
    /// # Errors
    ///
    /// Returns the status of a call that is refused: there is no room, or the control plane shuts down.
    pub(super) fn open(plane: Arc<Plane<S>>, peer: Option<SocketAddr>, body: B) -> Result<Self, MachineStatus> {
        let id = plane.add_loads()?;
        let config = plane.loads.as_ref().map(|loads| loads.config()).unwrap_or_default();
        let requests = Some(Requests::new(body, plane.limits.request_bytes));
        let stream = LoadStream { id, peer, node: Arc::default(), collector: Collector::new(config) };
        let (selecting, ending) = (Waiter::new(), Waiter::new());
        Ok(Self { plane, stream, requests, selected: None, selecting, ending, is_open: true })
    }

    /// Returns the next response, or `None` at the end with OK.
    fn poll_response(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, MachineStatus>> {
        self.ending.wait(&self.plane.ending, cx.waker());
        if self.plane.is_draining.load(Ordering::Acquire) {
            return Poll::Ready(Err(MachineStatus::new(Code::Unavailable, DRAINING)));
        }
        let is_over = self.read(cx)?;
        self.select(cx);
        if is_over | self.act()? {
            return Poll::Ready(Ok(None));
        }
        match self.stream.collector.poll_transmit() {
            Some(response) => Poll::Ready(frame(&load_stats::encode_response(&response)).map(Some)),
            None => Poll::Pending,
        }
    }

    /// Reads what has arrived. Returns whether the stream is to end with OK, as it does when the client has closed its
    /// half (R-LRS-62).
    fn read(&mut self, cx: &mut Context<'_>) -> Result<bool, MachineStatus> {
        for _ in 0..REPORTS_AT_A_TIME {
            let Some(requests) = &mut self.requests else { return Ok(true) };
            match Pin::new(requests).poll_next(cx) {
                Poll::Pending => return Ok(false),
                Poll::Ready(None) => self.requests = None,
                Poll::Ready(Some(request)) => {
                    self.stream.collector.handle_request(request?)?;
                    if self.act()? {
                        return Ok(true);
                    }
                }
            }
        }
        cx.waker().wake_by_ref();
        Ok(false)
    }

    /// Carries out the actions of the machine. Returns whether the stream is to end with OK.
    fn act(&mut self) -> Result<bool, MachineStatus> {
        while let Some(action) = self.stream.collector.poll_action() {
            match action {
                Action::Node(node) => self.stream.node = node,
                Action::Report(report) => {
                    if let Some(loads) = &self.plane.loads {
                        loads.reported(&self.stream, &report);
                    }
                }
                Action::Close => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Chooses the selection, once the node is known and whenever the choice may have changed.
    fn select(&mut self, cx: &mut Context<'_>) {
        if self.stream.collector.node().is_none() {
            return;
        }
        self.selecting.wait(&self.plane.selecting, cx.waker());
        let count = self.plane.selections.load(Ordering::Acquire);
        if self.selected.replace(count) != Some(count) {
            let selection = self.plane.loads.as_ref().and_then(|loads| loads.select(&self.stream));
            self.stream.collector.set_selection(selection);
        }
    }
}

impl<S: Store, B> LoadBody<S, B> {
    fn end(&mut self, status: Status) -> Status {
        if std::mem::take(&mut self.is_open) {
            (self.ending, self.selecting, self.requests) = (Waiter::new(), Waiter::new(), None);
            self.plane.remove_loads();
            if let Some(loads) = &self.plane.loads {
                loads.closed(&self.stream, &status);
            }
        }
        status
    }
}

impl<S: Store, B> Drop for LoadBody<S, B> {
    fn drop(&mut self) {
        self.end(to_tonic(gone()));
    }
}

impl<S: Store, B: Body + Unpin> Body for LoadBody<S, B> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        if !this.is_open {
            return Poll::Ready(None);
        }
        let status = match std::task::ready!(this.poll_response(cx)) {
            Ok(Some(frame)) => return Poll::Ready(Some(Ok(Frame::data(frame)))),
            Ok(None) => Status::new(tonic::Code::Ok, ""),
            Err(status) => to_tonic(status),
        };
        let mut trailers = HeaderMap::new();
        this.end(status).add_header(&mut trailers)?;
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }
}

// Nothing in a stream is pinned in place.
impl<S: Store, B> Unpin for LoadBody<S, B> {}

/// Puts the prefix before a message.
fn frame(message: &[u8]) -> Result<Bytes, MachineStatus> {
    let prefix = prefix(message.len()).ok_or_else(|| {
        let text = format!("a response of {} bytes, limit {}", message.len(), u32::MAX);
        MachineStatus::new(Code::ResourceExhausted, text)
    })?;
    Ok([&prefix[..], message].concat().into())
}

//! The control plane's view of its clients (CSDS): what was sent to each connected node, and the node's verdicts.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use xds_machine::csds::{ClientConfig, Item, Matchers, Nodes, Regex, Request, Response};
use xds_machine::proto::client_status::{TooLong, encode_response, encoded_client_len};
use xds_machine::{Code, Status};
use xds_machine_driver::server::{Store, Waiter};

use super::control_plane::{DRAINING, Plane};
use crate::client_status::Answer;

/// A function that makes a regular expression for a node matcher, or returns why it can't.
pub(super) type Compile = dyn Fn(&str) -> Result<Regex, String> + Send + Sync;

pub(super) fn no_regexes(_: &str) -> Result<Regex, String> {
    Err("regular expressions are not supported".into())
}

/// One call.
pub(super) struct StatusCall<S: Store> {
    plane: Arc<Plane<S>>,
    ending: Waiter,
}

impl<S: Store> StatusCall<S> {
    /// Opens a call.
    ///
    /// # Errors
    ///
    /// If too many calls are open, or the control plane shuts down.
    pub(super) fn open(plane: Arc<Plane<S>>) -> Result<Self, Status> {
        if plane.is_draining.load(Ordering::Acquire) {
            return Err(Status::new(Code::Unavailable, DRAINING));
        }
        let limit = plane.limits.status_calls;
        let more = |open| (open < limit).then_some(open + 1);
        if plane.status_calls.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_err() {
            let message = format!("{limit} calls for the status of clients are open, which is the limit");
            return Err(Status::new(Code::ResourceExhausted, message));
        }
        Ok(Self { plane, ending: Waiter::new() })
    }
}

impl<S: Store> Drop for StatusCall<S> {
    fn drop(&mut self) {
        self.plane.status_calls.fetch_sub(1, Ordering::AcqRel);
    }
}

impl<S: Store> Answer for StatusCall<S> {
    fn answer(&mut self, request: Request) -> Pin<Box<dyn Future<Output = Result<Bytes, Status>> + Send>> {
        Box::pin(respond(self.plane.clone(), request))
    }

    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Status> {
        self.ending.wait(&self.plane.ending, cx.waker());
        match self.plane.is_draining.load(Ordering::Acquire) {
            true => Poll::Ready(Status::new(Code::Unavailable, DRAINING)),
            false => Poll::Pending,
        }
    }
}

async fn respond<S: Store>(plane: Arc<Plane<S>>, request: Request) -> Result<Bytes, Status> {
    let matchers = Matchers::new(&request.matchers, |pattern| (plane.compile)(pattern))?;
    let (mut nodes, mut len, limit) = (Nodes::new(), 0, plane.limits.status_bytes);
    for (stream, group) in plane.assigned() {
        // A stream that closed meanwhile is not connected now.
        let Some(node) = stream.shared_node().filter(|node| matchers.select(node) && !stream.is_closed()) else {
            continue;
        };
        let items = group.with(|source| stream.view(source, !request.exclude_contents));
        // Ends before all nodes are gathered if they don't fit into one response.
        len += items_len(items.clone());
        if len > limit {
            return Err(TooLong { len, limit }.into());
        }
        nodes.add(&node, items);
        tokio::task::yield_now().await; // each stream takes time in proportion to its resources
    }
    Ok(encode_response(&Response { clients: nodes.into_clients() }, limit)?.into())
}

fn items_len(items: Vec<Item>) -> usize {
    encoded_client_len(&ClientConfig { node: None, scope: String::new(), items })
}

/// The number of open calls.
pub(super) type Calls = AtomicUsize;

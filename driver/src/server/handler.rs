//! What a control plane decides about one stream, and what it hears of it.

use std::task::{Context, Poll};

use xds_machine::Status;
use xds_machine::message::Node;
use xds_machine::server::{Action, Response, Revision, Variant};

use super::Store;

/// The control plane's side of one stream. [`assign`](Self::assign) is the only method that is needed; the others
/// observe.
///
/// Neither the machine nor the store is locked during a call.
pub trait Handler<V: Variant> {
    /// The resources of a group of nodes.
    type Store: Store;

    /// Returns the store that serves the stream from now on. Called once, after the first request and its actions.
    /// The node is empty if the client sent none.
    ///
    /// # Errors
    ///
    /// Returns the status to end the stream with if the node is not to be served.
    fn assign(&mut self, node: &Node) -> Result<Self::Store, Status>;

    /// Observes a request before the machine handles it.
    fn handle_request(&mut self, request: &V::Request) {
        let _ = request;
    }

    /// Observes an action of the machine. [`Action::Close`] ends the stream after the call.
    fn handle_action(&mut self, action: &Action) {
        let _ = action;
    }

    /// Observes a response that goes to the transport.
    fn handle_response(&mut self, response: &Response<V>) {
        let _ = response;
    }

    /// Observes that the client has answered all that it was to be sent up to this revision of the source, be it with
    /// an ACK or a NACK. Called each time that the stream has nothing to do.
    fn handle_settled(&mut self, revision: Revision) {
        let _ = revision;
    }

    /// Returns a status when the stream is to end, for example because the control plane shuts down. Called each time
    /// that the stream is polled; wakes the task when its answer changes.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Status> {
        let _ = cx;
        Poll::Pending
    }
}

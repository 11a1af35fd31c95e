//! Requests for the transport.

use super::in_flight::PendingAck;
use crate::model::{Label, Relabel};

/// A request to send, and the receipt to report once the transport has taken it. Fields may be added.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[must_use = "the machine takes it for sent: a request that is dropped is never made again on this stream"]
#[non_exhaustive]
pub struct Transmit<R> {
    /// The request, to be encoded and sent.
    pub request: R,
    /// The receipt for [`Client::handle_sent`](super::Client::handle_sent), once the transport has taken the request.
    pub sent: Sent,
    /// The reason for the request, for logs and metrics.
    pub intent: Intent,
}

/// The receipt for a request that was sent, and for all requests before it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[must_use = "without `handle_sent` no existence time-out ever starts"]
pub struct Sent {
    pub(super) epoch: u64,
    pub(super) seq: u64,
}

impl Relabel for Sent {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        by(Label::Epoch(&mut self.epoch));
        by(Label::Request(&mut self.seq));
    }
}

/// The reason for a request, for logs and counters. The protocol has no other reasons.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Intent {
    /// The first request of its type on the stream.
    Initial,
    /// The subscribed names changed, or resources are requested again.
    Subscribe,
    /// The request acknowledges a response (ACK).
    Ack,
    /// The request rejects a response, completely or in part (NACK).
    Nack,
}

/// Returns the intent of an ACK or NACK.
pub(super) fn ack_intent(ack: &PendingAck) -> Intent {
    if ack.error.is_some() { Intent::Nack } else { Intent::Ack }
}

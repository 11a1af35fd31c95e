//! Events that a server machine reports: verdicts of the client, changes of its subscriptions, and the end of the
//! stream.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::error::Status;
use crate::message::Node;
use crate::model::{Label, Relabel};
use crate::name::{Nonce, ResourceName, TypeUrl, Version};
use crate::queue::Queue;
use crate::revision::Revision;

/// An event on a stream, or work for the driver.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// The client accepted a response.
    Ack {
        /// The type URL of the exchange.
        type_url: TypeUrl,
        /// The version of the response.
        version: Version,
        /// [`Response::revision`](super::Response::revision) of the response: the client has accepted all changes up
        /// to it.
        revision: Revision,
        /// The nonce of the response.
        nonce: Nonce,
    },
    /// The stream cannot continue: close it with this status. The machine sends nothing more.
    Close(Status),
    /// A request's verdict was not counted, because no response with its nonce awaits an ACK or NACK. The names of the
    /// request count: SotW records them, delta honours them ([design rule 4](crate::manual::rules#rule-4)).
    DropStale {
        /// The type URL of the exchange.
        type_url: TypeUrl,
        /// The nonce of the last such request.
        nonce: Nonce,
        /// Why the verdict was not counted.
        reason: DropReason,
        /// The number of such requests in a row.
        count: u64,
        /// The `error_detail` of the last such request: its client rejected something. If a newer response took the place
        /// of the rejected one, [`deliveries`](super::Server::deliveries) show the rejected resources.
        error: Option<Status>,
    },
    /// The client rejected a response or a part of it. A rejected resource is sent again once it changes.
    Nack {
        /// The type URL of the exchange.
        type_url: TypeUrl,
        /// The version of the response.
        version: Version,
        /// [`Response::revision`](super::Response::revision) of the response.
        revision: Revision,
        /// The nonce of the response.
        nonce: Nonce,
        /// The `error_detail` of the client.
        error: Status,
    },
    /// The client identified itself, in the first request of the stream.
    Node(Arc<Node>),
    /// The client changed its subscription to a type.
    Subscribed {
        /// The type URL of the exchange.
        type_url: TypeUrl,
        /// Names that were added to the subscription.
        added: Vec<ResourceName>,
        /// Names that were removed from the subscription.
        removed: Vec<ResourceName>,
        /// Whether the wildcard is subscribed, be it by `*` or by the legacy empty list.
        wildcard: bool,
    },
}

/// The reason why a verdict was not counted.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum DropReason {
    /// The request has a nonce other than that of the last response, because a newer response took the place of the
    /// answered one, or the last response already has its ACK or NACK.
    OtherNonce,
    /// The request has no nonce, though a response is in flight: it was sent before the response arrived (SotW), or
    /// it reports an error without naming the response.
    NoNonce,
}

/// Reports a request whose verdict was not counted. Such requests in a row are one action if their errors are equal.
pub(super) fn drop_stale(
    actions: &mut Queue<Action>,
    type_url: TypeUrl,
    nonce: Nonce,
    reason: DropReason,
    error: Option<Status>,
) {
    if let Some(Action::DropStale {
        type_url: last,
        nonce: last_nonce,
        reason: last_reason,
        count,
        error: last_error,
    }) = actions.last_mut()
    {
        if *last == type_url && *last_reason == reason && *last_error == error {
            *count += 1;
            *last_nonce = nonce;
            return;
        }
    }
    actions.push(Action::DropStale { type_url, nonce, reason, count: 1, error });
}

impl Relabel for Action {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        match self {
            Self::Ack { nonce, revision, .. } | Self::Nack { nonce, revision, .. } => {
                nonce.relabel(by);
                revision.relabel(by);
            }
            Self::DropStale { nonce, .. } => nonce.relabel(by),
            Self::Close(_) | Self::Node(_) | Self::Subscribed { .. } => {}
        }
    }
}

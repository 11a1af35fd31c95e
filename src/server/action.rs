//! What a server machine reports: verdicts of the client, changes of its subscriptions, and the end of the stream.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::error::Status;
use crate::message::Node;
use crate::model::{Label, Relabel};
use crate::name::{Nonce, ResourceName, TypeUrl, Version};
use crate::revision::Revision;

/// What happened on a stream, and what is to be done.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// The client accepted a response.
    Ack {
        /// The type URL of the exchange.
        type_url: TypeUrl,
        /// The version of the response.
        version: Version,
        /// [`Response::revision`](super::Response::revision) of the response: the client has accepted what changed up to it.
        revision: Revision,
        /// The nonce of the response.
        nonce: Nonce,
    },
    /// The stream can't go on: close it with this status. The machine sends nothing more.
    Close(Status),
    /// A request's verdict was not counted: it answers no response that waits for an answer. In SotW its names were
    /// recorded, and in delta honoured ([design rule 4](crate::manual::rules#rule-4)).
    DropStale {
        /// The type URL of the exchange.
        type_url: TypeUrl,
        /// The nonce of the last such request.
        nonce: Nonce,
        /// Why the verdict was not counted.
        reason: DropReason,
        /// The number of such requests in a row.
        count: u64,
    },
    /// The client rejected a response, in whole or in part. What it rejected is not sent again until it changes.
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
    /// The client said who it is, in the first request of the stream.
    Node(Arc<Node>),
    /// The client wants something else of a type than before.
    Subscribed {
        /// The type URL of the exchange.
        type_url: TypeUrl,
        /// Names that it wants now, and did not before.
        added: Vec<ResourceName>,
        /// Names that it wants no longer.
        removed: Vec<ResourceName>,
        /// Whether it wants everything, be it by `*` or by the legacy empty list.
        wildcard: bool,
    },
}

/// Why a verdict was not counted.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum DropReason {
    /// The request has a nonce that is not that of the last response, or of none that waits.
    OtherNonce,
    /// The request has no nonce, though a response is out: it was sent before that came (SotW), or it reports an
    /// error without saying of what.
    NoNonce,
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

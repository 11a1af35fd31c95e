//! Actions: the reports of a client machine to its application.

use alloc::vec::Vec;

use super::update::{Rejection, Update};
use crate::error::Status;
use crate::model::{Label, Relabel};
use crate::name::{Nonce, ResourceName, TypeUrl};

/// An update to apply, or an event to note.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// Validate and apply the update, then answer with a [`Verdict`](super::Verdict).
    Apply(Update),
    /// Responses were ignored and not answered.
    DropStale {
        /// The type of the responses; may be a type that was never requested.
        type_url: TypeUrl,
        /// The nonce of the last response that was ignored.
        nonce: Nonce,
        /// Why the responses were ignored.
        reason: DropReason,
        /// The number of responses that were ignored in a row.
        count: u64,
    },
    /// Resources have errors: the server reported them (`resource_errors`; cncf/xds TP3), deleted a resource that is
    /// kept ([`DataErrors::Keep`](super::DataErrors::Keep)), or did not send a resource in time
    /// ([`Config::with_transient_timeout`](super::Config::with_transient_timeout)). Emitted before the actions that
    /// follow from the errors: [`DoesNotExist`](Self::DoesNotExist) of nonexistent resources, [`Apply`](Self::Apply) of
    /// resources to remove. A repeated error is not emitted again. Rejections are not included, because the application
    /// knows them.
    Errors {
        /// The type of the resources.
        type_url: TypeUrl,
        /// The errors, in the order of the names, one per name. The wildcard stands for the collection as a whole.
        errors: Vec<Failed>,
    },
    /// The TTL of resources ran out without a renewal, so the resources are removed (xds_protocol.rst, "TTL").
    Expired {
        /// The type of the resources.
        type_url: TypeUrl,
        /// The resources that expired.
        names: Vec<ResourceName>,
    },
    /// Resources do not exist, as far as the client knows: the server reported so, or the existence time-out of gRFC
    /// A57 passed. The subscription stays, and the server may send the resources at any time.
    DoesNotExist {
        /// The type of the resources.
        type_url: TypeUrl,
        /// The resources that do not exist.
        names: Vec<ResourceName>,
    },
    /// The machine itself found faults in a response and sends a NACK. The faultless resources follow in an
    /// [`Action::Apply`].
    Rejected {
        /// The type of the response.
        type_url: TypeUrl,
        /// The nonce of the response.
        nonce: Nonce,
        /// The faults, each with the name of its resource if known.
        faults: Vec<Rejection>,
    },
    /// The server has answered, and the response has nothing to apply, because the wildcard matches nothing or only
    /// held resources. A caller that waits for its first resources can proceed. An [`Action::DoesNotExist`] or
    /// [`Action::Errors`] may precede this action. Heartbeats alone cause this action only as long as they may be the
    /// answer to the wildcard.
    Synced {
        /// The type of the response.
        type_url: TypeUrl,
        /// Whether the server has answered the wildcard, by this response or an earlier one: see
        /// [`Update::answers_wildcard`].
        answers_wildcard: bool,
    },
}

impl Action {
    /// Returns the type that the action is about, so that a program with several types can pass actions on.
    pub fn type_url(&self) -> &TypeUrl {
        match self {
            Self::Apply(update) => update.type_url(),
            Self::DropStale { type_url, .. }
            | Self::Errors { type_url, .. }
            | Self::Expired { type_url, .. }
            | Self::DoesNotExist { type_url, .. }
            | Self::Rejected { type_url, .. }
            | Self::Synced { type_url, .. } => type_url,
        }
    }
}

/// An error of one resource. No field will be added, so that the tests of an application can construct one.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Failed {
    /// The name of the resource that has the error.
    pub name: ResourceName,
    /// The error. [`Status::is_data_error`] distinguishes data errors from transient errors.
    pub status: Status,
    /// The effect of the error on held content.
    pub effect: Effect,
}

/// The effect of an error on the held content of a resource. No variant will be added, because every application that
/// handles errors has to handle each of them.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Effect {
    /// The resource is held and stays in use; the error is informative (gRFC A88's ambient error).
    Ambient,
    /// No content is held, so the error is all that the application has.
    Fails,
    /// The resource is held, and an [`Action::Apply`] that follows removes it.
    Removes,
}

/// Why a response was ignored.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum DropReason {
    /// The type was not requested on this stream. An ACK would be the type's first request, and an empty first request
    /// means "everything".
    NotAsked,
}

impl Relabel for Action {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        match self {
            Self::Apply(update) => update.relabel(by),
            Self::DropStale { nonce, .. } | Self::Rejected { nonce, .. } => nonce.relabel(by),
            Self::Errors { .. } | Self::Expired { .. } | Self::DoesNotExist { .. } | Self::Synced { .. } => {}
        }
    }
}

//! What a client machine reports to its application.

use alloc::vec::Vec;

use super::update::{Rejection, Update};
use crate::error::Status;
use crate::model::{Label, Relabel};
use crate::name::{Nonce, ResourceName, TypeUrl};

/// What the application is to do, or to know.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// Validate and apply this, then answer with a [`Verdict`](super::Verdict).
    Apply(Update),
    /// Responses were ignored and not answered.
    DropStale {
        /// Their type; may be one that was never asked for.
        type_url: TypeUrl,
        /// The nonce of the last response that was ignored.
        nonce: Nonce,
        /// Why the responses were ignored.
        reason: DropReason,
        /// The number of responses that were ignored in a row.
        count: u64,
    },
    /// Something is wrong with resources: the server reported errors of them (`resource_errors`; cncf/xds TP3), deleted
    /// what is to stay all the same ([`DataErrors::Keep`](super::DataErrors::Keep)), or let the time pass
    /// ([`Config::with_transient_timeout`](super::Config::with_transient_timeout)). Comes before what follows from it:
    /// [`DoesNotExist`](Self::DoesNotExist) of what does not exist, [`Apply`](Self::Apply) of what is to be removed. An error that
    /// is reported again is not told again. What is rejected is no news to the application, and not here.
    Errors {
        /// The type of the resources.
        type_url: TypeUrl,
        /// What is wrong, in the order of the names, each once. The wildcard stands for the collection as a whole.
        errors: Vec<Failed>,
    },
    /// The TTL of resources ran out with no news of them: they are gone (xds_protocol.rst, "TTL").
    Expired {
        /// The type of the resources.
        type_url: TypeUrl,
        /// The resources that expired.
        names: Vec<ResourceName>,
    },
    /// Resources do not exist, as far as is known: a delta server said so, or the existence time-out of gRFC A57
    /// passed. The subscription stays, and they may come at any time.
    DoesNotExist {
        /// The type of the resources.
        type_url: TypeUrl,
        /// The resources that do not exist.
        names: Vec<ResourceName>,
    },
    /// The machine itself found fault with a response and sends a NACK. What was not at fault comes as an
    /// [`Action::Apply`] besides.
    Rejected {
        /// The type of the response.
        type_url: TypeUrl,
        /// The nonce of the response.
        nonce: Nonce,
        /// Each fault, with the resource that has it if it can be told.
        faults: Vec<Rejection>,
    },
    /// The server has answered, and the response has nothing to apply, so a caller that waits for its first resources
    /// can go on: the wildcard matches nothing, or nothing that is not held. An [`Action::DoesNotExist`] or
    /// [`Action::Errors`] may have come before. Heartbeats alone make this action only as long as they may be the answer
    /// to the wildcard.
    Synced {
        /// The type of the response.
        type_url: TypeUrl,
    },
}

/// An error of one resource. All that there is to say of it: no field will be added, so that the tests of an application can
/// make one.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Failed {
    /// The name of the resource that has the error.
    pub name: ResourceName,
    /// The error. [`Status::is_data_error`] tells whether it is transient.
    pub status: Status,
    /// What the error does to content that is held.
    pub effect: Effect,
}

/// What an error does to what is held of a resource. Whoever is told of errors has to handle each of the three, so there will
/// be no fourth.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Effect {
    /// The resource is held and stays in use: the error is for people (gRFC A88's ambient error).
    Ambient,
    /// Nothing is held: the error is all there is.
    Fails,
    /// The resource is held, and an [`Action::Apply`] that follows removes it.
    Removes,
}

/// Why a response was ignored.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum DropReason {
    /// Nothing of this type was asked for on this stream. An answer would be the type's first request, and an
    /// empty one means "everything".
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

//! The differences between the variants, behind one trait.

use alloc::sync::Arc;

use super::config::{Limits, Settings};
use super::draft::{Draft, Order};
use super::encoding::Encoding;
use super::size::Size;
use super::source::Source;
use super::subscription::{Subscription, SubscriptionChange};
use crate::error::{PeerMisbehaved, Status};
use crate::message::{Messages, Node};
use crate::name::{Nonce, ResourceName, TypeUrl, Version};

/// A variant of the protocol, as the server sees it: [`Sotw`](crate::Sotw) or [`Delta`](crate::Delta). Sealed.
pub trait Variant: Protocol {}

/// The internal half of [`Variant`].
#[allow(unnameable_types)] // this is the seal
pub trait Protocol: Encoding + Messages {
    /// Whether a response names removed resources.
    const NAMES_REMOVALS: bool;

    /// Whether names may be aliases.
    const ALIASES: bool;

    /// Whether each response has an answer of its own, so that a new name is answered beside a response in flight. In SotW
    /// a client that has not judged a response yet repeats the nonce of an earlier one.
    const ANSWERS_AT_ONCE: bool;

    fn node(request: &Self::Request) -> Option<&Arc<Node>>;

    fn type_url(request: &mut Self::Request) -> &mut TypeUrl;

    /// Takes the nonce, the error, and the version that the client accepted last, if a request has it.
    fn take_answer(request: &mut Self::Request) -> (Nonce, Option<Status>, Option<Version>);

    /// Validates the names of a request, and may sort or complete them. Returns an upper bound for the size of the
    /// type's names with the request.
    fn check(
        request: &mut Self::Request,
        known: Option<&Subscription>,
        settings: &Settings,
    ) -> Result<Size, PeerMisbehaved>;

    /// Returns the bytes of the claimed names and versions in a request.
    fn initial_bytes(request: &Self::Request) -> usize;

    /// Applies the names of a request that was checked.
    fn apply_request(
        request: Self::Request,
        to: &mut Subscription,
        first: bool,
        settings: &Settings,
    ) -> SubscriptionChange;

    /// Returns whether a nonce that is not that of the last response makes a request stale.
    fn is_stale(nonce: &Nonce, subscription: &Subscription) -> bool;

    /// Returns whether there are changes or removals to push to a subscription, apart from pending answers.
    fn has_push<S: Source>(subscription: &Subscription, source: &S) -> bool;

    /// Fills an empty draft with what is to be sent.
    fn draft<S: Source>(of: &mut Subscription, source: &S, order: Order, draft: &mut Draft) -> Result<(), Status>;

    /// Returns whether a heartbeat requires sending all subscribed resources.
    fn heartbeats_with_all(of: &Subscription) -> bool;

    /// Returns the version of a response with heartbeats only, for a variant that sends them separately.
    fn version_of_heartbeats(of: &Subscription) -> Option<Version>;

    /// Adds heartbeats, except for resources that the draft has or that are about to be sent.
    fn add_heartbeats<S: Source>(of: &mut Subscription, source: &S, draft: &mut Draft);

    /// Returns whether a client supports TTLs in this variant (xds_protocol.rst, "TTL" and "SotW TTL").
    fn supports_ttl(node: &Node) -> bool;
}

/// Rejects names that no resource may have.
pub(super) fn check_names<'a>(
    type_url: &TypeUrl,
    names: impl IntoIterator<Item = &'a ResourceName>,
    limits: &Limits,
) -> Result<(), PeerMisbehaved> {
    names.into_iter().try_for_each(|name| check_name(type_url, name.as_str().len(), limits))
}

/// Rejects a name of a length that no resource may have.
#[inline]
pub(super) fn check_name(type_url: &TypeUrl, len: usize, limits: &Limits) -> Result<(), PeerMisbehaved> {
    let limit = limits.name_bytes;
    if len == 0 {
        return Err(PeerMisbehaved::EmptyName { type_url: type_url.clone() });
    }
    if len > limit {
        return Err(PeerMisbehaved::NameTooLong { type_url: type_url.clone(), len, limit });
    }
    Ok(())
}

//! What differs between the variants, behind one door.

use alloc::sync::Arc;

use super::config::{Limits, Settings};
use super::draft::{Behind, Draft, Order};
use super::encoding::Encoding;
use super::size::Size;
use super::source::Source;
use super::subscription::{Subscription, SubscriptionChange};
use crate::error::{PeerMisbehaved, Status};
use crate::message::{Messages, Node};
use crate::name::{Nonce, ResourceName, TypeUrl, Version};

/// A variant of the protocol, as the server sees it: [`Sotw`](crate::Sotw) or [`Delta`](crate::Delta). Sealed.
pub trait Variant: Protocol {}

/// The half of [`Variant`] that nobody outside needs.
#[allow(unnameable_types)] // this is the seal
pub trait Protocol: Encoding + Messages {
    /// Whether a response names what is gone.
    const NAMES_REMOVALS: bool;

    /// Whether names may be aliases.
    const ALIASES: bool;

    fn node(request: &Self::Request) -> Option<&Arc<Node>>;

    fn type_url(request: &mut Self::Request) -> &mut TypeUrl;

    fn take_answer(request: &mut Self::Request) -> (Nonce, Option<Status>);

    /// The size of the type's names with this request, at most; or what is wrong with it. May put it in order.
    fn check(
        request: &mut Self::Request,
        known: Option<&Subscription>,
        settings: &Settings,
    ) -> Result<Size, PeerMisbehaved>;

    /// The bytes of what a request says that the client has.
    fn initial_bytes(request: &Self::Request) -> usize;

    /// Takes in what a request says of names. It has been checked.
    fn apply_request(
        request: Self::Request,
        to: &mut Subscription,
        first: bool,
        settings: &Settings,
    ) -> SubscriptionChange;

    /// Whether a nonce that is not that of the last response makes a request stale.
    fn is_stale(nonce: &Nonce, subscription: &Subscription) -> bool;

    /// Whether there is something to push to a subscription, apart from what it was promised.
    fn has_push<S: Source>(subscription: &Subscription, source: &S) -> bool;

    /// Puts what is to be sent into an empty draft.
    fn draft<S: Source>(of: &mut Subscription, source: &S, order: Order, draft: &mut Draft) -> Result<(), Behind>;

    /// Whether all that is wanted has to be sent to say that some of it lives on.
    fn heartbeats_with_all(of: &Subscription) -> bool;

    /// The version of a response that has heartbeats and nothing else, for a variant in which they go alone.
    fn version_of_heartbeats(of: &Subscription) -> Option<Version>;

    /// Adds the news that resources live on, but for those that were sent since the last time, or are now.
    fn add_heartbeats<S: Source>(of: &Subscription, source: &S, draft: &mut Draft);

    /// Whether a client takes TTLs in this variant (xds_protocol.rst, "TTL" and "SotW TTL").
    fn supports_ttl(node: &Node) -> bool;
}

/// Refuses names that no resource may have.
pub(super) fn check_names<'a>(
    type_url: &TypeUrl,
    names: impl IntoIterator<Item = &'a ResourceName>,
    limits: &Limits,
) -> Result<(), PeerMisbehaved> {
    let limit = limits.name_bytes;
    for len in names.into_iter().map(|name| name.as_str().len()) {
        if len == 0 {
            return Err(PeerMisbehaved::EmptyName { type_url: type_url.clone() });
        }
        if len > limit {
            return Err(PeerMisbehaved::NameTooLong { type_url: type_url.clone(), len, limit });
        }
    }
    Ok(())
}

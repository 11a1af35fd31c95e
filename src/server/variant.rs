//! What differs between the variants, behind one door.

use alloc::sync::Arc;
use core::fmt::Debug;
use core::hash::Hash;
use core::ops::Add;

use super::config::{Limits, Settings};
use super::portion::Room;
use super::response::Piece;
use super::source::Source;
use super::subscription::{Draft, Heard, Subscription};
use crate::error::{PeerMisbehaved, Status};
use crate::message::Node;
use crate::name::{Nonce, ResourceName, TypeUrl, Version};
use crate::wire::{Element, Writer};

/// A variant of the protocol, as the server sees it: [`Sotw`](crate::Sotw) or [`Delta`](crate::Delta). Sealed.
pub trait Variant: Protocol {}

/// The half of [`Variant`] that nobody outside needs.
#[allow(unnameable_types)] // this is the seal
pub trait Protocol: Clone + Debug + Default + Eq + Hash + Send + Sync + Sized + 'static {
    /// What the server receives.
    type Request: Clone + Debug + Eq + Hash + Send + Sync;

    /// Tells the variants apart: 0 or 1.
    const NUMBER: usize;

    /// Whether a response names what is gone.
    const NAMES_REMOVALS: bool;

    /// The field of `control_plane` in the response.
    const CONTROL_PLANE: u8;

    /// The field of `resource_errors`.
    const ERRORS: u8;

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
    fn hear(request: Self::Request, subscription: &mut Subscription, first: bool) -> Heard;

    /// Whether a nonce that is not that of the last response makes a request stale.
    fn is_stale(nonce: &Nonce, subscription: &Subscription) -> bool;

    /// Whether there is something to push to a subscription, apart from what it was promised.
    fn has_push<S: Source>(subscription: &Subscription, source: &S) -> bool;

    /// Puts what is to be sent into an empty draft.
    fn draft<S: Source>(of: &mut Subscription, source: &S, order: Order, draft: &mut Draft) -> Result<(), Behind>;

    /// Whether all that is wanted has to be sent to say that some of it lives on.
    fn beats_with_all(of: &Subscription) -> bool;

    /// The version of a response that has heartbeats and nothing else, for a variant in which they go alone.
    fn version_of_beats(of: &Subscription) -> Option<Version>;

    /// Adds the news that resources live on, but for those that were sent since the last time, or are now.
    fn add_heartbeats<S: Source>(of: &Subscription, source: &S, draft: &mut Draft);

    /// Whether a client takes TTLs in this variant (xds_protocol.rst, "TTL" and "SotW TTL").
    fn supports_ttl(node: &Node) -> bool;

    /// Writes a resource that has no TTL.
    fn put_page_element(element: &Element<'_>, to: &mut Writer<'_>);

    fn element_len(ttl: bool, piece: Piece<'_>, element: &Element<'_>) -> usize;

    fn put_element(ttl: bool, piece: Piece<'_>, element: &Element<'_>, to: &mut Writer<'_>);
}

/// What the order of the types (DESIGN rule 11) demands of a response.
#[derive(Clone, Copy, Debug, Default)]
pub struct Order {
    /// Only what was asked for; what changed waits for other types.
    pub(super) answers_only: bool,
    /// Pushed removals stay back.
    pub(super) hold_removals: bool,
    /// How much may be sent.
    pub(super) room: Room,
    /// As many names are remembered at least.
    pub(super) names: usize,
}

/// How many names, and how long they are together.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Size {
    pub(super) names: usize,
    pub(super) bytes: usize,
}

impl Size {
    pub(super) fn of<'a>(names: impl IntoIterator<Item = &'a ResourceName>) -> Self {
        let size = |size: Self, name: &ResourceName| size + Self { names: 1, bytes: name.as_str().len() };
        names.into_iter().fold(Self::default(), size)
    }
}

impl Add for Size {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { names: self.names + other.names, bytes: self.bytes + other.bytes }
    }
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

/// The source does not remember the removals that the stream has not heard of.
#[derive(Clone, Copy, Debug)]
pub struct Behind;

//! The trait with the functions in which the variants of the protocol differ.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Debug;
use core::hash::Hash;
use core::time::Duration;

use super::config::Settings;
use super::holdings::{Held, Holdings};
use super::in_flight::PendingAck;
use super::incoming::{Heartbeat, Incoming};
use super::resources::Resource;
use super::subscription::Subscription;
use super::timers::Asked;
use super::transmit::Intent;
use crate::error::PeerMisbehaved;
use crate::message::Messages;
use crate::name::{Nonce, ResourceName, TypeUrl, Version};
use crate::resource_type::ResourceType;

/// A variant of the protocol, as the client sees it: [`Sotw`](crate::Sotw) or [`Delta`](crate::Delta). Sealed.
pub trait Variant: Protocol {}

/// The private half of [`Variant`].
#[allow(unnameable_types)] // this is the seal
pub trait Protocol: Messages {
    /// The state of one type on this stream, apart from the states of single names.
    type StreamState: Clone + Debug + Default + Eq + Hash + Send + Sync;

    /// Whether the first request of a stream claims held versions by name (`initial_resource_versions`).
    const CLAIMS_HELD_VERSIONS: bool;
    /// Whether resources have aliases, by which they may be requested.
    const ALIASES: bool;
    /// Whether each response is answered by itself, although a later one has all that it had.
    const ANSWERS_EACH: bool;

    fn type_url(response: &Self::Response) -> &TypeUrl;

    fn nonce(response: &Self::Response) -> &Nonce;

    /// Refuses a response that could not even be answered.
    fn unanswerable(response: &Self::Response, settings: &Settings) -> Result<(), PeerMisbehaved>;

    /// Reads a response of a requested type; it is the `serial`th of the type on the stream.
    fn read(
        response: Self::Response,
        serial: u64,
        settings: &Settings,
        resource_type: &ResourceType,
        holdings: &Holdings,
    ) -> Incoming;

    /// Notes a newly subscribed name, which is to be announced.
    fn subscribed(to: &mut Of<Self>, name: &ResourceName);

    /// Notes an unsubscribed name, which is still among the announced names.
    fn unsubscribed(from: &mut Of<Self>, name: &ResourceName, settings: &Settings);

    /// Returns whether the client uses the parts of a response that concern this name.
    fn takes(from: &Of<Self>, name: &str) -> bool;

    /// Updates the announced state for a response that is being processed.
    fn processed(of: &mut Of<Self>, incoming: &Incoming);

    /// Returns whether the version of held resources is that of the last response that was accepted completely.
    fn implies_version(resource_type: &ResourceType) -> bool;

    /// Returns whether a heartbeat matches the held resource; `version` is the response's.
    fn heartbeat_matches(of: &Of<Self>, held: &Held, heartbeat: &Heartbeat, version: &Version) -> bool;

    /// Returns whether a heartbeat is one of content that waits for a verdict: `unjudged` is the version of a waiting
    /// response, and what it has of the heartbeat's resource; `version` is that of the heartbeat's response.
    fn heartbeat_matches_unjudged(
        unjudged: (&Version, Option<Resource<'_>>),
        heartbeat: &Heartbeat,
        version: &Version,
    ) -> bool;

    /// Returns whether the client has all resources of the wildcard, in the version of the response, once a response on
    /// this stream is accepted.
    fn completes(of: &Of<Self>) -> bool;

    /// Returns whether a response certainly answers the wildcard.
    fn answers_all(of: &Of<Self>, incoming: &Incoming) -> bool;

    /// Returns the time-out of a name for which a request was sent.
    fn timeout(of: &Of<Self>, name: &ResourceName, settings: &Settings) -> Option<Duration>;

    /// Requests subscribed names again.
    fn refetch(of: &mut Of<Self>, names: Vec<ResourceName>, settings: &Settings);

    /// Returns whether the server may know this name from the current subscription or an earlier one, and see nothing
    /// new in it.
    fn may_know(of: &Of<Self>, name: &str) -> bool;

    /// Requests a resource again that the server may wrongly believe the client to have. `names` are the names that
    /// cover the resource and that the server may know; the wildcard is among them only if its own name is not.
    fn ask_anew(of: &mut Of<Self>, names: Vec<ResourceName>);

    /// Returns whether a change may be sent now, and not only with the next ACK or NACK.
    fn may_speak(of: &Of<Self>) -> bool;

    /// Returns whether there is a request to send that answers no response.
    fn has_news(of: &Of<Self>) -> bool;

    /// Composes the next request, with the names whose existence the server has to settle.
    fn compose(of: &mut Of<Self>, ack: Option<PendingAck>, settings: &Settings) -> Composed<Self>;

    /// Visits the fields that hold numbers of the type's responses.
    fn each_serial(stream_state: &mut Self::StreamState, each: &mut dyn FnMut(&mut u64));

    /// Checks the invariants of the stream's state.
    fn check_stream_state(of: &Of<Self>) -> Result<(), String>;

    fn set_node(request: &mut Self::Request, settings: &Settings);
}

/// One type of a client of a variant.
pub(super) type Of<V> = Subscription<<V as Protocol>::StreamState>;

pub struct Composed<V: Protocol> {
    pub(super) request: V::Request,
    pub(super) asked_for: Asked,
    pub(super) intent: Intent,
}

/// Refuses a nonce that is too long to be echoed.
pub(super) fn check_answerable(type_url: &TypeUrl, nonce: &Nonce, settings: &Settings) -> Result<(), PeerMisbehaved> {
    let (len, limit) = (nonce.as_str().len(), settings.limits.nonce_bytes);
    if len > limit { Err(PeerMisbehaved::NonceTooLong { type_url: type_url.clone(), len, limit }) } else { Ok(()) }
}

//! What differs between the variants, behind one door.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Debug;
use core::hash::Hash;
use core::time::Duration;

use super::config::Settings;
use super::holdings::{Held, Holdings};
use super::in_flight::PendingAck;
use super::incoming::{Heartbeat, Incoming};
use super::subscription::Subscription;
use super::timers::Asked;
use super::transmit::Intent;
use crate::error::PeerMisbehaved;
use crate::message::Messages;
use crate::name::{Nonce, ResourceName, TypeUrl, Version};
use crate::resource_type::ResourceType;

/// A variant of the protocol, as the client sees it: [`Sotw`](crate::Sotw) or [`Delta`](crate::Delta). Sealed.
pub trait Variant: Protocol {}

/// The half of [`Variant`] that nobody outside needs.
#[allow(unnameable_types)] // this is the seal
pub trait Protocol: Messages {
    /// What is known of what the server was told of a type on this stream, besides of single names.
    type StreamState: Clone + Debug + Default + Eq + Hash + Send + Sync;

    /// Whether the first request of a stream says what is held, name by name.
    const SAYS_WHAT_IS_HELD: bool;
    /// Whether resources have other names, by which they may be asked for.
    const ALIASES: bool;

    fn type_url(response: &Self::Response) -> &TypeUrl;

    fn nonce(response: &Self::Response) -> &Nonce;

    /// Whether the response could not even be answered.
    fn unanswerable(response: &Self::Response, settings: &Settings) -> Result<(), PeerMisbehaved>;

    /// Reads a response of a type that was asked for; it is the `serial`th on the stream.
    fn read(
        response: Self::Response,
        serial: u64,
        settings: &Settings,
        resource_type: &ResourceType,
        holdings: &Holdings,
    ) -> Incoming;

    /// A name that was not wanted is to be announced.
    fn subscribed(to: &mut Of<Self>, name: &ResourceName);

    /// A name is wanted no longer, and still among what was announced.
    fn unsubscribed(from: &mut Of<Self>, name: &ResourceName, settings: &Settings);

    /// Whether what a response says of this name is to be taken.
    fn takes(from: &Of<Self>, name: &str) -> bool;

    /// A response is being processed.
    fn processed(of: &mut Of<Self>, incoming: &Incoming);

    /// Whether what is held and not in this response is gone.
    fn absence_removes(resource_type: &ResourceType, incoming: &Incoming) -> bool;

    /// Whether the version of what is held is that of the last response that was accepted whole.
    fn implies_version(resource_type: &ResourceType) -> bool;

    /// Whether a heartbeat is one for what is held; `version` is the response's.
    fn heartbeat_matches(of: &Of<Self>, held: &Held, heartbeat: &Heartbeat, version: &Version) -> bool;

    /// Whether what a response on this stream leaves has all that the wildcard stands for, in the version of the response.
    fn completes(of: &Of<Self>) -> bool;

    /// Whether a response is sure to be an answer to the wildcard.
    fn answers_all(of: &Of<Self>, incoming: &Incoming) -> bool;

    /// How long a name may be awaited, now that a request for it was sent.
    fn timeout(of: &Of<Self>, name: &ResourceName, settings: &Settings) -> Option<Duration>;

    /// Asks again for names that are wanted.
    fn refetch(of: &mut Of<Self>, names: Vec<ResourceName>, settings: &Settings);

    /// Whether the server may know this name from a wish, the present one or one before, and see nothing new in it.
    fn may_know(of: &Of<Self>, name: &str) -> bool;

    /// The server may believe that the client has a resource, which is wanted by these names that it was told, or if there
    /// are none by the wildcard; it has not.
    fn ask_anew(of: &mut Of<Self>, names: Vec<ResourceName>);

    /// Whether a change may be said now, and not only with the next answer.
    fn may_speak(of: &Of<Self>) -> bool;

    /// Whether there is something to say that is not an answer.
    fn has_news(of: &Of<Self>) -> bool;

    /// The next request, and the names in it whose existence the server is now to settle.
    fn compose(of: &mut Of<Self>, ack: Option<PendingAck>, settings: &Settings) -> Composed<Self>;

    /// Shows what counts the type's responses.
    fn each_serial(stream_state: &mut Self::StreamState, each: &mut dyn FnMut(&mut u64));

    /// Checks what must hold of what the stream was told.
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

/// Refuses a nonce that no answer could have.
pub(super) fn check_answerable(type_url: &TypeUrl, nonce: &Nonce, settings: &Settings) -> Result<(), PeerMisbehaved> {
    let (len, limit) = (nonce.as_str().len(), settings.limits.nonce_bytes);
    if len > limit { Err(PeerMisbehaved::NonceTooLong { type_url: type_url.clone(), len, limit }) } else { Ok(()) }
}

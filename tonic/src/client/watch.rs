//! Watchers of resources: typed news.

use std::collections::HashMap;
use std::fmt::Display;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_core::Stream;
use tokio::sync::mpsc::UnboundedSender;
use xds_machine::watch::{Event, WatchId, Watches};
use xds_machine::{Misuse, ResourceName, TypeUrl};

use super::actor::Command;

/// A type of resources, in the form that a program uses.
///
/// ```
/// use bytes::Bytes;
/// use xds_machine::{ResourceName, type_url};
/// use xds_machine_tonic::client::XdsResource;
///
/// /// A secret, as far as this program reads it.
/// #[derive(Debug, PartialEq)]
/// struct Secret(Bytes);
///
/// impl XdsResource for Secret {
///     const TYPE_URL: &'static str = type_url::SECRET;
///     type Error = String;
///
///     fn decode(name: &ResourceName, body: &Bytes) -> Result<Self, String> {
///         if body.is_empty() { Err(format!("{name} is empty")) } else { Ok(Self(body.clone())) }
///     }
/// }
/// ```
pub trait XdsResource: PartialEq + Send + Sync + Sized + 'static {
    /// The type URL, with `type.googleapis.com/`.
    const TYPE_URL: &'static str;
    /// The reason to reject a resource, worded for the operator of the server.
    type Error: Display;

    /// Decodes and validates a resource, once for all its watchers. An error rejects the resource: the client sends a
    /// NACK and applies the other resources of the response; the watchers keep the content that they have, and get the
    /// error.
    ///
    /// # Errors
    ///
    /// If the program can't use the resource.
    fn decode(name: &ResourceName, body: &Bytes) -> Result<Self, Self::Error>;
}

/// The reason why something can't be watched or subscribed to.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The client was closed.
    #[error("the client is closed")]
    Closed,
    /// The name can't be subscribed to, or no server is configured for its authority.
    #[error(transparent)]
    Name(#[from] Misuse),
    /// The type is in use by watchers with another Rust type, or by [`Updates`](super::Updates).
    #[error("{type_url} is in use in another form")]
    InUse {
        /// The type that is in use.
        type_url: TypeUrl,
    },
    /// The type has no service of its own, and the client is [not aggregated](super::Builder::separate_streams).
    #[error("{type_url} has no service of its own")]
    NoService {
        /// The type without a service.
        type_url: TypeUrl,
    },
}

/// The watchers of a type, shared by the client's task and the watchers themselves. News is made when a watcher asks
/// for it, so a slow watcher gets the latest.
pub(super) struct Shared<R>(Mutex<State<R>>);

pub(super) struct State<R> {
    pub(super) watches: Watches<Arc<R>>,
    pub(super) wakers: HashMap<WatchId, Waker>,
    pub(super) closed: bool,
}

impl<R: XdsResource> Shared<R> {
    pub(super) fn new() -> Self {
        Self(Mutex::new(State { watches: Watches::new(R::TYPE_URL), wakers: HashMap::new(), closed: false }))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The news of one watched name, as a stream. Dropping it ends the watch; the last watcher of a name unsubscribes.
///
/// Ends when the client is closed. An [`Event`] has the name of the resource, which differs from the watched one for
/// the wildcard and collections, and the [`News`](xds_machine::watch::News): content, or why there is none, or an error
/// beside content that stays valid. A watcher that reads late gets the latest content, and not each one in between.
#[must_use = "a dropped watch ends"]
pub struct Watch<R: XdsResource> {
    shared: Arc<Shared<R>>,
    id: WatchId,
    commands: UnboundedSender<Command>,
}

impl<R: XdsResource> std::fmt::Debug for Watch<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("type_url", &R::TYPE_URL).field("id", &self.id).finish_non_exhaustive()
    }
}

impl<R: XdsResource> Watch<R> {
    pub(super) fn new(shared: Arc<Shared<R>>, id: WatchId, commands: UnboundedSender<Command>) -> Self {
        Self { shared, id, commands }
    }

    /// Waits for the next news. Returns `None` once the client is closed.
    ///
    /// Cancel safety: no event is lost if the call is dropped.
    pub async fn next(&mut self) -> Option<Event<Arc<R>>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl<R: XdsResource> Stream for Watch<R> {
    type Item = Event<Arc<R>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut state = self.shared.lock();
        if let Some(event) = state.watches.poll_watch(self.id) {
            return Poll::Ready(Some(event));
        }
        if state.closed {
            return Poll::Ready(None);
        }
        state.wakers.insert(self.id, cx.waker().clone());
        Poll::Pending
    }
}

impl<R: XdsResource> Drop for Watch<R> {
    fn drop(&mut self) {
        // If the task has ended, so has the watch.
        _ = self.commands.send(Command::Unwatch { type_url: R::TYPE_URL.into(), watch: self.id });
    }
}

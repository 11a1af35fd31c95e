//! The events that watchers receive.

use crate::error::Status;
use crate::name::ResourceName;

/// One watcher of one name.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct WatchId(pub(super) u64);

/// A change that a watcher receives. Fields may be added.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Event<T> {
    /// The watcher that receives the event.
    pub watch: WatchId,
    /// The resource. A watcher of the wildcard or a collection receives events of each resource under the resource's
    /// name, and events of the subscription under the watched name. A watcher of an alias receives events under the
    /// alias.
    pub name: ResourceName,
    /// The change of the resource.
    pub news: News<T>,
}

impl<T> Event<T> {
    /// Makes an event as `poll_event` returns it, for tests of event handlers.
    pub fn new(watch: WatchId, name: impl Into<ResourceName>, news: News<T>) -> Self {
        Self { watch, name: name.into(), news }
    }
}

/// The state of a watched resource: see [`Watches::iter`](super::Watches::iter). Fields may be added.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Watched<'a, T> {
    /// The name that is watched, or the name of a resource that a watched wildcard or collection brought.
    pub name: &'a ResourceName,
    /// The held content; `None` for the wildcard or a collection itself.
    pub value: Option<&'a T>,
    /// The error of the resource itself.
    pub error: Option<&'a Status>,
    /// The reason why the resource's servers are unreachable. Watchers receive it if the resource has no error of its
    /// own.
    pub unreachable: Option<&'a Status>,
    /// The number of watchers of exactly this name.
    pub watchers: usize,
}

/// A change of a resource, in the terms of gRFC A88. More kinds may be added.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum News<T> {
    /// The resource has new content, or the status says why there is none: the previous content must no longer be used
    /// (`OnResourceChanged`). A previous ambient error is cleared.
    Changed(Result<T, Status>),
    /// The previous content stays valid and has this ambient error; `None`: the error is cleared (`OnAmbientError`).
    Ambient(Option<Status>),
    /// Only for the wildcard, after all other events: the server has answered it, so that the watcher has been told
    /// everything that there is. Each watcher is told once, also a later one, after what is known already; and again
    /// whenever the server responds without a change. A first answer that has only names which are watched besides the
    /// wildcard may be the answer to those, and does not count.
    Synced,
}

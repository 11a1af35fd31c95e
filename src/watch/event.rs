//! What a watcher is told.

use crate::error::Status;
use crate::name::ResourceName;

/// One watcher of one name.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct WatchId(pub(super) u64);

/// What is new to a watcher. Fields may be added.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Event<T> {
    /// The watcher that is told.
    pub watch: WatchId,
    /// Which resource: of who watches the wildcard or a collection any of it, or that name itself for the whole; of who
    /// watches by an alias the alias.
    pub name: ResourceName,
    /// What is new of the resource.
    pub news: News<T>,
}

impl<T> Event<T> {
    /// An event as it is polled, for the tests of who handles them.
    pub fn new(watch: WatchId, name: impl Into<ResourceName>, news: News<T>) -> Self {
        Self { watch, name: name.into(), news }
    }
}

/// What is known of something that is watched: see [`Watches::iter`](super::Watches::iter). Fields may be added.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Watched<'a, T> {
    /// The name that is watched, or that of a part of a whole that is.
    pub name: &'a ResourceName,
    /// What is held. Nothing of a whole itself.
    pub value: Option<&'a T>,
    /// What is wrong with the resource itself.
    pub error: Option<&'a Status>,
    /// Why its servers can't be reached; what a watcher is told where there is no error of the resource itself.
    pub unreachable: Option<&'a Status>,
    /// How many watch it by this very name.
    pub watchers: usize,
}

/// What is new of a resource, in gRFC A88's terms. More kinds of news may come.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum News<T> {
    /// It has this content now, or there is none for this reason: what was there before is to be used no more
    /// (`OnResourceChanged`). Whatever error there was beside it is over.
    Changed(Result<T, Status>),
    /// What was told before is good, and there is this error beside it; `None`: no more (`OnAmbientError`).
    Ambient(Option<Status>),
    /// Of the wildcard: the server has answered, and there was nothing new.
    Synced,
}

//! What a watcher is told.

use crate::error::Status;
use crate::name::ResourceName;

/// One watcher of one name.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct WatchId(pub(super) u64);

/// What is new to a watcher.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Event<T> {
    /// The watcher that is told.
    pub watch: WatchId,
    /// Which resource: of who watches the wildcard or a collection any of it, or that name itself for the whole; of who
    /// watches by an alias the alias.
    pub name: ResourceName,
    /// What is new of the resource.
    pub news: News<T>,
}

/// What is new of a resource, in gRFC A88's terms.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum News<T> {
    /// It has this content now, or there is none for this reason: what was there before is to be used no more
    /// (`OnResourceChanged`). Whatever error there was beside it is over.
    Changed(Result<T, Status>),
    /// What was told before is good, and there is this error beside it; `None`: no more (`OnAmbientError`).
    Ambient(Option<Status>),
    /// Of the wildcard: the server has answered, and there was nothing new.
    Synced,
}

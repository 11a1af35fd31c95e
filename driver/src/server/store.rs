//! What the streams of a group read: a source behind a lock, and the wake-up when it changes.

use std::sync::{PoisonError, RwLock};

use xds_machine::server::{Cache, Source};
use xds_machine::{Delta, Sotw};

use super::wakers::Wakers;

/// The resources of a group of nodes, shared by the streams of that group: a [`Source`] that is read between changes,
/// and a wake-up after each change.
///
/// [`Shared`] is a store for any source that fits behind a lock.
pub trait Store: Send + Sync + 'static {
    /// The source that the streams read.
    type Source: Source;

    /// Calls a function with the source. Nothing changes during the call.
    fn with<T>(&self, read: impl FnOnce(&Self::Source) -> T) -> T;

    /// Returns the streams to wake after each change: the same list each time.
    fn wakers(&self) -> &Wakers;
}

impl<S: Store> Store for std::sync::Arc<S> {
    type Source = S::Source;

    fn with<T>(&self, read: impl FnOnce(&Self::Source) -> T) -> T {
        S::with(self, read)
    }

    fn wakers(&self) -> &Wakers {
        S::wakers(self)
    }
}

/// A source behind a lock: a [`Cache`], unless another source is named.
///
/// ```
/// use xds_machine::server::{Cache, Resource};
/// use xds_machine::{TypeUrl, type_url};
/// use xds_machine_driver::server::{Shared, Store};
///
/// let (store, clusters) = (Shared::new(Cache::new(1)), TypeUrl::from(type_url::CLUSTER));
/// store.publish(|cache| cache.insert(&clusters, Resource::new("c1", &b""[..])));
/// assert_eq!(store.with(|cache| cache.resources(&clusters).count()), 1);
/// ```
#[derive(Debug)]
pub struct Shared<S = Cache> {
    source: RwLock<S>,
    wakers: Wakers,
}

impl<S> Shared<S> {
    /// Creates a store of a source.
    pub fn new(source: S) -> Self {
        Self { source: RwLock::new(source), wakers: Wakers::new() }
    }

    /// Changes the source, then wakes its streams. Streams wait during `change`, and see all of its effects at once.
    pub fn change<T>(&self, change: impl FnOnce(&mut S) -> T) -> T {
        let result = change(&mut self.source.write().unwrap_or_else(PoisonError::into_inner));
        self.wakers.wake_all();
        result
    }
}

impl Shared<Cache> {
    /// Changes the cache as [`change`](Self::change) does, and encodes the changed pages of both variants once for
    /// all streams ([`Cache::publish`]).
    pub fn publish<T>(&self, change: impl FnOnce(&mut Cache) -> T) -> T {
        self.change(|cache| {
            let result = change(cache);
            cache.publish::<Sotw>();
            cache.publish::<Delta>();
            result
        })
    }
}

impl<S: Source + Send + Sync + 'static> Store for Shared<S> {
    type Source = S;

    fn with<T>(&self, read: impl FnOnce(&S) -> T) -> T {
        read(&self.source.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn wakers(&self) -> &Wakers {
        &self.wakers
    }
}

//! Groups of nodes: the resources that some clients see, and the streams of these clients.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use xds_machine::TypeUrl;
use xds_machine::server::{Cache, Resource, Revision, Source};
use xds_machine_driver::server::{Shared, Store, Wakers};

use super::stream::lock;
use super::{Push, ResourceDelivery, StreamInfo};

/// A group of nodes, which see the same resources. Cheap to clone: a handle.
///
/// The resources are in a [`Cache`], or in any other [`Store`].
pub struct Group<S: Store = Shared>(Arc<Inner<S>>);

struct Inner<S> {
    name: Arc<str>,
    store: S,
    streams: Mutex<Streams>,
    /// Tasks that wait for the verdicts of the streams.
    verdicts: Wakers,
}

/// The open streams of a group, by the order in which they joined it.
#[derive(Default)]
struct Streams {
    open: BTreeMap<u64, StreamInfo>,
    /// The number of streams that ever joined.
    joined: u64,
}

/// Returns an epoch that no other call in this process returns: for a [`Source`] that serves a group.
pub fn next_epoch() -> u64 {
    static EPOCHS: AtomicU64 = AtomicU64::new(0);
    EPOCHS.fetch_add(1, Ordering::Relaxed) + 1
}

impl Group {
    /// Creates a group with an empty cache that is [loading](Cache::loading): a type is unknown until
    /// [`replace`](Self::replace) or [`Cache::set_known`] says that there is nothing else of it. Until then clients
    /// receive nothing of the type: those that reconnect to a control plane that restarts keep what they have, and those
    /// that start wait for a complete answer.
    ///
    /// ```
    /// use xds_machine::server::{Resource, Source};
    /// use xds_machine::{TypeUrl, type_url};
    /// use xds_machine_driver::server::Store;
    /// use xds_machine_tonic::server::Group;
    ///
    /// let (group, clusters) = (Group::new("edge"), TypeUrl::from(type_url::CLUSTER));
    /// for name in ["a", "b", "c"] {
    ///     group.update(|cache| cache.insert(&clusters, Resource::new(name, &b"an encoded Cluster"[..])));
    /// }
    /// assert!(!group.with(|cache| cache.is_known(&clusters)));
    /// group.update(|cache| cache.set_known(&clusters)); // that was all: clients receive the three
    /// assert!(group.with(|cache| cache.is_known(&clusters)));
    /// ```
    pub fn new(name: &str) -> Self {
        Self::with_store(name, Shared::new(Cache::loading(next_epoch())))
    }

    /// Changes the resources. All streams of the group see all effects of `change` at once, and each client receives
    /// those that concern it. A change of a type that is not known yet concerns no client: it is served once the type is
    /// known (see [`new`](Self::new)).
    pub fn update<T>(&self, change: impl FnOnce(&mut Cache) -> T) -> (T, Push) {
        let (result, revision) = self.store().publish(|cache| (change(cache), cache.revision()));
        (result, Push::new(self.clone(), revision))
    }

    /// Replaces all resources of a type ([`Cache::replace`]): no other name of the type exists, and the type is known
    /// from now on.
    pub fn replace(&self, type_url: &TypeUrl, resources: impl IntoIterator<Item = Resource>) -> Push {
        self.update(|cache| cache.replace(type_url, resources)).1
    }
}

impl<S: Store> Group<S> {
    /// Creates a group with a store. Its source needs an epoch that no other source has: [`next_epoch`].
    pub fn with_store(name: &str, store: S) -> Self {
        let (streams, verdicts) = (Mutex::default(), Wakers::new());
        Self(Arc::new(Inner { name: name.into(), store, streams, verdicts }))
    }

    /// Returns the name, which appears in [`StreamInfo::group`].
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the store, to read and to change it.
    pub fn store(&self) -> &S {
        &self.0.store
    }

    /// Returns a push of everything that the store holds now: a handle to await the verdicts of the clients.
    pub fn push(&self) -> Push<S> {
        Push::new(self.clone(), self.store().with(Source::revision))
    }

    /// Returns the open streams of the group, in the order in which they joined it.
    pub fn streams(&self) -> Vec<StreamInfo> {
        self.streams_since(&mut 0)
    }

    /// Returns what was sent on a stream of this group, resource by resource, and what its client has said of it: for
    /// each resource of the type that the client subscribes to, in the order of their names. The cost is linear in
    /// these. Empty if the stream is not of a group with this name, or the type was not requested.
    ///
    /// The store is read during the call: a change of the store ([`update`](Self::update)) must not make it.
    pub fn deliveries(&self, stream: &StreamInfo, type_url: &TypeUrl) -> Vec<ResourceDelivery> {
        if stream.group() != Some(self.name()) {
            return Vec::new();
        }
        self.store().with(|source| stream.deliveries(type_url, source))
    }

    /// Returns the open streams that have joined after `joined` streams, and sets that number.
    pub(super) fn streams_since(&self, joined: &mut u64) -> Vec<StreamInfo> {
        let streams = lock(&self.0.streams);
        let since = std::mem::replace(joined, streams.joined);
        streams.open.range(since..).map(|(_, stream)| stream.clone()).collect()
    }

    pub(super) fn verdicts(&self) -> &Wakers {
        &self.0.verdicts
    }

    /// Adds a stream, and returns its place.
    pub(super) fn join(&self, stream: &StreamInfo) -> u64 {
        stream.set_group(&self.0.name);
        let mut streams = lock(&self.0.streams);
        let place = streams.joined;
        streams.joined += 1;
        streams.open.insert(place, stream.clone());
        place
    }

    pub(super) fn leave(&self, place: u64) {
        let left = lock(&self.0.streams).open.remove(&place);
        self.verdicts().wake_all();
        drop(left);
    }

    pub(super) fn settle(&self, stream: &StreamInfo, revision: Revision) {
        stream.settle(revision);
        self.verdicts().wake_all();
    }
}

impl<S: Store> Store for Group<S> {
    type Source = S::Source;

    fn with<T>(&self, read: impl FnOnce(&S::Source) -> T) -> T {
        self.0.store.with(read)
    }

    fn wakers(&self) -> &Wakers {
        self.0.store.wakers()
    }
}

impl<S: Store> Clone for Group<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S: Store> fmt::Debug for Group<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("name", &self.name()).finish_non_exhaustive()
    }
}

//! The store of resources that the crate provides.

mod by_type;
mod store;

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use self::by_type::ByType;
use self::store::Store;
use super::page::Page;
use super::resource::Resource;
use super::source::{Entry, Source, default_dependent, default_dependent_type};
use super::variant::Variant;
use crate::error::Status;
use crate::model::{Label, Relabel};
use crate::name::{ResourceName, TypeUrl, Version};
use crate::revision::Revision;

/// A store of resources that tracks the revision of each change. The cost of writing and of reading a change grows
/// with the change, not with the number of resources.
///
/// Inserting a resource with its current content and version is no change.
///
/// ```
/// use xds_machine::server::{Cache, Resource, Source};
/// use xds_machine::{TypeUrl, type_url};
///
/// let clusters = TypeUrl::from(type_url::CLUSTER);
/// let mut cache = Cache::new(1);
/// assert!(cache.insert(&clusters, Resource::new("c1", &b"one"[..])));
/// let version = cache.version(&clusters);
/// assert!(!cache.insert(&clusters, Resource::new("c1", &b"one"[..])), "no change");
/// assert!(cache.insert(&clusters, Resource::new("c1", &b"two"[..])));
/// assert!(cache.insert(&clusters, Resource::new("c1", &b"one"[..])));
/// assert_eq!(cache.version(&clusters), version, "the same content has the same version");
/// ```
#[derive(Clone, Debug)]
pub struct Cache {
    epoch: u64,
    tombstones: usize,
    revision: Revision,
    /// Dependent types, where they differ from the default.
    dependents: ByType<Option<(TypeUrl, DependentName)>>,
    types: ByType<Store>,
    /// The store of a type that was never mentioned: empty, be it known or not.
    nothing: Store,
}

/// Returns the name of the resource that is resent with this one, if there is one. A function and not a closure: it
/// captures nothing, so that a [`Cache`] can be cloned, compared and sent to another thread. A rule that needs more
/// than the resource requires a custom [`Source`].
pub type DependentName = fn(&Resource) -> Option<ResourceName>;

impl Cache {
    /// Creates an empty cache: every name is known not to exist.
    ///
    /// `epoch` distinguishes the lives of the cache, and the caches of different groups of nodes: a number that a
    /// process never uses twice. Streams that were served from another epoch are closed. If clients can choose names of
    /// resources, set a [seed](Self::with_seed) too.
    pub fn new(epoch: u64) -> Self {
        Self {
            epoch,
            tombstones: 10_000,
            revision: Revision::default(),
            dependents: ByType::new(),
            types: ByType::new(),
            nothing: Store::new(true),
        }
    }

    /// Creates a cache of which nothing is known yet: a stream is sent nothing of a type, not even that it is empty,
    /// before the first change of that type or [`set_known`](Self::set_known). The first change says that every other
    /// name of the type is absent: for a cache that is loaded in several steps, see [`loading`](Self::loading).
    #[must_use]
    pub fn unknown(epoch: u64) -> Self {
        Self { nothing: Store::new(false), ..Self::new(epoch) }
    }

    /// Creates a cache that is loaded step by step: a type stays unknown, whatever is [inserted](Self::insert), until
    /// [`replace`](Self::replace) or [`set_known`](Self::set_known) says that there is nothing else of it. Until then a
    /// stream is sent nothing of the type: a client that reconnects keeps what it has, and a client that starts waits for
    /// a complete answer. From then on the type is as one of [`new`](Self::new).
    ///
    /// ```
    /// use xds_machine::server::{Cache, Resource, Source};
    /// use xds_machine::{TypeUrl, type_url};
    ///
    /// let clusters = TypeUrl::from(type_url::CLUSTER);
    /// let mut cache = Cache::loading(1);
    /// cache.insert(&clusters, Resource::new("c1", &b"one"[..]));
    /// assert!(!cache.is_known(&clusters), "there may be others");
    /// cache.set_known(&clusters);
    /// assert!(cache.is_known(&clusters));
    /// ```
    #[must_use]
    pub fn loading(epoch: u64) -> Self {
        Self { nothing: Store::loading(), ..Self::new(epoch) }
    }

    /// Sets the seed of the hash table of names. Names are hashed with xxh3, which an adversary who chooses many
    /// names can slow down if there is no seed.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { nothing: self.nothing.with_seed(seed), ..self }
    }

    /// Sets how many resources are encoded together, at least one. Default 128: few enough that a change re-encodes
    /// little, and enough that a stream that is sent everything references few pages. Fewer suit very large
    /// resources. Call it before the cache holds anything.
    #[must_use]
    pub fn with_page(self, resources: usize) -> Self {
        Self { nothing: self.nothing.with_page(resources.max(1)), ..self }
    }

    /// Sets how many removals of a type are remembered of names that also appeared since; those of names that were there
    /// before are remembered besides, so at most this many and as many as the type had names. A wildcard stream that
    /// falls behind the oldest one is closed; its client recovers the removals through `initial_resource_versions` when
    /// it reconnects. A batch of removals, however large, closes no stream that was served up to it: only more than this
    /// many names that come and go between two responses do. Once as many names came and went, the removals of
    /// an earlier batch are forgotten. Default 10,000.
    #[must_use]
    pub fn with_tombstones(self, tombstones: usize) -> Self {
        Self { tombstones, ..self }
    }

    /// Sets the resources that a client needs again once it has received one of another type, though they did not
    /// change ([`Source::dependent_type`]): with a `parent`, the `child` that `name` returns.
    ///
    /// ```
    /// use xds_machine::server::Cache;
    /// use xds_machine::type_url;
    ///
    /// // Besides the endpoints with their cluster, which is the default: the secret of a listener, named as that is.
    /// let cache = Cache::new(1).with_dependent(type_url::LISTENER, type_url::SECRET, |listener| {
    ///     Some(listener.name().clone())
    /// });
    /// ```
    #[must_use]
    pub fn with_dependent(
        mut self,
        parent: impl Into<TypeUrl>,
        child: impl Into<TypeUrl>,
        name: DependentName,
    ) -> Self {
        *self.dependents.get_or_insert_with(&parent.into(), || None) = Some((child.into(), name));
        self
    }

    /// Disables dependent resources of this type, for example of clusters if no client is an Envoy.
    #[must_use]
    pub fn without_dependent(mut self, parent: impl Into<TypeUrl>) -> Self {
        *self.dependents.get_or_insert_with(&parent.into(), || None) = None;
        self
    }

    /// Inserts a resource. Returns `false` if an equal resource was present.
    ///
    /// If nothing was known of the type ([`unknown`](Self::unknown)), it is known from now on, and every other name is
    /// absent; in a cache that is [`loading`](Self::loading) it stays unknown.
    pub fn insert(&mut self, type_url: &TypeUrl, resource: Resource) -> bool {
        let next = self.next();
        let changed = self.store(type_url).insert(resource, next);
        self.note(type_url, changed)
    }

    /// Removes a resource, which is then known not to exist. Returns `false` if it was already known not to exist.
    pub fn remove(&mut self, type_url: &TypeUrl, name: impl Into<ResourceName>) -> bool {
        let (next, tombstones) = (self.next(), self.tombstones);
        let changed = self.store(type_url).remove(name.into().as_str(), next, tombstones);
        self.note(type_url, changed)
    }

    /// Marks the existence of a resource as unknown until it is inserted or removed: its subscribers are sent nothing, but
    /// other SotW responses of a full-state type lack it. Returns `false` if it was already unknown.
    pub fn set_unknown(&mut self, type_url: &TypeUrl, name: impl Into<ResourceName>) -> bool {
        let next = self.next();
        let changed = self.store(type_url).set_unknown(name.into(), next);
        self.note(type_url, changed)
    }

    /// Sets the error of a resource that cannot be served, until it is inserted or removed: the error is sent to
    /// clients that subscribe to it, now or later (`resource_errors`; cncf/xds TP3). NOT_FOUND is equivalent to a
    /// removal; with any other code clients keep the resource that they have, though with PERMISSION_DENIED they may
    /// drop it. The error of [`WILDCARD`](crate::WILDCARD) is that of the collection.
    ///
    /// Returns `false` if the error was already set. A status with code 0 is no error and acts as
    /// [`set_unknown`](Self::set_unknown).
    ///
    /// ```
    /// use xds_machine::server::{Cache, Source};
    /// use xds_machine::{Code, Status, TypeUrl, type_url};
    ///
    /// let endpoints = TypeUrl::from(type_url::ENDPOINT);
    /// let mut cache = Cache::new(1);
    /// let status = Status::new(Code::Unavailable, "the registry does not answer");
    /// assert!(cache.set_error(&endpoints, "e1", status.clone()));
    /// assert_eq!(cache.error(&endpoints, &"e1".into()), Some(&status));
    /// ```
    pub fn set_error(&mut self, type_url: &TypeUrl, name: impl Into<ResourceName>, status: Status) -> bool {
        if status.code == 0 {
            return self.set_unknown(type_url, name);
        }
        let (next, tombstones) = (self.next(), self.tombstones);
        let changed = self.store(type_url).set_error(name.into(), status, next, tombstones);
        self.note(type_url, changed)
    }

    /// Replaces all resources of the type. The type is known afterwards, and every other name does not exist, whether
    /// it was present, unknown or had an error; an error of the collection is cleared. Costs the size of the type;
    /// streams are sent only the changes.
    pub fn replace(&mut self, type_url: &TypeUrl, resources: impl IntoIterator<Item = Resource>) {
        let mut gone: BTreeSet<ResourceName> = self.of(type_url).names().cloned().collect();
        for resource in resources {
            gone.remove(resource.name());
            self.insert(type_url, resource);
        }
        let (collections, others): (Vec<_>, Vec<_>) = gone.into_iter().partition(ResourceName::is_glob);
        for name in others.into_iter().chain(collections) {
            // A collection that has members only loses its error.
            if self.of(type_url).members(name.as_str()).next().is_some() {
                self.set_unknown(type_url, name);
            } else {
                self.remove(type_url, name);
            }
        }
        self.set_known(type_url);
    }

    /// Marks the type as known, for good: the resources of the cache are all that exist.
    pub fn set_known(&mut self, type_url: &TypeUrl) {
        let next = self.next();
        let changed = self.store(type_url).set_known(next);
        self.note(type_url, changed);
    }

    /// Encodes the changed pages for one variant, for responses that carry everything: the first answer to a
    /// wildcard, and SotW responses of a full-state type. Streams share the result; without it they encode for
    /// themselves, with equal results.
    ///
    /// Call it after changes and before many streams are polled. Costs the pages that changed, of 128 resources each by
    /// [default](Self::with_page).
    pub fn publish<V: Variant>(&mut self) {
        for (type_url, store) in self.types.iter_mut() {
            store.publish::<V>(type_url);
        }
    }

    /// Returns the resources of a type, in an order that does not depend on their names.
    pub fn resources<'a>(&'a self, type_url: &TypeUrl) -> impl Iterator<Item = &'a Resource> + use<'a> {
        self.of(type_url).resources()
    }

    /// Returns the types that were mentioned.
    pub fn types(&self) -> impl Iterator<Item = &TypeUrl> {
        self.types.urls()
    }

    /// Returns the bytes of the encodings that [`publish`](Self::publish) made, at most twice the size of the
    /// resources on the wire.
    pub fn published_bytes(&self) -> usize {
        self.types.values().map(Store::published_bytes).sum()
    }

    fn next(&self) -> Revision {
        Revision(self.revision.0 + 1)
    }

    fn note(&mut self, type_url: &TypeUrl, changed: bool) -> bool {
        if changed {
            self.revision = self.of(type_url).revision();
        }
        changed
    }

    fn store(&mut self, type_url: &TypeUrl) -> &mut Store {
        self.types.get_or_insert_with(type_url, || self.nothing.clone())
    }

    #[inline]
    fn of(&self, type_url: &TypeUrl) -> &Store {
        self.types.get(type_url).unwrap_or(&self.nothing)
    }
}

impl Source for Cache {
    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn revision(&self) -> Revision {
        self.revision
    }

    fn type_revision(&self, type_url: &TypeUrl) -> Revision {
        self.of(type_url).revision()
    }

    fn version(&self, type_url: &TypeUrl) -> Version {
        self.of(type_url).version()
    }

    fn get(&self, type_url: &TypeUrl, name: &ResourceName) -> Entry<'_> {
        self.of(type_url).get(name.as_str())
    }

    fn get_str(&self, type_url: &TypeUrl, name: &str) -> Entry<'_> {
        self.of(type_url).get(name)
    }

    fn get_block<const N: usize>(&self, type_url: &TypeUrl, names: [&str; N]) -> [Entry<'_>; N] {
        self.of(type_url).get_block(names)
    }

    fn changes(&self, type_url: &TypeUrl, since: Revision) -> impl Iterator<Item = Entry<'_>> {
        self.of(type_url).changes(since)
    }

    fn removals(
        &self,
        type_url: &TypeUrl,
        since: Revision,
    ) -> Option<impl Iterator<Item = (&ResourceName, Entry<'_>)>> {
        let store = self.of(type_url);
        (store.horizon() <= since).then(|| store.removals(since))
    }

    fn pages(&self, type_url: &TypeUrl) -> impl Iterator<Item = Page> {
        self.of(type_url).pages()
    }

    fn expiring(&self, type_url: &TypeUrl) -> impl Iterator<Item = Entry<'_>> {
        self.of(type_url).expiring()
    }

    fn error(&self, type_url: &TypeUrl, name: &ResourceName) -> Option<&Status> {
        self.of(type_url).error(name.as_str())
    }

    fn errors(&self, type_url: &TypeUrl, since: Revision) -> impl Iterator<Item = (&ResourceName, Entry<'_>)> {
        self.of(type_url).errors(since)
    }

    fn present_since(&self, type_url: &TypeUrl, name: &ResourceName) -> Option<Revision> {
        self.of(type_url).present_since(name.as_str())
    }

    fn previous(&self, type_url: &TypeUrl, name: &ResourceName, at: Revision) -> Option<&Resource> {
        self.of(type_url).previous(name.as_str(), at)
    }

    fn dependent_type(&self, type_url: &TypeUrl) -> Option<&str> {
        match self.dependents.get(type_url) {
            Some(own) => own.as_ref().map(|(child, _)| child.as_str()),
            None => default_dependent_type(type_url),
        }
    }

    fn dependent(&self, type_url: &TypeUrl, resource: &Resource) -> Option<ResourceName> {
        match self.dependents.get(type_url) {
            Some(own) => own.as_ref().and_then(|(_, name)| name(resource)),
            None => default_dependent(resource),
        }
    }

    fn former_targets(&self, type_url: &TypeUrl, alias: &ResourceName) -> Option<(Revision, &[ResourceName])> {
        self.of(type_url).former_targets(alias.as_str())
    }

    fn members(&self, type_url: &TypeUrl, glob: &ResourceName) -> impl Iterator<Item = Entry<'_>> {
        self.of(type_url).members(glob.as_str())
    }

    fn is_known(&self, type_url: &TypeUrl) -> bool {
        self.of(type_url).is_known()
    }
}

impl PartialEq for Cache {
    fn eq(&self, other: &Self) -> bool {
        self.epoch == other.epoch && self.revision == other.revision && self.types == other.types
    }
}

impl Eq for Cache {}

impl Hash for Cache {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.epoch.hash(state);
        self.revision.hash(state);
        self.types.hash(state);
    }
}

impl Relabel for Cache {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.revision.relabel(by);
        self.types.values_mut().for_each(|store| store.relabel(by));
    }
}

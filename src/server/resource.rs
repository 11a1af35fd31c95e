//! A resource as a store keeps it: a name, a version, and the encoded content, shared by all streams.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use super::hash;
use crate::name::{ResourceName, TypeUrl, Version};
use crate::wire::Element;

/// A resource that a server serves. Cheap to clone: all streams share it.
///
/// ```
/// use core::time::Duration;
/// use xds_machine::server::Resource;
///
/// let one = Resource::new("c1", &b"\x0a\x02c1"[..]);
/// let other = Resource::new("c2", &b"\x0a\x02c1"[..]);
/// assert_eq!(one.version(), other.version(), "versions are hashes of the content");
/// assert_ne!(one.version(), one.clone().with_ttl(Duration::from_secs(60)).version());
/// ```
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Resource(Arc<Stored>);

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Stored {
    name: ResourceName,
    version: Version,
    body: Bytes,
    extra: Option<Box<Extra>>,
}

/// Properties that few resources have.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
struct Extra {
    ttl: Option<Duration>,
    aliases: Vec<ResourceName>,
    /// Whether the caller set the version.
    versioned: bool,
}

impl Resource {
    /// Creates a resource of this name and encoded content (`Any.value`). The version is a hash of the content, so
    /// that every replica of a control plane gives the same content the same version, and a client can reconnect to
    /// any replica.
    pub fn new(name: impl Into<ResourceName>, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        Self(Arc::new(Stored { name: name.into(), version: hash::content(&body, None, &[]), body, extra: None }))
    }

    /// Sets the version. The version must change whenever the content does, and must never recur with another
    /// content, not even after a restart. The empty string means "no version".
    #[must_use]
    pub fn with_version(self, version: impl Into<Version>) -> Self {
        self.changed(|stored| {
            stored.version = version.into();
            stored.extra.get_or_insert_default().versioned = true;
        })
    }

    /// Sets the time to live: a client that supports TTLs drops the resource unless it or a heartbeat arrives in this
    /// time (xds_protocol.rst, "TTL"). The TTL is sent only to clients that declare support. Zero means no TTL.
    #[must_use]
    pub fn with_ttl(self, ttl: Duration) -> Self {
        self.changed(|stored| stored.extra.get_or_insert_default().ttl = Some(ttl).filter(|ttl| !ttl.is_zero()))
    }

    /// Sets the aliases (delta; xds_protocol.rst, "Resource names"): clients that subscribe to one of them receive the
    /// resource. An alias of several resources stands for the last one that got it, and a [`Cache`](super::Cache) serves
    /// the others without it: to a client, an alias stands for the last resource that it received with it. A resource
    /// that was [unknown](super::Cache::set_unknown) gets its aliases anew when it is put. While a resource has this very
    /// name, the name is no alias; it becomes one again when a resource with the alias is next put.
    #[must_use]
    pub fn with_aliases(self, aliases: impl IntoIterator<Item = impl Into<ResourceName>>) -> Self {
        self.changed(|stored| {
            stored.extra.get_or_insert_default().aliases = aliases.into_iter().map(Into::into).collect()
        })
    }

    /// Returns the stub that announces a name as not existing: an alias without content.
    pub(super) fn not_found(name: ResourceName) -> Self {
        Self::new(name.clone(), Bytes::new()).with_version(Self::not_found_version()).with_aliases([name])
    }

    /// Returns the version of that stub, which no content has.
    pub(super) fn not_found_version() -> Version {
        hash::version(0)
    }

    fn changed(mut self, change: impl FnOnce(&mut Stored)) -> Self {
        let stored = Arc::make_mut(&mut self.0);
        change(stored);
        let extra = stored.extra.get_or_insert_default();
        if !extra.versioned {
            stored.version = hash::content(&stored.body, extra.ttl, &extra.aliases);
        }
        self
    }

    /// Returns the name of the resource.
    pub fn name(&self) -> &ResourceName {
        &self.0.name
    }

    /// Returns the version: a hash of the content, unless [`with_version`](Self::with_version) set it.
    pub fn version(&self) -> &Version {
        &self.0.version
    }

    /// Returns the encoded content (`Any.value`).
    pub fn body(&self) -> &Bytes {
        &self.0.body
    }

    /// Returns the time to live, if the resource has one.
    pub fn ttl(&self) -> Option<Duration> {
        self.0.extra.as_ref()?.ttl
    }

    /// Returns the aliases: the other names under which clients may subscribe to the resource.
    pub fn aliases(&self) -> &[ResourceName] {
        self.0.extra.as_ref().map_or(&[], |extra| &extra.aliases)
    }

    #[inline]
    pub(super) fn element<'a>(&'a self, type_url: &'a TypeUrl) -> Element<'a> {
        Element {
            name: self.name(),
            version: self.version(),
            aliases: self.aliases(),
            body: Some((type_url, &self.0.body)),
            ttl: self.ttl(),
        }
    }
}

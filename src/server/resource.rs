//! A resource as a store keeps it: a name, a version, and the encoded content, shared by all streams.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use super::hash;
use crate::name::{ResourceName, TypeUrl, Version};
use crate::wire::Element;

/// A resource that a server has to give. Cheap to clone: all streams share it.
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

/// What few resources have.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
struct Extra {
    ttl: Option<Duration>,
    aliases: Vec<ResourceName>,
    /// The version is the caller's own.
    versioned: bool,
}

impl Resource {
    /// A resource of this name and encoded content (`Any.value`). Its version is a hash of the content, so that
    /// every replica of a control plane gives the same content the same version, and a client can reconnect to any
    /// of them.
    pub fn new(name: impl Into<ResourceName>, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        Self(Arc::new(Stored { name: name.into(), version: hash::content(&body, None, &[]), body, extra: None }))
    }

    /// The same with a version of the caller's. It must change whenever the content does, and must never come back
    /// with another content, not even after a restart. The empty string means "no version".
    #[must_use]
    pub fn with_version(self, version: impl Into<Version>) -> Self {
        self.changed(|stored| {
            stored.version = version.into();
            stored.extra.get_or_insert_default().versioned = true;
        })
    }

    /// The same with a time to live: a client that supports it drops the resource unless it comes again, or a
    /// heartbeat does, in this time (xds_protocol.rst, "TTL"). Sent only to clients that say that they support it.
    /// Zero: for as long as it is there, as without a TTL.
    #[must_use]
    pub fn with_ttl(self, ttl: Duration) -> Self {
        self.changed(|stored| stored.extra.get_or_insert_default().ttl = Some(ttl).filter(|ttl| !ttl.is_zero()))
    }

    /// The same with other names besides (delta; xds_protocol.rst, "Resource names"): it is given to who asks for one of
    /// them. Of more resources with one alias that is the last to get it. While there is a resource of this very name,
    /// that is no alias, nor afterwards until one that has it is put again.
    #[must_use]
    pub fn with_aliases(self, aliases: impl IntoIterator<Item = impl Into<ResourceName>>) -> Self {
        self.changed(|stored| {
            stored.extra.get_or_insert_default().aliases = aliases.into_iter().map(Into::into).collect()
        })
    }

    /// What says of a name that it does not exist, as an alias that has no content.
    pub(super) fn not_found(name: ResourceName) -> Self {
        Self::new(name.clone(), Bytes::new()).with_version(Self::nowhere_version()).with_aliases([name])
    }

    /// The version of that: one that no content has.
    pub(super) fn nowhere_version() -> Version {
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

    /// Returns the aliases: the other names that the resource is given under.
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

//! The four strings of the protocol, each with a type of its own so that none is taken for another.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::borrow::Borrow;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};

use crate::text::Text;
use crate::url::Url;
use crate::xdstp::{self, Parts, Uri};

/// The name that subscribes to everything the server has for this client
/// (xds_protocol.rst, "How the client specifies what resources to return").
pub const WILDCARD: &str = "*";

macro_rules! string_type {
    ($(#[$doc:meta])* $name:ident($inner:ty) $new:expr) => {
        $(#[$doc])*
        #[derive(Clone, Eq)]
        pub struct $name($inner);

        impl $name {
            /// Returns the string.
            pub fn as_str(&self) -> &str {
                self.as_ref()
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self($new(text))
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self($new(text.as_str()))
            }
        }

        impl From<&String> for $name {
            fn from(text: &String) -> Self {
                text.as_str().into()
            }
        }

        impl From<Cow<'_, str>> for $name {
            fn from(text: Cow<'_, str>) -> Self {
                text.as_ref().into()
            }
        }

        impl From<&$name> for $name {
            fn from(shared: &$name) -> Self {
                shared.clone()
            }
        }

        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.as_str().hash(state);
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                self.as_str()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self.as_str(), f)
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.as_str() == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.as_str() == *other
            }
        }

        impl PartialEq<$name> for str {
            fn eq(&self, other: &$name) -> bool {
                self == other.as_str()
            }
        }

        impl PartialEq<$name> for &str {
            fn eq(&self, other: &$name) -> bool {
                *self == other.as_str()
            }
        }
    };
}

string_type! {
    /// The type URL of a resource type, such as `type.googleapis.com/envoy.config.cluster.v3.Cluster`.
    ///
    /// Cheap to clone: the string is shared. The URLs that the xDS API defines are in [`type_url`](crate::type_url); of
    /// these there is nothing to share.
    #[derive(Ord, PartialEq, PartialOrd)]
    TypeUrl(Url) Url::new
}

string_type! {
    /// The name of a resource, unique within its type. Opaque, and compared byte for byte; a structured name
    /// (`xdstp://..`) is put in its [normal form](crate::xdstp), so that equal names are equal bytes.
    ///
    /// Cheap to clone: the string is shared. [`WILDCARD`] and the names of collections (`xdstp://../*`) stand for more
    /// than one resource.
    ///
    /// A name is parsed once, where it comes in: whatever takes a name takes `impl Into<ResourceName>`, which is a string in
    /// any spelling or a `ResourceName`, or takes a `&ResourceName`. So every look-up finds what another finds. From a
    /// `&ResourceName` nothing is parsed or copied again.
    ///
    /// ```
    /// use xds_machine::ResourceName;
    ///
    /// let name = ResourceName::from("xdstp://a/T/x?b=2&a=1");
    /// assert_eq!(name, "xdstp://a/T/x?a=1&b=2");
    /// assert_eq!(name, ResourceName::from(String::from("xdstp://a/T/x?a=%31&b=2")));
    /// ```
    ResourceName(Arc<str>) normal_name
}

string_type! {
    /// A version: of one resource, or in SotW of all resources of a type (`version_info`).
    ///
    /// Opaque: versions are compared for equality and never for order. Empty means "no version".
    #[derive(Default, Ord, PartialEq, PartialOrd)]
    Version(Text) Text::new
}

string_type! {
    /// A nonce: names one response on one stream, so that an answer can say which response it answers.
    ///
    /// It means nothing on another stream or for another type (xds_protocol.rst, "Basic Protocol Overview").
    #[derive(Default, Ord, PartialEq, PartialOrd)]
    Nonce(Text) Text::new
}

impl From<Arc<str>> for TypeUrl {
    fn from(text: Arc<str>) -> Self {
        Self(Url::shared(text))
    }
}

impl From<Arc<str>> for ResourceName {
    /// Shares the string, unless it is a structured name that is not in its normal form.
    fn from(text: Arc<str>) -> Self {
        match xdstp::normal(&text) {
            Cow::Owned(normal) => Self(normal.into()),
            Cow::Borrowed(_) => Self(text),
        }
    }
}

impl From<Uri<'_>> for ResourceName {
    /// The normal form.
    fn from(uri: Uri<'_>) -> Self {
        uri.to_string().into()
    }
}

impl From<Arc<str>> for Version {
    fn from(text: Arc<str>) -> Self {
        Self(Text::shared(text))
    }
}

impl From<Arc<str>> for Nonce {
    fn from(text: Arc<str>) -> Self {
        Self(Text::shared(text))
    }
}

fn normal_name(text: &str) -> Arc<str> {
    match xdstp::normal(text) {
        Cow::Borrowed(text) => text.into(),
        Cow::Owned(text) => text.into(),
    }
}

// Equality and order of shared strings: most often they are one string in memory, and nobody need look at it.

impl PartialEq for ResourceName {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl PartialOrd for ResourceName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ResourceName {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        if Arc::ptr_eq(&self.0, &other.0) { Ordering::Equal } else { self.0.cmp(&other.0) }
    }
}

impl TypeUrl {
    /// What a URL that the xDS API defines is kept as.
    #[inline]
    pub(crate) fn number(&self) -> Option<u8> {
        self.0.number()
    }
}

impl AsRef<str> for TypeUrl {
    #[inline]
    fn as_ref(&self) -> &str {
        self.0.as_str()
    }
}

impl AsRef<str> for ResourceName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Version {
    fn as_ref(&self) -> &str {
        self.0.as_str()
    }
}

impl AsRef<str> for Nonce {
    fn as_ref(&self) -> &str {
        self.0.as_str()
    }
}

impl ResourceName {
    /// Whether this is [`WILDCARD`].
    pub fn is_wildcard(&self) -> bool {
        self == WILDCARD
    }

    /// Whether this is the name of a collection, `xdstp://../*`: all resources of one directory.
    pub fn is_glob(&self) -> bool {
        xdstp::is_glob(self.as_str())
    }

    /// The name of the collection that a resource of this name belongs to, if it has a structured name.
    pub fn glob(&self) -> Option<Self> {
        let parts = Parts::of(self.as_str()).filter(|parts| parts.leaf != WILDCARD)?;
        Some(Self(parts.glob().into()))
    }

    /// Whether both share one string in memory, so that holding both costs no more than holding one.
    pub fn shares_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Version {
    /// Of ASCII characters, not looked at again.
    #[inline]
    pub(crate) fn ascii(text: &[u8]) -> Self {
        Self(Text::ascii(text))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Whether this is the empty string, "no version".
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Nonce {
    /// Of ASCII characters, not looked at again.
    #[inline]
    pub(crate) fn ascii(text: &[u8]) -> Self {
        Self(Text::ascii(text))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Whether this is the empty string, "no nonce".
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

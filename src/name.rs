//! The four strings of the protocol. Each has its own type, so that none is mistaken for another.

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

/// The name that subscribes to every resource that the server has for this client (xds_protocol.rst, "How the client
/// specifies what resources to return").
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
    /// Cheap to clone: the string is shared, and the URLs that the xDS API defines ([`type_url`](crate::type_url)) are
    /// stored as a number.
    #[derive(Ord, PartialEq, PartialOrd)]
    TypeUrl(Url) Url::new
}

string_type! {
    /// The name of a resource, unique within its type. Opaque, and compared byte for byte; a structured name
    /// (`xdstp://..`) is converted to its [normal form](crate::xdstp), so that equal names are equal bytes.
    ///
    /// Cheap to clone: the string is shared. [`WILDCARD`] and the names of collections (`xdstp://../*`) select more
    /// than one resource.
    ///
    /// A name is parsed once, at the API boundary: every function that accepts a name accepts `impl Into<ResourceName>`
    /// (a string in any spelling, or a `ResourceName`) or a `&ResourceName`. Every look-up therefore uses the same
    /// form. A `&ResourceName` is neither parsed nor copied again.
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
    /// A version of one resource, or in SotW of all resources of a type (`version_info`).
    ///
    /// Opaque: versions are compared for equality and never for order. An empty version means "no version".
    #[derive(Default, Ord, PartialEq, PartialOrd)]
    Version(Text) Text::new
}

string_type! {
    /// A nonce: identifies one response on one stream, so that an ACK or NACK can refer to that response.
    ///
    /// A nonce has no meaning on another stream or for another type (xds_protocol.rst, "Basic Protocol Overview").
    #[derive(Default, Ord, PartialEq, PartialOrd)]
    Nonce(Text) Text::new
}

impl From<Arc<str>> for TypeUrl {
    fn from(text: Arc<str>) -> Self {
        Self(Url::shared(text))
    }
}

impl From<Arc<str>> for ResourceName {
    /// Shares the string, unless the string is a structured name that is not in its normal form.
    fn from(text: Arc<str>) -> Self {
        match xdstp::normal(&text) {
            Cow::Owned(normal) => Self(normal.into()),
            Cow::Borrowed(_) => Self(text),
        }
    }
}

impl From<Uri<'_>> for ResourceName {
    /// Makes the name in its normal form.
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

// Equality and order of shared strings compare pointers first: equal strings are most often one string in memory.

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
    /// Returns the number of a URL that the xDS API defines.
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
    /// Returns whether this name is [`WILDCARD`].
    pub fn is_wildcard(&self) -> bool {
        self == WILDCARD
    }

    /// Returns whether this is the name of a collection, `xdstp://../*`: all resources of one directory.
    pub fn is_glob(&self) -> bool {
        xdstp::is_glob(self.as_str())
    }

    /// Returns the name of the collection that a resource of this name belongs to, if the name is structured.
    pub fn glob(&self) -> Option<Self> {
        let parts = Parts::of(self.as_str()).filter(|parts| parts.leaf != WILDCARD)?;
        Some(Self(parts.glob().into()))
    }

    /// Returns whether both names share one string in memory, so that holding both costs no more than holding one.
    pub fn shares_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Version {
    /// Makes a version from ASCII characters, which are not checked again.
    #[inline]
    pub(crate) fn ascii(text: &[u8]) -> Self {
        Self(Text::ascii(text))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Returns whether this is the empty string, "no version".
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Nonce {
    /// Makes a nonce from ASCII characters, which are not checked again.
    #[inline]
    pub(crate) fn ascii(text: &[u8]) -> Self {
        Self(Text::ascii(text))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Returns whether this is the empty string, "no nonce".
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

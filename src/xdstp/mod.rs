//! Structured names: `xdstp://authority/type/id?parameters` (cncf/xds TP1).
//!
//! A structured [`ResourceName`](crate::ResourceName) is kept in its normal form, so that equal names are equal
//! strings. This module is for code that inspects or makes structured names.
//!
//! ```
//! use xds_machine::xdstp::Uri;
//! use xds_machine::{ResourceName, TypeUrl, type_url};
//!
//! let uri = Uri::parse("xdstp://cp.example/envoy.config.listener.v3.Listener/a%2Fb?y=2&x=1")?;
//! assert_eq!((uri.authority(), uri.id()), ("cp.example", "a/b"));
//! assert!(uri.is_of(&TypeUrl::from(type_url::LISTENER)));
//! assert_eq!(uri.to_string(), "xdstp://cp.example/envoy.config.listener.v3.Listener/a/b?x=1&y=2");
//!
//! let name = ResourceName::from(uri.with_param("xds.node.id", "n 1"));
//! assert_eq!(name, "xdstp://cp.example/envoy.config.listener.v3.Listener/a/b?x=1&xds.node.id=n%201&y=2");
//! # Ok::<(), xds_machine::xdstp::Error>(())
//! ```

mod error;
mod escape;
mod glob;

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::str::FromStr;

pub use self::error::Error;
use self::escape::{Part, decode, encode};
pub(crate) use self::glob::{Parts, is_glob};

/// The prefix of structured names. A text with this prefix that can't be parsed is not a resource name.
const SCHEME: &str = "xdstp:";

/// A structured name, split into decoded parts. Two names are equal if their parts are equal, whatever the order and
/// the spelling of the parameters.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Uri<'a> {
    authority: Cow<'a, str>,
    resource_type: Cow<'a, str>,
    id: Cow<'a, str>,
    /// Ordered by key; each key occurs once.
    params: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    alternative: Option<Cow<'a, str>>,
    entry: Option<Cow<'a, str>>,
}

/// Returns whether a name is meant to be structured.
pub(crate) fn is_structured(name: impl AsRef<[u8]>) -> bool {
    name.as_ref().starts_with(SCHEME.as_bytes())
}

/// Returns the normal form of a structured name. Any other text stays as it is, and so does a name with directives,
/// which can't name a resource (TP1).
pub(crate) fn normal(name: &str) -> Cow<'_, str> {
    match is_structured(name).then(|| Uri::parse(name)) {
        Some(Ok(uri)) if !uri.has_directives() && !uri.is_written(name) => {
            let mut text = String::with_capacity(name.len());
            let written = write!(text, "{uri}");
            debug_assert!(written.is_ok(), "a string takes all there is");
            text.into()
        }
        _ => name.into(),
    }
}

impl<'a> Uri<'a> {
    /// Makes a name without parameters and directives.
    ///
    /// # Errors
    ///
    /// [`Error::NoResourceType`], [`Error::BadResourceType`], [`Error::NoId`].
    pub fn new(
        authority: impl Into<Cow<'a, str>>,
        resource_type: impl Into<Cow<'a, str>>,
        id: impl Into<Cow<'a, str>>,
    ) -> Result<Self, Error> {
        let (resource_type, id) = (resource_type.into(), id.into());
        if resource_type.is_empty() {
            return Err(Error::NoResourceType);
        }
        if !resource_type.bytes().all(escape::is_unreserved) {
            return Err(Error::BadResourceType { resource_type: resource_type.into() });
        }
        if id.is_empty() {
            return Err(Error::NoId);
        }
        let authority = authority.into();
        Ok(Self { authority, resource_type, id, params: Vec::new(), alternative: None, entry: None })
    }

    /// Parses a name. Characters that a URI must escape (a space, for example) are accepted unescaped.
    ///
    /// # Errors
    ///
    /// The fault of the text.
    pub fn parse(text: &'a str) -> Result<Self, Error> {
        let rest = text.strip_prefix(SCHEME).and_then(|rest| rest.strip_prefix("//")).ok_or(Error::Scheme)?;
        let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = path.split_once('/').ok_or(Error::NoResourceType)?;
        let (resource_type, id) = path.split_once('/').unwrap_or((path, ""));
        let mut uri = Self::new(decode(authority)?, resource_type, decode(id)?)?;
        for param in query.split('&').filter(|param| !param.is_empty()) {
            let (key, value) = param.split_once('=').unwrap_or((param, ""));
            if key.is_empty() {
                return Err(Error::EmptyKey);
            }
            uri.params.push((decode(key)?, decode(value)?));
        }
        if !uri.params.is_sorted_by(|a, b| a.0 < b.0) {
            uri.params.sort();
            if let Some(twice) = uri.params.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                return Err(Error::DuplicateParam { key: twice[0].0.clone().into() });
            }
        }
        for directive in fragment.split(',').filter(|directive| !directive.is_empty()) {
            uri.read_directive(directive)?;
        }
        Ok(uri)
    }

    fn read_directive(&mut self, directive: &'a str) -> Result<(), Error> {
        let (name, place, value) = match directive.split_once('=') {
            Some(("alt", value)) => ("alt", &mut self.alternative, decode(value)?),
            Some(("entry", value)) => ("entry", &mut self.entry, decode(value)?),
            _ => return Err(Error::BadDirective { directive: directive.into() }),
        };
        let is_right = match name {
            "alt" => value.starts_with("xdstp://"),
            _ => !value.is_empty() && value.bytes().all(|byte| byte == b'/' || escape::is_unreserved(byte)),
        };
        if !is_right {
            return Err(Error::BadDirective { directive: directive.into() });
        }
        if place.replace(value).is_some() {
            return Err(Error::DuplicateDirective { directive: name });
        }
        Ok(())
    }

    /// Sets a context parameter, replacing any previous value (TP1, "Context parameters").
    #[must_use]
    pub fn with_param(mut self, key: impl Into<Cow<'a, str>>, value: impl Into<Cow<'a, str>>) -> Self {
        let (key, value) = (key.into(), value.into());
        match self.params.binary_search_by(|(known, _)| known.cmp(&key)) {
            Ok(at) => self.params[at].1 = value,
            Err(at) => self.params.insert(at, (key, value)),
        }
        self
    }

    /// Removes the directives: a name without directives can be subscribed to.
    #[must_use]
    pub fn without_directives(self) -> Self {
        Self { alternative: None, entry: None, ..self }
    }

    /// Converts all strings to owned ones.
    pub fn into_owned(self) -> Uri<'static> {
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        Uri {
            authority: own(self.authority),
            resource_type: own(self.resource_type),
            id: own(self.id),
            params: self.params.into_iter().map(|(key, value)| (own(key), own(value))).collect(),
            alternative: self.alternative.map(own),
            entry: self.entry.map(own),
        }
    }

    /// Returns the authority, which may be empty. The client's configuration maps authorities to servers (gRFC A47).
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Returns the message type of the resource, such as `envoy.config.listener.v3.Listener`.
    pub fn resource_type(&self) -> &str {
        &self.resource_type
    }

    /// Returns the id of the resource, which only the control plane interprets; never empty.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the context parameters, in the order of their keys.
    pub fn params(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.params.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Returns the directive `alt`: the resource to use if this one is unavailable.
    pub fn alternative(&self) -> Option<&str> {
        self.alternative.as_deref()
    }

    /// Returns the directive `entry`: the part of a list collection.
    pub fn entry(&self) -> Option<&str> {
        self.entry.as_deref()
    }

    /// Returns whether the name has directives: they tell the client how to find a resource, and are never sent to a
    /// server.
    pub fn has_directives(&self) -> bool {
        self.alternative.is_some() || self.entry.is_some()
    }

    /// Returns whether this is the name of a collection: all resources of one directory (TP1, "Glob").
    pub fn is_glob(&self) -> bool {
        self.id == "*" || self.id.ends_with("/*")
    }

    /// Returns whether the name belongs to resources of this type.
    pub fn is_of(&self, type_url: &(impl AsRef<str> + ?Sized)) -> bool {
        let url = type_url.as_ref();
        url.rsplit_once('/').map_or(url, |(_, resource_type)| resource_type) == self.resource_type
    }

    /// Returns whether this text is the normal form.
    fn is_written(&self, text: &str) -> bool {
        let mut rest = Rest(text);
        write!(rest, "{self}").is_ok() && rest.0.is_empty()
    }
}

impl FromStr for Uri<'static> {
    type Err = Error;

    /// Parses a name into owned strings: see [`Uri::parse`].
    fn from_str(text: &str) -> Result<Self, Error> {
        Uri::parse(text).map(Uri::into_owned)
    }
}

/// The rest of a text after its written prefix.
struct Rest<'a>(&'a str);

impl Write for Rest<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.strip_prefix(text).ok_or(fmt::Error)?;
        Ok(())
    }
}

/// Writes the normal form: parameters in the order of their keys, with only the necessary escapes.
impl fmt::Display for Uri<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("xdstp://")?;
        encode(f, Part::Authority, &self.authority)?;
        write!(f, "/{}/", self.resource_type)?;
        encode(f, Part::Id, &self.id)?;
        for (at, (key, value)) in self.params.iter().enumerate() {
            f.write_char(if at == 0 { '?' } else { '&' })?;
            encode(f, Part::Param, key)?;
            f.write_char('=')?;
            encode(f, Part::Param, value)?;
        }
        let directives = [("alt=", &self.alternative), ("entry=", &self.entry)];
        let given = directives.iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
        for (at, (name, value)) in given.enumerate() {
            f.write_char(if at == 0 { '#' } else { ',' })?;
            f.write_str(name)?;
            encode(f, Part::Directive, value)?;
        }
        Ok(())
    }
}

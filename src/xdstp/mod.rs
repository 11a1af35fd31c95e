//! Structured names: `xdstp://authority/type/id?parameters` (cncf/xds TP1).
//!
//! A [`ResourceName`](crate::ResourceName) that is one is kept in its normal form, so that equal names are equal
//! strings; this module is for who wants to look inside, or to make one.
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

/// How a structured name begins. What begins so and can't be parsed is no name of a resource.
const SCHEME: &str = "xdstp:";

/// A structured name, in its parts, which are decoded. Equal if the parts are, whatever the order of the parameters
/// and the way in which they were written.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Uri<'a> {
    authority: Cow<'a, str>,
    resource_type: Cow<'a, str>,
    id: Cow<'a, str>,
    /// In the order of the keys, each once.
    params: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    alternative: Option<Cow<'a, str>>,
    entry: Option<Cow<'a, str>>,
}

/// Whether a name is meant to be a structured one.
pub(crate) fn is_structured(name: &str) -> bool {
    name.starts_with(SCHEME)
}

/// The normal form of a structured name; of anything else, and of what is no name (TP1: a name has no directives), the
/// text itself.
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
    /// One with no parameters and no directives.
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

    /// Reads one. Characters that a URI may not have as they are (a space, say) stand for themselves.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
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

    /// The same with a context parameter, in the place of one that it may have had (TP1, "Context parameters").
    #[must_use]
    pub fn with_param(mut self, key: impl Into<Cow<'a, str>>, value: impl Into<Cow<'a, str>>) -> Self {
        let (key, value) = (key.into(), value.into());
        match self.params.binary_search_by(|(known, _)| known.cmp(&key)) {
            Ok(at) => self.params[at].1 = value,
            Err(at) => self.params.insert(at, (key, value)),
        }
        self
    }

    /// The same with no directives: what may be asked for.
    #[must_use]
    pub fn without_directives(self) -> Self {
        Self { alternative: None, entry: None, ..self }
    }

    /// The same, with all strings its own.
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

    /// Who is asked for it; may be empty. What servers that stands for, the client's configuration says (gRFC A47).
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The message type of the resource, such as `envoy.config.listener.v3.Listener`.
    pub fn resource_type(&self) -> &str {
        &self.resource_type
    }

    /// Which resource, for the control plane to understand; never empty.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The context parameters, in the order of their keys.
    pub fn params(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.params.iter().map(|(key, value)| (&**key, &**value))
    }

    /// The directive `alt`: what to ask for if this can't be had.
    pub fn alternative(&self) -> Option<&str> {
        self.alternative.as_deref()
    }

    /// The directive `entry`: which part of a list collection is meant.
    pub fn entry(&self) -> Option<&str> {
        self.entry.as_deref()
    }

    /// Whether it says how to find a resource, besides which: that is never sent to a server.
    pub fn has_directives(&self) -> bool {
        self.alternative.is_some() || self.entry.is_some()
    }

    /// Whether it names a collection: all resources of one directory (TP1, "Glob").
    pub fn is_glob(&self) -> bool {
        self.id == "*" || self.id.ends_with("/*")
    }

    /// Whether it names resources of this type.
    pub fn is_of(&self, type_url: &(impl AsRef<str> + ?Sized)) -> bool {
        let url = type_url.as_ref();
        url.rsplit_once('/').map_or(url, |(_, resource_type)| resource_type) == self.resource_type
    }

    /// Whether the normal form is this text.
    fn is_written(&self, text: &str) -> bool {
        let mut rest = Rest(text);
        write!(rest, "{self}").is_ok() && rest.0.is_empty()
    }
}

impl FromStr for Uri<'static> {
    type Err = Error;

    /// Reads one that borrows nothing: see [`Uri::parse`].
    fn from_str(text: &str) -> Result<Self, Error> {
        Uri::parse(text).map(Uri::into_owned)
    }
}

/// What is left of a text once what is written was taken from it.
struct Rest<'a>(&'a str);

impl Write for Rest<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.strip_prefix(text).ok_or(fmt::Error)?;
        Ok(())
    }
}

/// The normal form: parameters in the order of their keys, escaped what has to be and nothing else.
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

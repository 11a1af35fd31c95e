//! A type URL. Every resource has one, and nearly all have one of a dozen: these are stored as numbers, which cost
//! nothing to clone and drop, whereas a shared string would update its count for every resource.

use alloc::sync::Arc;
use core::cmp::Ordering;

use crate::type_url;

/// The type URLs of the xDS API.
const KNOWN: [&str; 11] = [
    type_url::CLUSTER,
    type_url::ENDPOINT,
    type_url::LISTENER,
    type_url::ROUTE,
    type_url::SECRET,
    type_url::RESOURCE,
    type_url::SCOPED_ROUTE,
    type_url::VIRTUAL_HOST,
    type_url::LB_ENDPOINT,
    type_url::RUNTIME,
    type_url::EXTENSION_CONFIG,
];

#[derive(Clone, Eq)]
pub(crate) enum Url {
    /// The number of a known URL.
    Known(u8),
    /// An unknown URL.
    Shared(Arc<str>),
}

impl Url {
    pub(crate) fn new(text: &str) -> Self {
        match KNOWN.iter().position(|&known| known == text) {
            Some(number) => Self::Known(number as u8),
            None => Self::Shared(text.into()),
        }
    }

    /// Makes a URL from a string that is already shared.
    pub(crate) fn shared(text: Arc<str>) -> Self {
        match KNOWN.iter().position(|&known| *known == *text) {
            Some(number) => Self::Known(number as u8),
            None => Self::Shared(text),
        }
    }

    /// Returns the number of a known URL.
    #[inline]
    pub(crate) fn number(&self) -> Option<u8> {
        match self {
            Self::Known(number) => Some(*number),
            Self::Shared(_) => None,
        }
    }

    #[inline]
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Known(number) => KNOWN.get(usize::from(*number)).copied().unwrap_or_default(),
            Self::Shared(text) => text,
        }
    }
}

impl PartialEq for Url {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Known(this), Self::Known(other)) => this == other,
            (Self::Shared(this), Self::Shared(other)) => Arc::ptr_eq(this, other) || this == other,
            (Self::Known(_), Self::Shared(_)) | (Self::Shared(_), Self::Known(_)) => false,
        }
    }
}

impl PartialOrd for Url {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Url {
    fn cmp(&self, other: &Self) -> Ordering {
        if self == other { Ordering::Equal } else { self.as_str().cmp(other.as_str()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_and_unknown_urls_read_back_and_keep_the_order_of_their_strings() {
        let mut texts: alloc::vec::Vec<&str> = KNOWN.into_iter().chain(["", "a", "type.googleapis.com/z"]).collect();
        let mut urls: alloc::vec::Vec<Url> = texts.iter().map(|text| Url::new(text)).collect();
        texts.sort_unstable();
        urls.sort();
        assert_eq!(urls.iter().map(Url::as_str).collect::<alloc::vec::Vec<_>>(), texts);
        for (at, url) in urls.iter().enumerate() {
            for (other_at, other) in urls.iter().enumerate() {
                assert_eq!(*url == Url::new(other.as_str()), at == other_at);
            }
        }
        assert_eq!(size_of::<Url>(), 16);
    }
}

//! The resources of a response: pages that streams share, and single ones. Most responses have one resource, which is
//! kept in place.

use alloc::vec;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::ops::{Deref, DerefMut};
use core::slice;

use bytes::Bytes;

use super::encoding::Encoding;
use super::page::Page;
use super::resource::Resource;
use crate::name::{ResourceName, TypeUrl};

/// Some of the resources of a response.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum Part {
    Page(Page),
    One(Resource),
    /// A heartbeat: the name without content.
    Heartbeat(Resource),
    /// A stub without content: the announcement that a name stands for nothing.
    NotFound(Resource),
}

impl Part {
    pub(super) fn resources(&self) -> slice::Iter<'_, Resource> {
        match self {
            Self::NotFound(_) => slice::Iter::default(),
            _ => self.elements(),
        }
    }

    /// Returns the name that is announced as standing for nothing.
    pub(super) fn not_found(&self) -> Option<&ResourceName> {
        match self {
            Self::NotFound(stub) => Some(stub.name()),
            _ => None,
        }
    }

    /// Returns the elements to encode.
    pub(super) fn elements(&self) -> slice::Iter<'_, Resource> {
        match self {
            Self::Page(page) => page.resources().iter(),
            Self::One(resource) | Self::Heartbeat(resource) | Self::NotFound(resource) => {
                slice::from_ref(resource).iter()
            }
        }
    }

    /// Returns an upper bound for the bytes of the part in a delta response.
    pub(super) fn delta_len(&self, of: &TypeUrl) -> usize {
        self.elements().map(|resource| resource.element(of).delta_len()).sum()
    }

    /// Returns the encoding, if it was made before.
    pub(super) fn bytes<V: Encoding>(&self) -> Option<&Bytes> {
        match self {
            Self::Page(page) => page.bytes::<V>(),
            Self::One(_) | Self::Heartbeat(_) | Self::NotFound(_) => None,
        }
    }
}

/// The parts of a response.
#[derive(Clone, Debug)]
pub(super) enum Parts {
    One(Part),
    Many(Vec<Part>),
}

impl Parts {
    #[inline]
    pub(super) fn push(&mut self, part: Part) {
        match self {
            Self::Many(parts) if parts.capacity() == 0 => *self = Self::One(part),
            _ => self.push_another(part),
        }
    }

    fn push_another(&mut self, part: Part) {
        *self = Self::Many(match core::mem::take(self) {
            Self::One(first) => vec![first, part],
            Self::Many(mut parts) => {
                parts.push(part);
                parts
            }
        });
    }
}

impl Default for Parts {
    #[inline]
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl Deref for Parts {
    type Target = [Part];

    #[inline]
    fn deref(&self) -> &[Part] {
        match self {
            Self::One(part) => slice::from_ref(part),
            Self::Many(parts) => parts,
        }
    }
}

impl DerefMut for Parts {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Part] {
        match self {
            Self::One(part) => slice::from_mut(part),
            Self::Many(parts) => parts,
        }
    }
}

impl Extend<Part> for Parts {
    fn extend<I: IntoIterator<Item = Part>>(&mut self, parts: I) {
        parts.into_iter().for_each(|part| self.push(part));
    }
}

impl FromIterator<Part> for Parts {
    fn from_iter<I: IntoIterator<Item = Part>>(parts: I) -> Self {
        Self::Many(parts.into_iter().collect())
    }
}

// Parts are equal however they are stored.

impl PartialEq for Parts {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Parts {}

impl Hash for Parts {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    fn part(name: &str) -> Part {
        Part::One(Resource::new(name, Bytes::new()))
    }

    fn hash(parts: &Parts) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        parts.hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn pushed_and_collected_parts_are_equal_and_hash_equally() {
        let mut parts = Parts::default();
        assert!(parts.is_empty());
        for count in 1..4 {
            parts.push(part("a"));
            assert_eq!(parts.len(), count);
            let same: Parts = (0..count).map(|_| part("a")).collect();
            assert_eq!(parts, same, "however it came to be");
            assert_eq!(hash(&parts), hash(&same));
            assert_ne!(hash(&parts), hash(&Parts::default()));
            assert_ne!(parts, Parts::default());
        }
        parts.extend([part("b")]);
        parts.reverse();
        assert_eq!(parts.iter().collect::<Vec<_>>(), [&part("b"), &part("a"), &part("a"), &part("a")]);
    }
}

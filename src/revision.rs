//! The time of a source of resources, counted in changes.

/// A moment in the life of a source: each change has one of its own, and later ones are greater.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Revision(pub u64);

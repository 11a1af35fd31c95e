//! The logical time of a source of resources, counted in changes.

/// A point in the history of a source: each change has its own revision, and later changes have greater ones.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Revision(pub u64);

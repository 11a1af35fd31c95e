//! The number of names and their total bytes, which the limits of a stream bound.

use core::ops::{Add, Sub};

use crate::name::ResourceName;

/// The number of names and their total bytes.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Size {
    pub(super) names: usize,
    pub(super) bytes: usize,
}

impl Size {
    pub(super) fn of<'a>(names: impl IntoIterator<Item = &'a ResourceName>) -> Self {
        let size = |size: Self, name: &ResourceName| size + Self { names: 1, bytes: name.as_str().len() };
        names.into_iter().fold(Self::default(), size)
    }
}

impl Sub for Size {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { names: self.names.saturating_sub(other.names), bytes: self.bytes.saturating_sub(other.bytes) }
    }
}

impl Add for Size {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { names: self.names + other.names, bytes: self.bytes + other.bytes }
    }
}

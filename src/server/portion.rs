//! Answers that are too large for one response go in portions, each after the answer to the last. What is left is a
//! position, never a list: names that are owed yet, a page, a revision.

use super::config::Portion;
use crate::name::ResourceName;

/// What is left of a portion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    left: Portion,
    limited: bool,
    taken: bool,
}

impl Room {
    pub(super) fn new(portion: Portion, around: impl FnOnce() -> usize) -> Self {
        let limited = portion != Portion::default();
        let bytes = if limited { portion.bytes.saturating_sub(around()) } else { portion.bytes };
        Self { left: Portion { bytes, ..portion }, limited, taken: false }
    }

    pub(super) fn is_limited(self) -> bool {
        self.limited
    }

    /// Takes so much, if it fits. One thing always does, or it would never go.
    pub(super) fn take(&mut self, count: usize, bytes: impl FnOnce() -> usize) -> bool {
        if !self.limited {
            return true;
        }
        let bytes = bytes();
        let fits = count <= self.left.resources && bytes <= self.left.bytes;
        if fits || (count == 1 && !self.taken) {
            self.left.resources = self.left.resources.saturating_sub(count);
            self.left.bytes = self.left.bytes.saturating_sub(bytes);
            self.taken = true;
            return true;
        }
        false
    }
}

impl Default for Room {
    fn default() -> Self {
        Self::new(Portion::default(), || 0)
    }
}

/// How far the answer to a wildcard is.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) struct Progress {
    /// The page to go on with.
    pub(super) page: usize,
    /// The last name of it that was sent.
    pub(super) after: Option<ResourceName>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_thing_always_fits() {
        let mut room = Room::new(Portion { resources: 0, bytes: 10 }, || 20);
        assert!(!room.take(2, || 5), "a page can be split");
        assert!(room.take(1, || 100));
        assert!(!room.take(1, || 0));
    }

    #[test]
    fn both_limits_count() {
        let mut room = Room::new(Portion { resources: 3, bytes: 20 }, || 5);
        assert!(room.take(2, || 10));
        assert!(!room.take(1, || 6), "bytes");
        assert!(room.take(1, || 5));
        assert!(!room.take(1, || 0), "resources");
    }

    #[test]
    fn without_a_limit_nothing_is_measured() {
        assert!(Room::default().take(usize::MAX, || unreachable!()));
    }
}

//! Answers too large for one response are sent in portions, each after the ACK or NACK of the last. The rest is a
//! position, never a list of resources: pending names, a page, a revision.

use super::config::ResponseLimit;
use crate::name::{ResourceName, TypeUrl, Version};

/// The room left in a portion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    left: ResponseLimit,
    limited: bool,
    taken: bool,
}

impl Budget {
    pub(super) fn new(response_limit: ResponseLimit, around: impl FnOnce() -> usize) -> Self {
        let limited = response_limit.is_limited();
        let bytes = if limited { response_limit.bytes.saturating_sub(around()) } else { response_limit.bytes };
        Self { left: ResponseLimit { bytes, ..response_limit }, limited, taken: false }
    }

    pub(super) fn is_limited(self) -> bool {
        self.limited
    }

    /// Takes room for `count` resources if they fit. A single resource always fits an empty portion, or it would
    /// never be sent.
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

impl Default for Budget {
    fn default() -> Self {
        Self::new(ResponseLimit::default(), || 0)
    }
}

/// Returns an upper bound for the bytes around the resources of a response.
pub(super) fn envelope_bytes(type_url: &TypeUrl, version: &Version, control_plane: &str) -> usize {
    const KEYS_AND_NONCE: usize = 80;
    type_url.as_str().len() + version.as_bytes().len() + control_plane.len() + KEYS_AND_NONCE
}

/// The position of the answer to a wildcard.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) struct Progress {
    /// The page to continue with.
    pub(super) page: usize,
    /// The last name of that page that was sent.
    pub(super) after: Option<ResourceName>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_resource_always_fits() {
        let mut room = Budget::new(ResponseLimit { resources: 0, bytes: 10 }, || 20);
        assert!(!room.take(2, || 5), "a page can be split");
        assert!(room.take(1, || 100));
        assert!(!room.take(1, || 0));
    }

    #[test]
    fn resources_and_bytes_are_both_limited() {
        let mut room = Budget::new(ResponseLimit { resources: 3, bytes: 20 }, || 5);
        assert!(room.take(2, || 10));
        assert!(!room.take(1, || 6), "bytes");
        assert!(room.take(1, || 5));
        assert!(!room.take(1, || 0), "resources");
    }

    #[test]
    fn no_bytes_are_measured_without_a_limit() {
        assert!(Budget::default().take(usize::MAX, || unreachable!()));
    }
}

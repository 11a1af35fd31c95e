//! The state of a name: a slot, linked in the order of the last change.

use alloc::boxed::Box;

use super::aliases::Alias;
use crate::name::ResourceName;
use crate::revision::Revision;
use crate::server::resource::Resource;
use crate::server::source::{Entry, State};

/// No slot.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Slot {
    pub(super) what: What,
    pub(super) since: Revision,
    /// The revision since which the resource is present in some form, or unknown after it was present; otherwise zero.
    pub(super) present_since: Revision,
    pub(super) history: Option<Box<History>>,
    /// The number of names that were there just before this one became absent; otherwise zero.
    pub(super) left_of: u32,
    /// Neighbours in the list of its kind.
    pub(super) older: u32,
    pub(super) newer: u32,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum What {
    Free,
    Present(Resource),
    Absent(ResourceName),
    Unknown(ResourceName),
    /// Another name of a resource that is present or unknown.
    Alias(Box<Alias>),
    /// A former alias, which stands for nothing now: absent.
    Unaliased(Box<Alias>),
}

/// The previous state of a slot: a removed resource is sent once more while its removal is deferred (SotW), and one that
/// loses its TTL in time.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct History {
    /// The state before the current one.
    pub(super) last: Option<What>,
    pub(super) last_since: Revision,
}

impl What {
    pub(super) fn name(&self) -> Option<&ResourceName> {
        match self {
            Self::Free => None,
            Self::Present(resource) => Some(resource.name()),
            Self::Absent(name) | Self::Unknown(name) => Some(name),
            Self::Alias(alias) | Self::Unaliased(alias) => Some(&alias.name),
        }
    }

    pub(super) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent(_) | Self::Unaliased(_))
    }
}

impl Slot {
    pub(super) fn resource(&self) -> Option<&Resource> {
        match &self.what {
            What::Present(resource) => Some(resource),
            _ => None,
        }
    }

    pub(super) fn entry(&self) -> Entry<'_> {
        let state = match &self.what {
            What::Present(resource) => State::Present(resource),
            What::Unknown(_) => State::Unknown,
            What::Absent(_) | What::Alias(_) | What::Unaliased(_) | What::Free => State::Absent,
        };
        Entry { state, since: self.since }
    }
}

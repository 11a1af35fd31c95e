//! Errors of resources, and the effects of a response besides its content.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::action::{Effect, Failed};
use crate::error::Status;
use crate::name::{ResourceName, Version};
use crate::time::Instant;

/// The error of a resource. Fields may be added.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Failure {
    pub(super) cause: Cause,
    /// Whether the server reported the error on this stream, and need not repeat it.
    pub(super) standing: bool,
    /// The error, as the server reported it or as the machine words it.
    pub status: Status,
    /// The version of the rejected resource, or of the response that had the error (in delta `system_version_info`, for
    /// debugging). Empty if there is none.
    pub version: Version,
    /// The time at which the machine learned of the error.
    pub at: Instant,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Cause {
    /// The server deleted the resource, which is kept.
    Deleted,
    Rejected,
    /// The server reported the error.
    Server,
    TimedOut,
}

/// The effects of a response besides its content.
#[derive(Default)]
pub(super) struct Effects {
    /// Held resources to remove, in order.
    pub(super) removed: Vec<ResourceName>,
    /// Names that are not held and do not exist.
    pub(super) missing: Vec<ResourceName>,
    /// Errors, by name.
    pub(super) failed: BTreeMap<ResourceName, (Status, Effect)>,
}

impl Effects {
    pub(super) fn fail(&mut self, name: ResourceName, status: Status, effect: Effect) {
        self.failed.insert(name, (status, effect));
    }

    pub(super) fn sort(&mut self) {
        self.removed.sort();
        self.removed.dedup();
        self.missing.sort();
    }

    pub(super) fn take_failed(&mut self) -> Vec<Failed> {
        let failed = core::mem::take(&mut self.failed).into_iter();
        failed.map(|(name, (status, effect))| Failed { name, status, effect }).collect()
    }
}

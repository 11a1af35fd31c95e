//! What may be wrong with a resource, and what a response says that is not content.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::action::{Effect, Failed};
use crate::error::Status;
use crate::name::{ResourceName, Version};
use crate::time::Instant;

/// Why a resource is not as it should be. Fields may be added.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Failure {
    pub(super) cause: Cause,
    /// The server reported it on this stream, and need not repeat it.
    pub(super) standing: bool,
    /// The error, as the server reported it or as the machine words it.
    pub status: Status,
    /// The version of what was wrong: of a resource that was rejected, or of the response that had the error. In delta
    /// `system_version_info`, for debugging. Empty if there is none.
    pub version: Version,
    /// The time at which the machine learned of the error.
    pub at: Instant,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Cause {
    /// The server deleted it, and it stays.
    Deleted,
    Rejected,
    /// The server reported it.
    Server,
    TimedOut,
}

/// What a response says that is not content.
#[derive(Default)]
pub(super) struct Effects {
    /// What is held and is to be removed, in order.
    pub(super) removed: Vec<ResourceName>,
    /// What is not held, and does not exist.
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

//! A response under construction, and the constraints on it.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::vec::Vec;

use super::extent::Pages;
use super::parts::{Part, Parts};
use super::resource::Resource;
use super::response_limit::Budget;
use super::view::Reach;
use crate::error::{Code, Status};
use crate::message::ResourceError;
use crate::name::{ResourceName, TypeUrl, Version};

/// The constraints on a response from the order of the types ([design rule 11](crate::manual::rules#rule-11)) and the
/// configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Order {
    /// Only pending answers are sent; changes wait for other types.
    pub(super) answers_only: bool,
    /// Pushed removals are deferred.
    pub(super) defer_removals: bool,
    /// The room in the response.
    pub(super) budget: Budget,
    /// The number of names up to which notes by name are kept.
    pub(super) names: usize,
}

/// A response under construction.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    pub(super) parts: Parts,
    /// The number of leading parts that answer names.
    pub(super) answers: usize,
    pub(super) removed: Vec<ResourceName>,
    /// The names of heartbeats: if these are rejected, the resources are due with their content.
    pub(super) beats: Vec<ResourceName>,
    /// Whether the response has nothing but heartbeats, with or without their content.
    pub(super) only_beats: bool,
    /// Errors, in the order of the names.
    pub(super) errors: Vec<ResourceError>,
    /// Whether the response is sent even if it is empty.
    pub(super) must_send: bool,
    /// The resources in the response that are new or changed.
    pub(super) changed: Changed,
    /// Pending names that the response answers.
    pub(super) answered: BTreeSet<ResourceName>,
    /// The pages that the response has of the answer to the wildcard.
    pub(super) pages: Option<Pages>,
    /// Whether the wildcard is answered, and the client has all resources but those of pending names.
    pub(super) claimed: bool,
    /// How far the response covers changes and removals.
    pub(super) content: Reach,
    pub(super) removals: Reach,
    /// Whether removals are deferred.
    pub(super) defers: bool,
    /// Whether subscribed resources changed, and are sent later.
    pub(super) waits: bool,
    /// Whether the response has all subscribed resources (SotW).
    pub(super) whole: bool,
    pub(super) budget: Budget,
}

#[derive(Clone, Debug, Default)]
pub(super) enum Changed {
    #[default]
    WhatIsSent,
    /// The response has more than the changes, because its type is full state.
    These(Vec<Resource>),
}

impl Draft {
    #[inline]
    pub(super) fn push(&mut self, resource: &Resource) {
        self.parts.push(Part::One(resource.clone()));
    }

    /// Adds a resource if there is room. Returns whether there was.
    pub(super) fn add(&mut self, of: &TypeUrl, resource: &Resource) -> bool {
        self.add_part(of, Part::One(resource.clone()))
    }

    pub(super) fn add_part(&mut self, of: &TypeUrl, part: Part) -> bool {
        let fits = self.budget.take(1, || part.delta_len(of));
        if fits {
            self.parts.push(part);
        }
        fits
    }

    /// Adds the name of a removed resource if there is room. Returns whether there was.
    pub(super) fn remove(&mut self, name: &ResourceName) -> bool {
        const KEY_AND_LENGTH: usize = 6;
        let fits = self.budget.take(1, || name.as_str().len() + KEY_AND_LENGTH);
        if fits {
            self.removed.push(name.clone());
        }
        fits
    }

    /// Returns the present resources in the draft, including heartbeats.
    pub(super) fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.parts.iter().flat_map(Part::resources)
    }

    /// Returns the present resources in the draft, without heartbeats.
    pub(super) fn sent(&self) -> impl Iterator<Item = &Resource> {
        self.parts.iter().filter(|part| !matches!(part, Part::Heartbeat(_))).flat_map(Part::resources)
    }

    /// Returns the version of the response. A response that keeps removed resources, or is sent before resources that
    /// changed, needs another version than the source: a client that claims the version of the source on its next
    /// stream may be sent nothing ([design rule 13](crate::manual::rules#rule-13)). A variant that names its removals
    /// claims the version of each resource.
    pub(super) fn version(&self, of_source: Version, names_removals: bool) -> Version {
        const STILL: char = '+';
        let differs = (self.defers || self.waits) && !names_removals;
        if differs { format!("{of_source}{STILL}").into() } else { of_source }
    }

    /// Returns whether the draft has no changes, only answers.
    pub(super) fn has_only_answers(&self) -> bool {
        self.content == Reach::Nowhere && self.removals == Reach::Nowhere
    }

    /// Returns whether the draft has heartbeats alone, and answers no name.
    pub(super) fn has_only_beats(&self) -> bool {
        let all = self.parts.iter().all(|part| matches!(part, Part::Heartbeat(_))) && !self.parts.is_empty();
        all && self.removed.is_empty() && self.errors.is_empty() && self.answered.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.removed.is_empty() && self.errors.is_empty()
    }
}

/// The source no longer remembers removals that the stream was not sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Behind;

impl From<Behind> for Status {
    fn from(_: Behind) -> Self {
        Self::new(Code::Unavailable, "behind the removals that are remembered")
    }
}

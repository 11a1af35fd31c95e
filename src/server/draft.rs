//! A response in the making, and what is demanded of it.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::vec::Vec;

use super::extent::Pages;
use super::parts::{Part, Parts};
use super::resource::Resource;
use super::response_limit::Budget;
use super::view::Reach;
use crate::message::ResourceError;
use crate::name::{ResourceName, TypeUrl, Version};

/// What the order of the types ([design rule 11](crate::manual::rules#rule-11)) and the configuration demand of a
/// response.
#[derive(Clone, Copy, Debug, Default)]
pub struct Order {
    /// Only what was asked for; what changed waits for other types.
    pub(super) answers_only: bool,
    /// Pushed removals stay back.
    pub(super) defer_removals: bool,
    /// How much may be sent.
    pub(super) budget: Budget,
    /// As many names are remembered at least.
    pub(super) names: usize,
}

/// A response in the making.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    pub(super) parts: Parts,
    /// How many of the parts answer names: the first.
    pub(super) answers: usize,
    pub(super) removed: Vec<ResourceName>,
    /// In the order of the names.
    pub(super) errors: Vec<ResourceError>,
    /// The response is sent, though it be empty.
    pub(super) must_send: bool,
    /// Which resources in it are new or changed.
    pub(super) changed: Changed,
    /// Names that were pending and are answered.
    pub(super) answered: BTreeSet<ResourceName>,
    /// The part of the answer to the wildcard that it has.
    pub(super) pages: Option<Pages>,
    /// Up to where it has what changed, and what is gone.
    pub(super) content: Reach,
    pub(super) removals: Reach,
    /// Removals stay back, for a time.
    pub(super) defers: bool,
    /// It has all that is wanted (SotW).
    pub(super) whole: bool,
    pub(super) budget: Budget,
}

#[derive(Clone, Debug, Default)]
pub(super) enum Changed {
    #[default]
    WhatIsSent,
    /// The response has more than what changed, because its type is full state.
    These(Vec<Resource>),
}

impl Draft {
    #[inline]
    pub(super) fn push(&mut self, resource: &Resource) {
        self.parts.push(Part::One(resource.clone()));
    }

    /// Adds a resource if there is room.
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

    /// Adds the name of what is gone if there is room.
    pub(super) fn remove(&mut self, name: &ResourceName) -> bool {
        const KEY_AND_LENGTH: usize = 6;
        let fits = self.budget.take(1, || name.as_str().len() + KEY_AND_LENGTH);
        if fits {
            self.removed.push(name.clone());
        }
        fits
    }

    /// The resources in it that are there, heartbeats among them.
    pub(super) fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.parts.iter().flat_map(Part::resources)
    }

    /// The version of the response. If what is gone is still there, that is not the version of what there is
    /// ([design rule 13](crate::manual::rules#rule-13)); a variant that names its removals need not tell the two
    /// apart.
    pub(super) fn version(&self, of_source: Version, names_removals: bool) -> Version {
        const STILL: char = '+';
        if self.defers && !names_removals { format!("{of_source}{STILL}").into() } else { of_source }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.removed.is_empty() && self.errors.is_empty()
    }
}

/// The source does not remember the removals that the stream has not heard of.
#[derive(Clone, Copy, Debug)]
pub struct Behind;

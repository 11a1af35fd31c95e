//! Subscribed resources that the client was sent in their current form.

use alloc::collections::BTreeSet;

use super::claims::Claims;
use super::of_type::OfType;
use super::pending::{Pending, Wildcard};
use super::resource::Resource;
use super::response_limit::Progress;
use super::source::{Entry, Source};
use super::view::View;
use super::wanted::{Wanted, is_named_by};
use crate::name::ResourceName;

/// The view of a client, without pending resources.
pub(super) struct Sent<'a> {
    wanted: &'a Wanted,
    view: &'a View,
    pending: &'a Pending,
    /// Names that the answer to the wildcard has covered, until it is complete.
    covered: Option<BTreeSet<ResourceName>>,
}

impl<'a> Sent<'a> {
    /// Creates the view for the resources that `is_asked_for` selects.
    pub(super) fn new<S: Source>(
        of: OfType<'_, S>,
        wanted: &'a Wanted,
        view: &'a View,
        pending: &'a Pending,
        is_asked_for: impl Fn(&Resource) -> bool,
    ) -> Self {
        let covered = match pending.wildcard() {
            Wildcard::Answered | Wildcard::Claimed => None,
            Wildcard::Asked => Some(BTreeSet::new()),
            Wildcard::Begun(progress) => Some(covered_names(of, progress, is_asked_for)),
        };
        Self { wanted, view, pending, covered }
    }

    /// Returns whether the client was sent a present resource, and it is not about to be sent again.
    pub(super) fn has(&self, entry: &Entry<'_>, resource: &Resource) -> bool {
        let (view, name, pending) = (self.view, resource.name(), self.pending.names());
        let is_sent_ahead = view.is_sent_ahead(name, entry.since);
        // The answer to a collection leaves out what was sent ahead.
        let is_pending =
            if is_sent_ahead { is_named_by(pending, resource) } else { self.wanted.is_among(pending, resource) };
        (is_sent_ahead || self.covers(name)) && !view.is_news(name, entry) && !is_pending
    }

    /// Returns whether the client was sent a resource that is absent now, and that the source had when it was read last.
    pub(super) fn had(&self, resource: &Resource) -> bool {
        self.covers(resource.name()) && !self.wanted.is_among(self.pending.names(), resource)
    }

    /// Returns whether the subscriptions that cover a name are answered. Until a wildcard is answered completely,
    /// resources of later portions were not sent.
    fn covers(&self, name: &ResourceName) -> bool {
        self.view.sent_to().is_some() && self.covered.as_ref().is_none_or(|covered| covered.contains(name))
    }

    /// Returns whether the client was sent the absence of a name.
    pub(super) fn has_removal(&self, entry: &Entry<'_>, name: &ResourceName) -> bool {
        let view = self.view;
        let answered = || view.sent_to().is_some() && self.covered.is_none();
        let is_gone = |claims: &Claims| claims.has_gone(name);
        let is_asked = || {
            let glob = self.wanted.globs().of(name.as_str());
            [Some(name), glob].into_iter().flatten().any(|name| self.pending.names().contains(name))
        };
        (view.is_sent_ahead(name, entry.since) || answered())
            && !view.is_removal_news(name, entry)
            && !self.pending.claims().is_some_and(is_gone)
            && !is_asked()
    }
}

/// Returns the names that the answer to a wildcard has covered.
fn covered_names<S: Source>(
    of: OfType<'_, S>,
    progress: &Progress,
    is_asked_for: impl Fn(&Resource) -> bool,
) -> BTreeSet<ResourceName> {
    let mut covered = BTreeSet::new();
    for (number, page) in of.pages().enumerate().take(progress.page.saturating_add(1)) {
        let before = |name: &ResourceName| match number < progress.page {
            true => true,
            false => progress.after.as_ref().is_some_and(|after| name <= after),
        };
        let resources = page.resources().iter().filter(|resource| is_asked_for(resource));
        covered.extend(resources.map(Resource::name).filter(|name| before(name)).cloned());
    }
    covered
}

//! What a client waits for: names to answer, whether they changed or not, and all that a wildcard stands for.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;

use super::claims::Claims;
use super::response_limit::Progress;
use super::wanted::Wanted;
use crate::ensure::ensure;
use crate::name::ResourceName;

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Pending {
    /// Names to answer; those of collections and aliases among them.
    names: BTreeSet<ResourceName>,
    wildcard: Wildcard,
    /// A response is sent even if it is empty: the client waits for one (S-SOTW-04, S-DELTA-05).
    reply: bool,
    /// What the client said that it has, of which something may be gone.
    claims: Option<Box<Claims>>,
}

/// How far the answer to a wildcard is.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) enum Wildcard {
    /// There is none to give.
    #[default]
    Answered,
    /// It did not begin yet.
    Asked,
    /// It goes on from here.
    Begun(Box<Progress>),
}

impl Pending {
    /// Whether something is to be answered.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        !self.reply
            && self.wildcard == Wildcard::Answered
            && self.names.is_empty()
            && !self.claims.as_ref().is_some_and(|claims| claims.is_pending())
    }

    pub(super) fn names(&self) -> &BTreeSet<ResourceName> {
        &self.names
    }

    pub(super) fn wildcard(&self) -> &Wildcard {
        &self.wildcard
    }

    /// Whether all that the wildcard stands for is pending, or what is left of it.
    pub(super) fn has_wildcard(&self) -> bool {
        self.wildcard != Wildcard::Answered
    }

    pub(super) fn reply(&self) -> bool {
        self.reply
    }

    pub(super) fn claims(&self) -> Option<&Claims> {
        self.claims.as_deref()
    }

    // What is asked for.

    /// A name is to be answered. `limit` bounds the names that the wildcard or a collection covers and nothing names: beyond
    /// it these are answered with all that there is.
    pub(super) fn add(&mut self, name: ResourceName, wanted: &Wanted, limit: usize) {
        self.names.insert(name);
        if self.names.len() > wanted.names().len() + limit {
            self.names.retain(|name| wanted.names().contains(name));
            self.names.extend(wanted.globs().iter().cloned());
            if wanted.wildcard() {
                self.wildcard = Wildcard::Asked;
            }
        }
    }

    pub(super) fn remove(&mut self, name: &ResourceName) {
        self.names.remove(name);
    }

    /// Of the names those that are wanted stay.
    pub(super) fn retain_wanted(&mut self, wanted: &Wanted) {
        self.names.retain(|name| wanted.covers(name.as_str()));
    }

    /// Everything is asked for, from now on or again.
    pub(super) fn add_wildcard(&mut self) {
        self.wildcard = Wildcard::Asked;
        self.reply = true;
    }

    /// The wildcard left. Names that it would have brought are answered by themselves.
    pub(super) fn remove_wildcard(&mut self, wanted: &Wanted) {
        if core::mem::take(&mut self.wildcard) != Wildcard::Answered {
            self.names = wanted.names().clone();
        }
        self.retain_wanted(wanted);
    }

    pub(super) fn set_reply(&mut self, reply: bool) {
        self.reply = reply;
    }

    pub(super) fn set_claims(&mut self, claims: Claims) {
        self.claims = Some(Box::new(claims)).filter(|claims| !claims.is_empty());
    }

    /// What the client claims of a name does not count: it is to be sent what there is.
    pub(super) fn unclaim(&mut self, name: &ResourceName) {
        if let Some(claims) = &mut self.claims {
            claims.unclaim(name);
        }
    }

    // What is answered.

    /// Takes the names, to answer them.
    pub(super) fn take_names(&mut self) -> BTreeSet<ResourceName> {
        core::mem::take(&mut self.names)
    }

    pub(super) fn take_claims(&mut self) -> Option<Box<Claims>> {
        self.claims.take()
    }

    /// These names there was no room for.
    pub(super) fn put_back(&mut self, rest: BTreeSet<ResourceName>) {
        self.names = rest;
    }

    /// The wildcard is answered up to here, or whole.
    pub(super) fn set_progress(&mut self, progress: Option<Progress>) {
        self.wildcard = progress.map_or(Wildcard::Answered, |progress| Wildcard::Begun(Box::new(progress)));
    }

    /// What must hold.
    pub(super) fn check(&self, wanted: &Wanted) -> Result<(), String> {
        let astray = self.names.iter().find(|name| !wanted.covers(name.as_str()));
        ensure!(astray.is_none(), "{astray:?} is pending and not wanted");
        ensure!(!self.has_wildcard() || wanted.wildcard(), "an answer to a wildcard that is not wanted");
        Ok(())
    }
}

//! Which servers can't be reached, by the names that they are asked for.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use crate::error::Status;
use crate::servers::authority;

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Unreachable {
    /// Of whatever name: there is one server.
    all: Option<Status>,
    /// Of the names of an authority, or of those without one.
    authorities: BTreeMap<Option<Arc<str>>, Status>,
}

impl Unreachable {
    /// The one server there is, or none of several, can be reached or not.
    pub(super) fn set_all(&mut self, status: Option<Status>) {
        if status.is_none() {
            self.authorities.clear();
        }
        self.all = status;
    }

    /// The servers of an authority can be reached or not.
    pub(super) fn set(&mut self, authority: Option<Arc<str>>, status: Option<Status>) {
        match status {
            Some(status) => _ = self.authorities.insert(authority, status),
            None => _ = self.authorities.remove(&authority),
        }
    }

    /// What is wrong with a resource of this name, for that.
    pub(super) fn error(&self, name: &str) -> Option<&Status> {
        let of = || self.authorities.iter().find(|(of, _)| of.as_deref() == authority::of(name));
        self.all.as_ref().or_else(|| Some(of()?.1))
    }
}

//! The unreachable servers, by the names that they serve.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use crate::error::Status;
use crate::servers::authority;

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Unreachable {
    /// Applies to all names: there is one server.
    all: Option<Status>,
    /// By authority, or `None` for names without one.
    authorities: BTreeMap<Option<Arc<str>>, Status>,
}

impl Unreachable {
    /// Sets or clears the status of the only server, or clears that of all servers.
    pub(super) fn set_all(&mut self, status: Option<Status>) {
        if status.is_none() {
            self.authorities.clear();
        }
        self.all = status;
    }

    /// Sets or clears the status of the servers of an authority.
    pub(super) fn set(&mut self, authority: Option<Arc<str>>, status: Option<Status>) {
        match status {
            Some(status) => _ = self.authorities.insert(authority, status),
            None => _ = self.authorities.remove(&authority),
        }
    }

    /// Returns the error that a resource of this name has because its servers are unreachable.
    pub(super) fn error(&self, name: &str) -> Option<&Status> {
        let of = || self.authorities.iter().find(|(of, _)| of.as_deref() == authority::of(name));
        self.all.as_ref().or_else(|| Some(of()?.1))
    }
}

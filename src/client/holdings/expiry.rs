//! The expiry of held resources with a TTL, which newer content delays while it waits for its verdict.

use super::Holdings;
use crate::name::ResourceName;
use crate::time::Instant;

impl Holdings {
    /// Renews the TTL of a resource after a heartbeat.
    pub(in crate::client) fn renew(&mut self, name: &ResourceName, until: Option<Instant>) {
        match self.extended.get_mut(name) {
            Some(own) => {
                let extended = self.expiry.get(name);
                *own = until;
                self.expiry.set(name, later(extended, until));
            }
            None => self.expiry.set(name, until),
        }
    }

    /// Keeps a held resource with a TTL alive, because the server sent newer content of it, or a heartbeat of that
    /// content.
    pub(in crate::client) fn extend(&mut self, name: &ResourceName, until: Option<Instant>) {
        let expiry = self.expiry.get(name);
        let own = match self.extended.get(name) {
            Some(own) => *own,
            None if expiry.is_none() => return, // the resource has no TTL, or is not held
            None => {
                self.extended.insert(name.clone(), expiry);
                expiry
            }
        };
        self.expiry.set(name, later(own, until));
    }

    /// Returns whether newer content keeps a resource alive.
    pub(in crate::client) fn has_extensions(&self) -> bool {
        !self.extended.is_empty()
    }

    /// Gives resources their own expiry back, of which no newer content waits any more.
    pub(in crate::client) fn end_extensions(&mut self, waits: impl Fn(&ResourceName) -> bool) {
        let Self { extended, expiry, .. } = self;
        extended.retain(|name, own| {
            let waits = waits(name);
            if !waits {
                expiry.set(name, *own);
            }
            waits
        });
    }
}

/// Returns the later of two expiries; `None` is never.
fn later(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    Some(a?.max(b?))
}

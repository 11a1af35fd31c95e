//! The subscriptions of a client to one type on one stream, by the letter of the specification.

use std::collections::BTreeSet;

use xds_machine::{ResourceName, WILDCARD};

use super::wire::Ask;

#[derive(Default)]
pub(super) struct Asked {
    /// Whether there was a request.
    pub any: bool,
    /// Whether a name was sent: after that an empty list is not the wildcard (SotW).
    named: bool,
    pub wanted: BTreeSet<ResourceName>,
}

impl Asked {
    /// Applies a request. Returns the requested names, whose resources must be sent even if unchanged. In delta this
    /// includes unsubscribed names that the wildcard covers: the client can't tell whether it does.
    pub(super) fn hear(&mut self, ask: &Ask, delta: bool, legacy: bool) -> BTreeSet<ResourceName> {
        let first = !std::mem::replace(&mut self.any, true);
        let all = || BTreeSet::from([ResourceName::from(WILDCARD)]);
        let mut asked: BTreeSet<ResourceName> = ask.names.iter().cloned().collect();
        if !delta {
            let is_legacy = asked.is_empty() && !self.named && legacy;
            self.named |= !asked.is_empty();
            let asked = if is_legacy { all() } else { asked };
            // Resources that the wildcard covered before are sent already; a client that dropped one must unsubscribe
            // first.
            let all = self.wanted.contains(WILDCARD);
            let again = asked.difference(&self.wanted).filter(|_| !all).cloned().collect();
            self.wanted = asked;
            return again;
        }
        if first && legacy && ask.names.is_empty() && ask.leave.is_empty() {
            asked = all();
        }
        self.wanted.extend(asked.iter().cloned());
        ask.leave.iter().for_each(|name| _ = self.wanted.remove(name));
        asked
    }
}

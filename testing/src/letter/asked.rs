//! What a client asks for on one stream of one type, read by the letter.

use std::collections::BTreeSet;

use xds_machine::{ResourceName, WILDCARD};

use super::wire::Ask;

#[derive(Default)]
pub(super) struct Asked {
    /// Whether there was a request.
    pub any: bool,
    /// Whether a name was sent: an empty list is no wildcard any more (SotW).
    named: bool,
    pub wanted: BTreeSet<ResourceName>,
}

impl Asked {
    /// Reads a request. Returns the names that it asks for: their resources have to be sent, though they did not change. (So
    /// has what is left by name, delta, if the wildcard has it: the client can't tell.)
    pub(super) fn hear(&mut self, ask: &Ask, delta: bool, legacy: bool) -> BTreeSet<ResourceName> {
        let first = !std::mem::replace(&mut self.any, true);
        let all = || BTreeSet::from([ResourceName::from(WILDCARD)]);
        let mut asked: BTreeSet<ResourceName> = ask.names.iter().cloned().collect();
        if !delta {
            let is_legacy = asked.is_empty() && !self.named && legacy;
            self.named |= !asked.is_empty();
            let asked = if is_legacy { all() } else { asked };
            // What the wildcard had before is there; who has dropped it since has to leave it out first.
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

//! The judgement of silence.

use std::collections::BTreeSet;

use super::super::{Rule, World};
use super::of_type::{Held, OfType};
use crate::message::Variant;

impl OfType {
    /// Judges the silence: no further response comes.
    pub(super) fn rest(
        &mut self,
        variant: Variant,
        type_url: &str,
        world: &World,
        complain: &mut impl FnMut(Rule, String),
    ) {
        if !self.unanswered.is_empty() || !self.maybe.is_empty() {
            return; // a server may wait for the ACK, and may have dropped stale requests
        }
        self.left.clear();
        self.crossing.clear();
        self.outstanding = false;
        self.left_wildcard = false;
        (self.reasons, self.reasons_for_all) = (0, 0);
        self.reasons_for.clear();
        self.used_of_all.clear();
        let owed = std::mem::take(&mut self.owed);
        let mut told = BTreeSet::new();
        for (name, rule) in owed {
            let state = world.certain(type_url, &name);
            let exists = matches!(state, Some(Some(_)));
            let due = match rule {
                Rule::Owed => exists,
                // An answer is due whether the resource exists or not, but not while a change may still be on its way.
                _ => state.is_some() || world.states(type_url, &name).is_empty(),
            };
            if due {
                let what = match rule {
                    Rule::UnsubscribedInWildcard => format!("{name} was unsubscribed, and no response mentions it"),
                    _ if exists => format!("{name} was newly requested, exists, and is not sent"),
                    _ => format!("{name} was subscribed to, and no response mentions it"),
                };
                complain(if exists && rule == Rule::Unanswered { Rule::Owed } else { rule }, what);
                told.insert(name);
            }
        }
        let names: Vec<String> = world.names(type_url).map(str::to_owned).collect();
        for name in names.iter().filter(|name| !told.contains(*name) && self.wants(name)) {
            let Some(state) = world.certain(type_url, name) else { continue };
            self.check_held(variant, name, state, complain);
        }
    }

    fn check_held(&self, variant: Variant, name: &str, state: Option<u64>, complain: &mut impl FnMut(Rule, String)) {
        match (state, self.held.get(name)) {
            (Some(_), None) if self.claimed => {} // the server may believe that the client has it
            (Some(revision), None) => complain(Rule::NotSent, format!("{name} exists at {revision}, and is not sent")),
            (Some(revision), Some(Held::Sent(Some(sent)))) if *sent != revision => {
                complain(Rule::NotSent, format!("{name} changed from {sent} to {revision}, and is not sent"));
            }
            (Some(revision), Some(Held::Claimed(version))) => {
                // Only if the server itself sent the content of that version.
                let claimed = (name.to_owned(), version.clone());
                let stands_for = self.versions.get(&claimed).or_else(|| self.past_versions.get(&claimed));
                if stands_for.is_some_and(|claimed| *claimed != revision) {
                    complain(
                        Rule::NotSent,
                        format!("{name} is claimed at {version:?}, is not current, and is not sent"),
                    );
                }
            }
            (None, Some(_)) if variant == Variant::Delta => {
                complain(Rule::NotRemoved, format!("{name} does not exist, and its removal is not sent"));
            }
            (None, Some(_)) if self.full_state => {
                complain(Rule::NotRemoved, format!("{name} does not exist, and no response is without it"));
            }
            _ => {}
        }
    }
}

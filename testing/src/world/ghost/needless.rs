//! Messages that say nothing new: a removal that the client knows, an empty response, a subscription that the server
//! has.

use std::collections::BTreeSet;

use xds_machine::client::Intent;
use xds_machine::{ResourceName, Version, WILDCARD};

use super::super::{Application, Both, Bug, Made, is_alias, stands_for};
use super::{Ghost, Memory};
use crate::variant::{Request, Response};

impl Ghost {
    /// Records that the application asked for something about a name: the next request may mention it.
    pub fn mentions(&mut self, t: usize, name: &ResourceName) {
        self.types[t].mention(name);
    }
}

impl Memory {
    pub(super) fn mention(&mut self, name: &ResourceName) {
        self.mentioned.insert(name.clone());
        // The name may be left out of a list, and listed again.
        self.from_start.retain(|wanted| !stands_for(wanted, name, None) && !stands_for(name, wanted, None));
        self.claimable = None;
    }

    /// Records that a list may be repeated. The wildcard stands for that among the mentioned names.
    pub(super) fn may_repeat(&mut self) {
        self.mentioned.insert(WILDCARD.into());
    }

    /// Checks that a response says something new: a removal is repeated only in the answer to a request, or after a
    /// change.
    pub(super) fn check_news<V: Both>(&mut self, setup: &Made, response: &Response) {
        // The former targets of an alias may follow in further portions, or once more if they were claimed; and the
        // endpoints of a cluster are sent again.
        let by_alias = (setup.response_limit.is_some() || self.claimed) && setup.names.iter().any(is_alias);
        let answers = self.asked_since || by_alias || setup.types.len() > 1;
        let repeats = setup.response_limit.is_some() && !V::LISTS;
        let exempt = answers || repeats || setup.limit.is_some() || setup.is_forgetful();
        for name in &response.removed {
            let is_new = self.told_gone.insert(name.clone());
            assert!(is_new || exempt, "the client knows that {name} does not exist, and is told again");
        }
        // Of a full-state type each response has the errors.
        for name in response.errors.iter().filter(|_| !V::LISTS || !setup.full_state) {
            let is_new = self.told_errors.insert(name.clone());
            assert!(is_new || exempt, "the client knows that {name} has an error, and is told again");
        }
        self.told_gone.retain(|name| !response.resources.iter().any(|(sent, _)| sent == name));
        let nothing = response.resources.is_empty() && response.removed.is_empty();
        let says_nothing = nothing && response.errors.is_empty() && response.beats.is_empty();
        // A server with that bug has another view of what is wanted, which is what has to be found.
        let wants = !self.listed.is_empty() || setup.bug == Some(Bug::EmptyMeansAll);
        let is_asked_for = if V::LISTS { wants } else { self.asked_since };
        assert!(!says_nothing || is_asked_for, "a response that nobody asked for says nothing");
    }

    /// Checks that a request says something new.
    pub(super) fn check_request<V: Both>(&mut self, intent: Intent, request: &Request<'_>) {
        if V::LISTS { self.check_list(intent, request) } else { self.check_changes(intent, request) }
    }

    fn check_list(&mut self, intent: Intent, request: &Request<'_>) {
        let names: BTreeSet<ResourceName> = request.names.iter().cloned().collect();
        let differs = names != self.requested;
        // A name is left out of a list to be asked for again.
        let new = differs || !self.mentioned.is_empty();
        assert!(intent != Intent::Subscribe || new, "{names:?} are listed, and are listed again");
        if intent == Intent::Initial {
            self.from_start = names.clone();
            self.from_start.extend(names.is_empty().then(|| WILDCARD.into()));
        } else if differs {
            self.from_start.retain(|name| names.contains(name) && self.requested.contains(name));
        }
        // The names in a NACK may be ignored.
        if intent == Intent::Nack {
            self.may_repeat();
        } else if differs {
            self.mentioned.clear();
        }
        self.requested = names;
    }

    fn check_changes(&mut self, intent: Intent, request: &Request<'_>) {
        let (subscribe, unsubscribe) = (request.names, request.unsubscribe);
        let empty = subscribe.is_empty() && unsubscribe.is_empty();
        assert!(intent != Intent::Subscribe || !empty, "a request says nothing");
        for name in subscribe {
            let stands = |asked: &ResourceName| is_alias(name) || stands_for(name, asked, None);
            let new = self.requested.insert(name.clone()) || self.mentioned.iter().any(stands);
            assert!(new, "{name} is subscribed, and is subscribed again");
        }
        if intent == Intent::Initial && subscribe.is_empty() {
            self.requested.insert(WILDCARD.into());
        }
        for name in unsubscribe {
            assert!(self.requested.remove(name), "{name} is not subscribed, and is unsubscribed");
        }
        self.mentioned.retain(|asked| !subscribe.contains(asked));
    }

    /// Records a response that was accepted on its stream: its version can be claimed for the names that the server
    /// knew from the beginning of the stream.
    pub(super) fn note_accepted(&mut self, version: Option<&Version>) {
        let is_known = self.mentioned.is_empty() && !self.from_start.is_empty();
        self.claimable = version.filter(|_| is_known).map(|version| (version.clone(), self.from_start.clone()));
    }

    /// Checks that the first request of a full-state type in SotW claims the version that the client has.
    pub(super) fn check_claimed(&self, claimed: &Version, app: &Application) {
        let Some((version, names)) = self.claimable.as_ref().filter(|_| app.judging.is_none()) else { return };
        let knows = app.failed.is_empty() && app.wanted.iter().all(|name| !is_alias(name) && names.contains(name));
        // A later response without a subscribed resource is accepted unseen.
        let claims = claimed == version || (!claimed.is_empty() && *claimed == self.accepted);
        assert!(!knows || claims, "{version} was accepted, and {claimed:?} is claimed");
    }
}

/// Checks that the first request of a type in delta claims all that the client has.
pub(super) fn check_all_claimed(request: &Request<'_>, app: &Application) {
    for name in app.applied.keys() {
        assert!(request.initial.contains_key(name), "{name} is there, and not claimed");
    }
}

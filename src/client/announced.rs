//! The state of each name that the server may assume on this stream.
//!
#![doc = include_str!("announced.md")]

#[cfg(test)]
mod tests;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use crate::ensure::ensure;
use crate::globs::is_member;
use crate::name::{ResourceName, WILDCARD};

/// How often a newer response causes a name to be relisted, before only a time-out does ([design rule
/// 4](crate::manual::rules#rule-4): with a server that answers each added name even if it does not exist, relisting on
/// every response would never end).
pub(super) const REOPENINGS: u8 = 2;

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
#[cfg_attr(test, derive(Ord, PartialOrd))]
pub(super) struct Announced {
    /// Whether a request of the type was sent on this stream.
    asked: bool,
    /// Names in any other state than *listed*.
    states: BTreeMap<ResourceName, State>,
    /// Names that were listed on this stream and unsubscribed (SotW).
    left: BTreeSet<ResourceName>,
    /// Whether `left` exceeded its limit: any name may have been in it.
    forgot: bool,
    /// Subscribed names that are listed since a request that the server may not have received before it made the last
    /// response (SotW). The first request of a stream is received before any response. `true`: an earlier request of the
    /// stream had the name, and a response that mentions it may answer that one.
    unconfirmed: BTreeMap<ResourceName, bool>,
}

/// The state of a name that the server may assume.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(test, derive(Ord, PartialOrd))]
enum State {
    /// Subscribed to, and not announced.
    New,
    /// Known to the server, and left out of the last request: the name was settled before it was listed again (SotW).
    Settled,
    /// Listed, and to be requested again (delta).
    Again,
    /// Unsubscribed, and not announced as such.
    Leaving,
    /// To be unsubscribed, and subscribed to again in the next request (delta).
    Returning,
    /// To be left out of a request, and then listed (SotW).
    Relisting(Relisting),
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(test, derive(Ord, PartialOrd))]
struct Relisting {
    stage: Stage,
    reopened: u8,
    /// Whether the time-out passed once and the name was relisted: the next time-out is final.
    last: bool,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(test, derive(Ord, PartialOrd))]
enum Stage {
    /// To be left out. `listed`: whether the last request had the name.
    Omit { listed: bool },
    /// Left out under this response.
    Omitted { under: u64 },
    /// Listed again under this response.
    Relisted { under: u64 },
}

/// The names of a SotW request.
pub(super) struct List {
    pub(super) names: Vec<ResourceName>,
    /// The names that are news to the server; `None` if all are.
    pub(super) news: Option<Vec<ResourceName>>,
}

impl Relisting {
    const BEGIN: Self = Self::omit(true);

    const fn omit(listed: bool) -> Self {
        Self { stage: Stage::Omit { listed }, reopened: 0, last: false }
    }

    /// Returns whether a newer response is a reason to relist the name.
    fn reopens(&self, under: u64, serial: u64) -> bool {
        under < serial && self.reopened < REOPENINGS
    }

    /// Returns whether the next request leaves the name out; `current`: whether the request is under the newest
    /// response, `serial`.
    fn is_left_out(&self, serial: u64, current: bool) -> bool {
        match self.stage {
            Stage::Omit { .. } => true,
            Stage::Omitted { under } => !current || self.reopens(under, serial),
            Stage::Relisted { under } => current && self.reopens(under, serial),
        }
    }

    /// Returns whether the last request had the name.
    fn is_listed(&self) -> bool {
        matches!(self.stage, Stage::Omit { listed: true } | Stage::Relisted { .. })
    }
}

impl Announced {
    // Changes by the application.

    /// Notes a newly subscribed name (SotW). `last_under`: the response under which the last request was sent.
    pub(super) fn subscribe_listed(&mut self, name: &ResourceName, last_under: Option<u64>, serial: u64) {
        let leaving = self.is_leaving(name.as_str());
        if !self.asked || (!leaving && self.states.contains_key(name)) {
            return;
        }
        let state = if leaving || self.left.remove(name) || self.is_any_back() {
            let omitted = !leaving && !self.is_wildcard_listed() && last_under == Some(serial);
            let stage = if omitted { Stage::Omitted { under: serial } } else { Stage::Omit { listed: leaving } };
            State::Relisting(Relisting { stage, reopened: 0, last: false })
        } else {
            State::New
        };
        self.states.insert(name.clone(), state);
    }

    /// Notes a newly subscribed name (delta).
    pub(super) fn want(&mut self, name: &ResourceName) {
        let state = match self.states.get(name) {
            None => State::New,
            Some(State::Leaving) => State::Returning,
            Some(_) => return,
        };
        if self.asked {
            self.states.insert(name.clone(), state);
        }
    }

    /// Notes an unsubscribed name. `limit`: how many such names are remembered.
    pub(super) fn unsubscribe(&mut self, name: &ResourceName, limit: usize) {
        if !self.asked {
            return;
        }
        self.unconfirmed.remove(name);
        let listed = match self.states.get(name) {
            Some(State::New) => None,
            Some(State::Settled) => Some(false),
            Some(State::Relisting(relisting)) => Some(relisting.is_listed()),
            _ => Some(true),
        };
        match listed {
            Some(true) => _ = self.states.insert(name.clone(), State::Leaving),
            Some(false) | None => _ = self.states.remove(name),
        }
        if listed == Some(false) {
            self.note_unsubscribed(name.clone(), limit);
        }
    }

    /// Requests a subscribed name again (delta). `by_leaving`: unsubscribes first.
    pub(super) fn ask_again(&mut self, name: &ResourceName, by_leaving: bool) {
        if self.asked && matches!(self.states.get(name), None | Some(State::Again)) {
            self.states.insert(name.clone(), if by_leaving { State::Returning } else { State::Again });
        }
    }

    /// Relists a subscribed name, because the server may believe that the client has its resources (SotW). `anew`: even
    /// if the name is being relisted already.
    pub(super) fn relist(&mut self, name: &ResourceName, anew: bool) {
        let begun = match self.states.get(name) {
            Some(State::Relisting(_)) if !anew => return,
            Some(State::Relisting(relisting)) => Relisting::omit(relisting.is_listed()),
            Some(_) => Relisting::omit(false),
            None => Relisting::BEGIN,
        };
        if self.asked {
            self.unconfirmed.remove(name);
            self.states.insert(name.clone(), State::Relisting(begun));
        }
    }

    // Events of the stream.

    /// Drops the complete state at the end of the stream.
    pub(super) fn leave_stream(&mut self) {
        *self = Self::default();
    }

    /// Notes that a request of the type was sent; the first one announces all subscribed names.
    pub(super) fn note_asked(&mut self) {
        self.asked = true;
    }

    /// Settles the names that are being relisted and that `settles` picks for a response. Returns the names whose
    /// timers restart: a timer had run out once, or belonged to the subscription before.
    pub(super) fn settle(&mut self, settles: impl Fn(&ResourceName) -> bool) -> Vec<ResourceName> {
        let (unconfirmed, mut again) = (&mut self.unconfirmed, Vec::new());
        self.states.retain(|name, state| {
            let State::Relisting(relisting) = *state else { return true };
            if !settles(name) {
                return true;
            }
            let unanswered = relisting.last || relisting.stage == (Stage::Omit { listed: true });
            again.extend(unanswered.then(|| name.clone()));
            *state = State::Settled;
            if relisting.is_listed() {
                unconfirmed.insert(name.clone(), true); // the request may have crossed the response
            }
            !relisting.is_listed()
        });
        again
    }

    /// Notes that a response mentions a name: the server must have received it, unless the response may answer an
    /// earlier request that had the name. Then no response of this stream confirms it, because a server may send several
    /// before it reads the next request.
    pub(super) fn confirm(&mut self, name: &ResourceName) {
        if self.unconfirmed.get(name) == Some(&false) {
            self.unconfirmed.remove(name);
        }
    }

    /// Returns whether a mention confirms any name.
    pub(super) fn awaits_mention(&self) -> bool {
        self.unconfirmed.values().any(|listed_before| !listed_before)
    }

    /// Returns whether a response may answer only names that were listed after the first request.
    pub(super) fn has_unconfirmed(&self) -> bool {
        !self.unconfirmed.is_empty()
    }

    /// Handles the time-out of a name. Returns whether the name is requested once more.
    pub(super) fn time_out(&mut self, name: &ResourceName) -> bool {
        let Some(State::Relisting(relisting)) = self.states.get_mut(name) else { return false };
        if !relisting.last {
            *relisting = Relisting { last: true, ..Relisting::omit(relisting.is_listed()) };
            return true;
        }
        if relisting.reopened < REOPENINGS {
            return false; // a newer response, which the requests may have crossed, is still a reason to relist the name
        }
        if relisting.is_listed() {
            self.states.remove(name);
            self.unconfirmed.insert(name.clone(), true);
        } else {
            self.states.insert(name.clone(), State::Settled); // the name must be listed all the same
        }
        false
    }

    // Requests.

    /// Returns the names of the next SotW request, which answers response `under`; `serial` is the newest response.
    /// `limit`: how many unsubscribed names are remembered.
    pub(super) fn list<'a>(
        &mut self,
        wanted: impl ExactSizeIterator<Item = &'a ResourceName>,
        under: u64,
        serial: u64,
        limit: usize,
    ) -> List {
        if !self.asked {
            return List { names: wanted.cloned().collect(), news: None };
        }
        let current = under == serial;
        let (mut names, mut news) = (Vec::with_capacity(wanted.len()), Vec::new());
        let limit = limit.max(wanted.len());
        if self.states.is_empty() {
            names.extend(wanted.cloned());
            return List { names, news: Some(news) };
        }
        for name in wanted {
            match self.states.get_mut(name) {
                Some(State::Relisting(relisting)) => {
                    let out = relisting.is_left_out(serial, current);
                    match (out, relisting.stage) {
                        (true, Stage::Omit { .. }) if !current => relisting.stage = Stage::Omit { listed: false },
                        (true, stage) if current => {
                            relisting.reopened += u8::from(!matches!(stage, Stage::Omit { .. }));
                            relisting.stage = Stage::Omitted { under: serial };
                        }
                        (false, stage) if current => {
                            if matches!(stage, Stage::Omitted { .. }) {
                                news.push(name.clone());
                            }
                            relisting.stage = Stage::Relisted { under: serial };
                        }
                        _ => {}
                    }
                    if out {
                        continue;
                    }
                }
                Some(state @ (State::New | State::Settled)) => {
                    self.unconfirmed.insert(name.clone(), *state == State::Settled);
                    self.states.remove(name);
                    news.push(name.clone());
                }
                Some(_) | None => {}
            }
            names.push(name.clone());
        }
        let leaving = self.states.iter().filter(|(_, state)| **state == State::Leaving);
        for name in leaving.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.states.remove(&name);
            self.note_unsubscribed(name, limit);
        }
        List { names, news: Some(news) }
    }

    /// Returns the number of subscribed names that the next SotW request leaves out.
    pub(super) fn left_out(&self, under: u64, serial: u64) -> usize {
        let relisting = self.relisting().map(|(_, relisting)| relisting);
        relisting.filter(|relisting| relisting.is_left_out(serial, under == serial)).count()
    }

    /// Returns the names that the last SotW request listed.
    pub(super) fn last_listed<'a>(&'a self, wanted: impl Iterator<Item = &'a ResourceName>) -> Vec<ResourceName> {
        let leaving = self.states.iter().filter(|(_, state)| **state == State::Leaving).map(|(name, _)| name);
        let mut names: Vec<ResourceName> =
            wanted.filter(|name| self.is_listed(name.as_str())).chain(leaving).cloned().collect();
        names.sort_unstable();
        names
    }

    /// Returns the names that a delta request subscribes to and unsubscribes from. The wildcard is announced before the
    /// names that it takes over ([design rule 12](crate::manual::rules#rule-12)); a returning name is unsubscribed now
    /// and subscribed to in the next request ([design rule 3](crate::manual::rules#rule-3)). So is a collection, alone,
    /// before names that it takes over: between the requests, the server would forget what it sent for these.
    pub(super) fn take_changes(&mut self) -> (Vec<ResourceName>, Vec<ResourceName>) {
        let leaves = |state: &State| matches!(state, State::Leaving | State::Returning);
        if self.states.get(WILDCARD) == Some(&State::New) && self.states.values().any(leaves) {
            return (self.states.remove_entry(WILDCARD).into_iter().map(|(name, _)| name).collect(), Vec::new());
        }
        let returning = self.states.iter().filter(|(_, state)| **state == State::Returning).map(|(name, _)| name);
        let many: Vec<ResourceName> = returning.filter(|name| name.is_wildcard() || name.is_glob()).cloned().collect();
        let takes_over = |many: &ResourceName| {
            let covers = |name: &ResourceName| many.is_wildcard() || is_member(many.as_str(), name.as_str());
            let leaves = |(name, state): (&ResourceName, &State)| match state {
                State::Leaving => covers(name),
                State::Returning => name.is_glob() && many.is_wildcard(),
                _ => false,
            };
            self.states.iter().any(leaves)
        };
        if let Some(first) = many.into_iter().find(takes_over) {
            self.states.insert(first.clone(), State::New);
            return (Vec::new(), Vec::from([first]));
        }
        let (mut subscribe, mut again, mut unsubscribe) = (Vec::new(), Vec::new(), Vec::new());
        self.states.retain(|name, state| {
            match state {
                State::New => subscribe.push(name.clone()),
                State::Again => again.push(name.clone()),
                State::Leaving | State::Returning => unsubscribe.push(name.clone()),
                State::Relisting(_) | State::Settled => {}
            }
            let returns = *state == State::Returning;
            *state = State::New;
            returns
        });
        subscribe.append(&mut again);
        (subscribe, unsubscribe)
    }

    // Queries.

    /// Returns whether a request of the type was sent on this stream.
    #[inline]
    pub(super) fn asked(&self) -> bool {
        self.asked
    }

    /// Returns whether a request is due after the first one; `serial` is the newest response.
    pub(super) fn has_news(&self, serial: u64) -> bool {
        self.states.values().any(|state| match state {
            State::Relisting(relisting) => match relisting.stage {
                Stage::Relisted { under } => relisting.reopens(under, serial),
                Stage::Omit { .. } | Stage::Omitted { .. } => true,
            },
            _ => true,
        })
    }

    /// Returns whether the server knows a subscribed name from the requests up to the last one.
    pub(super) fn is_listed(&self, name: &str) -> bool {
        self.asked
            && match self.states.get(name) {
                None | Some(State::Again) => true,
                Some(State::Relisting(relisting)) => relisting.is_listed(),
                Some(State::New | State::Settled | State::Leaving | State::Returning) => false,
            }
    }

    /// Returns whether the server may know a subscribed name, from the current subscription or an earlier one (SotW).
    pub(super) fn may_be_known(&self, name: &str) -> bool {
        self.asked && (self.states.get(name) != Some(&State::New) || self.is_any_back())
    }

    /// Returns whether a subscribed name is being relisted.
    pub(super) fn is_relisting(&self, name: &str) -> bool {
        matches!(self.states.get(name), Some(State::Relisting(_)))
    }

    /// Returns whether the last request listed a name, which is not being relisted.
    pub(super) fn is_settled_and_listed(&self, name: &str) -> bool {
        self.asked && !self.states.contains_key(name)
    }

    /// Returns whether the server had received a subscribed name when it made the last response, and was sent no change
    /// since.
    pub(super) fn is_confirmed(&self, name: &str) -> bool {
        self.asked && !self.states.contains_key(name) && !self.unconfirmed.contains_key(name)
    }

    /// Returns the names that the server may not have known when it made the last response, or forgot since.
    pub(super) fn unheard(&self) -> impl Iterator<Item = &ResourceName> {
        self.states.keys().chain(self.unconfirmed.keys())
    }

    /// Returns whether the server may send the resource of a name because it was subscribed to by that name before.
    pub(super) fn may_be_left(&self, name: &str) -> bool {
        self.left.contains(name) || self.is_leaving(name) || self.is_any_back()
    }

    /// Returns whether a subscribed name is still to be announced for the first time.
    pub(super) fn is_new(&self, name: &str) -> bool {
        !self.asked || self.states.get(name) == Some(&State::New)
    }

    /// Returns whether a name was unsubscribed, and no request has announced that yet.
    fn is_leaving(&self, name: &str) -> bool {
        self.states.get(name) == Some(&State::Leaving)
    }

    /// Returns whether the server may know any name from before: by an unsubscribed wildcard, or from a list of names
    /// that exceeded its limit.
    fn is_any_back(&self) -> bool {
        let relisting = |state: &State| match state {
            State::Relisting(relisting) => !matches!(relisting.stage, Stage::Relisted { .. }),
            state => *state == State::Leaving,
        };
        self.forgot || self.left.contains(WILDCARD) || self.states.get(WILDCARD).is_some_and(relisting)
    }

    /// Returns whether the last request had the wildcard, although the next one will not.
    fn is_wildcard_listed(&self) -> bool {
        self.states.get(WILDCARD).is_some_and(|state| match state {
            State::Relisting(relisting) => relisting.is_listed(),
            state => *state == State::Leaving,
        })
    }

    fn relisting(&self) -> impl Iterator<Item = (&ResourceName, &Relisting)> {
        self.states.iter().filter_map(|(name, state)| match state {
            State::Relisting(relisting) => Some((name, relisting)),
            _ => None,
        })
    }

    fn note_unsubscribed(&mut self, name: ResourceName, limit: usize) {
        self.left.insert(name);
        if self.left.len() > limit {
            self.left.clear();
            self.forgot = true;
        }
    }

    /// Visits the fields that hold numbers of the type's responses.
    pub(super) fn each_serial(&mut self, each: &mut dyn FnMut(&mut u64)) {
        for state in self.states.values_mut() {
            if let State::Relisting(Relisting { stage: Stage::Omitted { under } | Stage::Relisted { under }, .. }) =
                state
            {
                each(under);
            }
        }
    }

    /// Checks the invariants; `is_wanted` returns whether a name is subscribed to.
    pub(super) fn check(&self, is_wanted: impl Fn(&ResourceName) -> bool) -> Result<(), String> {
        ensure!(self.asked || *self == Self::default(), "something was said to a server that was asked nothing");
        for (name, state) in &self.states {
            ensure!(is_wanted(name) != (*state == State::Leaving), "{name} is {state:?}, and that is not so");
            ensure!(!self.left.contains(name), "{name} is {state:?} and left");
        }
        let astray = self.left.iter().find(|name| is_wanted(name));
        ensure!(astray.is_none(), "{astray:?} left and is wanted");
        let astray = self.unconfirmed.keys().find(|name| !is_wanted(name) || self.states.contains_key(*name));
        ensure!(astray.is_none(), "{astray:?} is listed, and is not");
        Ok(())
    }
}

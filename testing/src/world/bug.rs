//! Defects of shipped implementations, enabled one at a time: a trustworthy checker must find each.
//!
//! The defects wrap the machines, which stay unchanged: a faulty client's messages are made from those of this crate's
//! client, and a faulty server's inputs and outputs from those of this crate's server. The rows are those of the bug
//! tables in the notes on real clients (R) and servers (S).

use std::collections::{BTreeMap, BTreeSet};

use xds_machine::client::Intent;
use xds_machine::message::delta::Versions;
use xds_machine::model::{Label, Relabel};
use xds_machine::server::Server;
use xds_machine::{Nonce, ResourceName, Version, WILDCARD};

use super::Both;

/// A defect of a shipped implementation, seeded between the machines. The checker must find each.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Bug {
    // Clients.
    /// after the last unsubscription from a type, a new stream begins with an empty list of the type.
    EmptyListOnReconnect,
    /// the nonce of the old stream is sent on the new one.
    KeepsNonce,
    /// ACKs and NACKs of the old stream are sent on the new one.
    OldAnswersOnNewStream,
    /// a response in flight when the last name is unsubscribed is never answered.
    NoAnswerOnceUnwanted,
    /// the version in requests stays that of the first response.
    VersionStuck,
    /// a rejected response counts as accepted.
    ClaimsRejected,
    /// A paused type sends requests.
    IgnoresPause,
    /// a wildcard client lists its held resources on a new stream.
    ListsWhatItHolds,
    /// a resource that is no longer held is claimed on a new stream.
    ClaimsWhatItLost,
    /// unsubscriptions are not sent.
    ForgetsUnsubscribe,
    /// a first request for names lists none.
    NoNames,
    /// after a NACK, the type is not requested on the next stream.
    SilentAfterNack,
    /// a new stream begins without claimed versions.
    NoInitialVersions,
    /// the members of a collection are not claimed on a new stream.
    MembersNotTracked,
    /// a response is ACKed twice.
    AnswersTwice,
    /// Each ACK subscribes to all names again.
    AsksAgain,
    /// Nothing is read while an update waits for its verdict.
    StopsReading,
    /// Heartbeats that are read while an update of their type waits for its verdict renew nothing.
    BeatsWaitForVerdicts,
    /// A heartbeat is treated as content.
    BeatsAreContent,
    /// A resource with a TTL does not expire while there is no stream.
    KeepsExpired,
    /// one invalid resource prevents the valid ones from being applied.
    DropsTheGood,

    // Servers.
    /// S-1, S-2, S-3: a rejected response is sent again.
    ResendsRejected,
    /// The same with an application that never accepts, and without checks of single messages: livelock.
    NackLoop,
    /// S-4: unsubscribed names are not forgotten, and so are not new when they are subscribed to again.
    NeverForgetsNames,
    /// S-6: a resource that was sent before is not sent again after an unsubscription and a new subscription.
    NotSentAgain,
    /// S-8: an empty response is not sent.
    NoEmptyAnswer,
    /// S-10: types that refer to clusters are sent first.
    WrongOrder,
    /// S-11: a response is made before the server reads the request that supersedes the response.
    Superseded,
    /// S-16: the endpoints of a changed cluster are not sent again.
    NoWarmingResend,
    /// S-21: resources that were removed while the client was disconnected are not reported.
    ForgetsRemovals,
    /// S-25: only the first request with a nonce counts; others are treated as duplicates.
    OneRequestPerNonce,
    /// S-32: names on a NACK are ignored.
    IgnoresNamesOnNack,
    /// S-33: a stale request counts as an ACK or NACK.
    StaleCountsAsAnswer,
    /// A stream is closed for a request that crosses a response.
    ClosesCrossed,
    /// S-33: names after the first request are ignored.
    FirstNamesOnly,
    /// S-35, S-42: all responses have the same nonce.
    ConstantNonce,
    /// S-35: an empty list subscribes to the wildcard at any time.
    EmptyMeansAll,
    /// Each response has all earlier removals.
    RepeatsRemovals,
    /// A response of a full-state type has only changed resources.
    PartOfFullState,
    /// Heartbeats are not sent.
    SaysNoBeats,
    /// Heartbeats are not sent while a response is unanswered.
    BeatsWaitForAcks,
    /// Nothing is sent before the ACK or NACK of what it waits for.
    WaitsForEver,
    /// No type is sent while a response is unanswered, of whatever type.
    OneTypeAtATime,
    /// Other types are not sent while the first type has something to send, or an unanswered response.
    FirstTypeWins,
    /// A resource that is requested again is answered with its former content, as by a replica that is behind.
    AnswersOldContent,
    /// Each poll reads all that the source has.
    ReadsAll,
    /// A response that the transport has no room for is lost.
    NeedsRoom,
    /// Errors of resources are not sent, as by all earlier servers.
    SaysNoErrors,
}

/// The memory of a faulty side.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Faulty<V: Both> {
    nonce: Option<Nonce>,
    version: Option<Version>,
    names: BTreeSet<ResourceName>,
    held: BTreeMap<ResourceName, Version>,
    sent: BTreeMap<ResourceName, u8>,
    rejected: bool,
    asked: bool,
    late: Option<V::Request>,
    kept: Option<V::Response>,
}

impl<V: Both> Default for Faulty<V> {
    fn default() -> Self {
        Self {
            nonce: None,
            version: None,
            names: BTreeSet::new(),
            held: BTreeMap::new(),
            sent: BTreeMap::new(),
            rejected: false,
            asked: false,
            late: None,
            kept: None,
        }
    }
}

impl<V: Both> Faulty<V> {
    /// Modifies a request of the client. Returns how often the request is sent.
    pub fn client_says(&mut self, bug: Bug, wants: bool, intent: &mut Intent, request: &mut V::Request) -> usize {
        let parts = V::request_mut(request);
        let (first, answer) = (*intent == Intent::Initial, matches!(intent, Intent::Ack | Intent::Nack));
        match bug {
            Bug::EmptyListOnReconnect => self.asked = true,
            Bug::KeepsNonce if first => *parts.nonce = self.nonce.clone().unwrap_or_default(),
            Bug::NoAnswerOnceUnwanted if answer && !wants => return 0,
            Bug::VersionStuck if answer => {
                if let Some(version) = parts.version {
                    *version = self.version.get_or_insert_with(|| version.clone()).clone();
                }
            }
            Bug::ClaimsRejected if *intent == Intent::Nack => {
                if let (Some(claimed), Some(version)) = (parts.version, &self.version) {
                    *claimed = version.clone();
                }
            }
            Bug::ListsWhatItHolds if first => parts.names.extend(self.held.keys().cloned()),
            Bug::ClaimsWhatItLost if first => {
                if let Some(initial) = parts.initial {
                    let mut versions = BTreeMap::from(&*initial);
                    versions.extend(self.held.clone());
                    *initial = versions.into();
                }
            }
            Bug::ForgetsUnsubscribe => {
                let forgets = parts.unsubscribe.is_some_and(|unsubscribe| !std::mem::take(unsubscribe).is_empty());
                if forgets && parts.names.is_empty() && !first && !answer {
                    return 0;
                }
            }
            Bug::NoNames if first => parts.names.clear(),
            Bug::SilentAfterNack => {
                if first && std::mem::take(&mut self.rejected) {
                    return 0;
                }
                self.rejected |= *intent == Intent::Nack;
            }
            Bug::NoInitialVersions if first => {
                if let Some(initial) = parts.initial {
                    *initial = Versions::default();
                }
                if let Some(version) = parts.version {
                    *version = Version::default();
                }
            }
            Bug::AsksAgain if answer => parts.names.extend(self.names.iter().cloned()),
            Bug::AsksAgain => self.names.extend(parts.names.iter().cloned()),
            Bug::MembersNotTracked if first => {
                if let Some(initial) = parts.initial {
                    let named = |name: &str| parts.names.iter().any(|other| other == name);
                    *initial = initial.iter().filter(|(name, _)| named(name)).collect();
                }
            }
            Bug::AnswersTwice if answer => return 2,
            _ => {}
        }
        1
    }

    /// Returns whether a client begins a new stream with a request that the real client would not send.
    pub fn client_opens(&mut self, bug: Bug, wants: bool) -> bool {
        bug == Bug::EmptyListOnReconnect && self.asked && !wants
    }

    /// Modifies a response that the client reads.
    pub fn client_hears(&mut self, bug: Bug, response: &mut V::Response) {
        match bug {
            Bug::BeatsAreContent => V::fill_beats(response),
            Bug::KeepsNonce => self.nonce = Some(V::response(response).nonce),
            Bug::ClaimsRejected => self.version = Some(V::response(response).version),
            Bug::ClaimsWhatItLost | Bug::ListsWhatItHolds => self.held.extend(V::versions(response)),
            _ => {}
        }
    }

    /// Modifies a request to the server. Returns whether the server reads the request.
    pub fn server_hears(&mut self, bug: Bug, server: &Server<V>, request: &mut V::Request) -> bool {
        let type_url = V::request(request).type_url.clone();
        let interest = server.interest(&type_url);
        let parts = V::request_mut(request);
        match bug {
            Bug::ResendsRejected | Bug::NackLoop if parts.error.is_some() => {
                let names = interest.into_iter().flat_map(|interest| interest.names().cloned());
                let wildcard = interest.filter(|interest| interest.wildcard()).map(|_| WILDCARD.into());
                parts.names.extend(names.chain(wildcard));
            }
            Bug::NeverForgetsNames => {
                self.names.extend(parts.names.iter().cloned());
                *parts.names = self.names.iter().cloned().collect();
            }
            Bug::Superseded => {
                let late = self.late.replace(request.clone());
                let Some(late) = late else { return false };
                *request = late;
            }
            Bug::OneRequestPerNonce => {
                let again = !parts.nonce.is_empty() && self.nonce.as_ref() == Some(&*parts.nonce);
                self.nonce = Some(parts.nonce.clone());
                return !again;
            }
            Bug::IgnoresNamesOnNack if parts.error.is_some() => *parts.names = self.names.iter().cloned().collect(),
            Bug::IgnoresNamesOnNack => self.names = parts.names.iter().cloned().collect(),
            Bug::StaleCountsAsAnswer => {
                if let Some(nonce) = &self.nonce {
                    *parts.nonce = nonce.clone();
                }
            }
            Bug::FirstNamesOnly => {
                if !std::mem::replace(&mut self.asked, true) {
                    self.names = parts.names.iter().cloned().collect();
                }
                *parts.names = self.names.iter().cloned().collect();
            }
            Bug::EmptyMeansAll if parts.names.is_empty() => parts.names.push(WILDCARD.into()),
            _ => {}
        }
        true
    }

    /// Returns whether the server closes the stream for a request with another nonce than the last.
    pub fn closes(&self, request: &V::Request) -> bool {
        self.nonce.as_ref().is_some_and(|nonce| V::request(request).nonce != nonce)
    }

    /// Returns whether a request is delayed until a response was made.
    pub fn is_late(&self) -> bool {
        self.late.is_some()
    }

    /// Returns whether a response is held back.
    pub fn keeps(&self) -> bool {
        self.kept.is_some()
    }

    /// Holds a response back, in place of an earlier one.
    pub fn keep(&mut self, response: V::Response) {
        self.kept = Some(response);
    }

    /// Takes the response that was held back.
    pub fn take_kept(&mut self) -> Option<V::Response> {
        self.kept.take()
    }

    /// Takes the delayed request.
    pub fn server_hears_late(&mut self) -> Option<V::Request> {
        self.late.take()
    }

    /// Modifies a response of the server. Returns whether the response is sent.
    pub fn server_says(&mut self, bug: Bug, response: &mut V::Response) -> bool {
        let first = !std::mem::replace(&mut self.rejected, true);
        match bug {
            Bug::NoEmptyAnswer => {
                return has_content::<V>(response);
            }
            Bug::NoWarmingResend | Bug::NotSentAgain => {
                let said: BTreeMap<ResourceName, u8> = V::response(response).resources.into_iter().collect();
                V::keep(response, &mut |name| self.sent.get(name) != said.get(name));
                self.sent.extend(said);
                return bug == Bug::NotSentAgain || has_content::<V>(response);
            }
            Bug::PartOfFullState => {
                let said: BTreeMap<ResourceName, u8> = V::response(response).resources.into_iter().collect();
                V::keep(response, &mut |name| self.sent.get(name) != said.get(name));
                self.sent = said;
            }
            Bug::SaysNoBeats if !V::response(response).beats.is_empty() => {
                V::forget_beats(response);
                return has_content::<V>(response);
            }
            Bug::AnswersOldContent => {
                let former = std::mem::take(&mut self.sent);
                V::change(response, &mut |name, content| {
                    if former.get(name) == Some(&content) { 1 - content } else { content }
                });
                self.sent = V::response(response).resources.into_iter().collect();
            }
            Bug::SaysNoErrors => V::forget_errors(response),
            Bug::RepeatsRemovals => {
                let said = V::response(response);
                self.names.retain(|name| !said.resources.iter().any(|(sent, _)| sent == name));
                self.names.extend(said.removed);
                V::set_removals(response, &self.names);
            }
            Bug::ForgetsRemovals if first => V::set_removals(response, &BTreeSet::new()),
            Bug::StaleCountsAsAnswer | Bug::ClosesCrossed => self.nonce = Some(V::response(response).nonce),
            Bug::ConstantNonce => {
                *V::nonce_mut(response) = self.nonce.get_or_insert(V::response(response).nonce).clone()
            }
            _ => {}
        }
        true
    }

    /// Ends the stream; a client's memory stays.
    pub fn close(&mut self, bug: Bug) {
        match bug {
            Bug::KeepsNonce
            | Bug::ClaimsRejected
            | Bug::ClaimsWhatItLost
            | Bug::ListsWhatItHolds
            | Bug::SilentAfterNack
            | Bug::EmptyListOnReconnect => {}
            _ => *self = Self::default(),
        }
    }
}

/// Returns whether a response has a resource or a removal.
fn has_content<V: Both>(response: &V::Response) -> bool {
    let said = V::response(response);
    !said.resources.is_empty() || !said.removed.is_empty()
}

impl<V: Both> Relabel for Faulty<V> {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.nonce.relabel(by);
        self.late.iter_mut().for_each(|late| late.relabel(by));
        self.kept.iter_mut().for_each(|kept| kept.relabel(by));
    }
}

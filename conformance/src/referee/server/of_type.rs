//! What the referee knows of one type on the stream.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Rule;
use crate::resource;

/// Whether the client is subscribed to the wildcard.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Wildcard {
    #[default]
    No,
    Yes,
    /// The specification has two readings.
    Maybe,
}

/// What a faithful client would hold of a resource.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Held {
    /// Sent on this stream, with this revision if the content is the kit's.
    Sent(Option<u64>),
    /// Claimed by the kit, at a version of an earlier stream.
    Claimed(String),
}

/// The state of one type. Every uncertainty is decided in favour of the server.
#[derive(Clone, Debug, Default)]
pub(super) struct OfType {
    pub full_state: bool,
    pub wildcard: Wildcard,
    /// The names that the server knows to be wanted, once it has read all requests.
    pub names: BTreeSet<String>,
    /// SotW: the lists of stale requests, which a server may drop.
    pub maybe: Vec<BTreeSet<String>>,
    /// Names that were wanted since the last rest, and may still be sent; and whether the wildcard was.
    pub left: BTreeSet<String>,
    pub left_wildcard: bool,
    /// Whether a name was ever asked for, which ends the legacy wildcard.
    pub named: bool,
    /// SotW: whether the first request had a version, so that the server may leave out resources that it believes the
    /// client to hold.
    pub claimed: bool,
    /// The nonce that was received last, and those that the kit has not answered.
    pub last_nonce: String,
    pub unanswered: Vec<String>,
    pub held: BTreeMap<String, Held>,
    /// Names that a response must mention.
    pub owed: BTreeMap<String, Rule>,
    /// SotW: whether a request after the first was sent since the last response, so that the next response may cross
    /// it; and the names in responses that crossed such a request. To the server the request is stale then: the names
    /// that it left out may still be subscribed to.
    pub outstanding: bool,
    pub crossing: BTreeSet<String>,
    /// The reasons for a response that are not used up: of the type, for all its names, for one name.
    pub reasons: u32,
    pub reasons_for_all: u32,
    pub reasons_for: BTreeMap<String, u32>,
    /// How often each name has used the reasons for all: a response may come in parts.
    pub used_of_all: BTreeMap<String, u32>,
    /// The revision of each name at a version, on this stream.
    pub versions: BTreeMap<(String, String), u64>,
    /// The revision of each name at a version, on earlier streams.
    pub past_versions: BTreeMap<(String, String), u64>,
    /// Delta: the version of each name that was sent last.
    pub sent_versions: BTreeMap<String, String>,
    /// Whether resources have TTLs: then any resource may be repeated.
    pub beats: bool,
}

impl OfType {
    pub(super) fn new(type_url: &str) -> Self {
        Self { full_state: resource::is_full_state(type_url), ..Self::default() }
    }

    /// Returns whether the server may believe that a name is wanted.
    pub(super) fn may_want(&self, name: &str) -> bool {
        let listed = |names: &BTreeSet<String>| names.contains(name) || names.iter().any(|glob| covers(glob, name));
        self.wildcard != Wildcard::No
            || self.left_wildcard
            || listed(&self.names)
            || listed(&self.left)
            || self.maybe.iter().any(listed)
    }

    /// Returns whether the server must know that a name is wanted.
    pub(super) fn wants(&self, name: &str) -> bool {
        let sure = |names: &BTreeSet<String>| names.contains(name) || names.contains("*");
        (self.wildcard == Wildcard::Yes || self.names.contains(name)) && self.maybe.iter().all(sure)
    }

    pub(super) fn give_reason(&mut self) {
        self.reasons = self.reasons.saturating_add(1);
    }

    pub(super) fn give_reason_for(&mut self, name: &str) {
        self.give_reason();
        let reasons = self.reasons_for.entry(name.to_owned()).or_default();
        *reasons = reasons.saturating_add(1);
    }

    pub(super) fn give_reason_for_all(&mut self) {
        self.give_reason();
        self.reasons_for_all = self.reasons_for_all.saturating_add(1);
    }

    /// Uses a reason for all names, if there is one left for each name that is the same again. Returns whether there
    /// is.
    pub(super) fn use_reason_for_all(&mut self, names: &[&str], whole: bool) -> bool {
        if whole || names.is_empty() {
            let left = self.reasons_for_all.checked_sub(1);
            return left.map(|left| self.reasons_for_all = left).is_some();
        }
        let used = |name: &&&str| self.used_of_all.get(**name).copied().unwrap_or_default() >= self.reasons_for_all;
        if names.iter().any(|name| used(&name)) {
            return false;
        }
        names.iter().for_each(|name| *self.used_of_all.entry((*name).to_owned()).or_default() += 1);
        true
    }

    /// Ends the wildcard: resources that were held because of it are not held any more.
    pub(super) fn leave_wildcard(&mut self) {
        self.left_wildcard |= self.wildcard != Wildcard::No;
        self.wildcard = Wildcard::No;
        let names = &self.names;
        self.held.retain(|name, _| names.contains(name));
        // Whether a name is included in the wildcard is of no interest any more.
        self.owed.retain(|_, rule| *rule != Rule::UnsubscribedInWildcard);
    }
}

/// Returns whether a name is that of a collection (cncf/xds TP1).
pub(super) fn is_collection(name: &str) -> bool {
    name.starts_with("xdstp:") && name.ends_with('*')
}

/// Returns whether a collection has this member.
pub(super) fn covers(glob: &str, name: &str) -> bool {
    is_collection(glob) && name.starts_with(&glob[..glob.len() - 1])
}

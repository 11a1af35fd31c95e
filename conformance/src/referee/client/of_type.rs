//! What the referee of a client knows of one type on one stream.

use std::collections::BTreeSet;

use super::Merit;
use crate::message::{Request, Response, Variant};
use crate::referee::Rule;

/// The state of one type.
#[derive(Clone, Debug, Default)]
pub(super) struct OfType {
    /// The responses, in order.
    sent: Vec<Sent>,
    /// The number of responses that the client must have read: up to the last that it answered.
    read: usize,
    /// The last response that the client accepted.
    accepted: Option<usize>,
    /// Whether the client asked for the type on this stream.
    pub(super) asked: bool,
    /// SotW: the version of the first request.
    pub(super) claimed: String,
    pub(super) names: BTreeSet<String>,
    /// Whether a name was ever asked for.
    named: bool,
}

/// A response.
#[derive(Clone, Debug)]
struct Sent {
    nonce: String,
    version: String,
    merit: Merit,
    /// Names and versions.
    resources: Vec<(String, String)>,
    /// Delta: whether the response was answered, which happens once. SotW: whether a request had this nonce.
    answered: bool,
}

impl OfType {
    pub(super) fn send(&mut self, response: &Response, merit: Merit) {
        let own = |version: &String| if version.is_empty() { &response.version } else { version }.clone();
        let resources = response.resources.iter().map(|item| (item.name.clone(), own(&item.version)));
        self.sent.push(Sent {
            nonce: response.nonce.clone(),
            version: response.version.clone(),
            merit,
            resources: resources.collect(),
            answered: false,
        });
    }

    /// Leaves the verdict on bad responses without an answer open: the client may not want their resources any more.
    pub(super) fn open_unanswered(&mut self) {
        let bad = |sent: &&mut Sent| !sent.answered && matches!(sent.merit, Merit::Bad | Merit::Mixed);
        self.sent.iter_mut().filter(bad).for_each(|sent| sent.merit = Merit::Open);
    }

    pub(super) fn versions(&self) -> impl Iterator<Item = &str> {
        self.sent.iter().map(|sent| sent.version.as_str())
    }

    pub(super) fn nonces(&self) -> impl Iterator<Item = &str> {
        self.sent.iter().map(|sent| sent.nonce.as_str())
    }

    /// Returns the resources that a client may hold from this stream.
    pub(super) fn resources(&self) -> impl Iterator<Item = (String, String)> {
        self.sent.iter().filter(|sent| sent.merit != Merit::Bad).flat_map(|sent| sent.resources.clone())
    }

    /// Returns whether a response had no nonce: then requests cannot be matched to responses.
    pub(super) fn is_without_nonce(&self) -> bool {
        self.sent.iter().any(|sent| sent.nonce.is_empty())
    }

    /// Returns the nonce of the last response that has no answer.
    pub(super) fn unanswered(&self, variant: Variant) -> Option<&str> {
        if self.is_without_nonce() {
            return None;
        }
        let open = match variant {
            // A request with the last nonce also answers the responses before.
            Variant::Sotw => self.sent.get(self.read..)?.last(),
            Variant::Delta => self.sent.iter().rfind(|sent| !sent.answered),
        };
        open.map(|sent| sent.nonce.as_str())
    }

    /// Checks the nonce, the version and the error of a later request.
    pub(super) fn check_answer(
        &mut self,
        variant: Variant,
        request: &Request,
        earlier: Option<&BTreeSet<String>>,
        complain: &mut impl FnMut(Rule, String),
    ) {
        let nonce = &request.nonce;
        if self.is_without_nonce() {
            return;
        }
        if nonce.is_empty() {
            if variant == Variant::Sotw && self.read > 0 {
                complain(Rule::NonceLatest, "no nonce, after a response was answered".into());
            }
            if request.version.is_empty() {
                // A client that has dropped the type uses no version, whatever was accepted before.
                self.accepted = None;
                self.claimed.clear();
            }
            return;
        }
        let Some(at) = self.sent.iter().rposition(|sent| sent.nonce == *nonce) else {
            let what = format!("the nonce {nonce:?} was not given for this type on this stream");
            return complain(Rule::NonceUnknown, what);
        };
        let again = std::mem::replace(&mut self.sent[at].answered, true);
        let is_nack = request.error.is_some();
        let merit = self.sent[at].merit;
        if variant == Variant::Delta && again {
            complain(Rule::AnsweredTwice, format!("the response {nonce:?} is answered again"));
        }
        if variant == Variant::Sotw && at + 1 < self.read {
            complain(Rule::NonceLatest, format!("the nonce {nonce:?}, after a later one was answered"));
        }
        if variant == Variant::Sotw && again && is_nack {
            complain(Rule::ErrorAgain, format!("the error of {nonce:?} again, though the response has its answer"));
        }
        if !again && merit == Merit::Good && is_nack {
            let error = request.error.as_ref().map(|(_, message)| message.as_str()).unwrap_or_default();
            complain(Rule::GoodRejected, format!("the response {nonce:?}, which is good, has a NACK: {error}"));
        }
        if !again && matches!(merit, Merit::Bad | Merit::Mixed) && !is_nack {
            complain(Rule::BadAccepted, format!("the response {nonce:?}, which is bad, has an ACK"));
        }
        if variant == Variant::Sotw {
            self.check_version(at, again, request, earlier, complain);
        }
        self.read = self.read.max(at + 1);
        if !again && !is_nack {
            self.accepted = Some(at);
        }
    }

    /// Checks the version of a SotW request about the response at `at`.
    fn check_version(
        &self,
        at: usize,
        again: bool,
        request: &Request,
        earlier: Option<&BTreeSet<String>>,
        complain: &mut impl FnMut(Rule, String),
    ) {
        let (in_use, nonce, answered) = (&request.version, &request.nonce, &self.sent[at]);
        if request.error.is_none() && !again {
            // A client that wants nothing uses no version.
            if *in_use != answered.version && !request.names.is_empty() {
                let version = &answered.version;
                let what = format!("the ACK of {nonce:?} has the version {in_use:?}, and the response had {version:?}");
                complain(Rule::AckVersion, what);
            }
            return;
        }
        let of_earlier = |version: &String| earlier.is_some_and(|earlier| earlier.contains(version));
        // A request that only changes the names may have the version of its response or of any before; a NACK has the
        // version that was accepted last, or one whose ACK was left out.
        let from = if again { 0 } else { self.accepted.unwrap_or(0) };
        let to = at + usize::from(again || answered.merit != Merit::Bad);
        let possible = self.sent[from..to.max(from)].iter().any(|sent| sent.version == *in_use)
            || self.accepted.is_some_and(|at| self.sent[at].version == *in_use)
            || ((again || self.accepted.is_none())
                && (in_use.is_empty() || *in_use == self.claimed || of_earlier(in_use)));
        if !possible {
            complain(Rule::NackVersion, format!("the version {in_use:?}, which the client cannot use"));
        }
    }

    pub(super) fn read_names(&mut self, variant: Variant, request: &Request, first: bool) {
        match variant {
            // The legacy wildcard.
            _ if !self.named && request.names.is_empty() && (first || variant == Variant::Sotw) => {
                self.names.extend(request.unsubscribe.is_empty().then(|| "*".to_owned()));
            }
            Variant::Sotw => self.names = request.names.iter().cloned().collect(),
            Variant::Delta => {
                self.names.extend(request.names.iter().cloned());
                self.names.retain(|name| !request.unsubscribe.contains(name));
            }
        }
        self.named |= !request.names.is_empty();
    }

    /// Checks the names at a time at which nothing changes.
    pub(super) fn check_names(&self, wanted: &BTreeSet<String>, complain: &mut impl FnMut(Rule, String)) {
        let unwanted = self.names.iter().find(|name| !wanted.contains(*name));
        if let Some(name) = unwanted {
            complain(Rule::NamesUnwanted, format!("asks for {name:?}, and wants {wanted:?}"));
        }
        // A missing name is judged at the next rest: a client may unsubscribe from a name and subscribe again, to
        // receive the resource once more.
    }
}

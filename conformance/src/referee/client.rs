//! The referee of a client: one stream, both variants.

use std::collections::{BTreeMap, BTreeSet};

use super::{Complaint, Rule};
use crate::message::{Node, Request, Response, Variant};

/// The referee of a client, for one stream on which the kit is the server.
///
/// The caller reports what the kit sent ([`response`](Self::response)), what the client said
/// ([`request`](Self::request)), and the points at which the client has nothing left to say ([`rest`](Self::rest)). A
/// request may have crossed a response, so a client is never blamed for what it cannot have read.
///
/// ```
/// use xds_conformance::message::{Node, Request, Response, Variant};
/// use xds_conformance::referee::{ClientReferee, Rule};
///
/// let mut referee = ClientReferee::new(Variant::Sotw);
/// let node = Some(Node { id: "n".into(), ..Node::default() });
/// let first = Request { type_url: "t".into(), nonce: "of-another-stream".into(), node, ..Request::default() };
/// assert_eq!(referee.request(&first)[0].rule, Rule::FirstRequest);
/// ```
#[derive(Clone, Debug)]
pub struct ClientReferee {
    variant: Variant,
    node: Option<Node>,
    types: BTreeMap<String, OfType>,
    /// The versions of earlier streams, by type: a client may still use one.
    versions: BTreeMap<String, BTreeSet<String>>,
}

/// The state of one type.
#[derive(Clone, Debug, Default)]
struct OfType {
    /// The responses, in order: nonce and version.
    sent: Vec<(String, String)>,
    /// The number of responses that the client must have read: up to the last that it answered.
    read: usize,
    /// The nonces that were answered (delta: each once).
    answered: BTreeSet<String>,
    /// SotW: the version of the first request.
    claimed: String,
    names: BTreeSet<String>,
    /// Whether a name was ever asked for.
    named: bool,
}

impl ClientReferee {
    /// Makes the referee of a new stream.
    pub fn new(variant: Variant) -> Self {
        Self { variant, node: None, types: BTreeMap::new(), versions: BTreeMap::new() }
    }

    /// Makes the referee of the client's next stream.
    #[must_use]
    pub fn next(&self) -> Self {
        let mut versions = self.versions.clone();
        for (type_url, of) in &self.types {
            let sent = of.sent.iter().map(|(_, version)| version.clone());
            versions.entry(type_url.clone()).or_default().extend(sent);
        }
        Self { versions, ..Self::new(self.variant) }
    }

    /// Records a response that was sent.
    pub fn response(&mut self, response: &Response) {
        let of = self.types.entry(response.type_url.clone()).or_default();
        of.sent.push((response.nonce.clone(), response.version.clone()));
    }

    /// Judges a request that was received.
    pub fn request(&mut self, request: &Request) -> Vec<Complaint> {
        let mut complaints = Vec::new();
        let mut complain = |rule, what: String| {
            complaints.push(Complaint { rule, type_url: request.type_url.clone(), what });
        };
        match (&self.node, &request.node) {
            (None, None) => complain(Rule::Node, "the first request of the stream has no node".into()),
            (None, Some(node)) => self.node = Some(node.clone()),
            (Some(first), Some(node)) if first != node => complain(Rule::Node, "another node than before".into()),
            (Some(_), _) => {}
        }
        let first = !self.types.contains_key(&request.type_url);
        let of = self.types.entry(request.type_url.clone()).or_default();
        if request.error.is_some() && request.nonce.is_empty() {
            complain(Rule::ErrorWithoutResponse, "an error that is of no response".into());
        }
        if first {
            if !request.nonce.is_empty() {
                let what = format!("the first request of the type has the nonce {:?}", request.nonce);
                complain(Rule::FirstRequest, what);
            }
            of.claimed.clone_from(&request.version);
        } else {
            let earlier = self.versions.get(&request.type_url);
            of.check_answer(self.variant, request, earlier, &mut complain);
        }
        of.read_names(self.variant, request, first);
        complaints
    }

    /// Judges the silence: the client has read every response, and will say nothing more unless something happens.
    /// `wanted` are the names that the client is to be subscribed to, `*` among them, where the caller knows them.
    pub fn rest(&mut self, wanted: &BTreeMap<String, BTreeSet<String>>) -> Vec<Complaint> {
        let mut complaints = Vec::new();
        for (type_url, of) in &self.types {
            let mut complain = |rule, what| complaints.push(Complaint { rule, type_url: type_url.clone(), what });
            let open: Vec<&str> = match self.variant {
                // A request under the last nonce stands for those before.
                Variant::Sotw => of.sent.iter().skip(of.read).map(|(nonce, _)| nonce.as_str()).collect(),
                Variant::Delta => {
                    let open = of.sent.iter().filter(|(nonce, _)| !of.answered.contains(nonce));
                    open.map(|(nonce, _)| nonce.as_str()).collect()
                }
            };
            if let Some(nonce) = open.last() {
                complain(Rule::NotAnswered, format!("the response {nonce:?} has neither ACK nor NACK"));
            }
            if let Some(wanted) = wanted.get(type_url) {
                if *wanted != of.names {
                    complain(Rule::Names, format!("is subscribed to {:?}, and wants {wanted:?}", of.names));
                }
            }
        }
        complaints
    }
}

impl OfType {
    /// Checks the nonce, the version and the error of a later request.
    fn check_answer(
        &mut self,
        variant: Variant,
        request: &Request,
        earlier: Option<&BTreeSet<String>>,
        complain: &mut impl FnMut(Rule, String),
    ) {
        let nonce = &request.nonce;
        if nonce.is_empty() {
            if variant == Variant::Sotw && self.read > 0 {
                complain(Rule::NonceLatest, "no nonce, after a response was answered".into());
            }
            return;
        }
        let Some(at) = self.sent.iter().rposition(|(other, _)| other == nonce) else {
            return complain(
                Rule::NonceUnknown,
                format!("the nonce {nonce:?} was not given for this type on this stream"),
            );
        };
        let again = !self.answered.insert(nonce.clone());
        let (_, version) = &self.sent[at];
        if variant == Variant::Delta {
            if again {
                complain(Rule::AnsweredTwice, format!("the response {nonce:?} is answered again"));
            }
            self.read = self.read.max(at + 1);
            return;
        }
        if at + 1 < self.read {
            complain(Rule::NonceLatest, format!("the nonce {nonce:?}, after a later one was answered"));
        }
        self.read = self.read.max(at + 1);
        // A NACK, and a request that changes the names only, have a version in use: any of those so far.
        let in_use = &request.version;
        let possible = in_use.is_empty()
            || *in_use == self.claimed
            || self.sent[..=at].iter().any(|(_, sent)| sent == in_use)
            || earlier.is_some_and(|earlier| earlier.contains(in_use));
        if request.error.is_none() && !again && in_use != version {
            let what = format!("the ACK of {nonce:?} has the version {in_use:?}, and the response had {version:?}");
            complain(Rule::AckVersion, what);
        } else if !possible {
            complain(Rule::NackVersion, format!("the version {in_use:?} was never given for this type"));
        }
    }

    fn read_names(&mut self, variant: Variant, request: &Request, first: bool) {
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
        self.named |= !request.names.is_empty() || (!first && !request.unsubscribe.is_empty());
    }
}

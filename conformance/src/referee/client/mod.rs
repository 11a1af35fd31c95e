//! The referee of a client: one stream, both variants.

mod of_type;

use std::collections::{BTreeMap, BTreeSet};

use self::of_type::OfType;
use super::{Complaint, Rule};
use crate::message::{Node, Request, Response, Variant};

/// The verdict that a client must give on a response.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Merit {
    /// The client may accept or reject the response.
    #[default]
    Open,
    /// Nothing is wrong with the response.
    Good,
    /// A part of the response cannot be used.
    Mixed,
    /// No part of the response can be used.
    Bad,
}

/// Names by type.
pub type Wanted = BTreeMap<String, BTreeSet<String>>;

/// The referee of a client, for one stream on which the kit is the server.
///
/// The caller reports each response of the kit ([`response`](Self::response)), each request of the client
/// ([`request`](Self::request)), and the points at which the client has nothing left to send ([`rest`](Self::rest)). A
/// request may have crossed a response, so a client is never blamed for a response that it cannot have read.
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
    /// The names that the client wants, as long as they do not change.
    settled: Option<Wanted>,
    earlier: Earlier,
    /// Whether the client may have had streams that no referee has seen.
    has_past: bool,
}

/// The state of earlier streams.
#[derive(Clone, Debug, Default)]
struct Earlier {
    /// The versions, by type: a client may still use one.
    versions: BTreeMap<String, BTreeSet<String>>,
    nonces: BTreeSet<String>,
    /// The resources that a client may hold: name and version, by type.
    resources: BTreeMap<String, BTreeSet<(String, String)>>,
}

impl ClientReferee {
    /// Makes the referee of a new stream.
    pub fn new(variant: Variant) -> Self {
        let (node, types, earlier) = (None, BTreeMap::new(), Earlier::default());
        Self { variant, node, types, settled: None, earlier, has_past: false }
    }

    /// Makes the referee of a stream of a client that may have had other streams before: the client's claims from them
    /// are not judged.
    pub fn amid(variant: Variant) -> Self {
        Self { has_past: true, ..Self::new(variant) }
    }

    /// Makes the referee of the client's next stream.
    #[must_use]
    pub fn next(&self) -> Self {
        let mut earlier = self.earlier.clone();
        for (type_url, of) in &self.types {
            let (versions, resources) = (of.versions().map(str::to_owned), of.resources());
            earlier.versions.entry(type_url.clone()).or_default().extend(versions);
            earlier.resources.entry(type_url.clone()).or_default().extend(resources);
            earlier.nonces.extend(of.nonces().filter(|nonce| !nonce.is_empty()).map(str::to_owned));
        }
        Self { earlier, settled: self.settled.clone(), ..Self::new(self.variant) }
    }

    /// Takes over the earlier streams of another referee, whose stream ended at the same time.
    pub fn learn(&mut self, other: &Self) {
        for (type_url, versions) in &other.earlier.versions {
            self.earlier.versions.entry(type_url.clone()).or_default().extend(versions.iter().cloned());
        }
        for (type_url, resources) in &other.earlier.resources {
            self.earlier.resources.entry(type_url.clone()).or_default().extend(resources.iter().cloned());
        }
        self.earlier.nonces.extend(other.earlier.nonces.iter().cloned());
    }

    /// Records a response that was sent, and that the client may accept or reject.
    pub fn response(&mut self, response: &Response) {
        self.response_with(response, Merit::Open);
    }

    /// Records a response that was sent, and the verdict that the client must give on it.
    pub fn response_with(&mut self, response: &Response, merit: Merit) {
        self.types.entry(response.type_url.clone()).or_default().send(response, merit);
    }

    /// Ends the judgement of names, because the names that the client wants are about to change.
    pub fn unsettle(&mut self) {
        self.settled = None;
    }

    /// Records that the client is about to unsubscribe from names of a type: it may do so before it reads the responses
    /// that are still on their way, and it may ignore a resource that it does not want, even a bad one.
    pub fn leaves(&mut self, type_url: &str) {
        if let Some(of) = self.types.get_mut(type_url) {
            of.open_unanswered();
        }
    }

    /// Returns whether the type was asked for on this stream.
    pub fn is_asked(&self, type_url: &str) -> bool {
        self.types.get(type_url).is_some_and(|of| of.asked)
    }

    /// Returns the names that the client is subscribed to on this stream, `*` among them.
    pub fn names(&self, type_url: &str) -> BTreeSet<String> {
        self.types.get(type_url).map(|of| of.names.clone()).unwrap_or_default()
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
        let elsewhere = |(type_url, of): (&String, &OfType)| {
            *type_url != request.type_url && of.nonces().any(|nonce| nonce == request.nonce)
        };
        let is_of_other = !request.nonce.is_empty() && self.types.iter().any(elsewhere);
        let of = self.types.entry(request.type_url.clone()).or_default();
        let first = !std::mem::replace(&mut of.asked, true);
        if request.error.is_some() && request.nonce.is_empty() && !of.is_without_nonce() {
            complain(Rule::ErrorWithoutResponse, "an error that is of no response".into());
        }
        if let Some((code, message)) = &request.error {
            if *code == 0 || message.is_empty() || message.len() >= 8 << 10 {
                let what = format!("the error has the code {code} and a message of {} bytes", message.len());
                complain(Rule::NackCode, what);
            }
        }
        if first {
            if !request.nonce.is_empty() {
                let what = format!("the first request of the type has the nonce {:?}", request.nonce);
                complain(Rule::FirstRequest, what);
            }
            let given = self.earlier.versions.get(&request.type_url);
            let is_new = !self.has_past && given.is_none_or(|given| !given.contains(&request.version));
            if !request.version.is_empty() && is_new {
                let what = format!("the first request of the type has the version {:?}, never given", request.version);
                complain(Rule::FirstRequest, what);
            }
            of.claimed.clone_from(&request.version);
        } else if is_of_other {
            complain(Rule::NonceOfOtherType, format!("the nonce {:?} was given for another type", request.nonce));
        } else if self.earlier.nonces.contains(&request.nonce) {
            complain(Rule::NonceOfOtherStream, format!("the nonce {:?} is of an earlier stream", request.nonce));
        } else {
            let earlier = self.earlier.versions.get(&request.type_url);
            of.check_answer(self.variant, request, earlier, &mut complain);
        }
        let held = self.earlier.resources.get(&request.type_url);
        if !(first && self.has_past) {
            check_claims(request, first, held, &mut complain);
        }
        of.read_names(self.variant, request, first);
        if let Some(wanted) = self.settled.as_ref().and_then(|wanted| wanted.get(&request.type_url)) {
            of.check_names(wanted, &mut complain);
        }
        complaints
    }

    /// Judges the silence: the client has read every response, and will send nothing more unless something happens.
    /// `wanted` are the names that the client is to be subscribed to, `*` among them, where the caller knows them.
    pub fn rest(&mut self, wanted: &Wanted) -> Vec<Complaint> {
        let mut complaints = Vec::new();
        for (type_url, of) in self.types.iter().filter(|(_, of)| of.asked) {
            let mut complain = |rule, what| complaints.push(Complaint { rule, type_url: type_url.clone(), what });
            if let Some(nonce) = of.unanswered(self.variant) {
                complain(Rule::NotAnswered, format!("the response {nonce:?} has neither ACK nor NACK"));
            }
            if let Some(wanted) = wanted.get(type_url) {
                if *wanted != of.names {
                    let rule = if wanted.is_subset(&of.names) { Rule::NamesUnwanted } else { Rule::Names };
                    complain(rule, format!("is subscribed to {:?}, and wants {wanted:?}", of.names));
                }
            }
        }
        self.settled = Some(wanted.clone());
        complaints
    }
}

/// Checks the versions that a client claims to hold.
fn check_claims(
    request: &Request,
    first: bool,
    held: Option<&BTreeSet<(String, String)>>,
    complain: &mut impl FnMut(Rule, String),
) {
    if !first && !request.initial.is_empty() {
        complain(Rule::ClaimsLater, "initial_resource_versions after the first request of the type".into());
        return;
    }
    // An empty version claims nothing: the client wants the resource, whatever the server believes.
    let unknown = |(name, version): &(&String, &String)| {
        !version.is_empty() && held.is_none_or(|held| !held.contains(&((*name).clone(), (*version).clone())))
    };
    if let Some((name, version)) = request.initial.iter().find(unknown) {
        complain(Rule::Claims, format!("claims {name:?} at {version:?}, which it cannot hold"));
    }
}

//! The server's side of polls: an answer is a function of the request and the source.

use alloc::collections::{BTreeMap, VecDeque};
use core::time::Duration;

use twox_hash::XxHash3_128;

use crate::error::{Code, Status};
use crate::message::sotw::Request;
use crate::name::{TypeUrl, Version};
use crate::revision::Revision;
use crate::server::snapshot::{Query, Refusal};
use crate::server::{Config, Response, Source};
use crate::time::Instant;
use crate::variant::Sotw;

/// The answer of a server to a poll. There are exactly these four.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Reply {
    /// 200, with exactly the resources that were asked for (R-REST-34).
    Response(Response<Sotw>),
    /// 304, without a body.
    NotModified,
    /// 503: the type, or a name that was asked for, is not known yet (R-REST-33).
    Unknown,
    /// 400: the request can't be answered, for this reason.
    Refused(Status),
}

/// A poll, checked against the limits of a server.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Question {
    query: Query,
    version: Version,
    /// The hash of the rejection that the client reports.
    error: Option<u128>,
    /// The version that the client rejected, if that is known.
    rejected: Option<Version>,
    /// The hash of node, type and names.
    key: u128,
}

/// Answers a poll. The driver sets the type, which is that of the path; earlier responses to the client do not matter
/// (R-REST-31).
///
/// The version of an answer is that of exactly the requested names, so that a poll with an additional name is answered,
/// even if the version of the type is the same (R-REST-32). A poll without a version is answered with a response, even
/// if that has no resources, because a client that starts waits for one (R-REST-33).
///
/// ```
/// use xds_machine::message::sotw;
/// use xds_machine::poll::{Reply, answer};
/// use xds_machine::server::{Cache, Config, Resource};
/// use xds_machine::{TypeUrl, type_url};
///
/// let clusters = TypeUrl::from(type_url::CLUSTER);
/// let mut cache = Cache::new(1);
/// cache.insert(&clusters, Resource::new("c", &b"\x0a\x01c"[..]));
///
/// let mut request = sotw::Request::new(type_url::CLUSTER);
/// let Reply::Response(response) = answer(&cache, &Config::ads(), request.clone()) else { panic!("a first poll") };
/// assert_eq!(response.resource_count(), 1);
///
/// request.version = response.version().clone();
/// assert_eq!(answer(&cache, &Config::ads(), request), Reply::NotModified);
/// ```
pub fn answer<S: Source>(source: &S, config: &Config, request: Request) -> Reply {
    Question::new(config, request).map_or_else(Reply::Refused, |question| question.answer(source))
}

impl Question {
    /// Checks a request. The nonce is ignored, because a poll is no reply to a response.
    ///
    /// # Errors
    ///
    /// Returns the status for a request that exceeds a limit, that lacks a required node, or that asks for nothing: an
    /// empty list is the wildcard only for types that have the legacy wildcard (R-REST-34).
    pub fn new(config: &Config, mut request: Request) -> Result<Self, Status> {
        let query = Query::new(config, &mut request).map_err(|refusal| match refusal {
            Refusal::Misbehaved(misbehaved) => misbehaved.into(),
            Refusal::NoNames => {
                let what = alloc::format!("a poll for {} without names asks for nothing", request.type_url);
                Status::new(Code::InvalidArgument, what)
            }
        })?;
        let error = request.error.as_ref().map(|error| XxHash3_128::oneshot(error.message.as_bytes()));
        // The key is only needed to look up a rejection.
        let id = request.node.as_ref().filter(|_| error.is_some()).map_or("", |node| node.id.as_str());
        let key = if error.is_some() { key(id, &query) } else { 0 };
        Ok(Self { query, version: request.version, error, rejected: None, key })
    }

    /// Returns the type.
    pub fn type_url(&self) -> &TypeUrl {
        self.query.type_url()
    }

    /// Returns the version that the client accepted last; empty if none.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// Answers from the current state of the source.
    pub fn answer<S: Source>(&self, source: &S) -> Reply {
        let Some(version) = self.query.version(source) else { return Reply::Unknown };
        if self.is_known_by(&version) && !self.query.expires(source) {
            return Reply::NotModified;
        }
        Reply::Response(self.query.response(source, version))
    }

    /// Returns whether the client knows this version. A client that rejected it has all that this server can give
    /// (R-REST-38).
    fn is_known_by(&self, version: &Version) -> bool {
        match &self.rejected {
            Some(rejected) => rejected == version,
            None => !self.version.is_empty() && self.version == *version,
        }
    }
}

/// A poll that is held until there is something new (R-REST-36).
///
/// A change of other names does not end the hold. Held polls do not supersede each other, whatever their node, type and
/// names (R-REST-35). Dropping a held poll changes nothing (R-REST-41).
///
/// ```
/// use core::time::Duration;
/// use xds_machine::message::sotw;
/// use xds_machine::poll::{Held, Question, Reply};
/// use xds_machine::server::{Cache, Config, Resource, Source};
/// use xds_machine::{Instant, TypeUrl, type_url};
///
/// let now = Instant::EPOCH;
/// let clusters = TypeUrl::from(type_url::CLUSTER);
/// let mut cache = Cache::new(1);
/// cache.set_known(&clusters);
/// let request = sotw::Request { version: cache.version(&clusters), ..sotw::Request::new(type_url::CLUSTER) };
/// let question = Question::new(&Config::ads(), request).expect("within the limits");
///
/// let mut held = Held::new(question, now, Duration::from_millis(1800));
/// assert_eq!(held.poll(now, &cache), None);
/// cache.insert(&clusters, Resource::new("c", &b"\x0a\x01c"[..]));
/// assert!(matches!(held.poll(now, &cache), Some(Reply::Response(_))));
/// ```
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Held {
    question: Question,
    until: Instant,
    /// The revision of the source when there was nothing new.
    seen: Option<(u64, Revision)>,
    /// Whether there was nothing known at that time, instead of nothing new.
    unknown: bool,
}

impl Held {
    /// Holds a poll for at most this time. If it is zero, the first call of [`poll`](Self::poll) returns the answer.
    pub fn new(question: Question, now: Instant, hold: Duration) -> Self {
        Self { question, until: now + hold, seen: None, unknown: false }
    }

    /// Returns the answer, if there is something new, or if the hold is over. A driver calls this at the beginning,
    /// after each change of the source, and at [`poll_timeout`](Self::poll_timeout).
    pub fn poll<S: Source>(&mut self, now: Instant, source: &S) -> Option<Reply> {
        let revision = self.question.query.revision(source);
        if self.seen != Some(revision) || self.unknown {
            let reply = self.question.answer(source);
            self.unknown = reply == Reply::Unknown; // a type may become known without a revision
            if !matches!(reply, Reply::NotModified | Reply::Unknown) {
                return Some(reply);
            }
            self.seen = Some(revision);
        }
        if now < self.until {
            return None;
        }
        Some(if self.unknown { Reply::Unknown } else { Reply::NotModified })
    }

    /// Returns the time at which the hold is over.
    pub fn poll_timeout(&self) -> Instant {
        self.until
    }

    /// Returns the poll.
    pub fn question(&self) -> &Question {
        &self.question
    }
}

/// Returns how long a poll may be held if its client gives it up after `expected` (`x-envoy-expected-rq-timeout-ms`): a
/// tenth less, and at least 50 ms less (R-REST-37).
pub fn hold(expected: Duration) -> Duration {
    const MARGIN: Duration = Duration::from_millis(50);
    expected.saturating_sub(MARGIN.max(expected / 10))
}

/// The versions that clients were sent last, so that no client is sent again what it has rejected (R-REST-38).
///
/// A poll has the version that was accepted last, and not the one that was rejected. A server that takes the current
/// version for the rejected one never sends what changed since, and a server that takes the last response for it never
/// sends again what was lost on the way. So the last response counts as rejected if it answered a poll without a
/// rejection, or with another rejection; otherwise it may be lost, and is sent again after one poll, two, four, ..
///
/// This only saves work: a server that has forgotten, or another replica, answers by the version in the poll.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Offers {
    limit: usize,
    last: BTreeMap<u128, Offer>,
    /// The keys in the order in which they were inserted, the oldest first.
    order: VecDeque<u128>,
}

/// The response that a client was sent last.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Offer {
    version: Version,
    /// The rejection in the poll that the response answered.
    error: Option<u128>,
    /// The number of later polls that report the same rejection.
    doubts: u32,
}

impl Offers {
    /// Creates an empty memory of at most this many polls. Beyond the limit, the oldest poll is forgotten.
    pub fn new(limit: usize) -> Self {
        Self { limit, last: BTreeMap::new(), order: VecDeque::new() }
    }

    /// Sets the version that the client of a poll has rejected, if the poll reports a rejection whose version is known.
    pub fn recall(&mut self, question: &mut Question) {
        if question.error.is_none() {
            return;
        }
        let Some(offer) = self.last.get_mut(&question.key) else { return };
        if offer.error == question.error {
            offer.doubts = offer.doubts.saturating_add(1);
            if offer.doubts.is_power_of_two() {
                question.rejected = Some(Version::default()); // a version that the source never has
                return;
            }
        }
        question.rejected = Some(offer.version.clone());
    }

    /// Notes the response to a poll of the client with this node id.
    pub fn note(&mut self, node: &str, question: &Question, response: &Response<Sotw>) {
        if self.limit == 0 {
            return;
        }
        let (key, error) = (key(node, &question.query), question.error);
        let version = response.version().clone();
        match self.last.get_mut(&key) {
            // The same response was sent again, and is in doubt as before.
            Some(offer) if offer.version == version && offer.error == error => {}
            Some(offer) => *offer = Offer { version, error, doubts: 0 },
            None => {
                self.last.insert(key, Offer { version, error, doubts: 0 });
                self.order.push_back(key);
            }
        }
        while self.order.len() > self.limit {
            if let Some(oldest) = self.order.pop_front() {
                self.last.remove(&oldest);
            }
        }
    }
}

fn key(node: &str, query: &Query) -> u128 {
    let mut key = XxHash3_128::oneshot(node.as_bytes());
    for part in [query.type_url().as_str()].into_iter().chain(query.names().iter().map(|name| name.as_str())) {
        let both = [key.to_le_bytes(), XxHash3_128::oneshot(part.as_bytes()).to_le_bytes()];
        key = XxHash3_128::oneshot(both.as_flattened());
    }
    key
}

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
    /// The hash of what the client reports of a rejection.
    error: Option<u128>,
    /// The version that the client rejected, if that is known.
    rejected: Option<Version>,
    /// The hash of node, type and names.
    key: u128,
}

/// Answers a poll: the type is that of the path, whatever the client was sent before (R-REST-31).
///
/// The version of an answer is of the names that were asked for, so that a poll with one name more is answered at the
/// same version of the type (R-REST-32). A poll without a version is answered with a response, even if that has no
/// resources, because a client that starts waits for one (R-REST-33).
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
    /// Checks a request. The nonce is not looked at: a poll answers nothing.
    ///
    /// # Errors
    ///
    /// Returns the status of a request that exceeds a limit, that lacks the node where one is required, or that asks for
    /// nothing: an empty list is the wildcard only for types that have the legacy wildcard (R-REST-34).
    pub fn new(config: &Config, mut request: Request) -> Result<Self, Status> {
        let query = Query::new(config, &mut request).map_err(|refusal| match refusal {
            Refusal::Misbehaved(misbehaved) => misbehaved.into(),
            Refusal::NoNames => {
                let what = alloc::format!("a poll for {} without names asks for nothing", request.type_url);
                Status::new(Code::InvalidArgument, what)
            }
        })?;
        let error = request.error.as_ref().map(|error| XxHash3_128::oneshot(error.message.as_bytes()));
        // Only a rejection is looked up by it.
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

    /// Answers from the source as it is.
    pub fn answer<S: Source>(&self, source: &S) -> Reply {
        let Some(version) = self.query.version(source) else { return Reply::Unknown };
        if self.is_known_by(&version) && !self.query.expires(source) {
            return Reply::NotModified;
        }
        Reply::Response(self.query.response(source, version))
    }

    /// Returns whether the client was sent this version. One that rejected it has all that this server can give
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
/// names (R-REST-35). Dropping one changes nothing (R-REST-41).
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
    /// What the source was when there was nothing new.
    seen: Option<(u64, Revision)>,
    /// What it was then: nothing new, or nothing known.
    unknown: bool,
}

impl Held {
    /// Holds a poll for as long as this. Zero answers it at the first look.
    pub fn new(question: Question, now: Instant, hold: Duration) -> Self {
        Self { question, until: now + hold, seen: None, unknown: false }
    }

    /// Returns the answer, if it is time: there is something new, or the hold is over. To be called at first, after each
    /// change of the source, and at [`poll_timeout`](Self::poll_timeout).
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

/// Returns how long a poll may be held whose client gives it up after `expected` (`x-envoy-expected-rq-timeout-ms`): a
/// tenth less, and at least 50 ms (R-REST-37).
pub fn hold(expected: Duration) -> Duration {
    const MARGIN: Duration = Duration::from_millis(50);
    expected.saturating_sub(MARGIN.max(expected / 10))
}

/// The versions that clients were sent last, so that one that rejects is not sent the same content again (R-REST-38).
///
/// A poll says which version was accepted last, and not which was rejected. A server that assumes that the current one
/// was rejected never sends what changed since, and one that assumes it of the last response never sends again what was
/// lost on the way. So the last response counts as rejected if it went to a poll without a rejection, or to one with
/// another; otherwise it may be lost, and is sent again after one poll, two, four, ..
///
/// It is no more than a help: a server that has forgotten, or another replica, answers by the version that the poll says.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Offers {
    limit: usize,
    last: BTreeMap<u128, Offer>,
    /// The keys in the order in which they came, the oldest first.
    order: VecDeque<u128>,
}

/// What a client was sent last.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Offer {
    version: Version,
    /// The rejection that the client reported then.
    error: Option<u128>,
    /// Polls since that report the same rejection.
    doubts: u32,
}

impl Offers {
    /// Creates an empty memory of at most so many polls. Beyond the limit, the oldest is forgotten.
    pub fn new(limit: usize) -> Self {
        Self { limit, last: BTreeMap::new(), order: VecDeque::new() }
    }

    /// Tells a poll which version its client has rejected, if it rejects one and that is known.
    pub fn recall(&mut self, question: &mut Question) {
        if question.error.is_none() {
            return;
        }
        let Some(offer) = self.last.get_mut(&question.key) else { return };
        if offer.error == question.error {
            offer.doubts = offer.doubts.saturating_add(1);
            if offer.doubts.is_power_of_two() {
                question.rejected = Some(Version::default()); // nothing that the source has
                return;
            }
        }
        question.rejected = Some(offer.version.clone());
    }

    /// Notes what a client of this node id was sent.
    pub fn note(&mut self, node: &str, question: &Question, response: &Response<Sotw>) {
        if self.limit == 0 {
            return;
        }
        let (key, error) = (key(node, &question.query), question.error);
        let version = response.version().clone();
        match self.last.get_mut(&key) {
            // Sent again, and in doubt as before.
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

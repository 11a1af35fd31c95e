//! The actions of a poll for its application, its requests, and the answers to them.

use alloc::string::String;
use alloc::vec::Vec;

use crate::client;
use crate::message::sotw;
use crate::model::{Label, Relabel};
use crate::name::ResourceName;

/// A report of a [`Poll`](super::Poll) to its application.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// What a client on a stream reports: an update to judge, resources that do not exist, a response that is rejected,
    /// and so on.
    Client(client::Action),
    /// A poll failed: the status is neither 200 nor 304, the connection broke, or the time-out passed. Held resources
    /// stay, and the next poll is due as after any other outcome (R-REST-12).
    Failed {
        /// Why there is no answer.
        reason: String,
    },
    /// The first response did not arrive in time (R-REST-11). The application need not wait any longer; polls go on. An
    /// action that reports each name as nonexistent, or an error for each name, precedes this one
    /// ([`client::Config::with_transient_timeout`]).
    TimedOut {
        /// The subscribed names of which nothing is known; [`WILDCARD`](crate::WILDCARD) stands for all resources.
        names: Vec<ResourceName>,
    },
}

/// A request to post. Fields may be added.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[must_use = "the machine waits for its answer"]
#[non_exhaustive]
pub struct Transmit {
    /// The path to post to: `/v3/discovery:..`.
    pub path: &'static str,
    /// The request, to be written as canonical JSON.
    pub request: sotw::Request,
    /// The token of the request, which the driver passes back with the answer.
    pub asked: Asked,
}

/// The token of a request, which distinguishes its answer from the answers to other requests.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Asked(pub(super) u64);

/// The answer to a request. There are exactly these four.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Answer {
    /// 200, and the body is a `DiscoveryResponse`. `{}` is one.
    Response(sotw::Response),
    /// 200 without a `DiscoveryResponse`, for this reason, such as an empty body (R-REST-13). Counts as rejected.
    Malformed(String),
    /// 304: there is nothing new.
    NotModified,
    /// Any other status, or no answer, for this reason.
    Failed(String),
}

/// The numbers of polls so far, by outcome, as Envoy counts them.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Counters {
    /// Requests that were made.
    pub attempts: u64,
    /// Responses that were accepted. "Not modified" does not count.
    pub successes: u64,
    /// Responses that were rejected, or malformed.
    pub rejected: u64,
    /// Requests that failed: any other status, or no answer.
    pub failures: u64,
}

impl Relabel for Action {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        match self {
            Self::Client(action) => action.relabel(by),
            Self::Failed { .. } | Self::TimedOut { .. } => {}
        }
    }
}

impl Relabel for Asked {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        by(Label::Attempt(&mut self.0));
    }
}

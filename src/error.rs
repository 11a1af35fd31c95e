//! Errors, split by culprit.

use alloc::string::{String, ToString};
use core::fmt;
use core::time::Duration;

use crate::load::Excess;
use crate::name::{ResourceName, TypeUrl};
use crate::xdstp;

/// The reason why an input was refused. The machine is unchanged.
///
/// These two culprits are the only ones, so a driver may match both. A driver that only ends the stream converts either
/// into a [`Status`].
///
#[doc = include_str!("bad_input.md")]
#[derive(Clone, Debug, Eq, Hash, PartialEq, thiserror::Error)]
pub enum Error {
    /// The caller used the machine in a way that the machine does not support: a bug of the caller.
    #[error("misuse of the machine: {0}")]
    Caller(#[from] Misuse),
    /// The peer broke the protocol in a way that can't be answered: close the stream with [`PeerMisbehaved::code`], or
    /// with the [`Status`] made from this error.
    #[error("peer misbehaved: {0}")]
    Peer(#[from] PeerMisbehaved),
}

/// A violation of the protocol by the peer. Each variant carries the offending value and, for a limit, the limit.
#[derive(Clone, Debug, Eq, Hash, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerMisbehaved {
    /// A resource name is empty.
    #[error("empty resource name in a request for {type_url}")]
    EmptyName {
        /// The type of the message.
        type_url: TypeUrl,
    },
    /// The first request of the stream has no node id, and the configuration requires one.
    #[error("the first request on a stream must carry a node with an id")]
    MissingNode,
    /// A request on an aggregated stream has no type URL.
    #[error("type_url is required on an aggregated stream")]
    MissingTypeUrl,
    /// A resource name is too long.
    #[error("resource name of {len} bytes in a request for {type_url}, limit {limit}")]
    NameTooLong {
        /// The type of the message.
        type_url: TypeUrl,
        /// The length of the name in bytes.
        len: usize,
        /// The limit that the configuration sets.
        limit: usize,
    },
    /// A nonce is too long to be echoed.
    #[error("nonce of {len} bytes in a response for {type_url}, limit {limit}")]
    NonceTooLong {
        /// The type of the message.
        type_url: TypeUrl,
        /// The length of the nonce in bytes.
        len: usize,
        /// The limit that the configuration sets.
        limit: usize,
    },
    /// The names and versions in `initial_resource_versions`, summed over all types, are too long.
    #[error("initial_resource_versions of {len} bytes on one stream, limit {limit}")]
    TooManyInitialVersionBytes {
        /// The bytes including this request.
        len: usize,
        /// The limit that the configuration sets.
        limit: usize,
    },
    /// A load report, or the answer to one, has too many items of a kind.
    #[error("{count} {what} in load reporting, limit {limit}")]
    TooMuchLoad {
        /// The kind of item.
        what: Excess,
        /// The number of items.
        count: usize,
        /// The limit that the configuration sets.
        limit: usize,
    },
    /// `initial_resource_versions` has too many entries.
    #[error("{count} initial_resource_versions for {type_url}, limit {limit}")]
    TooManyInitialVersions {
        /// The type of the message.
        type_url: TypeUrl,
        /// The number of entries in the request.
        count: usize,
        /// The limit that the configuration sets.
        limit: usize,
    },
    /// The subscribed names of the stream, summed over all types, are too long.
    #[error("subscribed names of {len} bytes on one stream, limit {limit}")]
    TooManyNameBytes {
        /// The bytes including this request.
        len: usize,
        /// The limit that the configuration sets.
        limit: usize,
    },
    /// A type has too many subscribed names.
    #[error("{count} subscribed names of {type_url}, limit {limit}")]
    TooManyNames {
        /// The type of the message.
        type_url: TypeUrl,
        /// The number of names including this request.
        count: usize,
        /// The limit that the configuration sets.
        limit: usize,
    },
    /// The stream has too many subscribed names, counted over all types.
    #[error("{count} subscribed names on one stream, limit {limit}")]
    TooManyNamesOnStream {
        /// The number of names including this request.
        count: usize,
        /// The limit that the configuration sets.
        limit: usize,
    },
    /// The stream has too many types.
    #[error("more than {limit} resource types on one stream")]
    TooManyTypes {
        /// The limit that the configuration sets.
        limit: usize,
    },
    /// A type URL is too long.
    #[error("type_url of {len} bytes, limit {limit}")]
    TypeUrlTooLong {
        /// The length of the type URL in bytes.
        len: usize,
        /// The limit that the configuration sets.
        limit: usize,
    },
    /// A version is too long.
    #[error("version of {len} bytes in a message for {type_url}, limit {limit}")]
    VersionTooLong {
        /// The type of the message.
        type_url: TypeUrl,
        /// The length of the version in bytes.
        len: usize,
        /// The limit that the configuration sets.
        limit: usize,
    },
    /// A request is for a type other than that of the stream.
    #[error("request for {got} on a stream of {expected}")]
    WrongType {
        /// The type that the stream serves.
        expected: TypeUrl,
        /// The type of the request.
        got: TypeUrl,
    },
}

impl PeerMisbehaved {
    /// Returns the gRPC status code to close the stream with.
    pub fn code(&self) -> Code {
        match self {
            Self::EmptyName { .. } | Self::MissingNode | Self::MissingTypeUrl | Self::WrongType { .. } => {
                Code::InvalidArgument
            }
            Self::NameTooLong { .. }
            | Self::NonceTooLong { .. }
            | Self::TooManyInitialVersionBytes { .. }
            | Self::TooManyInitialVersions { .. }
            | Self::TooManyNameBytes { .. }
            | Self::TooManyNames { .. }
            | Self::TooManyNamesOnStream { .. }
            | Self::TooManyTypes { .. }
            | Self::TooMuchLoad { .. }
            | Self::TypeUrlTooLong { .. }
            | Self::VersionTooLong { .. } => Code::ResourceExhausted,
        }
    }
}

/// A mistake of the caller.
#[derive(Clone, Debug, Eq, Hash, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Misuse {
    /// As many actions wait to be polled as the configuration allows.
    #[error("{limit} actions wait to be polled")]
    ActionsWaiting {
        /// The limit that the configuration sets.
        limit: usize,
    },
    /// More calls to a cluster have ended than were started.
    #[error("a call to {cluster} has ended that was not started")]
    CallNotStarted {
        /// The cluster of the call.
        cluster: ResourceName,
    },
    /// A resource name to subscribe to is empty.
    #[error("a resource name must not be empty")]
    EmptyName,
    /// The loads of a cluster are not counted: the entry was released, or another machine made it.
    #[error("no loads are counted for {cluster}")]
    NoEntry {
        /// The cluster of the entry.
        cluster: ResourceName,
    },
    /// No message is under way that the transport could give back.
    #[error("no load report is under way")]
    NoReport,
    /// No server is configured for the authority of a name.
    #[error("no server is configured for {name}")]
    NoServer {
        /// The resource name that was refused.
        name: ResourceName,
    },
    /// A structured name has directives (TP1): directives tell the client how to find the resource, and are never sent.
    #[error("{name} is a locator: what may be asked for has no directives")]
    Locator {
        /// The resource name that was refused.
        name: ResourceName,
    },
    /// A structured name can't be parsed.
    #[error("{name}: {reason}")]
    MalformedName {
        /// The resource name that was refused.
        name: ResourceName,
        /// The error of the parser.
        reason: xdstp::Error,
    },
    /// A structured name belongs to a resource of another type.
    #[error("{name} is no name of a {type_url}")]
    NameOfOtherType {
        /// The resource name that was refused.
        name: ResourceName,
        /// The type that was subscribed to.
        type_url: TypeUrl,
    },
    /// No stream is open that a response could have come from.
    #[error("no stream is open")]
    NoStream,
    /// The type can't be polled over REST: it has no path.
    #[error("{type_url} can't be polled: it has no path")]
    NoRestPath {
        /// The type that was refused.
        type_url: TypeUrl,
    },
    /// The type is not paused.
    #[error("{type_url} is not paused")]
    NotPaused {
        /// The type of the call.
        type_url: TypeUrl,
    },
    /// More responses, counted over all types, wait for a verdict than the configuration allows: read the stream only
    /// while `wants_response` returns `true`.
    #[error("{limit} responses of the stream wait for a verdict")]
    ResponsesWaitingOnStream {
        /// The limit that the configuration sets.
        limit: usize,
    },
    /// The loads of more items of a kind would be counted than the configuration allows.
    #[error("the loads of more than {limit} {what}")]
    TooMuchLoad {
        /// The kind of item.
        what: Excess,
        /// The limit that the configuration sets.
        limit: usize,
    },
    /// The delay between two polls is too short: the random addition to it is at most the delay itself, and a poll
    /// without a pause floods its server.
    #[error("a refresh delay of {delay:?}, which must be at least 1ms")]
    RefreshDelay {
        /// The delay that was refused.
        delay: Duration,
    },
    /// The time-out of a poll is zero.
    #[error("a request time-out must be longer than zero")]
    RequestTimeout,
    /// The update of the verdict is not in flight: it already had a verdict, or another machine emitted it.
    #[error("no update for {type_url} waits for this verdict")]
    UnknownUpdate {
        /// The type of the verdict.
        type_url: TypeUrl,
    },
}

/// The gRPC status codes that the machines use. More may be added.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Code {
    /// 3: the message is invalid, whatever the state of the system.
    InvalidArgument,
    /// 5: the resource does not exist.
    NotFound,
    /// 7: the client is not permitted to have the resource.
    PermissionDenied,
    /// 8: a limit is exceeded.
    ResourceExhausted,
    /// 13: a bug of this side.
    Internal,
    /// 14: the peer is unavailable now; a later attempt may succeed.
    Unavailable,
}

impl Code {
    /// Returns the number, as in `google.rpc.Status`.
    pub const fn number(self) -> i32 {
        match self {
            Self::InvalidArgument => 3,
            Self::NotFound => 5,
            Self::PermissionDenied => 7,
            Self::ResourceExhausted => 8,
            Self::Internal => 13,
            Self::Unavailable => 14,
        }
    }

    /// Returns the name, as in the gRPC documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::NotFound => "NOT_FOUND",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::Internal => "INTERNAL",
            Self::Unavailable => "UNAVAILABLE",
        }
    }
}

/// A number that is not the number of a [`Code`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, thiserror::Error)]
#[error("{0} is no status code that the machines use")]
pub struct UnknownCode(pub i32);

impl TryFrom<i32> for Code {
    type Error = UnknownCode;

    fn try_from(number: i32) -> Result<Self, UnknownCode> {
        let all = [
            Self::InvalidArgument,
            Self::NotFound,
            Self::PermissionDenied,
            Self::ResourceExhausted,
            Self::Internal,
            Self::Unavailable,
        ];
        all.into_iter().find(|code| code.number() == number).ok_or(UnknownCode(number))
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A status that the peer sent or is to receive (`google.rpc.Status`, without details).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Status {
    /// A gRPC status code. Any number is kept as the peer sent it (ztunnel NACKs with 0).
    pub code: i32,
    /// The reason, as text for an operator.
    pub message: String,
}

impl Status {
    /// Makes a status with one of the codes that the machines use.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code: code.number(), message: message.into() }
    }

    /// Returns whether the status has this code.
    pub fn is(&self, code: Code) -> bool {
        self.code == code.number()
    }

    /// Returns whether an error that a server reports for a resource concerns the resource itself: the resource does
    /// not exist, or this client is not permitted to have it. Any other error is transient, and the held resource stays
    /// in use (cncf/xds TP3, gRFC A88).
    pub fn is_data_error(&self) -> bool {
        self.is(Code::NotFound) || self.is(Code::PermissionDenied)
    }

    /// Cuts the message to at most `limit` bytes, at a character boundary.
    pub(crate) fn truncate(&mut self, limit: usize) {
        let mut end = limit.min(self.message.len());
        while !self.message.is_char_boundary(end) {
            end -= 1;
        }
        self.message.truncate(end);
    }
}

impl From<PeerMisbehaved> for Status {
    /// Makes the status to close the stream with.
    fn from(misbehaved: PeerMisbehaved) -> Self {
        Self::new(misbehaved.code(), misbehaved.to_string())
    }
}

impl From<Error> for Status {
    /// Makes the status to close the stream with. [`Error::Caller`] becomes INTERNAL without details for the peer.
    fn from(error: Error) -> Self {
        match error {
            Error::Peer(misbehaved) => misbehaved.into(),
            Error::Caller(_) => Self::new(Code::Internal, "internal error"),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

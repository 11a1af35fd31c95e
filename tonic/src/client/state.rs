//! The state of a client that a program can see: servers and resources.

use std::time::Duration;

use tokio::time::Instant;
use xds_machine::client::{Failure, ResourceStatus};
use xds_machine::servers::ServerId;
use xds_machine::{ResourceName, TypeUrl, Version};

/// The state of one server, or of one type's stream to it if [each type has its
/// own](super::Builder::separate_streams). Fields may be added.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ServerState {
    /// The server.
    pub server: ServerId,
    /// The type of the stream; `None` for the aggregated stream.
    pub type_url: Option<&'static str>,
    /// The phase of the stream.
    pub phase: Phase,
    /// Why the last stream or attempt ended, until the server answers again.
    pub last_error: Option<String>,
}

/// The phase of a stream to a server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Phase {
    /// No stream is needed: nothing is subscribed to, or another server is preferred.
    Unused,
    /// A stream is being opened.
    Connecting,
    /// Requests are sent, and no response has arrived yet.
    Connected,
    /// The server answers.
    Answering,
    /// There is no stream before this time, because the last one ended.
    Waiting(Instant),
}

/// A resource as one server's client knows it: a row of a dump, as in CSDS. Fields may be added.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Dumped {
    /// The server whose client this is. A resource that several servers are asked for occurs once for each.
    pub server: ServerId,
    /// Whether this server's view of the resource is the one in use.
    pub authoritative: bool,
    /// The type of the resource.
    pub type_url: TypeUrl,
    /// The name of the resource.
    pub name: ResourceName,
    /// The status, in the terms of CSDS.
    pub status: ResourceStatus,
    /// The version of the held content; `None` if there is none.
    pub version: Option<Version>,
    /// The last error, unless it was resolved since.
    pub error: Option<Failure>,
}

/// Something that happened, for a program that follows a client closely: see [`Updates`](super::Updates). Kinds may be
/// added.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Report {
    /// An action of the machine: about a type of these [`Updates`](super::Updates), about a type that has neither
    /// watchers nor updates (any more), or about servers. Answer an update with [`verdict`](super::Updates::verdict).
    Action(xds_machine::servers::Action),
    /// The response headers of a stream have arrived. Some servers send them only with the first response.
    Opened {
        /// The server that the stream is to.
        server: ServerId,
        /// The type of the stream; `None` for the aggregated stream.
        type_url: Option<&'static str>,
    },
    /// A stream ended, or could not be opened.
    Closed {
        /// The server that the stream was to.
        server: ServerId,
        /// The type of the stream; `None` for the aggregated stream.
        type_url: Option<&'static str>,
        /// Why it ended.
        reason: String,
        /// The time until the next attempt; `None` if the server is not used any more.
        again_in: Option<Duration>,
    },
}

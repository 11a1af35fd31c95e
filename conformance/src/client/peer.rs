//! A client under test: in memory or over sockets, the same to a story.

use std::time::Duration;

use crate::message::{Request, Variant};
use crate::run::{StreamId, Trouble};

/// An event of a client.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event {
    /// The client opens a stream: of one type, or aggregated.
    Opened {
        /// The stream.
        stream: StreamId,
        /// The variant.
        variant: Variant,
        /// The only type of the stream; `None` for ADS.
        type_url: Option<&'static str>,
    },
    /// A request.
    Request(StreamId, Request),
    /// A message that is no request, and why.
    Malformed(StreamId, String),
    /// The client ended the stream, or its connection broke.
    Closed(StreamId, String),
    /// The client reports that it uses the resources in `names`, and has removed those in `removed`.
    Apply {
        /// The type.
        type_url: String,
        /// The names that were applied.
        names: Vec<String>,
        /// The names that were removed.
        removed: Vec<String>,
    },
    /// The client reports that this resource does not exist.
    Missing {
        /// The type.
        type_url: String,
        /// The name.
        name: String,
    },
    /// The client has ended, with its last output.
    Gone(String),
}

/// An instruction to a client to subscribe to names, or to unsubscribe from them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Tell {
    /// The type URL.
    pub type_url: String,
    /// The names, `*` among them.
    pub names: Vec<String>,
    /// Whether the client is to unsubscribe.
    pub leave: bool,
}

/// How the kit ends a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum End {
    /// With the status UNAVAILABLE.
    Unavailable,
    /// With the status OK.
    Ok,
    /// By a reset of the stream.
    Reset,
    /// With the connection.
    Connection,
}

/// A client under test.
pub trait ClientPeer {
    /// Tells the client what to ask for.
    ///
    /// # Errors
    ///
    /// If the client cannot be told, or refuses.
    fn tell(&mut self, tell: &Tell) -> Result<(), Trouble>;

    /// Sends a message on a stream. A message on a stream that has ended is lost.
    fn send(&mut self, stream: StreamId, message: &[u8]);

    /// Ends a stream, after the messages that were sent.
    fn end(&mut self, stream: StreamId, end: End);

    /// Returns the next event; `None` if none came in time.
    fn poll(&mut self, wait: Duration) -> Option<Event>;

    /// Returns the time since the start.
    fn now(&self) -> Duration;
}

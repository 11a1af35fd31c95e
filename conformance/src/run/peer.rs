//! A peer that is a server: in memory or over sockets, the same to a story.

use crate::message::{Request, Response, Variant};
use crate::resource::Put;

/// A stream of a peer, never used twice.
pub type StreamId = u64;

/// What a peer does.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event {
    /// A response on a stream.
    Response(StreamId, Response),
    /// A message that is no response: why.
    Malformed(StreamId, String),
    /// The peer ended the stream: the status, in words.
    Closed(StreamId, String),
}

/// How long to wait for the next event.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wait {
    /// As long as a thing may take that must come.
    Answer,
    /// As long as it takes to believe that nothing comes.
    Quiet,
    /// Not at all: what is there already.
    Nothing,
}

/// A change of what the server has, by its names on the wire.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Op {
    /// A resource is created or replaced.
    Put(Put),
    /// A resource is removed.
    Delete {
        /// The type URL.
        type_url: String,
        /// The name.
        name: String,
    },
    /// A resource gets an error.
    Error {
        /// The type URL.
        type_url: String,
        /// The name.
        name: String,
        /// The code of gRPC.
        code: i32,
    },
    /// The server is not to know whether a resource exists, until the next change of it.
    Unknown {
        /// The type URL.
        type_url: String,
        /// The name.
        name: String,
    },
    /// Everything is removed.
    Clear,
    /// The server ends and starts again at the same address; what it had before, the control may have to give it again.
    Restart,
}

/// Why a peer could not do what it was told: never the peer's fault in the sense of the protocol.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Trouble(pub String);

/// A server under test.
pub trait Peer {
    /// Opens a stream: aggregated, or of a single type.
    ///
    /// # Errors
    ///
    /// If there is no connection.
    fn open(&mut self, variant: Variant, single: Option<&str>) -> Result<StreamId, Trouble>;

    /// Sends a request. A stream that the peer has ended takes it in vain.
    ///
    /// # Errors
    ///
    /// If the transport fails.
    fn send(&mut self, stream: StreamId, variant: Variant, request: &Request) -> Result<(), Trouble>;

    /// Sends bytes as a message.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    fn send_bytes(&mut self, stream: StreamId, bytes: &[u8]) -> Result<(), Trouble>;

    /// Ends a stream without a word.
    fn close(&mut self, stream: StreamId);

    /// Returns the next event of any stream; `None` if none came in time.
    fn poll(&mut self, wait: Wait) -> Option<Event>;

    /// Lets time pass. Events wait.
    fn pass(&mut self, time: std::time::Duration);

    /// Changes what the server has: all at once, as far as the control can.
    ///
    /// # Errors
    ///
    /// If there is no control, or if the control refuses.
    fn control(&mut self, ops: &[Op]) -> Result<(), Trouble>;

    /// Returns whether changes are taken before [`control`](Self::control) returns, so that no witness is needed.
    fn is_instant(&self) -> bool;

    /// Returns whether the control's word can be relied on: that the server has taken a change, or will by itself.
    fn is_confirmed(&self) -> bool {
        true
    }

    /// Returns whether changes of different types are taken in their order: then one type shows what became of another.
    fn is_ordered(&self) -> bool {
        true
    }

    /// Returns whether the server serves a type, as far as its owner says.
    fn serves(&self, type_url: &str) -> bool {
        let _ = type_url;
        true
    }

    /// Returns whether a witness of this type is worth waiting for: not if several came in vain, and none ever succeeded.
    fn has_witnesses(&self, variant: Variant, type_url: &str) -> bool {
        let _ = (variant, type_url);
        true
    }

    /// Is told whether a witness has shown a change.
    fn note_witness(&mut self, variant: Variant, type_url: &str, seen: bool) {
        let _ = (variant, type_url, seen);
    }
}

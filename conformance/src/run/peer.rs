//! A peer that is a server: in memory or over sockets, the same to a story.

use crate::message::{Request, Response, Variant};
use crate::resource::Put;

/// A stream of a peer, never used twice.
pub type StreamId = u64;

/// An event of a peer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event {
    /// A response on a stream.
    Response(StreamId, Response),
    /// A message that is no response, and why.
    Malformed(StreamId, String),
    /// The peer ended the stream: the status, in words.
    Closed(StreamId, String),
}

/// How long to wait for the next event.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wait {
    /// As long as a message that must come may take.
    Answer,
    /// As long as it takes to believe that nothing comes.
    Quiet,
    /// Not at all: only an event that is already there.
    Nothing,
}

/// A change of the server's resources, by their names on the wire.
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
    /// The server ends and starts again at the same address; the control may have to put the earlier resources again.
    Restart,
}

/// Why a peer could not perform an operation: never a fault of the peer in the sense of the protocol.
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

    /// Sends a request. A request on a stream that the peer has ended is lost.
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

    /// Cancels a stream.
    fn close(&mut self, stream: StreamId);

    /// Returns the next event of any stream; `None` if none came in time.
    fn poll(&mut self, wait: Wait) -> Option<Event>;

    /// Lets time pass. Events wait.
    fn pass(&mut self, time: std::time::Duration);

    /// Changes the server's resources: all at once, as far as the control can.
    ///
    /// # Errors
    ///
    /// If there is no control, or if the control refuses.
    fn control(&mut self, ops: &[Op]) -> Result<(), Trouble>;

    /// Returns whether changes are taken before [`control`](Self::control) returns, so that no witness is needed.
    fn is_instant(&self) -> bool;

    /// Returns whether the control's answer confirms that the server has taken a change, or will take it by itself.
    fn is_confirmed(&self) -> bool {
        true
    }

    /// Returns whether changes of different types are taken in their order: then a change of one type shows that
    /// earlier changes of another type were taken.
    fn is_ordered(&self) -> bool {
        true
    }

    /// Returns whether the server serves a type, as far as its owner says.
    fn serves(&self, type_url: &str) -> bool {
        let _ = type_url;
        true
    }

    /// Returns whether a witness of this type is worth waiting for: not if several have failed, and none ever
    /// succeeded.
    fn has_witnesses(&self, variant: Variant, type_url: &str) -> bool {
        let _ = (variant, type_url);
        true
    }

    /// Notes whether a witness has shown a change.
    fn note_witness(&mut self, variant: Variant, type_url: &str, seen: bool) {
        let _ = (variant, type_url, seen);
    }
}

//! The actions of the layer above several clients: reports to the application, and commands about streams.

use alloc::sync::Arc;

use super::ServerId;
use crate::client;
use crate::model::{Label, Relabel};

/// A report to the application, or a command for it.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// An action of a server's client. Return the verdict of an update with
    /// [`Servers::handle_verdict`](super::Servers::handle_verdict), whatever happened to the server meanwhile.
    Client {
        /// The server of the client.
        server: ServerId,
        /// The action of the client.
        action: client::Action,
    },
    /// The names of an authority are subscribed to at another server, instead of or in addition to the previous
    /// servers. The application keeps its resources until a server changes them.
    Switched {
        /// The authority; `None` for names without one.
        authority: Option<Arc<str>>,
        /// The authoritative server from now on.
        to: ServerId,
    },
    /// Ends the state that [`Unreachable`](Self::Unreachable) reported: a server responds, or (with
    /// [`Policy::Grpc`](super::Policy::Grpc)) a server that did not fail has taken over, or nothing is subscribed to
    /// any more.
    Reachable {
        /// The authority; `None` for names without one.
        authority: Option<Arc<str>>,
    },
    /// A server failed (its stream ended before any response) and no other takes over: either every server failed, or
    /// all subscribed resources are known. The failed server is retried. Report the failure to watchers that wait for a
    /// resource of this authority; for watchers that have the resource, the failure is an ambient error (gRFC A88). The
    /// state lasts until [`Reachable`](Self::Reachable).
    Unreachable {
        /// The authority; `None` for names without one.
        authority: Option<Arc<str>>,
        /// The server that failed.
        server: ServerId,
    },
}

/// One attempt to open a stream to a server. Calls about an attempt that is over are ignored.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Stream {
    pub(super) server: ServerId,
    pub(super) attempt: u64,
}

impl Stream {
    /// Returns the server that the attempt is for.
    pub fn server(self) -> ServerId {
        self.server
    }
}

/// A command about streams. A driver has to execute both, so there will be no third.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Connect {
    /// Connect, and report the result by [`handle_open`](super::Servers::handle_open) or
    /// [`handle_close`](super::Servers::handle_close).
    Open(Stream),
    /// Close the stream or abandon the attempt. No further call is needed.
    Close(Stream),
}

impl Relabel for Action {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        match self {
            Self::Client { server, action } => {
                by(Label::Client(server.0 as u64));
                action.relabel(by);
            }
            Self::Reachable { .. } | Self::Switched { .. } | Self::Unreachable { .. } => {}
        }
    }
}

impl Relabel for Stream {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        by(Label::Client(self.server.0 as u64));
        by(Label::Attempt(&mut self.attempt));
    }
}

//! What the layer of several servers reports, and what a driver does about streams.

use alloc::sync::Arc;

use super::ServerId;
use crate::client;
use crate::model::{Label, Relabel};

/// What the application is to do, or to know.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// What a server's client says. The verdict of an update goes back with
    /// [`Servers::handle_verdict`](super::Servers::handle_verdict), whatever happened to the server meanwhile.
    Client {
        /// The server whose client says it.
        server: ServerId,
        /// What the client says.
        action: client::Action,
    },
    /// Another server is asked for the names of an authority, before or besides the ones that were. What the application
    /// has stays until a server says otherwise.
    Switched {
        /// The authority; `None` for names without one.
        authority: Option<Arc<str>>,
        /// The server whose word counts now.
        to: ServerId,
    },
    /// What [`Unreachable`](Self::Unreachable) said of an authority is over: a server answers, or (with
    /// [`Policy::Grpc`](super::Policy::Grpc)) another is asked instead that did not fail, or nothing is wanted any more.
    Reachable {
        /// The authority; `None` for names without one.
        authority: Option<Arc<str>>,
    },
    /// A server failed, its stream ended before any response, and no other is asked instead: there is none that did not
    /// fail, or all that is wanted is known. It is tried again. Who waits for something of this authority is to be told;
    /// for who has something, it is an ambient error (gRFC A88). That holds until [`Reachable`](Self::Reachable).
    Unreachable {
        /// The authority; `None` for names without one.
        authority: Option<Arc<str>>,
        /// The server that failed.
        server: ServerId,
    },
}

/// One attempt to have a stream to a server. What is said of an attempt that is over is ignored.
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

/// What the driver is to do about streams. A driver has to do both, so there will be no third.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Connect {
    /// Connect, and say [`handle_open`](super::Servers::handle_open) or
    /// [`handle_close`](super::Servers::handle_close).
    Open(Stream),
    /// Give it up. Nothing more need be said of it.
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

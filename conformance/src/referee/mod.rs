//! The referee: a permissive judge of what a peer owes, over the messages of one stream.
//!
//! The referee is no copy of a server. It knows what a server *must* send, what it *must not* send, and nothing of the
//! choices that the specification leaves open: one response or several, an empty response or none, waiting for an ACK
//! or not. It does no I/O and knows no time: it takes events, and returns complaints. The caller establishes that no
//! answer will come, and then calls [`ServerReferee::rest`] or [`ClientReferee::rest`].

mod client;
mod rule;
mod server;
mod world;

pub use self::client::{ClientReferee, Merit, Wanted};
pub use self::rule::{Level, Rule};
pub use self::server::ServerReferee;
pub use self::world::World;

/// A violation of a sentence of the specification.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Complaint {
    /// The rule.
    pub rule: Rule,
    /// The type URL; empty if the complaint is not of a type.
    pub type_url: String,
    /// What the peer sent, or did not send.
    pub what: String,
}

impl std::fmt::Display for Complaint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} {}", self.rule.id(), crate::resource::short(&self.type_url), self.what)
    }
}

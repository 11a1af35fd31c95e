//! The referee: a permissive judge of what a peer owes, over the messages of one stream.
//!
//! The referee is no copy of a server. It knows what a server *must* say, what it *must not* say, and nothing of the
//! choices that the specification leaves open: one response or several, an empty response or none, waiting for an ACK
//! or not. It does no I/O and knows no time: events go in, complaints come out. That no answer will come is for the
//! caller to establish, who then says so ([`ServerReferee::rest`],
//! [`ClientReferee::rest`]).

mod client;
mod rule;
mod server;
mod world;

pub use self::client::{ClientReferee, Merit, Wanted};
pub use self::rule::{Level, Rule};
pub use self::server::ServerReferee;
pub use self::world::World;

/// A sentence of the specification that was not kept, and by what.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Complaint {
    /// The rule.
    pub rule: Rule,
    /// The type URL; empty if the complaint is not of a type.
    pub type_url: String,
    /// What was said, or not said.
    pub what: String,
}

impl std::fmt::Display for Complaint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} {}", self.rule.id(), crate::resource::short(&self.type_url), self.what)
    }
}

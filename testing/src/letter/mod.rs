//! Peers that follow the letter of the specification, beside this crate's machines: an independent judge. In the worlds
//! ([`world`](crate::world)) this crate's client talks to this crate's server, and each may infer what the other omits.
//! Here each machine walks at random beside a peer that was written from xds_protocol.rst alone, keeps a plain map, and
//! infers nothing.

mod asked;
mod client;
mod server;
mod setup;
mod truth;
mod walk;
mod wire;
mod with_client;
mod with_server;

pub use self::walk::{STEPS, explain, survey, walk};

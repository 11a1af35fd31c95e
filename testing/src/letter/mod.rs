//! Peers that take the specification by the letter, beside our own machines: an independent judge. The worlds
//! ([`world`](crate::world)) let our client and our server talk to each other, and what one leaves unsaid the other may conclude.
//! Here each walks at random beside a peer that was written from xds_protocol.rst alone, keeps a plain map, and
//! concludes nothing.

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

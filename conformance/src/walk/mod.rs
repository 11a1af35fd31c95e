//! The mode `walk`: random legal conversations with somebody else's peer, judged message by message.
//!
//! A walk is a story: [`generate`] makes one of a seed, [`shrink`] leaves out what a violation does not need, and a story
//! that is written can be played again ([`replay`]).

mod arena;
mod finding;
mod generate;
mod run;
mod shrink;

pub use self::arena::{Arena, Pace};
pub use self::finding::Finding;
pub use self::generate::{Shape, generate};
pub use self::run::{Limits, Walks, replay, run};
pub use self::shrink::shrink;

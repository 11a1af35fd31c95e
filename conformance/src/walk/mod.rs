//! The mode `walk`: random legal conversations with somebody else's peer, judged message by message.
//!
//! A walk is a story: [`Source`] makes one of a seed, [`shrink()`] leaves out what a violation does not need, and a story
//! that is written can be played again ([`replay`]). [`Walks`] are with a server in an [`Arena`], [`ClientWalks`] with a
//! client in a [`ClientArena`].

mod arena;
mod client_arena;
mod client_walks;
mod finding;
mod generate;
mod ground;
mod legal;
mod run;
mod shrink;
mod walks;

pub use self::arena::Arena;
pub use self::client_arena::ClientArena;
pub use self::client_walks::ClientWalks;
pub use self::finding::Finding;
pub use self::generate::{Shape, generate};
pub use self::ground::{Ground, Pace, Played};
pub use self::run::{Limits, Source, replay, run};
pub use self::shrink::shrink;
pub use self::walks::Walks;

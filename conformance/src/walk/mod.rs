//! The mode `walk`: random legal conversations with a third-party peer, judged message by message.
//!
//! A walk is a story: a [`Source`] makes it, [`shrink()`] leaves out the steps that a violation does not need, and a
//! story that is written can be played again ([`replay`]). [`Walks`] are random walks with a server in an [`Arena`],
//! [`ClientWalks`] random walks with a client in a [`ClientArena`]; [`EveryWalk`] and [`EveryClientWalk`] are all short
//! walks.

mod arena;
mod client_arena;
mod client_walks;
mod every_client_walk;
mod every_walk;
mod finding;
mod generate;
mod ground;
mod legal;
mod run;
mod short;
mod shrink;
mod walks;

pub use self::arena::Arena;
pub use self::client_arena::ClientArena;
pub use self::client_walks::ClientWalks;
pub use self::every_client_walk::EveryClientWalk;
pub use self::every_walk::EveryWalk;
pub use self::finding::Finding;
pub use self::generate::{Shape, generate};
pub use self::ground::{Ground, Pace, Played};
pub use self::run::{Choice, Limits, Source, replay, run};
pub use self::shrink::shrink;
pub use self::walks::Walks;

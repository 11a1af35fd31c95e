//! The kit as a server: the fixed cases for clients.
//!
//! - [`peer`] is a client under test: [`memory`] one of this project, [`sockets`] one behind a port.
//! - [`story`] are the cases as text; [`session`] is the kit's end of all streams of one client, [`player`] plays a
//!   story in it.
//! - [`mode`] runs all cases; [`suite`] lists them, and says which case a fault belongs to.

pub mod adapter;
mod barrier;
mod expect;
mod item;
pub mod launch;
pub mod memory;
pub mod mode;
pub mod peer;
pub mod player;
mod reference;
pub mod run;
mod send;
pub mod server;
pub mod session;
pub mod sockets;
pub mod story;
pub mod suite;
mod write;

pub use self::peer::{ClientPeer, End, Event, Tell};

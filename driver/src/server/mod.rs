//! The server half: drivers of [`xds_machine::server`].
//!
//! A stream of a control plane is a [`Responses`], which owns the machine. What it serves is a [`Store`], which all
//! streams of a group of nodes share; a [`Handler`] assigns the stream to its group, and observes it.

mod handler;
mod responses;
mod serve;
mod store;
mod wakers;

pub use handler::Handler;
pub use responses::Responses;
pub use serve::serve_stream;
pub use store::{Shared, Store};
pub use wakers::{Waiter, Wakers};

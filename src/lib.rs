//! Sans-IO state machines for the xDS transport protocol.

#![no_std]
#![forbid(unsafe_code)]
#![warn(clippy::alloc_instead_of_core, clippy::std_instead_of_alloc, clippy::std_instead_of_core)]
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic, clippy::unwrap_used))]

extern crate alloc;

pub mod client;
mod ensure;
mod error;
mod fields;
mod interest;
pub mod message;
pub mod model;
mod name;
pub mod proto;
mod queue;
mod resource;
mod resource_type;
pub mod server;
mod text;
mod time;
mod variant;
pub mod watch;
mod wire;

pub use error::{Code, Error, Misuse, PeerMisbehaved, Status};
pub use interest::Interest;
pub use name::{Nonce, ResourceName, TypeUrl, Version, WILDCARD};
pub use resource::{Any, Resource};
pub use resource_type::{Place, ResourceType, Types, type_url};
pub use time::Instant;
pub use variant::{Delta, Sotw};

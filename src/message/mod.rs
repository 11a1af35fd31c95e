//! What the machines read and write: the discovery messages, decoded. Plain data, the same for every transport;
//! [`proto`](crate::proto) turns them into bytes and back.
//!
//! The fields are public, and follow the protocol: where that gets a field that machines read, so does the message. Make a
//! message by its `new`, or with `..` of one, and a new field breaks nothing.

pub mod delta;
mod node;
mod resource;
pub mod sotw;
mod variant;

pub use node::{Locality, Node, feature};
pub use resource::{Any, Resource};
pub use variant::Messages;

use crate::error::Status;
use crate::name::ResourceName;

/// What a server could not do for one resource (`envoy.service.discovery.v3.ResourceError`; cncf/xds TP3).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ResourceError {
    /// The resource that was asked for.
    pub name: ResourceName,
    /// Why it is not there; `None` if the server did not say, which it must.
    pub status: Option<Status>,
}

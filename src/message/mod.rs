//! The messages that the machines read and write: the discovery messages, decoded. Plain data, the same for every
//! transport; [`proto`](crate::proto) converts them to bytes and back.
//!
//! The fields are public, and follow the protocol: a message gets a field when the protocol gets one that machines
//! read. Code that makes a message with `new`, or with `..` and another message, is not broken by a new field.

pub mod delta;
mod distinct;
mod node;
mod resource;
pub mod sotw;
mod variant;
mod versions;

pub use node::{Locality, Node, feature};
pub use resource::{Any, Resource};
pub use variant::Messages;

use crate::error::Status;
use crate::name::ResourceName;

/// The error that a server reports for one resource (`envoy.service.discovery.v3.ResourceError`; cncf/xds TP3).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ResourceError {
    /// The resource that was subscribed to.
    pub name: ResourceName,
    /// The reason why the resource was not delivered; `None` if the server omitted this required field.
    pub status: Option<Status>,
}

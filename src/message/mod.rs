//! What the machines read and write: the discovery messages, decoded. Plain data, the same for every transport;
//! [`proto`](crate::proto) turns them into bytes and back.

pub mod delta;
mod node;
mod resource;
pub mod sotw;

pub use node::{Locality, Node, feature};
pub use resource::{Any, Resource};

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

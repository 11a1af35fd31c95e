//! A cluster of a configuration.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::net::SocketAddr;

use xds_machine::ResourceName;

use super::failure::Failure;
use crate::links::HostPort;

/// A cluster, or why the cluster can't be used.
pub type Entry<T> = Result<Cluster<T>, Failure>;

/// A cluster of a configuration.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Cluster<T> {
    /// The Cluster resource.
    pub value: T,
    /// The endpoints, addresses or leaves of the cluster.
    pub children: Children<T>,
}

/// The endpoints, addresses or leaves of a cluster.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Children<T> {
    /// The endpoints of an EDS cluster.
    Endpoints {
        /// The name of the ClusterLoadAssignment.
        name: ResourceName,
        /// The ClusterLoadAssignment; `None` if there is none (R-CHAIN-30).
        value: Option<T>,
        /// What the ClusterLoadAssignment lacks (R-CHAIN-31); empty if it lacks nothing.
        lacks: String,
        /// Why there are no endpoints, and the ambient errors of the Listener, the routes, the cluster and the
        /// endpoints (R-CHAIN-33); empty if there are none.
        note: String,
    },
    /// The addresses of a LOGICAL_DNS cluster: one priority with one locality, whose weight is 1 (R-CHAIN-32).
    Resolved {
        /// The name that was resolved.
        host: HostPort,
        /// The addresses.
        addresses: Arc<[SocketAddr]>,
        /// Why there are no addresses, and the ambient errors of the Listener, the routes and the cluster.
        note: String,
    },
    /// The leaves of an aggregate, in the order of priority, each once (R-CHAIN-36).
    Leaves(Arc<[ResourceName]>),
}

impl<T> Children<T> {
    /// Returns the text for the errors of RPCs that find no endpoint, in one line (R-CHAIN-31, R-CHAIN-33); empty if
    /// there is none.
    pub fn remark(&self) -> String {
        match self {
            Self::Endpoints { lacks, note, .. } => join([note.clone(), lacks.clone()]),
            Self::Resolved { note, .. } => note.clone(),
            Self::Leaves(_) => String::new(),
        }
    }
}

/// Joins the parts that are not empty.
pub(super) fn join(parts: [String; 2]) -> String {
    let [first, second] = parts;
    match (first.is_empty(), second.is_empty()) {
        (_, true) => first,
        (true, _) => second,
        _ => format!("{first}; {second}"),
    }
}

//! The reasons why a target or one of its clusters can't be used.

use alloc::string::String;
use core::fmt;
use core::net::SocketAddr;

use xds_machine::{ResourceName, Status};

use super::target::Target;

/// The reason why there is no configuration, or why a cluster of the configuration can't be used. RPCs fail with
/// UNAVAILABLE for each reason (R-CHAIN-35). More reasons may be added.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Failure {
    /// A resource does not exist, or was rejected, or can't be obtained.
    Resource {
        /// The resource.
        target: Target,
        /// The reason, with the code that the watch gave (for a log).
        status: Status,
    },
    /// The Listener is a server's (R-CHAIN-18).
    NotApiListener {
        /// The Listener.
        listener: ResourceName,
    },
    /// The Listener is a client's, and a server asked for it (R-SRV-05).
    NotServerListener {
        /// The Listener.
        listener: ResourceName,
    },
    /// The Listener of a server has another address than the server listens on (R-SRV-05).
    OtherAddress {
        /// The Listener.
        listener: ResourceName,
        /// The address that the server listens on.
        expected: SocketAddr,
        /// The address of the Listener; `None` if that is no IP address.
        found: Option<SocketAddr>,
    },
    /// No virtual host matches the authority (R-CHAIN-19).
    NoVirtualHost {
        /// The resource that has the virtual hosts: a RouteConfiguration, or a Listener with its routes inline.
        target: Target,
        /// The data plane authority.
        authority: String,
    },
    /// An aggregate cluster has no leaf that exists (R-CHAIN-40).
    NoLeaves {
        /// The aggregate.
        cluster: ResourceName,
    },
    /// An aggregate cluster has more levels below it than gRPC follows (R-CHAIN-38).
    TooDeep {
        /// The aggregate.
        cluster: ResourceName,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resource { target, status } => write!(f, "{target}: {}", status.message),
            Self::NotApiListener { listener } => write!(f, "LDS resource {listener}: not an API listener"),
            Self::NotServerListener { listener } => write!(f, "LDS resource {listener}: not a server's listener"),
            Self::OtherAddress { listener, expected, found: Some(found) } => {
                write!(f, "LDS resource {listener}: its address is {found}, and the server listens on {expected}")
            }
            Self::OtherAddress { listener, expected, found: None } => {
                write!(f, "LDS resource {listener}: it has no IP address, and the server listens on {expected}")
            }
            Self::NoVirtualHost { target, authority } => {
                write!(f, "{target}: could not find VirtualHost for {authority} in RouteConfiguration")
            }
            Self::NoLeaves { cluster } => {
                write!(f, "aggregate cluster dependency graph for {cluster} has no leaf clusters")
            }
            Self::TooDeep { cluster } => write!(f, "aggregate cluster graph of {cluster} exceeds max depth"),
        }
    }
}

impl core::error::Error for Failure {}

//! A target: a resource or a DNS name that the chain wants.

use core::fmt;

use xds_machine::{ResourceName, TypeUrl, type_url};

use crate::links::HostPort;

/// A resource that is to be watched, or a DNS name that is to be resolved.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Target {
    /// A Listener.
    Listener(ResourceName),
    /// A RouteConfiguration.
    Routes(ResourceName),
    /// A Cluster.
    Cluster(ResourceName),
    /// A ClusterLoadAssignment.
    Endpoints(ResourceName),
    /// A DNS name, which the driver resolves.
    Dns(HostPort),
}

impl Target {
    /// Returns the type and the name of the resource; `None` for a DNS name.
    pub fn resource(&self) -> Option<(TypeUrl, &ResourceName)> {
        let (url, name) = match self {
            Self::Listener(name) => (type_url::LISTENER, name),
            Self::Routes(name) => (type_url::ROUTE, name),
            Self::Cluster(name) => (type_url::CLUSTER, name),
            Self::Endpoints(name) => (type_url::ENDPOINT, name),
            Self::Dns(_) => return None,
        };
        Some((url.into(), name))
    }

    /// Makes the target of a resource; `None` for a type that is no part of the chain.
    pub fn of(type_url: &TypeUrl, name: &ResourceName) -> Option<Self> {
        let make = match type_url.as_str() {
            type_url::LISTENER => Self::Listener,
            type_url::ROUTE => Self::Routes,
            type_url::CLUSTER => Self::Cluster,
            type_url::ENDPOINT => Self::Endpoints,
            _ => return None,
        };
        Some(make(name.clone()))
    }
}

/// Writes the target as messages name it: `LDS resource n`, or `DNS name host:port`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (service, name) = match self {
            Self::Listener(name) => ("LDS", name),
            Self::Routes(name) => ("RDS", name),
            Self::Cluster(name) => ("CDS", name),
            Self::Endpoints(name) => ("EDS", name),
            Self::Dns(host) => return write!(f, "DNS name {}:{}", host.host, host.port),
        };
        write!(f, "{service} resource {name}")
    }
}

/// A command to the driver: a difference between the wanted targets and those that the driver was asked for.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Want {
    /// Watch the resource, or resolve the name from now on.
    Watch(Target),
    /// End the watch, or the resolution. Later news about the target is ignored.
    Unwatch(Target),
}

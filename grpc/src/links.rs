//! The links of a resource: the parts that the chain of gRFC A74 reads to find the next resources. The decoders make
//! links from bytes, and the chain follows links: neither depends on the other.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::SocketAddr;

use xds_machine::ResourceName;

/// The links of one resource, by its type.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Links {
    /// The links of a Listener.
    Listener(ListenerLinks),
    /// The virtual hosts of a RouteConfiguration.
    Routes(Vec<VirtualHost>),
    /// The links of a Cluster.
    Cluster(ClusterLinks),
    /// What a ClusterLoadAssignment lacks, in words for people; `None` if the assignment has endpoints (R-CHAIN-31).
    Endpoints(Option<String>),
}

/// The links of a Listener: of a client's, or of a server's.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum ListenerLinks {
    /// An API listener, which is a client's.
    Api(RouteSource),
    /// A listener with an address, which is a server's (gRFC A36).
    Socket {
        /// The address to listen on; `None` if the address is no IP address.
        address: Option<SocketAddr>,
        /// The route source of each filter chain, the default filter chain last.
        routes: Vec<RouteSource>,
    },
}

/// The source of an HTTP connection manager's routes.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum RouteSource {
    /// A RouteConfiguration of this name, by RDS.
    Rds(ResourceName),
    /// The routes are inside the Listener.
    Inline(Vec<VirtualHost>),
}

/// A virtual host: its domains, and the clusters that its routes refer to.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct VirtualHost {
    /// The name of the virtual host.
    pub name: String,
    /// The domains as the resource has them, in order.
    pub domains: Vec<String>,
    /// The clusters of the routes, each once, in the order of the routes (R-CHAIN-06).
    pub clusters: Vec<ResourceName>,
}

/// The links of a Cluster, by its kind (gRFC A27, A37).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum ClusterLinks {
    /// The endpoints come by EDS under this name: the Cluster's `service_name`, or the Cluster's own name.
    Eds(ResourceName),
    /// The endpoints are the addresses of a DNS name.
    Dns(HostPort),
    /// An aggregate of other clusters, in the order of priority.
    Aggregate(Vec<ResourceName>),
}

/// A host and a port to be resolved by DNS.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct HostPort {
    /// The host name.
    pub host: String,
    /// The port.
    pub port: u16,
}

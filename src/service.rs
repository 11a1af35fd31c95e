//! The gRPC services of xDS: the variant and the type behind a method's path.
//!
//! The aggregated service (ADS) has all types on one stream. Each type of the xDS API except [`type_url::RESOURCE`]
//! also has its own service. Each service has one streaming method for each variant, whose streams a
//! [`Server`](crate::server::Server) serves. The third method of most services, `Fetch..`, belongs to REST:
//! [`rest_path`] returns the path to which a [`Poll`](crate::poll::Poll) posts the requests of a type.
//!
//! ```
//! use xds_machine::server::{Config, Server, StreamId};
//! use xds_machine::service::{Method, Variant};
//! use xds_machine::{Sotw, type_url};
//!
//! let method = Method::of_path("/envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters").expect("CDS");
//! assert_eq!((method.variant, method.type_url), (Variant::Sotw, Some(type_url::CLUSTER)));
//! let server = Server::<Sotw>::new(Config::new(method), StreamId(1));
//!
//! let ads = Method { variant: Variant::Delta, type_url: None };
//! let path = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
//! assert_eq!(ads.path().as_deref(), Some(path));
//! ```
//!
//! A further service, CSDS ([`ClientStatusMethod`]), shows operators the state of clients and servers.

use alloc::format;
use alloc::string::String;

use crate::name::TypeUrl;
use crate::type_url;

/// The aggregated service, and the suffix of its methods after `Stream` and `Delta`.
const AGGREGATED: (&str, &str) = ("discovery.v3.AggregatedDiscoveryService", "AggregatedResources");

/// For each service, the suffix of its methods after `Stream` and `Delta`, and its type.
const SERVICES: [(&str, &str, &str); 10] = [
    ("cluster.v3.ClusterDiscoveryService", "Clusters", type_url::CLUSTER),
    ("endpoint.v3.EndpointDiscoveryService", "Endpoints", type_url::ENDPOINT),
    ("endpoint.v3.LocalityEndpointDiscoveryService", "LocalityEndpoints", type_url::LB_ENDPOINT),
    ("extension.v3.ExtensionConfigDiscoveryService", "ExtensionConfigs", type_url::EXTENSION_CONFIG),
    ("listener.v3.ListenerDiscoveryService", "Listeners", type_url::LISTENER),
    ("route.v3.RouteDiscoveryService", "Routes", type_url::ROUTE),
    ("route.v3.ScopedRoutesDiscoveryService", "ScopedRoutes", type_url::SCOPED_ROUTE),
    ("route.v3.VirtualHostDiscoveryService", "VirtualHosts", type_url::VIRTUAL_HOST),
    ("runtime.v3.RuntimeDiscoveryService", "Runtime", type_url::RUNTIME),
    ("secret.v3.SecretDiscoveryService", "Secrets", type_url::SECRET),
];

/// The path of the one method of the load reporting service (LRS), whose streams a
/// [`Collector`](crate::load::Collector) serves.
pub const LOAD_REPORTS: &str = "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats";
/// For each type that can be polled over REST, its path.
const POLLS: [(&str, &str); 8] = [
    ("/v3/discovery:clusters", type_url::CLUSTER),
    ("/v3/discovery:endpoints", type_url::ENDPOINT),
    ("/v3/discovery:extension_configs", type_url::EXTENSION_CONFIG),
    ("/v3/discovery:listeners", type_url::LISTENER),
    ("/v3/discovery:routes", type_url::ROUTE),
    ("/v3/discovery:runtime", type_url::RUNTIME),
    ("/v3/discovery:scoped-routes", type_url::SCOPED_ROUTE),
    ("/v3/discovery:secrets", type_url::SECRET),
];

/// Returns the path to which requests of this type are posted (REST); `None` if the type has none. REST has no path for
/// the aggregated service, and none for the incremental variant (R-REST-01, R-REST-02).
pub fn rest_path(type_url: &TypeUrl) -> Option<&'static str> {
    POLLS.iter().find(|(_, known)| type_url == *known).map(|(path, _)| *path)
}

/// Returns the type whose requests are posted to this path (REST).
pub fn type_of_rest_path(path: &str) -> Option<&'static str> {
    POLLS.iter().find(|(known, _)| *known == path).map(|(_, type_url)| *type_url)
}

/// The variant of a method as a value: [`Sotw`](crate::Sotw) or [`Delta`](crate::Delta). There is no third.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Variant {
    /// The incremental variant.
    Delta,
    /// The state-of-the-world variant.
    Sotw,
}

/// A method of a service. A path carries exactly these two facts: no field will be added.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Method {
    /// The variant of the protocol.
    pub variant: Variant,
    /// The only type of the service; `None` for the aggregated service.
    pub type_url: Option<&'static str>,
}

impl Method {
    /// Parses a path (`:path` of HTTP/2). Returns `None` if the method does not exist or is not a stream.
    pub fn of_path(path: &str) -> Option<Self> {
        let (service, method) = path.strip_prefix("/envoy.service.")?.split_once('/')?;
        let (variant, method) = match method.strip_prefix("Stream") {
            Some(method) => (Variant::Sotw, method),
            None => (Variant::Delta, method.strip_prefix("Delta")?),
        };
        if (service, method) == AGGREGATED {
            return Some(Self { variant, type_url: None });
        }
        let (.., type_url) = SERVICES.iter().find(|(known, name, _)| (service, method) == (*known, *name))?;
        Some(Self { variant, type_url: Some(*type_url) })
    }

    /// Returns the path, or `None` if the type has no service of its own.
    pub fn path(self) -> Option<String> {
        let (service, method) = match self.type_url {
            None => AGGREGATED,
            Some(of) => {
                SERVICES.iter().find(|(.., known)| *known == of).map(|(service, method, _)| (*service, *method))?
            }
        };
        let variant = match self.variant {
            Variant::Delta => "Delta",
            Variant::Sotw => "Stream",
        };
        Some(format!("/envoy.service.{service}/{variant}{method}"))
    }
}

/// The name of the service of CSDS, which clients and control planes may have.
pub const CLIENT_STATUS: &str = "envoy.service.status.v3.ClientStatusDiscoveryService";

/// A method of [`CLIENT_STATUS`]: see [`csds`](crate::csds).
///
/// ```
/// use xds_machine::service::ClientStatusMethod;
///
/// let path = "/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus";
/// assert_eq!(ClientStatusMethod::of_path(path), Some(ClientStatusMethod::Fetch));
/// assert_eq!(ClientStatusMethod::Fetch.path(), path);
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ClientStatusMethod {
    /// One request and one response.
    Fetch,
    /// A response to each request of a stream.
    Stream,
}

impl ClientStatusMethod {
    /// Parses a path (`:path` of HTTP/2). Returns `None` if the service has no method with this path.
    pub fn of_path(path: &str) -> Option<Self> {
        match path.strip_prefix('/')?.strip_prefix(CLIENT_STATUS)? {
            "/FetchClientStatus" => Some(Self::Fetch),
            "/StreamClientStatus" => Some(Self::Stream),
            _ => None,
        }
    }

    /// Returns the path.
    pub fn path(self) -> String {
        let method = match self {
            Self::Fetch => "Fetch",
            Self::Stream => "Stream",
        };
        format!("/{CLIENT_STATUS}/{method}ClientStatus")
    }
}

/// Returns the types that have a service of their own.
pub fn types() -> impl ExactSizeIterator<Item = &'static str> {
    SERVICES.iter().map(|(.., type_url)| *type_url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_method_has_a_path_of_its_own() {
        let mut paths = alloc::collections::BTreeSet::new();
        for type_url in types().map(Some).chain([None]) {
            for variant in [Variant::Delta, Variant::Sotw] {
                let method = Method { variant, type_url };
                let path = method.path().expect("it has a service");
                assert_eq!(Method::of_path(&path), Some(method), "{path}");
                paths.insert(path);
            }
        }
        assert_eq!(paths.len(), 22);
        assert_eq!(Method { variant: Variant::Sotw, type_url: Some(type_url::RESOURCE) }.path(), None);
    }

    #[test]
    fn paths_of_other_methods_are_not_recognized() {
        for path in [
            "/envoy.service.runtime.v3.RuntimeDiscoveryService/FetchRuntime",
            "/envoy.service.cluster.v3.ClusterDiscoveryService/StreamRuntime",
            "/envoy.service.cluster.v3.ClusterDiscoveryService/Clusters",
            "/envoy.service.cluster.v2.ClusterDiscoveryService/StreamClusters",
            "envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters",
            "",
        ] {
            assert_eq!(Method::of_path(path), None, "{path}");
        }
    }
}

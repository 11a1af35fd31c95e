//! The gRPC services of xDS.

use xds_machine::server::Scope;
use xds_machine::type_url;

/// A service, what its methods are called after `Stream` and `Delta`, and its type.
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

/// What a gRPC method speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Variant {
    Delta,
    Sotw,
}

/// The types of the xDS API that have a service.
pub fn types() -> impl Iterator<Item = &'static str> {
    SERVICES.iter().map(|(_, _, type_url)| *type_url)
}

/// What the method of this path speaks, and of which types.
pub fn find(path: &str) -> Option<(Variant, Scope)> {
    let (service, method) = path.strip_prefix("/envoy.service.")?.split_once('/')?;
    let (variant, method) = match method.strip_prefix("Stream") {
        Some(method) => (Variant::Sotw, method),
        None => (Variant::Delta, method.strip_prefix("Delta")?),
    };
    if (service, method) == ("discovery.v3.AggregatedDiscoveryService", "AggregatedResources") {
        return Some((variant, Scope::Ads));
    }
    let (.., type_url) = SERVICES.iter().find(|(known, name, _)| (service, method) == (*known, *name))?;
    Some((variant, Scope::Single((*type_url).into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_have_a_variant_and_a_scope() {
        let ads = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";
        assert_eq!(find(ads), Some((Variant::Sotw, Scope::Ads)));
        let runtime = "/envoy.service.runtime.v3.RuntimeDiscoveryService/DeltaRuntime";
        assert_eq!(find(runtime), Some((Variant::Delta, Scope::Single(type_url::RUNTIME.into()))));
        assert_eq!(find("/envoy.service.runtime.v3.RuntimeDiscoveryService/FetchRuntime"), None);
        assert_eq!(find("/envoy.service.cluster.v3.ClusterDiscoveryService/StreamRuntime"), None);
    }
}

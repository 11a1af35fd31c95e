//! The transport API of version 2: other names of methods and types, and the same bytes.

use xds_machine::type_url;

use crate::message::Variant;

/// The types: of version 3, of version 2, and the service and method of version 2.
const TYPES: [(&str, &str, &str, &str); 4] = [
    (type_url::CLUSTER, "type.googleapis.com/envoy.api.v2.Cluster", "ClusterDiscoveryService", "Clusters"),
    (
        type_url::ENDPOINT,
        "type.googleapis.com/envoy.api.v2.ClusterLoadAssignment",
        "EndpointDiscoveryService",
        "Endpoints",
    ),
    (type_url::LISTENER, "type.googleapis.com/envoy.api.v2.Listener", "ListenerDiscoveryService", "Listeners"),
    (type_url::ROUTE, "type.googleapis.com/envoy.api.v2.RouteConfiguration", "RouteDiscoveryService", "Routes"),
];

/// Returns the type URL of version 2.
pub(crate) fn old(type_url: &str) -> &str {
    TYPES.iter().find(|(new, ..)| *new == type_url).map_or(type_url, |(_, old, ..)| old)
}

/// Returns the type URL of version 3.
pub(crate) fn new(type_url: &str) -> &str {
    TYPES.iter().find(|(_, old, ..)| *old == type_url).map_or(type_url, |(new, ..)| new)
}

/// Returns the path of a method.
pub(crate) fn path(variant: Variant, single: Option<&str>) -> Option<String> {
    let verb = match variant {
        Variant::Sotw => "Stream",
        Variant::Delta => "Delta",
    };
    let Some(single) = single else {
        return Some(format!("/envoy.service.discovery.v2.AggregatedDiscoveryService/{verb}AggregatedResources"));
    };
    let (.., service, method) = TYPES.iter().find(|(new, ..)| *new == single)?;
    Some(format!("/envoy.api.v2.{service}/{verb}{method}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v3_type_urls_convert_to_v2_paths_and_type_urls_and_back() {
        let ads = "/envoy.service.discovery.v2.AggregatedDiscoveryService/DeltaAggregatedResources";
        assert_eq!(path(Variant::Delta, None).as_deref(), Some(ads));
        let eds = path(Variant::Sotw, Some(type_url::ENDPOINT));
        assert_eq!(eds.as_deref(), Some("/envoy.api.v2.EndpointDiscoveryService/StreamEndpoints"));
        assert_eq!(path(Variant::Sotw, Some("other")), None);
        for (of, ..) in TYPES {
            assert_eq!(new(old(of)), of);
        }
        assert_eq!((old("other"), new("other")), ("other", "other"));
    }
}

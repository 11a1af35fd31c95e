//! Services as keys and values: each has a listener `l`, a route `r`, a cluster `c` and endpoints `e` of its number.

use serde_json::{Value, json};

use super::members::Op;

const HTTP: &str = "type.googleapis.com/envoy.extensions.filters";

/// The types of a service, by the first letter of their names.
pub const KINDS: [(&str, &str); 4] = [
    ("c", "envoy.config.cluster.v3.Cluster"),
    ("e", "envoy.config.endpoint.v3.ClusterLoadAssignment"),
    ("l", "envoy.config.listener.v3.Listener"),
    ("r", "envoy.config.route.v3.RouteConfiguration"),
];

/// Returns the key of a resource, whose name begins with the letter of its type, for a group.
pub fn key(group: &str, name: &str) -> String {
    let kind = KINDS.iter().find(|(letter, _)| name.starts_with(letter)).map_or("unknown.Type", |(_, kind)| kind);
    format!("/xds/{group}/{kind}/{name}")
}

/// Returns the puts of a service whose route leads to a cluster, on a backend.
pub fn service(number: u32, cluster: u32, port: u16) -> Vec<Op> {
    let all = [cluster_of(cluster, 1), endpoints(cluster, port), listener(number, None), route(number, cluster)];
    all.into_iter().collect()
}

fn op(name: String, value: &Value) -> Op {
    (key("_", &name), Some(value.to_string()))
}

/// Returns a put of a cluster.
pub fn cluster_of(number: u32, seconds: u32) -> Op {
    op(
        format!("c{number}"),
        &json!({
            "name": format!("c{number}"), "type": "EDS", "connectTimeout": format!("{seconds}s"),
            "edsClusterConfig": {"serviceName": format!("e{number}"), "edsConfig": {"ads": {}, "resourceApiVersion": "V3"}},
        }),
    )
}

/// Returns a put of endpoints.
pub fn endpoints(number: u32, port: u16) -> Op {
    op(
        format!("e{number}"),
        &json!({"clusterName": format!("e{number}"), "endpoints": [{
            "locality": {"region": "r", "zone": "z"}, "loadBalancingWeight": 1,
            "lbEndpoints": [{"endpoint": {"address": address(port)}}],
        }]}),
    )
}

/// Returns a put of a route.
pub fn route(number: u32, cluster: u32) -> Op {
    op(
        format!("r{number}"),
        &json!({"name": format!("r{number}"), "virtualHosts": [{
            "name": "all", "domains": ["*"],
            "routes": [{"match": {"prefix": ""}, "route": {"cluster": format!("c{cluster}")}}],
        }]}),
    )
}

/// Returns a put of a listener, on a port or for gRPC.
pub fn listener(number: u32, port: Option<u16>) -> Op {
    let name = format!("l{number}");
    let ads = json!({"ads": {}, "resourceApiVersion": "V3"});
    let manager = json!({
        "@type": format!("{HTTP}.network.http_connection_manager.v3.HttpConnectionManager"),
        "statPrefix": name, "rds": {"routeConfigName": format!("r{number}"), "configSource": ads},
        "httpFilters": [{"name": "router", "typedConfig": {"@type": format!("{HTTP}.http.router.v3.Router")}}],
    });
    op(
        name.clone(),
        &match port {
            Some(port) => json!({"name": name, "address": address(port), "filterChains": [{
                "filters": [{"name": "http", "typedConfig": manager}],
            }]}),
            None => json!({"name": name, "apiListener": {"apiListener": manager}}),
        },
    )
}

fn address(port: u16) -> Value {
    json!({"socketAddress": {"address": "127.0.0.1", "portValue": port}})
}

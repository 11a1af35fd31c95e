//! Listeners: R-LIS.

use std::net::SocketAddr;

use bytes::Bytes;
use serde_json::{Value, json};
use xds_machine_grpc::links::{Links, ListenerLinks, RouteSource, VirtualHost};
use xds_machine_grpc::resources::{Context, Listener, Source, decode_listener};

use super::resource::{Decoder, any, encode, field};

const LISTENERS: Decoder<Listener> = Decoder { message: "envoy.config.listener.v3.Listener", decode: decode_listener };

const MANAGER: &str = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
/// The path of the manager in an API listener.
const AT: &str = "api_listener.api_listener.value[envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager]";

fn api(manager: Value) -> Value {
    json!({"name": "r", "apiListener": {"apiListener": any(MANAGER, manager)}})
}

fn rds(name: &str) -> Value {
    json!({"rds": {"configSource": {"ads": {}}, "routeConfigName": name}})
}

fn chain(manager: Value) -> Value {
    json!({"filters": [{"name": "hcm", "typedConfig": any(MANAGER, manager)}]})
}

fn address(ip: &str) -> Value {
    json!({"socketAddress": {"address": ip, "portValue": 80}})
}

/// R-LIS-01: Neither an API listener nor an address is a fault; with both, the listener is a client's.
#[test]
fn a_listener_requires_an_api_listener_or_an_address() {
    assert_eq!(LISTENERS.faults(json!({"name": "r"})), "[Listener has neither address nor ApiListener]");
    let mut both = api(rds("routes"));
    both["address"] = address("::1");
    assert_eq!(LISTENERS.value(both), Listener::Api(Source::Rds("routes".into())));
}

/// R-LIS-02: An API listener is an HTTP connection manager, and not in a TypedStruct.
#[test]
fn an_api_listener_is_an_http_connection_manager() {
    let other = json!({"apiListener": {"apiListener": any("envoy.config.cluster.v3.Cluster", json!({}))}});
    assert_eq!(
        LISTENERS.faults(other),
        "[field:api_listener.api_listener.value[envoy.config.cluster.v3.Cluster] error:unsupported filter type]"
    );
    let none = json!({"apiListener": {}});
    assert_eq!(LISTENERS.faults(none), "[field:api_listener.api_listener error:field not present]");
}

/// R-LIS-02: A manager that is no message, that has no type, or that is JSON.
#[test]
fn a_malformed_http_connection_manager_is_a_fault() {
    let faults = |any: &[u8]| {
        let body = field(19, &field(1, any)); // Listener.api_listener.api_listener
        decode_listener(&"r".into(), &body.into(), &Context::default()).unwrap_err().to_string()
    };
    let with = |url: &str, value: &[u8]| [field(1, url.as_bytes()), field(2, value)].concat();
    assert_eq!(faults(&with("", b"")), "[field:api_listener.api_listener.type_url error:field not present]");
    let at = "api_listener.api_listener.type_url";
    assert_eq!(faults(&with("hcm", b"")), format!("[field:{at} error:invalid value \"hcm\"]"));
    assert_eq!(faults(&with("a/", b"")), format!("[field:{at} error:invalid value \"a/\"]"));
    let url = format!("type.googleapis.com/{MANAGER}");
    let malformed = faults(&with(&url, b"\xff"));
    assert!(malformed.starts_with(&format!("[field:{AT} error:can't parse HttpConnectionManager: ")), "{malformed}");
    // A TypedStruct of a manager, under both type names; and one that can't be read.
    for kind in ["xds.type.v3.TypedStruct", "udpa.type.v1.TypedStruct"] {
        let inner = field(1, url.as_bytes());
        let url = format!("a/{kind}");
        let expected = format!("[field:{AT} error:can't parse HttpConnectionManager: a TypedStruct]");
        assert_eq!(faults(&with(&url, &inner)), expected);
        let malformed = faults(&with(&url, b"\xff"));
        assert!(malformed.starts_with(&format!("[field:api_listener.api_listener.value[{kind}] error:can't parse: ")));
    }
}

/// R-LIS-03: Routes come by RDS or inline; scoped routes are a fault.
#[test]
fn a_listener_requires_rds_or_inline_routes() {
    let neither = format!("[field:{AT} error:neither route_config nor rds fields are present]");
    assert_eq!(LISTENERS.faults(api(json!({}))), neither);
    assert_eq!(LISTENERS.faults(api(json!({"scopedRoutes": {"name": "s"}}))), neither);
    assert_eq!(LISTENERS.value(api(rds("routes"))), Listener::Api(Source::Rds("routes".into())));
}

/// R-LIS-04: RDS comes from the same server: `ads` or `self`.
#[test]
fn rds_requires_the_config_source_ads_or_self() {
    for source in [json!({"ads": {}}), json!({"self": {}})] {
        let value = LISTENERS.value(api(json!({"rds": {"configSource": source, "routeConfigName": "x"}})));
        assert_eq!(value, Listener::Api(Source::Rds("x".into())));
    }
    let at = format!("{AT}.rds.config_source");
    for source in [json!({"path": "/x"}), json!({"apiConfigSource": {}}), json!({"pathConfigSource": {}}), json!({})] {
        let faults = LISTENERS.faults(api(json!({"rds": {"configSource": source, "routeConfigName": "x"}})));
        assert_eq!(faults, format!("[field:{at} error:ConfigSource is not ads or self]"));
    }
    let faults = LISTENERS.faults(api(json!({"rds": {"routeConfigName": "x"}})));
    assert_eq!(faults, format!("[field:{at} error:field not present]"));
}

/// R-LIS-05: A RouteConfiguration has a name; a chain would wait without end for one without a name (GB-05).
#[test]
fn gb_05_an_empty_route_name_is_a_fault() {
    let expected = format!("[field:{AT}.rds.route_config_name error:must be non-empty]");
    assert_eq!(LISTENERS.faults(api(rds(""))), expected);
}

/// R-LIS-06: Inline routes are validated like those of RDS; their name may be empty.
#[test]
fn inline_routes_are_validated() {
    let route = json!({"match": {"prefix": ""}, "route": {"cluster": "a"}});
    let manager = |domain: &str| json!({"routeConfig": {"virtualHosts": [{"name": "v", "domains": [domain], "routes": [route]}]}});
    let view = LISTENERS.decode(api(manager("*"))).expect("valid");
    let host = VirtualHost { name: "v".into(), domains: vec!["*".into()], clusters: vec!["a".into()] };
    assert_eq!(view.links(), Links::Listener(ListenerLinks::Api(RouteSource::Inline(vec![host]))));
    let expected =
        format!("[field:{AT}.route_config.virtual_hosts[0].domains[0] error:invalid domain pattern \"a*b\"]");
    assert_eq!(LISTENERS.faults(api(manager("a*b"))), expected);
}

/// R-LIS-11: A resource has a name; the other faults are named too.
#[test]
fn a_listener_requires_a_name() {
    let body = encode(LISTENERS.message, json!({}));
    let faults = decode_listener(&"".into(), &body, &Context::default()).unwrap_err();
    assert_eq!(
        faults.to_string(),
        "[Listener has neither address nor ApiListener; field:name error:must be non-empty]"
    );
    assert_eq!(faults.iter().count(), 2);
}

/// A resource that is no message is refused as a whole.
#[test]
fn malformed_bytes_are_a_fault() {
    let faults = decode_listener(&"r".into(), &Bytes::from_static(b"\xff"), &Context::default()).unwrap_err();
    let text = faults.to_string();
    assert!(text.starts_with("[can't parse Listener: ") && faults.iter().count() == 1, "{text}");
}

/// GB-10 is data path: `listener_filters` and HTTP filters are in the raw bytes, for the caller to judge.
#[test]
fn gb_10_listener_filters_are_kept_in_the_raw_bytes() {
    let mut json = api(rds("routes"));
    json["listenerFilters"] = json!([{"name": "tls_inspector"}]);
    let view = LISTENERS.decode(json.clone()).expect("valid by the core rules");
    assert_eq!(view.raw(), &encode(LISTENERS.message, json));
}

/// R-SRV-02: A server's listener has the route sources of all filter chains, the default one last.
#[test]
fn a_server_listener_has_a_route_source_for_each_filter_chain() {
    let inline = json!({"routeConfig": {"virtualHosts": []}});
    let view = LISTENERS
        .decode(json!({
            "address": address("10.0.0.1"),
            "filterChains": [chain(rds("a")), chain(inline), chain(rds("a"))],
            "defaultFilterChain": chain(rds("d")),
        }))
        .expect("valid");
    let named = |name: &str| RouteSource::Rds(name.into());
    let address: SocketAddr = "10.0.0.1:80".parse().unwrap();
    let routes = vec![named("a"), RouteSource::Inline(vec![]), named("a"), named("d")];
    assert_eq!(view.links(), Links::Listener(ListenerLinks::Socket { address: Some(address), routes }));
}

/// A server's listener has filter chains, and each of them exactly one filter; an address that is no IP address is one
/// that no server listens on.
#[test]
fn a_server_listener_requires_filter_chains_with_one_filter_each() {
    let at_default = "[field:default_filter_chain error:must be set if filter_chains is unset]";
    assert_eq!(LISTENERS.faults(json!({"address": address("::1")})), at_default);
    let named = json!({"address": address("host"), "filterChains": [chain(rds("a"))]});
    let Listener::Socket { address: none, .. } = LISTENERS.value(named) else { panic!("a server's") };
    assert_eq!(none, None);
    let pipe = json!({"address": {"pipe": {"path": "/x"}}, "filterChains": [chain(rds("a")), {}], "defaultFilterChain": {
        "filters": [{"name": "x", "configDiscovery": {}}],
    }});
    assert_eq!(
        LISTENERS.faults(pipe),
        "[field:address.socket_address error:field not present; \
          field:default_filter_chain.filters[0].typed_config error:field not present; \
          field:filter_chains[1].filters error:must have exactly one filter, an HttpConnectionManager]"
    );
    let mut two = chain(rds("a"));
    let one = two["filters"][0].clone();
    two["filters"].as_array_mut().unwrap().push(one);
    assert_eq!(
        LISTENERS.faults(json!({"address": address("::1"), "defaultFilterChain": two})),
        "[field:default_filter_chain.filters error:must have exactly one filter, an HttpConnectionManager]"
    );
}

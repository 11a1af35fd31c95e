//! Clusters: R-CLU.

use serde_json::{Value, json};
use xds_machine_grpc::links::{ClusterLinks, HostPort, Links};
use xds_machine_grpc::resources::{Cluster, Context, decode_cluster};

use super::resource::{Decoder, any, encode, field};

const CLUSTERS: Decoder<Cluster> = Decoder { message: "envoy.config.cluster.v3.Cluster", decode: decode_cluster };

const AGGREGATE: &str = "envoy.extensions.clusters.aggregate.v3.ClusterConfig";

fn eds(config: Value) -> Value {
    json!({"name": "r", "type": "EDS", "edsClusterConfig": config})
}

fn dns(socket: Value) -> Value {
    let endpoint = json!({"endpoint": {"address": {"socketAddress": socket}}});
    json!({"type": "LOGICAL_DNS", "loadAssignment": {"endpoints": [{"lbEndpoints": [endpoint]}]}})
}

fn aggregate(clusters: Value) -> Value {
    json!({"clusterType": {"name": "any", "typedConfig": any(AGGREGATE, json!({"clusters": clusters}))}})
}

fn kind(json: Value) -> ClusterLinks {
    CLUSTERS.value(json).kind
}

/// R-CLU-01: EDS, DNS and aggregates are known; no other kind is.
#[test]
fn three_kinds_of_clusters_are_known() {
    assert_eq!(kind(eds(json!({"edsConfig": {"ads": {}}}))), ClusterLinks::Eds("r".into()));
    let host = HostPort { host: "h".into(), port: 1 };
    assert_eq!(kind(dns(json!({"address": "h", "portValue": 1}))), ClusterLinks::Dns(host));
    assert_eq!(kind(aggregate(json!(["a"]))), ClusterLinks::Aggregate(vec!["a".into()]));
    let unknown = "[field:type error:unknown discovery type]";
    for other in ["STATIC", "STRICT_DNS", "ORIGINAL_DST"] {
        assert_eq!(CLUSTERS.faults(json!({"type": other})), unknown);
    }
    assert_eq!(CLUSTERS.faults(json!({})), unknown);
}

/// R-CLU-02: EDS comes from the same server: `ads` or `self`.
#[test]
fn eds_requires_the_config_source_ads_or_self() {
    assert_eq!(kind(eds(json!({"edsConfig": {"self": {}}}))), ClusterLinks::Eds("r".into()));
    let at = "field:eds_cluster_config.eds_config";
    assert_eq!(
        CLUSTERS.faults(eds(json!({"edsConfig": {"path": "x"}}))),
        format!("[{at} error:ConfigSource is not ads or self]")
    );
    assert_eq!(CLUSTERS.faults(eds(json!({"edsConfig": {}}))), format!("[{at} error:ConfigSource is not ads or self]"));
    assert_eq!(CLUSTERS.faults(eds(json!({}))), format!("[{at} error:field not present]"));
    assert_eq!(CLUSTERS.faults(json!({"type": "EDS"})), "[field:eds_cluster_config error:field not present]");
}

/// R-CLU-03: A Cluster with a structured name has the name of its endpoints in `service_name`.
#[test]
fn an_eds_cluster_with_a_structured_name_requires_a_service_name() {
    let name = "xdstp://a/envoy.config.cluster.v3.Cluster/c".into();
    let decode = |config: Value| decode_cluster(&name, &encode(CLUSTERS.message, eds(config)), &Context::default());
    assert_eq!(
        decode(json!({"edsConfig": {"path": "x"}})).unwrap_err().to_string(),
        "[field:eds_cluster_config.eds_config error:ConfigSource is not ads or self; \
          field:eds_cluster_config.service_name error:must be set if Cluster resource has an xdstp name]"
    );
    let view = decode(json!({"edsConfig": {"ads": {}}, "serviceName": "s"})).expect("valid");
    assert_eq!(view.links(), Links::Cluster(ClusterLinks::Eds("s".into())));
}

/// R-CLU-04: A DNS cluster has one host and a port, which may be 0 (and is not cut to 16 bits: GB-13).
#[test]
fn a_dns_cluster_requires_a_host_and_a_port() {
    let zero = HostPort { host: "h".into(), port: 0 };
    assert_eq!(kind(dns(json!({"address": "h", "portValue": 0}))), ClusterLinks::Dns(zero));
    let at = "load_assignment.endpoints[0].lb_endpoints[0].endpoint.address";
    let socket = format!("field:{at}.socket_address");
    let faults = |socket: Value| CLUSTERS.faults(dns(socket));
    assert_eq!(faults(json!({"address": "h"})), format!("[{socket}.port_value error:field not present]"));
    assert_eq!(
        faults(json!({"address": "h", "namedPort": "x"})),
        format!("[{socket}.port_value error:field not present]")
    );
    assert_eq!(
        faults(json!({"address": "h", "portValue": 65536})),
        format!("[{socket}.port_value error:invalid port: 65536]")
    );
    assert_eq!(
        faults(json!({"resolverName": "x"})),
        format!(
            "[{socket}.address error:field not present; {socket}.port_value error:field not present; \
              {socket}.resolver_name error:LOGICAL_DNS clusters must not have a resolver name]"
        )
    );
}

/// R-CLU-04: Exactly one locality, one endpoint, and a socket address.
#[test]
fn a_dns_cluster_requires_exactly_one_endpoint() {
    let cluster = |assignment: Value| json!({"type": "LOGICAL_DNS", "loadAssignment": assignment});
    let faults = |assignment: Value| CLUSTERS.faults(cluster(assignment));
    let missing = "[field:load_assignment error:field not present for LOGICAL_DNS cluster]";
    assert_eq!(CLUSTERS.faults(json!({"type": "LOGICAL_DNS"})), missing);
    for (localities, found) in [(json!([]), 0), (json!([{}, {}]), 2)] {
        assert_eq!(
            faults(json!({"endpoints": localities})),
            format!(
                "[field:load_assignment.endpoints error:must contain exactly one locality for LOGICAL_DNS cluster, found {found}]"
            ),
        );
    }
    let at = "field:load_assignment.endpoints[0].lb_endpoints";
    for (endpoints, found) in [(json!([]), 0), (json!([{}, {}]), 2)] {
        assert_eq!(
            faults(json!({"endpoints": [{"lbEndpoints": endpoints}]})),
            format!("[{at} error:must contain exactly one endpoint for LOGICAL_DNS cluster, found {found}]"),
        );
    }
    for (endpoint, path) in [
        (json!({}), "endpoint"),
        (json!({"endpointName": "x"}), "endpoint"),
        (json!({"endpoint": {}}), "endpoint.address"),
        (json!({"endpoint": {"address": {}}}), "endpoint.address.socket_address"),
        (json!({"endpoint": {"address": {"pipe": {"path": "x"}}}}), "endpoint.address.socket_address"),
    ] {
        assert_eq!(
            faults(json!({"endpoints": [{"lbEndpoints": [endpoint]}]})),
            format!("[{at}[0].{path} error:field not present]"),
        );
    }
}

/// R-CLU-05: An aggregate is known by the type of its configuration, and not by the name of the extension.
#[test]
fn an_aggregate_is_recognized_by_its_type_url() {
    let at = "field:cluster_type.typed_config";
    let none = json!({"clusterType": {"name": "envoy.clusters.aggregate"}});
    assert_eq!(CLUSTERS.faults(none), format!("[{at} error:field not present]"));
    let other = json!({"clusterType": {
        "name": "envoy.clusters.aggregate",
        "typedConfig": any("envoy.config.core.v3.Locality", json!({})),
    }});
    assert_eq!(
        CLUSTERS.faults(other),
        format!(
            "[{at}.type_url error:unknown cluster_type extension: \
             \"type.googleapis.com/envoy.config.core.v3.Locality\"]"
        )
    );
}

/// R-CLU-05: A configuration that is no message is a fault.
#[test]
fn a_malformed_aggregate_configuration_is_a_fault() {
    let url = format!("type.googleapis.com/{AGGREGATE}");
    let any = [field(1, url.as_bytes()), field(2, b"\xff")].concat();
    let body = field(38, &field(2, &any)); // Cluster.cluster_type.typed_config
    let faults = decode_cluster(&"r".into(), &body.into(), &Context::default()).unwrap_err().to_string();
    let expected =
        format!("[field:cluster_type.typed_config.value[{AGGREGATE}] error:can't parse aggregate cluster config: ");
    assert!(faults.starts_with(&expected), "{faults}");
}

/// R-CLU-06: An aggregate has children, and a child may be listed twice.
#[test]
fn an_aggregate_requires_children() {
    assert_eq!(
        kind(aggregate(json!(["a", "b", "a"]))),
        ClusterLinks::Aggregate(["a", "b", "a"].map(Into::into).into())
    );
    let at = format!("field:cluster_type.typed_config.value[{AGGREGATE}].clusters");
    assert_eq!(CLUSTERS.faults(aggregate(json!([]))), format!("[{at} error:must be non-empty]"));
    assert_eq!(CLUSTERS.faults(aggregate(json!(["a", ""]))), format!("[{at}[1] error:must be non-empty]"));
}

/// GB-09, GB-07: The load balancing policy is data path: an aggregate may have the one that Envoy requires.
#[test]
fn gb_09_the_load_balancing_policy_is_not_validated() {
    let mut cluster = aggregate(json!(["a"]));
    cluster["lbPolicy"] = json!("CLUSTER_PROVIDED");
    assert_eq!(kind(cluster), ClusterLinks::Aggregate(vec!["a".into()]));
    let mut cluster = eds(json!({"edsConfig": {"ads": {}}}));
    cluster["lbPolicy"] = json!("LOAD_BALANCING_POLICY_CONFIG");
    cluster["loadBalancingPolicy"] = json!({});
    assert_eq!(kind(cluster), ClusterLinks::Eds("r".into()));
}

/// R-CLU-10: Load is reported to the server of the Cluster, or not at all.
#[test]
fn load_is_reported_to_the_same_server() {
    let cluster = |lrs: Value| {
        let mut cluster = eds(json!({"edsConfig": {"ads": {}}}));
        cluster["lrsServer"] = lrs;
        cluster
    };
    assert!(CLUSTERS.value(cluster(json!({"self": {}}))).reports_load);
    assert!(!CLUSTERS.value(cluster(json!(null))).reports_load);
    for other in [json!({"ads": {}}), json!({})] {
        assert_eq!(CLUSTERS.faults(cluster(other)), "[field:lrs_server error:ConfigSource is not self]");
    }
}

/// R-CLU-16: A Cluster has a name.
#[test]
fn a_cluster_requires_a_name() {
    let body = encode(CLUSTERS.message, eds(json!({"edsConfig": {"ads": {}}})));
    let faults = decode_cluster(&"".into(), &body, &Context::default()).unwrap_err();
    assert_eq!(faults.to_string(), "[field:name error:must be non-empty]");
}

//! Decodes Clusters (R-CLU).

use alloc::format;
use alloc::string::String;

use bytes::Bytes;
use prost::Message;
use xds_machine::ResourceName;

use super::generated::cluster::{ClusterDiscoveryType, CustomClusterType};
use super::generated::{self, AggregateConfig, ClusterLoadAssignment, ConfigSource, Endpoint};
use super::generated::{config_source, lb_endpoint};
use super::message::{NOT_PRESENT, check_source, decode, port, socket};
use super::view::{Cluster, Context, View};
use crate::faults::{Faults, Walk};
use crate::links::{ClusterLinks, HostPort};

/// `envoy.config.cluster.v3.Cluster.DiscoveryType`.
const LOGICAL_DNS: i32 = 2;
const EDS: i32 = 3;

const AGGREGATE: &str = "envoy.extensions.clusters.aggregate.v3.ClusterConfig";

/// Decodes a Cluster (R-CLU).
///
/// # Errors
///
/// All faults of the core rules.
pub fn decode_cluster(name: &ResourceName, body: &Bytes, _: &Context) -> Result<View<Cluster>, Faults> {
    use ClusterDiscoveryType::{ClusterType, Type};
    let (cluster, mut walk) = decode::<generated::Cluster>("Cluster", name, body)?;
    // R-CLU-01: The kinds that gRPC knows.
    let kind = match &cluster.cluster_discovery_type {
        Some(Type(EDS)) => walk.within("eds_cluster_config", |walk| eds(walk, name, &cluster)),
        Some(Type(LOGICAL_DNS)) => {
            walk.within("load_assignment", |walk| dns(walk, cluster.load_assignment.as_ref()).map(ClusterLinks::Dns))
        }
        Some(ClusterType(kind)) => walk.within("cluster_type.typed_config", |walk| aggregate(walk, kind)),
        _ => {
            walk.fault_at("type", "unknown discovery type");
            None
        }
    };
    let reports_load = walk.within("lrs_server", |walk| reports_load(walk, cluster.lrs_server.as_ref()));
    View::judge(walk, kind.map(|kind| Cluster { kind, reports_load }), body)
}

fn eds(walk: &mut Walk, name: &ResourceName, cluster: &generated::Cluster) -> Option<ClusterLinks> {
    let Some(config) = &cluster.eds_cluster_config else {
        walk.fault(NOT_PRESENT);
        return None;
    };
    walk.within("eds_config", |walk| check_source(walk, config.eds_config.as_ref()));
    if !config.service_name.is_empty() {
        return Some(ClusterLinks::Eds(ResourceName::from(&config.service_name)));
    }
    // R-CLU-03: A structured name is the name of a Cluster, and of no ClusterLoadAssignment (gRFC A47).
    if name.as_str().starts_with("xdstp:") {
        walk.fault_at("service_name", "must be set if Cluster resource has an xdstp name");
    }
    Some(ClusterLinks::Eds(name.clone()))
}

/// R-CLU-04: The one host and port of a DNS cluster.
fn dns(walk: &mut Walk, assignment: Option<&ClusterLoadAssignment>) -> Option<HostPort> {
    let Some(assignment) = assignment else {
        walk.fault("field not present for LOGICAL_DNS cluster");
        return None;
    };
    let found = assignment.endpoints.len();
    let [locality] = &assignment.endpoints[..] else {
        walk.fault_at("endpoints", format!("must contain exactly one locality for LOGICAL_DNS cluster, found {found}"));
        return None;
    };
    let found = locality.lb_endpoints.len();
    let [endpoint] = &locality.lb_endpoints[..] else {
        let message = format!("must contain exactly one endpoint for LOGICAL_DNS cluster, found {found}");
        walk.fault_at("endpoints[0].lb_endpoints", message);
        return None;
    };
    walk.within("endpoints[0].lb_endpoints[0].endpoint", |walk| match &endpoint.host_identifier {
        Some(lb_endpoint::HostIdentifier::Endpoint(endpoint)) => walk.within("address", |walk| host(walk, endpoint)),
        _ => {
            walk.fault(NOT_PRESENT);
            None
        }
    })
}

fn host(walk: &mut Walk, endpoint: &Endpoint) -> Option<HostPort> {
    let socket = socket(walk, endpoint.address.as_ref())?;
    walk.within("socket_address", |walk| {
        if !socket.resolver_name.is_empty() {
            walk.fault_at("resolver_name", "LOGICAL_DNS clusters must not have a resolver name");
        }
        if socket.address.is_empty() {
            walk.fault_at("address", NOT_PRESENT);
        }
        if !matches!(socket.port_specifier, Some(generated::socket_address::PortSpecifier::PortValue(_))) {
            walk.fault_at("port_value", NOT_PRESENT);
        }
        let port = port(walk, socket)?;
        Some(HostPort { host: socket.address.clone(), port })
    })
}

fn aggregate(walk: &mut Walk, kind: &CustomClusterType) -> Option<ClusterLinks> {
    let Some(config) = &kind.typed_config else {
        walk.fault(NOT_PRESENT);
        return None;
    };
    // R-CLU-05: An aggregate is known by the type of its configuration, whatever the name of the extension.
    if config.type_url.strip_prefix("type.googleapis.com/").unwrap_or(&config.type_url) != AGGREGATE {
        walk.fault_at("type_url", format!("unknown cluster_type extension: {:?}", config.type_url));
        return None;
    }
    walk.within(format_args!("value[{AGGREGATE}]"), |walk| match AggregateConfig::decode(config.value.clone()) {
        Ok(config) => Some(ClusterLinks::Aggregate(children(walk, &config.clusters))),
        Err(error) => {
            walk.fault(format!("can't parse aggregate cluster config: {error}"));
            None
        }
    })
}

/// R-CLU-06: An aggregate has children; a child may be listed twice.
fn children(walk: &mut Walk, clusters: &[String]) -> alloc::vec::Vec<ResourceName> {
    if clusters.is_empty() {
        walk.fault_at("clusters", "must be non-empty");
    }
    for at in (0..clusters.len()).filter(|&at| clusters[at].is_empty()) {
        walk.fault_at(format_args!("clusters[{at}]"), "must be non-empty");
    }
    clusters.iter().map(ResourceName::from).collect()
}

/// R-CLU-10: Load is reported to the server of the Cluster, or not at all.
fn reports_load(walk: &mut Walk, source: Option<&ConfigSource>) -> bool {
    let to_self = source
        .map(|source| matches!(source.config_source_specifier, Some(config_source::ConfigSourceSpecifier::Self_(_))));
    if to_self == Some(false) {
        walk.fault("ConfigSource is not self");
    }
    to_self == Some(true)
}

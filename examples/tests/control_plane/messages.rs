//! Files of resources, and requests.

use serde_json::json;
use xds_machine::message::{delta, sotw};
use xds_machine::{Nonce, Status, type_url};

pub const ADS_DELTA: &str = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
pub const ADS_SOTW: &str = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";
pub const CDS_DELTA: &str = "/envoy.service.cluster.v3.ClusterDiscoveryService/DeltaClusters";
pub const EDS_SOTW: &str = "/envoy.service.endpoint.v3.EndpointDiscoveryService/StreamEndpoints";

pub fn clusters(clusters: &[(&str, u32)]) -> String {
    let cluster = |(name, timeout): &(&str, u32)| json!({"@type": type_url::CLUSTER, "name": name, "connectTimeout": format!("{timeout}s")});
    json!({"resources": clusters.iter().map(cluster).collect::<Vec<_>>()}).to_string()
}

pub fn endpoints(names: &[&str]) -> String {
    let endpoint = |name: &&str| json!({"@type": type_url::ENDPOINT, "clusterName": name});
    json!({"resources": names.iter().map(endpoint).collect::<Vec<_>>()}).to_string()
}

pub fn delta_request(type_url: &str, subscribe: &[&str]) -> delta::Request {
    let mut request = delta::Request::new(type_url);
    request.subscribe = subscribe.iter().map(|name| (*name).into()).collect();
    request
}

pub fn sotw_request(type_url: &str, names: &[&str], nonce: &Nonce) -> sotw::Request {
    let mut request = sotw::Request::new(type_url);
    request.names = names.iter().map(|name| (*name).into()).collect();
    request.nonce = nonce.clone();
    request
}

pub fn delta_answer(type_url: &str, nonce: &Nonce, error: Option<&str>) -> delta::Request {
    let mut request = delta::Request::new(type_url);
    request.nonce = nonce.clone();
    request.error = error.map(|message| Status { code: 13, message: message.into() });
    request
}

pub fn names(response: &delta::Response) -> Vec<&str> {
    response.resources.iter().map(|resource| resource.name.as_str()).collect()
}

pub fn items(response: &sotw::Response) -> usize {
    response.resources.len()
}

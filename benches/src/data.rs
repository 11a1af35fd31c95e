//! The data that all workloads use.

use bytes::Bytes;
use xds_machine::server::{Cache, Resource, Source};
use xds_machine::{Instant, TypeUrl, type_url};

use crate::floor;

pub const NOW: Instant = Instant::EPOCH;

pub fn clusters() -> TypeUrl {
    type_url::CLUSTER.into()
}

pub fn endpoints() -> TypeUrl {
    type_url::ENDPOINT.into()
}

pub fn name(i: usize) -> String {
    format!("cluster-{i:07}")
}

/// Returns an encoded resource of 128 bytes.
pub fn body(name: &str, round: u8) -> Bytes {
    let mut body = Vec::with_capacity(128);
    body.extend([0x0a, name.len() as u8]);
    body.extend_from_slice(name.as_bytes());
    body.push(0x7a); // field 15: padding
    body.push((126 - name.len() - 2) as u8);
    body.resize(128, round);
    body.into()
}

pub fn resource(i: usize, round: u8) -> Resource {
    let name = name(i);
    let body = body(&name, round);
    Resource::new(name, body)
}

pub fn cache(type_url: &TypeUrl, n: usize) -> Cache {
    let mut cache = Cache::new(1);
    (0..n).for_each(|i| _ = cache.insert(type_url, resource(i, 0)));
    cache
}

/// Returns a response with all resources, in prost.
pub fn delta_response(cache: &Cache, type_url: &TypeUrl) -> floor::DeltaResponse {
    let resources = cache.resources(type_url).map(|resource| floor::Resource {
        version: resource.version().to_string(),
        resource: Some(floor::Any { type_url: type_url.to_string(), value: resource.body().clone() }),
        name: resource.name().to_string(),
    });
    floor::DeltaResponse {
        system_version_info: cache.version(type_url).to_string(),
        resources: resources.collect(),
        type_url: type_url.to_string(),
        nonce: "1.1".into(),
        removed_resources: Vec::new(),
    }
}

pub fn sotw_response(cache: &Cache, type_url: &TypeUrl) -> floor::SotwResponse {
    let any = |resource: &Resource| floor::Any { type_url: type_url.to_string(), value: resource.body().clone() };
    floor::SotwResponse {
        version_info: cache.version(type_url).to_string(),
        resources: cache.resources(type_url).map(any).collect(),
        type_url: type_url.to_string(),
        nonce: "1.1".into(),
    }
}

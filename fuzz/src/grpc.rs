//! Any bytes as input of gRPC: bootstrap files, and the four types of resources.

use std::collections::BTreeSet;
use std::fmt::Debug;

use bytes::Bytes;
use xds_machine::servers::Servers;
use xds_machine::{ResourceName, Sotw};
use xds_machine_grpc::bootstrap::{Agent, Bootstrap, CredentialsKind, Era, Target};
use xds_machine_grpc::endpoints::Assignment;
use xds_machine_grpc::faults::Faults;
use xds_machine_grpc::links::ClusterLinks;
use xds_machine_grpc::resources::{
    Cluster, Context, Destination, Listener, RouteAction, Routes, Source, View, decode_cluster, decode_endpoints,
    decode_listener, decode_routes,
};

use crate::bounded;

/// Parses a bootstrap file: a valid file makes a configuration, and is the same after it is written and read.
pub fn bootstrap(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let supports = |kind: CredentialsKind<'_>| matches!(kind, CredentialsKind::Channel("insecure" | "tls" | ""));
    let parsed = match Bootstrap::parse(text, supports) {
        Ok(parsed) => parsed,
        Err(faults) => return check(&faults),
    };
    let again = Bootstrap::parse(&parsed.to_json(), supports).expect("what was written");
    assert_eq!(again, parsed, "a file that is written and read");
    let node = parsed.node(&Agent { name: "fuzz", version: "" });
    assert_eq!(again.node(&Agent { name: "fuzz", version: "" }), node, "deterministic metadata");
    Servers::<Sotw>::new(parsed.servers_config(node, Era::A88)).expect("a configuration");
    for authority in parsed.authorities().keys() {
        if let Ok(target) = Target::parse(&format!("xds://{authority}/s")) {
            _ = parsed.listener_of(&target);
        }
    }
}

/// Decodes a resource: the first byte selects its type, and the rest is its body.
pub fn resources(data: &[u8]) {
    let Some((&which, body)) = data.split_first() else { return };
    let body = Bytes::copy_from_slice(body);
    let context = Context::default().trusted(which & 4 > 0).with_plugin("p");
    match which % 4 {
        0 => decode(decode_listener, &body, &context, |listener: &Listener| match listener {
            Listener::Api(source) => check_source(source),
            Listener::Socket { routes, .. } => routes.iter().for_each(check_source),
        }),
        1 => decode(decode_routes, &body, &context, check_routes),
        2 => decode(decode_cluster, &body, &context, |cluster: &Cluster| match &cluster.kind {
            ClusterLinks::Eds(name) => assert!(!name.as_str().is_empty()),
            ClusterLinks::Dns(host) => assert!(!host.host.is_empty()),
            ClusterLinks::Aggregate(children) => {
                assert!(!children.is_empty() && children.iter().all(|name| !name.as_str().is_empty()));
            }
        }),
        _ => decode(decode_endpoints, &body, &context, check_endpoints),
    }
}

type Decode<T> = fn(&ResourceName, &Bytes, &Context) -> Result<View<T>, Faults>;

/// Decodes a resource: the result is not much larger than the resource, and an unknown field changes nothing.
fn decode<T: Debug + PartialEq>(decode: Decode<T>, body: &Bytes, context: &Context, check_value: fn(&T)) {
    let name = ResourceName::from("r");
    let decoded = decode(&name, body, context);
    let faults = if decoded.is_err() { 28 * 1024 } else { 0 }; // a hundred at most, each a path and a message
    bounded(4096 + faults + 64 * body.len() as u64, || decode(&name, body, context));
    // In front: behind a body that ends early the field would complete it.
    let with_field = [&b"\xfa\xff\xff\xff\x0f\x00"[..], body].concat().into();
    match (decoded, decode(&name, &with_field, context)) {
        (Ok(view), Ok(other)) => {
            check_value(view.value());
            assert_eq!(view.value(), other.value());
        }
        (Err(faults), Err(other)) => {
            check(&faults);
            assert_eq!(faults.iter().count(), other.iter().count());
        }
        (one, other) => panic!("{one:?}, and with an unknown field {other:?}"),
    }
}

fn check(faults: &Faults) {
    assert!(!faults.is_empty() && faults.iter().count() <= 100, "{faults}");
    assert!(faults.iter().all(|(_, message)| !message.is_empty()), "{faults}");
}

fn check_source(source: &Source) {
    match source {
        Source::Rds(name) => assert!(!name.as_str().is_empty()),
        Source::Inline(routes) => check_routes(routes),
    }
}

fn check_routes(routes: &Routes) {
    for host in &routes.hosts {
        assert!(!host.domains.is_empty() && host.domains.iter().all(|domain| !domain.is_empty()));
        assert!(host.routes.is_sorted_by(|one, next| one.index < next.index));
        for route in &host.routes {
            assert!(route.clusters().all(|name| !name.as_str().is_empty()));
            if let RouteAction::Forward { to: Destination::Weighted(clusters), .. } = &route.action {
                let sum = clusters.iter().map(|(_, weight)| u64::from(*weight)).sum::<u64>();
                assert!((1..=u64::from(u32::MAX)).contains(&sum) && clusters.iter().all(|(_, weight)| *weight > 0));
            }
        }
    }
}

fn check_endpoints(assignment: &Assignment) {
    let mut addresses = BTreeSet::new();
    for priority in &assignment.priorities {
        let weights = priority.localities.iter().map(|locality| u64::from(locality.weight.get()));
        assert!((1..=u64::from(u32::MAX)).contains(&weights.sum::<u64>()), "a priority has localities");
        for endpoint in priority.localities.iter().flat_map(|locality| &locality.endpoints) {
            let all = [endpoint.address].into_iter().chain(endpoint.additional.iter().copied());
            all.for_each(|address| assert!(addresses.insert(address), "{address} is there twice"));
        }
    }
    assert!(assignment.drops.iter().all(|drop| drop.per_million <= 1_000_000 && !drop.category.is_empty()));
}

//! The tower channel with real servers: `control_plane`, and endpoints that are tonic's.

mod priorities;
mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use world::{Backend, CLUSTERS, ENDPOINTS, LISTENERS, Plane, assignment, call, channel, eds, routed, servers, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_is_lost_when_endpoints_clusters_and_routes_change() {
    let plane = Plane::start("moves");
    let (a, b, c) = (Backend::start("a").await, Backend::start("b").await, Backend::start("c").await);
    plane.serve(
        "s",
        vec![eds("c"), eds("d")],
        vec![assignment("c", &[&[a.address]]), assignment("d", &[&[c.address]])],
    );
    let channel = channel(&json!({"xds_servers": servers(&[&plane.address])}), "xds:///s");
    until(&channel, Ok("a")).await;

    let done = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..4)
        .map(|_| {
            let (channel, done) = (channel.clone(), done.clone());
            tokio::spawn(async move {
                let mut errors = Vec::new();
                let mut calls = 0;
                while !done.load(Ordering::Relaxed) {
                    errors.extend(call(&channel).await.err());
                    calls += 1;
                }
                (calls, errors)
            })
        })
        .collect();

    plane.put(ENDPOINTS, [assignment("c", &[&[b.address]]), assignment("d", &[&[c.address]])]);
    until(&channel, Ok("b")).await;
    a.stop().await;
    plane.put(LISTENERS, [routed("s", "d")]);
    until(&channel, Ok("c")).await;
    plane.put(CLUSTERS, [eds("d")]);
    b.stop().await;
    until(&channel, Ok("c")).await;

    done.store(true, Ordering::Relaxed);
    for caller in callers {
        let (calls, errors) = caller.await.expect("no panic");
        assert_eq!(errors, Vec::<String>::new(), "of {calls} calls");
        assert!(calls > 10, "{calls} calls");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_alternate_between_the_endpoints() {
    let plane = Plane::start("turns");
    let (a, b) = (Backend::start("a").await, Backend::start("b").await);
    plane.serve("s", vec![eds("c")], vec![assignment("c", &[&[a.address, b.address]])]);
    let channel = channel(&json!({"xds_servers": servers(&[&plane.address])}), "xds:///s");
    until(&channel, Ok("a")).await;
    until(&channel, Ok("b")).await;
    let mut answers = Vec::new();
    for _ in 0..10 {
        answers.push(call(&channel).await.expect("an answer"));
    }
    assert!(answers.windows(2).all(|two| two[0] != two[1]), "{answers:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_cluster_fails_calls_until_it_is_added_again() {
    let plane = Plane::start("removed");
    let a = Backend::start("a").await;
    plane.serve("s", vec![eds("c")], vec![assignment("c", &[&[a.address]])]);
    let channel = channel(&json!({"xds_servers": servers(&[&plane.address])}), "xds:///s");
    until(&channel, Ok("a")).await;
    plane.put(CLUSTERS, []);
    until(&channel, Err("CDS resource c: the server removed the resource")).await;
    plane.put(CLUSTERS, [eds("c")]);
    until(&channel, Ok("a")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_priority_is_used_until_the_first_is_reachable_again() {
    let plane = Plane::start("priorities");
    let (a, b) = (Backend::start("a").await, Backend::start("b").await);
    plane.serve("s", vec![eds("c")], vec![assignment("c", &[&[a.address], &[b.address]])]);
    let channel = channel(&json!({"xds_servers": servers(&[&plane.address])}), "xds:///s");
    until(&channel, Ok("a")).await;
    let address = a.stop().await;
    until(&channel, Ok("b")).await;
    let _a = Backend::start_at("a", address).await;
    until(&channel, Ok("a")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_aggregate_cluster_falls_back_to_a_dns_cluster() {
    let plane = Plane::start("aggregate");
    let (a, b) = (Backend::start("a").await, Backend::start("b").await);
    let config = "type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig";
    let aggregate = json!({"name": "c", "clusterType": {
        "name": "envoy.clusters.aggregate", "typedConfig": {"@type": config, "clusters": ["d", "e"]},
    }});
    let socket = json!({"socketAddress": {"address": "localhost", "portValue": b.address.port()}});
    let ends = json!([{"lbEndpoints": [{"endpoint": {"address": socket}}]}]);
    let named = json!({"name": "e", "type": "LOGICAL_DNS", "loadAssignment": {"endpoints": ends}});
    plane.serve("s", vec![aggregate, eds("d"), named], vec![assignment("d", &[&[a.address]])]);
    let channel = channel(&json!({"xds_servers": servers(&[&plane.address])}), "xds:///s");
    until(&channel, Ok("a")).await;
    a.stop().await;
    until(&channel, Ok("b")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fallback_server_is_used_if_the_first_is_unreachable() {
    let plane = Plane::start("fallback");
    let a = Backend::start("a").await;
    plane.serve("s", vec![eds("c")], vec![assignment("c", &[&[a.address]])]);
    // No program listens at the address of a server that has ended.
    let gone = Backend::start("gone").await.stop().await.to_string();
    let channel = channel(&json!({"xds_servers": servers(&[&gone, &plane.address])}), "xds:///s");
    until(&channel, Ok("a")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_authority_uses_its_own_server() {
    let (one, two) = (Plane::start("one"), Plane::start("two"));
    let (a, b) = (Backend::start("a").await, Backend::start("b").await);
    one.serve("s", vec![eds("c")], vec![assignment("c", &[&[a.address]])]);
    two.serve("xdstp://two/envoy.config.listener.v3.Listener/s", vec![], vec![]);
    // The listener of the second authority names a cluster of the second, whose endpoints are there too.
    let (cluster, service) = (
        "xdstp://two/envoy.config.cluster.v3.Cluster/c",
        "xdstp://two/envoy.config.endpoint.v3.ClusterLoadAssignment/c",
    );
    let mut of_two = eds(cluster);
    of_two["edsClusterConfig"]["serviceName"] = service.into();
    two.put(ENDPOINTS, [assignment(service, &[&[b.address]])]);
    two.put(CLUSTERS, [of_two]);
    two.put(LISTENERS, [routed("xdstp://two/envoy.config.listener.v3.Listener/s", cluster)]);
    let bootstrap = json!({
        "xds_servers": servers(&[&one.address]),
        "authorities": {"two": {"xds_servers": servers(&[&two.address])}},
    });
    until(&channel(&bootstrap, "xds:///s"), Ok("a")).await;
    until(&channel(&bootstrap, "xds://two/s"), Ok("b")).await;
}

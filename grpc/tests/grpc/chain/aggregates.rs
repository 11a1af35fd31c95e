//! Aggregate clusters: leaves, depth, cycles.

use super::{cluster, endpoints, routed};

/// Makes EDS clusters, whose endpoints are `v`.
fn leaves(s: &mut super::Story, names: &[&str]) -> String {
    names.iter().for_each(|name| _ = s.eds(name, name));
    names.iter().map(|name| s.endpoints(name, "v")).collect()
}

#[test]
fn children_are_watched_in_order_when_their_parent_arrives() {
    // R-CHAIN-09, R-CHAIN-10
    let mut s = routed(&["g", "z"]);
    assert_eq!(s.aggregate("g", &["c", "h", "a"]), "+CDS c +CDS h +CDS a", "though z is missing");
    assert_eq!(s.aggregate("h", &["b", "a"]), "+CDS b");
    s.fail(&cluster("z"), "gone");
    assert_eq!(leaves(&mut s, &["a", "b", "c"]), "{l r a:v, b:v, c:v, g:[c, b, a], h:[b, a], z:!CDS resource z: gone}");
}

#[test]
fn leaves_are_depth_first_and_each_at_its_earliest_place() {
    // R-CHAIN-36
    let mut s = routed(&["g"]);
    s.aggregate("g", &["a", "h", "a", "b", "c"]);
    s.aggregate("h", &["c", "a", "d", "d"]);
    assert_eq!(leaves(&mut s, &["a", "b", "c", "d"]), "{l r a:v, b:v, c:v, d:v, g:[a, c, d, b], h:[c, a, d]}");
}

#[test]
fn roots_share_leaves() {
    // R-CHAIN-37; GB-01
    let mut s = routed(&["a", "f", "z"]);
    s.aggregate("f", &["b", "a"]);
    s.aggregate("z", &["a", "b"]);
    assert_eq!(leaves(&mut s, &["a", "b"]), "{l r a:v, b:v, f:[b, a], z:[a, b]}");
}

/// Makes a chain of aggregates `0 -> 1 -> .. -> leaf`.
fn deep(aggregates: usize) -> String {
    let mut s = routed(&["0"]);
    for at in 0..aggregates {
        let child = if at + 1 == aggregates { "leaf".to_string() } else { (at + 1).to_string() };
        s.aggregate(&at.to_string(), &[&child]);
    }
    let last = leaves(&mut s, &["leaf"]);
    last + &s.chain.told().map_or(String::new(), |told| super::show(told.as_ref().expect("a configuration")))
}

#[test]
fn an_aggregate_graph_beyond_the_depth_limit_is_an_error() {
    // R-CHAIN-38
    let fits = deep(15);
    assert!(fits.contains("0:[leaf]") && fits.contains("14:[leaf]") && fits.contains("leaf:v"), "{fits}");
    let deeper = deep(16);
    for at in 0..16 {
        let error = format!("{at}:!aggregate cluster graph of {at} exceeds max depth");
        assert!(deeper.contains(&error), "the error is that of every ancestor: {deeper}");
    }
    assert!(!deeper.contains("leaf:"), "{deeper}");
}

#[test]
fn clusters_beyond_the_depth_limit_are_not_watched() {
    // R-CHAIN-38: a cluster that is not looked up is not watched, however long the server's chain of aggregates is.
    let mut s = routed(&["0"]);
    let mut told = String::new();
    for at in 0..10_000 {
        told = s.aggregate(&at.to_string(), &[&(at + 1).to_string()]);
    }
    assert_eq!(told, "");
    assert_eq!(s.chain.watched().count(), 2 + 16);
}

#[test]
fn a_cluster_is_watched_if_any_path_to_it_is_within_the_depth_limit() {
    // R-CHAIN-38: whether a cluster is looked up does not depend on the order of roots.
    let names: Vec<String> = (0..16).map(|at| at.to_string()).collect();
    let mut s = routed(&["0", "short"]);
    for (at, name) in names.iter().enumerate() {
        s.aggregate(name, &[names.get(at + 1).map_or("leaf", String::as_str)]);
    }
    s.aggregate("short", &["leaf"]);
    s.eds("leaf", "leaf");
    let told = s.endpoints("leaf", "v");
    assert!(told.contains("0:!aggregate cluster graph of 0 exceeds max depth"), "{told}");
    assert!(told.contains("short:[leaf]") && told.contains("1:[leaf]") && told.contains("leaf:v"), "{told}");
}

#[test]
fn a_missing_child_is_skipped_and_its_error_is_reported() {
    // R-CHAIN-39, R-CHAIN-16; GB-03
    let mut s = routed(&["g"]);
    s.aggregate("g", &["a", "b"]);
    s.fail(&cluster("a"), "gone");
    assert_eq!(leaves(&mut s, &["b"]), "{l r a:!CDS resource a: gone, b:v, g:[b]}");
}

#[test]
fn an_aggregate_without_leaves_is_an_error() {
    // R-CHAIN-40
    let mut s = routed(&["g"]);
    s.aggregate("g", &["a"]);
    let none = "g:!aggregate cluster dependency graph for g has no leaf clusters";
    assert_eq!(s.fail(&cluster("a"), "gone"), format!("{{l r a:!CDS resource a: gone, {none}}}"));
    assert_eq!(s.aggregate("g", &["g"]), format!("-CDS a {{l r {none}}}"));
}

#[test]
fn a_cycle_is_cut() {
    // R-CHAIN-41
    let mut s = routed(&["g"]);
    s.aggregate("g", &["h", "a"]);
    s.aggregate("h", &["g"]);
    assert_eq!(leaves(&mut s, &["a"]), "{l r a:v, g:[a], h:[a]}");
}

#[test]
fn a_child_with_endpoints_in_error_stays_a_leaf() {
    // R-CHAIN-42, R-CHAIN-30
    let mut s = routed(&["g"]);
    s.aggregate("g", &["a", "b"]);
    s.eds("a", "a");
    s.fail(&endpoints("a"), "gone");
    assert_eq!(leaves(&mut s, &["b"]), "{l r a:(EDS resource a: gone), b:v, g:[a, b]}");
}

#[test]
fn children_that_no_root_reaches_are_not_watched() {
    // R-CHAIN-45, cycles included (grpc-java#12129)
    let mut s = routed(&["g"]);
    s.aggregate("g", &["a", "h", "b"]);
    s.aggregate("h", &["i"]);
    s.aggregate("i", &["h", "c"]);
    assert_eq!(leaves(&mut s, &["a", "b", "c"]), "{l r a:v, b:v, c:v, g:[a, c, b], h:[c], i:[c]}");
    assert_eq!(s.aggregate("g", &["a", "b"]), "-CDS c -CDS h -CDS i -EDS c {l r a:v, b:v, g:[a, b]}");
}

#[test]
fn a_changed_aggregate_with_the_same_children_is_a_new_configuration() {
    let mut s = routed(&["g"]);
    s.aggregate("g", &["a"]);
    leaves(&mut s, &["a"]);
    let links =
        xds_machine_grpc::links::Links::Cluster(xds_machine_grpc::links::ClusterLinks::Aggregate(vec!["a".into()]));
    assert_eq!(s.put(&cluster("g"), links, "other"), "{l r a:v, g:[a]}");
    let config = s.chain.told().cloned().expect("told").expect("usable");
    assert_eq!(config.clusters.get(&"g".into()).expect("there").as_ref().expect("usable").value, "other");
}

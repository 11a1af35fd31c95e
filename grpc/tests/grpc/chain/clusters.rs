//! Single clusters: their endpoints, their errors, and when they are watched.

use xds_machine_grpc::chain::Children;
use xds_machine_grpc::links::Links;

use super::{cluster, endpoints, routed};

#[test]
fn clusters_share_endpoint_watches_and_dns_lookups() {
    // R-CHAIN-07, R-CHAIN-08
    let mut s = routed(&["a", "b", "c", "d"]);
    assert_eq!(s.eds("a", "e"), "+EDS e");
    assert_eq!(s.eds("b", "e"), "");
    assert_eq!(s.dns("c", "x"), "+DNS x:80");
    assert_eq!(s.dns("d", "x"), "");
    s.resolved("x", Ok(&["1.2.3.4:80"]));
    assert_eq!(s.endpoints("e", "1"), "{l r a:1, b:1, c:[1.2.3.4:80], d:[1.2.3.4:80]}");
    assert_eq!(s.endpoints("e", "2"), "{l r a:2, b:2, c:[1.2.3.4:80], d:[1.2.3.4:80]}");
    assert_eq!(s.eds("a", "e2"), "+EDS e2");
    assert_eq!(s.dns("d", "y"), "+DNS y:80");
}

#[test]
fn the_endpoints_of_a_cluster_are_renamed_in_one_step() {
    // R-CHAIN-12
    let mut s = routed(&["a"]);
    s.eds("a", "e1");
    s.endpoints("e1", "1");
    assert_eq!(s.eds("a", "e2"), "+EDS e2 -EDS e1");
    assert_eq!(s.endpoints("e1", "late"), "", "the old watch is over");
    assert_eq!(s.endpoints("e2", "2"), "{l r a:2}");
}

#[test]
fn a_cluster_in_error_does_not_affect_other_clusters() {
    // R-CHAIN-15, R-CHAIN-26, R-CHAIN-28
    let mut s = routed(&["a", "b"]);
    s.eds("a", "a");
    s.endpoints("a", "1");
    assert_eq!(s.fail(&cluster("b"), "gone"), "{l r a:1, b:!CDS resource b: gone}");
    assert_eq!(s.eds("b", "b"), "+EDS b");
    assert_eq!(s.endpoints("b", "2"), "{l r a:1, b:2}");
    assert_eq!(s.fail(&cluster("b"), "gone"), "-EDS b {l r a:1, b:!CDS resource b: gone}", "R-CHAIN-28");
    assert_eq!(s.fail(&cluster("b"), "denied"), "{l r a:1, b:!CDS resource b: denied}");
    assert_eq!(s.eds("b", "b"), "+EDS b", "R-CHAIN-28: asked for again");
}

#[test]
fn a_rejected_cluster_update_keeps_the_held_cluster() {
    // R-CHAIN-29: the watches report it as an ambient error.
    let mut s = routed(&["a"]);
    s.eds("a", "a");
    s.endpoints("a", "1");
    assert_eq!(s.ambient(&cluster("a"), Some("bad")), "{l r a:1(CDS resource a: bad)}");
}

#[test]
fn the_old_cluster_stays_in_use_until_the_new_one_arrives_or_fails() {
    // R-CHAIN-27, R-CHAIN-11
    let mut s = routed(&["a"]);
    s.eds("a", "a");
    s.endpoints("a", "1");
    assert_eq!(s.routes("r", &["b"]), "+CDS b");
    assert_eq!(s.routes("r", &["c"]), "+CDS c -CDS b", "what was only waited for is not kept");
    assert_eq!(s.endpoints("a", "2"), "");
    assert_eq!(s.fail(&cluster("c"), "timeout"), "{l r c:!CDS resource c: timeout} -CDS a -EDS a");
    assert_eq!(s.eds("c", "c"), "+EDS c");
    assert_eq!(s.endpoints("c", "3"), "{l r c:3}");
}

#[test]
fn endpoints_in_error_are_a_note() {
    // R-CHAIN-30
    let mut s = routed(&["a"]);
    s.eds("a", "e");
    assert_eq!(s.fail(&endpoints("e"), "gone"), "{l r a:(EDS resource e: gone)}");
    assert_eq!(s.fail(&endpoints("e"), "denied"), "{l r a:(EDS resource e: denied)}");
    assert_eq!(s.endpoints("e", "1"), "{l r a:1}");
    assert_eq!(s.fail(&endpoints("e"), "gone"), "{l r a:(EDS resource e: gone)}");
}

#[test]
fn empty_endpoints_are_reported_as_a_lack_and_not_as_a_note() {
    // R-CHAIN-31
    let mut s = routed(&["a"]);
    s.eds("a", "e");
    let links = Links::Endpoints(Some("contains no localities".into()));
    assert_eq!(s.put(&endpoints("e"), links, "0"), "{l r a:0(EDS resource e: contains no localities)}");
    let config = s.chain.told().cloned().expect("told").expect("usable");
    let entry = config.clusters.get(&"a".into()).expect("there").as_ref().expect("usable");
    let lacks = "EDS resource e: contains no localities".to_string();
    let children = Children::Endpoints { name: "e".into(), value: Some("0".into()), lacks, note: String::new() };
    assert_eq!(entry.children, children, "it is no note: nothing failed");
}

#[test]
fn a_failed_dns_resolution_is_ignored_after_a_success() {
    // R-CHAIN-32
    let mut s = routed(&["d"]);
    s.dns("d", "x");
    assert_eq!(s.resolved("x", Err("NXDOMAIN")), "{l r d:[](DNS resolution failed for x:80: NXDOMAIN)}");
    assert_eq!(s.resolved("x", Err("SERVFAIL")), "{l r d:[](DNS resolution failed for x:80: SERVFAIL)}");
    assert_eq!(s.resolved("x", Ok(&["[::1]:80"])), "{l r d:[[::1]:80]}");
    assert_eq!(s.resolved("x", Err("NXDOMAIN")), "");
    assert_eq!(s.resolved("x", Ok(&["1.1.1.1:80"])), "{l r d:[1.1.1.1:80]}");
    assert_eq!(s.resolved("x", Ok(&["1.1.1.1:80"])), "");
    assert_eq!(s.resolved("y", Ok(&["1.1.1.1:80"])), "", "nobody asked");
}

#[test]
fn a_cluster_changes_its_kind_in_one_step() {
    // R-CHAIN-44; GB-04
    let mut s = routed(&["a", "b"]);
    s.fail(&cluster("b"), "gone");
    s.eds("a", "e");
    s.endpoints("e", "1");
    assert_eq!(s.dns("a", "x"), "+DNS x:80 -EDS e");
    s.resolved("x", Ok(&["1.1.1.1:80"]));
    assert_eq!(s.aggregate("a", &["c"]), "+CDS c -DNS x:80");
    assert_eq!(s.eds("c", "e"), "+EDS e");
    assert_eq!(s.endpoints("e", "2"), "{l r a:[c], b:!CDS resource b: gone, c:2}");
    assert_eq!(s.eds("a", "e"), "-CDS c {l r a:2, b:!CDS resource b: gone}");
}

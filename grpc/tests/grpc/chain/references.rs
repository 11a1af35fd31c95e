//! Dynamic references.

use super::{cluster, routed};

#[test]
fn a_reference_keeps_a_cluster_until_the_last_release() {
    // R-CHAIN-46
    let mut s = routed(&["a"]);
    s.eds("a", "a");
    s.endpoints("a", "1");
    let before = (s.chain.wanted(), s.chain.config());
    let (one, two) = (s.subscribe("b"), s.subscribe("b"));
    assert_eq!(s.settle(), "+CDS b");
    assert_eq!(s.eds("b", "b"), "+EDS b");
    assert_eq!(s.endpoints("b", "2"), "{l r a:1, b:2}");
    s.release(&one);
    s.chain.release(&one);
    assert_eq!(s.settle(), "", "a second release of one is none of the other");
    s.release(&two);
    assert_eq!(s.settle(), "-CDS b -EDS b {l r a:1}");
    assert_eq!((s.chain.wanted(), s.chain.config()), before);
}

#[test]
fn an_unresolved_reference_does_not_delay_the_configuration() {
    // R-CHAIN-47
    let mut s = routed(&["a"]);
    s.eds("a", "a");
    let reference = s.subscribe("g");
    assert_eq!(s.settle(), "+CDS g");
    assert_eq!(s.endpoints("a", "1"), "{l r a:1}");
    assert_eq!(s.aggregate("g", &["b", "a"]), "+CDS b");
    assert_eq!(s.endpoints("a", "2"), "{l r a:2}");
    assert_eq!(s.eds("b", "b"), "+EDS b");
    assert_eq!(s.endpoints("a", "3"), "{l r a:3}");
    assert_eq!(s.endpoints("b", "4"), "{l r a:3, b:4, g:[b, a]}");
    s.release(&reference);
    assert_eq!(s.settle(), "-CDS b -CDS g -EDS b {l r a:3}");
}

#[test]
fn a_reference_with_unresolved_endpoints_is_left_out_of_the_configuration() {
    // R-CHAIN-47
    let mut s = routed(&[]);
    let _reference = s.subscribe("g");
    s.settle();
    s.eds("g", "g");
    assert_eq!(s.endpoints("g", "1"), "{l r g:1}");
    assert_eq!(s.eds("g", "other"), "+EDS other -EDS g {l r }");
    assert_eq!(s.fail(&cluster("g"), "gone"), "-EDS other {l r g:!CDS resource g: gone}");
}

#[test]
fn a_referenced_cluster_stays_after_it_leaves_the_routes() {
    // R-CHAIN-48 (grpc-java#12152)
    let mut s = routed(&["a"]);
    s.eds("a", "a");
    s.endpoints("a", "1");
    let reference = s.subscribe("a");
    assert_eq!(s.settle(), "");
    assert_eq!(s.routes("r", &["b"]), "+CDS b");
    assert_eq!(s.fail(&cluster("b"), "gone"), "{l r a:1, b:!CDS resource b: gone}");
    assert_eq!(s.endpoints("a", "2"), "{l r a:2, b:!CDS resource b: gone}");
    s.release(&reference);
    assert_eq!(s.settle(), "-CDS a -EDS a {l r b:!CDS resource b: gone}");
}

#[test]
fn two_references_keep_a_cluster_that_left_the_routes_until_both_are_released() {
    // R-CHAIN-46
    let mut s = routed(&["a"]);
    s.fail(&cluster("a"), "gone");
    let one = s.subscribe("a");
    let other = s.subscribe("a");
    assert_eq!(s.settle(), "");
    assert_eq!(s.routes("r", &[]), "{l r a:!CDS resource a: gone}");
    s.release(&one);
    assert_eq!(s.settle(), "");
    s.release(&other);
    assert_eq!(s.settle(), "-CDS a {l r }");
}

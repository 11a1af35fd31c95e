//! The choice of a virtual host.

use xds_machine_grpc::domains::best_host;
use xds_machine_grpc::links::VirtualHost;

fn choose(hosts: &[&[&str]], authority: &str) -> Option<usize> {
    let host = |domains: &&[&str]| {
        let domains = domains.iter().map(ToString::to_string).collect();
        VirtualHost { name: String::new(), domains, clusters: vec![] }
    };
    best_host(&hosts.iter().map(host).collect::<Vec<_>>(), authority)
}

#[test]
fn the_virtual_host_with_the_best_domain_is_selected() {
    // R-RTE-03
    let all: &[&[&str]] = &[&["*"], &["foo.*"], &["foo.b*"], &["*.com"], &["*.bar.com"], &["foo.bar.com"]];
    assert_eq!(choose(all, "foo.bar.com"), Some(5));
    assert_eq!(choose(all, "x.bar.com"), Some(4));
    assert_eq!(choose(all, "foo.com"), Some(3));
    assert_eq!(choose(all, "foo.bar.org"), Some(2));
    assert_eq!(choose(all, "foo.org"), Some(1));
    assert_eq!(choose(all, "org"), Some(0));
    assert_eq!(choose(&all[1..], "org"), None);
    assert_eq!(choose(&[&["foo.bar.*", "*"], &["*m"]], "foo.bar.com"), Some(1), "a suffix before a longer prefix");
    assert_eq!(choose(&[&["a", "*"], &["*", "a"]], "a"), Some(0), "the first of equals");
    assert_eq!(choose(&[&["*a"], &["a*"]], "a"), Some(0), "a wildcard may stand for nothing");
    assert_eq!(choose(&[], "a"), None);
}

#[test]
fn domains_match_case_insensitively() {
    // R-RTE-04
    assert_eq!(choose(&[&["FOO.com"]], "foo.COM"), Some(0));
    assert_eq!(choose(&[&["*.CoM"]], "foo.com"), Some(0));
    assert_eq!(choose(&[&["FO*"]], "foo.com"), Some(0));
}

#[test]
fn the_port_is_part_of_the_authority() {
    // R-RTE-05
    assert_eq!(choose(&[&["foo.com"]], "foo.com:80"), None);
    assert_eq!(choose(&[&["foo.com:80"]], "foo.com:80"), Some(0));
}

#[test]
fn wildcard_domains_match_by_bytes() {
    assert_eq!(choose(&[&["*\u{fc}"], &["\u{fc}*"]], "\u{fc}"), Some(0));
    assert_eq!(choose(&[&["*abc"], &["abc*"]], "b\u{fc}"), None);
}

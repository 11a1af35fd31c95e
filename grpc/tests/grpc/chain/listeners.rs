//! From the Listener to the virtual host, and when there is a configuration at all.

use xds_machine_grpc::chain::{Failure, Target};
use xds_machine_grpc::links::{Links, ListenerLinks, RouteSource};

use super::{cluster, endpoints, gone, host, listener, routed, routes, story};
use xds_machine::watch::News;
use xds_machine_grpc::chain::Linked;

#[test]
fn only_the_listener_is_watched_at_first() {
    // R-CHAIN-01
    assert_eq!(story().1, "+LDS l");
}

#[test]
fn a_listener_links_to_rds_routes_or_contains_inline_routes() {
    // R-CHAIN-02, R-CHAIN-06, R-CHAIN-07, R-CHAIN-14
    let (mut s, _) = story();
    assert_eq!(s.rds("r"), "+RDS r");
    assert_eq!(s.chain.waits_for(), [routes("r")]);
    assert_eq!(s.routes("r", &["a", "b"]), "+CDS a +CDS b");
    assert_eq!(s.eds("b", "b"), "+EDS b");
    assert_eq!(s.eds("a", "service"), "+EDS service");
    assert_eq!(s.endpoints("b", "1"), "");
    assert_eq!(s.chain.waits_for(), [endpoints("service")]);
    assert_eq!(s.endpoints("service", "2"), "{l r a:2, b:1}");

    let (mut s, _) = story();
    assert_eq!(s.inline(&["a"]), "+CDS a", "R-CHAIN-02: no RDS");
}

#[test]
fn a_route_configuration_is_renamed_in_one_step() {
    // R-CHAIN-03, R-CHAIN-11, R-CHAIN-22, R-CHAIN-23
    let mut s = routed(&["a"]);
    s.eds("a", "a");
    assert_eq!(s.endpoints("a", "1"), "{l r a:1}");
    assert_eq!(s.rds("r2"), "+RDS r2 -RDS r");
    assert_eq!(s.endpoints("a", "2"), "", "GB-02: the new Listener has no routes yet");
    assert_eq!(s.routes("r", &["a"]), "", "GB-15: late news of the old routes");
    assert_eq!(s.chain.waits_for(), [routes("r2")]);
    assert_eq!(s.routes("r2", &["b"]), "+CDS b", "the cluster in use stays");
    assert_eq!(s.eds("b", "b"), "+EDS b");
    assert_eq!(s.endpoints("b", "3"), "{l r2 b:3} -CDS a -EDS a");
}

#[test]
fn routes_may_move_from_rds_to_inline_and_back() {
    // R-CHAIN-04
    let mut s = routed(&["a"]);
    s.eds("a", "a");
    s.endpoints("a", "1");
    assert_eq!(s.inline(&["a"]), "-RDS r {l inline a:1}");
    assert_eq!(s.rds("r"), "+RDS r", "the routes in use stay until the new ones come");
    assert_eq!(s.routes("r", &["a"]), "{l r a:1}");
}

#[test]
fn a_new_listener_with_the_same_routes_is_a_new_configuration() {
    // R-CHAIN-05, R-CHAIN-24
    let mut s = routed(&[]);
    let links = Links::Listener(ListenerLinks::Api(RouteSource::Rds("r".into())));
    assert_eq!(s.put(&listener(), links.clone(), "filters"), "{filters r }");
    assert_eq!(s.put(&listener(), links, "filters"), "", "R-CHAIN-24: an equal one is none");
}

#[test]
fn a_listener_or_routes_error_replaces_the_configuration() {
    // R-CHAIN-17, R-CHAIN-20, R-CHAIN-21, R-CHAIN-35
    for (target, text) in [(listener(), "!LDS resource l: gone"), (routes("r"), "!RDS resource r: gone")] {
        let mut s = routed(&["a"]);
        s.eds("a", "a");
        s.endpoints("a", "1");
        assert_eq!(s.fail(&target, "gone"), text, "R-CHAIN-20: no watch ends");
        let told = s.chain.told().cloned();
        assert_eq!(told, Some(Err(Failure::Resource { target: target.clone(), status: gone("gone") })));
        assert_eq!(s.endpoints("a", "2"), "", "R-CHAIN-21: nothing below it is told");
        assert_eq!(s.fail(&target, "gone"), "");
        assert_eq!(s.fail(&target, "still gone"), text.replace("gone", "still gone"));
        let again = if target == listener() { s.rds("r") } else { s.routes("r", &["a"]) };
        assert_eq!(again, "{l r a:2}", "R-CHAIN-21: by what is held, without asking again");
    }
}

#[test]
fn an_error_before_the_first_configuration_ends_no_watch() {
    // R-CHAIN-20
    let mut s = routed(&["a"]);
    assert_eq!(s.fail(&routes("r"), "gone"), "!RDS resource r: gone");
    assert_eq!(s.fail(&listener(), "gone"), "!LDS resource l: gone");
    assert_eq!(s.eds("a", "a"), "+EDS a");
}

#[test]
fn a_listener_of_a_server_is_an_error() {
    // R-CHAIN-18
    let mut s = routed(&["a"]);
    let links = Links::Listener(ListenerLinks::Socket { address: None, routes: vec![RouteSource::Rds("r2".into())] });
    assert_eq!(s.put(&listener(), links, "l"), "!LDS resource l: not an API listener");
}

#[test]
fn a_missing_virtual_host_is_an_error_of_the_resource_with_the_routes() {
    // R-CHAIN-19
    let (mut s, _) = story();
    s.rds("r");
    let text = "resource r: could not find VirtualHost for host in RouteConfiguration";
    assert_eq!(s.put(&routes("r"), Links::Routes(vec![]), "r"), format!("!RDS {text}"));
    let inline = Links::Listener(ListenerLinks::Api(RouteSource::Inline(vec![])));
    let text = "-RDS r !LDS resource l: could not find VirtualHost for host in RouteConfiguration";
    assert_eq!(s.put(&listener(), inline, "l"), text);
}

#[test]
fn only_clusters_of_the_selected_virtual_host_are_watched() {
    // R-CHAIN-06
    let (mut s, _) = story();
    s.rds("r");
    let mut other = host(&["b"]);
    other.domains = vec!["other".into(), "*".into()];
    assert_eq!(s.put(&routes("r"), Links::Routes(vec![other, host(&["a"])]), "r"), "+CDS a");
    s.fail(&cluster("a"), "gone");
    let config = s.chain.told().cloned().expect("told").expect("usable");
    assert_eq!((config.virtual_host_index, &config.virtual_host.name[..]), (1, "host"));
}

#[test]
fn an_update_of_many_resources_is_one_configuration() {
    // R-CHAIN-25
    let mut s = routed(&["a", "b"]);
    for name in ["a", "b"] {
        s.tell(&cluster(name), News::Changed(Err(gone("gone"))));
    }
    assert_eq!(s.settle(), "{l r a:!CDS resource a: gone, b:!CDS resource b: gone}");
}

#[test]
fn events_after_a_shutdown_are_ignored() {
    // R-CHAIN-13, R-CHAIN-49
    let mut s = routed(&["a"]);
    assert_eq!(s.chain.waits_for(), [cluster("a")]);
    assert_eq!(s.shut_down(), "-LDS l -RDS r -CDS a");
    assert_eq!(s.chain.waits_for(), []);
    assert_eq!(s.rds("r2"), "");
    let reference = s.chain.subscribe("b");
    assert_eq!((s.settle(), reference.cluster().as_str()), (String::new(), "b"));
    s.chain.release(&reference);
    assert_eq!(s.settle(), "");
}

#[test]
fn links_of_another_type_are_an_error_of_the_decoder() {
    let (mut s, _) = story();
    let told = s.put(&listener(), Links::Endpoints(None), "l");
    assert_eq!(told, "!LDS resource l: the decoder gave the links of another type: Endpoints(None)");
}

#[test]
fn every_target_except_dns_has_a_type_url_and_a_name() {
    let all = [listener(), routes("r"), cluster("c"), endpoints("e")];
    for target in all {
        let (type_url, name) = target.resource().expect("a resource");
        assert_eq!(Target::of(&type_url, name), Some(target.clone()));
    }
    assert_eq!(Target::Dns(super::dns("x")).resource(), None);
    assert_eq!(Target::of(&"other".into(), &"x".into()), None);
}

#[test]
fn ambient_errors_are_notes_of_every_leaf() {
    // R-CHAIN-33, R-CHAIN-34
    let mut s = routed(&["a"]);
    s.eds("a", "e");
    s.endpoints("e", "1");
    assert_eq!(s.ambient(&listener(), Some("v")), "{l r a:1(LDS resource l: v)}");
    assert_eq!(s.ambient(&cluster("a"), Some("x")), "{l r a:1(LDS resource l: v; CDS resource a: x)}");
    assert_eq!(
        s.ambient(&endpoints("e"), Some("y")),
        "{l r a:1(LDS resource l: v; CDS resource a: x; EDS resource e: y)}"
    );
    let all = "LDS resource l: v; RDS resource r: w; CDS resource a: x; EDS resource e: y";
    assert_eq!(s.ambient(&routes("r"), Some("w")), format!("{{l r a:1({all})}}"));
    assert_eq!(s.ambient(&routes("r"), Some("w")), "");
    assert_eq!(s.ambient(&listener(), None), format!("{{l r a:1({})}}", &all["LDS resource l: v; ".len()..]));
    s.ambient(&routes("r"), None);
    s.ambient(&cluster("a"), None);
    assert_eq!(s.ambient(&endpoints("e"), None), "{l r a:1}");
}

#[test]
fn an_ambient_error_without_a_held_resource_is_not_reported() {
    let mut s = routed(&["a"]);
    let before = s.chain.clone();
    assert_eq!(s.ambient(&cluster("a"), Some("x")), "");
    s.fail(&cluster("a"), "gone");
    assert_eq!(s.ambient(&cluster("a"), Some("x")), "");
    assert_ne!(s.chain, before);
    s.tell(&cluster("a"), News::Changed(Ok(Linked::new(Links::Endpoints(None), String::new()))));
}

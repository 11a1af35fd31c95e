//! RouteConfigurations: R-RTE.

use serde_json::{Value, json};
use xds_machine_grpc::domains::best_host;
use xds_machine_grpc::links::{self, Links};
use xds_machine_grpc::resources::{Context, Destination, PathMatch, Route, RouteAction, Routes, decode_routes};

use super::resource::{Decoder, any};

const ROUTES: Decoder<Routes> = Decoder { message: "envoy.config.route.v3.RouteConfiguration", decode: decode_routes };

/// One virtual host with these routes.
fn config(routes: Value) -> Value {
    json!({"name": "r", "virtualHosts": [{"name": "v", "domains": ["*"], "routes": routes}]})
}

fn routes(routes: Value) -> Vec<Route> {
    let mut value = ROUTES.value(config(routes));
    value.hosts.remove(0).routes
}

/// The faults of one route.
fn faults(route: Value) -> String {
    ROUTES.faults(config(json!([route]))).replace("virtual_hosts[0].routes[0]", "*")
}

fn to(action: Value) -> Value {
    json!({"match": {"prefix": ""}, "route": action})
}

/// The action of one route; `None` if it is ignored.
fn action(route: Value) -> Option<RouteAction> {
    routes(json!([route])).into_iter().next().map(|route| route.action)
}

fn forward(to: Destination) -> Option<RouteAction> {
    Some(RouteAction::Forward { to, auto_host_rewrite: false })
}

/// R-RTE-01: All virtual hosts are validated, and every fault is named.
#[test]
fn all_virtual_hosts_are_validated() {
    let bad = json!({"match": {}, "route": {"cluster": ""}});
    let config = json!({"virtualHosts": [
        {"domains": ["a"], "routes": [bad]},
        {"domains": [], "routes": [to(json!({"cluster": ""})), {}]},
    ]});
    assert_eq!(
        ROUTES.faults(config),
        "[field:virtual_hosts[0].routes[0].match error:invalid path specifier; \
          field:virtual_hosts[1].domains error:must be non-empty; \
          field:virtual_hosts[1].routes[0].route.cluster error:must be non-empty; \
          field:virtual_hosts[1].routes[1].match error:field not present]"
    );
}

/// R-RTE-02: A domain is a name, or has an asterisk at an end; other asterisks are characters, as in C-core and
/// grpc-go.
#[test]
fn a_domain_with_an_asterisk_only_inside_is_a_fault() {
    let config = |domain: &str| json!({"virtualHosts": [{"domains": [domain]}]});
    for domain in ["a", "*", "*a", "a*", "*.a", "a.b.*", "[::1]:80", "**", "*a*", "*a*b", "a*b*"] {
        assert_eq!(ROUTES.value(config(domain)).hosts[0].domains, [domain]);
    }
    for domain in ["", "a*b", "a**b"] {
        let expected = format!("[field:virtual_hosts[0].domains[0] error:invalid domain pattern {domain:?}]");
        assert_eq!(ROUTES.faults(config(domain)), expected);
    }
}

fn hosts(domains: &[&[&str]]) -> Vec<links::VirtualHost> {
    let host = |domains: &&[&str]| links::VirtualHost {
        name: String::new(),
        domains: domains.iter().map(ToString::to_string).collect(),
        clusters: vec![],
    };
    domains.iter().map(host).collect()
}

/// R-RTE-03: An exact domain comes before the longest suffix, that before the longest prefix, and `*` is the last; the
/// first of equals counts, and an asterisk may stand for nothing.
#[test]
fn the_virtual_host_with_the_best_domain_is_selected() {
    let all = hosts(&[&["*"], &["a.*"], &["a.b.*"], &["*.c"], &["*b.c", "x"], &["a.b.c"], &["a.b.c"]]);
    assert_eq!(best_host(&all, "a.b.c"), Some(5));
    assert_eq!(best_host(&all, "z.b.c"), Some(4));
    assert_eq!(best_host(&all, "b.c"), Some(4), "an asterisk stands for nothing");
    assert_eq!(best_host(&all, "a.c"), Some(3), "a suffix comes before a prefix");
    assert_eq!(best_host(&all, "a.b.d"), Some(2));
    assert_eq!(best_host(&all, "a.d"), Some(1));
    assert_eq!(best_host(&all, "a."), Some(1), "an asterisk stands for nothing");
    assert_eq!(best_host(&all, "d"), Some(0));
    assert_eq!(best_host(&all, ""), Some(0));
    assert_eq!(best_host(&all[1..], "d"), None);
    assert_eq!(best_host(&hosts(&[&["*"], &["*"]]), "d"), Some(0), "the first of equals");
    assert_eq!(best_host(&hosts(&[&["d*", "*"], &["*", "d"]]), "d"), Some(1), "the best domain of a host counts");
    assert_eq!(best_host(&hosts(&[&["*ß", "ß*"]]), "a"), None, "no part of a character");
    assert_eq!(best_host(&[], "d"), None);
    assert_eq!(best_host(&hosts(&[&["*a*"]]), "b.a*"), Some(0), "the second asterisk is itself");
    assert_eq!(best_host(&hosts(&[&["*a*"]]), "b.a.c"), None);
}

/// R-RTE-04: The case of letters does not count.
#[test]
fn domains_match_case_insensitively() {
    for domain in ["Api.Example.com", "*.exAMPLE.com", "API.*"] {
        assert_eq!(best_host(&hosts(&[&[domain]]), "aPI.example.COM"), Some(0), "{domain}");
    }
}

/// R-RTE-05: The port is part of the authority.
#[test]
fn the_port_is_part_of_the_authority() {
    assert_eq!(best_host(&hosts(&[&["a"], &["a:80"]]), "a:80"), Some(1));
    assert_eq!(best_host(&hosts(&[&["a"]]), "a:80"), None);
}

/// R-RTE-06: Domains may be listed twice, and there may be no virtual hosts at all.
#[test]
fn duplicate_domains_and_no_virtual_hosts_are_valid() {
    let twice = ROUTES.value(json!({"virtualHosts": [{"domains": ["a", "a"]}, {"domains": ["a"]}]}));
    assert_eq!(twice.hosts.len(), 2);
    assert_eq!(ROUTES.value(json!({})), Routes::default());
}

/// R-RTE-07: A route has a match with a path specifier that gRPC knows.
#[test]
fn a_route_requires_a_known_path_specifier() {
    assert_eq!(faults(json!({"route": {"cluster": "a"}})), "[field:*.match error:field not present]");
    for conditions in [
        json!({}),
        json!({"connectMatcher": {}}),
        json!({"pathSeparatedPrefix": "/a"}),
        json!({"pathMatchPolicy": {"name": "x"}}),
    ] {
        let route = json!({"match": conditions, "route": {"cluster": "a"}});
        assert_eq!(faults(route), "[field:*.match error:invalid path specifier]");
    }
    let path = |conditions: Value| {
        routes(json!([{"match": conditions, "route": {"cluster": "a"}}])).into_iter().map(|r| (r.path, r.ignore_case))
    };
    assert!(path(json!({"prefix": "/a"})).eq([(PathMatch::Prefix("/a".into()), false)]));
    assert!(path(json!({"path": "/a/b", "caseSensitive": false})).eq([(PathMatch::Exact("/a/b".into()), true)]));
    let regex = json!({"safeRegex": {"regex": ".*"}, "caseSensitive": true});
    assert!(path(regex).eq([(PathMatch::Regex(".*".into()), false)]));
}

/// R-RTE-08: A virtual host may have no routes.
#[test]
fn a_virtual_host_without_routes_is_valid() {
    assert_eq!(routes(json!([])), []);
}

/// R-RTE-09: A route with query parameters is ignored, faults included; the indexes of the others do not change.
#[test]
fn a_route_with_query_parameters_is_ignored() {
    let ignored = json!({"match": {"queryParameters": [{"name": "q"}]}, "route": {"cluster": ""}});
    let routes = routes(json!([ignored, to(json!({"cluster": "a"}))]));
    assert_eq!(routes.len(), 1);
    assert_eq!(routes[0].index, 1);
}

/// R-RTE-10: A path that no method of gRPC has is kept, and its cluster watched, as grpc-go does.
#[test]
fn a_route_whose_path_matches_no_method_is_kept() {
    for conditions in [json!({"prefix": "a"}), json!({"prefix": "//"}), json!({"path": ""}), json!({"path": "/a/b/c"})]
    {
        let view = ROUTES.decode(config(json!([{"match": conditions, "route": {"cluster": "a"}}]))).expect("valid");
        let Links::Routes(hosts) = view.links() else { panic!("routes") };
        assert_eq!(hosts[0].clusters, ["a"]);
    }
}

/// R-RTE-11: A route whose cluster can't be known is ignored.
#[test]
fn a_route_without_a_known_cluster_specifier_is_ignored() {
    assert_eq!(action(to(json!({}))), None);
    assert_eq!(action(to(json!({"clusterHeader": "x"}))), None);
    assert_eq!(action(to(json!({"inlineClusterSpecifierPlugin": {}}))), None);
}

/// R-RTE-12: Any other action is kept: the route matches.
#[test]
fn a_route_with_an_unsupported_action_is_kept() {
    for field in ["redirect", "directResponse", "nonForwardingAction", "filterAction"] {
        let mut route = json!({"match": {"prefix": ""}});
        route[field] = json!({});
        assert_eq!(action(route), Some(RouteAction::Unsupported), "{field}");
    }
    assert_eq!(action(json!({"match": {"prefix": ""}})), Some(RouteAction::Unsupported));
}

/// R-RTE-13: A cluster has a name.
#[test]
fn a_route_requires_a_cluster_name() {
    assert_eq!(faults(to(json!({"cluster": ""}))), "[field:*.route.cluster error:must be non-empty]");
    assert_eq!(action(to(json!({"cluster": "a"}))), forward(Destination::Cluster("a".into())));
}

/// R-RTE-14: Clusters of weight 0, or without weight, are dropped; the others have names, and weights of 32 bits
/// altogether.
#[test]
fn weighted_clusters_of_weight_zero_are_dropped() {
    let to = |clusters: Value| to(json!({"weightedClusters": {"clusters": clusters}}));
    let weighted = |all: &[(&str, u32)]| {
        forward(Destination::Weighted(all.iter().map(|(name, weight)| ((*name).into(), *weight)).collect()))
    };
    let mixed =
        json!([{"name": "a", "weight": 1}, {"name": "b", "weight": 0}, {"name": "c"}, {"name": "a", "weight": 2}]);
    assert_eq!(action(to(mixed)), weighted(&[("a", 1), ("a", 2)]));
    let most = json!([{"name": "a", "weight": u32::MAX - 1}, {"name": "b", "weight": 1}]);
    assert_eq!(action(to(most)), weighted(&[("a", u32::MAX - 1), ("b", 1)]));
    let at = "field:*.route.weighted_clusters";
    for none in [json!([]), json!([{"name": "a", "weight": 0}, {"name": "b"}])] {
        assert_eq!(faults(to(none)), format!("[{at} error:no valid clusters specified]"));
    }
    let over = json!([{"name": "a", "weight": u32::MAX}, {"name": "b", "weight": 1}]);
    assert_eq!(faults(to(over)), format!("[{at} error:sum of cluster weights exceeds uint32 max]"));
    let nameless = json!([{"name": "a", "weight": 1}, {"weight": 0}, {"weight": 5}]);
    assert_eq!(
        faults(to(nameless)),
        format!("[{at}.clusters[1].name error:must be non-empty; {at}.clusters[2].name error:must be non-empty]")
    );
}

/// R-CHAIN-06: The clusters of a host, each once, in the order of the routes; of the routes that count.
#[test]
fn the_links_of_a_host_are_the_clusters_of_its_routes() {
    let mirrored = json!({"cluster": "b", "requestMirrorPolicies": [{"cluster": "mirror"}]});
    let weighted = json!({"weightedClusters": {"clusters": [
        {"name": "d", "weight": 1}, {"name": "zero", "weight": 0}, {"name": "a", "weight": 1},
    ]}});
    let ignored = json!({"match": {"prefix": "", "queryParameters": [{"name": "q"}]}, "route": {"cluster": "ignored"}});
    let redirect = json!({"match": {"prefix": ""}, "redirect": {}});
    let routes = json!([to(mirrored), ignored, redirect, to(weighted), to(json!({"cluster": "b"}))]);
    let view = ROUTES.decode(config(routes)).expect("valid");
    let host = links::VirtualHost {
        name: "v".into(),
        domains: vec!["*".into()],
        clusters: vec!["b".into(), "d".into(), "a".into()],
    };
    assert_eq!(view.links(), Links::Routes(vec![host]));
}

const PLUGIN: &str = "envoy.config.core.v3.Locality"; // any message does

fn plugin(name: &str, kind: &str, optional: bool) -> Value {
    json!({"extension": {"name": name, "typedConfig": any(kind, json!({}))}, "isOptional": optional})
}

fn with_plugins(plugins: Value, to_plugin: &str) -> Value {
    let mut config = config(json!([to(json!({"clusterSpecifierPlugin": to_plugin}))]));
    config["clusterSpecifierPlugins"] = plugins;
    config
}

/// R-RTE-15: A plugin is supported, or optional; its name is unique, and the plugin of every route is listed.
#[test]
fn an_unsupported_cluster_specifier_plugin_is_a_fault_unless_optional() {
    let supports = Context::default().with_plugin(PLUGIN);
    let other = "envoy.config.cluster.v3.Cluster";
    let actions = |config: Value| {
        let view = ROUTES.decode_with(&supports, config).expect("valid");
        view.into_value().hosts.remove(0).routes.into_iter().map(|route| route.action)
    };
    let known = Some(RouteAction::Forward { to: Destination::Plugin("p".into()), auto_host_rewrite: false });
    assert!(actions(with_plugins(json!([plugin("p", PLUGIN, false)]), "p")).eq(known.clone()));
    assert!(actions(with_plugins(json!([plugin("p", PLUGIN, true)]), "p")).eq(known));
    assert!(actions(with_plugins(json!([plugin("p", other, true)]), "p")).eq(None), "its routes are ignored");

    let faults = |config: Value| ROUTES.faults_with(&supports, config);
    let (at, of_route) = ("cluster_specifier_plugins", "virtual_hosts[0].routes[0].route.cluster_specifier_plugin");
    let unsupported = "error:unsupported ClusterSpecifierPlugin type";
    assert_eq!(
        faults(with_plugins(json!([plugin("p", other, false)]), "p")),
        format!("[field:{at}[0].extension.typed_config {unsupported}]"),
    );
    assert_eq!(
        ROUTES.faults(with_plugins(json!([plugin("p", PLUGIN, false)]), "p")),
        format!("[field:{at}[0].extension.typed_config {unsupported}]"),
        "by default none is supported"
    );
    assert_eq!(
        faults(with_plugins(json!([plugin("p", PLUGIN, false), plugin("p", PLUGIN, false)]), "p")),
        format!("[field:{at}[1].extension.name error:duplicate name \"p\"]"),
    );
    assert_eq!(
        faults(with_plugins(json!([{"isOptional": true}, {"extension": {"name": "p"}}]), "p")),
        format!(
            "[field:{at}[0].extension error:field not present; \
              field:{at}[1].extension.typed_config error:field not present]"
        ),
    );
    assert_eq!(
        faults(with_plugins(json!([]), "q")),
        format!("[field:{of_route} error:unknown cluster specifier plugin name \"q\"]"),
    );
    assert_eq!(faults(with_plugins(json!([]), "")), format!("[field:{of_route} error:must be non-empty]"));
}

/// R-RTE-23: The host name is rewritten only by resources of a trusted server.
#[test]
fn only_a_trusted_server_rewrites_host_names() {
    let rewrites = |trusted: bool, rewrite: Value| {
        let mut route = to(json!({"cluster": "a"}));
        route["route"].as_object_mut().unwrap().extend(rewrite.as_object().unwrap().clone());
        let view = ROUTES.decode_with(&Context::default().trusted(trusted), config(json!([route]))).expect("valid");
        match &view.value().hosts[0].routes[0].action {
            RouteAction::Forward { auto_host_rewrite, .. } => *auto_host_rewrite,
            RouteAction::Unsupported => panic!("a cluster"),
        }
    };
    assert!(rewrites(true, json!({"autoHostRewrite": true})));
    assert!(!rewrites(false, json!({"autoHostRewrite": true})));
    assert!(!rewrites(true, json!({"autoHostRewrite": false})));
    assert!(!rewrites(true, json!({"hostRewriteLiteral": "x"})));
}

/// A hostile RouteConfiguration makes no long message: the first 100 faults are named, the others counted.
#[test]
fn faults_beyond_one_hundred_are_counted() {
    let routes: Vec<Value> = (0..250).map(|_| json!({})).collect();
    let faults = ROUTES.decode(config(json!(routes))).unwrap_err();
    assert_eq!((faults.iter().count(), faults.more()), (100, 150));
    assert!(faults.to_string().ends_with("; and 150 more]"), "{faults}");
}

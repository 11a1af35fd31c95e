//! The bootstrap file: R-BOOT, authorities, templates and targets; and the file written again.

use proptest::prelude::*;
use serde_json::{Value, json};
use xds_machine::client::{self, DataErrors, Dialect};
use xds_machine::message::Node;
use xds_machine::servers::{Config, Connect, Policy, ServerId, Servers};
use xds_machine::{Instant, Misuse, ResourceName, Sotw, TypeUrl, type_url};
use xds_machine_grpc::bootstrap::{Bootstrap, Era, Target, TargetError};

use super::bootstrap::{AGENT, faults, file, parse, server, supports, uris};

fn authorities(authorities: Value) -> Value {
    file(json!({"authorities": authorities}))
}

fn target(text: &str) -> Target {
    Target::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn listener(bootstrap: &Bootstrap, text: &str) -> String {
    bootstrap.listener_of(&target(text)).unwrap_or_else(|error| panic!("{text}: {error}")).as_str().to_owned()
}

/// R-BOOT-27: An authority may have no fields, and its name may be empty. R-BOOT-29: Its default template.
#[test]
fn an_authority_may_have_no_fields() {
    let bootstrap = parse(authorities(json!({"": {}, "x": {}, "a b/[c]": {"fallback_on_reachability_only": true}})));
    assert_eq!(bootstrap.authorities().keys().collect::<Vec<_>>(), ["", "a b/[c]", "x"]);
    assert_eq!(listener(&bootstrap, "xds://x/s"), "xdstp://x/envoy.config.listener.v3.Listener/s");
    let odd = &bootstrap.authorities()["a b/[c]"];
    assert_eq!(odd.listener_template(), "xdstp://a%20b%2F[c]/envoy.config.listener.v3.Listener/%s");
    assert!(odd.fallback_on_reachability_only() && !bootstrap.authorities()["x"].fallback_on_reachability_only());
    assert_eq!(bootstrap.authorities()[""].listener_template(), "xdstp:///envoy.config.listener.v3.Listener/%s");
}

/// R-BOOT-28: The template of an authority begins with the authority, with the slash after it (GB-11).
#[test]
fn gb_11_a_template_begins_with_its_authority() {
    let with = |template: &str| authorities(json!({"x": {"client_listener_resource_name_template": template}}));
    let expected = "authorities[\"x\"].client_listener_resource_name_template: field must begin with \"xdstp://x/\"";
    for other in ["%s", "xdstp://y/a/%s", "xdstp://xy/a/%s", "xdstp://x", "xdstp:///x/%s"] {
        assert_eq!(faults(with(other)), [expected], "{other}");
    }
    let bootstrap = parse(with("xdstp://x/envoy.config.listener.v3.Listener/%s?a=1"));
    assert_eq!(listener(&bootstrap, "xds://x/s"), "xdstp://x/envoy.config.listener.v3.Listener/s?a=1");
    assert_eq!(parse(with("")), parse(authorities(json!({"x": {}}))), "an empty template is none");
}

/// R-BOOT-30: An authority without servers has those of the file; the same server is in the configuration once.
#[test]
fn an_authority_without_servers_uses_the_default_servers() {
    let bootstrap = parse(json!({
        "xds_servers": [server("a"), server("b")],
        "authorities": {
            "own": {"xds_servers": [server("c"), server("b"), server("c")]},
            "none": {"xds_servers": []},
        },
    }));
    let of = |name: &str| uris(bootstrap.servers_of(&bootstrap.authorities()[name]));
    assert_eq!((of("own"), of("none")), (vec!["c", "b"], vec!["a", "b"]));
    assert_eq!(uris(bootstrap.servers().iter()), ["a", "b", "c"]);
    let client =
        || client::Config::new(Node::new("n")).with_dialect(Dialect::Grpc).with_data_errors(DataErrors::Delete);
    let expected = Config::new(Policy::Grpc, [client(), client(), client()])
        .with_default([ServerId(0), ServerId(1)])
        .with_authority("none", [])
        .with_authority("own", [ServerId(2), ServerId(1)]);
    assert_eq!(bootstrap.servers_config(Node::new("n"), Era::A53), expected);
    let bad = authorities(json!({"x": {"xds_servers": [server("a"), {}]}}));
    assert_eq!(
        faults(bad),
        ["channel_creds", "server_uri"]
            .map(|field| format!("authorities[\"x\"].xds_servers[1].{field}: field not present"))
    );
}

/// R-BOOT-31: The default template is the name itself; an empty one is none. R-BOOT-32: Every `%s` is replaced, or
/// none.
#[test]
fn every_placeholder_of_a_template_is_replaced() {
    let with = |template: &str| parse(file(json!({"client_default_listener_resource_name_template": template})));
    assert_eq!(listener(&parse(file(json!({}))), "xds:///a:80"), "a:80");
    assert_eq!(listener(&with(""), "xds:///a:80"), "a:80");
    assert_eq!(listener(&with("%s/%s-%d%"), "xds:///a"), "a/a-%d%");
    assert_eq!(listener(&with("fixed"), "xds:///a"), "fixed");
    assert_eq!(listener(&with("l/%s"), "xds:///a%20b[::1]:80"), "l/a b[::1]:80", "verbatim");
    assert_eq!(listener(&with("%s"), "xds:///%25s"), "%s", "what is put in is not replaced again");
}

/// R-BOOT-33: In a structured name the text is percent-encoded, except for the characters of a path.
#[test]
fn structured_names_are_percent_encoded() {
    let template = "xdstp://x/envoy.config.listener.v3.Listener/%s";
    let bootstrap = parse(file(json!({"client_default_listener_resource_name_template": template})));
    let id = |text: &str| {
        listener(&bootstrap, text).strip_prefix("xdstp://x/envoy.config.listener.v3.Listener/").map(str::to_owned)
    };
    assert_eq!(id("xds:///a%20b[::1]:80").as_deref(), Some("a%20b%5B::1%5D:80"));
    assert_eq!(id("xds:///-._~!$&'()*+,;=:@/z").as_deref(), Some("-._~!$&'()*+,;=:@/z"));
    let odd = parse(file(json!({"client_default_listener_resource_name_template": "xdstp:%s"})));
    assert_eq!(listener(&odd, "xds:///a/b%20c"), "xdstp:a/b%20c", "also where no name comes of it");
    assert_eq!(id("xds:///%3F%23%25%C3%A4").as_deref(), Some("%3F%23%25%C3%A4"));
}

/// R-BOOT-34: The template gets the path of the target, decoded. The forms of a target.
#[test]
fn a_target_is_parsed_into_a_decoded_authority_and_service() {
    let of = |text: &str| (target(text).authority().map(str::to_owned), target(text).service().to_owned());
    assert_eq!(of("xds:///a%20b"), (None, "a b".into()));
    assert_eq!(of("xds:///a/b"), (None, "a/b".into()));
    assert_eq!(of("xds:a:80"), (None, "a:80".into()));
    assert_eq!(of("xds:////a"), (None, "/a".into()));
    assert_eq!(of("xds://x%2Dy/a?b=c#d"), (Some("x-y".into()), "a".into()));
    assert_eq!(of("xds:///a%2"), (None, "a%2".into()), "an escape without digits stays");
    assert_eq!(of("xds:///a%zz%4"), (None, "a%zz%4".into()));
    for (text, error) in [
        ("", TargetError::Scheme),
        ("a", TargetError::Scheme),
        ("dns:///a", TargetError::Scheme),
        ("xds:", TargetError::NoService),
        ("xds:///", TargetError::NoService),
        ("xds://x", TargetError::NoService),
        ("xds:///a/", TargetError::NoService),
        ("xds:///?a", TargetError::NoService),
        ("xds:///%FF", TargetError::Encoding),
        ("xds://%FF/a", TargetError::Encoding),
    ] {
        assert_eq!(Target::parse(text), Err(error), "{text}");
    }
    assert_eq!(target("xds:///a b/[c]@:80?").data_plane_authority(), "a%20b%2F[c]@:80");
    let texts = [TargetError::Scheme, TargetError::NoService, TargetError::Encoding].map(|error| error.to_string());
    assert_eq!(
        texts,
        ["a target begins with xds:", "the target names no service", "the target is not UTF-8 when decoded",]
    );
}

/// R-BOOT-35: The file has to have the authority of a target, whose template is used.
#[test]
fn a_target_uses_the_template_of_its_authority() {
    let bootstrap = parse(file(json!({
        "client_default_listener_resource_name_template": "default/%s",
        "authorities": {"x": {"client_listener_resource_name_template": "xdstp://x/own/%s"}, "": {}},
    })));
    assert_eq!(listener(&bootstrap, "xds://x/s"), "xdstp://x/own/s");
    assert_eq!(listener(&bootstrap, "xds:///s"), "default/s", "the empty authority is of names, not of targets");
    let error = bootstrap.listener_of(&target("xds://y\"/s")).unwrap_err();
    assert_eq!(error, TargetError::UnknownAuthority { authority: "y\"".into() });
    assert_eq!(error.to_string(), "authorities[\"y\\\"\"]: field not present");
}

/// Watches the Listener of `xds:///s` by a template. Returns the refusal, or the names of the first request.
fn watch(template: &str) -> Result<Vec<ResourceName>, Misuse> {
    let bootstrap = parse(file(json!({
        "client_default_listener_resource_name_template": template, "authorities": {"x": {"xds_servers": [server("b")]}},
    })));
    let config = bootstrap.servers_config(bootstrap.node(&AGENT), Era::A53);
    let mut servers = Servers::<Sotw>::new(config).expect("a configuration");
    let name = bootstrap.listener_of(&target("xds:///s")).expect("a name");
    servers.resources_mut(&TypeUrl::from(type_url::LISTENER)).subscribe([name])?;
    let Some(Connect::Open(stream)) = servers.poll_connect(Instant::EPOCH) else { panic!("a stream") };
    servers.handle_open(stream);
    Ok(servers.poll_transmit(stream).expect("a request").request.names)
}

/// R-BOOT-36: A name of an unknown authority is refused when it is watched, and nothing is sent.
#[test]
fn a_name_of_an_unknown_authority_is_not_watched() {
    let refused = watch("xdstp://y/envoy.config.listener.v3.Listener/%s").unwrap_err();
    assert_eq!(refused.to_string(), "no server is configured for xdstp://y/envoy.config.listener.v3.Listener/s");
    let sent = watch("xdstp://x/envoy.config.listener.v3.Listener/%s").expect("it is watched");
    assert_eq!(sent, ["xdstp://x/envoy.config.listener.v3.Listener/s"]);
}

/// R-BOOT-37: A name of another type is refused; parameters are sorted, and directives dropped, before a name is sent.
#[test]
fn a_structured_name_is_normalized_before_it_is_sent() {
    let refused = watch("xdstp://x/envoy.config.cluster.v3.Cluster/%s").unwrap_err();
    assert_eq!(
        refused.to_string(),
        "xdstp://x/envoy.config.cluster.v3.Cluster/s is no name of a type.googleapis.com/envoy.config.listener.v3.Listener"
    );
    assert_eq!(watch("xdstp://x").unwrap_err().to_string(), "xdstp://x: the resource type is missing");
    let sent = watch("xdstp://x/envoy.config.listener.v3.Listener/%s?b=2&a=1#entry=z").expect("it is watched");
    assert_eq!(sent, ["xdstp://x/envoy.config.listener.v3.Listener/s?a=1&b=2"]);
}

/// R-BOOT-38: The name of a server's Listener is made by a template without a default; an empty one is none (GB-08).
#[test]
fn gb_08_the_name_of_a_server_listener_requires_a_template() {
    let name = |template: Value, address: &str| {
        let bootstrap = parse(file(json!({"server_listener_resource_name_template": template})));
        bootstrap.server_listener(address.parse().unwrap()).map(|name| name.as_str().to_owned())
    };
    assert_eq!(name(json!(null), "1.2.3.4:5"), None);
    assert_eq!(name(json!(""), "1.2.3.4:5"), None);
    assert_eq!(name(json!("l?%s"), "1.2.3.4:5").as_deref(), Some("l?1.2.3.4:5"));
    assert_eq!(name(json!("l?%s"), "[::1]:5").as_deref(), Some("l?[::1]:5"));
    let structured = name(json!("xdstp://x/envoy.config.listener.v3.Listener/%s"), "[::1]:5");
    assert_eq!(structured.as_deref(), Some("xdstp://x/envoy.config.listener.v3.Listener/%5B::1%5D:5"));
}

/// Makes valid files, with everything that a file may have.
fn files() -> impl Strategy<Value = Value> {
    let features = prop::sample::subsequence(
        vec![
            "ignore_resource_deletion",
            "fail_on_data_errors",
            "resource_timer_is_transient_error",
            "trusted_xds_server",
            "x",
        ],
        0..5,
    );
    let creds = prop::sample::select(vec![
        json!([{"type": "insecure"}]),
        json!([{"type": "x"}, {"type": "tls", "config": {"ca_certificate_file": "a"}}]),
    ]);
    let server = ("[ab]", creds, features, any::<bool>()).prop_map(|(uri, creds, features, call)| {
        let call = if call { json!([{"type": "other", "config": {"a": [1, null]}}]) } else { json!([]) };
        json!({"server_uri": uri, "channel_creds": creds, "server_features": features, "call_creds": call})
    });
    let servers = prop::collection::vec(server, 1..4);
    let authority = (prop::option::of(servers.clone()), any::<bool>(), any::<bool>());
    let authorities = prop::collection::btree_map("[xyz ]{0,2}", authority, 0..3).prop_map(|all| {
        let each = all.into_iter().map(|(name, (servers, template, fallback))| {
            let template = template.then(|| format!("xdstp://{name}/t/%s"));
            let authority = json!({
                "xds_servers": servers, "client_listener_resource_name_template": template,
                "fallback_on_reachability_only": fallback,
            });
            (name, authority)
        });
        each.collect::<serde_json::Map<_, _>>()
    });
    let node =
        ("[i]?", "[c]?", "[rz]?", "[z]?", any::<Option<i64>>()).prop_map(|(id, cluster, region, zone, number)| {
            json!({
                "id": id, "cluster": cluster, "locality": {"region": region, "zone": zone},
                "metadata": {"n": number, "l": [{"a": number}]},
            })
        });
    (servers, authorities, node, prop::option::of("[%s/]{0,4}"), prop::option::of("[%s/]{0,4}")).prop_map(
        |(servers, authorities, node, client, server)| {
            json!({
                "xds_servers": servers, "authorities": authorities, "node": node,
                "certificate_providers": {"p": {"plugin_name": "q", "config": {"z": 1}}},
                "client_default_listener_resource_name_template": client,
                "server_listener_resource_name_template": server,
            })
        },
    )
}

proptest! {
    /// R-BOOT-40: A printed file is parsed as an equal value, and makes a configuration.
    #[test]
    fn a_printed_bootstrap_is_parsed_as_an_equal_value(file in files()) {
        let bootstrap = parse(file);
        let printed = bootstrap.to_json();
        let again = Bootstrap::parse(&printed, supports).expect("what was printed");
        prop_assert_eq!(&again, &bootstrap);
        prop_assert_eq!(again.to_json(), printed);
        prop_assert!(Servers::<Sotw>::new(bootstrap.servers_config(bootstrap.node(&AGENT), Era::A88)).is_ok());
    }

    /// R-BOOT-03: No text causes a panic.
    #[test]
    fn any_text_is_parsed_or_refused(text in "[\\[\\]{}\",:a0-9 ]{0,40}") {
        _ = Bootstrap::parse(&text, supports);
        _ = Target::parse(&text);
    }
}

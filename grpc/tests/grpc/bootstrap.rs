//! The bootstrap file: R-BOOT.

use std::time::Duration;

use proptest::prelude::*;
use prost_reflect::prost::Message;
use prost_reflect::{DynamicMessage, Value as Reflected};
use serde_json::{Value, json};
use xds_machine::client::{self, Action, Client, DataErrors, Dialect};
use xds_machine::message::{Locality, Node};
use xds_machine::servers::{Config, Connect, Policy, ServerId, Servers};
use xds_machine::{Instant, Misuse, ResourceName, Sotw, TypeUrl, proto, type_url};
use xds_machine_grpc::bootstrap::{
    Agent, Bootstrap, CredentialsKind, Era, Features, Source, Target, TargetError, from_env,
};

use super::resource::FULL;

fn supports(kind: CredentialsKind<'_>) -> bool {
    matches!(kind, CredentialsKind::Channel("insecure" | "tls") | CredentialsKind::Call("jwt_token_file" | "other"))
}

fn insecure() -> Value {
    json!([{"type": "insecure"}])
}

fn server(uri: &str) -> Value {
    json!({"server_uri": uri, "channel_creds": insecure()})
}

/// A file with one server, and these fields.
fn file(more: Value) -> Value {
    let mut file = json!({"xds_servers": [server("a")]});
    file.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    file
}

/// A file with one server, which has these fields.
fn with_server(more: Value) -> Value {
    let mut file = file(json!({}));
    file["xds_servers"][0].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    file
}

fn parse(file: Value) -> Bootstrap {
    Bootstrap::parse(&file.to_string(), supports).unwrap_or_else(|faults| panic!("{file}: {faults}"))
}

fn faults_of(text: &str) -> Vec<String> {
    match Bootstrap::parse(text, supports) {
        Ok(_) => panic!("it is valid: {text}"),
        Err(faults) => faults.iter().map(|(path, message)| format!("{path}: {message}")).collect(),
    }
}

fn faults(file: Value) -> Vec<String> {
    faults_of(&file.to_string())
}

fn uris<'a>(servers: impl Iterator<Item = &'a xds_machine_grpc::bootstrap::Server>) -> Vec<&'a str> {
    servers.map(|server| server.uri.as_str()).collect()
}

/// R-BOOT-01: The file wins, also if the other variable is set; neither is no configuration. R-BOOT-02: The environment
/// is asked each time.
#[test]
fn the_environment_names_a_file_or_holds_the_text() {
    let both = |file: Option<&str>, text: Option<&str>| {
        from_env(|name| match name {
            "GRPC_XDS_BOOTSTRAP" => file.map(Into::into),
            "GRPC_XDS_BOOTSTRAP_CONFIG" => text.map(Into::into),
            other => panic!("{other}"),
        })
    };
    assert_eq!(both(Some("/f"), Some("{}")), Some(Source::File("/f".into())));
    assert_eq!(both(Some("/f"), None), Some(Source::File("/f".into())));
    assert_eq!(both(None, Some("{}")), Some(Source::Text("{}".into())));
    assert_eq!(both(Some(""), Some("{}")), Some(Source::Text("{}".into())));
    assert_eq!((both(None, None), both(None, Some(""))), (None, None));
}

/// R-BOOT-03: A file is one JSON object.
#[test]
fn a_file_is_a_json_object() {
    let server = server("a");
    for text in ["", "{", "x", "{} {}", &format!("{{\"xds_servers\": [{server}],}}")] {
        let faults = faults_of(text);
        assert!(faults.len() == 1 && faults[0].starts_with(": is not JSON: "), "{text}: {faults:?}");
    }
    for text in ["[]", "null", "\"x\"", "7"] {
        assert_eq!(faults_of(text), [": is not an object"]);
    }
    let deep = ["[".repeat(1000), "]".repeat(1000)].concat();
    let faults = faults_of(&format!("{{\"x\": {deep}}}"));
    assert_eq!(faults, [": is not JSON: recursion limit exceeded at line 1 column 133"]);
}

/// R-BOOT-04: Unknown fields are ignored anywhere, whatever their type. R-BOOT-39: `allowed_grpc_services` is one.
#[test]
fn unknown_fields_are_ignored() {
    let (plain, mut odd) = (parse(file(json!({}))), file(json!({"allowed_grpc_services": 7, "x": [{}]})));
    odd["xds_servers"][0]["x"] = json!(7);
    odd["xds_servers"][0]["channel_creds"][0]["x"] = json!([]);
    odd["node"] = json!({"x": {}, "locality": {"x": 1}});
    assert_eq!(parse(odd), plain);
}

/// R-BOOT-05: A field of a wrong type is a fault with its path, and all faults are named at once.
#[test]
fn every_fault_is_named_with_its_path() {
    let file = json!({
        "xds_servers": [
            {"server_uri": 7, "channel_creds": [{"type": "insecure"}, {"type": "x", "config": []}], "server_features": {}},
            "x",
            {"channel_creds": {}, "call_creds": 7},
            {"server_uri": "", "channel_creds": [{"type": "x"}]},
        ],
        "node": {"id": 1, "cluster": [], "locality": {"region": 1, "zone": {}, "sub_zone": []}, "metadata": "x"},
        "authorities": {"x": {
            "xds_servers": [{"server_uri": "a"}],
            "client_listener_resource_name_template": 7,
            "fallback_on_reachability_only": "yes",
        }, "y\"": 7},
        "certificate_providers": {"p": {"plugin_name": 7}, "q": {"config": 7}},
        "client_default_listener_resource_name_template": 7,
        "server_listener_resource_name_template": {},
    });
    assert_eq!(
        faults(file),
        [
            "authorities[\"x\"].client_listener_resource_name_template: is not a string",
            "authorities[\"x\"].fallback_on_reachability_only: is not a boolean",
            "authorities[\"x\"].xds_servers[0].channel_creds: field not present",
            "authorities[\"y\\\"\"]: is not an object",
            "certificate_providers[\"p\"].plugin_name: is not a string",
            "certificate_providers[\"q\"].config: is not an object",
            "certificate_providers[\"q\"].plugin_name: field not present",
            "client_default_listener_resource_name_template: is not a string",
            "node.cluster: is not a string",
            "node.id: is not a string",
            "node.locality.region: is not a string",
            "node.locality.sub_zone: is not a string",
            "node.locality.zone: is not a string",
            "node.metadata: is not an object",
            "server_listener_resource_name_template: is not a string",
            "xds_servers[0].channel_creds[1].config: is not an object",
            "xds_servers[0].server_features: is not an array",
            "xds_servers[0].server_uri: is not a string",
            "xds_servers[1]: is not an object",
            "xds_servers[2].call_creds: is not an array",
            "xds_servers[2].channel_creds: is not an array",
            "xds_servers[2].server_uri: field not present",
            "xds_servers[3].channel_creds: no known creds type found",
            "xds_servers[3].server_uri: must be non-empty",
        ]
    );
    assert_eq!(
        faults(file_of_lists(json!(7))),
        [
            "authorities: is not an object",
            "certificate_providers: is not an object",
            "node: is not an object",
            "xds_servers: is not an array",
        ]
    );
}

fn file_of_lists(value: Value) -> Value {
    json!({"xds_servers": value, "authorities": value, "certificate_providers": value, "node": value})
}

/// R-BOOT-06: `null` is an absent field.
#[test]
fn null_is_absent() {
    let nulls = file(json!({
        "node": null, "authorities": null, "certificate_providers": null,
        "client_default_listener_resource_name_template": null, "server_listener_resource_name_template": null,
    }));
    assert_eq!(parse(nulls), parse(file(json!({}))));
    let server = with_server(json!({"server_features": null, "call_creds": null}));
    assert_eq!(parse(server), parse(file(json!({}))));
    assert_eq!(faults(json!({"xds_servers": null})), ["xds_servers: field not present"]);
    assert_eq!(faults(with_server(json!({"server_uri": null}))), ["xds_servers[0].server_uri: field not present"]);
}

/// R-BOOT-07: A key twice is a fault, at any depth, with its path.
#[test]
fn a_key_twice_is_a_fault() {
    let text = r#"{
        "xds_servers": [{"server_uri": "a", "server_uri": "b", "channel_creds": [{"type": "insecure", "config": {"a": 1, "a": 1}}]}],
        "node": {"id": "a", "id": "a", "metadata": {"k": 1, "k": [{"a b": 1, "a b": 2}], "m": {"n": {"o": 1, "o": 2}}}},
        "authorities": {"x": {}, "x": {}, "y": {"xds_servers": [], "xds_servers": []}},
        "certificate_providers": {"p": {"plugin_name": "a", "config": {"b": 1, "b": 1}}},
        "unknown": [[{"a": {"b": {}, "b": null}}]],
        "node": {}
    }"#;
    assert_eq!(
        faults_of(text),
        [
            "authorities[\"x\"]: duplicate key",
            "authorities[\"y\"].xds_servers: duplicate key",
            "certificate_providers[\"p\"].config.b: duplicate key",
            "node: duplicate key",
            "node.id: duplicate key",
            "node.metadata[\"k\"]: duplicate key",
            "node.metadata[\"k\"][0][\"a b\"]: duplicate key",
            "node.metadata[\"m\"][\"n\"][\"o\"]: duplicate key",
            "unknown[0][0].a.b: duplicate key",
            "xds_servers[0].channel_creds[0].config.a: duplicate key",
            "xds_servers[0].server_uri: duplicate key",
        ]
    );
    let escaped = r#"{"xds_servers": [], "n\u006fde": {}, "node": {}}"#;
    assert_eq!(faults_of(escaped), ["node: duplicate key", "xds_servers: must be non-empty"]);
}

/// R-BOOT-08: There is at least one server; the order is preference.
#[test]
fn there_is_a_server() {
    assert_eq!(faults(json!({})), ["xds_servers: field not present"]);
    assert_eq!(faults(json!({"xds_servers": []})), ["xds_servers: must be non-empty"]);
    let bootstrap = parse(json!({"xds_servers": [server("b"), server("a")]}));
    assert_eq!(uris(bootstrap.default_servers()), ["b", "a"]);
}

/// R-BOOT-09: Every server is validated; one that is there twice is legal, and used once.
#[test]
fn every_server_is_validated() {
    let second = json!({"xds_servers": [server("a"), {"server_uri": "b"}]});
    assert_eq!(faults(second), ["xds_servers[1].channel_creds: field not present"]);
    let bootstrap = parse(json!({"xds_servers": [server("a"), server("b"), server("a")]}));
    assert_eq!(uris(bootstrap.default_servers()), ["a", "b"]);
    assert!(Servers::<Sotw>::new(bootstrap.servers_config(Node::new("n"), Era::A53)).is_ok());
}

/// R-BOOT-10: A server has an address.
#[test]
fn a_server_has_an_address() {
    assert_eq!(faults(with_server(json!({"server_uri": ""}))), ["xds_servers[0].server_uri: must be non-empty"]);
    let none = json!({"xds_servers": [{"channel_creds": insecure()}]});
    assert_eq!(faults(none), ["xds_servers[0].server_uri: field not present"]);
}

/// R-BOOT-11: The first supported credentials are used, and the configuration of others is not read.
#[test]
fn the_first_supported_credentials_are_used() {
    let kind = |creds: Value| parse(with_server(json!({"channel_creds": creds}))).servers()[0].credentials.kind.clone();
    assert_eq!(kind(json!([{"type": "x", "config": {"a": 1}}, {"type": "tls"}, {"type": "insecure"}])), "tls");
    for none in [json!([]), json!([{"type": "x"}]), json!([{"type": "jwt_token_file"}])] {
        assert_eq!(
            faults(with_server(json!({"channel_creds": none}))),
            ["xds_servers[0].channel_creds: no known creds type found"]
        );
    }
}

/// R-BOOT-12: Every entry has a type, also if another entry is usable.
#[test]
fn every_entry_has_a_type() {
    let with = |entry: Value| faults(with_server(json!({"channel_creds": [{"type": "insecure"}, entry]})));
    assert_eq!(with(json!({})), ["xds_servers[0].channel_creds[1].type: field not present"]);
    assert_eq!(with(json!({"type": 7})), ["xds_servers[0].channel_creds[1].type: is not a string"]);
    assert_eq!(with(json!({"type": "x", "config": 7})), ["xds_servers[0].channel_creds[1].config: is not an object"]);
    let only = faults(with_server(json!({"channel_creds": [{}]})));
    assert_eq!(only, ["xds_servers[0].channel_creds[0].type: field not present"], "and no further fault");
}

/// R-BOOT-13, R-BOOT-14: The configuration of `tls` is checked also if it is not used: a certificate comes with its key,
/// and an interval is a duration.
#[test]
fn tls_credentials() {
    let creds = |config: Value| {
        with_server(json!({"channel_creds": [{"type": "insecure"}, {"type": "tls", "config": config}]}))
    };
    let at = "xds_servers[0].channel_creds[1].config";
    let pair = format!("{at}: fields \"certificate_file\" and \"private_key_file\" must be both set or both unset");
    assert_eq!(faults(creds(json!({"certificate_file": "c"}))), [&*pair]);
    assert_eq!(faults(creds(json!({"private_key_file": "c"}))), [&*pair]);
    assert_eq!(
        faults(creds(
            json!({"certificate_file": 1, "private_key_file": 2, "ca_certificate_file": 3, "refresh_interval": 4})
        )),
        ["ca_certificate_file", "certificate_file", "private_key_file", "refresh_interval"]
            .map(|field| format!("{at}.{field}: is not a string"))
    );
    for bad in ["", "s", "1", "-1s", "1.s5", "+1s", "1 s", "0.0000000001s", "315576000001s", "99999999999999999999s"] {
        assert_eq!(
            faults(creds(json!({"refresh_interval": bad}))),
            [format!("{at}.refresh_interval: is not a duration, such as \"600s\"")],
            "{bad}"
        );
    }
    let tls = |config: Value| {
        let bootstrap = parse(with_server(json!({"channel_creds": [{"type": "tls", "config": config}]})));
        bootstrap.servers()[0].credentials.tls().expect("tls")
    };
    let files = tls(json!({
        "certificate_file": "c", "private_key_file": "k", "ca_certificate_file": "a", "refresh_interval": "1.25s",
    }));
    let some = |text: &str| Some(text.to_owned());
    assert_eq!((files.certificate, files.private_key, files.ca_certificate), (some("c"), some("k"), some("a")));
    assert_eq!(files.refresh_interval, Duration::from_millis(1250));
    assert_eq!(tls(json!({})).refresh_interval, Duration::from_secs(600));
    assert_eq!(
        tls(json!({"refresh_interval": "315576000000s"})).refresh_interval,
        Duration::from_secs(315_576_000_000)
    );
    assert_eq!(tls(json!({"refresh_interval": "0.000000001s"})).refresh_interval, Duration::from_nanos(1));
    assert_eq!(parse(file(json!({}))).servers()[0].credentials.tls(), None);
}

/// R-BOOT-15: All supported credentials of calls are used; a bad configuration of one refuses the file.
#[test]
fn call_credentials() {
    let creds = |creds: Value| with_server(json!({"call_creds": creds}));
    let jwt = json!({"type": "jwt_token_file", "config": {"jwt_token_file": "/t"}});
    let bootstrap = parse(creds(json!([{"type": "x"}, jwt, {"type": "other"}])));
    let kinds: Vec<&str> = bootstrap.servers()[0].call_credentials.iter().map(|creds| &*creds.kind).collect();
    assert_eq!(kinds, ["jwt_token_file", "other"]);
    assert_eq!(parse(creds(json!([]))), parse(file(json!({}))));
    assert_eq!(
        faults(creds(
            json!([{"type": "jwt_token_file"}, {"type": "jwt_token_file", "config": {"jwt_token_file": 7}}, {}])
        )),
        [
            "xds_servers[0].call_creds[0].config.jwt_token_file: field not present",
            "xds_servers[0].call_creds[1].config.jwt_token_file: is not a string",
            "xds_servers[0].call_creds[2].type: field not present",
        ]
    );
}

/// R-BOOT-16: Features that are not understood are ignored, whatever their type. R-BOOT-17: Four have a meaning.
#[test]
fn features() {
    let features = |features: Value| parse(with_server(json!({"server_features": features}))).servers()[0].features;
    assert_eq!(features(json!([1, null, {}, [], "x", "xds_v3", "IGNORE_RESOURCE_DELETION"])), Features::default());
    let one = |name: &str| features(json!([name]));
    let none = Features::default();
    assert_eq!(one("ignore_resource_deletion"), Features { ignore_resource_deletion: true, ..none });
    assert_eq!(one("fail_on_data_errors"), Features { fail_on_data_errors: true, ..none });
    assert_eq!(one("resource_timer_is_transient_error"), Features { resource_timer_is_transient_error: true, ..none });
    assert_eq!(one("trusted_xds_server"), Features { trusted_xds_server: true, ..none });
    let all =
        ["ignore_resource_deletion", "fail_on_data_errors", "resource_timer_is_transient_error", "trusted_xds_server"];
    assert_eq!(features(json!(all)).names(), all);
}

/// R-BOOT-18: What the features mean, by the rules that count.
#[test]
fn features_by_era() {
    let features =
        |ignore, fail| Features { ignore_resource_deletion: ignore, fail_on_data_errors: fail, ..Features::default() };
    for (ignore, fail, before, after) in [
        (false, false, DataErrors::Delete, DataErrors::Keep),
        (true, false, DataErrors::Keep, DataErrors::Keep),
        (false, true, DataErrors::Delete, DataErrors::Drop),
        (true, true, DataErrors::Keep, DataErrors::Drop),
    ] {
        assert_eq!(features(ignore, fail).data_errors(Era::A53), before);
        assert_eq!(features(ignore, fail).data_errors(Era::A88), after);
    }
    assert_eq!(Era::default(), Era::A53);
}

/// R-BOOT-17, R-BOOT-18: The features are in the configuration of each client.
#[test]
fn the_configuration_of_each_client() {
    let file = json!({"xds_servers": [
        server("plain"),
        {"server_uri": "timer", "channel_creds": insecure(), "server_features": ["resource_timer_is_transient_error"]},
        {"server_uri": "fails", "channel_creds": insecure(), "server_features": ["fail_on_data_errors"]},
    ]});
    let expected = |config: client::Config| config.with_dialect(Dialect::Grpc);
    let config = || expected(client::Config::new(Node::new("n")));
    let clients = |era: Era| {
        let servers = parse(file.clone()).servers_config(Node::new("n"), era);
        servers.servers().map(|config| format!("{config:?}")).collect::<Vec<_>>()
    };
    let before = config().with_data_errors(DataErrors::Delete);
    assert_eq!(clients(Era::A53), [&before, &before, &before].map(|config| format!("{config:?}")));
    let keep = config().with_data_errors(DataErrors::Keep);
    let timer = keep.clone().with_transient_timeout().with_existence_timeout(Some(Duration::from_secs(30)));
    let fails = config().with_data_errors(DataErrors::Drop);
    assert_eq!(clients(Era::A88), [&keep, &timer, &fails].map(|config| format!("{config:?}")));
}

/// R-BOOT-17: A decoder is told whether the server is trusted (R-RTE-23).
#[test]
fn a_decoder_is_told_which_server_is_trusted() {
    let trusted = json!({"server_uri": "b", "channel_creds": insecure(), "server_features": ["trusted_xds_server"]});
    let bootstrap = parse(json!({"xds_servers": [server("a"), trusted]}));
    use xds_machine_grpc::resources::Context;
    let contexts = [0, 1, 2, u64::MAX].map(|id| bootstrap.context(id));
    assert_eq!(contexts, [false, true, false, false].map(|trusted| Context::default().trusted(trusted)));
}

/// R-BOOT-19: Features are part of what a server is; the channel is shared without them.
#[test]
fn a_server_with_other_features_is_another() {
    let other = json!({"server_uri": "a", "channel_creds": insecure(), "server_features": ["trusted_xds_server"]});
    let bootstrap = parse(json!({"xds_servers": [server("a"), other, server("b")]}));
    let [plain, trusted, b] = bootstrap.servers() else { panic!("three servers") };
    assert!(plain.shares_channel(trusted) && !plain.shares_channel(b));
    let jwt = json!({"call_creds": [{"type": "jwt_token_file", "config": {"jwt_token_file": "/t"}}]});
    assert!(!plain.shares_channel(&parse(with_server(jwt)).servers()[0]));
    let tls = json!({"channel_creds": [{"type": "tls"}]});
    assert!(!plain.shares_channel(&parse(with_server(tls)).servers()[0]));
}

const AGENT: Agent<'_> = Agent { name: "agent", version: "1" };

/// R-BOOT-20: Without a node, the user agent and the features are still sent. R-BOOT-24: The features of gRPC.
#[test]
fn no_node_is_a_node_too() {
    let bootstrap = parse(file(json!({})));
    let feature = "envoy.lb.does_not_support_overprovisioning";
    assert_eq!(bootstrap.node(&AGENT), Node::new("").with_user_agent("agent", "1").with_feature(feature));
    let config = bootstrap.servers_config(bootstrap.node(&AGENT), Era::A53);
    let sent = config.servers().next().expect("a server").node();
    assert_eq!(sent.client_features, [feature, "xds.config.resource-in-sotw"]);
}

/// R-BOOT-21: Of the file count id, cluster, locality and metadata. R-BOOT-22: A locality without a name is none.
#[test]
fn the_node_of_the_file() {
    let node = |node: Value| parse(file(json!({"node": node}))).node(&AGENT);
    let odd = json!({
        "id": "i", "cluster": "c", "locality": {"zone": "z"},
        "user_agent_name": "x", "user_agent_version": 7, "build_version": [], "client_features": ["x"],
    });
    let expected = Node::new("i")
        .with_cluster("c")
        .with_locality(Locality { zone: "z".into(), ..Locality::default() })
        .with_user_agent("agent", "1")
        .with_feature("envoy.lb.does_not_support_overprovisioning");
    assert_eq!(node(odd), expected);
    for none in [json!({}), json!({"region": "", "zone": "", "sub_zone": ""})] {
        assert_eq!(node(json!({"locality": none})).locality, None);
    }
}

/// R-BOOT-23: Metadata is any JSON object, as `google.protobuf.Struct`, and equal metadata is equal bytes.
#[test]
fn metadata_is_a_struct() {
    let metadata = json!({
        "z": null, "n": 7, "f": -1.5, "big": 1e300, "max": u64::MAX, "s": "x", "t": true,
        "l": [1, "a", [null], {}], "o": {"b": {"c": []}, "a": ""},
    });
    let node = parse(file(json!({"node": {"metadata": metadata}}))).node(&AGENT);
    let message = FULL.get_message_by_name("envoy.config.core.v3.Node").expect("a message");
    let full = DynamicMessage::decode(message, node.rest.clone()).expect("a node");
    assert_eq!(full.encode_to_vec().len(), node.rest.len(), "and no other fields");
    let Some(Reflected::Message(read)) = full.get_field_by_name("metadata").map(|field| field.into_owned()) else {
        panic!("metadata")
    };
    let expected = json!({
        "z": null, "n": 7.0, "f": -1.5, "big": 1e300, "max": u64::MAX as f64, "s": "x", "t": true,
        "l": [1.0, "a", [null], {}], "o": {"b": {"c": []}, "a": ""},
    });
    assert_eq!(serde_json::to_value(&read).expect("JSON"), expected);
    // The order of the text does not count.
    let bytes = |text: &str| {
        let text = format!("{{\"xds_servers\": [{}], \"node\": {{\"metadata\": {text}}}}}", server("a"));
        Bootstrap::parse(&text, supports).expect("valid").node(&AGENT).rest
    };
    assert_eq!(bytes(r#"{"a": 1, "b": {"c": 1, "d": 2}}"#), bytes(r#"{"b": {"d": 2, "c": 1}, "a": 1}"#));
    assert_eq!(bytes(r#"{"a": 1}"#)[..], *b"\x1a\x10\x0a\x0e\x0a\x01a\x12\x09\x11\0\0\0\0\0\0\xf0\x3f");
    assert!(bytes("{}").is_empty());
}

/// R-BOOT-25: A provider of certificates has a plugin; an unknown one is kept for the caller to judge.
#[test]
fn certificate_providers() {
    let providers = |providers: Value| file(json!({"certificate_providers": providers}));
    let bootstrap =
        parse(providers(json!({"x": {"plugin_name": "unknown", "config": {"a": 1}}, "y": {"plugin_name": "p"}})));
    let all: Vec<_> =
        bootstrap.certificate_providers().iter().map(|(name, p)| (&**name, &*p.plugin, p.config.len())).collect();
    assert_eq!(all, [("x", "unknown", 1), ("y", "p", 0)]);
    assert_eq!(bootstrap.certificate_providers()["x"].file_watcher(), None);
    assert_eq!(faults(providers(json!({"x": {}}))), ["certificate_providers[\"x\"].plugin_name: field not present"]);
}

/// R-BOOT-26: A file watcher watches something, and a certificate comes with its key.
#[test]
fn file_watchers() {
    let watcher = |config: Value| {
        file(json!({"certificate_providers": {"x": {"plugin_name": "file_watcher", "config": config}}}))
    };
    let at = "certificate_providers[\"x\"].config";
    let nothing = format!("{at}: at least one of \"certificate_file\" and \"ca_certificate_file\" must be specified");
    let pair = format!("{at}: fields \"certificate_file\" and \"private_key_file\" must be both set or both unset");
    assert_eq!(faults(watcher(json!({}))), [&*nothing]);
    assert_eq!(faults(watcher(json!(null))), [&*nothing]);
    assert_eq!(faults(watcher(json!({"private_key_file": "k"}))), [&*pair, &*nothing]);
    assert_eq!(faults(watcher(json!({"certificate_file": "c"}))), [&*pair]);
    let files = |config: Value| parse(watcher(config)).certificate_providers()["x"].file_watcher().expect("files");
    assert_eq!(files(json!({"ca_certificate_file": "a"})).refresh_interval, Duration::from_secs(600));
    let both = files(json!({"certificate_file": "c", "private_key_file": "k", "refresh_interval": "1s"}));
    assert_eq!((both.refresh_interval, both.private_key.as_deref()), (Duration::from_secs(1), Some("k")));
}

fn authorities(authorities: Value) -> Value {
    file(json!({"authorities": authorities}))
}

fn target(text: &str) -> Target {
    Target::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn listener(bootstrap: &Bootstrap, text: &str) -> String {
    bootstrap.listener_of(&target(text)).unwrap_or_else(|error| panic!("{text}: {error}")).as_str().to_owned()
}

/// R-BOOT-27: An authority may say nothing, and its name may be empty. R-BOOT-29: Its default template.
#[test]
fn an_authority_may_say_nothing() {
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
fn gb_11_a_template_is_of_its_authority() {
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
fn the_servers_of_an_authority() {
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

/// R-BOOT-31: The default template is the name itself; an empty one is none. R-BOOT-32: Every `%s` is replaced, or none.
#[test]
fn templates() {
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
    assert_eq!(id("xds:///%3F%23%25%C3%A4").as_deref(), Some("%3F%23%25%C3%A4"));
}

/// R-BOOT-34: The template gets the path of the target, decoded. What a target is.
#[test]
fn targets() {
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

/// R-BOOT-35: The authority of a target has to be there, and its template counts.
#[test]
fn the_authority_of_a_target() {
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

/// Watches the Listener of `xds:///s` by a template. Returns the refusal, or what is sent first.
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

/// R-BOOT-36: A name of an unknown authority is refused where it is watched, and nothing is sent.
#[test]
fn a_name_of_an_unknown_authority_is_not_watched() {
    let refused = watch("xdstp://y/envoy.config.listener.v3.Listener/%s").unwrap_err();
    assert_eq!(refused.to_string(), "no server is configured for xdstp://y/envoy.config.listener.v3.Listener/s");
    let sent = watch("xdstp://x/envoy.config.listener.v3.Listener/%s").expect("it is watched");
    assert_eq!(sent, ["xdstp://x/envoy.config.listener.v3.Listener/s"]);
}

/// R-BOOT-37: A name of another type is refused; parameters are sorted, and directives dropped, before a name is sent.
#[test]
fn a_name_is_in_its_normal_form() {
    let refused = watch("xdstp://x/envoy.config.cluster.v3.Cluster/%s").unwrap_err();
    assert_eq!(
        refused.to_string(),
        "xdstp://x/envoy.config.cluster.v3.Cluster/s is no name of a type.googleapis.com/envoy.config.listener.v3.Listener"
    );
    assert_eq!(watch("xdstp://x").unwrap_err().to_string(), "xdstp://x: the resource type is missing");
    let sent = watch("xdstp://x/envoy.config.listener.v3.Listener/%s?b=2&a=1#entry=z").expect("it is watched");
    assert_eq!(sent, ["xdstp://x/envoy.config.listener.v3.Listener/s?a=1&b=2"]);
}

/// R-BOOT-38: The Listener of a server has a name by a template that has no default; an empty template is none (GB-08).
#[test]
fn gb_08_a_server_has_a_template() {
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

/// R-BOOT-40: `Debug` shows no configuration of credentials.
#[test]
fn secrets_are_not_printed() {
    let bootstrap = parse(file(json!({
        "xds_servers": [{
            "server_uri": "a",
            "channel_creds": [{"type": "tls", "config": {"token": "secret"}}],
            "call_creds": [{"type": "other", "config": {"token": "secret"}}],
        }],
        "certificate_providers": {"x": {"plugin_name": "p", "config": {"token": "secret"}}},
    })));
    let text = format!("{bootstrap:?}");
    assert!(text.contains("Credentials { kind: \"tls\", .. }") && !text.contains("secret"), "{text}");
    assert_eq!(bootstrap.to_json().matches("secret").count(), 3, "the file has them");
}

/// Files that are valid, with everything that may be there.
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
    /// R-BOOT-40: What is printed is parsed as an equal value, and makes a configuration.
    #[test]
    fn what_is_printed_is_parsed_again(file in files()) {
        let bootstrap = parse(file);
        let printed = bootstrap.to_json();
        let again = Bootstrap::parse(&printed, supports).expect("what was printed");
        prop_assert_eq!(&again, &bootstrap);
        prop_assert_eq!(again.to_json(), printed);
        prop_assert!(Servers::<Sotw>::new(bootstrap.servers_config(bootstrap.node(&AGENT), Era::A88)).is_ok());
    }

    /// R-BOOT-03: No text is too odd.
    #[test]
    fn any_text_is_parsed_or_refused(text in "[\\[\\]{}\",:a0-9 ]{0,40}") {
        _ = Bootstrap::parse(&text, supports);
        _ = Target::parse(&text);
    }
}

/// R-BOOT-21, with all of a connection: the first request of a client has the node of the file.
#[test]
fn the_node_goes_with_the_first_request() {
    let bootstrap = parse(file(json!({"node": {"id": "i", "metadata": {"k": "v"}}})));
    let config = bootstrap.servers_config(bootstrap.node(&AGENT), Era::A53);
    let mut client = Client::<Sotw>::new(config.servers().next().expect("a server").clone());
    client.resources_mut(&TypeUrl::from(type_url::LISTENER)).subscribe(["l"]).expect("a name");
    client.handle_open();
    let request = client.poll_transmit().expect("a request").request;
    let bytes = proto::sotw::encode_request(&request);
    let message = FULL.get_message_by_name("envoy.service.discovery.v3.DiscoveryRequest").expect("a message");
    let full = DynamicMessage::decode(message, bytes.as_slice()).expect("a request");
    let node = serde_json::to_value(&full).expect("JSON")["node"].clone();
    let features = json!(["envoy.lb.does_not_support_overprovisioning", "xds.config.resource-in-sotw"]);
    assert_eq!(
        node,
        json!({
            "id": "i", "metadata": {"k": "v"}, "userAgentName": "agent", "userAgentVersion": "1", "clientFeatures": features,
        })
    );
    assert!(!matches!(client.poll_action(), Some(Action::Apply(_))));
}

//! The bootstrap file: R-BOOT, as a text.

use serde_json::{Value, json};
use xds_machine_grpc::bootstrap::{Agent, Bootstrap, CredentialsKind, Server, Source, from_env};

pub(crate) fn supports(kind: CredentialsKind<'_>) -> bool {
    matches!(kind, CredentialsKind::Channel("insecure" | "tls") | CredentialsKind::Call("jwt_token_file" | "other"))
}

pub(crate) fn insecure() -> Value {
    json!([{"type": "insecure"}])
}

pub(crate) fn server(uri: &str) -> Value {
    json!({"server_uri": uri, "channel_creds": insecure()})
}

/// A file with one server, and these fields.
pub(crate) fn file(more: Value) -> Value {
    let mut file = json!({"xds_servers": [server("a")]});
    file.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    file
}

/// A file with one server, which has these fields.
pub(crate) fn with_server(more: Value) -> Value {
    let mut file = file(json!({}));
    file["xds_servers"][0].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    file
}

pub(crate) fn parse(file: Value) -> Bootstrap {
    Bootstrap::parse(&file.to_string(), supports).unwrap_or_else(|faults| panic!("{file}: {faults}"))
}

pub(crate) fn faults_of(text: &str) -> Vec<String> {
    match Bootstrap::parse(text, supports) {
        Ok(_) => panic!("it is valid: {text}"),
        Err(faults) => faults.iter().map(|(path, message)| format!("{path}: {message}")).collect(),
    }
}

pub(crate) fn faults(file: Value) -> Vec<String> {
    faults_of(&file.to_string())
}

pub(crate) fn uris<'a>(servers: impl Iterator<Item = &'a Server>) -> Vec<&'a str> {
    servers.map(|server| server.uri.as_str()).collect()
}

/// R-BOOT-01: The file wins, also if the other variable is set; without either variable there is no configuration.
/// R-BOOT-02: The environment is read each time.
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

/// R-BOOT-07: A duplicate key is a fault, at any depth, with its path.
#[test]
fn a_duplicate_key_is_a_fault() {
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
    assert_eq!(faults_of(r#"[{"a": 1, "a": 2}]"#), [": is not an object", "[0].a: duplicate key"]);
    let escaped = r#"{"xds_servers": [], "n\u006fde": {}, "node": {}}"#;
    assert_eq!(faults_of(escaped), ["node: duplicate key", "xds_servers: must be non-empty"]);
}

pub(crate) const AGENT: Agent<'_> = Agent { name: "agent", version: "1" };

//! The content that a resource file may have, and the errors for files that can't be served.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use examples::discovery_file::{self, Resources};
use xds_machine::message::Any;
use xds_machine::message::sotw::{Item, Response};
use xds_machine::server::Resource;
use xds_machine::{Nonce, TypeUrl, Version, proto, type_url};

fn read(name: &str, content: impl AsRef<[u8]>) -> Result<Resources, String> {
    discovery_file::read(Path::new(name), content.as_ref().to_vec())
}

fn only(resources: Resources) -> Resource {
    assert_eq!(resources.len(), 1);
    resources.into_values().next().expect("one")
}

fn yaml(resources: &str) -> Result<Resources, String> {
    read("x.yaml", format!("resources:\n{resources}"))
}

#[test]
fn only_visible_files_with_a_known_extension_are_read() {
    let is_one = |name: &str| discovery_file::is_one(Path::new(name));
    assert!(is_one("d/a.json") && is_one("a.yaml") && is_one("a.yml") && is_one("a.pb") && is_one("a.pb_text"));
    assert!(is_one("a.YAML") && is_one("a.Json"), "a suffix has any case, as for Envoy");
    assert!(!is_one("a.txt") && !is_one("a.json~") && !is_one(".a.json") && !is_one("a.json.tmp") && !is_one("json"));
}

#[test]
fn json_yaml_and_pb_files_give_the_same_resources() {
    let json = r#"{"versionInfo": "7", "resources": [{
        "@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "c1", "connectTimeout": "1.5s"}]}"#;
    let yaml = "
version_info: other
resources:
- '@type': type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: c1
  connect_timeout: 1.5s
";
    let body = b"\x0a\x02c1\x22\x08\x08\x01\x10\x80\xca\xb5\xee\x01".to_vec();
    let any = Any { type_url: type_url::CLUSTER.into(), value: body.clone().into() };
    let pb = response(vec![Item::Bare(any)], "");

    let from_json = read("x.json", json).expect("json");
    assert_eq!(from_json, read("x.yaml", yaml).expect("yaml"));
    assert_eq!(from_json, read("x.pb", pb).expect("pb"));
    let resource = only(from_json);
    assert_eq!(resource.name(), "c1");
    assert_eq!(*resource.version(), *Resource::new("c1", body).version(), "a hash of the content");
}

#[test]
fn the_same_content_has_the_same_version_each_time() {
    let entries: String = (0..20).map(|key| format!("        k{key}: {{a: 1, b: 2, c: {{d: 3, e: 4}}}}\n")).collect();
    let file = format!(
        "
- '@type': type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: c1
  metadata:
    filter_metadata:
{entries}
  typed_extension_protocol_options:
    x:
      '@type': type.googleapis.com/google.protobuf.Struct
      value: {{a: 1, b: 2, c: 3, d: 4, e: 5, f: 6}}
"
    );
    let first = yaml(&file).expect("a file");
    for _ in 0..10 {
        assert_eq!(yaml(&file).expect("a file"), first);
    }
}

#[test]
fn wrapped_resources_keep_ttl_and_aliases_but_not_their_version() {
    let wrapped = |version: &str| {
        only(
            yaml(&format!(
                "
- '@type': type.googleapis.com/envoy.service.discovery.v3.Resource
  name: r1/a
  version: '{version}'
  aliases: [r1/b]
  ttl: 2.5s
  resource:
    '@type': type.googleapis.com/envoy.config.route.v3.VirtualHost
    name: other
    domains: [a]
"
            ))
            .expect("a file"),
        )
    };
    let resource = wrapped("7");
    assert_eq!(resource.name(), "r1/a");
    assert_eq!(resource.ttl(), Some(Duration::from_millis(2500)));
    assert_eq!(resource.aliases(), ["r1/b"]);
    assert_eq!(resource, wrapped("8"));
}

#[test]
fn resources_of_unknown_types_are_named_by_field_one() {
    let any =
        |value: &'static [u8]| Item::Bare(Any { type_url: "type.googleapis.com/own.Type".into(), value: value.into() });
    let resources = read("x.pb", response(vec![any(b"\x10\x05\x0a\x02o1")], "")).expect("a file");
    assert_eq!(only(resources).name(), "o1");
    let error = "resource 1: a type.googleapis.com/own.Type without a name";
    assert_eq!(read("x.pb", response(vec![any(b"\x08\x05")], "")).expect_err("no string"), error);
    assert_eq!(read("x.pb", response(vec![any(b"\x0a\xff")], "")).expect_err("no protobuf"), error);
}

#[test]
fn an_invalid_file_is_an_error_that_names_the_cause() {
    let errors = BTreeMap::from([
        ("- {}", "resource 1: it has no type"),
        (
            "- '@type': type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint\n  endpoint: {hostname: x}",
            "resource 1: a type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint without a name",
        ),
        (
            "- '@type': type.googleapis.com/envoy.config.cluster.v3.Cluster",
            "resource 1: a type.googleapis.com/envoy.config.cluster.v3.Cluster may not be named \"\"",
        ),
        (
            "- {'@type': type.googleapis.com/envoy.config.cluster.v3.Cluster, name: '*'}",
            "resource 1: a type.googleapis.com/envoy.config.cluster.v3.Cluster may not be named \"*\"",
        ),
        (
            "- {'@type': type.googleapis.com/envoy.config.cluster.v3.Cluster, name: c1}
- {'@type': type.googleapis.com/envoy.config.cluster.v3.Cluster, name: c1, type: EDS}",
            "resource 2: type.googleapis.com/envoy.config.cluster.v3.Cluster c1 is there twice",
        ),
        (
            "- {'@type': type.googleapis.com/envoy.service.discovery.v3.Resource, name: c1}",
            "resource 1: c1 has no content",
        ),
        (
            "- '@type': type.googleapis.com/envoy.service.discovery.v3.Resource
  name: c1
  ttl: 0s
  resource: {'@type': type.googleapis.com/envoy.config.cluster.v3.Cluster, name: c1}",
            "resource 1: the ttl of c1 is not positive",
        ),
        (
            "- {'@type': type.googleapis.com/envoy.config.cluster.v3.Cluster, name: c1, colour: red}",
            "resources[0].colour: Cluster has no such field",
        ),
        ("- {'@type': type.googleapis.com/own.Type}", r#"resources[0]: '@type': there is no message "own.Type""#),
    ]);
    for (resources, error) in errors {
        assert_eq!(yaml(resources).expect_err(resources), error);
    }
    assert_eq!(read("x.pb", "").expect_err("empty"), "the file is empty");
    for nothing in ["---\n", "# to be filled in\n", "---\n---\nresources: []\n", "null", "\u{feff}"] {
        assert_eq!(read("x.yaml", nothing).expect_err(nothing), "it holds no document");
    }
    assert_eq!(read("x.json", "null").expect_err("null"), "it holds no document");
    assert_eq!(read("x.json", "{\"resources\"").expect_err("half"), "EOF while parsing an object at line 1 column 12");
    let cluster = "\"@type\": \"type.googleapis.com/envoy.config.cluster.v3.Cluster\"";
    let second = format!("{{\"resources\": [\n{{{cluster}, \"name\": \"a\"}},\n{{{cluster}, \"colour\": 1}}]}}");
    let error = "resources[1].colour: Cluster has no such field";
    assert_eq!(read("x.json", second).expect_err("an unknown field"), error);
    assert_eq!(read("x.json", "{} {}").expect_err("two"), "trailing characters at line 1 column 4");
    assert_eq!(read("x.yaml", "a").expect_err("text"), "DiscoveryResponse is an object, not a string");
    let malformed = read("x.pb", "\x0a\x01").expect_err("cut off");
    assert!(malformed.starts_with("malformed DiscoveryResponse: "), "{malformed}");
    assert_eq!(
        read("x.pb", response(vec![Item::Malformed], "")).expect_err("no wrapper"),
        "resource 1: not a type.googleapis.com/envoy.service.discovery.v3.Resource"
    );
}

fn response(resources: Vec<Item>, type_url: &str) -> Vec<u8> {
    proto::sotw::encode_response(&Response {
        version: Version::from("7"),
        resources,
        type_url: TypeUrl::from(type_url),
        nonce: Nonce::default(),
        control_plane: String::new(),
        errors: Vec::new(),
    })
}

#[test]
fn the_last_segment_of_a_type_is_the_type_that_clients_ask_for() {
    for host in ["type.googleapis.com", "foo.com", "a/b"] {
        let cluster = format!("- {{'@type': {host}/envoy.config.cluster.v3.Cluster, name: c1}}");
        let served = yaml(&cluster).expect("a file").into_keys().next().expect("one");
        assert_eq!(served.0, type_url::CLUSTER, "{host}");
    }
}

#[test]
fn a_text_file_is_that_of_protobuf() {
    let text = "resources { [type.googleapis.com/envoy.config.cluster.v3.Cluster] { name: 'c1' type: EDS } }";
    assert_eq!(
        read("x.pb_text", text),
        read(
            "x.json",
            r#"{"resources": {"@type":
        "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "c1", "type": "eds"}}"#
        )
    );
    assert!(read("x.pb_text", text).is_ok());
}

#[test]
fn all_messages_of_envoy_are_known() {
    let known = |name: &str| examples::reader::DESCRIPTORS.get_message_by_name(name).is_some();
    for name in [
        "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        "envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy",
        "envoy.extensions.access_loggers.file.v3.FileAccessLog",
        "envoy.extensions.filters.http.golang.v3alpha.Config",
        "envoy.service.status.v3.ClientStatusResponse",
    ] {
        assert!(known(name), "{name}");
    }
    let extensions = examples::reader::DESCRIPTORS.all_messages();
    let extensions =
        extensions.filter(|message| message.full_name().starts_with("envoy.extensions.") && !message.is_map_entry());
    assert_eq!(extensions.count(), 834);
}

#[test]
fn a_hostile_text_is_refused_with_the_name_of_the_limit() {
    let bomb: String = (1..30).fold("a0: &a0 xxxxxxxxxx\n".to_owned(), |text, at| {
        let below = at - 1;
        text + &format!("a{at}: &a{at} [*a{below}, *a{below}, *a{below}, *a{below}]\n")
    });
    let error = read("x.yaml", bomb).expect_err("a bomb");
    assert!(error.starts_with("its aliases make more than 1048576 bytes of it at line "), "{error}");
    for deep in ["[".repeat(80_000), "{a: ".repeat(80_000), "- ".repeat(80_000), "[".repeat(300)] {
        let error = read("x.yaml", deep).expect_err("too deep");
        assert!(error.contains("recursion limit exceeded") || error.contains("nested deeper than 200"), "{error}");
    }
    let structs = format!("resources: []\nx: {}1{}", "{a: ".repeat(150), "}".repeat(150));
    assert_eq!(read("x.yaml", structs).expect_err("unknown"), "x: DiscoveryResponse has no such field");
    let metadata = format!(
        "- {{'@type': type.googleapis.com/envoy.config.cluster.v3.Cluster, name: c, metadata: {{filter_metadata: {{m: {}1{}}}}}}}",
        "{a: ".repeat(60),
        "}".repeat(60)
    );
    assert!(yaml(&metadata).expect_err("too deep").ends_with("messages are nested deeper than 100 levels"));
}

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
    assert!(is_one("d/a.json") && is_one("a.yaml") && is_one("a.yml") && is_one("a.pb"));
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
        ("- {}", "resources[0]: expected '@type' field at line 2 column 3"),
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
            "- {'@type': type.googleapis.com/envoy.config.cluster.v3.Cluster, name: c1}
type_url: type.googleapis.com/envoy.config.listener.v3.Listener",
            "resource 1: its type is type.googleapis.com/envoy.config.cluster.v3.Cluster, \
             the file's is type.googleapis.com/envoy.config.listener.v3.Listener",
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
            "resources[0]: unrecognized field name 'colour' at line 2 column 3",
        ),
        ("- {'@type': type.googleapis.com/own.Type}", "resources[0]: message 'own.Type' not found at line 2 column 3"),
    ]);
    for (resources, error) in errors {
        assert_eq!(yaml(resources).expect_err(resources), error);
    }
    assert_eq!(read("x.pb", "").expect_err("empty"), "the file is empty");
    assert_eq!(read("x.json", "{\"resources\"").expect_err("half"), "EOF while parsing an object at line 1 column 12");
    let cluster = "\"@type\": \"type.googleapis.com/envoy.config.cluster.v3.Cluster\"";
    let second = format!("{{\"resources\": [\n{{{cluster}, \"name\": \"a\"}},\n{{{cluster}, \"colour\": 1}}]}}");
    let error = "resources[1]: unrecognized field name 'colour' at line 3 column 73";
    assert_eq!(read("x.json", second).expect_err("an unknown field"), error);
    assert_eq!(read("x.json", "{} {}").expect_err("two"), "trailing characters at line 1 column 4");
    assert_eq!(read("x.yaml", "a").expect_err("text"), "invalid type: string \"a\", expected a map");
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

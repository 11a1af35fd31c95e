use std::time::Duration;

use bytes::Bytes;
use xds_machine::client::{Action, Client, Config, Limits, Variant};
use xds_machine::message::{Any, Node, Resource, ResourceError, delta, sotw};
use xds_machine::resource_type::{ResourceType, TypeRegistry};
use xds_machine::{Delta, Error, Sotw, Status, proto};

use super::Row;
use super::{NOW, refused};

const LONG: &str = "too long!";

/// The inputs of the rows, independent of the variant. `good` is always among the resources.
#[derive(Clone, Default)]
struct Response {
    type_url: &'static str,
    nonce: &'static str,
    version: &'static str,
    resources: Vec<Resource>,
    items: Vec<sotw::Item>,
    removed: Vec<&'static str>,
    errors: Vec<ResourceError>,
    control_plane: &'static str,
}

trait Make: Variant {
    fn make(response: Response) -> Self::Response;
}

impl Make for Sotw {
    fn make(response: Response) -> sotw::Response {
        let mut resources = response.items;
        resources.extend(response.resources.into_iter().map(|resource| sotw::Item::Wrapped(resource.into())));
        sotw::Response {
            version: response.version.into(),
            resources,
            type_url: response.type_url.into(),
            nonce: response.nonce.into(),
            control_plane: response.control_plane.into(),
            errors: response.errors,
        }
    }
}

impl Make for Delta {
    fn make(response: Response) -> delta::Response {
        delta::Response {
            system_version: response.version.into(),
            resources: response.resources,
            removed: response.removed.into_iter().map(Into::into).collect(),
            type_url: response.type_url.into(),
            nonce: response.nonce.into(),
            control_plane: response.control_plane.into(),
            errors: response.errors,
        }
    }
}

fn any(type_url: &str, value: &'static [u8]) -> Any {
    Any { type_url: type_url.into(), value: Bytes::from_static(value) }
}

fn resource(name: &str) -> Resource {
    Resource {
        name: name.into(),
        version: "1".into(),
        aliases: Vec::new(),
        body: Some(any("a", b"\x0a\x01x")),
        ttl: None,
    }
}

fn good() -> Response {
    with(vec![])
}

fn with(mut resources: Vec<Resource>) -> Response {
    resources.push(resource("good"));
    Response { type_url: "a", nonce: "n", version: "1", resources, ..Response::default() }
}

fn bare(value: &'static [u8]) -> Response {
    Response { items: vec![sotw::Item::Bare(any("a", value))], ..good() }
}

/// The effect of a response: in a word, the applied resources, and the client.
struct Played<V: Variant> {
    outcome: String,
    applied: Vec<String>,
    client: Client<V>,
    said: String,
}

fn play<V: Make>(response: Response) -> Played<V> {
    let limits = Limits { resources_per_response: 3, nonce_bytes: 8, version_bytes: 8, ..Limits::default() };
    let types = TypeRegistry::new([ResourceType::full_state("a")]);
    let config = Config::new(Node::new("n")).with_limits(limits).with_types(types);
    let mut client = Client::<V>::new(config);
    client.resources_mut(&"a".into()).subscribe(["good", "x"]).expect("names");
    client.handle_open();
    _ = client.poll_transmit().expect("a first request");
    let before = client.clone();
    let mut played = Played { outcome: "taken".into(), applied: Vec::new(), client, said: String::new() };
    if let Err(error) = played.client.handle_response(NOW, V::make(response)) {
        assert_eq!(played.client, before, "what is refused changes nothing");
        (played.outcome, played.said) = (refused(&error), error.to_string());
        assert!(matches!(error, Error::Peer(_)));
        return played;
    }
    while let Some(action) = played.client.poll_action() {
        match action {
            Action::Apply(update) => {
                played.applied.extend(update.resources().map(|resource| resource.name().to_string()));
                played.client.handle_verdict(NOW, update.accept()).expect("the update is out");
            }
            Action::DropStale { .. } => played.outcome = "dropped".into(),
            Action::Rejected { .. } => played.outcome = "NACK".into(),
            _ => {}
        }
    }
    let answered = played.client.poll_transmit().is_some();
    assert_eq!(answered, played.outcome != "dropped", "every response is answered, except one that was not requested");
    if played.outcome == "NACK" {
        let counts = played.applied.iter().any(|name| name == "good");
        played.outcome += if counts { ", the others count" } else { ", nothing counts" };
    }
    played
}

fn as_if_good<V: Make>(response: Response) -> String {
    let (bad, good) = (play::<V>(response), play::<V>(good()));
    assert_eq!(bad.client, good.client, "not ignored");
    assert_eq!((bad.outcome.as_str(), bad.applied), ("taken", good.applied));
    "ignored".into()
}

/// Returns the rows that are the same in both variants.
fn common<V: Make>(variant: &'static str) -> Vec<Row> {
    let outcome = |response| play::<V>(response).outcome;
    let other_type = Resource { body: Some(any("b", b"")), ..resource("x") };
    let no_time = Resource { ttl: Some(Duration::ZERO), ..resource("x") };
    let empty = Resource { body: None, ..resource("x") };
    let error =
        |name: &str| ResourceError { name: name.into(), status: Some(Status { code: 5, message: "no".into() }) };
    let no_status = ResourceError { name: "x".into(), status: None };
    let row = |key, actual| (key, actual, variant);
    vec![
        row(("type_url", "not asked for on this stream"), outcome(Response { type_url: "b", ..good() })),
        row(("type_url", "empty"), outcome(Response { type_url: "", ..good() })),
        row(("nonce", "empty"), outcome(Response { nonce: "", ..good() })),
        row(("nonce", "too long"), outcome(Response { nonce: LONG, ..good() })),
        row(("control_plane", "anything"), as_if_good::<V>(Response { control_plane: "anything", ..good() })),
        row(("resources", "too many"), outcome(with(["1", "2", "3"].map(resource).into()))),
        row(("resources", "a name twice"), outcome(with(vec![resource("x"), resource("x")]))),
        row(("resources", "one that was not asked for"), as_if_good::<V>(with(vec![resource("unknown")]))),
        row(("resources", "one of another type"), outcome(with(vec![other_type]))),
        row(("resources", "one without a name"), outcome(with(vec![resource("")]))),
        row(("resources", "one with the wildcard for a name"), outcome(with(vec![resource("*")]))),
        row(("resources", "a structured name that can be none, and was not asked for"), {
            as_if_good::<V>(with(vec![resource("xdstp://a/a/%")]))
        }),
        row(("resources", "a TTL that is not positive"), outcome(with(vec![no_time]))),
        row(("resources", "no content, and no heartbeat of what is held"), outcome(with(vec![empty]))),
        row(("resource_errors", "a name that was not asked for"), {
            as_if_good::<V>(Response { errors: vec![error("unknown")], ..good() })
        }),
        row(("resource_errors", "a name that is in `resources`"), {
            as_if_good::<V>(Response { errors: vec![error("good")], ..good() })
        }),
        row(("resource_errors", "no name, where not everything is wanted"), {
            outcome(Response { errors: vec![error("")], ..good() })
        }),
        row(("resource_errors", "no status, or OK"), outcome(Response { errors: vec![no_status], ..good() })),
    ]
}

fn sotw() -> Vec<Row> {
    let outcome = |response| play::<Sotw>(response).outcome;
    let item = |item| Response { items: vec![item], ..good() };
    let wrapped = |resource: Resource| item(sotw::Item::Wrapped(resource.into()));
    let other_type = Resource { body: Some(any("b", b"")), ..resource("x") };
    assert_eq!(outcome(item(sotw::Item::Bare(any("b", b"\x0a\x01x")))), "NACK, the others count");
    assert_eq!(outcome(bare(b"")), "NACK, the others count", "no name in it");
    assert_eq!(outcome(bare(b"\x0a\x01*")), "NACK, the others count", "the wildcard");
    let row = |key, actual| (key, actual, "SotW");
    vec![
        row(("version_info", "empty"), outcome(Response { version: "", ..good() })),
        row(("version_info", "too long"), outcome(Response { version: LONG, ..good() })),
        row(("resources (SotW)", "one that is no message"), outcome(bare(b"\x0a\x7fx"))),
        row(("resources (SotW)", "one whose name is no text"), outcome(bare(b"\x0a\x01\xff"))),
        row(("resources (SotW)", "a wrapper that is no message"), outcome(item(sotw::Item::Malformed))),
        row(("resources (SotW)", "a wrapper without a name"), outcome(wrapped(resource("")))),
        row(("resources (SotW)", "a wrapper of another type"), outcome(wrapped(other_type))),
    ]
}

fn incremental() -> Vec<Row> {
    let outcome = |response| play::<Delta>(response).outcome;
    let removed = |names: &[&'static str]| Response { removed: names.to_vec(), ..good() };
    // Resource.name is field 3; resource_name, field 8, holds its name in field 1.
    let both =
        proto::delta::decode_response(Bytes::from_static(b"\x12\x08\x1a\x01x\x42\x03\x0a\x01x")).expect("a message");
    let long_version = Resource { version: LONG.into(), ..resource("x") };
    let row = |key, actual| (key, actual, "delta");
    vec![
        row(("system_version_info", "anything"), outcome(Response { version: LONG, ..good() })),
        row(("resources (delta)", "a name in both of its fields"), outcome(with(both.resources))),
        row(("resources (delta)", "a version that is too long"), outcome(with(vec![long_version]))),
        row(("resources (delta)", "no content, and an alias that was asked for"), {
            let stub = Resource { body: None, aliases: vec!["x".into()], ..resource("y") };
            outcome(with(vec![stub]))
        }),
        row(("removed_resources", "a name twice"), outcome(removed(&["x", "x"]))),
        row(("removed_resources", "a name that is in `resources`"), outcome(removed(&["good"]))),
        row(("removed_resources", "the wildcard"), {
            let all = |removed: &[&'static str]| {
                let mut client = everything();
                let response = Response { removed: removed.to_vec(), ..good() };
                client.handle_response(NOW, Delta::make(response)).expect("a response");
                client
            };
            assert_eq!(all(&["*"]), all(&[]));
            "ignored".into()
        }),
        row(("removed_resources", "a name that was not asked for"), as_if_good::<Delta>(removed(&["unknown"]))),
    ]
}

/// Makes a client that is subscribed to the wildcard.
fn everything() -> Client<Delta> {
    let mut client = Client::new(Config::new(Node::new("n")));
    client.resources_mut(&"a".into()).subscribe(["*"]).expect("a name");
    client.handle_open();
    _ = client.poll_transmit().expect("a first request");
    client
}

/// Returns the table, each row freshly tested.
pub fn rows() -> Vec<Row> {
    let mut rows = common::<Sotw>("SotW");
    rows.extend(common::<Delta>("delta"));
    rows.extend(sotw());
    rows.extend(incremental());
    rows
}

/// Returns the message of the only refusal.
pub fn message() -> String {
    play::<Delta>(Response { nonce: LONG, ..good() }).said
}

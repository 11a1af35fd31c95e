//! Cases that stories can't express: statuses, nodes, memory, misuse, and fields that the lines omit.

use std::collections::BTreeSet;

use bytes::Bytes;
use xds_machine::client::{self, Action, Client, Rejection};
use xds_machine::message::{Any, Node, delta, feature, sotw};
use xds_machine::server::{self, Cache, Resource, Server, StreamId};
use xds_machine::{Delta, Instant, Misuse, Sotw, Status, TypeUrl, proto, type_url};

const NOW: Instant = Instant::EPOCH;

fn endpoints() -> TypeUrl {
    type_url::ENDPOINT.into()
}

/// Returns a client that has asked for `a` on a stream, and its first request.
fn client(config: client::Config) -> (Client<Sotw>, sotw::Request) {
    let mut client = Client::new(config);
    client.resources_mut(&endpoints()).subscribe(["a"]).expect("a name");
    client.handle_open();
    let first = client.poll_transmit().expect("a first request").request;
    (client, first)
}

fn response(nonce: &str) -> sotw::Response {
    sotw::Response {
        version: "1".into(),
        resources: vec![sotw::Item::Bare(Any { type_url: endpoints(), value: Bytes::from_static(b"\x0a\x01a") })],
        type_url: endpoints(),
        nonce: nonce.into(),
        control_plane: String::new(),
        errors: Vec::new(),
    }
}

fn update(client: &mut Client<Sotw>) -> client::Update {
    match client.poll_action() {
        Some(Action::Apply(update)) => update,
        other => panic!("no update, but {other:?}"),
    }
}

/// C-STREAM-09: the machine announces its capabilities, and no others.
#[test]
fn the_node_announces_the_features_of_the_machine() {
    let features = |config| {
        let (_, request) = client(config);
        request.node.expect("a node").client_features.clone()
    };
    let mut node = Node::new("n");
    node.client_features = vec!["own".into(), feature::TTL.into()];
    let config = client::Config::new(node);
    assert_eq!(features(config.clone()), ["own", feature::TTL, "xds.config.resource-in-sotw"]);
    assert_eq!(features(config.without_ttl()), ["own", "xds.config.resource-in-sotw"]);
}

/// C-SOTW-04, C-SOTW-05: a code that is an error, and a message within the limit, whole characters only.
#[test]
fn a_nack_has_a_code_and_a_short_message() {
    let limits = client::Limits { error_bytes: 8, ..client::Limits::default() };
    let (mut client, _) = client(client::Config::new(Node::new("n")).with_limits(limits));
    client.handle_response(NOW, response("n1")).expect("a response");
    let verdict = update(&mut client).reject([Rejection::new("a", "tööö long")]);
    client.handle_verdict(NOW, verdict).expect("the update is out");
    let nack = client.poll_transmit().expect("a NACK").request;
    assert_eq!(nack.error, Some(Status { code: 3, message: "a: töö".into() }));
}

/// C-ADS-25: a second verdict (of a clone) frees nothing and answers nothing.
#[test]
fn a_verdict_counts_once() {
    let (mut client, _) = client(client::Config::new(Node::new("n")));
    client.handle_response(NOW, response("n1")).expect("a response");
    let update = update(&mut client);
    client.handle_verdict(NOW, update.clone().accept()).expect("the update is out");
    let before = client.clone();
    let again = client.handle_verdict(NOW, update.reject_all("no"));
    assert_eq!(again, Err(Misuse::UnknownUpdate { type_url: endpoints() }));
    assert_eq!(client, before, "nothing changed");
}

/// S-COM-04, S-COM-06: the node of the first request counts, and is reported once.
#[test]
fn a_later_node_is_ignored() {
    let mut server = Server::<Sotw>::new(server::Config::ads(), StreamId(1));
    for id in ["first", "second"] {
        let mut request = sotw::Request::new(type_url::ENDPOINT);
        request.node = Some(Node::new(id).into());
        request.names = vec!["a".into()];
        server.handle_request(NOW, request).expect("a request");
    }
    let nodes = std::iter::from_fn(|| server.poll_action()).filter_map(|action| match action {
        server::Action::Node(node) => Some(node.id.clone()),
        _ => None,
    });
    assert_eq!(nodes.collect::<Vec<_>>(), ["first"]);
}

/// S-COM-17, C-RES-24: the control plane's identifier is in every response, on the wire too.
#[test]
fn a_response_has_the_control_plane_identifier() {
    let mut cache = Cache::new(1);
    cache.insert(&endpoints(), Resource::new("a", &b"\x0a\x01a"[..]));
    let config = server::Config::ads().with_control_plane("who");
    let mut server = Server::<Delta>::new(config, StreamId(1));
    let mut request = delta::Request::new(type_url::ENDPOINT);
    request.subscribe = vec!["a".into()];
    server.handle_request(NOW, request).expect("a request");
    let response = server.poll_transmit(NOW, &cache).expect("an answer");
    let mut bytes = Vec::new();
    response.encode(&mut bytes);
    let read = proto::delta::decode_response(bytes.into()).expect("a response");
    assert_eq!((read.control_plane.as_str(), read.resources[0].name.as_str()), ("who", "a"));
}

/// S-SOTW-19: the content decides what is sent, not the version that the operator assigns.
#[test]
fn changed_content_under_the_same_version_is_sent() {
    let mut cache = Cache::new(1);
    let resource = |body: &'static [u8]| Resource::new("a", body).with_version("1");
    cache.insert(&endpoints(), resource(b"\x0a\x01a"));
    let mut server = Server::<Sotw>::new(server::Config::ads(), StreamId(1));
    let mut request = sotw::Request::new(type_url::ENDPOINT);
    request.names = vec!["a".into()];
    server.handle_request(NOW, request.clone()).expect("a request");
    let first = server.poll_transmit(NOW, &cache).expect("an answer");
    request.nonce = first.nonce().clone();
    request.error = Some(Status { code: 13, message: "bad".into() });
    server.handle_request(NOW, request).expect("a NACK");
    assert_eq!(server.poll_transmit(NOW, &cache), None, "what was rejected is not sent again");
    cache.insert(&endpoints(), resource(b"\x0a\x01a\x10\x01"));
    assert!(server.poll_transmit(NOW, &cache).is_some());
}

/// S-DELTA-11: an empty version claims nothing, though the resource has no other.
#[test]
fn an_empty_version_is_never_current() {
    let mut cache = Cache::new(1);
    cache.insert(&endpoints(), Resource::new("a", &b"\x0a\x01a"[..]).with_version(""));
    let mut server = Server::<Delta>::new(server::Config::ads(), StreamId(1));
    let mut request = delta::Request::new(type_url::ENDPOINT);
    request.subscribe = vec!["a".into()];
    request.initial_versions = [("a", "")].into();
    server.handle_request(NOW, request).expect("a request");
    assert!(server.poll_transmit(NOW, &cache).is_some());
}

/// S-MEM-01: a name is stored once, however many streams subscribe to it.
#[test]
fn a_stream_shares_the_names_of_the_store() {
    let name = "a name that is too long to be kept in place of a pointer to it";
    let mut cache = Cache::new(1);
    cache.insert(&endpoints(), Resource::new(name, &b""[..]));
    let mut server = Server::<Delta>::new(server::Config::ads(), StreamId(1));
    let mut request = delta::Request::new(type_url::ENDPOINT);
    request.subscribe = vec![name.into()];
    server.handle_request(NOW, request).expect("a request");
    let response = server.poll_transmit(NOW, &cache).expect("an answer");
    let sent = response.resources().next().expect("a resource").name().clone();
    let interest = server.interest(&endpoints()).expect("a subscription");
    assert!(interest.names().all(|wanted| wanted.shares_with(&sent)));
}

/// C-DELTA-28, C-DELTA-29: names may be in two fields of a message, but the name of one resource in only one of them.
#[test]
fn names_in_either_field_are_read() {
    // Resource.name is field 3, Resource.resource_name 8 with its name in field 1.
    let plain = b"\x1a\x01a";
    let named = b"\x42\x03\x0a\x01b";
    let both = b"\x1a\x01a\x42\x03\x0a\x01b";
    let mut message = Vec::new();
    for resource in [&plain[..], named, both] {
        message.extend([0x12, resource.len() as u8]);
        message.extend(resource);
    }
    message.extend(b"\x32\x01c"); // removed_resources
    message.extend(b"\x42\x03\x0a\x01d"); // removed_resource_names
    let response = proto::delta::decode_response(message.into()).expect("a response");
    let names: Vec<&str> = response.resources.iter().map(|resource| resource.name.as_str()).collect();
    assert_eq!(names, ["a", "b", ""], "in both fields it is in neither");
    let removed: BTreeSet<&str> = response.removed.iter().map(|name| name.as_str()).collect();
    assert_eq!(removed, BTreeSet::from(["c", "d"]));
}

/// S-ADS-20, S-ADS-24: the caller decides which resources are sent again with a changed resource.
#[test]
fn a_caller_decides_which_dependents_are_sent_again() {
    let clusters = TypeUrl::from(type_url::CLUSTER);
    let sent_again = |mut cache: Cache, child: &TypeUrl| {
        let mut server = Server::<Delta>::new(server::Config::ads(), StreamId(1));
        cache.insert(&clusters, Resource::new("c", &b"one"[..]));
        cache.insert(child, Resource::new("c", &b"\x0a\x01c"[..]));
        for type_url in [&clusters, child] {
            let mut request = delta::Request::new(type_url.clone());
            request.subscribe = vec!["c".into()];
            server.handle_request(NOW, request).expect("a request");
        }
        let drain = |server: &mut Server<Delta>, cache: &Cache| {
            let mut types = Vec::new();
            while let Some(response) = server.poll_transmit(NOW, cache) {
                let answer = delta::Request {
                    nonce: response.nonce().clone(),
                    ..delta::Request::new(response.type_url().clone())
                };
                types.push(response.type_url().clone());
                server.handle_request(NOW, answer).expect("an ACK");
            }
            types
        };
        drain(&mut server, &cache);
        cache.insert(&clusters, Resource::new("c", &b"two"[..]));
        drain(&mut server, &cache)
    };
    let secrets = TypeUrl::from(type_url::SECRET);
    assert_eq!(sent_again(Cache::new(1), &endpoints()), [clusters.clone(), endpoints()]);
    let without = Cache::new(1).without_dependent(clusters.clone());
    assert_eq!(sent_again(without, &endpoints()), std::slice::from_ref(&clusters));
    let own = || {
        Cache::new(1).with_dependent(clusters.clone(), secrets.clone(), |cluster| Some(cluster.name().as_str().into()))
    };
    assert_eq!(sent_again(own(), &secrets), [clusters.clone(), secrets.clone()]);
    assert_eq!(sent_again(own(), &endpoints()), std::slice::from_ref(&clusters), "instead of the endpoints");
}

/// C-ADS-11: requests are composed when they are polled, so a caller may limit their rate: nothing queues up, and each
/// request has the state at that moment.
#[test]
fn a_caller_may_limit_the_rate_of_requests() {
    fn names_of<V: client::Variant>(sent: impl Fn(V::Request) -> usize) -> (usize, usize) {
        let mut client = Client::<V>::new(client::Config::new(Node::new("n")));
        client.handle_open();
        let (mut requests, mut names) = (0, 0);
        for second in 0..10 {
            for n in 0..100 {
                let name = format!("{second}-{n}");
                client.resources_mut(&endpoints()).subscribe([name.as_str()]).expect("a name");
                if n % 2 == 1 {
                    client.resources_mut(&endpoints()).unsubscribe([name.as_str()]);
                }
            }
            // One request a second.
            let transmit = client.poll_transmit().expect("names to ask for");
            names += sent(transmit.request);
            requests += 1;
            assert!(!client.wants_transmit(), "one request has it all");
        }
        (requests, names)
    }
    // A SotW request lists all names each time.
    assert_eq!(names_of::<Sotw>(|request| request.names.len()), (10, 50 * (1..=10).sum::<usize>()));
    assert_eq!(names_of::<Delta>(|request| request.subscribe.len() + request.unsubscribe.len()), (10, 500));
}

/// The queries of a stream: its id, and the subscribed types, in push order.
#[test]
fn a_stream_reports_its_id_and_its_subscribed_types_in_push_order() {
    let mut server = Server::<Delta>::new(server::Config::ads(), StreamId(7));
    assert_eq!(server.stream(), StreamId(7));
    assert_eq!(server.stream().to_string(), "7");
    assert_eq!(server.types().count(), 0);
    for kind in [type_url::ROUTE, type_url::ENDPOINT, type_url::CLUSTER] {
        let request = delta::Request { subscribe: vec!["a".into()], ..delta::Request::new(kind) };
        server.handle_request(NOW, request).expect("a request");
    }
    let types: Vec<_> = server.types().map(TypeUrl::as_str).collect();
    assert_eq!(types, [type_url::CLUSTER, type_url::ENDPOINT, type_url::ROUTE]);
}

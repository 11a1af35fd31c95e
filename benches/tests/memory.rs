//! The memory that a peer can make a machine hold is within the configured limits, times a factor that is stated here.
//! A message that is refused, or has nothing new, leaves nothing behind.
//!
//! The cases count the bytes of the allocator, and so run one after the other.

use benches::alloc;
use xds_machine::client::{self, Action, Client, Update};
use xds_machine::message::{Any, Node, delta, sotw};
use xds_machine::server::{self, Cache, Resource, Server, StreamId};
use xds_machine::{Delta, Instant, Nonce, ResourceName, Sotw, Status, TypeUrl, Version, WILDCARD, type_url};

#[global_allocator]
static COUNTING: alloc::Counting = alloc::Counting;

const NOW: Instant = Instant::EPOCH;

fn main() {
    let cases: [(&str, fn()); 12] = [
        ("names that come and go, never acknowledged, delta", names_come_and_go::<Delta>),
        ("names that come and go, never acknowledged, sotw", names_come_and_go::<Sotw>),
        ("names that come and go under a wildcard, delta", under_a_wildcard::<Delta>),
        ("names that come and go under a wildcard, sotw", under_a_wildcard::<Sotw>),
        ("names that are answered while clusters wait", ahead_of_clusters),
        ("claims of a client that is never served", claims),
        ("types without end", types_without_end),
        ("a refused request leaves nothing", refused_requests),
        ("a stale request leaves nothing", stale_requests),
        ("resources without end", resources_without_end),
        ("responses without end", responses_without_end),
        ("a refused response leaves nothing", refused_responses),
    ];
    for (name, case) in cases {
        case();
        println!("{name}: ok");
    }
}

/// Returns the result of `make`, and the number of bytes that are live in addition while it is kept.
fn held<T>(make: impl FnOnce() -> T) -> (T, i64) {
    let before = alloc::live() as i64;
    let made = make();
    (made, alloc::live() as i64 - before)
}

// The server.

const NAME: usize = 40;

fn limits() -> server::Limits {
    server::Limits {
        names_per_type: 1_000,
        names_per_stream: 2_000,
        name_bytes_per_stream: 2_000 * NAME,
        name_bytes: 2 * NAME,
        initial_versions: 1_000,
        types: 8,
        stale_requests: 100_000,
        ..server::Limits::default()
    }
}

/// The factor: a stream holds at most three times the bytes that names may have, and 128 bytes for each name and 4 KiB
/// for each type. (One of the three is for the names, and one for the resources that a client claims to have.)
fn server_bound() -> i64 {
    let limits = limits();
    (3 * limits.name_bytes_per_stream + 128 * limits.names_per_stream + 4096 * limits.types) as i64
}

fn name(i: usize) -> ResourceName {
    format!("{i:0NAME$}").as_str().into()
}

/// A client in one variant, which sends its subscriptions.
trait Client_: server::Variant {
    /// Returns a request. `wanted` has all names that are subscribed from now on, `gone` those that no longer are.
    fn says(type_url: &TypeUrl, wanted: Vec<ResourceName>, gone: Vec<ResourceName>, nonce: Nonce) -> Self::Request;
}

impl Client_ for Sotw {
    fn says(type_url: &TypeUrl, wanted: Vec<ResourceName>, _: Vec<ResourceName>, nonce: Nonce) -> sotw::Request {
        sotw::Request { names: wanted, nonce, ..sotw::Request::new(type_url.clone()) }
    }
}

impl Client_ for Delta {
    fn says(type_url: &TypeUrl, wanted: Vec<ResourceName>, gone: Vec<ResourceName>, nonce: Nonce) -> delta::Request {
        delta::Request { subscribe: wanted, unsubscribe: gone, nonce, ..delta::Request::new(type_url.clone()) }
    }
}

fn ads<V: server::Variant>() -> Server<V> {
    Server::new(server::Config::ads().with_limits(limits()), StreamId(1))
}

/// Passes a request to the machine, takes the actions, and returns whether the request was refused.
fn ask<V: server::Variant>(server: &mut Server<V>, request: V::Request) -> bool {
    let refused = server.handle_request(NOW, request).is_err();
    while server.poll_action().is_some() {}
    refused
}

fn check_bound(what: &str, bytes: i64) {
    let bound = server_bound();
    println!("  {bytes} bytes held, limit {bound}");
    assert!(bytes <= bound, "{what}: {bytes} bytes held, limit {bound}");
}

/// Other names in each request, for each of two types, while no response is ever acknowledged.
fn names_come_and_go<V: Client_>() {
    let types: [TypeUrl; 2] = ["one".into(), "two".into()];
    let mut cache = Cache::new(1);
    for type_url in &types {
        cache.insert(type_url, Resource::new(name(0), &b"x"[..]));
    }
    let (server, bytes) = held(|| {
        let mut server = ads::<V>();
        for round in 0..200 {
            for type_url in &types {
                let names = |round: usize| (0..450).map(|i| name(450 * round + i)).collect::<Vec<_>>();
                let gone = if round > 0 { names(round - 1) } else { Vec::new() };
                ask(&mut server, V::says(type_url, names(round), gone, Nonce::default()));
                server.poll_transmit(NOW, &cache);
            }
        }
        server
    });
    check_bound("names", bytes);
    assert_eq!(server.types().count(), 2);
}

/// The same under a wildcard subscription: answers that are due to more names than may be subscribed become the answer
/// to the wildcard.
fn under_a_wildcard<V: Client_>() {
    let clusters = TypeUrl::from(type_url::CLUSTER);
    let mut cache = Cache::new(1);
    cache.insert(&clusters, Resource::new(name(0), &b"x"[..]));
    let ((server, refused), bytes) = held(|| {
        let mut server = ads::<V>();
        let all = || vec![ResourceName::from(WILDCARD)];
        ask(&mut server, V::says(&clusters, all(), Vec::new(), Nonce::default()));
        server.poll_transmit(NOW, &cache);
        let mut refused = 0;
        for round in 0..400 {
            let names: Vec<_> = (0..100).map(|i| name(100 * round + i)).collect();
            let wanted = names.iter().cloned().chain(all()).collect();
            refused += usize::from(ask(&mut server, V::says(&clusters, wanted, Vec::new(), Nonce::default())));
            refused += usize::from(ask(&mut server, V::says(&clusters, all(), names, Nonce::default())));
        }
        (server, refused)
    });
    check_bound("names", bytes);
    assert_eq!(refused, 0, "names that leave make room");
    drop(server);
}

/// Listeners by name are answered while clusters wait for an acknowledgement that never comes.
fn ahead_of_clusters() {
    come_and_go_ahead(&[]);
    // Under a wildcard, the names that were answered ahead are remembered, and count.
    come_and_go_ahead(&[WILDCARD]);
}

fn come_and_go_ahead(always: &[&str]) {
    let wildcard = !always.is_empty();
    let (clusters, listeners) = (TypeUrl::from(type_url::CLUSTER), TypeUrl::from(type_url::LISTENER));
    let mut cache = Cache::new(1);
    cache.insert(&clusters, Resource::new("c", &b"1"[..]));
    let (server, bytes) = held(|| {
        let mut server = ads::<Delta>();
        ask(&mut server, Delta::says(&clusters, vec![WILDCARD.into()], Vec::new(), Nonce::default()));
        let always = always.iter().map(|&name| name.into()).chain(["l".into()]);
        ask(&mut server, Delta::says(&listeners, always.collect(), Vec::new(), Nonce::default()));
        while server.poll_transmit(NOW, &cache).is_some() {}
        cache.insert(&clusters, Resource::new("c", &b"2"[..]));
        let (mut gone, mut nonce) = (Vec::new(), Nonce::from("1.2"));
        for round in 0..400 {
            let names: Vec<_> = (0..100).map(|i| name(100 * round + i)).collect();
            if ask(&mut server, Delta::says(&listeners, names.clone(), gone, nonce)) {
                assert!(round >= 9 && wildcard, "round {round}");
                break; // the stream is closed
            }
            let response = server.poll_transmit(NOW, &cache).expect("an answer by name");
            assert!(response.removed().len() >= 100);
            nonce = response.nonce().clone();
            gone = names;
        }
        server
    });
    check_bound("names", bytes - 1024); // the cluster's new content is the store's
    drop(server);
}

/// A client claims many versions, of all types, and nothing is known yet, so that the server does not look at the
/// claims.
fn claims() {
    let cache = Cache::unknown(1);
    let (server, bytes) = held(|| {
        let mut server = ads::<Delta>();
        let mut refused = 0;
        for t in 0..8 {
            let type_url = TypeUrl::from(format!("type {t}"));
            let version = |i: usize| (name(i), Version::from("a version that is not short"));
            let mut request = delta::Request::new(type_url.clone());
            request.subscribe = vec![name(0)];
            request.initial_versions = (0..1_000).map(version).collect();
            refused += usize::from(ask(&mut server, request));
            for round in 0..100 {
                let names: Vec<_> = (0..100).map(|i| name(100_000 + 100 * round + i)).collect();
                let says = |wanted, gone| Delta::says(&type_url, wanted, gone, Nonce::default());
                ask(&mut server, says(names.clone(), Vec::new()));
                ask(&mut server, says(Vec::new(), names));
            }
            server.poll_transmit(NOW, &cache);
        }
        assert!(refused > 0, "so much is not to be held");
        server
    });
    check_bound("claims", bytes);
    drop(server);
}

fn types_without_end() {
    let cache = Cache::new(1);
    let (server, bytes) = held(|| {
        let mut server = ads::<Delta>();
        let refused = (0..1_000).filter(|t| {
            let type_url = format!("{t:0200}").into();
            let refused = ask(&mut server, Delta::says(&type_url, vec![name(0)], Vec::new(), Nonce::default()));
            while server.poll_transmit(NOW, &cache).is_some() {}
            refused
        });
        assert_eq!(refused.count(), 1_000 - limits().types);
        server
    });
    check_bound("types", bytes);
    drop(server);
}

/// Each way in which a request is refused: the state after it is the state before it.
fn refused_requests() {
    let clusters = TypeUrl::from(type_url::CLUSTER);
    let mut server = ads::<Delta>();
    ask(&mut server, Delta::says(&clusters, vec![name(0), name(1)], Vec::new(), Nonce::default()));
    let says = |wanted: Vec<ResourceName>| Delta::says(&TypeUrl::from("t"), wanted, Vec::new(), Nonce::default());
    let many = |count: usize| (0..count).map(name).collect::<Vec<_>>();
    let claim = |count: usize, version: &str| {
        let versions = (0..count).map(|i| (name(i), version));
        delta::Request { initial_versions: versions.collect(), ..says(vec![name(0)]) }
    };
    let long = |len: usize| ResourceName::from("x".repeat(len));
    let requests: [&dyn Fn() -> delta::Request; 9] = [
        &|| says(vec!["".into()]),
        &|| says(vec![long(81)]),
        &|| says(many(1_001)),
        &|| Delta::says(&"".into(), many(2), Vec::new(), Nonce::default()),
        &|| Delta::says(&"x".repeat(300).as_str().into(), many(2), Vec::new(), Nonce::default()),
        &|| claim(1_001, "1"),
        &|| claim(1, &"x".repeat(300)),
        &|| claim(900, &"x".repeat(200)),
        &|| says((0..1_000).map(|i| ResourceName::from(format!("{i:080}"))).collect()),
    ];
    // The message of the error is the caller's: it is dropped here.
    for (at, request) in requests.iter().enumerate() {
        let (refused, bytes) = held(|| ask(&mut server, request()));
        assert!(refused, "request {at}");
        assert_eq!(bytes, 0, "request {at} leaves something");
    }
}

/// A stale request without a new name.
fn stale_requests() {
    let clusters = TypeUrl::from(type_url::CLUSTER);
    let mut cache = Cache::new(1);
    cache.insert(&clusters, Resource::new(name(0), &b"x"[..]));
    let names: Vec<_> = (0..100).map(name).collect();

    let mut sotw = ads::<Sotw>();
    ask(&mut sotw, Sotw::says(&clusters, names.clone(), Vec::new(), Nonce::default()));
    let response = sotw.poll_transmit(NOW, &cache).expect("the first answer");
    let stale = || Sotw::says(&clusters, (0..100).map(name).collect(), Vec::new(), "an old nonce, long".into());
    let mut delta = ads::<Delta>();
    ask(&mut delta, Delta::says(&clusters, names, Vec::new(), Nonce::default()));
    delta.poll_transmit(NOW, &cache).expect("the first answer");
    for round in 0..100 {
        let (refused, bytes) = held(|| ask(&mut sotw, stale()));
        assert_eq!((refused, bytes), (false, 0), "sotw, round {round}");
        let request = || delta::Request {
            error: Some(Status { code: 3, message: "x".repeat(10_000) }),
            ..Delta::says(&clusters, Vec::new(), vec![name(100_000 + round)], "an old nonce".into())
        };
        let (refused, bytes) = held(|| ask(&mut delta, request()));
        assert_eq!((refused, bytes), (false, 0), "delta, round {round}");
    }
    drop(response);
}

// The client.

fn client_limits() -> client::Limits {
    client::Limits {
        waiting_responses: 4,
        waiting_bytes: 40_000,
        resources_per_response: 100,
        resources_per_type: 1_000,
        departed_names: 100,
        ..client::Limits::default()
    }
}

/// The factor: 256 bytes for each resource that may be held or is in an update, besides its name and the buffer that it
/// arrived in; as much again for each byte that may wait, and a nonce and an error for each answer.
fn client_bound() -> i64 {
    let limits = client_limits();
    let resources = (256 + NAME) * (limits.resources_per_response + limits.resources_per_type);
    let answers = 2 * limits.waiting_responses * (limits.nonce_bytes + limits.error_bytes);
    (resources + 4 * limits.waiting_bytes + answers) as i64
}

fn open<V: client::Variant>(type_url: &TypeUrl) -> Client<V> {
    let mut client = Client::new(client::Config::new(Node::new("n")).with_limits(client_limits()));
    client.resources_mut(type_url).subscribe([WILDCARD]).expect("a good name");
    client.handle_open();
    while client.poll_transmit().is_some() {}
    client
}

fn response(type_url: &TypeUrl, names: impl Iterator<Item = usize>, nonce: &str) -> delta::Response {
    let resource = |i: usize| xds_machine::message::Resource {
        name: name(i),
        version: "1".into(),
        aliases: Vec::new(),
        body: Some(Any { type_url: type_url.clone(), value: Default::default() }),
        ttl: None,
    };
    delta::Response {
        system_version: "1".into(),
        resources: names.map(resource).collect(),
        removed: Vec::new(),
        type_url: type_url.clone(),
        nonce: nonce.into(),
        control_plane: String::new(),
        errors: Vec::new(),
    }
}

/// Takes all actions, and returns the updates.
fn take<V: client::Variant>(client: &mut Client<V>) -> Vec<Update> {
    let actions = std::iter::from_fn(|| client.poll_action());
    actions.filter_map(|action| if let Action::Apply(update) = action { Some(update) } else { None }).collect()
}

/// A server with a wildcard subscription sends other names in each response, and all are accepted.
fn resources_without_end() {
    let type_url = TypeUrl::from("t");
    let ((client, nacks), bytes) = held(|| {
        let (mut client, mut nacks) = (open::<Delta>(&type_url), 0);
        for round in 0..1_000 {
            let response = response(&type_url, 100 * round..100 * round + 100, "n");
            client.handle_response(NOW, response).expect("a good response");
            for update in take(&mut client) {
                client.handle_verdict(NOW, update.accept()).expect("the update is out");
            }
            let transmit = client.poll_transmit().expect("an answer");
            nacks += usize::from(transmit.request.error.is_some());
        }
        (client, nacks)
    });
    let bound = client_bound();
    println!("  {bytes} bytes held, limit {bound}");
    assert!(bytes <= bound, "resources: {bytes} bytes held, limit {bound}");
    assert_eq!(nacks, 990, "what is too much is rejected");
    drop(client);
}

/// An application that gives no verdict, and a server that goes on sending.
fn responses_without_end() {
    let type_url = TypeUrl::from("t");
    let (client, bytes) = held(|| {
        let mut client = open::<Delta>(&type_url);
        for round in 0..1_000 {
            let nonce = format!("nonce {round:01000}");
            let response = response(&type_url, 100 * round..100 * round + 100, &nonce);
            client.handle_response(NOW, response).expect("the stream is read");
            // A response of a type without a subscription is dropped, and counted in one action.
            let unasked = self::response(&"u".into(), 0..100, &nonce);
            client.handle_response(NOW, unasked).expect("a good response");
        }
        client
    });
    let bound = client_bound();
    println!("  {bytes} bytes held, limit {bound}");
    assert!(bytes <= bound, "responses: {bytes} bytes held, limit {bound}");
    assert!(client.wants_response());
    drop(client);
}

fn refused_responses() {
    let type_url = TypeUrl::from("t");
    let mut client = open::<Delta>(&type_url);
    let long = "x".repeat(2_000);
    let check = |client: &mut Client<Delta>, names: usize, nonce: &str| {
        let (refused, bytes) = held(|| client.handle_response(NOW, response(&type_url, 0..names, nonce)).is_err());
        assert!(refused);
        assert_eq!(bytes, 0, "a refused response leaves something");
    };
    check(&mut client, 100, &long);
    client.handle_close();
    check(&mut client, 100, "n");
}

//! A name is parsed at the API boundary, so every look-up finds the same resource, whatever the spelling.

use std::borrow::Cow;
use std::sync::Arc;

use xds_machine::client::{self, Client, ResourceStatus};
use xds_machine::message::{Node, delta};
use xds_machine::server::{self, Cache, Resource, Server, Source, State, StreamId};
use xds_machine::servers::{Policy, ServerId, Servers};
use xds_machine::watch::Watches;
use xds_machine::xdstp::Uri;
use xds_machine::{
    Code, Delta, Error, Instant, Misuse, Nonce, PeerMisbehaved, ResourceName, Status, TypeUrl, Version, type_url,
};

const NOW: Instant = Instant::EPOCH;

/// Spellings of one name, the normal form first.
const SPELLINGS: [&str; 4] =
    ["xdstp://a/T/x?a=1&b=2", "xdstp://a/T/x?b=2&a=1", "xdstp://a/T/x?b=%32&a=1", "xdstp://%61/T/x?&b=2&&a=1"];
const OTHER: &str = "xdstp://a/T/x?a=1&b=3";

fn t() -> TypeUrl {
    "type.googleapis.com/T".into()
}

fn client() -> Client<Delta> {
    Client::new(client::Config::new(Node::new("n")))
}

/// Returns a client that has one resource, named `name`.
fn with_resource(name: &str) -> Client<Delta> {
    let mut client = client();
    client.resources_mut(&t()).subscribe([name]).expect("a name");
    client.handle_open();
    _ = client.poll_transmit().expect("a request");
    let mut cache = Cache::new(1);
    cache.insert(&t(), Resource::new(name, vec![1]).with_aliases(["alias"]));
    let mut server = Server::<Delta>::new(server::Config::ads(), StreamId(1));
    let request = delta::Request { subscribe: vec![name.into()], ..delta::Request::new(t()) };
    server.handle_request(NOW, request).expect("a request");
    let response = server.poll_transmit(NOW, &cache).expect("an answer");
    client.handle_response(NOW, (&response).into()).expect("a response");
    let Some(client::Action::Apply(update)) = client.poll_action() else { panic!("no update") };
    for other in SPELLINGS {
        assert!(update.resource(other).is_some(), "{other}");
        assert!(server.delivery(&t(), other, &cache).is_some(), "{other}");
        assert!(server.interest(&t()).is_some_and(|interest| interest.covers(other)), "{other}");
    }
    assert!(update.resource(OTHER).is_none());
    client.handle_verdict(NOW, update.accept()).expect("it is out");
    client
}

type Command<'a> = &'a dyn Fn(&mut Client<Delta>);

/// Each way to pass the same names, and the expected result.
#[test]
fn subscribe_and_unsubscribe_take_names_of_each_string_type() {
    let name = ResourceName::from(SPELLINGS[1]);
    let wanted = |client: &Client<Delta>| client.resources(&t()).interest().names().cloned().collect::<Vec<_>>();
    let mut client = client();
    let mut check = |subscribe: Command<'_>, unsubscribe: Command<'_>| {
        subscribe(&mut client);
        assert_eq!(wanted(&client), [SPELLINGS[0]]);
        unsubscribe(&mut client);
        assert_eq!(wanted(&client), [""; 0]);
    };
    let (string, shared, t) = (String::from(SPELLINGS[2]), Arc::<str>::from(SPELLINGS[3]), &t());
    check(&|client| client.resources_mut(t).subscribe(SPELLINGS).expect("names"), &|client| {
        client.resources_mut(t).unsubscribe([SPELLINGS[3]])
    });
    check(&|client| client.resources_mut(t).subscribe([&name]).expect("a name"), &|client| {
        client.resources_mut(t).unsubscribe([&name])
    });
    check(&|client| client.resources_mut(t).subscribe([name.clone()]).expect("a name"), &|client| {
        client.resources_mut(t).unsubscribe([name.clone()])
    });
    check(&|client| client.resources_mut(t).subscribe([&string]).expect("a name"), &|client| {
        client.resources_mut(t).unsubscribe([string.clone()])
    });
    check(&|client| client.resources_mut(t).subscribe([shared.clone()]).expect("a name"), &|client| {
        client.resources_mut(t).unsubscribe([shared.clone()])
    });
}

#[test]
fn a_client_finds_a_name_in_any_spelling() {
    for asked in SPELLINGS {
        let client = with_resource(asked);
        for name in SPELLINGS {
            let state = client.resources(&t()).state(name).expect("it is wanted");
            assert_eq!(state.status, ResourceStatus::Acked, "{asked} {name}");
            assert_eq!(client.layer(&t()).aliases(&name.into()).count(), 0, "none is wanted");
            assert!(client.resources(&t()).interest().covers(name), "{asked} {name}");

            let mut lost = client.clone();
            lost.layer_mut(&t()).forget([name]);
            assert_eq!(lost.layer(&t()).held().count(), 0, "{asked} {name}");
            assert!(lost.layer(&t()).is_awaited(name), "{asked} {name}");
            lost.layer_mut(&t()).mark_does_not_exist([name]);
            assert!(SPELLINGS.iter().all(|&name| lost.layer(&t()).does_not_exist(name)), "{asked} {name}");
            lost.layer_mut(&t()).adopt([(name, None)]);
            assert_eq!(lost.layer(&t()).held().count(), 1, "{asked} {name}");

            let mut again = client.clone();
            _ = again.poll_transmit().expect("an ACK");
            again.resources_mut(&t()).refetch([name]);
            assert_eq!(again.poll_transmit().expect("a request").request.subscribe, [SPELLINGS[0]], "{asked} {name}");
        }
        assert_eq!(client.resources(&t()).state(OTHER), None);
    }
}

#[test]
fn a_cache_finds_a_name_in_any_spelling() {
    for put in SPELLINGS {
        let mut cache = Cache::new(1);
        cache.insert(&t(), Resource::new(put, vec![1]));
        let at = cache.revision();
        for name in SPELLINGS.map(ResourceName::from) {
            assert!(matches!(cache.get(&t(), &name).state, State::Present(_)), "{put} {name}");
            let glob = ResourceName::from("xdstp://%61/T/*?b=2&a=1");
            assert_eq!(cache.members(&t(), &glob).count(), 1, "{put}");
            let mut gone = cache.clone();
            assert!(gone.remove(&t(), &name), "{put} {name}");
            assert!(gone.previous(&t(), &name, at).is_some(), "{put} {name}");
            let status = Status::new(Code::Unavailable, "no");
            gone.set_error(&t(), put, status.clone());
            assert_eq!(gone.error(&t(), &name), Some(&status), "{put} {name}");
        }
        assert_eq!(cache.get(&t(), &OTHER.into()).state, State::Absent);
    }
}

#[test]
fn servers_and_watches_find_a_name_in_any_spelling() {
    let config = client::Config::new(Node::new("n"));
    let config = xds_machine::servers::Config::new(Policy::Grpc, [config.clone(), config])
        .with_default([ServerId(0)])
        .with_authority("a", [ServerId(1)]);
    let mut servers = Servers::<Delta>::new(config).expect("two servers");
    let mut watches = Watches::<Vec<u8>>::new(t());
    let watch = watches.watch(&mut servers, SPELLINGS[1]).expect("a name");
    for name in SPELLINGS {
        assert_eq!(servers.server_of(name), Some(ServerId(1)), "{name}");
        let of = servers.client(ServerId(1)).expect("the second server");
        assert!(of.resources(&t()).state(name).is_some(), "{name}");
    }
    assert_eq!(servers.states().map(|(server, ..)| server).collect::<Vec<_>>(), [ServerId(1)]);
    assert_eq!(servers.client(ServerId(2)), None);

    let errors = vec![client::Failed {
        name: SPELLINGS[2].into(),
        status: Status::new(Code::Unavailable, "no"),
        effect: client::Effect::Fails,
    }];
    let action = client::Action::Errors { type_url: t(), errors };
    assert_eq!(watches.handle_action(action, |_| Err("nothing to decode")), None);
    for name in SPELLINGS {
        assert_eq!(watches.error(name), Some(&Status::new(Code::Unavailable, "no")), "{name}");
        assert_eq!(watches.get(name), None);
    }
    watches.unwatch(&mut servers, watch);
    servers.resources_mut(&t()).subscribe([SPELLINGS[3]]).expect("a name");
    servers.resources_mut(&t()).unsubscribe([SPELLINGS[2]]);
    assert_eq!(servers.states().count(), 0);
}

#[test]
fn pausing_a_type_pauses_it_on_all_servers() {
    let config = client::Config::new(Node::new("n"));
    let config = xds_machine::servers::Config::new(Policy::Grpc, [config.clone(), config]);
    let mut servers = Servers::<Delta>::new(config).expect("two servers");
    let (of, t) = ([ServerId(0), ServerId(1)], &t());
    let paused =
        |servers: &Servers<Delta>| of.map(|id| servers.client(id).is_some_and(|of| of.resources(t).is_paused()));
    servers.resources_mut(t).pause();
    assert_eq!(paused(&servers), [true; 2]);
    assert_eq!(servers.resources_mut(t).resume(), Ok(()));
    assert_eq!(paused(&servers), [false; 2]);
    let refused = servers.resources_mut(t).resume().map_err(|misuse| misuse.to_string());
    assert_eq!(refused, Err("type.googleapis.com/T is not paused".into()));
}

/// The conversions into a name, and the types that a name can be compared with.
#[test]
fn conversions_of_names() {
    let name = ResourceName::from(SPELLINGS[1]);
    assert_eq!(ResourceName::from(Cow::from(SPELLINGS[2])), name);
    assert_eq!(ResourceName::from(Cow::from(String::from(SPELLINGS[2]))), name);
    assert_eq!(ResourceName::from(Arc::<str>::from(SPELLINGS[3])), name);
    assert_eq!(ResourceName::from(&name), name);
    assert!(ResourceName::from(&name).shares_with(&name));
    let shared = Arc::<str>::from("a");
    let name = ResourceName::from(shared.clone());
    assert!(std::ptr::eq(name.as_str(), &*shared), "nothing is copied");
    let a = "a";
    assert_eq!([a == name, *a == name, name == a, name == *a], [true; 4]);
    let b = "b";
    assert_eq!([b == name, *b == name], [false; 2]);

    let long = Arc::<str>::from("a version that is longer than what has room in place");
    assert!(std::ptr::eq(Version::from(long.clone()).as_str(), &*long));
    assert!(std::ptr::eq(Nonce::from(long.clone()).as_str(), &*long));
    assert_eq!((Version::from(shared.clone()), Nonce::from(shared)), ("a".into(), "a".into()));
    let known = TypeUrl::from(Arc::<str>::from(type_url::CLUSTER));
    assert_eq!((known, TypeUrl::from(long.clone()).as_str()), (type_url::CLUSTER.into(), &*long));

    let uri: Uri<'static> = SPELLINGS[2].parse().expect("a name");
    assert_eq!(uri, Uri::parse(SPELLINGS[0]).expect("a name"));
    assert_eq!(ResourceName::from(uri.clone()), SPELLINGS[0]);
    let (alt, entry) = ("xdstp://b/T/y", "xdstp://a/T/x#alt=xdstp://b/T/y,entry=z");
    let uri = Uri::parse(entry).expect("a locator").into_owned();
    assert_eq!((uri.alternative(), uri.entry()), (Some(alt), Some("z")));
    assert_eq!(
        "a".parse::<Uri<'_>>().map_err(|error| error.to_string()),
        Err("a structured name begins with xdstp://".into())
    );
}

/// The status with which a driver closes a stream.
#[test]
fn conversions_of_errors() {
    for number in -1..20 {
        match Code::try_from(number) {
            Ok(code) => assert_eq!(code.number(), number),
            Err(unknown) => {
                assert_eq!(unknown.to_string(), format!("{number} is no status code that the machines use"));
            }
        }
    }
    let known = [Code::InvalidArgument, Code::NotFound, Code::PermissionDenied, Code::ResourceExhausted];
    let known = known.into_iter().chain([Code::Internal, Code::Unavailable]);
    assert!(known.clone().all(|code| Code::try_from(code.number()) == Ok(code)));
    assert_eq!((known.count(), Code::Internal.to_string()), (6, "INTERNAL".into()));
    let status = |error: Error| Status::from(error).to_string();
    let peer = PeerMisbehaved::TooManyTypes { limit: 1 };
    assert_eq!(Status::from(peer.clone()).to_string(), "8: more than 1 resource types on one stream");
    assert_eq!(status(peer.into()), "8: more than 1 resource types on one stream");
    assert_eq!(status(Misuse::NoStream.into()), "13: internal error");
    let error = xds_machine::proto::delta::decode_request((&[0xff][..]).into()).expect_err("no message");
    assert_eq!(Status::from(error.clone()), Status::new(Code::InvalidArgument, error.to_string()));
}

#[test]
fn settings_and_states_are_displayed_by_their_names() {
    use ResourceStatus::{Acked, DoesNotExist, Nacked, ReceivedError, Requested, TimedOut};
    let states = [Requested, DoesNotExist, Acked, Nacked, ReceivedError, TimedOut].map(|state| state.to_string());
    assert_eq!(states, ["REQUESTED", "DOES_NOT_EXIST", "ACKED", "NACKED", "RECEIVED_ERROR", "TIMEOUT"]);
    let clients = [client::Dialect::Spec, client::Dialect::Envoy, client::Dialect::Grpc, client::Dialect::Istio];
    assert_eq!(clients.map(|dialect| dialect.to_string()), ["spec", "envoy", "grpc", "istio"]);
    let servers = [server::Dialect::Spec, server::Dialect::Istio, server::Dialect::GoControlPlane];
    assert_eq!(servers.map(|dialect| dialect.to_string()), ["spec", "istio", "go-control-plane"]);
    assert_eq!([Policy::Grpc, Policy::Envoy].map(|policy| policy.to_string()), ["grpc", "envoy"]);
}

/// The action of an ACK or NACK has the revision of its response: a caller sees whether a client has taken a change.
#[test]
fn the_action_of_an_ack_or_nack_has_the_revision_of_its_response() {
    let mut cache = Cache::new(1);
    let mut server = Server::<Delta>::new(server::Config::ads(), StreamId(1));
    let wants = delta::Request { subscribe: vec!["*".into()], ..delta::Request::new(t()) };
    server.handle_request(NOW, wants).expect("a request");
    for (name, error) in [("a", None), ("b", Some(Status::new(Code::InvalidArgument, "no"))), ("c", None)] {
        cache.insert(&t(), Resource::new(name, vec![1]));
        let response = server.poll_transmit(NOW, &cache).expect("a push");
        assert_eq!(response.revision(), cache.revision(), "{name}");
        let answer =
            delta::Request { nonce: response.nonce().clone(), error: error.clone(), ..delta::Request::new(t()) };
        while server.poll_action().is_some() {}
        // A change meanwhile is no part of that revision.
        cache.insert(&t(), Resource::new("other", name.as_bytes().to_vec()));
        server.handle_request(NOW, answer).expect("an answer");
        match server.poll_action().expect("an answer") {
            server::Action::Ack { revision, .. } if error.is_none() => assert_eq!(revision, response.revision()),
            server::Action::Nack { revision, .. } if error.is_some() => assert_eq!(revision, response.revision()),
            other => panic!("{other:?}"),
        }
        let rest = server.poll_transmit(NOW, &cache).expect("a push");
        assert_eq!(rest.revision(), cache.revision());
        let answer = delta::Request { nonce: rest.nonce().clone(), ..delta::Request::new(t()) };
        server.handle_request(NOW, answer).expect("an answer");
    }
}

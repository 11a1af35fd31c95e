//! A name is parsed where it comes in, so that every look-up finds what any other finds, whatever the spelling.

use std::sync::Arc;

use xds_machine::client::{self, Client, ResourceStatus};
use xds_machine::message::{Node, delta};
use xds_machine::server::{Cache, Resource, Server, Source, State, StreamId};
use xds_machine::servers::{Policy, ServerId, Servers};
use xds_machine::watch::Watches;
use xds_machine::{Code, Delta, Instant, ResourceName, Status, TypeUrl};

const NOW: Instant = Instant::EPOCH;

/// One name, in its normal form first.
const SPELLINGS: [&str; 4] =
    ["xdstp://a/T/x?a=1&b=2", "xdstp://a/T/x?b=2&a=1", "xdstp://a/T/x?b=%32&a=1", "xdstp://%61/T/x?&b=2&&a=1"];
const OTHER: &str = "xdstp://a/T/x?a=1&b=3";

fn t() -> TypeUrl {
    "type.googleapis.com/T".into()
}

fn client() -> Client<Delta> {
    Client::new(client::Config::new(Node::new("n")))
}

/// A client that has one resource, the name of which is `name`.
fn with_resource(name: &str) -> Client<Delta> {
    let mut client = client();
    client.resources_mut(&t()).subscribe([name]).expect("a name");
    client.handle_open();
    client.poll_transmit().expect("a request");
    let mut cache = Cache::new(1);
    cache.insert(&t(), Resource::new(name, vec![1]).with_aliases(["alias"]));
    let mut server = Server::<Delta>::new(xds_machine::server::Config::ads(), StreamId(1));
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

/// Each way to give the same names, and what has to come of it.
#[test]
fn what_takes_a_name_takes_each_kind_of_string() {
    let name = ResourceName::from(SPELLINGS[1]);
    let wanted = |client: &Client<Delta>| client.resources(&t()).interest().names().cloned().collect::<Vec<_>>();
    let mut client = client();
    let mut check = |commands: [&dyn Fn(&mut Client<Delta>); 2]| {
        commands[0](&mut client);
        assert_eq!(wanted(&client), [SPELLINGS[0]]);
        commands[1](&mut client);
        assert_eq!(wanted(&client), [""; 0]);
    };
    let (string, shared, t) = (String::from(SPELLINGS[2]), Arc::<str>::from(SPELLINGS[3]), &t());
    check([&|client| client.resources_mut(t).subscribe(SPELLINGS).expect("names"), &|client| {
        client.resources_mut(t).unsubscribe([SPELLINGS[3]])
    }]);
    check([&|client| client.resources_mut(t).subscribe([&name]).expect("a name"), &|client| {
        client.resources_mut(t).unsubscribe([&name])
    }]);
    check([&|client| client.resources_mut(t).subscribe([name.clone()]).expect("a name"), &|client| {
        client.resources_mut(t).unsubscribe([name.clone()])
    }]);
    check([&|client| client.resources_mut(t).subscribe([&string]).expect("a name"), &|client| {
        client.resources_mut(t).unsubscribe([string.clone()])
    }]);
    check([&|client| client.resources_mut(t).subscribe([shared.clone()]).expect("a name"), &|client| {
        client.resources_mut(t).unsubscribe([shared.clone()])
    }]);
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
            lost.layer_mut(&t()).take_for_missing([name]);
            assert!(SPELLINGS.iter().all(|&name| lost.layer(&t()).is_missing(name)), "{asked} {name}");
            lost.layer_mut(&t()).adopt([(name, None)]);
            assert_eq!(lost.layer(&t()).held().count(), 1, "{asked} {name}");

            let mut again = client.clone();
            again.poll_transmit().expect("an ACK");
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
            assert!(gone.was(&t(), &name, at).is_some(), "{put} {name}");
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
fn servers_hold_back_a_type_together() {
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

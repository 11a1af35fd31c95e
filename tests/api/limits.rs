//! Every limit, exactly: input at the limit is accepted, one more is refused, and the error states the excess.

use bytes::Bytes;
use xds_machine::client::{self, Action, Client};
use xds_machine::message::{Any, Node, Resource, ResourceError, delta, sotw};
use xds_machine::resource_type::{ResourceType, TypeRegistry};
use xds_machine::server::{self, Cache, Server, StreamId};
use xds_machine::{
    Code, Delta, Error, Instant, Misuse, Nonce, PeerMisbehaved, ResourceName, Sotw, Status, TypeUrl, Version, type_url,
};

const NOW: Instant = Instant::EPOCH;

fn names(count: usize) -> Vec<ResourceName> {
    (0..count).map(|number| ResourceName::from(format!("n{number}"))).collect()
}

fn request(type_url: &str, subscribe: Vec<ResourceName>) -> delta::Request {
    delta::Request { subscribe, ..delta::Request::new(type_url) }
}

/// Subscribes to some names, and unsubscribes others.
fn asks(type_url: &str, wanted: &[&str], gone: &[&str]) -> delta::Request {
    let names = |names: &[&str]| names.iter().map(|&name| ResourceName::from(name)).collect();
    delta::Request { unsubscribe: names(gone), ..request(type_url, names(wanted)) }
}

fn server(limits: server::Limits) -> Server<Delta> {
    Server::new(server::Config::ads().with_limits(limits), StreamId(1))
}

/// Returns the server's result for the last of the requests; the others are accepted.
fn last(limits: server::Limits, requests: impl IntoIterator<Item = delta::Request>) -> Result<(), Error> {
    let (mut server, mut last) = (server(limits), Ok(()));
    for request in requests {
        assert_eq!(last, Ok(()));
        last = server.handle_request(NOW, request);
    }
    last
}

fn refused(error: PeerMisbehaved) -> Result<(), Error> {
    Err(Error::Peer(error))
}

#[test]
fn names_beyond_the_limit_of_a_type_are_refused() {
    let limits = || server::Limits { names_per_type: 2, ..server::Limits::default() };
    assert_eq!(last(limits(), [request("t", names(2))]), Ok(()));
    let too_many = PeerMisbehaved::TooManyNames { type_url: "t".into(), count: 3, limit: 2 };
    assert_eq!(last(limits(), [request("t", names(3))]), refused(too_many.clone()));
    assert_eq!(last(limits(), [request("t", names(2)), request("t", vec!["other".into()])]), refused(too_many));
    assert_eq!(last(limits(), [request("t", names(2)), request("u", names(2))]), Ok(()), "each type by itself");
}

#[test]
fn names_beyond_the_limit_of_a_stream_are_refused() {
    let limits = || server::Limits { names_per_stream: 3, ..server::Limits::default() };
    assert_eq!(last(limits(), [request("t", names(2)), request("u", names(1))]), Ok(()));
    let too_many = PeerMisbehaved::TooManyNamesOnStream { count: 4, limit: 3 };
    assert_eq!(last(limits(), [request("t", names(2)), request("u", names(2))]), refused(too_many));
    assert_eq!(last(limits(), [request("t", names(2)), request("t", names(3))]), Ok(()), "a name counts once");
}

#[test]
fn name_bytes_beyond_the_limits_are_refused() {
    let limits = |name_bytes_per_stream| server::Limits { name_bytes_per_stream, ..server::Limits::default() };
    let requests = || [request("t", names(2)), request("u", names(1))];
    assert_eq!(last(limits(6), requests()), Ok(()));
    assert_eq!(last(limits(5), requests()), refused(PeerMisbehaved::TooManyNameBytes { len: 6, limit: 5 }));
    let one = |name_bytes| server::Limits { name_bytes, ..server::Limits::default() };
    assert_eq!(last(one(2), [request("t", names(1))]), Ok(()));
    let too_long = PeerMisbehaved::NameTooLong { type_url: "t".into(), len: 2, limit: 1 };
    assert_eq!(last(one(1), [request("t", names(1))]), refused(too_long));
}

#[test]
fn types_and_type_urls_beyond_the_limits_are_refused() {
    let limits = || server::Limits { types: 2, type_url_bytes: 4, ..server::Limits::default() };
    let all = |types: &[&str]| types.iter().map(|url| request(url, names(1))).collect::<Vec<_>>();
    assert_eq!(last(limits(), all(&["aaaa", "b", "aaaa"])), Ok(()));
    assert_eq!(last(limits(), all(&["a", "b", "c"])), refused(PeerMisbehaved::TooManyTypes { limit: 2 }));
    assert_eq!(last(limits(), all(&["aaaaa"])), refused(PeerMisbehaved::TypeUrlTooLong { len: 5, limit: 4 }));
}

/// Each name has two bytes, and each version three.
#[test]
fn initial_versions_beyond_the_limits_are_refused() {
    let had = |type_url, count| delta::Request {
        initial_versions: names(count).into_iter().map(|name| (name, "abc")).collect(),
        ..request(type_url, vec!["*".into()])
    };
    let bytes = |name_bytes_per_stream| server::Limits { name_bytes_per_stream, ..server::Limits::default() };
    assert_eq!(last(bytes(10), [had("t", 2)]), Ok(()));
    let too_much = |len, limit| refused(PeerMisbehaved::TooManyInitialVersionBytes { len, limit });
    assert_eq!(last(bytes(9), [had("t", 2)]), too_much(10, 9));
    assert_eq!(last(bytes(15), [had("t", 2), had("u", 1)]), Ok(()));
    assert_eq!(last(bytes(14), [had("t", 2), had("u", 1)]), too_much(15, 14));
    assert_eq!(last(bytes(10), [had("t", 2), had("t", 2)]), Ok(()), "only the first request of a type has any");

    let count = |initial_versions| server::Limits { initial_versions, ..server::Limits::default() };
    assert_eq!(last(count(2), [had("t", 2)]), Ok(()));
    let too_many = PeerMisbehaved::TooManyInitialVersions { type_url: "t".into(), count: 2, limit: 1 };
    assert_eq!(last(count(1), [had("t", 2)]), refused(too_many));
    let had_one = |name: &str| delta::Request { initial_versions: [(name, "a")].into(), ..had("t", 0) };
    let one = |name_bytes| server::Limits { name_bytes, ..server::Limits::default() };
    assert_eq!(last(one(2), [had_one("ab")]), Ok(()));
    let too_long = PeerMisbehaved::NameTooLong { type_url: "t".into(), len: 2, limit: 1 };
    assert_eq!(last(one(1), [had_one("ab")]), refused(too_long));
    assert_eq!(last(one(2), [had_one("")]), refused(PeerMisbehaved::EmptyName { type_url: "t".into() }));
    let length = |version_bytes| server::Limits { version_bytes, ..server::Limits::default() };
    assert_eq!(last(length(3), [had("t", 1)]), Ok(()));
    let too_long = PeerMisbehaved::VersionTooLong { type_url: "t".into(), len: 3, limit: 2 };
    assert_eq!(last(length(2), [had("t", 1)]), refused(too_long));
}

#[test]
fn a_server_refuses_requests_beyond_the_limit_of_waiting_actions() {
    let limits = |waiting_actions| server::Limits { waiting_actions, ..server::Limits::default() };
    let requests = || [request("t", names(1)), request("u", names(1))];
    assert_eq!(last(limits(2), requests()), Ok(()));
    assert_eq!(last(limits(1), requests()), Err(Error::Caller(Misuse::ActionsWaiting { limit: 1 })));
    // Zero would refuse each request.
    assert_eq!(last(limits(0), requests()), Err(Error::Caller(Misuse::ActionsWaiting { limit: 1 })));
    assert_eq!(last(limits(0), [request("t", names(1))]), Ok(()));
}

/// Consecutive stale requests of one type and for one reason are one action, which has the last nonce; a nonce of more
/// than 64 bytes is not kept.
#[test]
fn stale_requests_are_merged_into_one_action_and_close_the_stream_beyond_the_limit() {
    let stale = |type_url, nonce: &str| delta::Request {
        nonce: nonce.into(),
        error: Some(Status { code: 3, message: "no".into() }),
        ..request(type_url, Vec::new())
    };
    let mut server = server(server::Limits { stale_requests: 3, ..server::Limits::default() });
    let mut hear = |request| server.handle_request(NOW, request).map(|()| server.poll_action());
    for type_url in ["t", "u"] {
        assert!(matches!(hear(request(type_url, names(1))), Ok(Some(server::Action::Subscribed { .. }))));
    }
    let mut hear = |request| server.handle_request(NOW, request).expect("it is taken");
    let long = "n".repeat(64);
    hear(stale("t", "1"));
    hear(stale("t", &long));
    hear(stale("u", &(long.clone() + "n")));
    hear(stale("u", ""));
    hear(stale("u", "2"));
    let dropped = |type_url: &str, nonce: &str, reason, count| server::Action::DropStale {
        type_url: type_url.into(),
        nonce: nonce.into(),
        reason,
        count,
        error: Some(Status { code: 3, message: "no".into() }),
    };
    let (other, none) = (server::DropReason::OtherNonce, server::DropReason::NoNonce);
    let actions: Vec<_> = std::iter::from_fn(|| server.poll_action()).collect();
    let expected = [
        dropped("t", &long, other, 2),
        dropped("u", "", other, 1),
        dropped("u", "", none, 1),
        dropped("u", "2", other, 1),
    ];
    assert_eq!(actions, expected);
    server.handle_request(NOW, stale("t", "3")).expect("the third of its type in a row is taken");
    assert!(matches!(server.poll_action(), Some(server::Action::DropStale { count: 1, .. })));
    assert_eq!(server.poll_action(), None);
    // A request that is no ACK or NACK ends the row.
    let mut other = server.clone();
    other.handle_request(NOW, request("t", names(1))).expect("a request");
    for nonce in ["4", "5", "6"] {
        other.handle_request(NOW, stale("t", nonce)).expect("the third in a row is taken");
    }
    let closes = |server: &mut Server<Delta>| {
        std::iter::from_fn(|| server.poll_action()).any(|action| matches!(action, server::Action::Close(_)))
    };
    assert!(!closes(&mut other));
    other.handle_request(NOW, stale("t", "7")).expect("the fourth closes the stream");
    assert!(closes(&mut other));
    server.handle_request(NOW, stale("t", "4")).expect("the fourth closes the stream");
    assert!(matches!(server.poll_action(), Some(server::Action::DropStale { count: 1, .. })));
    assert!(matches!(server.poll_action(), Some(server::Action::Close(Status { code: 8, .. }))));
}

/// The client's subscriptions are reported when they change, and only then.
#[test]
fn subscriptions_are_reported_only_when_they_change() {
    let mut server = server(server::Limits::default());
    let mut told = |request| {
        server.handle_request(NOW, request).expect("a request");
        let action = server.poll_action();
        assert_eq!(server.poll_action(), None);
        action
    };
    let subscribed = |added: &[&str], removed: &[&str], wildcard| {
        let names = |names: &[&str]| names.iter().map(|&name| name.into()).collect();
        let (added, removed) = (names(added), names(removed));
        Some(server::Action::Subscribed { type_url: "t".into(), added, removed, wildcard })
    };
    let of = |subscribe: &[&str], unsubscribe: &[&str]| delta::Request {
        unsubscribe: unsubscribe.iter().map(|&name| name.into()).collect(),
        ..request("t", subscribe.iter().map(|&name| name.into()).collect())
    };
    assert_eq!(told(of(&["a"], &[])), subscribed(&["a"], &[], false), "the first");
    assert_eq!(told(of(&["a"], &[])), None, "nothing new");
    assert_eq!(told(of(&["b"], &[])), subscribed(&["b"], &[], false), "a name more");
    assert_eq!(told(of(&[], &["a"])), subscribed(&[], &["a"], false), "a name less");
    assert_eq!(told(of(&["*"], &[])), subscribed(&[], &[], true), "the wildcard");
    assert_eq!(told(of(&[], &["*"])), subscribed(&[], &[], false), "and not");
    assert_eq!(told(of(&[], &["a"])), None);
}

fn client(limits: client::Limits) -> Client<Sotw> {
    let mut client = Client::new(client::Config::new(Node::new("n")).with_limits(limits));
    client.resources_mut(&"t".into()).subscribe(["a"]).expect("a name");
    client.handle_open();
    assert!(client.poll_transmit().is_some());
    client
}

fn response(type_url: &str, version: &str, nonce: &str, count: usize) -> sotw::Response {
    let item = |name| sotw::Item::Wrapped(Box::new(resource(name, "")));
    sotw::Response {
        version: version.into(),
        resources: names(count).into_iter().map(item).collect(),
        type_url: type_url.into(),
        nonce: nonce.into(),
        control_plane: String::new(),
        errors: Vec::new(),
    }
}

#[test]
fn a_nonce_longer_than_the_limit_is_refused() {
    let limits = |nonce_bytes| client::Limits { nonce_bytes, ..client::Limits::default() };
    let heard = |limit| client(limits(limit)).handle_response(NOW, response("t", "1", "123", 0));
    assert_eq!(heard(3), Ok(()));
    assert_eq!(heard(2), refused(PeerMisbehaved::NonceTooLong { type_url: "t".into(), len: 3, limit: 2 }));
}

/// Consecutive unrequested responses are one action.
#[test]
fn consecutive_unrequested_responses_are_one_action() {
    let mut client = client(client::Limits { waiting_actions: 2, ..client::Limits::default() });
    let mut hear = |type_url, nonce| client.handle_response(NOW, response(type_url, "1", nonce, 0));
    assert_eq!(hear("u", "1"), Ok(()));
    assert_eq!(hear("u", "2"), Ok(()));
    assert_eq!(hear("v", "3"), Ok(()));
    assert_eq!(hear("v", "4"), Err(Error::Caller(Misuse::ActionsWaiting { limit: 2 })));
    let dropped = |type_url: &str, nonce: &str, count| Action::DropStale {
        type_url: TypeUrl::from(type_url),
        nonce: Nonce::from(nonce),
        reason: client::DropReason::NotAsked,
        count,
    };
    let actions: Vec<_> = std::iter::from_fn(|| client.poll_action()).collect();
    assert_eq!(actions, [dropped("u", "2", 2), dropped("v", "3", 1)]);
}

/// While the maximum number of actions waits, the stream is not read, and existence time-outs stand still.
#[test]
fn a_client_at_its_limit_of_actions_refuses_responses_and_suspends_timeouts() {
    let mut client = client(client::Limits { waiting_actions: 1, ..client::Limits::default() });
    client.resources_mut(&"t".into()).subscribe(["b"]).expect("a name");
    let sent = client.poll_transmit().expect("a request").sent;
    client.handle_sent(NOW, sent);
    let due = client.poll_timeout().expect("an existence time-out");
    client.handle_response(NOW, response("u", "1", "1", 0)).expect("a response");
    assert!(!client.resources(&"t".into()).is_paused());
    client.resources_mut(&"t".into()).pause();
    assert!(client.resources(&"t".into()).is_paused());
    client.resources_mut(&"t".into()).resume().expect("it is paused");
    assert!(!client.resources(&"t".into()).is_paused());
    let verdict = client.handle_response(NOW, response("t", "1", "2", 1));
    assert_eq!(verdict, Err(Error::Caller(Misuse::ActionsWaiting { limit: 1 })));
    assert!(!client.wants_response());
    client.handle_timeout(due);
    assert_eq!(client.poll_timeout(), None);
    assert!(matches!(client.poll_action(), Some(Action::DropStale { .. })));
    assert_eq!(client.poll_action(), None);
    assert!(client.wants_response());
    assert_eq!(client.poll_timeout(), Some(NOW), "time goes on with the next call that has the time");
    client.handle_timeout(due);
    let later = client.poll_timeout().expect("an existence time-out");
    assert_eq!(later.saturating_since(due), due.saturating_since(NOW), "all the time is left");
    client.handle_timeout(later);
    assert_eq!(client.poll_timeout(), None);
    assert!(matches!(client.poll_action(), Some(Action::DoesNotExist { .. })));
    assert_eq!(client.handle_response(NOW, response("t", "1", "2", 1)), Ok(()));
}

/// Returns the faults that the client finds in a response.
fn faults<V: client::Variant>(client: &mut Client<V>) -> Vec<String> {
    let action = std::iter::from_fn(|| client.poll_action()).find_map(|action| match action {
        Action::Rejected { faults, .. } => Some(faults),
        _ => None,
    });
    action.into_iter().flatten().map(|fault| fault.reason.to_string()).collect()
}

fn resource(name: ResourceName, version: &str) -> Resource {
    Resource {
        name,
        version: version.into(),
        body: Some(Any { type_url: "t".into(), value: Bytes::new() }),
        ttl: None,
        aliases: Vec::new(),
    }
}

fn errors(count: usize) -> Vec<ResourceError> {
    let error = |name| ResourceError { name, status: Some(Status { code: 14, message: "no".into() }) };
    names(count).into_iter().map(error).collect()
}

#[test]
fn a_response_with_resources_beyond_the_limit_is_rejected() {
    let limits = || client::Limits { resources_per_response: 3, ..client::Limits::default() };
    let sotw = |resources, failed| {
        let mut client = client(limits());
        let response = sotw::Response { errors: errors(failed), ..response("t", "1", "1", resources) };
        client.handle_response(NOW, response).expect("a response");
        faults(&mut client)
    };
    assert_eq!(sotw(2, 1), [""; 0]);
    assert_eq!(sotw(3, 2), ["5 resources in the response, limit 3"]);
    let delta = |resources, removed, failed| {
        let mut client = Client::<Delta>::new(client::Config::new(Node::new("n")).with_limits(limits()));
        client.resources_mut(&"t".into()).subscribe(["*"]).expect("a name");
        client.handle_open();
        assert!(client.poll_transmit().is_some());
        let response = delta::Response {
            system_version: Version::default(),
            resources: names(resources).into_iter().map(|name| resource(name, "1")).collect(),
            removed: names(resources + removed).split_off(resources),
            type_url: "t".into(),
            nonce: "1".into(),
            control_plane: String::new(),
            errors: errors(failed),
        };
        client.handle_response(NOW, response).expect("a response");
        faults(&mut client)
    };
    assert_eq!(delta(1, 1, 1), [""; 0]);
    assert_eq!(delta(3, 1, 1), ["5 resources in the response, limit 3"]);
    assert_eq!(delta(1, 3, 1), ["5 resources in the response, limit 3"]);
    assert_eq!(delta(1, 1, 3), ["5 resources in the response, limit 3"]);
}

#[test]
fn a_version_longer_than_the_limit_is_rejected() {
    let limits = || client::Limits { version_bytes: 3, ..client::Limits::default() };
    let sotw = |version| {
        let mut client = client(limits());
        client.handle_response(NOW, response("t", version, "1", 1)).expect("a response");
        faults(&mut client)
    };
    assert_eq!(sotw("123"), [""; 0]);
    assert_eq!(sotw("12345"), ["version of 5 bytes, limit 3"]);
    let delta = |version| {
        let mut client = Client::<Delta>::new(client::Config::new(Node::new("n")).with_limits(limits()));
        client.resources_mut(&"t".into()).subscribe(["n0"]).expect("a name");
        client.handle_open();
        assert!(client.poll_transmit().is_some());
        let response = delta::Response {
            system_version: Version::default(),
            resources: vec![resource("n0".into(), version)],
            removed: Vec::new(),
            type_url: "t".into(),
            nonce: "1".into(),
            control_plane: String::new(),
            errors: Vec::new(),
        };
        client.handle_response(NOW, response).expect("a response");
        faults(&mut client)
    };
    assert_eq!(delta("123"), [""; 0]);
    assert_eq!(delta("12345"), ["version of 5 bytes, limit 3"]);
}

/// design rule 4: the client remembers unsubscribed names, so that a name that is subscribed again is announced in the
/// careful way: left out of one request, then listed in the next. With more of them than the limit, every new name is
/// announced this way.
#[test]
fn a_new_name_takes_two_requests_beyond_the_limit_of_unsubscribed_names() {
    let asked = |departed_names| {
        let mut client = client(client::Limits { departed_names, ..client::Limits::default() });
        let type_url = TypeUrl::from("t");
        let mut lists = Vec::new();
        client.resources_mut(&type_url).subscribe(["b", "c"]).expect("names");
        assert!(client.poll_transmit().is_some());
        for name in ["b", "c"] {
            client.resources_mut(&type_url).unsubscribe([name]);
            assert!(client.poll_transmit().is_some());
        }
        let mut response = response("t", "1", "1", 0);
        response.resources = vec![sotw::Item::Wrapped(Box::new(resource("a".into(), "")))];
        client.handle_response(NOW, response).expect("a response");
        client.resources_mut(&type_url).subscribe(["new"]).expect("a name");
        let Some(Action::Apply(update)) = client.poll_action() else { panic!("no update") };
        client.handle_verdict(NOW, update.accept()).expect("it is out");
        while let Some(transmit) = client.poll_transmit() {
            lists.push(transmit.request.names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
        }
        lists
    };
    assert_eq!(asked(2), ["a new"]);
    assert_eq!(asked(1), ["a", "a new"]);
}

/// With the wildcard, the limit counts the resources that are held and that arrive, but not those that are removed.
#[test]
fn wildcard_resources_beyond_the_limit_of_a_type_are_rejected() {
    let mut client = Client::<Delta>::new(
        client::Config::new(Node::new("n"))
            .with_limits(client::Limits { resources_per_type: 3, ..client::Limits::default() }),
    );
    client.resources_mut(&"t".into()).subscribe(["*"]).expect("a name");
    client.handle_open();
    assert!(client.poll_transmit().is_some());
    let mut hear = |resources: &[&str], removed: &[&str]| {
        let response = delta::Response {
            system_version: Version::default(),
            resources: resources.iter().map(|&name| resource(name.into(), "1")).collect(),
            removed: removed.iter().map(|&name| name.into()).collect(),
            type_url: "t".into(),
            nonce: "1".into(),
            control_plane: String::new(),
            errors: Vec::new(),
        };
        client.handle_response(NOW, response).expect("a response");
        let mut faults = Vec::new();
        while let Some(action) = client.poll_action() {
            match action {
                Action::Apply(update) => client.handle_verdict(NOW, update.accept()).expect("it is out"),
                Action::Rejected { faults: found, .. } => {
                    faults.extend(found.iter().map(|fault| fault.reason.to_string()))
                }
                _ => {}
            }
        }
        faults
    };
    assert_eq!(hear(&["a", "b"], &[]), [""; 0]);
    assert_eq!(hear(&["a", "c"], &[]), [""; 0]);
    assert_eq!(hear(&["d"], &[]), ["4 resources with the response, limit 3"]);
    assert_eq!(hear(&["d"], &["stranger"]), ["4 resources with the response, limit 3"]);
    assert_eq!(hear(&["d"], &["a"]), [""; 0]);
    assert_eq!(hear(&["a", "b", "c"], &[]), ["4 resources with the response, limit 3"]);
    assert_eq!(hear(&["b", "c", "d"], &[]), [""; 0]);
}

/// A client that subscribed by name receives all resources of these names, whatever the limit. A resource of a
/// full-state type that a response lacks is removed, and does not count.
#[test]
fn sotw_resources_beyond_the_limit_of_a_type_are_rejected_for_the_wildcard_only() {
    let play = |wanted: &[&str], full_state: bool, responses: &[&[&str]]| {
        let kind = if full_state { ResourceType::full_state("t") } else { ResourceType::partial("t") };
        let config = client::Config::new(Node::new("n"))
            .with_limits(client::Limits { resources_per_type: 3, ..client::Limits::default() })
            .with_types(TypeRegistry::new([kind]));
        let mut client = Client::<Sotw>::new(config);
        client.resources_mut(&"t".into()).subscribe(wanted.iter().copied()).expect("names");
        client.handle_open();
        assert!(client.poll_transmit().is_some());
        let mut found = Vec::new();
        for names in responses {
            let item = |&name: &&str| sotw::Item::Wrapped(Box::new(resource(name.into(), "")));
            let response = sotw::Response { resources: names.iter().map(item).collect(), ..response("t", "1", "1", 0) };
            client.handle_response(NOW, response).expect("a response");
            while let Some(action) = client.poll_action() {
                match action {
                    Action::Apply(update) => client.handle_verdict(NOW, update.accept()).expect("it is out"),
                    Action::Rejected { faults, .. } => {
                        found.extend(faults.iter().map(|fault| fault.reason.to_string()))
                    }
                    _ => {}
                }
            }
        }
        found
    };
    assert_eq!(play(&["a", "b", "c", "d"], false, &[&["a", "b"], &["c", "d"]]), [""; 0]);
    let too_many = ["4 resources with the response, limit 3"];
    assert_eq!(play(&["*"], false, &[&["a", "b"], &["c", "d"]]), too_many);
    assert_eq!(play(&["*"], true, &[&["a", "b"], &["c", "d", "e"]]), [""; 0]);
    assert_eq!(play(&["*"], true, &[&["a", "b"], &["b", "c", "d", "e"]]), too_many);
}

/// In SotW a list replaces the one before: unanswered names of the former list do not count.
#[test]
fn names_of_a_replaced_sotw_list_do_not_count_against_the_limit() {
    let limits = server::Limits { names_per_type: 2, ..server::Limits::default() };
    let mut server = Server::<Sotw>::new(server::Config::ads().with_limits(limits), StreamId(1));
    let list = |names: &[&str]| sotw::Request {
        names: names.iter().map(|&name| name.into()).collect(),
        ..sotw::Request::new("t")
    };
    assert_eq!(server.handle_request(NOW, list(&["a", "b"])), Ok(()));
    assert_eq!(server.handle_request(NOW, list(&["c", "d"])), Ok(()));
}

/// Errors of names that are neither subscribed nor held are remembered up to the limit; errors of subscribed or held
/// names all are.
#[test]
fn errors_of_names_neither_subscribed_nor_held_are_remembered_up_to_the_limit() {
    let limits = client::Limits { resources_per_response: 2, ..client::Limits::default() };
    let mut client = Client::<Delta>::new(client::Config::new(Node::new("n")).with_limits(limits));
    let type_url = TypeUrl::from("t");
    let wanted = ["*", "a", "b", "c"];
    client.resources_mut(&type_url).subscribe(wanted).expect("names");
    client.handle_open();
    assert!(client.poll_transmit().is_some());
    let hear = |client: &mut Client<Delta>, resources: &[&str], failed: &[&str]| {
        let error =
            |&name: &&str| ResourceError { name: name.into(), status: Some(Status { code: 14, message: "no".into() }) };
        let response = delta::Response {
            system_version: Version::default(),
            resources: resources.iter().map(|&name| resource(name.into(), "1")).collect(),
            removed: Vec::new(),
            type_url: type_url.clone(),
            nonce: "1".into(),
            control_plane: String::new(),
            errors: failed.iter().map(error).collect(),
        };
        client.handle_response(NOW, response).expect("a response");
        while let Some(action) = client.poll_action() {
            if let Action::Apply(update) = action {
                client.handle_verdict(NOW, update.accept()).expect("it is out");
            }
        }
    };
    let failing = |client: &Client<Delta>| {
        let failing = client.states().filter(|(.., state)| state.error.is_some());
        let mut names: Vec<String> = failing.map(|(_, name, _)| name.to_string()).collect();
        names.sort();
        names
    };
    hear(&mut client, &["b", "held"], &[]);
    for failed in [["a", "b"], ["c", "held"]] {
        hear(&mut client, &[], &failed);
    }
    assert_eq!(failing(&client), ["a", "b", "c", "held"]);
    hear(&mut client, &[], &["stranger"]);
    assert_eq!(failing(&client), ["a", "b", "c", "held"], "one too many");
    client.resources_mut(&type_url).unsubscribe(["a"]);
    assert_eq!(failing(&client), ["b", "c", "held"], "a stranger now");
    client.resources_mut(&type_url).unsubscribe(["b"]);
    assert_eq!(failing(&client), ["b", "c", "held"], "held");
    hear(&mut client, &["b", "held"], &[]);
    assert_eq!(failing(&client), ["c"]);
    client.resources_mut(&type_url).unsubscribe(["c"]);
    assert_eq!(failing(&client), ["c"], "a stranger, but there is room");
    for _ in 0..2 {
        hear(&mut client, &[], &["x", "y"]);
        assert_eq!(failing(&client), ["c", "x"]);
    }
    client.resources_mut(&type_url).subscribe(["x", "z"]).expect("names");
    assert!(client.poll_transmit().is_some());
    hear(&mut client, &[], &["x"]);
    client.resources_mut(&type_url).unsubscribe(["x"]);
    assert_eq!(failing(&client), ["c", "x"], "at the limit");
}

/// The same if the client wants no name in between. With a limit of zero, all unsubscribed names are forgotten.
#[test]
fn a_new_name_takes_two_requests_after_all_names_are_unsubscribed_beyond_the_limit() {
    let asked = |departed_names| {
        let mut client = client(client::Limits { departed_names, ..client::Limits::default() });
        let type_url = TypeUrl::from("t");
        client.resources_mut(&type_url).unsubscribe(["a"]);
        assert!(client.poll_transmit().is_some());
        client.handle_response(NOW, response("t", "1", "1", 0)).expect("a response");
        client.resources_mut(&type_url).subscribe(["b"]).expect("a name");
        let lists = std::iter::from_fn(|| client.poll_transmit()).map(|transmit| transmit.request.names);
        lists.map(|names| names.iter().map(ToString::to_string).collect()).collect::<Vec<Vec<_>>>()
    };
    assert_eq!(asked(1), [["b"]]);
    assert_eq!(asked(0), [vec![], vec!["b".to_string()]]);
}

/// The same in SotW: a list that equals the list before is not reported.
#[test]
fn sotw_subscriptions_are_reported_only_when_they_change() {
    let mut server = Server::<Sotw>::new(server::Config::ads(), StreamId(1));
    let mut told = |names: &[&str]| {
        let names = names.iter().map(|&name| name.into()).collect();
        server.handle_request(NOW, sotw::Request { names, ..sotw::Request::new("t") }).expect("a request");
        match server.poll_action() {
            Some(server::Action::Subscribed { added, removed, wildcard, .. }) => {
                Some((added.len(), removed.len(), wildcard))
            }
            _ => None,
        }
    };
    assert_eq!(told(&["a"]), Some((1, 0, false)));
    assert_eq!(told(&["a"]), None);
    assert_eq!(told(&["*", "a"]), Some((0, 0, true)));
    assert_eq!(told(&["*", "a"]), None);
    assert_eq!(told(&["a"]), Some((0, 0, false)));
}

/// An unsubscribed name makes room at once, even if the wildcard is subscribed and the answer to the name is still due.
/// Answers that are due to more names than the limit become the answer to the wildcard.
#[test]
fn an_unsubscribed_name_makes_room_under_the_limit_beside_the_wildcard() {
    let limits = server::Limits { names_per_type: 2, ..server::Limits::default() };
    let mut server = server(limits);
    let mut hear = |wanted: &[&str], gone: &[&str]| server.handle_request(NOW, asks("t", wanted, gone));
    assert_eq!(hear(&["*", "a"], &[]), Ok(()));
    assert_eq!(hear(&["b"], &[]), Ok(()));
    let too_many = PeerMisbehaved::TooManyNames { type_url: "t".into(), count: 3, limit: 2 };
    assert_eq!(hear(&["c"], &[]), refused(too_many));
    assert_eq!(hear(&["c"], &["a"]), Ok(()));
    let mut cache = Cache::new(1);
    cache.insert(&"t".into(), server::Resource::new("there", &b"1"[..]));
    for number in 0..100 {
        let (new, old) = (format!("{number}"), format!("{}", number - 1));
        server.handle_request(NOW, asks("t", &[&new], &[if number == 0 { "b" } else { &old }])).expect("as many names");
    }
    let response = server.poll_transmit(NOW, &cache).expect("everything");
    assert_eq!(response.resources().map(|resource| resource.name().to_string()).collect::<Vec<_>>(), ["there"]);
    assert!(response.removed().len() <= 4, "{:?}", response.removed());
}

/// Returns a stream on which clusters are in flight and changed again, so that listeners wait for them unless the
/// client asks for listeners; and the nonce in flight.
fn waiting(cache: &mut Cache, limits: server::Limits) -> (Server<Delta>, Nonce) {
    let mut server = server(limits);
    cache.insert(&type_url::CLUSTER.into(), server::Resource::new("c", &b"1"[..]));
    cache.insert(&type_url::LISTENER.into(), server::Resource::new("other", &b"1"[..]));
    for type_url in [type_url::CLUSTER, type_url::LISTENER] {
        server.handle_request(NOW, request(type_url, vec!["*".into()])).expect("a request");
        let nonce = server.poll_transmit(NOW, cache).expect("everything").nonce().clone();
        let acknowledged = delta::Request { nonce, ..delta::Request::new(type_url) };
        server.handle_request(NOW, acknowledged).expect("a request");
    }
    let mut change = |version: &'static str| {
        cache.insert(&type_url::CLUSTER.into(), server::Resource::new("c", version.as_bytes()));
        cache.insert(&type_url::LISTENER.into(), server::Resource::new("other", version.as_bytes()));
        server.poll_transmit(NOW, cache).map(|response| response.nonce().clone())
    };
    let nonce = change("2").expect("clusters");
    assert_eq!(change("3"), None);
    (server, nonce)
}

/// Subscribes to some listeners, unsubscribes others, and acknowledges the answer. Returns its number of resources and
/// removals.
fn ask(server: &mut Server<Delta>, cache: &Cache, wanted: &[&str], gone: &[&str]) -> Result<Option<usize>, Error> {
    server.handle_request(NOW, asks(type_url::LISTENER, wanted, gone))?;
    let Some(answer) = server.poll_transmit(NOW, cache) else { return Ok(None) };
    server
        .handle_request(NOW, delta::Request { nonce: answer.nonce().clone(), ..asks(type_url::LISTENER, &[], &[]) })?;
    Ok(Some(answer.resources().count() + answer.removed().len()))
}

/// The server remembers by name, up to the limit, the listeners that it sent ahead of those that wait for clusters.
/// Beyond the limit it forgets them, which costs repeats: no request is refused, and no change is lost.
#[test]
fn listeners_sent_ahead_are_remembered_up_to_the_limit_and_repeated_beyond_it() {
    let limits = || server::Limits { names_per_type: 2, ..server::Limits::default() };
    let mut cache = Cache::new(1);
    for name in ["a", "b", "c", "d"] {
        cache.insert(&type_url::LISTENER.into(), server::Resource::new(name, &b"1"[..]));
    }
    let pushed = |names: &[&str]| {
        let mut cache = cache.clone();
        let (mut server, mut nonce) = waiting(&mut cache, limits());
        for name in ["a", "b", "c", "d"] {
            let changed = server::Resource::new(name, &b"2"[..]);
            cache.insert(&type_url::LISTENER.into(), changed);
        }
        for name in names {
            assert_eq!(ask(&mut server, &cache, &[name], &[]), Ok(Some(1)), "{name} is answered");
            assert_eq!(ask(&mut server, &cache, &[], &[name]), Ok(Some(1)), "{name} is answered by the wildcard");
        }
        // Once the client has the clusters, the server sends the listeners that waited for them.
        for type_url in [type_url::CLUSTER, type_url::CLUSTER, type_url::LISTENER] {
            let acknowledged = delta::Request { nonce, ..delta::Request::new(type_url::CLUSTER) };
            server.handle_request(NOW, acknowledged).expect("an ACK");
            let response = server.poll_transmit(NOW, &cache).expect("what is new");
            if response.type_url() == type_url::LISTENER {
                return response.resources().map(|resource| resource.name().to_string()).collect::<Vec<_>>();
            }
            (nonce, _) = (response.nonce().clone(), type_url);
        }
        Vec::new()
    };
    assert_eq!(pushed(&[]), ["other", "a", "b", "c", "d"]);
    assert_eq!(pushed(&["a", "b"]), ["other", "c", "d"]);
    assert_eq!(pushed(&["a", "b", "c"]), ["other", "a", "b", "d"], "what is answered after that is remembered");
}

/// In SotW a server remembers up to a limit the unsubscribed names whose error it sent: with more of them it ends the
/// stream, because the client may keep the errors.
#[test]
fn sotw_unsubscribed_names_with_sent_errors_beyond_the_limit_close_the_stream() {
    let told = |limit| {
        let limits = server::Limits { names_per_type: limit, ..server::Limits::default() };
        let mut server = Server::<Sotw>::new(server::Config::ads().with_limits(limits), StreamId(1));
        let (mut cache, type_url) = (server::Cache::new(1), TypeUrl::from("t"));
        for name in ["a", "b", "c"] {
            cache.set_error(&type_url, name, Status { code: 14, message: "no".into() });
        }
        let mut nonce = Nonce::default();
        let mut ask = |cache: &server::Cache, name: &str| {
            let request = sotw::Request { names: vec![name.into()], nonce: nonce.clone(), ..sotw::Request::new("t") };
            server.handle_request(NOW, request).expect("a request");
            while server.poll_action().is_some() {}
            let Some(response) = server.poll_transmit(NOW, cache) else { return Err(server.poll_action()) };
            nonce = response.nonce().clone();
            let codes = response.errors().iter().map(|error| error.status.clone().map_or(0, |status| status.code));
            Ok(codes.collect::<Vec<_>>())
        };
        ask(&cache, "a")?;
        ask(&cache, "b")?;
        ask(&cache, "c")?;
        cache.remove(&type_url, "a");
        ask(&cache, "a")
    };
    assert_eq!(told(2), Ok(vec![5]), "it is gone");
    let status = Status {
        code: Code::ResourceExhausted.number(),
        message: "more than 1 unsubscribed names of t whose error was sent".into(),
    };
    assert_eq!(told(1), Err(Some(server::Action::Close(status))));
}

/// The same with the wildcard: a name that is no longer listed makes room.
#[test]
fn names_of_a_replaced_sotw_list_with_the_wildcard_do_not_count() {
    let limits = server::Limits { names_per_type: 3, ..server::Limits::default() };
    let mut server = Server::<Sotw>::new(server::Config::ads().with_limits(limits), StreamId(1));
    let list = |names: &[&str]| sotw::Request {
        names: names.iter().map(|&name| name.into()).collect(),
        ..sotw::Request::new("t")
    };
    assert_eq!(server.handle_request(NOW, list(&["*", "a", "b"])), Ok(()));
    assert_eq!(server.handle_request(NOW, list(&["*", "c", "d"])), Ok(()));
    let too_many = PeerMisbehaved::TooManyNames { type_url: "t".into(), count: 4, limit: 3 };
    assert_eq!(server.handle_request(NOW, list(&["*", "c", "d", "e", "f"])), refused(too_many));
}

/// The client remembers expired names as long as the stream lives, so that it claims no version whose resources it
/// lacks. It remembers as many names as it may hold.
#[test]
fn expired_names_remembered_up_to_the_limit_prevent_a_version_claim() {
    let claimed = |limit, again: &'static str| {
        let limits = client::Limits { resources_per_type: limit, ..client::Limits::default() };
        let mut client = Client::<Sotw>::new(client::Config::new(Node::new("n")).with_limits(limits));
        client.resources_mut(&"t".into()).subscribe(["*"]).expect("a name");
        client.handle_open();
        assert!(client.poll_transmit().is_some());
        for (name, ttl) in [("a", Some(1)), ("b", Some(1)), (again, None)] {
            let ttl = ttl.map(std::time::Duration::from_secs);
            let item = sotw::Item::Wrapped(Box::new(Resource { ttl, ..resource(name.into(), "") }));
            let response = sotw::Response { resources: vec![item], ..response("t", "1", "1", 0) };
            client.handle_response(NOW, response).expect("a response");
            let Some(Action::Apply(update)) = client.poll_action() else { panic!("no update") };
            client.handle_verdict(NOW, update.accept()).expect("it is out");
            while client.poll_transmit().is_some() {}
            if let Some(due) = client.poll_timeout() {
                client.handle_timeout(due);
                assert!(matches!(client.poll_action(), Some(Action::Expired { .. })));
            }
        }
        client.handle_close();
        client.handle_open();
        client.poll_transmit().expect("the first request").request.version
    };
    assert_eq!(claimed(2, "a"), "", "b expired");
    assert_eq!(claimed(1, "a"), "1", "so did b, which is not remembered");
    assert_eq!(claimed(1, "b"), "", "a did");
}

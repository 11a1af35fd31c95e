//! Several servers: the identity of their streams, and queries about them.

use xds_machine::client;
use xds_machine::message::{Any, Node, sotw};
use xds_machine::servers::{Action, Config, Connect, Policy, ServerId, Servers, Stream};
use xds_machine::{Error, Instant, Misuse, Nonce, Sotw, TypeUrl, type_url};

const NOW: Instant = Instant::EPOCH;

fn servers(count: usize) -> Servers<Sotw> {
    let config = Config::new(Policy::Grpc, vec![client::Config::new(Node::new("n")); count]);
    Servers::new(config.with_authority("known", [ServerId(count - 1)])).expect("a configuration")
}

fn endpoints() -> TypeUrl {
    type_url::ENDPOINT.into()
}

fn connect(servers: &mut Servers<Sotw>, now: Instant) -> Stream {
    match servers.poll_connect(now) {
        Some(Connect::Open(stream)) => stream,
        other => panic!("no stream to open, but {other:?}"),
    }
}

fn response(type_url: TypeUrl) -> sotw::Response {
    sotw::Response {
        version: "1".into(),
        resources: Vec::new(),
        type_url,
        nonce: Nonce::from("n"),
        control_plane: String::new(),
        errors: Vec::new(),
    }
}

/// Input of a stream that is closed, or not open yet, is ignored, and nothing is sent on it.
#[test]
fn a_stream_that_is_not_open_sends_nothing_and_its_input_is_ignored() {
    let mut servers = servers(1);
    servers.resources_mut(&endpoints()).subscribe(["a"]).expect("a name");
    assert_eq!(servers.poll_timeout(), Some(NOW));
    let old = connect(&mut servers, NOW);
    assert_eq!(servers.poll_timeout(), None, "the driver is at it");
    let asks = |servers: &mut Servers<Sotw>, stream| {
        let wants = (servers.wants_transmit(stream), servers.wants_response(stream));
        assert_eq!(servers.clone().poll_transmit(stream).is_some(), wants.0);
        wants
    };
    assert_eq!(asks(&mut servers, old), (false, false), "not up yet");
    servers.handle_open(old);
    assert_eq!(asks(&mut servers, old), (true, true));
    assert!(servers.poll_transmit(old).is_some());
    assert_eq!(asks(&mut servers, old), (false, true));
    servers.handle_close(NOW, old, 0);
    assert_eq!(asks(&mut servers, old), (false, false));

    let due = servers.poll_timeout().expect("the end of the backoff");
    assert!(due > NOW);
    let new = connect(&mut servers, due);
    servers.handle_open(old);
    assert_eq!(asks(&mut servers, new), (false, false), "another was");
    servers.handle_open(new);
    let before = servers.clone();
    assert_eq!(asks(&mut servers, old), (false, false));
    servers.handle_response(due, old, response(endpoints())).expect("it is ignored");
    servers.handle_close(due, old, 0);
    assert_eq!(servers, before);
    assert_eq!(asks(&mut servers, new), (true, true));
}

/// A server no longer in use is sent nothing, and reports nothing to the application, though its stream is still open.
#[test]
fn an_unused_server_receives_no_requests_and_reports_no_actions() {
    let mut servers = servers(1);
    servers.resources_mut(&endpoints()).subscribe(["a"]).expect("a name");
    let stream = connect(&mut servers, NOW);
    servers.handle_open(stream);
    assert!(servers.poll_transmit(stream).is_some());
    servers.resources_mut(&endpoints()).unsubscribe(["a"]);
    assert!(!servers.wants_transmit(stream));
    assert!(servers.poll_transmit(stream).is_none());
    servers.handle_response(NOW, stream, response(endpoints())).expect("it is answered");
    assert_eq!(servers.poll_action(), None);
    assert!(servers.poll_transmit(stream).is_none());
    assert_eq!(servers.poll_timeout(), None);
    assert_eq!(servers.poll_connect(NOW), Some(Connect::Close(stream)));
    assert_eq!(servers.poll_timeout(), None, "nothing is wanted");
}

#[test]
fn the_server_of_a_name_is_that_of_its_authority() {
    let servers = servers(2);
    assert_eq!(servers.server_of("a"), Some(ServerId(0)));
    assert_eq!(servers.server_of("xdstp://known/T/a"), Some(ServerId(1)));
    assert_eq!(servers.server_of("xdstp://nobody/T/a"), None);
}

/// Actions wait up to the limit, and no more; the streams are not read meanwhile, and existence time-outs stand still.
#[test]
fn responses_are_refused_and_time_stands_still_at_the_limit_of_waiting_actions() {
    let mut servers = servers(1);
    servers.resources_mut(&endpoints()).subscribe(["a"]).expect("a name");
    let stream = connect(&mut servers, NOW);
    servers.handle_open(stream);
    let sent = servers.poll_transmit(stream).expect("a request").sent;
    servers.handle_sent(NOW, stream, sent);
    let due = servers.poll_timeout().expect("an existence time-out");
    for number in 0..1024 {
        let unasked = TypeUrl::from(format!("type {number}"));
        assert_eq!(servers.handle_response(NOW, stream, response(unasked)), Ok(()));
    }
    let too_many = Misuse::ActionsWaiting { limit: 1024 };
    assert_eq!(servers.handle_response(NOW, stream, response(endpoints())), Err(Error::Caller(too_many)));
    assert!(!servers.wants_response(stream));
    servers.handle_timeout(due);
    assert_eq!(servers.poll_timeout(), None);
    assert!(servers.poll_action().is_some());
    assert!(servers.wants_response(stream));
    assert_eq!(servers.poll_timeout(), Some(NOW), "time goes on with the next call that has the time");
    servers.handle_timeout(due);
    assert_eq!(servers.poll_timeout(), Some(due + (due.saturating_since(NOW))));
}

/// A resource that the application received and accepted is held, whichever server sent it.
#[test]
fn an_accepted_resource_is_held_with_or_without_a_stream() {
    let mut servers = servers(1);
    servers.resources_mut(&endpoints()).subscribe(["a", "b"]).expect("names");
    let stream = connect(&mut servers, NOW);
    servers.handle_open(stream);
    assert!(servers.poll_transmit(stream).is_some());
    let a = sotw::Item::Bare(Any { type_url: endpoints(), value: b"\x0a\x01a"[..].into() });
    let response = sotw::Response { resources: vec![a], ..response(endpoints()) };
    servers.handle_response(NOW, stream, response).expect("a response");
    let held = |servers: &Servers<Sotw>| ["a", "b", "c"].map(|name| servers.is_held(&endpoints(), &name.into()));
    assert_eq!(held(&servers), [false; 3], "the verdict is pending");
    let update = std::iter::from_fn(|| servers.poll_action()).find_map(|action| match action {
        Action::Client { action: client::Action::Apply(update), .. } => Some(update),
        _ => None,
    });
    let update = update.expect("an update");
    servers.handle_verdict(NOW, update.accept()).expect("it is out");
    assert_eq!(held(&servers), [true, false, false]);
    servers.handle_close(NOW, stream, 0);
    assert_eq!(held(&servers), [true, false, false], "without a stream, too");
}

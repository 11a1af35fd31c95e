//! The watcher layer, with actions handed in one by one.

use bytes::Bytes;
use xds_machine::client::{Action, Client, Config, Effect, Failed, Rejection};
use xds_machine::message::{Any, Node, sotw};
use xds_machine::servers::{self, Connect, Policy, Servers};
use xds_machine::watch::{Event, News, Watches};
use xds_machine::{Code, Instant, Nonce, Sotw, Status, TypeUrl, client, type_url};

const NOW: Instant = Instant::EPOCH;
const TYPE: &str = type_url::ENDPOINT;

fn client() -> Client<Sotw> {
    Client::new(Config::new(Node::new("n")))
}

fn decode(resource: client::Resource<'_>) -> Result<usize, String> {
    Ok(resource.body().len())
}

fn failed(code: Code) -> News<usize> {
    News::Changed(Err(Status::new(code, "")))
}

/// Returns the name and the kind of news of an event, without the message text.
fn kind(event: Event<usize>) -> (String, News<usize>) {
    let bare = |status: Status| Status { message: String::new(), ..status };
    let news = match event.news {
        News::Changed(Err(status)) => News::Changed(Err(bare(status))),
        News::Ambient(status) => News::Ambient(status.map(bare)),
        other => other,
    };
    (event.name.to_string(), news)
}

fn missing(names: &[&str]) -> Action {
    Action::DoesNotExist { type_url: TYPE.into(), names: names.iter().map(|&name| name.into()).collect() }
}

/// Returns the actions about `a` and about the wildcard, each with the name and the news that a watcher receives.
fn actions(type_url: &str) -> Vec<(Action, &'static str, News<usize>)> {
    let type_url = TypeUrl::from(type_url);
    let error = Failed { name: "a".into(), status: Status::new(Code::Unavailable, "no"), effect: Effect::Fails };
    vec![
        (Action::Errors { type_url: type_url.clone(), errors: vec![error] }, "a", failed(Code::Unavailable)),
        (Action::DoesNotExist { type_url: type_url.clone(), names: vec!["a".into()] }, "a", failed(Code::NotFound)),
        (Action::Expired { type_url: type_url.clone(), names: vec!["a".into()] }, "a", failed(Code::NotFound)),
        (
            Action::Rejected {
                type_url: type_url.clone(),
                nonce: Nonce::from("1"),
                faults: vec![Rejection::new("a", "no")],
            },
            "a",
            failed(Code::InvalidArgument),
        ),
        (Action::Synced { type_url, answers_wildcard: true }, "*", News::Synced),
    ]
}

#[test]
fn an_action_of_another_type_is_given_back() {
    for (action, _, _) in actions("another") {
        let mut watches = Watches::<usize>::new(TYPE);
        watches.watch(&mut client(), "a").expect("a name");
        let before = watches.clone();
        assert_eq!(watches.handle_action(action.clone(), decode), Some(action));
        assert_eq!(watches, before);
    }
}

#[test]
fn an_action_of_the_type_is_reported_to_its_watcher() {
    for (action, name, news) in actions(TYPE) {
        let mut watches = Watches::<usize>::new(TYPE);
        watches.watch(&mut client(), name).expect("a name");
        assert_eq!(watches.error("a"), None);
        assert_eq!(watches.handle_action(action, decode), None);
        let error = watches.error("a").map(|error| error.code);
        assert_eq!(watches.poll_event().map(kind), Some((name.into(), news.clone())));
        assert_eq!(watches.poll_event(), None);
        assert_eq!(error, if let News::Changed(Err(status)) = news { Some(status.code) } else { None });
    }
}

#[test]
fn an_update_of_another_type_is_given_back() {
    let (mut client, mut watches) = (client(), Watches::<usize>::new("another"));
    client.resources_mut(&TYPE.into()).subscribe(["a"]).expect("a name");
    client.handle_open();
    assert!(client.poll_transmit().is_some());
    hear(&mut client);
    let action = client.poll_action().expect("an update");
    assert_eq!(watches.handle_action(action.clone(), decode), Some(action));
    assert_eq!(watches.poll_verdict(), None);
}

/// Returns a client that has an update with `a` for its watchers.
fn with_an_update(watches: &mut Watches<usize>) -> (Client<Sotw>, xds_machine::watch::WatchId) {
    let mut client = client();
    let watch = watches.watch(&mut client, "a").expect("a name");
    client.handle_open();
    assert!(client.poll_transmit().is_some());
    hear(&mut client);
    (client, watch)
}

fn hear(client: &mut Client<Sotw>) {
    let response = sotw::Response {
        version: "1".into(),
        resources: vec![sotw::Item::Bare(Any { type_url: TYPE.into(), value: Bytes::from_static(b"\x0a\x01a") })],
        type_url: TYPE.into(),
        nonce: "1".into(),
        control_plane: String::new(),
        errors: Vec::new(),
    };
    client.handle_response(NOW, response).expect("a response");
}

#[test]
fn an_equal_resource_is_not_reported_again() {
    let mut watches = Watches::<usize>::new(TYPE);
    let (mut client, _) = with_an_update(&mut watches);
    for told in [Some(("a".into(), News::Changed(Ok(3)))), None] {
        let action = client.poll_action().expect("an update");
        assert_eq!(watches.handle_action(action, decode), None);
        assert_eq!(watches.poll_event().map(kind), told);
        assert_eq!(watches.poll_event(), None);
        client.handle_verdict(NOW, watches.poll_verdict().expect("a verdict")).expect("it is out");
        hear(&mut client);
    }
}

#[test]
fn a_resource_that_is_no_longer_watched_is_not_decoded() {
    let mut watches = Watches::<usize>::new(TYPE);
    let (mut client, watch) = with_an_update(&mut watches);
    let action = client.poll_action().expect("an update");
    watches.unwatch(&mut client, watch);
    let decode = |_: client::Resource<'_>| -> Result<usize, String> { panic!("nobody watches it") };
    assert_eq!(watches.handle_action(action, decode), None);
    assert_eq!(watches.poll_event(), None);
    assert!(watches.poll_verdict().is_some());
}

/// A watcher that waits receives the status of the server. A watcher with an error receives no second error, and a
/// watcher without content no event when the server is reachable again.
#[test]
fn an_unreachable_server_is_not_reported_to_a_watcher_with_an_error() {
    let (mut client, mut watches) = (client(), Watches::<usize>::new(TYPE));
    watches.watch(&mut client, "a").expect("a name");
    watches.watch(&mut client, "b").expect("a name");
    watches.handle_action(missing(&["a"]), decode);
    assert_eq!(watches.poll_event().map(kind), Some(("a".into(), failed(Code::NotFound))));
    watches.handle_unreachable(Status::new(Code::Unavailable, "down"));
    assert_eq!(watches.poll_event().map(kind), Some(("b".into(), failed(Code::Unavailable))));
    assert_eq!(watches.poll_event(), None);
    watches.handle_reachable();
    assert_eq!(watches.poll_event(), None);
}

#[test]
fn poll_watch_returns_the_events_of_one_watcher() {
    let (mut client, mut watches) = (client(), Watches::<usize>::new(TYPE));
    let one = watches.watch(&mut client, "a").expect("a name");
    let two = watches.watch(&mut client, "a").expect("a name");
    watches.handle_action(missing(&["a"]), decode);
    let told = watches.poll_watch(two).expect("it does not exist");
    assert_eq!((told.watch, kind(told)), (two, ("a".into(), failed(Code::NotFound))));
    assert_eq!(watches.poll_watch(two), None);
    assert_eq!(watches.poll_event().map(|event| event.watch), Some(one));
    assert_eq!(watches.poll_event(), None);
}

/// Watched names are subscribed with several servers as with one.
#[test]
fn a_watched_name_is_subscribed_through_servers_until_it_is_unwatched() {
    let config = servers::Config::new(Policy::Grpc, [Config::new(Node::new("n"))]);
    let mut servers = Servers::<Sotw>::new(config).expect("a configuration");
    let mut watches = Watches::<usize>::new(TYPE);
    assert_eq!(servers.poll_connect(NOW), None);
    let watch = watches.watch(&mut servers, "a").expect("a name");
    let Some(Connect::Open(stream)) = servers.poll_connect(NOW) else { panic!("nothing is wanted") };
    watches.unwatch(&mut servers, watch);
    assert_eq!(servers.poll_connect(NOW), Some(Connect::Close(stream)));
}

/// A watcher is to be woken once for any number of events, and again after a further change.
#[test]
fn a_watcher_is_reported_as_ready_once_and_again_after_a_further_change() {
    let (mut client, mut watches) = (client(), Watches::<usize>::new(TYPE));
    let one = watches.watch(&mut client, "a").expect("a name");
    let two = watches.watch(&mut client, "b").expect("a name");
    assert_eq!(watches.poll_ready(), None);
    watches.handle_action(missing(&["a", "b"]), decode);
    assert_eq!([watches.poll_ready(), watches.poll_ready(), watches.poll_ready()], [Some(one), Some(two), None]);
    assert_eq!(watches.poll_watch(two).map(kind), Some(("b".into(), failed(Code::NotFound))));
    watches.handle_unreachable(Status::new(Code::Unavailable, "down"));
    assert_eq!(watches.poll_ready(), None, "an error is told already");
    client.handle_open();
    assert!(client.poll_transmit().is_some());
    hear(&mut client);
    let action = client.poll_action().expect("an update");
    watches.handle_action(action, decode);
    assert_eq!((watches.poll_ready(), watches.poll_ready()), (Some(one), None));
    assert_eq!(watches.poll_watch(one).map(kind), Some(("a".into(), News::Changed(Ok(3)))));
}

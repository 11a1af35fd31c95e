//! The labels that a model checker may rename: every label is shown, and dependent values follow.

use std::collections::BTreeSet;
use std::time::Duration;

use xds_machine::client::{self, Client};
use xds_machine::file::{self, Files};
use xds_machine::load::{self, Reporter};
use xds_machine::message::{Any, Node, sotw};
use xds_machine::model::{Label, Relabel};
use xds_machine::poll;
use xds_machine::server::{self, Cache, Resource, Revision, Server, Source, StreamId};
use xds_machine::servers::{self, Connect, Policy, Servers};
use xds_machine::watch::Watches;
use xds_machine::{Instant, Sotw, Status, TypeUrl};

const NOW: Instant = Instant::EPOCH;

fn of_type() -> TypeUrl {
    "t".into()
}

fn seconds(at: Instant) -> u64 {
    at.saturating_since(NOW).as_secs()
}

/// Returns the labels, in the order in which they are shown.
fn labels(state: &mut impl Relabel) -> Vec<String> {
    let mut labels = Vec::new();
    state.relabel(&mut |label| {
        labels.push(match label {
            Label::Attempt(count) => format!("attempt {count}"),
            Label::Client(id) => format!("client {id}"),
            Label::Epoch(epoch) => format!("epoch {epoch}"),
            Label::Loss(_, count) => format!("loss {count}"),
            Label::Given(count) => format!("given {count}"),
            Label::Instant(at) => format!("at {}", seconds(*at)),
            Label::Nonce(nonce) => format!("nonce {nonce}"),
            Label::Request(count) => format!("request {count}"),
            Label::Response(type_url, count) => format!("response {type_url} {count}"),
            Label::Revision(revision) => format!("revision {}", revision.0),
            Label::Stream(number) => format!("stream {number}"),
            other => format!("{other:?}"),
        });
    });
    labels
}

fn all(labels: &[String]) -> BTreeSet<&str> {
    labels.iter().map(String::as_str).collect()
}

#[test]
fn the_labels_of_a_client_its_actions_and_its_verdicts_are_shown() {
    let mut client = Client::<Sotw>::new(client::Config::new(Node::new("n")).with_id(7));
    client.resources_mut(&of_type()).subscribe(["a", "b"]).expect("names");
    client.handle_open();
    let mut sent = client.poll_transmit().expect("a request").sent;
    client.handle_sent(NOW, sent);
    assert_eq!(labels(&mut sent), ["epoch 1", "request 1"]);

    let mut store = Cache::new(1);
    store.insert(&of_type(), Resource::new("a", &b"\x0a\x01a"[..]));
    let mut server = Server::<Sotw>::new(server::Config::ads(), StreamId(3));
    let names = vec!["a".into(), "b".into()];
    server.handle_request(NOW, sotw::Request { names, ..sotw::Request::new("t") }).expect("a request");
    let mut response = server.poll_transmit(NOW, &store).expect("a response");
    assert_eq!(labels(&mut response), ["nonce 3.1", "revision 1"]);
    let mut stranger = sotw::Response::from(&response);
    stranger.type_url = "u".into();
    client.handle_response(NOW, stranger).expect("nobody asked for it");
    let mut waiting = client.clone();
    assert!(all(&labels(&mut waiting)).contains("nonce 3.1"), "of an action");
    let mut dropped = client.poll_action().expect("it is told");
    assert_eq!(labels(&mut dropped), ["nonce 3.1"]);

    client.handle_response(NOW, sotw::Response::from(&response)).expect("a response");
    let mut action = client.poll_action().expect("an update");
    let token = ["client 7", "epoch 1", "response t 1", "nonce 3.1"];
    assert_eq!(labels(&mut action), token);
    let client::Action::Apply(update) = action else { panic!("no update") };
    let mut verdict = update.accept();
    assert_eq!(labels(&mut verdict), token);
    client.handle_verdict(NOW, verdict).expect("it is out");
    let ack = client.poll_transmit().expect("an ACK");
    client.handle_sent(NOW, ack.sent);

    // The number of responses, and the response under which the last request was sent.
    let of_responses = labels(&mut client).iter().filter(|label| *label == "response t 1").count();
    assert_eq!(of_responses, 2);
    assert_eq!(client.poll_timeout().map(seconds), Some(15));
    client.relabel(&mut |label| {
        if let Label::Instant(at) = label {
            *at = *at + Duration::from_secs(100);
        }
    });
    assert_eq!(client.poll_timeout().map(seconds), Some(115));
}

#[test]
fn the_labels_of_a_server_and_its_store_are_shown_and_renamed_together() {
    let mut store = Cache::new(1);
    store.insert(&of_type(), Resource::new("a", &b"\x0a\x01a"[..]));
    store.insert(&of_type(), Resource::new("b", &b"\x0a\x01b"[..]));
    let mut server = Server::<Sotw>::new(server::Config::ads(), StreamId(3));
    let names = || vec!["a".into()];
    server.handle_request(NOW, sotw::Request { names: names(), ..sotw::Request::new("t") }).expect("a request");
    while server.poll_action().is_some() {}
    let nonce = server.poll_transmit(NOW, &store).expect("a response").nonce().clone();
    let error = Some(Status { code: 3, message: "no".into() });
    let nack = sotw::Request { names: names(), nonce, error, ..sotw::Request::new("t") };
    server.handle_request(NOW, nack).expect("a NACK");
    let before = labels(&mut server);
    let mut action = server.poll_action().expect("it is told");
    assert_eq!(labels(&mut action), ["nonce 3.1", "revision 2"]);
    let after = labels(&mut server);
    assert_eq!(before.len(), after.len() + 2, "of an action");
    let expected = ["stream 3", "given 1", "revision 2", "nonce 3.1"];
    assert_eq!(all(&after), expected.into());

    let later = |label: Label<'_>| {
        if let Label::Revision(revision) = label {
            revision.0 += 100;
        }
    };
    store.relabel(&mut { later });
    server.relabel(&mut { later });
    assert_eq!((store.revision(), store.get(&of_type(), &"a".into()).since), (Revision(102), Revision(101)));
    assert_eq!(store.changes(&of_type(), Revision(101)).count(), 1);
    assert!(server.poll_transmit(NOW, &store).is_none(), "nothing changed");
}

#[test]
fn the_labels_of_several_servers_are_shown() {
    let config = servers::Config::new(Policy::Grpc, vec![client::Config::new(Node::new("n")); 2]);
    let mut servers = Servers::<Sotw>::new(config).expect("a configuration");
    servers.resources_mut(&of_type()).subscribe(["a"]).expect("a name");
    let attempts = |servers: &mut Servers<Sotw>| {
        let labels = labels(servers).into_iter();
        labels.filter(|label| label.starts_with("attempt")).collect::<Vec<_>>()
    };
    assert_eq!(attempts(&mut servers), ["attempt 0", "attempt 0"]);
    let Some(Connect::Open(mut stream)) = servers.poll_connect(NOW) else { panic!("no stream to open") };
    assert_eq!(labels(&mut stream), ["client 0", "attempt 1"]);
    assert_eq!(attempts(&mut servers), ["attempt 1", "attempt 0"]);
    servers.handle_open(stream);
    let response = sotw::Response {
        version: "1".into(),
        resources: Vec::new(),
        type_url: "u".into(),
        nonce: "n".into(),
        control_plane: String::new(),
        errors: Vec::new(),
    };
    servers.handle_response(NOW, stream, response).expect("nobody asked for it");
    let mut action = servers.poll_action().expect("it is told");
    assert_eq!(labels(&mut action), ["client 0", "nonce n"]);
}

/// The machine of a file shows the labels of its client, of the actions that wait, and its counts.
#[test]
fn the_machine_of_a_file_shows_the_labels_of_its_client_actions_and_counts() {
    let mut files = Files::new(client::Config::new(Node::new("n")).with_id(7), "t");
    files.subscribe(["a"]).expect("a name");
    assert_eq!(files.poll_action(), Some(file::Action::Read));
    let mut value = vec![0x0a, 1];
    value.push(b'a');
    let response = sotw::Response {
        version: "1".into(),
        resources: vec![sotw::Item::Bare(Any { type_url: of_type(), value: value.into() })],
        type_url: of_type(),
        nonce: "".into(),
        control_plane: String::new(),
        errors: Vec::new(),
    };
    files.handle_content(NOW, Ok(response)).expect("it was asked for");
    let shown = labels(&mut files);
    let of_the_action = match files.poll_action() {
        Some(file::Action::Client(mut action)) => labels(&mut action),
        other => panic!("no update: {other:?}"),
    };
    assert_eq!(of_the_action, ["client 7", "epoch 1", "response t 1", "nonce "]);
    let (of_the_client, rest) = shown.split_at(shown.len() - 8);
    let counts = ["Count(1)", "Count(0)", "Count(0)", "Count(0)"];
    assert_eq!((&rest[..4], &rest[4..]), (&of_the_action[..], &counts.map(String::from)[..]));
    assert!(all(of_the_client).is_superset(&["client 7", "epoch 1"].into()), "{of_the_client:?}");
}

/// The action of a poll shows the labels of the client's action in it.
#[test]
fn an_action_of_a_poll_shows_the_labels_of_the_client_action() {
    let mut client = Client::<Sotw>::new(client::Config::new(Node::new("n")).with_id(7));
    client.resources_mut(&of_type()).subscribe(["a"]).expect("a name");
    client.handle_open();
    let sent = client.poll_transmit().expect("a request").sent;
    client.handle_sent(NOW, sent);
    let mut store = Cache::new(1);
    store.insert(&of_type(), Resource::new("a", &b"\x0a\x01a"[..]));
    let mut server = Server::<Sotw>::new(server::Config::ads(), StreamId(3));
    let request = sotw::Request { names: vec!["a".into()], ..sotw::Request::new(of_type()) };
    server.handle_request(NOW, request).expect("a request");
    let response = server.poll_transmit(NOW, &store).expect("a response");
    client.handle_response(NOW, (&response).into()).expect("a response");
    let action = client.poll_action().expect("an update");
    let expected = labels(&mut action.clone());
    assert_eq!(labels(&mut poll::Action::Client(action)), expected);
    assert_eq!(expected[0], "client 7");
}

/// A reporter shows the beginning of each window, the time of the next report, and that of a report under way.
#[test]
fn a_reporter_shows_the_times_of_its_windows_and_reports() {
    let at = |seconds| NOW + Duration::from_secs(seconds);
    let mut reporter = Reporter::new(load::Config::new(Node::new("n")));
    reporter.handle_open();
    assert!(reporter.poll_transmit(NOW).is_some(), "the node");
    let response = load::Response {
        clusters: vec!["c".into()],
        interval: Some(Duration::from_secs(5).into()),
        ..load::Response::default()
    };
    reporter.handle_response(at(1), response).expect("a response");
    let entry = reporter.entry(at(1), "c", "").expect("room");
    assert_eq!(labels(&mut reporter), ["at 6", "at 0", "at 1"], "the first message is under way");
    let report = reporter.poll_transmit(at(7)).expect("a report");
    assert_eq!(labels(&mut reporter), ["at 12", "at 7", "at 7"]);
    reporter.handle_unsent(report).expect("it was under way");
    assert_eq!(labels(&mut reporter), ["at 1"], "it is due now, with its window");
    reporter.release(entry).expect("an entry");
}

#[test]
fn watches_show_the_labels_of_a_pending_verdict() {
    let mut client = Client::<Sotw>::new(client::Config::new(Node::new("n")).with_id(7));
    let mut watches = Watches::<usize>::new("t");
    let watch = watches.watch(&mut client, "a").expect("a name");
    client.handle_open();
    assert!(client.poll_transmit().is_some());
    assert!(labels(&mut watches).is_empty());
    let response = sotw::Response {
        version: "1".into(),
        resources: vec![sotw::Item::Bare(Any { type_url: "t".into(), value: b"\x0a\x01a"[..].into() })],
        type_url: "t".into(),
        nonce: "1".into(),
        control_plane: String::new(),
        errors: Vec::new(),
    };
    client.handle_response(NOW, response).expect("a response");
    let action = client.poll_action().expect("an update");
    assert!(watches.handle_action(action, |resource| Ok::<_, String>(resource.body().len())).is_none());
    let token = ["client 7", "epoch 1", "response t 1", "nonce 1"];
    assert_eq!(labels(&mut watches), token, "the verdict waits for the watcher");
    assert!(watches.poll_watch(watch).is_some() && watches.poll_watch(watch).is_none());
    assert_eq!(labels(&mut watches), token, "the verdict is to be polled");
    assert!(watches.poll_verdict().is_some());
    assert!(labels(&mut watches).is_empty());
}

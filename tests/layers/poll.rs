//! REST polling, rule by rule: the client against scripted answers, and the server against a cache.

use core::time::Duration;

use xds_machine::client::{self, DataErrors, Failed, Rejection, ResourceStatus, Update};
use xds_machine::message::{Any, Node, Resource as Wrapper, sotw};
use xds_machine::poll::{self, Action, Answer, Asked, Config, Held, Offers, Poll, Question, Reply};
use xds_machine::server::{self, Cache, Resource};
use xds_machine::{Code, Instant, Misuse, PeerMisbehaved, Sotw, Status, TypeUrl, Version, service, type_url};

const NOW: Instant = Instant::EPOCH;
const DELAY: Duration = Duration::from_secs(1);

fn at(millis: u64) -> Instant {
    NOW + Duration::from_millis(millis)
}

fn config() -> Config {
    Config::new(client::Config::new(Node::new("n")), DELAY).expect("a delay")
}

fn poll_of(config: Config, of: &str, names: &[&str]) -> Poll {
    let mut poll = Poll::new(config, of).expect("a path");
    poll.subscribe(names.iter().copied()).expect("names");
    poll
}

/// Returns a poll of the endpoints of these clusters.
fn endpoints(names: &[&str]) -> Poll {
    poll_of(config(), type_url::ENDPOINT, names)
}

fn clusters() -> Poll {
    poll_of(config(), type_url::CLUSTER, &["*"])
}

fn any(of: &str, name: &str, content: &str) -> Any {
    let mut value = vec![0x0a, u8::try_from(name.len()).expect("short")];
    value.extend(name.bytes());
    value.extend([0x12, u8::try_from(content.len()).expect("short")]);
    value.extend(content.bytes());
    Any { type_url: of.into(), value: value.into() }
}

fn response(of: &str, version: &str, items: Vec<sotw::Item>) -> sotw::Response {
    sotw::Response {
        version: version.into(),
        resources: items,
        type_url: of.into(),
        nonce: "nonce".into(),
        control_plane: String::new(),
        errors: vec![],
    }
}

/// Returns a response with these resources, whose content is the version.
fn good(of: &str, version: &str, names: &[&str]) -> Answer {
    let items = names.iter().map(|name| sotw::Item::Bare(any(of, name, version))).collect();
    Answer::Response(response(of, version, items))
}

fn eds(version: &str, names: &[&str]) -> Answer {
    good(type_url::ENDPOINT, version, names)
}

fn cds(version: &str, names: &[&str]) -> Answer {
    good(type_url::CLUSTER, version, names)
}

fn ask(poll: &mut Poll, now: Instant) -> (sotw::Request, Asked) {
    let post = poll.poll_transmit(now).expect("a request is due");
    assert_eq!(poll.check_invariants(), Ok(()));
    (post.request, post.asked)
}

/// Sends the request that is due, and handles the answer at the same time, without a random part. Returns the request.
fn exchange(poll: &mut Poll, now: Instant, answer: Answer) -> sotw::Request {
    let (request, asked) = ask(poll, now);
    poll.handle_answer(now, asked, answer, 0).expect("it was asked");
    assert_eq!(poll.check_invariants(), Ok(()));
    request
}

/// Waits for the next poll.
fn next(poll: &mut Poll) -> Instant {
    let due = poll.poll_timeout().expect("a poll is due");
    poll.handle_timeout(due, 0);
    due
}

fn update(poll: &mut Poll) -> Update {
    match poll.poll_action() {
        Some(Action::Client(client::Action::Apply(update))) => update,
        other => panic!("no update: {other:?}"),
    }
}

fn accept(poll: &mut Poll, now: Instant) {
    let update = update(poll);
    poll.handle_verdict(now, update.accept()).expect("it is out");
    assert_eq!(poll.check_invariants(), Ok(()));
}

fn missing(of: &str, names: &[&str]) -> Option<Action> {
    let names = names.iter().map(|&name| name.into()).collect();
    Some(Action::Client(client::Action::DoesNotExist { type_url: of.into(), names }))
}

fn rejected(of: &str, reason: &str) -> Option<Action> {
    // The fault of a response as a whole can't be constructed outside the crate.
    let mut poll = poll_of(config(), of, &["x"]);
    let (_, asked) = ask(&mut poll, NOW);
    poll.handle_answer(NOW, asked, Answer::Malformed(reason.into()), 0).expect("it was asked");
    poll.poll_action()
}

fn status(poll: &Poll, name: &str) -> Option<ResourceStatus> {
    poll.client().resources(poll.type_url()).state(name).map(|state| state.status)
}

/// R-REST-01.
#[test]
fn every_type_has_its_path_or_is_refused() {
    let paths = [
        (type_url::CLUSTER, "/v3/discovery:clusters"),
        (type_url::ENDPOINT, "/v3/discovery:endpoints"),
        (type_url::LISTENER, "/v3/discovery:listeners"),
        (type_url::ROUTE, "/v3/discovery:routes"),
        (type_url::SCOPED_ROUTE, "/v3/discovery:scoped-routes"),
        (type_url::SECRET, "/v3/discovery:secrets"),
        (type_url::RUNTIME, "/v3/discovery:runtime"),
        (type_url::EXTENSION_CONFIG, "/v3/discovery:extension_configs"),
    ];
    for (of, path) in paths {
        let post = poll_of(config(), of, &["a"]).poll_transmit(NOW).expect("the first poll");
        assert_eq!((post.path, post.request.type_url.as_str()), (path, of));
        assert_eq!(service::type_of_rest_path(path), Some(of));
    }
    let hosts = TypeUrl::from(type_url::VIRTUAL_HOST);
    assert_eq!(Poll::new(config(), hosts.clone()), Err(Misuse::NoRestPath { type_url: hosts }));
    assert_eq!(service::type_of_rest_path("/v3/discovery:ads"), None);
    assert_eq!(service::type_of_rest_path("/v3/delta_discovery:clusters"), None, "R-REST-02");
}

/// R-REST-03, R-REST-18.
#[test]
fn one_request_is_in_flight_at_a_time_and_new_names_go_with_the_next() {
    let mut poll = endpoints(&["a"]);
    let (first, asked) = ask(&mut poll, NOW);
    assert_eq!(first.names, ["a"]);
    poll.subscribe(["c", "b"]).expect("names");
    poll.handle_timeout(at(500), 0);
    assert_eq!((poll.poll_transmit(at(500)), poll.wants_transmit()), (None, false));
    poll.handle_answer(at(500), asked, eds("1", &["a"]), 0).expect("it was asked");
    assert_eq!(poll.poll_transmit(at(500)), None, "it is being judged");
    accept(&mut poll, at(600));
    assert_eq!(poll.poll_timeout(), Some(at(1500)));
    poll.handle_timeout(at(1499), 0);
    assert_eq!(poll.poll_transmit(at(1499)), None);
    poll.handle_timeout(at(1500), 0);
    let (second, _) = ask(&mut poll, at(1500));
    assert_eq!((second.version.as_str(), &second.names[..]), ("1", &["a".into(), "b".into(), "c".into()][..]));
}

/// R-REST-04.
#[test]
fn polls_of_one_type_are_independent() {
    let (mut a, mut b) = (endpoints(&["a"]), endpoints(&["b"]));
    exchange(&mut a, NOW, eds("1", &["a"]));
    accept(&mut a, NOW);
    exchange(&mut b, NOW, eds("2", &["b"]));
    accept(&mut b, NOW);
    let (now, _) = (next(&mut a), next(&mut b));
    assert_eq!((ask(&mut a, now).0.version.as_str(), ask(&mut b, now).0.version.as_str()), ("1", "2"));
}

/// R-REST-05, R-REST-06.
#[test]
fn the_first_poll_is_due_at_once_and_each_later_one_after_the_outcome_of_the_last() {
    let outcomes = [
        eds("1", &["a"]),
        Answer::NotModified,
        Answer::Failed("503".into()),
        Answer::Malformed("an empty body".into()),
        eds("1", &["a"]),
    ];
    for random in [0, 999_999_999, u64::MAX] {
        let mut poll = endpoints(&["a"]);
        assert!(poll.wants_transmit());
        let mut now = at(50);
        for answer in &outcomes {
            let (_, asked) = ask(&mut poll, now);
            now = now + Duration::from_millis(900); // held by the server
            poll.handle_answer(now, asked, answer.clone(), random).expect("it was asked");
            while let Some(action) = poll.poll_action() {
                if let Action::Client(client::Action::Apply(update)) = action {
                    poll.handle_verdict(now, update.reject_all("no")).expect("it is out");
                }
            }
            let due = now + DELAY + Duration::from_nanos(random % 1_000_000_000);
            assert_eq!(poll.poll_timeout(), Some(due), "{answer:?}");
            poll.handle_timeout(due, 0);
            now = due;
        }
    }
}

/// R-REST-06: a verdict that takes longer than the delay does not add to it.
#[test]
fn a_late_verdict_is_followed_by_a_poll_at_once() {
    let mut poll = endpoints(&["a"]);
    exchange(&mut poll, NOW, eds("1", &["a"]));
    assert_eq!(poll.poll_timeout(), None, "the wait for the first response is over, and nothing is due");
    accept(&mut poll, at(7000));
    assert_eq!(poll.poll_timeout(), Some(at(1000)));
    poll.handle_timeout(at(7000), 0);
    assert!(poll.wants_transmit());
}

/// R-REST-07, R-REST-08, L-01.
#[test]
fn a_too_short_delay_or_a_zero_time_out_is_refused() {
    let client = client::Config::new(Node::new("n"));
    for delay in [Duration::ZERO, Duration::from_micros(500), Duration::from_nanos(999_999)] {
        let error = Config::new(client.clone(), delay).expect_err("too short");
        assert_eq!(error, Misuse::RefreshDelay { delay });
    }
    let config = Config::new(client, Duration::from_millis(1)).expect("the shortest");
    assert_eq!(config.request_timeout(), Duration::from_secs(1));
    assert_eq!(config.with_request_timeout(Duration::ZERO), Err(Misuse::RequestTimeout));
}

/// R-REST-09.
#[test]
fn a_request_is_given_up_after_its_time_out_and_a_late_answer_ignored() {
    let mut poll = endpoints(&["a"]);
    exchange(&mut poll, NOW, eds("1", &["a"]));
    accept(&mut poll, NOW);
    let (_, late) = (next(&mut poll), ask(&mut poll, at(1000)).1);
    assert_eq!((poll.poll_timeout(), poll.asked()), (Some(at(2000)), Some(late)));
    poll.handle_timeout(at(1999), 0);
    assert_eq!(poll.asked(), Some(late));
    poll.handle_timeout(at(2000), 7);
    assert_eq!(poll.asked(), None);
    assert_eq!(poll.poll_action(), Some(Action::Failed { reason: "no answer within the request time-out".into() }));
    assert_eq!(poll.counters().failures, 1);
    assert_eq!(poll.poll_timeout(), Some(at(3000) + Duration::from_nanos(7)));
    let before = poll.clone();
    poll.handle_answer(at(2500), late, eds("2", &["a"]), 0).expect("it is ignored");
    assert_eq!(poll, before);
    let now = next(&mut poll);
    let (request, asked) = ask(&mut poll, now);
    assert_eq!(request.version.as_str(), "1");
    poll.handle_answer(now, late, eds("2", &["a"]), 0).expect("it is ignored");
    assert_eq!((poll.poll_action(), poll.asked()), (None, Some(asked)));
}

/// R-REST-10.
#[test]
fn not_modified_changes_nothing() {
    let mut poll = endpoints(&["a"]);
    exchange(&mut poll, NOW, eds("1", &["a"]));
    accept(&mut poll, NOW);
    let now = next(&mut poll);
    exchange(&mut poll, now, Answer::NotModified);
    assert_eq!((poll.poll_action(), status(&poll, "a")), (None, Some(ResourceStatus::Acked)));
    let counters = poll.counters();
    assert_eq!((counters.attempts, counters.successes, counters.failures), (2, 1, 0));
    let now = next(&mut poll);
    assert_eq!(ask(&mut poll, now).0.version.as_str(), "1");
}

/// R-REST-11, R-REST-12, L-06, L-07.
#[test]
fn only_a_response_or_the_time_out_ends_the_wait_for_the_first_response() {
    for answer in [Answer::NotModified, Answer::Failed("reset".into())] {
        let mut poll = endpoints(&["a"]);
        let mut now = NOW;
        let mut timed_out = Vec::new();
        while now < at(16_000) {
            if poll.wants_transmit() {
                exchange(&mut poll, now, answer.clone());
            }
            while let Some(action) = poll.poll_action() {
                assert!(!matches!(&action, Action::Client(client::Action::Rejected { .. })));
                if !matches!(action, Action::Failed { .. }) {
                    timed_out.push((now, action));
                } else {
                    assert_eq!(answer, Answer::Failed("reset".into()));
                }
            }
            let expected = if now < at(15_000) { ResourceStatus::Requested } else { ResourceStatus::DoesNotExist };
            assert_eq!(status(&poll, "a"), Some(expected), "{now:?}");
            now = poll.poll_timeout().expect("a poll");
            poll.handle_timeout(now, 0);
        }
        let gone = missing(type_url::ENDPOINT, &["a"]).expect("an action");
        assert_eq!(timed_out, [(at(15_000), gone), (at(15_000), Action::TimedOut { names: vec!["a".into()] })]);
    }
    for answer in [eds("1", &["b"]), Answer::Malformed("no JSON".into())] {
        let mut poll = endpoints(&["a"]);
        exchange(&mut poll, NOW, answer);
        assert_eq!(poll.poll_timeout(), Some(at(1000)), "the wait is over");
        let now = next(&mut poll);
        exchange(&mut poll, now, Answer::NotModified);
        assert_eq!(poll.poll_timeout(), Some(at(2000)), "and does not begin anew");
    }
    let transient = client::Config::new(Node::new("n")).with_transient_timeout();
    let config = Config::new(transient, Duration::from_secs(60)).expect("a delay");
    let mut poll = poll_of(config.clone(), type_url::CLUSTER, &["*", "a"]);
    exchange(&mut poll, NOW, Answer::NotModified);
    poll.handle_timeout(at(15_000), 0);
    let error = Failed {
        name: "a".into(),
        status: Status::new(Code::Unavailable, "the resource did not come in time"),
        effect: client::Effect::Fails,
    };
    let errors = client::Action::Errors { type_url: type_url::CLUSTER.into(), errors: vec![error] };
    assert_eq!(poll.poll_action(), Some(Action::Client(errors)));
    assert_eq!(poll.poll_action(), Some(Action::TimedOut { names: vec!["*".into(), "a".into()] }));
    let mut poll = poll_of(config.with_initial_fetch_timeout(None), type_url::CLUSTER, &["*"]);
    exchange(&mut poll, NOW, Answer::NotModified);
    assert_eq!(poll.poll_timeout(), Some(at(60_000)));
}

/// R-REST-13.
#[test]
fn a_malformed_body_is_rejected_and_an_empty_object_is_a_response() {
    let mut poll = clusters();
    exchange(&mut poll, NOW, cds("1", &["a"]));
    accept(&mut poll, NOW);
    let now = next(&mut poll);
    exchange(&mut poll, now, Answer::Malformed("the body is empty".into()));
    assert_eq!(poll.poll_action(), rejected(type_url::CLUSTER, "the body is empty"));
    assert_eq!((poll.counters().rejected, status(&poll, "a")), (1, Some(ResourceStatus::Acked)));
    let now = next(&mut poll);
    let request = exchange(&mut poll, now, Answer::Response(response("", "", vec![])));
    let error = Status::new(Code::InvalidArgument, "the body is empty");
    assert_eq!((request.version.as_str(), request.error), ("1", Some(error)));
    let update = update(&mut poll);
    assert_eq!((update.removed(), update.resources().len()), (&["a".into()][..], 0));
    poll.handle_verdict(now, update.accept()).expect("it is out");
    let now = next(&mut poll);
    let request = ask(&mut poll, now).0;
    assert_eq!((request.version.as_str(), request.error), ("", None), "R-REST-14");
}

/// R-REST-15, R-REST-27, L-05, L-09.
#[test]
fn every_response_is_applied_whatever_its_version_unless_its_content_is_held() {
    let mut poll = endpoints(&["a"]);
    let content = |version: &str, content: &str| {
        let item = sotw::Item::Bare(any(type_url::ENDPOINT, "a", content));
        Answer::Response(response(type_url::ENDPOINT, version, vec![item]))
    };
    let mut now = NOW;
    for (version, what) in [("1", "A"), ("1", "B"), ("2", "A"), ("1", "B"), ("2", "A")] {
        exchange(&mut poll, now, content(version, what));
        accept(&mut poll, now);
        now = next(&mut poll);
    }
    for version in ["2", "3", ""] {
        exchange(&mut poll, now, content(version, "A"));
        assert_eq!(poll.poll_action(), None, "the content is held");
        now = next(&mut poll);
        assert_eq!(poll.counters().rejected, 0);
    }
    assert_eq!(poll.counters().successes, 8);
    assert_eq!(ask(&mut poll, now).0.version.as_str(), "", "the last version, all the same");
}

/// Content that the application gave up or rejected is reported again.
#[test]
fn equal_content_is_an_update_after_an_unsubscription_or_a_rejection() {
    let mut poll = endpoints(&["a", "b"]);
    exchange(&mut poll, NOW, eds("1", &["a", "b"]));
    let first = update(&mut poll);
    poll.unsubscribe(["b"]);
    poll.handle_verdict(NOW, first.accept()).expect("it is out");
    poll.subscribe(["b"]).expect("a name");
    let now = next(&mut poll);
    let request = exchange(&mut poll, now, eds("1", &["a", "b"]));
    assert_eq!(request.version.as_str(), "", "a server must not believe that the application has b");
    accept(&mut poll, now);
    let now = next(&mut poll);
    exchange(&mut poll, now, eds("2", &["a", "b"]));
    let second = update(&mut poll).reject([Rejection::new("b", "no")]);
    poll.handle_verdict(now, second).expect("it is out");
    let now = next(&mut poll);
    exchange(&mut poll, now, eds("1", &["a", "b"]));
    accept(&mut poll, now);
}

/// R-REST-16, R-REST-17.
#[test]
fn a_rejection_is_sent_with_each_poll_until_a_response_is_accepted() {
    for reports in [true, false] {
        let mut poll = poll_of(config().with_report_rejection(reports), type_url::CLUSTER, &["*"]);
        let first = exchange(&mut poll, NOW, cds("5", &["a", "b"]));
        accept(&mut poll, NOW);
        assert_eq!((first.version.as_str(), first.nonce.as_str(), first.names.len()), ("", "", 0));
        let now = next(&mut poll);
        let before = exchange(&mut poll, now, cds("6", &["a", "b"]));
        let verdict = update(&mut poll).reject([Rejection::new("b", "no"), Rejection::new("a", "nor")]);
        poll.handle_verdict(now, verdict).expect("it is out");
        for answer in [Answer::NotModified, Answer::Failed("503".into()), cds("7", &["a", "b"])] {
            let now = next(&mut poll);
            let request = exchange(&mut poll, now, answer);
            while poll.poll_action().as_ref().is_some_and(|action| matches!(action, Action::Failed { .. })) {}
            let error = reports.then(|| Status::new(Code::InvalidArgument, "b: no; a: nor"));
            assert_eq!(request, sotw::Request { error, ..before.clone() });
        }
    }
    let mut poll = clusters();
    exchange(&mut poll, NOW, cds("1", &["a"]));
    let verdict = update(&mut poll).reject_all("no");
    poll.handle_verdict(NOW, verdict).expect("it is out");
    assert_eq!((poll.counters().rejected, status(&poll, "a")), (1, Some(ResourceStatus::Nacked)));
    let now = next(&mut poll);
    let request = exchange(&mut poll, now, cds("2", &["a"]));
    assert_eq!((request.version.as_str(), request.error.is_some()), ("", true));
    accept(&mut poll, now);
    let now = next(&mut poll);
    let request = ask(&mut poll, now).0;
    assert_eq!((request.version.as_str(), request.error), ("2", None));
}

/// A server that received no rejection assumes that the client has the content of the version.
#[test]
fn not_modified_after_a_partial_acceptance_clears_the_version() {
    let mut poll = poll_of(config().with_report_rejection(false), type_url::ENDPOINT, &["a", "b"]);
    exchange(&mut poll, NOW, eds("1", &["a", "b"]));
    accept(&mut poll, NOW);
    let now = next(&mut poll);
    exchange(&mut poll, now, eds("2", &["a", "b"]));
    let verdict = update(&mut poll).reject([Rejection::new("b", "no")]);
    poll.handle_verdict(now, verdict).expect("it is out");
    let now = next(&mut poll);
    let request = exchange(&mut poll, now, Answer::NotModified); // the server went back to 1
    assert_eq!(request.version.as_str(), "1");
    let now = next(&mut poll);
    let request = exchange(&mut poll, now, eds("1", &["a", "b"]));
    assert_eq!(request.version.as_str(), "", "a of 2 is held, and nobody else knows");
    accept(&mut poll, now);
}

/// R-REST-18.
#[test]
fn new_names_bring_the_next_poll_forward_if_configured() {
    let mut poll = poll_of(config().with_poll_on_change(true), type_url::ENDPOINT, &["a"]);
    exchange(&mut poll, NOW, eds("1", &["a"]));
    accept(&mut poll, NOW);
    poll.subscribe(["a"]).expect("a name");
    assert!(!poll.wants_transmit(), "it is no news");
    poll.subscribe(["b"]).expect("a name");
    assert_eq!(ask(&mut poll, at(1)).0.names, ["a", "b"]);
    let mut poll = endpoints(&["a"]);
    exchange(&mut poll, NOW, eds("1", &["a"]));
    accept(&mut poll, NOW);
    poll.subscribe(["b"]).expect("a name");
    assert_eq!((poll.wants_transmit(), poll.poll_timeout()), (false, Some(at(1000))));
}

/// R-REST-19.
#[test]
fn unsubscribing_from_all_names_ends_the_poll() {
    let mut poll = clusters();
    let (_, asked) = ask(&mut poll, NOW);
    poll.unsubscribe(["*"]);
    assert_eq!((poll.asked(), poll.poll_timeout(), poll.poll_transmit(NOW)), (None, None, None));
    poll.handle_answer(NOW, asked, cds("1", &["a"]), 0).expect("it is ignored");
    assert_eq!((poll.poll_action(), poll.counters().successes), (None, 0));
    poll.subscribe(["c"]).expect("a name");
    assert_eq!(ask(&mut poll, NOW).0.names, ["c"]);

    let mut poll = clusters();
    exchange(&mut poll, NOW, cds("1", &["a"]));
    poll.unsubscribe(["*"]);
    assert_eq!(poll.check_invariants(), Ok(()));
    accept(&mut poll, NOW);
    assert_eq!((poll.poll_timeout(), poll.wants_transmit()), (None, false));
}

/// R-REST-20.
#[test]
fn every_request_has_the_node_and_the_type_and_names_in_order() {
    let mut poll = endpoints(&["b", "a"]);
    let first = exchange(&mut poll, NOW, Answer::NotModified);
    let now = next(&mut poll);
    let second = exchange(&mut poll, now, Answer::NotModified);
    assert_eq!(first, second);
    assert_eq!((&first.names[..], first.type_url.as_str()), (&["a".into(), "b".into()][..], type_url::ENDPOINT));
    assert_eq!(first.node.expect("a node").id, "n");
}

/// R-REST-22.
#[test]
fn a_response_may_omit_its_type_url_and_a_resource_of_another_type_is_rejected() {
    let item = |of: &str| vec![sotw::Item::Bare(any(of, "a", ""))];
    let mut poll = clusters();
    exchange(&mut poll, NOW, Answer::Response(response("", "1", item(type_url::CLUSTER))));
    accept(&mut poll, NOW);
    let now = next(&mut poll);
    exchange(&mut poll, now, Answer::Response(response(type_url::LISTENER, "2", item(type_url::CLUSTER))));
    let reason = format!("the response has the type {}", type_url::LISTENER);
    assert_eq!(poll.poll_action(), rejected(type_url::CLUSTER, &reason));
    let now = next(&mut poll);
    exchange(&mut poll, now, Answer::Response(response("", "2", item(type_url::LISTENER))));
    let Some(Action::Client(client::Action::Rejected { faults, .. })) = poll.poll_action() else { panic!("no fault") };
    assert_eq!(faults[0].reason, format!("resource 0 (a, it seems) has the type {}", type_url::LISTENER));
    assert_eq!((poll.poll_action(), poll.counters().rejected), (None, 2));
    assert_eq!(status(&poll, "a"), Some(ResourceStatus::Acked));
}

fn wrapped(name: &str, ttl: Option<Duration>) -> sotw::Item {
    let body = Some(any(type_url::ENDPOINT, name, ""));
    let resource = Wrapper { name: name.into(), version: "w".into(), aliases: vec![], body, ttl };
    sotw::Item::Wrapped(Box::new(resource))
}

/// R-REST-22: wrapped resources, and their TTL.
#[test]
fn a_ttl_runs_on_between_polls() {
    let mut poll = endpoints(&["a", "b"]);
    let ttl = Some(Duration::from_millis(1500));
    let content = || Answer::Response(response("", "1", vec![wrapped("a", ttl), wrapped("b", None)]));
    exchange(&mut poll, NOW, content());
    accept(&mut poll, NOW);
    let now = next(&mut poll);
    exchange(&mut poll, now, content());
    assert_eq!((poll.poll_action(), poll.poll_timeout()), (None, Some(at(2000))), "renewed, and no news");
    let now = next(&mut poll);
    exchange(&mut poll, now, Answer::NotModified);
    assert_eq!(poll.poll_timeout(), Some(at(2500)), "which renews nothing");
    poll.handle_timeout(at(2500), 0);
    let expired = client::Action::Expired { type_url: type_url::ENDPOINT.into(), names: vec!["a".into()] };
    assert_eq!(poll.poll_action(), Some(Action::Client(expired)));
    let now = next(&mut poll);
    let request = exchange(&mut poll, now, content());
    assert_eq!(request.version.as_str(), "", "a server must not believe that the application has a");
    accept(&mut poll, now);
    let now = next(&mut poll);
    assert_eq!(ask(&mut poll, now).0.version.as_str(), "1");
}

/// R-REST-24, R-REST-25.
#[test]
fn unrequested_resources_are_ignored_and_absent_ones_do_not_exist() {
    let mut poll = endpoints(&["a", "b"]);
    exchange(&mut poll, NOW, eds("1", &["a", "zz"]));
    let first = update(&mut poll);
    assert_eq!(first.resources().map(|resource| resource.name().as_str()).collect::<Vec<_>>(), ["a"]);
    assert_eq!(poll.poll_action(), missing(type_url::ENDPOINT, &["b"]), "at once");
    poll.handle_verdict(NOW, first.accept()).expect("it is out");
    assert_eq!(status(&poll, "b"), Some(ResourceStatus::DoesNotExist));
    let now = next(&mut poll);
    let request = exchange(&mut poll, now, eds("2", &[]));
    assert_eq!(request.version.as_str(), "1", "the version is of both names");
    let second = update(&mut poll);
    assert_eq!(second.removed(), ["a"]);
    poll.handle_verdict(now, second.accept()).expect("it is out");
    assert_eq!((poll.poll_action(), status(&poll, "a")), (None, Some(ResourceStatus::DoesNotExist)));

    let mut poll = clusters();
    exchange(&mut poll, NOW, cds("1", &[]));
    let synced = client::Action::Synced { type_url: type_url::CLUSTER.into(), answers_wildcard: true };
    assert_eq!((poll.poll_action(), poll.counters().successes), (Some(Action::Client(synced)), 1));
}

/// A collection with members exists, whether these are new or held; without members it does not exist.
#[test]
fn a_collection_exists_while_it_has_members() {
    let (glob, part) = ("xdstp:///envoy.config.cluster.v3.Cluster/*", "xdstp:///envoy.config.cluster.v3.Cluster/a");
    let mut poll = poll_of(config(), type_url::CLUSTER, &[glob]);
    exchange(&mut poll, NOW, cds("1", &[part]));
    accept(&mut poll, NOW);
    assert_eq!(poll.poll_action(), None);
    let now = next(&mut poll);
    exchange(&mut poll, now, cds("2", &[part]));
    accept(&mut poll, now);
    assert_eq!(poll.poll_action(), None);
    let now = next(&mut poll);
    exchange(&mut poll, now, cds("3", &[]));
    let last = update(&mut poll);
    assert_eq!(last.removed(), [part]);
    poll.handle_verdict(now, last.accept()).expect("it is out");
    let now = next(&mut poll);
    exchange(&mut poll, now, cds("3", &[]));
    let synced = client::Action::Synced { type_url: type_url::CLUSTER.into(), answers_wildcard: false };
    assert_eq!(poll.poll_action(), Some(Action::Client(synced)));
    assert_eq!((poll.poll_action(), poll.poll_action()), (missing(type_url::CLUSTER, &[glob]), None));
}

/// A response with a fault of unknown name hides which names are absent; a name that was subscribed since is not
/// absent.
#[test]
fn names_that_a_response_does_not_cover_are_not_reported_missing() {
    let mut poll = endpoints(&["a"]);
    exchange(&mut poll, NOW, Answer::Response(response("", "1", vec![sotw::Item::Malformed])));
    assert!(matches!(poll.poll_action(), Some(Action::Client(client::Action::Rejected { .. }))));
    assert_eq!((poll.poll_action(), status(&poll, "a")), (None, Some(ResourceStatus::Requested)));
    let mut poll = endpoints(&["a"]);
    let (_, asked) = ask(&mut poll, NOW);
    poll.subscribe(["b"]).expect("a name");
    poll.handle_answer(NOW, asked, eds("1", &[]), 0).expect("it was asked");
    let synced = client::Action::Synced { type_url: type_url::ENDPOINT.into(), answers_wildcard: false };
    assert_eq!(poll.poll_action(), Some(Action::Client(synced)));
    assert_eq!((poll.poll_action(), poll.poll_action()), (missing(type_url::ENDPOINT, &["a"]), None));
    assert_eq!(status(&poll, "b"), Some(ResourceStatus::Requested));
}

#[test]
fn content_dropped_with_its_rejection_is_requested_again() {
    let client = client::Config::new(Node::new("n")).with_data_errors(DataErrors::Drop);
    let mut poll = poll_of(Config::new(client, DELAY).expect("a delay"), type_url::ENDPOINT, &["a"]);
    exchange(&mut poll, NOW, eds("1", &["a"]));
    accept(&mut poll, NOW);
    let now = next(&mut poll);
    exchange(&mut poll, now, eds("2", &["a"]));
    let verdict = update(&mut poll).reject_all("no");
    poll.handle_verdict(now, verdict).expect("it is out");
    let now = next(&mut poll);
    assert_eq!(ask(&mut poll, now).0.version.as_str(), "", "1 is held no more");
}

#[test]
fn a_response_is_refused_while_actions_wait() {
    let limits = client::Limits { waiting_actions: 1, ..client::Limits::default() };
    let client = client::Config::new(Node::new("n")).with_limits(limits);
    let mut poll = poll_of(Config::new(client, DELAY).expect("a delay"), type_url::ENDPOINT, &["a"]);
    exchange(&mut poll, NOW, Answer::Failed("reset".into()));
    let now = next(&mut poll);
    let (_, asked) = ask(&mut poll, now);
    let before = poll.clone();
    let refused = poll.handle_answer(now, asked, eds("1", &["a"]), 0);
    assert_eq!(refused, Err(Misuse::ActionsWaiting { limit: 1 }));
    assert_eq!(poll, before);
    assert_eq!(poll.poll_action(), Some(Action::Failed { reason: "reset".into() }));
    poll.handle_answer(now, asked, eds("1", &["a"]), 0).expect("there is room");
    accept(&mut poll, now);
}

// The server.

fn store(of: &str, names: &[&str]) -> Cache {
    let mut cache = Cache::new(1);
    cache.set_known(&of.into());
    names.iter().for_each(|&name| put(&mut cache, of, name, "1"));
    cache
}

fn put(cache: &mut Cache, of: &str, name: &str, content: &str) {
    cache.insert(&of.into(), Resource::new(name, any(of, name, content).value));
}

fn request(of: &str, names: &[&str], version: &Version) -> sotw::Request {
    let names = names.iter().map(|&name| name.into()).collect();
    sotw::Request { node: Some(Node::new("n").into()), names, version: version.clone(), ..sotw::Request::new(of) }
}

fn question(of: &str, names: &[&str], version: &Version) -> Question {
    Question::new(&server::Config::ads(), request(of, names, version)).expect("within the limits")
}

fn answer(cache: &Cache, of: &str, names: &[&str], version: &Version) -> Reply {
    poll::answer(cache, &server::Config::ads(), request(of, names, version))
}

/// Returns the version and the names of a response.
fn served(reply: Reply) -> (Version, Vec<String>) {
    let Reply::Response(response) = reply else { panic!("no response: {reply:?}") };
    assert_eq!(response.nonce().as_str(), "");
    (response.version().clone(), response.resources().map(|resource| resource.name().to_string()).collect())
}

/// R-REST-32, L-02.
#[test]
fn the_version_depends_on_the_requested_names() {
    let of = type_url::ENDPOINT;
    let mut cache = store(of, &["a", "b"]);
    let (version, names) = served(answer(&cache, of, &["a"], &Version::default()));
    assert_eq!(names, ["a"]);
    let (both, names) = served(answer(&cache, of, &["b", "a", "b"], &version));
    assert_eq!(names, ["a", "b"]);
    assert_eq!(answer(&cache, of, &["a"], &version), Reply::NotModified);
    assert_eq!(answer(&cache, of, &["a", "b"], &both), Reply::NotModified);
    let (absent, names) = served(answer(&cache, of, &["a", "c"], &version));
    assert_eq!((names.len(), absent == version), (1, false), "an absent name counts");
    assert_eq!(answer(&cache, of, &["a", "c"], &absent), Reply::NotModified);
    put(&mut cache, of, "b", "2");
    assert_eq!(answer(&cache, of, &["a"], &version), Reply::NotModified);
    assert_eq!(served(answer(&cache, of, &["a", "b"], &both)).1, ["a", "b"]);
}

/// R-REST-35: each of many names counts, at any position, with a collection among them; an unknown name holds the poll.
#[test]
fn a_change_of_any_of_many_names_changes_the_version() {
    let of = type_url::ENDPOINT;
    let names: Vec<String> = (10..60).map(|number| format!("xdstp:///T/{number}")).collect();
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.push("xdstp:///T/a/*");
    let mut cache = store(of, &names[..49]);
    let (version, _) = served(answer(&cache, of, &names, &Version::default()));
    assert_eq!(answer(&cache, of, &names, &version), Reply::NotModified);
    let mut versions = vec![version];
    for name in names[..50].iter().copied().chain(["xdstp:///T/a/b"]) {
        put(&mut cache, of, name, "new");
        let (version, _) = served(answer(&cache, of, &names, versions.last().expect("the first")));
        assert!(!versions.contains(&version), "{name}");
        assert_eq!(answer(&cache, of, &names, &version), Reply::NotModified, "{name}");
        versions.push(version);
    }
    put(&mut cache, of, "xdstp:///T/other", "new");
    assert_eq!(answer(&cache, of, &names, versions.last().expect("the last")), Reply::NotModified);
}

/// R-REST-31: the order of polls is irrelevant, and any replica answers.
#[test]
fn an_answer_depends_on_the_request_and_the_source_alone() {
    let of = type_url::CLUSTER;
    let (one, mut other) = (store(of, &["a", "b"]), store(of, &["b", "c", "a"]));
    other.remove(&of.into(), "c");
    for names in [&["a"][..], &["a", "b"], &["a", "zz"], &["*"], &[]] {
        let encode = |reply: Reply| {
            let Reply::Response(response) = reply else { panic!("no response") };
            let (mut message, mut bytes) = (sotw::Response::from(&response), Vec::new());
            response.encode(&mut bytes);
            message.resources.sort_by_key(|item| format!("{item:?}"));
            (message, bytes.len())
        };
        let first = encode(answer(&one, of, names, &Version::default()));
        served(answer(&other, of, &["zz"], &Version::default()));
        assert_eq!(encode(answer(&other, of, names, &Version::default())), first, "{names:?}");
    }
}

/// R-REST-33, L-06.
#[test]
fn a_first_poll_is_answered_with_a_response_even_without_resources() {
    let cache = store(type_url::ENDPOINT, &[]);
    let (version, names) = served(answer(&cache, type_url::ENDPOINT, &["a"], &Version::default()));
    assert_eq!((names.len(), version.is_empty()), (0, false));
    assert_eq!(answer(&cache, type_url::ENDPOINT, &["a"], &version), Reply::NotModified);
    assert_eq!(answer(&Cache::unknown(1), type_url::ENDPOINT, &["a"], &Version::default()), Reply::Unknown);
    let mut cache = store(type_url::ENDPOINT, &["a"]);
    cache.set_unknown(&type_url::ENDPOINT.into(), "b");
    assert_eq!(answer(&cache, type_url::ENDPOINT, &["a", "b"], &Version::default()), Reply::Unknown);
    assert_eq!(served(answer(&cache, type_url::ENDPOINT, &["a"], &Version::default())).1, ["a"]);
}

/// R-REST-34.
#[test]
fn an_empty_list_is_the_wildcard_of_full_state_types_and_refused_for_others() {
    let cache = store(type_url::CLUSTER, &["a", "b"]);
    for names in [&[][..], &["*"], &["*", "zz"]] {
        assert_eq!(served(answer(&cache, type_url::CLUSTER, names, &Version::default())).1, ["a", "b"]);
    }
    let cache = store(type_url::ENDPOINT, &["a", "b"]);
    let Reply::Refused(status) = answer(&cache, type_url::ENDPOINT, &[], &Version::default()) else {
        panic!("not refused")
    };
    let message = format!("a poll for {} without names asks for nothing", type_url::ENDPOINT);
    assert_eq!(status, Status::new(Code::InvalidArgument, message));
    assert_eq!(served(answer(&cache, type_url::ENDPOINT, &["*"], &Version::default())).1, ["a", "b"]);
}

#[test]
fn a_request_beyond_a_limit_is_refused() {
    let limits = server::Limits { names_per_type: 2, name_bytes: 4, version_bytes: 3, ..server::Limits::default() };
    let config = server::Config::ads().with_limits(limits);
    let refused = |names: &[&str], version: &str| {
        let request = request(type_url::ENDPOINT, names, &version.into());
        Question::new(&config, request).map(|_| ()).map_err(|status| status.message)
    };
    let of = type_url::ENDPOINT;
    assert_eq!(refused(&["a", "b", "a"], "123"), Ok(()));
    assert_eq!(refused(&["a", "b", "c"], ""), Err(format!("3 subscribed names of {of}, limit 2")));
    assert_eq!(refused(&["abcde"], ""), Err(format!("resource name of 5 bytes in a request for {of}, limit 4")));
    assert_eq!(refused(&[""], ""), Err(format!("empty resource name in a request for {of}")));
    assert_eq!(refused(&["a"], "1234"), Err(format!("version of 4 bytes in a message for {of}, limit 3")));
    let config = server::Config::ads().with_node_required();
    let request = sotw::Request::new(type_url::CLUSTER);
    let status = Question::new(&config, request).expect_err("no node");
    assert_eq!(status.message, "the first request on a stream must carry a node with an id");
}

/// R-REST-35, R-REST-36, R-REST-41.
#[test]
fn a_held_poll_ends_with_a_change_of_its_names_or_when_the_hold_is_over() {
    let of = type_url::ENDPOINT;
    let mut cache = store(of, &["a", "b"]);
    let hold = Duration::from_millis(1800);
    let held = |cache: &Cache, names: &[&str]| {
        let (version, _) = served(answer(cache, of, names, &Version::default()));
        Held::new(question(of, names, &version), NOW, hold)
    };
    let (mut a, mut b, mut gone) = (held(&cache, &["a"]), held(&cache, &["b"]), held(&cache, &["a"]));
    for poll in [&mut a, &mut b, &mut gone] {
        assert_eq!((poll.poll(NOW, &cache), poll.poll_timeout()), (None, at(1800)));
    }
    drop(gone);
    put(&mut cache, of, "a", "2");
    assert_eq!(b.poll(at(1), &cache), None, "another name");
    assert_eq!(served(a.poll(at(1), &cache).expect("its name")).1, ["a"]);
    cache.remove(&of.into(), "b");
    assert_eq!(served(b.clone().poll(at(2), &cache).expect("a removal")).1.len(), 0);
    put(&mut cache, of, "b", "1");
    assert_eq!(b.poll(at(1799), &cache), None, "as it was");
    assert_eq!(b.poll(at(1800), &cache), Some(Reply::NotModified));
    let mut first = Held::new(question(of, &["c"], &Version::default()), NOW, hold);
    assert_eq!(served(first.poll(NOW, &cache).expect("a first poll")).1.len(), 0, "R-REST-33");
    let mut short = Held::new(question(of, &["b"], b.question().version()), NOW, Duration::ZERO);
    assert_eq!(short.poll(NOW, &cache), Some(Reply::NotModified));
}

/// R-REST-33: a poll is held while its type or a name is not known.
#[test]
fn a_poll_for_an_unknown_type_is_held() {
    let of = TypeUrl::from(type_url::ENDPOINT);
    let mut cache = Cache::unknown(1);
    let mut held = Held::new(question(of.as_str(), &["a"], &Version::default()), NOW, Duration::from_secs(1));
    assert_eq!(held.poll(NOW, &cache), None);
    assert_eq!(held.clone().poll(at(1000), &cache), Some(Reply::Unknown));
    cache.set_known(&of);
    assert_eq!(served(held.poll(at(500), &cache).expect("it is known")).1.len(), 0);
}

/// R-REST-37, L-04.
#[test]
fn a_hold_ends_before_the_time_out_of_the_client() {
    let hold = |millis| poll::hold(Duration::from_millis(millis)).as_millis();
    assert_eq!([2000, 1000, 400, 50, 20, 0].map(hold), [1800, 900, 350, 0, 0, 0]);
}

fn rejecting(of: &str, names: &[&str], version: &Version, offers: &mut Offers) -> Question {
    let error = Some(Status::new(Code::InvalidArgument, "no"));
    let request = sotw::Request { error, ..request(of, names, version) };
    let mut question = Question::new(&server::Config::ads(), request).expect("within the limits");
    offers.recall(&mut question);
    question
}

/// R-REST-38.
#[test]
fn a_rejected_version_is_not_sent_again_until_the_content_changes() {
    let of = type_url::CLUSTER;
    let mut cache = store(of, &["a"]);
    let (old, _) = served(answer(&cache, of, &[], &Version::default()));
    put(&mut cache, of, "a", "2");
    let mut offers = Offers::new(2);
    let asked = question(of, &[], &old);
    let Reply::Response(response) = asked.answer(&cache) else { panic!("no response") };
    offers.note("n", &asked, &response);
    assert_eq!(rejecting(of, &[], &old, &mut offers).answer(&cache), Reply::NotModified);
    assert_eq!(served(asked.answer(&cache)).1, ["a"], "one that does not say so is sent it again");
    assert_eq!(served(rejecting(of, &["a"], &old, &mut offers).answer(&cache)).1, ["a"], "it was not sent this");
    let mut held = Held::new(rejecting(of, &[], &old, &mut offers), NOW, DELAY);
    assert_eq!(held.poll(NOW, &cache), None);
    put(&mut cache, of, "a", "3");
    let fixed = rejecting(of, &[], &old, &mut offers).answer(&cache);
    assert_eq!(served(fixed).1, ["a"], "a change between the response and its rejection is not lost");
    assert_eq!(served(held.poll(at(1), &cache).expect("a change")).1, ["a"]);
    put(&mut cache, of, "a", "1");
    assert_eq!(served(rejecting(of, &[], &old, &mut offers).answer(&cache)).1, ["a"], "part of 2 may be applied");

    // A response to a poll with the same rejection may be lost: it is sent again, and less and less often.
    put(&mut cache, of, "a", "5");
    let asked = rejecting(of, &[], &old, &mut offers);
    let Reply::Response(response) = asked.answer(&cache) else { panic!("no response") };
    offers.note("n", &asked, &response);
    let again =
        |offers: &mut Offers, cache: &Cache| rejecting(of, &[], &old, offers).answer(cache) != Reply::NotModified;
    let sent: Vec<bool> = (1..=9).map(|_| again(&mut offers, &cache)).collect();
    assert_eq!(sent, [true, true, false, true, false, false, false, true, false]);
    // Noting the same response again changes nothing: the doubts go on.
    offers.note("n", &asked, &response);
    let sent: Vec<bool> = (10..=16).map(|_| again(&mut offers, &cache)).collect();
    assert_eq!(sent, [false, false, false, false, false, false, true]);
    // A response to a poll with another rejection, or with none, begins anew.
    offers.note("n", &question(of, &[], &old), &response);
    offers.note("n", &asked, &response);
    assert!(again(&mut offers, &cache), "the first doubt");
    let error = Some(Status::new(Code::InvalidArgument, "another reason"));
    let request = sotw::Request { error, ..request(of, &[], &old) };
    let mut other = Question::new(&server::Config::ads(), request).expect("within the limits");
    offers.recall(&mut other);
    assert_eq!(other.answer(&cache), Reply::NotModified, "it was not lost");
    put(&mut cache, of, "a", "1");

    // Without a memory, the version in the request counts.
    let mut nothing = Offers::new(0);
    assert_eq!(rejecting(of, &[], &old, &mut nothing).answer(&cache), Reply::NotModified);
    put(&mut cache, of, "a", "4");
    assert_eq!(served(rejecting(of, &[], &old, &mut nothing).answer(&cache)).1, ["a"]);
    // A limited memory forgets the oldest.
    for name in ["x", "y", "z"] {
        let asked = question(of, &[name], &Version::default());
        let Reply::Response(response) = asked.answer(&cache) else { panic!("no response") };
        offers.note("n", &asked, &response);
    }
    assert_eq!(served(rejecting(of, &["x"], &old, &mut offers).answer(&cache)).1.len(), 0, "x is forgotten");
    assert_eq!(rejecting(of, &["z"], &old, &mut offers).answer(&cache), Reply::NotModified);
    assert_eq!(rejecting(of, &["y"], &old, &mut offers).answer(&cache), Reply::NotModified, "as many as the limit");
}

/// The wait for the first resources begins with the first poll for them; names that are subscribed later do not delay
/// its end, and have a wait of their own once it is over.
#[test]
fn the_wait_for_first_resources_begins_once() {
    let wait = Some(Duration::from_secs(5));
    let config =
        config().with_initial_fetch_timeout(wait).with_request_timeout(Duration::from_secs(2)).expect("not zero");
    let mut poll = poll_of(config, type_url::ENDPOINT, &["a"]);
    let asked = poll.poll_transmit(NOW).expect("a request").asked;
    assert_eq!(poll.poll_timeout(), Some(at(2000)), "the request's");
    poll.handle_answer(at(1000), asked, Answer::NotModified, 0).expect("the answer");
    poll.subscribe(["b"]).expect("a name");
    poll.handle_timeout(at(2000), 0);
    let asked = poll.poll_transmit(at(4000)).expect("a request").asked;
    assert_eq!(poll.poll_timeout(), Some(at(5000)), "that of the first poll");
    let response = response(type_url::ENDPOINT, "1", vec![sotw::Item::Bare(any(type_url::ENDPOINT, "a", "1"))]);
    poll.handle_answer(at(4500), asked, Answer::Response(response), 0).expect("the answer");
    let update = std::iter::from_fn(|| poll.poll_action()).find_map(|action| match action {
        Action::Client(client::Action::Apply(update)) => Some(update),
        _ => None,
    });
    poll.handle_verdict(at(4500), update.expect("an update").accept()).expect("it is out");
    poll.subscribe(["c"]).expect("a name");
    poll.handle_timeout(at(5500), 0);
    assert!(poll.poll_transmit(at(6000)).is_some());
    assert_eq!(poll.poll_timeout(), Some(at(8000)));
    poll.handle_timeout(at(8000), 0);
    poll.handle_timeout(at(11_000), 0);
    let timed_out = std::iter::from_fn(|| poll.poll_action()).find_map(|action| match action {
        Action::TimedOut { names } => Some(names),
        _ => None,
    });
    assert_eq!(timed_out, Some(vec!["c".into()]), "the response said that b does not exist");
    assert_eq!(poll.check_invariants(), Ok(()));
}

/// A TTL has to be renewed, and "not modified" does not renew it.
#[test]
fn a_resource_with_a_ttl_is_sent_again_to_clients_that_support_ttls() {
    let of = type_url::ENDPOINT;
    let mut cache = store(of, &["b"]);
    let ttl = Resource::new("a", any(of, "a", "").value).with_ttl(DELAY);
    cache.insert(&of.into(), ttl);
    let (version, _) = served(answer(&cache, of, &["a"], &Version::default()));
    assert_eq!(answer(&cache, of, &["a"], &version), Reply::NotModified, "this node knows no TTL");
    let node = client::Config::new(Node::new("n"));
    let mut poll = poll_of(Config::new(node, DELAY).expect("a delay"), of, &["a"]);
    let (mut asked, _) = ask(&mut poll, NOW);
    asked.version = version;
    let Reply::Response(response) = poll::answer(&cache, &server::Config::ads(), asked.clone()) else {
        panic!("nothing renews the TTL")
    };
    let message = sotw::Response::from(&response);
    assert!(matches!(&message.resources[..], [sotw::Item::Wrapped(resource)] if resource.ttl == Some(DELAY)));
    let (version, _) = served(answer(&cache, of, &["b"], &Version::default()));
    let other = sotw::Request { names: vec!["b".into()], version, ..asked };
    assert_eq!(poll::answer(&cache, &server::Config::ads(), other), Reply::NotModified, "b has none");
}

/// The two sides together.
#[test]
fn a_poll_receives_the_changes_of_a_source() {
    let of = type_url::ENDPOINT;
    let mut cache = store(of, &["a"]);
    let mut poll = endpoints(&["a"]);
    let mut now = NOW;
    let mut round = |poll: &mut Poll, cache: &Cache| {
        let post = poll.poll_transmit(now).expect("a request is due");
        let answer = match poll::answer(cache, &server::Config::ads(), post.request) {
            Reply::Response(response) => Answer::Response((&response).into()),
            Reply::NotModified => Answer::NotModified,
            other => Answer::Failed(format!("{other:?}")),
        };
        poll.handle_answer(now, post.asked, answer, 0).expect("it was asked");
        let action = poll.poll_action();
        if let Some(Action::Client(client::Action::Apply(update))) = &action {
            poll.handle_verdict(now, update.clone().accept()).expect("it is out");
        }
        now = next(poll);
        action.is_some()
    };
    assert!(round(&mut poll, &cache));
    assert!(!round(&mut poll, &cache));
    poll.subscribe(["b"]).expect("a name");
    assert!(round(&mut poll, &cache), "b does not exist");
    assert!(!round(&mut poll, &cache));
    put(&mut cache, of, "b", "1");
    assert!(round(&mut poll, &cache));
    put(&mut cache, of, "c", "1");
    assert!(!round(&mut poll, &cache));
    let client: &client::Client<Sotw> = poll.client();
    assert!(client.states().all(|(_, _, state)| state.status == ResourceStatus::Acked));
}

/// R-REST-15: unsubscribing a name that is not subscribed changes nothing: equal content is still no news.
#[test]
fn unsubscribing_from_a_name_that_is_not_subscribed_has_no_effect() {
    for mut poll in [clusters(), poll_of(config(), type_url::CLUSTER, &["a"])] {
        exchange(&mut poll, NOW, cds("1", &["a"]));
        accept(&mut poll, NOW);
        poll.unsubscribe(["b"]);
        let now = next(&mut poll);
        assert_eq!(exchange(&mut poll, now, cds("1", &["a"])).version.as_str(), "1");
        assert_eq!(poll.poll_action(), None, "the content is that of before");
    }
}

/// R-REST-18, R-REST-32: the request omits the version while the client may lack some of its resources: after a name
/// was unsubscribed and subscribed again, or the wildcard was unsubscribed.
#[test]
fn the_version_is_omitted_while_a_subscribed_resource_may_be_missing() {
    let mut poll = endpoints(&["a", "b"]);
    exchange(&mut poll, NOW, eds("1", &["a", "b"]));
    accept(&mut poll, NOW);
    poll.unsubscribe(["b"]);
    let now = next(&mut poll);
    let (request, asked) = ask(&mut poll, now);
    assert_eq!((request.names, request.version.as_str()), (vec!["a".into()], "1"));
    poll.handle_answer(now, asked, Answer::NotModified, 0).expect("it was asked");
    poll.subscribe(["b"]).expect("a name");
    let now = next(&mut poll);
    assert_eq!(ask(&mut poll, now).0.version.as_str(), "", "b is here anew");

    let mut poll = poll_of(config(), type_url::CLUSTER, &["*", "a"]);
    exchange(&mut poll, NOW, cds("1", &["a", "b"]));
    accept(&mut poll, NOW);
    poll.unsubscribe(["*"]);
    let now = next(&mut poll);
    let request = ask(&mut poll, now).0;
    assert_eq!((request.names, request.version.as_str()), (vec!["a".into()], ""));
}

/// A request without a node, or with a node without an id, is refused only if the server demands a node.
#[test]
fn a_request_without_a_node_is_refused_only_if_a_node_is_required() {
    let plain = server::Config::ads();
    let strict = server::Config::ads().with_node_required();
    let of = |node: Option<Node>| sotw::Request {
        node: node.map(Into::into),
        ..request(type_url::ENDPOINT, &["a"], &Version::default())
    };
    for node in [None, Some(Node::default()), Some(Node::new("n"))] {
        let named = node.as_ref().is_some_and(|node| !node.id.is_empty());
        assert!(Question::new(&plain, of(node.clone())).is_ok());
        let refused = Question::new(&strict, of(node)).err();
        assert_eq!(refused, (!named).then(|| PeerMisbehaved::MissingNode.into()));
    }
}

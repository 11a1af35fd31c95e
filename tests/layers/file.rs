//! Files, rule by rule.

use core::time::Duration;

use xds_machine::client::{self, Rejection, ResourceStatus, Update};
use xds_machine::file::{Action, Counters, Files};
use xds_machine::message::{Any, Node, Resource as Wrapper, sotw};
use xds_machine::{Instant, Misuse, type_url};

const NOW: Instant = Instant::EPOCH;

fn files(of: &str, names: &[&str]) -> Files {
    let mut files = Files::new(client::Config::new(Node::new("n")), of);
    files.subscribe(names.iter().copied()).expect("names");
    files
}

fn any(of: &str, name: &str, content: &str) -> Any {
    let mut value = vec![0x0a, u8::try_from(name.len()).expect("short")];
    value.extend(name.bytes());
    value.extend([0x12, u8::try_from(content.len()).expect("short")]);
    value.extend(content.bytes());
    Any { type_url: of.into(), value: value.into() }
}

fn content(of: &str, version: &str, items: Vec<sotw::Item>) -> Result<sotw::Response, String> {
    Ok(sotw::Response {
        version: version.into(),
        resources: items,
        type_url: of.into(),
        nonce: "".into(),
        control_plane: String::new(),
        errors: vec![],
    })
}

/// Returns a file with these resources, whose content is the version.
fn good(of: &str, version: &str, names: &[&str]) -> Result<sotw::Response, String> {
    content(of, version, names.iter().map(|name| sotw::Item::Bare(any(of, name, version))).collect())
}

fn cds(version: &str, names: &[&str]) -> Result<sotw::Response, String> {
    good(type_url::CLUSTER, version, names)
}

fn read(files: &mut Files, content: Result<sotw::Response, String>) {
    assert_eq!(files.poll_action(), Some(Action::Read));
    files.handle_content(NOW, content).expect("it was asked for");
    assert_eq!(files.check_invariants(), Ok(()));
}

fn moved(files: &mut Files, content: Result<sotw::Response, String>) {
    files.handle_moved();
    read(files, content);
}

fn update(files: &mut Files) -> Update {
    match files.poll_action() {
        Some(Action::Client(client::Action::Apply(update))) => update,
        other => panic!("no update: {other:?}"),
    }
}

fn accept(files: &mut Files) -> Vec<String> {
    let update = update(files);
    let names = update.resources().map(|resource| resource.name().to_string()).collect();
    files.handle_verdict(NOW, update.accept()).expect("it is out");
    assert_eq!(files.check_invariants(), Ok(()));
    names
}

fn rejected(files: &mut Files) -> String {
    match files.poll_action() {
        Some(Action::Client(client::Action::Rejected { faults, .. })) => faults[0].reason.clone(),
        other => panic!("nothing is rejected: {other:?}"),
    }
}

fn held(files: &Files) -> Vec<String> {
    let states = files.client().resources(files.type_url()).states();
    let held = states.filter(|(_, state)| state.version.is_some());
    held.map(|(name, state)| format!("{name}@{}", state.version.expect("held").as_str())).collect()
}

fn counts(files: &Files) -> [u64; 4] {
    let Counters { attempts, successes, rejected, failures, .. } = files.counters();
    [attempts, successes, rejected, failures]
}

/// R-FS-01, R-FS-02, R-FS-03, L-10, L-11: the driver decides what counts as a move.
#[test]
fn a_file_is_read_at_the_start_and_at_each_move() {
    let mut files = Files::new(client::Config::new(Node::new("n")), type_url::CLUSTER);
    assert_eq!(files.poll_action(), None);
    files.handle_moved();
    assert_eq!(files.poll_action(), None, "nothing is wanted");
    files.subscribe(["*"]).expect("a name");
    read(&mut files, cds("1", &["a"]));
    assert_eq!((accept(&mut files), files.poll_action()), (vec!["a".to_string()], None));
    moved(&mut files, cds("2", &["a"]));
    assert_eq!(accept(&mut files), ["a"]);
    files.handle_content(NOW, cds("3", &["b"])).expect("it is ignored");
    assert_eq!((files.poll_action(), held(&files)), (None, vec!["a@2".to_string()]));
}

/// R-FS-04.
#[test]
fn equal_content_counts_as_a_success_without_an_update() {
    let mut files = files(type_url::CLUSTER, &["*"]);
    read(&mut files, cds("1", &["a"]));
    accept(&mut files);
    moved(&mut files, cds("1", &["a"]));
    assert_eq!((files.poll_action(), counts(&files)), (None, [2, 2, 0, 0]));
    let item = sotw::Item::Bare(any(type_url::CLUSTER, "a", "1"));
    moved(&mut files, content(type_url::CLUSTER, "", vec![item.clone()]));
    assert_eq!((files.poll_action(), held(&files)), (None, vec!["a@".to_string()]), "a version only informs");
    moved(&mut files, content(type_url::CLUSTER, "0", vec![item]));
    assert_eq!((files.poll_action(), held(&files)), (None, vec!["a@0".to_string()]));
}

/// R-FS-06, R-FS-07, R-FS-08.
#[test]
fn a_failed_or_rejected_file_is_counted_and_keeps_the_held_resources() {
    let mut files = files(type_url::CLUSTER, &["*"]);
    read(&mut files, Err("no such file".into()));
    assert_eq!((rejected(&mut files), counts(&files)), ("no such file".into(), [1, 0, 0, 1]));
    assert_eq!(files.poll_timeout(), None, "R-FS-08: there is nothing to wait for");
    moved(&mut files, cds("3", &["a", "b"]));
    accept(&mut files);
    moved(&mut files, Err("expected value at line 1 column 1".into()));
    assert_eq!(rejected(&mut files), "expected value at line 1 column 1");
    moved(&mut files, cds("4", &["a", "a"]));
    assert_eq!(rejected(&mut files), "resource a is in the response twice");
    assert_eq!(files.poll_action(), None);
    moved(&mut files, good(type_url::LISTENER, "4", &[]));
    assert_eq!(rejected(&mut files), format!("the response has the type {}", type_url::LISTENER));
    moved(&mut files, cds("5", &["a", "c"]));
    let verdict = update(&mut files).reject_all("no");
    files.handle_verdict(NOW, verdict).expect("it is out");
    assert_eq!(counts(&files), [6, 1, 3, 2]);
    assert_eq!(held(&files), ["a@3", "b@3"]);
    moved(&mut files, cds("3", &["a", "b"]));
    assert_eq!((accept(&mut files), counts(&files)), (vec!["a".into(), "b".into()], [7, 2, 3, 2]));
}

/// R-FS-09, L-12.
#[test]
fn a_rejected_file_is_read_again_on_retry() {
    let mut files = files(type_url::LISTENER, &["*"]);
    read(&mut files, good(type_url::LISTENER, "1", &["l"]));
    let verdict = update(&mut files).reject([Rejection::new("l", "no cluster c")]);
    files.handle_verdict(NOW, verdict).expect("it is out");
    assert_eq!(files.poll_action(), None, "nothing retries");
    files.retry();
    read(&mut files, good(type_url::LISTENER, "1", &["l"]));
    assert_eq!(accept(&mut files), ["l"]);
}

/// R-FS-10.
#[test]
fn a_partial_type_takes_only_subscribed_resources() {
    let of = type_url::ENDPOINT;
    let mut files = files(of, &["a"]);
    read(&mut files, good(of, "1", &["a", "b"]));
    assert_eq!((accept(&mut files), held(&files)), (vec!["a".to_string()], vec!["a@1".to_string()]));
    files.subscribe(["b", "a"]).expect("names");
    read(&mut files, good(of, "1", &["a", "b"]));
    assert_eq!(accept(&mut files), ["a", "b"]);
    files.subscribe(["a"]).expect("a name");
    assert_eq!(files.poll_action(), None, "it is no news");
    files.unsubscribe(["a", "b"]);
    files.handle_moved();
    assert_eq!(files.poll_action(), None, "nothing is wanted");
}

/// R-FS-11.
#[test]
fn an_absent_resource_is_removed_and_an_absent_file_removes_no_resource() {
    let mut files = files(type_url::CLUSTER, &["*"]);
    read(&mut files, cds("1", &["a", "b"]));
    accept(&mut files);
    moved(&mut files, Err("no such file".into()));
    rejected(&mut files);
    assert_eq!(held(&files), ["a@1", "b@1"]);
    moved(&mut files, cds("2", &[]));
    let update = update(&mut files);
    assert_eq!(update.removed(), ["a", "b"]);
    files.handle_verdict(NOW, update.accept()).expect("it is out");
    assert!(held(&files).is_empty());
}

/// R-FS-13.
#[test]
fn a_wrapped_resource_expires_with_its_ttl() {
    let of = type_url::CLUSTER;
    let mut files = files(of, &["*"]);
    let body = Some(any(of, "a", ""));
    let ttl = Some(Duration::from_secs(1));
    let resource = Wrapper { name: "a".into(), version: "w".into(), aliases: vec![], body, ttl };
    read(&mut files, content("", "1", vec![sotw::Item::Wrapped(Box::new(resource))]));
    accept(&mut files);
    let end = NOW + Duration::from_secs(1);
    assert_eq!(files.poll_timeout(), Some(end));
    files.handle_timeout(end);
    let expired = client::Action::Expired { type_url: of.into(), names: vec!["a".into()] };
    assert_eq!(files.poll_action(), Some(Action::Client(expired)));
}

/// R-FS-15, R-FS-16, L-13.
#[test]
fn moves_during_a_read_or_before_its_verdict_cause_one_more_read() {
    let mut files = files(type_url::CLUSTER, &["*"]);
    assert_eq!(files.poll_action(), Some(Action::Read));
    files.handle_moved();
    files.handle_moved();
    assert_eq!(files.poll_action(), None, "one at a time");
    files.handle_content(NOW, cds("1", &["a"])).expect("it was asked for");
    let first = update(&mut files);
    files.handle_moved();
    assert_eq!(files.poll_action(), None, "it is being judged");
    files.handle_verdict(NOW, first.clone().accept()).expect("it is out");
    read(&mut files, cds("2", &["a"]));
    let refused = files.handle_verdict(NOW, first.accept());
    assert_eq!(refused, Err(Misuse::UnknownUpdate { type_url: type_url::CLUSTER.into() }));
    accept(&mut files);
    assert_eq!((files.poll_action(), counts(&files)), (None, [2, 2, 0, 0]));
    let status = files.client().resources(files.type_url()).state("a").expect("held").status;
    assert_eq!(status, ResourceStatus::Acked);
}

/// A driver's report that the content is unchanged has an effect only while a read is under way.
#[test]
fn an_unchanged_file_counts_as_an_attempt_only() {
    let mut files = files(type_url::CLUSTER, &["*"]);
    read(&mut files, cds("1", &["a"]));
    let first = update(&mut files);
    files.handle_moved();
    files.handle_unchanged();
    assert_eq!(files.poll_action(), None, "the update waits for its verdict, and nothing is read");
    assert_eq!(files.check_invariants(), Ok(()));
    files.handle_verdict(NOW, first.accept()).expect("it is out");
    assert_eq!(files.poll_action(), Some(Action::Read));
    files.handle_moved();
    files.handle_unchanged();
    assert_eq!(files.poll_action(), Some(Action::Read), "the move during the read");
    files.handle_unchanged();
    assert_eq!((files.poll_action(), counts(&files)), (None, [3, 1, 0, 0]));
    assert_eq!(files.check_invariants(), Ok(()));
}

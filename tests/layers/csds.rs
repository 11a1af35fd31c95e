//! The status of clients: what a client has (R-CSDS-01..19), node matchers (R-CSDS-30), and the messages.

use std::time::Duration;

use xds_machine::client::{Action, Client, Config, DataErrors, Rejection, ResourceStatus, Variant};
use xds_machine::csds::{
    self, ClientConfig, Clock, ConfigStatus, Contents, ErrorState, Item, ItemRef, MatcherError, Matchers, NodeMatcher,
    Nodes, Number, Pattern, Request, Response, StringMatcher, StructMatcher, Timestamp, ValueMatcher,
};
use xds_machine::message::{Any, Node, Resource, ResourceError, delta, sotw};
use xds_machine::proto::client_status as wire;
use xds_machine::servers::{Connect, Policy, Servers};
use xds_machine::{Code, Delta, Instant, ResourceName, Sotw, Status, TypeUrl, Version, servers, type_url};

/// The epoch of the machine on the wall clock.
const EPOCH: u64 = 1_700_000_000;

fn at(seconds: u64) -> Instant {
    Instant::from_epoch(Duration::from_secs(seconds))
}

fn clock() -> Clock {
    Clock::new(at(10), Duration::from_secs(EPOCH + 10))
}

fn listeners() -> TypeUrl {
    type_url::LISTENER.into()
}

fn endpoints() -> TypeUrl {
    type_url::ENDPOINT.into()
}

/// Returns the body of a resource: its name, and an unknown field.
fn body(name: &str, content: u8) -> Vec<u8> {
    let mut body = vec![0x0a, name.len() as u8];
    body.extend_from_slice(name.as_bytes());
    body.extend_from_slice(&[0xfa, 0x7f, 1, content]);
    body
}

/// A client of one server, and the contents that are kept for a dump.
struct Pair<V: Variant> {
    client: Client<V>,
    contents: Contents,
    nonces: u64,
}

impl<V: Variant> Pair<V> {
    fn new(config: Config, type_url: &TypeUrl, names: &[&str]) -> Self {
        let mut client = Client::new(config);
        client.resources_mut(type_url).subscribe(names.iter().copied()).expect("names");
        let mut pair = Self { client, contents: Contents::new(), nonces: 0 };
        pair.open(0);
        pair
    }

    fn open(&mut self, now: u64) {
        self.client.handle_open();
        self.send(now);
    }

    fn send(&mut self, now: u64) {
        while let Some(transmit) = self.client.poll_transmit() {
            self.client.handle_sent(at(now), transmit.sent);
        }
    }

    /// Gives each update its verdict: resources of these names are rejected.
    fn judge(&mut self, now: u64, bad: &[&str]) {
        while let Some(action) = self.client.poll_action() {
            let Action::Apply(update) = action else { continue };
            self.contents.handle_update(&update);
            let names = update.resources().map(|resource| resource.name().clone());
            let rejected: Vec<ResourceName> = names.filter(|name| bad.contains(&name.as_str())).collect();
            let verdict = update.reject(rejected.into_iter().map(|name| Rejection::new(name, "bad")));
            let (type_url, rejections) = (verdict.type_url().clone(), verdict.rejections().to_vec());
            self.client.handle_verdict(at(now), verdict).expect("it is out");
            let client = &self.client;
            self.contents.handle_verdict(0, &type_url, &rejections, |of, name| {
                client.resources(of).state(name).is_some_and(|state| state.version.is_some())
            });
        }
        self.send(now);
        assert_eq!(self.client.check_invariants(), Ok(()));
    }

    fn dump(&self) -> Vec<Item> {
        owned(csds::dump(self.client.states(), &clock(), Some(&self.contents)))
    }

    fn shown(&self) -> Vec<String> {
        self.dump().iter().map(shown).collect()
    }

    fn nonce(&mut self) -> String {
        self.nonces += 1;
        self.nonces.to_string()
    }
}

impl Pair<Sotw> {
    fn respond(&mut self, now: u64, type_url: &TypeUrl, version: &str, resources: &[(&str, u8)], bad: &[&str]) {
        self.respond_with(now, type_url, version, resources, Vec::new(), bad);
    }

    fn respond_with(
        &mut self,
        now: u64,
        type_url: &TypeUrl,
        version: &str,
        resources: &[(&str, u8)],
        errors: Vec<ResourceError>,
        bad: &[&str],
    ) {
        let any = |(name, content): &(&str, u8)| {
            sotw::Item::Bare(Any { type_url: type_url.clone(), value: body(name, *content).into() })
        };
        let response = sotw::Response {
            version: version.into(),
            resources: resources.iter().map(any).collect(),
            type_url: type_url.clone(),
            nonce: self.nonce().into(),
            control_plane: String::new(),
            errors,
        };
        self.client.handle_response(at(now), response).expect("a response");
        self.judge(now, bad);
    }
}

impl Pair<Delta> {
    fn respond(&mut self, now: u64, resources: &[(&str, &str)], removed: &[&str], bad: &[&str]) {
        let resource = |(name, version): &(&str, &str)| Resource {
            name: (*name).into(),
            version: (*version).into(),
            aliases: Vec::new(),
            body: Some(Any { type_url: endpoints(), value: body(name, 0).into() }),
            ttl: None,
        };
        let response = delta::Response {
            system_version: format!("system-{now}").into(),
            resources: resources.iter().map(resource).collect(),
            removed: removed.iter().map(|name| (*name).into()).collect(),
            type_url: endpoints(),
            nonce: self.nonce().into(),
            control_plane: String::new(),
            errors: Vec::new(),
        };
        self.client.handle_response(at(now), response).expect("a response");
        self.judge(now, bad);
    }
}

fn config() -> Config {
    Config::new(Node::new("n"))
}

fn error(name: &str, code: Code, message: &str) -> ResourceError {
    ResourceError { name: name.into(), status: Some(Status::new(code, message)) }
}

fn owned<'a>(items: impl Iterator<Item = ItemRef<'a>>) -> Vec<Item> {
    items.map(|item| item.to_item()).collect()
}

/// Shows an item in a few words: name, status, what is held (version, time, body), the error (words, version, time).
fn shown(item: &Item) -> String {
    let time = |time: Timestamp| (time.seconds - EPOCH as i64).to_string();
    let or_none = |text: Option<String>| text.unwrap_or("-".into());
    let held = item.version.as_ref().map(|version| {
        let body = item.contents.as_ref().map(|body| body[body.len() - 1].to_string());
        format!("v{version} @{} body {}", or_none(item.updated.map(time)), or_none(body))
    });
    let error = item
        .error
        .as_deref()
        .map(|ErrorState { details, version, at }| format!(" error {details:?} v{version} @{}", or_none(at.map(time))));
    let status = item.client_status.map(|status| status.to_string());
    let held = held.unwrap_or_else(|| {
        assert_eq!((item.updated, &item.contents), (None, &None), "nothing is held");
        "-".into()
    });
    format!("{} {} {held}{}", item.name, or_none(status), error.unwrap_or_default())
}

/// R-CSDS-05: no response has arrived yet, with a stream and without; R-CSDS-07: no time in the year 1, nor in 1970.
#[test]
fn a_requested_item_has_no_version_time_content_or_error() {
    let mut pair = Pair::<Sotw>::new(config(), &listeners(), &["a"]);
    assert_eq!(pair.shown(), ["a REQUESTED -"]);
    pair.client.handle_close();
    assert_eq!(pair.shown(), ["a REQUESTED -"]);
    let item = &pair.dump()[0];
    assert_eq!((item.updated, item.config_status, &item.error), (None, None, &None));
}

/// R-CSDS-05: accepted; R-CSDS-06: unchanged content gets the version and time of the later response that has it; and
/// R-CSDS-11: with unknown fields.
#[test]
fn an_acked_item_has_the_held_content_version_and_update_time() {
    let mut pair = Pair::<Sotw>::new(config(), &listeners(), &["a"]);
    pair.respond(3, &listeners(), "1", &[("a", 7)], &[]);
    assert_eq!(pair.shown(), ["a ACKED v1 @3 body 7"]);
    assert_eq!(pair.dump()[0].contents.as_deref(), Some(&body("a", 7)[..]));
    pair.respond(5, &listeners(), "3", &[("a", 7)], &[]);
    assert_eq!(pair.shown(), ["a ACKED v3 @5 body 7"]);
}

/// R-CSDS-06: the version is the resource's, not that of the type's last response.
#[test]
fn the_version_of_an_item_is_that_of_its_resource() {
    let mut pair = Pair::<Sotw>::new(config(), &endpoints(), &["e1", "e2"]);
    pair.respond(3, &endpoints(), "3", &[("e1", 1)], &[]);
    pair.respond(4, &endpoints(), "4", &[("e2", 2)], &[]);
    assert_eq!(pair.shown(), ["e1 ACKED v3 @3 body 1", "e2 ACKED v4 @4 body 2"]);
    let mut pair = Pair::<Delta>::new(config(), &endpoints(), &["e1", "e2"]);
    pair.respond(3, &[("e1", "x")], &[], &[]);
    pair.respond(4, &[("e2", "y")], &[], &[]);
    assert_eq!(pair.shown(), ["e1 ACKED vx @3 body 0", "e2 ACKED vy @4 body 0"]);
}

/// R-CSDS-05, NACKED: the held content stays; R-CSDS-09: the next accepted content ends the error.
#[test]
fn a_nacked_item_has_the_held_content_and_the_error() {
    let mut pair = Pair::<Sotw>::new(config(), &listeners(), &["a"]);
    pair.respond(3, &listeners(), "1", &[("a", 1)], &[]);
    pair.respond(4, &listeners(), "2", &[("a", 2)], &["a"]);
    assert_eq!(pair.shown(), [r#"a NACKED v1 @3 body 1 error "bad" v2 @4"#]);
    assert_eq!(pair.dump()[0].cache_state(), Some("nacked_but_cached"));
    pair.respond(5, &listeners(), "3", &[("a", 3)], &[]);
    assert_eq!(pair.shown(), ["a ACKED v3 @5 body 3"]);
}

/// R-CSDS-05, NACKED: the first content is bad, or the held content is dropped with the rejection.
#[test]
fn a_nacked_item_without_held_content_has_only_the_error() {
    let mut pair = Pair::<Sotw>::new(config(), &listeners(), &["a"]);
    pair.respond(3, &listeners(), "1", &[("a", 1)], &["a"]);
    assert_eq!(pair.shown(), [r#"a NACKED - error "bad" v1 @3"#]);
    assert_eq!(pair.dump()[0].cache_state(), Some("nacked"));

    let mut pair = Pair::<Sotw>::new(config().with_data_errors(DataErrors::Drop), &listeners(), &["a"]);
    pair.respond(3, &listeners(), "1", &[("a", 1)], &[]);
    pair.respond(4, &listeners(), "2", &[("a", 2)], &["a"]);
    assert_eq!(pair.shown(), [r#"a NACKED - error "bad" v2 @4"#]);
}

/// R-CSDS-08: of a response that is rejected in part, the good resources are held at its version.
#[test]
fn only_rejected_resources_of_a_response_are_nacked() {
    for of in [listeners(), endpoints()] {
        let mut pair = Pair::<Sotw>::new(config(), &of, &["e1", "e2"]);
        pair.respond(3, &of, "3", &[("e1", 1), ("e2", 1)], &[]);
        pair.respond(4, &of, "4", &[("e1", 2), ("e2", 2)], &["e1"]);
        assert_eq!(pair.shown(), [r#"e1 NACKED v3 @3 body 1 error "bad" v4 @4"#, "e2 ACKED v4 @4 body 2"]);
    }
    let mut pair = Pair::<Delta>::new(config(), &endpoints(), &["e1", "e2"]);
    pair.respond(4, &[("e1", "a"), ("e2", "b")], &[], &["e1"]);
    assert_eq!(pair.shown(), [r#"e1 NACKED - error "bad" va @4"#, "e2 ACKED vb @4 body 0"]);
}

/// R-CSDS-05, DOES_NOT_EXIST by deletion; L-30: the item has an error, with the version and time of the response that
/// lacked the resource.
#[test]
fn a_removed_and_dropped_resource_has_status_does_not_exist_and_an_error() {
    let mut pair = Pair::<Sotw>::new(config(), &listeners(), &["a", "b"]);
    pair.respond(3, &listeners(), "1", &[("a", 1), ("b", 1)], &[]);
    pair.respond(4, &listeners(), "2", &[("b", 1)], &[]);
    assert_eq!(pair.shown(), [r#"a DOES_NOT_EXIST - error "does not exist" v2 @4"#, "b ACKED v2 @4 body 1"]);
    assert_eq!(pair.dump()[0].cache_state(), Some("does_not_exist"));
    pair.respond(5, &listeners(), "3", &[("a", 5), ("b", 1)], &[]);
    assert_eq!(pair.shown()[0], "a ACKED v3 @5 body 5");

    let mut pair = Pair::<Delta>::new(config(), &endpoints(), &["a", "b"]);
    pair.respond(3, &[("a", "1")], &["b"], &[]);
    assert_eq!(pair.shown()[1], r#"b DOES_NOT_EXIST - error "does not exist" vsystem-3 @3"#);
    pair.respond(4, &[], &["a"], &[]);
    assert_eq!(pair.shown()[0], r#"a DOES_NOT_EXIST - error "does not exist" vsystem-4 @4"#);
    pair.client.resources_mut(&endpoints()).refetch(["a"]);
    assert_eq!(pair.shown()[0], "a REQUESTED -");
    assert_eq!(pair.client.check_invariants(), Ok(()));
}

/// R-CSDS-05, DOES_NOT_EXIST by deletion, kept; L-29: the dump shows the deletion, though the content is in use.
#[test]
fn a_removed_but_kept_resource_has_status_does_not_exist_and_its_content() {
    let mut pair = Pair::<Sotw>::new(config().with_data_errors(DataErrors::Keep), &listeners(), &["a", "b"]);
    pair.respond(3, &listeners(), "1", &[("a", 1), ("b", 1)], &[]);
    pair.respond(4, &listeners(), "2", &[("b", 1)], &[]);
    let kept = r#"a DOES_NOT_EXIST v1 @3 body 1 error "does not exist" v2 @4"#;
    assert_eq!(pair.shown(), [kept, "b ACKED v2 @4 body 1"]);
    assert_eq!(pair.dump()[0].cache_state(), Some("does_not_exist_but_cached"));
    pair.respond(5, &listeners(), "3", &[("b", 1)], &[]);
    assert_eq!(pair.shown()[1], "b ACKED v3 @5 body 1");
    assert!(pair.shown()[0].starts_with("a DOES_NOT_EXIST v1 @3 body 1"), "not the version of the type");
}

/// R-CSDS-05, DOES_NOT_EXIST by the timer: no response reported the absence.
#[test]
fn an_existence_timeout_yields_does_not_exist_without_version_or_time() {
    let mut pair = Pair::<Sotw>::new(config(), &endpoints(), &["a"]);
    pair.client.handle_timeout(at(15));
    assert_eq!(pair.shown(), [r#"a DOES_NOT_EXIST - error "does not exist" v @-"#]);
}

/// R-CSDS-05, TIMEOUT.
#[test]
fn a_transient_timeout_yields_an_error_with_a_message_only() {
    let mut pair = Pair::<Sotw>::new(config().with_transient_timeout(), &endpoints(), &["a"]);
    pair.client.handle_timeout(at(15));
    assert_eq!(pair.shown(), [r#"a TIMEOUT - error "the resource did not come in time" v @-"#]);
    assert_eq!(pair.dump()[0].cache_state(), Some("timeout"));
}

/// R-CSDS-05, RECEIVED_ERROR, with content and without.
#[test]
fn a_received_error_is_shown_until_the_resource_is_accepted() {
    for (data_errors, held) in [(DataErrors::Keep, "v1 @3 body 1"), (DataErrors::Drop, "-")] {
        let mut pair = Pair::<Sotw>::new(config().with_data_errors(data_errors), &endpoints(), &["a", "b"]);
        pair.respond(3, &endpoints(), "1", &[("a", 1)], &[]);
        let errors = vec![error("a", Code::PermissionDenied, "forbidden"), error("b", Code::Unavailable, "later")];
        pair.respond_with(4, &endpoints(), "2", &[], errors, &[]);
        let a = format!(r#"a RECEIVED_ERROR {held} error "forbidden" v2 @4"#);
        assert_eq!(pair.shown(), [&a, r#"b RECEIVED_ERROR - error "later" v2 @4"#]);
        let cached = if held == "-" { "received_error" } else { "received_error_but_cached" };
        assert_eq!(pair.dump()[0].cache_state(), Some(cached));
        pair.respond(5, &endpoints(), "3", &[("a", 1), ("b", 2)], &[]);
        assert_eq!(pair.shown(), ["a ACKED v3 @5 body 1", "b ACKED v3 @5 body 2"]);
    }
}

/// R-CSDS-10: the end of a stream changes nothing, nor does the next one.
#[test]
fn a_dump_is_the_same_after_the_stream_ends_and_reopens() {
    let mut pair = Pair::<Sotw>::new(config(), &listeners(), &["a", "b", "c"]);
    pair.respond(3, &listeners(), "1", &[("a", 1), ("b", 1)], &["b"]);
    let before = pair.dump();
    pair.client.handle_close();
    assert_eq!(pair.dump(), before);
    pair.open(9);
    assert_eq!(pair.dump(), before);
}

/// R-CSDS-04: an unsubscribed name is gone at once; the wildcard is no item, but each resource that it brings is.
#[test]
fn items_are_the_subscribed_names_and_the_resources_of_the_wildcard() {
    let mut pair = Pair::<Sotw>::new(config(), &listeners(), &["a", "b"]);
    pair.respond(3, &listeners(), "1", &[("a", 1), ("b", 1)], &[]);
    pair.client.resources_mut(&listeners()).unsubscribe(["b"]);
    assert_eq!(pair.shown(), ["a ACKED v1 @3 body 1"]);

    let mut pair = Pair::<Sotw>::new(config(), &listeners(), &["*"]);
    assert_eq!(pair.shown(), [""; 0]);
    pair.respond(3, &listeners(), "1", &[("a", 1)], &[]);
    assert_eq!(pair.shown(), ["a ACKED v1 @3 body 1"]);
    pair.respond(4, &listeners(), "2", &[], &[]);
    assert_eq!(pair.shown(), [""; 0]);

    let name = "xdstp://a/envoy.config.listener.v3.Listener/x?k=v";
    let pair = Pair::<Sotw>::new(config(), &listeners(), &[name]);
    assert_eq!(pair.shown(), [format!("{name} REQUESTED -")], "the whole name");
}

/// R-CSDS-04: an alias that stands for a resource is shown by that resource.
#[test]
fn an_alias_is_shown_by_its_resource() {
    let hosts = TypeUrl::from(type_url::VIRTUAL_HOST);
    let mut pair = Pair::<Delta>::new(config(), &hosts, &["r/other", "r/none"]);
    let response = delta::Response {
        system_version: "s".into(),
        resources: vec![Resource {
            name: "r/a".into(),
            version: "1".into(),
            aliases: vec!["r/other".into()],
            body: Some(Any { type_url: hosts.clone(), value: body("r/a", 4).into() }),
            ttl: None,
        }],
        removed: Vec::new(),
        type_url: hosts.clone(),
        nonce: "1".into(),
        control_plane: String::new(),
        errors: Vec::new(),
    };
    pair.client.handle_response(at(3), response).expect("a response");
    pair.judge(3, &[]);
    assert_eq!(pair.shown(), ["r/a ACKED v1 @3 body 4", "r/none REQUESTED -"]);
}

/// R-CSDS-12: a response of a type that was not asked for leaves no trace.
#[test]
fn resources_that_were_not_requested_are_not_in_the_dump() {
    let mut pair = Pair::<Sotw>::new(config(), &listeners(), &["a"]);
    pair.respond(3, &endpoints(), "1", &[("e", 1)], &[]);
    pair.respond(3, &listeners(), "1", &[("other", 1)], &[]);
    assert!(pair.dump().iter().all(|item| item.name == "a" && item.type_url == listeners()));
}

/// R-CSDS-17, L-27: one dump is one moment, and two dumps of one moment are the same bytes; types and names in order.
#[test]
fn two_dumps_of_the_same_state_are_byte_for_byte_equal() {
    let mut pair = Pair::<Sotw>::new(config(), &listeners(), &["b", "a"]);
    pair.client.resources_mut(&endpoints()).subscribe(["z", "y"]).expect("names");
    pair.send(0);
    pair.respond(3, &listeners(), "1", &[("b", 1)], &[]);
    let names: Vec<_> = pair.dump().iter().map(|item| (item.type_url.to_string(), item.name.to_string())).collect();
    assert!(names.is_sorted(), "{names:?}");
    assert_eq!(names.len(), 4);
    let bytes = |pair: &Pair<Sotw>| {
        let node = pair.client.config().node().clone();
        let clients = vec![ClientConfig::new(Some(node), "", pair.dump())];
        wire::encode_response(&Response { clients }, usize::MAX).expect("short")
    };
    assert_eq!(bytes(&pair), bytes(&pair));
}

/// R-CSDS-02: the node is that of the first request.
#[test]
fn the_configured_node_equals_the_node_of_the_first_request() {
    let mut client = Client::<Sotw>::new(config());
    client.resources_mut(&listeners()).subscribe(["a"]).expect("a name");
    client.handle_open();
    let first = client.poll_transmit().expect("a request").request;
    assert_eq!(first.node.as_ref(), Some(client.config().node()));
}

/// R-CSDS-15: without contents, all else is the same. Contents of a resource that is not held any more are not shown.
#[test]
fn a_dump_without_contents_is_otherwise_equal() {
    let mut pair = Pair::<Sotw>::new(config(), &endpoints(), &["a", "b"]);
    pair.respond(3, &endpoints(), "1", &[("a", 1), ("b", 1)], &["b"]);
    let without = owned(csds::dump(pair.client.states(), &clock(), None));
    assert!(without.iter().all(|item| item.contents.is_none()));
    let mut with = pair.dump();
    assert!(with[0].contents.is_some());
    with.iter_mut().for_each(|item| item.contents = None);
    assert_eq!(with, without);

    pair.client.resources_mut(&endpoints()).unsubscribe(["a"]);
    pair.client.resources_mut(&endpoints()).subscribe(["a"]).expect("a name");
    assert_eq!(pair.shown()[0], "a REQUESTED -");
}

/// R-CSDS-17: a dump is in the order of types and names, each with its own content, in whatever order the names were
/// subscribed to, whether they are held, wait for an answer, or are not known to the machine yet.
#[test]
fn a_dump_is_sorted_by_type_url_and_name() {
    let mut pair = Pair::<Sotw>::new(config(), &listeners(), &["d", "b", "f"]);
    pair.client.resources_mut(&endpoints()).subscribe(["c", "a", "b"]).expect("names");
    pair.send(1);
    pair.respond(2, &endpoints(), "1", &[("c", 3), ("b", 2)], &[]);
    pair.respond(3, &listeners(), "1", &[("f", 6), ("b", 4), ("d", 5)], &[]);
    pair.respond(4, &listeners(), "2", &[("f", 6), ("b", 4), ("d", 7)], &["d"]);
    pair.client.resources_mut(&listeners()).subscribe(["e", "a", "e", "b"]).expect("names");
    let dump = pair.dump();
    let shown: Vec<String> = dump
        .iter()
        .map(|item| {
            let of = if item.type_url == listeners() { "listener" } else { "endpoints of" };
            let content = item.contents.as_ref().map(|body| body[body.len() - 1]);
            let status = item.client_status.expect("a client's");
            format!("{of} {} {status} {content:?}", item.name)
        })
        .collect();
    assert_eq!(
        shown,
        [
            "endpoints of a REQUESTED None",
            "endpoints of b ACKED Some(2)",
            "endpoints of c ACKED Some(3)",
            "listener a REQUESTED None",
            "listener b ACKED Some(4)",
            "listener d NACKED Some(5)",
            "listener e REQUESTED None",
            "listener f ACKED Some(6)",
        ]
    );
}

/// Contents that are not held are forgotten, late: at most 64 of them stay, or as many as are held.
#[test]
fn contents_that_are_not_held_are_forgotten() {
    let mut pair = Pair::<Delta>::new(config(), &endpoints(), &[]);
    for round in 0..1000 {
        let name = format!("e{round}");
        pair.client.resources_mut(&endpoints()).subscribe([name.as_str()]).expect("a name");
        pair.send(round);
        pair.respond(round, &[(&name, "1")], &[], &[]);
        assert_eq!(pair.shown().len(), 1);
        assert!(pair.dump()[0].contents.is_some());
        pair.client.resources_mut(&endpoints()).unsubscribe([name.as_str()]);
        pair.send(round);
        let size = format!("{:?}", pair.contents).len();
        assert!(size < 20_000, "round {round}: {size} bytes of contents");
    }
}

/// The contents are looked through when there are more than 64, and from then on when there are more than twice as many
/// as were held at the last look.
#[test]
fn contents_are_scanned_when_their_number_has_doubled() {
    let mut client = Client::<Delta>::new(config());
    client.resources_mut(&endpoints()).subscribe(["*"]).expect("a name");
    client.handle_open();
    let transmit = client.poll_transmit().expect("a request");
    client.handle_sent(at(0), transmit.sent);
    let mut contents = Contents::new();
    let looks = |contents: &mut Contents, client: &mut Client<Delta>, nonce: usize, name: &str, removed: &[&str]| {
        let resource = Resource {
            name: name.into(),
            version: "1".into(),
            aliases: Vec::new(),
            body: Some(Any { type_url: endpoints(), value: body(name, 0).into() }),
            ttl: None,
        };
        let response = delta::Response {
            system_version: "1".into(),
            resources: vec![resource],
            removed: removed.iter().map(|name| (*name).into()).collect(),
            type_url: endpoints(),
            nonce: format!("{nonce}").into(),
            control_plane: String::new(),
            errors: Vec::new(),
        };
        client.handle_response(at(0), response).expect("a response");
        let update = core::iter::from_fn(|| client.poll_action())
            .find_map(|action| if let Action::Apply(update) = action { Some(update) } else { None });
        let update = update.expect("an update");
        contents.handle_update(&update);
        client.handle_verdict(at(0), update.accept()).expect("it is out");
        let looked = core::cell::Cell::new(0);
        contents.handle_verdict(0, &endpoints(), &[], |_, _| {
            looked.set(looked.get() + 1);
            true
        });
        let transmit = client.poll_transmit().expect("an ACK");
        client.handle_sent(at(0), transmit.sent);
        looked.get()
    };
    let mut seen = Vec::new();
    for round in 1..=300 {
        match looks(&mut contents, &mut client, round, &format!("e{round}"), &[]) {
            0 => {}
            looked => seen.push((round, looked)),
        }
    }
    assert_eq!(seen, [(65, 65), (131, 131), (263, 263)]);
    let items: Vec<_> = csds::dump(client.states(), &clock(), Some(&contents)).collect();
    assert_eq!(items.len(), 300);
    // Removed contents do not count.
    let gone: Vec<String> = (1..=200).map(|number| format!("e{number}")).collect();
    let gone: Vec<&str> = gone.iter().map(String::as_str).collect();
    assert_eq!(looks(&mut contents, &mut client, 301, "e300", &gone), 0);
    let items: Vec<_> = csds::dump(client.states(), &clock(), Some(&contents)).collect();
    assert_eq!(items.iter().filter(|item| item.contents.is_some()).count(), 100);
    assert_eq!(items.len(), 100);
}

/// A rejected removal leaves the content, and an accepted one does not.
#[test]
fn contents_outlive_a_rejected_removal() {
    let mut pair = Pair::<Delta>::new(config(), &endpoints(), &["a", "b"]);
    pair.respond(1, &[("a", "1"), ("b", "1")], &[], &[]);
    let removal = delta::Response {
        system_version: "2".into(),
        resources: Vec::new(),
        removed: vec!["a".into(), "b".into()],
        type_url: endpoints(),
        nonce: "removal".into(),
        control_plane: String::new(),
        errors: Vec::new(),
    };
    pair.client.handle_response(at(2), removal).expect("a response");
    let Some(Action::Apply(update)) = pair.client.poll_action() else { panic!("no update") };
    pair.contents.handle_update(&update);
    let verdict = update.reject([Rejection::new("a", "still in use")]);
    let rejections = verdict.rejections().to_vec();
    pair.client.handle_verdict(at(2), verdict).expect("it is out");
    pair.contents.handle_verdict(0, &endpoints(), &rejections, |_, _| true);
    let held: Vec<bool> = pair.dump().iter().map(|item| item.contents.is_some()).collect();
    assert_eq!(held, [true, false], "{:?}", pair.shown());
}

/// Updates of several types and clients wait for their verdicts at once, and do not replace each other.
#[test]
fn contents_of_concurrent_updates_do_not_replace_each_other() {
    let update = |id, type_url: &TypeUrl, content| {
        let mut pair = Pair::<Sotw>::new(config().with_id(id), type_url, &["a"]);
        let any = Any { type_url: type_url.clone(), value: body("a", content).into() };
        let response = sotw::Response {
            version: "1".into(),
            resources: vec![sotw::Item::Bare(any)],
            type_url: type_url.clone(),
            nonce: "1".into(),
            control_plane: String::new(),
            errors: Vec::new(),
        };
        pair.client.handle_response(at(1), response).expect("a response");
        let Some(Action::Apply(update)) = pair.client.poll_action() else { panic!("no update") };
        pair.client.handle_verdict(at(1), update.clone().accept()).expect("it is out");
        (pair.client, update)
    };
    let clients = [update(0, &endpoints(), 1), update(0, &listeners(), 2), update(1, &endpoints(), 3)];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut contents = Contents::new();
        clients.iter().for_each(|(_, update)| contents.handle_update(update));
        for at in order {
            let (client, update) = &clients[at];
            contents.handle_verdict(update.client_id(), update.type_url(), &[], |_, _| true);
            let items: Vec<_> = csds::dump(client.states(), &clock(), Some(&contents)).collect();
            let last = items[0].contents.map(|body| usize::from(body[body.len() - 1]));
            assert_eq!(last, Some(at + 1), "the verdict on {at} in {order:?}");
        }
    }
}

/// Two servers, of which the second is the fallback.
struct Both {
    servers: Servers<Sotw>,
    /// The streams, the last one of each server.
    streams: Vec<servers::Stream>,
}

impl Both {
    fn new(names: &[&str]) -> Self {
        let config = servers::Config::new(Policy::Grpc, [config(), config()]);
        let mut servers = Servers::<Sotw>::new(config).expect("a configuration");
        servers.resources_mut(&listeners()).subscribe(names.iter().copied()).expect("names");
        Self { servers, streams: Vec::new() }
    }

    fn open(&mut self, now: u64) -> servers::Stream {
        while let Some(Connect::Open(stream)) = self.servers.poll_connect(at(now)) {
            self.streams.push(stream);
        }
        *self.streams.last().expect("a stream")
    }

    /// Responds with resources, of which the bad ones are rejected.
    fn respond(&mut self, stream: servers::Stream, now: u64, version: &str, names: &[&str], bad: &[&str]) {
        self.servers.handle_open(stream);
        while let Some(transmit) = self.servers.poll_transmit(stream) {
            self.servers.handle_sent(at(now), stream, transmit.sent);
        }
        let any = |name: &&str| sotw::Item::Bare(Any { type_url: listeners(), value: body(name, 1).into() });
        let response = sotw::Response {
            version: version.into(),
            resources: names.iter().map(any).collect(),
            type_url: listeners(),
            nonce: version.into(),
            control_plane: String::new(),
            errors: Vec::new(),
        };
        self.servers.handle_response(at(now), stream, response).expect("a response");
        while let Some(action) = self.servers.poll_action() {
            if let servers::Action::Client { action: Action::Apply(update), .. } = action {
                let names = update.resources().map(|resource| resource.name().clone());
                let rejected: Vec<ResourceName> = names.filter(|name| bad.contains(&name.as_str())).collect();
                let verdict = update.reject(rejected.into_iter().map(|name| Rejection::new(name, "bad")));
                self.servers.handle_verdict(at(now), verdict).expect("it is out");
            }
        }
        while let Some(transmit) = self.servers.poll_transmit(stream) {
            self.servers.handle_sent(at(now), stream, transmit.sent);
        }
    }

    fn shown(&self) -> Vec<String> {
        owned(csds::dump_servers(&self.servers, &clock(), None)).iter().map(shown).collect()
    }
}

/// A resource that two servers are asked for is one item: with the status of the server that counts, and the content's
/// own version.
#[test]
fn a_resource_of_several_servers_is_one_item() {
    let mut both = Both::new(&["a"]);
    let primary = both.open(0);
    both.servers.handle_close(at(1), primary, 0);
    assert_eq!(both.shown(), ["a REQUESTED -"]);
    let fallback = both.open(1);
    both.respond(fallback, 2, "of the fallback", &["a"], &[]);
    assert_eq!(both.shown(), ["a ACKED vof the fallback @2 body -"]);
    // The first server is asked again, and answers: its version counts then.
    let primary = both.open(100);
    assert_eq!(both.shown(), ["a ACKED vof the fallback @2 body -"]);
    both.respond(primary, 101, "of the primary", &["a"], &[]);
    assert_eq!(both.shown(), ["a ACKED vof the primary @101 body -"]);
}

/// The fallback has sent nothing about a resource that the first server removed: the absence is the first server's.
#[test]
fn an_absence_has_the_version_and_time_of_the_server_that_reported_it() {
    let mut both = Both::new(&["a", "b"]);
    let primary = both.open(0);
    both.respond(primary, 1, "1", &["a", "b"], &[]);
    both.respond(primary, 2, "2", &["b"], &[]);
    let of_the_primary = [r#"a DOES_NOT_EXIST - error "does not exist" v2 @2"#, "b ACKED v2 @2 body -"];
    assert_eq!(both.shown(), of_the_primary);
    both.servers.resources_mut(&listeners()).subscribe(["c"]).expect("a name");
    both.servers.handle_close(at(3), primary, 0);
    let primary = both.open(100);
    both.servers.handle_close(at(101), primary, 0); // without a response
    let fallback = both.open(101);
    assert_eq!(both.shown()[..2], of_the_primary);
    both.respond(fallback, 102, "3", &["b", "c"], &[]);
    let of_the_fallback = [of_the_primary[0], "b ACKED v3 @102 body -", "c ACKED v3 @102 body -"];
    assert_eq!(both.shown(), of_the_fallback);
}

/// The status and the absence are those of the server in use, whatever the state of the other server.
#[test]
fn the_status_of_an_item_comes_from_the_server_in_use() {
    let mut both = Both::new(&["a", "b"]);
    let primary = both.open(0);
    both.servers.handle_close(at(1), primary, 0);
    let fallback = both.open(1);
    both.respond(fallback, 2, "1", &["a", "b"], &[]);
    both.respond(fallback, 3, "2", &["a"], &["a"]);
    let of_the_fallback =
        [r#"a NACKED v1 @2 body - error "bad" v2 @3"#, r#"b DOES_NOT_EXIST - error "does not exist" v2 @3"#];
    assert_eq!(both.shown(), of_the_fallback);
    let primary = both.open(100);
    assert_eq!(both.shown(), of_the_fallback);
    both.respond(primary, 101, "3", &["b"], &[]);
    assert_eq!(both.shown(), [r#"a DOES_NOT_EXIST - error "does not exist" v3 @101"#, "b ACKED v3 @101 body -"]);
}

// Node matchers.

fn string(pattern: Pattern, ignore_case: bool) -> StringMatcher {
    StringMatcher { pattern, ignore_case }
}

fn by_id(pattern: Pattern) -> NodeMatcher {
    NodeMatcher { id: Some(string(pattern, false)), metadata: Vec::new() }
}

fn select(matchers: &[NodeMatcher], node: &Node) -> bool {
    let compile = |pattern: &str| -> Result<csds::Regex, String> {
        // As much of a regular expression as this test needs.
        match pattern.strip_suffix(".*") {
            Some(prefix) => {
                let prefix = prefix.to_string();
                Ok(Box::new(move |text: &str| text.starts_with(&prefix)))
            }
            None => Err("not supported here".into()),
        }
    };
    Matchers::new(matchers, compile).expect("matchers").select(node)
}

/// R-CSDS-30: how a string matches.
#[test]
fn string_matchers_match_their_pattern_with_and_without_case() {
    let is = |pattern: Pattern, ignore_case, id: &str| {
        let id_matcher = Some(string(pattern, ignore_case));
        select(&[NodeMatcher { id: id_matcher, metadata: Vec::new() }], &Node::new(id))
    };
    for (pattern, good, bad) in [
        (Pattern::Exact("ab".into()), "ab", "abc"),
        (Pattern::Prefix("ab".into()), "abc", "xab"),
        (Pattern::Suffix("bc".into()), "abc", "bcd"),
        (Pattern::Contains("b".into()), "abc", "acd"),
        (Pattern::Regex("a.*".into()), "abc", "bc"),
    ] {
        assert!(is(pattern.clone(), false, good), "{pattern:?}");
        assert!(!is(pattern.clone(), false, bad) && !is(pattern.clone(), true, bad), "{pattern:?}");
        let shouted = good.to_uppercase();
        assert!(!is(pattern.clone(), false, &shouted), "{pattern:?}");
        let regex = matches!(pattern, Pattern::Regex(_));
        assert_eq!(is(pattern.clone(), true, &shouted), !regex, "{pattern:?}");
        assert!(!is(pattern, true, ""), "nothing is in an empty id");
    }
    assert!(is(Pattern::Exact(String::new()), false, ""));
    assert!(!is(Pattern::Prefix("é".into()), true, "e"), "no slice within a character");
}

/// R-CSDS-30: one matcher suffices; within one, the id and all metadata have to match. An empty list selects all.
#[test]
fn matchers_are_alternatives() {
    let node = Node::new("n1");
    assert!(select(&[], &node));
    assert!(select(&[NodeMatcher::default()], &node));
    let (other, same) = (by_id(Pattern::Exact("n2".into())), by_id(Pattern::Exact("n1".into())));
    assert!(select(&[other.clone(), same.clone()], &node));
    assert!(!select(&[other], &node));
    let lacks = StructMatcher { path: vec!["k".into()], value: ValueMatcher::Present(true) };
    assert!(!select(&[NodeMatcher { metadata: vec![lacks], ..same }], &node));
}

/// Encodes the metadata `{"k": {"s": "text", "n": 1.5, "b": true, "nil": null, "l": [1.5, "x"]}}`.
fn metadata() -> Vec<u8> {
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, content.len() as u8], content].concat()
    }
    fn entry(key: &str, value: &[u8]) -> Vec<u8> {
        field(1, &[field(1, key.as_bytes()), field(2, value)].concat())
    }
    let number = [&[0x11][..], &1.5_f64.to_le_bytes()].concat();
    let list = field(6, &[field(1, &number), field(1, &field(3, b"x"))].concat());
    let inner = [
        entry("s", &field(3, b"text")),
        entry("n", &number),
        entry("b", &[0x20, 1]),
        entry("nil", &[0x08, 0]),
        entry("l", &list),
    ];
    field(3, &entry("k", &field(5, &inner.concat())))
}

/// R-CSDS-30: metadata.
#[test]
fn metadata_matchers_match_values_by_path_and_type() {
    let node = Node::new("n").with_rest(metadata());
    let has = |key: &str, value: ValueMatcher| {
        let of = StructMatcher { path: vec!["k".into(), key.into()], value };
        select(&[NodeMatcher { id: None, metadata: vec![of] }], &node)
    };
    let text = |text: &str| ValueMatcher::String(string(Pattern::Exact(text.into()), false));
    let number = |number| ValueMatcher::Number(Number::new(number));
    let range = |from, to| ValueMatcher::Range(Number::new(from), Number::new(to));
    assert!(has("s", text("text")) && !has("s", text("other")) && !has("n", text("1.5")));
    assert!(has("n", number(1.5)) && !has("n", number(2.0)));
    assert!(has("n", range(1.5, 2.0)) && !has("n", range(1.0, 1.5)));
    assert!(has("b", ValueMatcher::Bool(true)) && !has("b", ValueMatcher::Bool(false)));
    assert!(has("nil", ValueMatcher::Null) && !has("s", ValueMatcher::Null) && !has("none", ValueMatcher::Null));
    assert!(has("s", ValueMatcher::Present(true)) && !has("none", ValueMatcher::Present(true)));
    assert!(!has("l", ValueMatcher::Present(true)), "a list is no primitive value");
    assert!(has("l", ValueMatcher::OneOf(Box::new(text("x")))) && !has("l", ValueMatcher::OneOf(Box::new(text("y")))));
    assert!(has("s", ValueMatcher::Or(vec![number(1.0), text("text")])) && !has("s", ValueMatcher::Or(vec![])));
    let regex = |pattern: &str| ValueMatcher::String(string(Pattern::Regex(pattern.into()), false));
    assert!(has("s", regex("te.*")) && !has("s", regex("xe.*")), "a regular expression of a value");
    assert!(has("s", ValueMatcher::Or(vec![number(1.0), regex("te.*")])), "within alternatives");
    assert!(
        has("l", ValueMatcher::OneOf(Box::new(regex("x.*")))) && !has("l", ValueMatcher::OneOf(regex("y.*").into()))
    );
    let through = StructMatcher { path: ["k", "s", "x"].map(Into::into).into(), value: ValueMatcher::Present(true) };
    assert!(!select(&[NodeMatcher { id: None, metadata: vec![through] }], &node), "a string has no fields");
}

/// Broken metadata of a node matches nothing, and breaks nothing.
#[test]
fn broken_metadata_matches_nothing() {
    let whole = metadata();
    let of = |path: &[&str]| StructMatcher {
        path: path.iter().map(|&key| key.into()).collect(),
        value: ValueMatcher::Present(true),
    };
    for len in 0..whole.len() {
        let node = Node::new("n").with_rest(whole[..len].to_vec());
        let matcher = NodeMatcher { id: None, metadata: vec![of(&["k", "nil"])] };
        assert!(!select(&[matcher], &node), "{len} bytes");
    }
}

#[test]
fn too_many_matchers_and_invalid_patterns_are_refused() {
    let many = vec![NodeMatcher::default(); Matchers::LIMIT + 1];
    let error = Matchers::new(&many, |_| Err("no".into())).map(drop).expect_err("too many");
    assert_eq!(error, MatcherError::TooMany { count: 257, limit: 256 });
    assert_eq!(Status::from(error), Status::new(Code::ResourceExhausted, "257 matchers in one request, limit 256"));
    let value = ValueMatcher::Or(vec![ValueMatcher::Null; 300]);
    let nested = [NodeMatcher { id: None, metadata: vec![StructMatcher { path: vec!["k".into()], value }] }];
    assert!(matches!(Matchers::new(&nested, |_| Err("no".into())), Err(MatcherError::TooMany { count: 303, .. })));
    let value = ValueMatcher::OneOf(Box::new(ValueMatcher::OneOf(ValueMatcher::Null.into())));
    let lists = vec![NodeMatcher { id: None, metadata: vec![StructMatcher { path: vec!["k".into()], value }] }; 52];
    let error = Matchers::new(&lists, |_| Err("no".into())).map(drop).expect_err("too many");
    assert_eq!(error, MatcherError::TooMany { count: 260, limit: 256 }, "each matcher counts, within others too");
    let just = vec![NodeMatcher::default(); Matchers::LIMIT];
    assert!(Matchers::new(&just, |_| Err("no".into())).is_ok());
    let regex = [by_id(Pattern::Regex("(".into()))];
    let error = Matchers::new(&regex, |_| Err("unclosed group".into())).map(drop).expect_err("no expression");
    let status = Status::new(Code::InvalidArgument, r#"safe_regex "(": unclosed group"#);
    assert_eq!(Status::from(error), status);
    // R-CSDS-14
    let words = "node_matchers are not supported by a client, which has only its own status";
    assert_eq!(Status::from(MatcherError::OfClient), Status::new(Code::InvalidArgument, words));
}

// The wire.

/// R-CSDS-01: no client, one, two; R-CSDS-03: only `generic_xds_configs` is filled.
#[test]
fn responses_are_encoded_within_the_limit_and_decode_to_the_original() {
    let none = wire::encode_response(&Response::default(), 0);
    assert_eq!(none, Ok(Vec::new()), "the empty message");
    let mut pair = Pair::<Sotw>::new(config(), &listeners(), &["a", "b"]);
    pair.respond(3, &listeners(), "1", &[("a", 1), ("b", 2)], &["b"]);
    let client = |scope: &str| ClientConfig::new(Some(pair.client.config().node().clone()), scope, pair.dump());
    for clients in [vec![client("")], vec![client("xds:/l1"), client("xds:/l3")]] {
        let len: usize = clients.iter().map(wire::encoded_client_len).sum();
        let response = Response { clients };
        let bytes = wire::encode_response(&response, len).expect("within the limit");
        assert_eq!(bytes.len(), len);
        assert_eq!(wire::decode_response(bytes.into()), Ok(response.clone()));
        // R-CSDS-15
        let error = wire::encode_response(&response, len - 1).expect_err("a byte too long");
        let words =
            format!("a status of {len} bytes, limit {}: ask for it without contents, or for fewer clients", len - 1);
        assert_eq!(Status::from(error), Status::new(Code::ResourceExhausted, words));
    }
}

/// A client that is encoded from the machine has the bytes of its copy, and the same error at each limit.
#[test]
fn a_borrowed_client_is_encoded_like_its_owned_copy() {
    let names: Vec<String> = (0..200).map(|number| format!("a resource of which there are many: {number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for count in [0, 3, names.len()] {
        let names = &names[..count];
        let mut pair = Pair::<Sotw>::new(config(), &listeners(), names);
        if let [acked, nacked, ..] = names {
            pair.respond(3, &listeners(), "1", &[(acked, 1), (nacked, 2)], &[nacked]);
        }
        let node = pair.client.config().node();
        for (node, contents, scope) in [(Some(node), Some(&pair.contents), ""), (None, None, "xds:/l1")] {
            let dump = || csds::dump(pair.client.states(), &clock(), contents);
            let copy = ClientConfig { node: node.cloned(), scope: scope.into(), items: owned(dump()) };
            let copy = Response { clients: vec![copy] };
            let bytes = wire::encode_response(&copy, usize::MAX).expect("any length");
            let borrowed = |limit| wire::encode_client(node.map(|node| &**node), scope, dump(), limit);
            assert_eq!(borrowed(bytes.len()).as_deref(), Ok(&bytes[..]), "{count} items");
            assert_eq!(borrowed(usize::MAX).as_deref(), Ok(&bytes[..]), "{count} items");
            for limit in (0..bytes.len()).step_by(1 + bytes.len() / 100) {
                assert_eq!(borrowed(limit).err(), wire::encode_response(&copy, limit).err(), "limit {limit}");
                assert!(borrowed(limit).is_err(), "limit {limit}");
            }
            // One after the other, they make a response of two.
            let two = wire::decode_response([&bytes[..], &bytes[..]].concat().into()).expect("a response");
            assert_eq!(two.clients, [&copy.clients[..], &copy.clients[..]].concat());
        }
    }
}

/// The dumps of several clients merge into one, in order; a resource that two clients have is that of the first.
#[test]
fn dumps_of_several_clients_are_merged() {
    let mut first = Pair::<Sotw>::new(config(), &listeners(), &["a", "c"]);
    first.respond(3, &listeners(), "1", &[("a", 1), ("c", 2)], &[]);
    let mut second = Pair::<Sotw>::new(config(), &listeners(), &["c", "b"]);
    second.respond(4, &listeners(), "2", &[("c", 3), ("b", 4)], &[]);
    let merged = |pairs: &[&Pair<Sotw>]| {
        let dumps = pairs.iter().map(|pair| csds::dump(pair.client.states(), &clock(), Some(&pair.contents)));
        let items = owned(csds::merge(dumps.collect()));
        items.iter().map(shown).collect::<Vec<_>>()
    };
    let (a, b) = ("a ACKED v1 @3 body 1", "b ACKED v2 @4 body 4");
    assert_eq!(merged(&[&first, &second]), [a, b, "c ACKED v1 @3 body 2"]);
    assert_eq!(merged(&[&second, &first]), [a, b, "c ACKED v2 @4 body 3"]);
    assert_eq!(merged(&[&first]), [a, "c ACKED v1 @3 body 2"]);
    assert_eq!(merged(&[]), [""; 0]);
}

/// The numbers of `csds.proto`, byte by byte.
#[test]
fn an_item_is_encoded_with_the_field_numbers_of_the_proto() {
    let item = Item {
        type_url: "t".into(),
        name: "n".into(),
        version: Some("v".into()),
        contents: Some((&b"b"[..]).into()),
        updated: Some(Timestamp { seconds: 300, nanos: 1 }),
        config_status: Some(ConfigStatus::Error),
        client_status: Some(ResourceStatus::TimedOut),
        error: Some(Box::new(ErrorState { details: "d".into(), version: Version::default(), at: None })),
    };
    let response = Response { clients: vec![ClientConfig::new(None, "s", vec![item])] };
    let any = b"\x22\x06\x0a\x01t\x12\x01b";
    let item =
        [b"\x0a\x01t\x12\x01n\x1a\x01v", &any[..], b"\x2a\x05\x08\xac\x02\x10\x01\x30\x04\x38\x06\x42\x03\x1a\x01d"];
    let item = item.concat();
    let client = [&[0x1a, item.len() as u8], &item[..], b"\x22\x01s"].concat();
    let bytes = [&[0x0a, client.len() as u8], &client[..]].concat();
    assert_eq!(wire::encode_response(&response, 100), Ok(bytes));
}

#[test]
fn encoded_requests_decode_to_the_original() {
    let value = ValueMatcher::Or(vec![
        ValueMatcher::Null,
        ValueMatcher::Number(Number::new(1.5)),
        ValueMatcher::Range(Number::new(-1.0), Number::new(0.0)),
        ValueMatcher::String(string(Pattern::Suffix("x".into()), true)),
        ValueMatcher::Bool(false),
        ValueMatcher::Present(true),
        ValueMatcher::OneOf(Box::new(ValueMatcher::Null)),
    ]);
    let request = Request {
        matchers: vec![
            NodeMatcher {
                id: Some(string(Pattern::Regex("a.*".into()), false)),
                metadata: vec![StructMatcher { path: vec!["k".into(), "l".into()], value }],
            },
            by_id(Pattern::Contains("c".into())),
        ],
        node: Some(Node::new("who").into()),
        exclude_contents: true,
    };
    assert_eq!(wire::decode_request(wire::encode_request(&request).into()), Ok(request));
    // Found by fuzzing: a negative zero is not written.
    let zeros = [-0.0, 0.0].map(|zero| {
        let value = ValueMatcher::Range(Number::new(zero), Number::new(1.0));
        let metadata = vec![StructMatcher { path: vec!["k".into()], value }];
        Request { matchers: vec![NodeMatcher { id: None, metadata }], ..Request::default() }
    });
    assert_eq!(zeros.each_ref().map(|zero| wire::decode_request(wire::encode_request(zero).into())), zeros.map(Ok));
    assert_eq!(wire::decode_request(Vec::new().into()), Ok(Request::default()));
    assert!(wire::decode_request((&[0x0a, 5][..]).into()).is_err());
}

/// Matchers that Envoy's validation rules refuse, and matchers that are not supported.
#[test]
fn bad_matchers_are_refused() {
    for (bytes, words) in [
        (&b"\x0a\x02\x0a\x00"[..], "node_matchers[0].node_id has no pattern"),
        (b"\x0a\x04\x0a\x02\x12\x00", "node_matchers[0].node_id.prefix is empty"),
        (b"\x0a\x05\x0a\x03\x2a\x01\x12", "failed to decode"),
        (b"\x0a\x00\x0a\x04\x0a\x02\x42\x00", "node_matchers[1].node_id.custom is not supported"),
        (b"\x0a\x02\x12\x00", "node_matchers[0].node_metadatas[0].path lacks a key"),
        (b"\x0a\x07\x12\x05\x12\x03\x0a\x01k", "node_matchers[0].node_metadatas[0] has no value"),
        (b"\x0a\x09\x12\x07\x12\x03\x0a\x01k\x1a\x00", "node_matchers[0].node_metadatas[0].value has no pattern"),
    ] {
        let error = wire::decode_request(bytes.into()).expect_err(words);
        let status = Status::from(error);
        assert!(status.is(Code::InvalidArgument));
        assert!(status.message.starts_with("malformed ClientStatusRequest: "), "{}", status.message);
        assert!(status.message.contains(words), "{words}: {}", status.message);
    }
}

/// R-CSDS-31: the streams of one node are one client; each stream without an id is its own.
#[test]
fn streams_of_one_node_are_one_client() {
    let item = |name: &str, status| Item {
        type_url: listeners(),
        name: name.into(),
        version: None,
        contents: None,
        updated: None,
        config_status: Some(status),
        client_status: None,
        error: None,
    };
    let mut nodes = Nodes::new();
    nodes.add(&Node::default().into(), vec![item("w", ConfigStatus::Synced)]);
    nodes.add(&Node::new("b").into(), vec![item("x", ConfigStatus::Synced), item("y", ConfigStatus::Stale)]);
    nodes.add(&Node::default().into(), vec![item("x", ConfigStatus::Synced)]);
    nodes.add(&Node::new("a").into(), vec![]);
    nodes.add(&Node::default().into(), vec![item("x", ConfigStatus::Error)]);
    nodes.add(&Node::new("b").into(), vec![item("x", ConfigStatus::Error), item("y", ConfigStatus::NotSent)]);
    nodes.add(&Node::default().into(), vec![item("z", ConfigStatus::Stale)]);
    let clients = nodes.into_clients();
    let shown = |client: &ClientConfig| {
        let items =
            client.items.iter().map(|item| format!("{}={:?}", item.name, item.config_status.expect("a status")));
        format!("{}: {}", client.node.as_ref().expect("a node").id, items.collect::<Vec<_>>().join(" "))
    };
    let shown: Vec<String> = clients.iter().map(shown).collect();
    assert_eq!(shown, [": w=Synced", ": x=Synced", ": x=Error", ": z=Stale", "a: ", "b: x=Error y=Stale"]);

    // Of items with the same status, that of the first stream is shown.
    let versioned = |version: &str| Item { version: Some(version.into()), ..item("x", ConfigStatus::Synced) };
    let mut nodes = Nodes::new();
    nodes.add(&Node::new("b").into(), vec![versioned("1")]);
    nodes.add(&Node::new("b").into(), vec![versioned("2")]);
    assert_eq!(nodes.into_clients()[0].items, [versioned("1")]);
}

/// An item with an empty version field has an empty version if it has content or a time, and otherwise none.
#[test]
fn an_item_with_content_or_a_time_has_a_version_even_if_empty() {
    for (field, version) in [
        (&[][..], None),
        (&[0x1a, 1, b'1'], Some("1")),
        (&[0x22, 3, 0x0a, 1, b't'], Some("")), // content, of type `t`
        (&[0x2a, 2, 0x08, 9], Some("")),       // updated at 9 s
    ] {
        let item = [&[0x12, 1, b'a'][..], field].concat();
        let client = [&[0x1a, item.len() as u8][..], &item].concat();
        let response = [&[0x0a, client.len() as u8][..], &client].concat();
        let response = wire::decode_response(response.into()).expect("a response");
        let item = &response.clients[0].items[0];
        assert_eq!(item.version.as_ref().map(|version| version.as_str()), version, "{field:?}");
    }
}

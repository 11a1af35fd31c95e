//! A client whose application is slow: whatever waits of one type, the others are read, and nothing that exists is
//! reported as missing or expired.

mod knobs;
mod servers;
mod turns;

use std::time::Duration;

use xds_machine::client::{self, Action, Client, Config, Dialect, Update, Variant};
use xds_machine::message::{Any, Node, Resource, delta, sotw};
use xds_machine::{Delta, Instant, ResourceName, Sotw, TypeUrl, type_url};

fn at(ms: u64) -> Instant {
    Instant::from_epoch(Duration::from_millis(ms))
}

fn clusters() -> TypeUrl {
    type_url::CLUSTER.into()
}

fn endpoints() -> TypeUrl {
    type_url::ENDPOINT.into()
}

fn resource(type_url: &TypeUrl, name: &str, version: &str, ttl: Option<u64>) -> Resource {
    let value = format!("{name}{version}").into_bytes().into();
    Resource {
        name: name.into(),
        version: version.into(),
        aliases: Vec::new(),
        body: Some(Any { type_url: type_url.clone(), value }),
        ttl: ttl.map(Duration::from_millis),
    }
}

fn beat(type_url: &TypeUrl, name: &str, version: &str, ttl: u64) -> Resource {
    Resource { body: None, ..resource(type_url, name, version, Some(ttl)) }
}

fn response(type_url: &TypeUrl, nonce: u64, resources: Vec<Resource>) -> delta::Response {
    delta::Response {
        system_version: nonce.to_string().into(),
        resources,
        type_url: type_url.clone(),
        nonce: format!("n{nonce}").into(),
        removed: Vec::new(),
        control_plane: String::new(),
        errors: Vec::new(),
    }
}

fn listing(type_url: &TypeUrl, nonce: u64, names: &[&str]) -> sotw::Response {
    let item = |name: &&str| {
        let mut value = vec![0x0a, name.len() as u8];
        value.extend_from_slice(name.as_bytes());
        sotw::Item::Bare(Any { type_url: type_url.clone(), value: value.into() })
    };
    sotw::Response {
        version: nonce.to_string().into(),
        resources: names.iter().map(item).collect(),
        type_url: type_url.clone(),
        nonce: format!("n{nonce}").into(),
        control_plane: String::new(),
        errors: Vec::new(),
    }
}

/// Returns a client with an open stream whose subscriptions were sent.
fn client<V: Variant>(config: Config, subscriptions: &[(&TypeUrl, &str)]) -> Client<V> {
    let mut client = Client::new(config);
    for (type_url, name) in subscriptions {
        client.resources_mut(type_url).subscribe([*name]).expect("a name");
    }
    client.handle_open();
    send(&mut client, at(0));
    client
}

fn spec() -> Config {
    Config::new(Node::new("me"))
}

/// Sends all requests that are due. Returns their types, each with the nonce that it answers.
fn send<V: Variant>(client: &mut Client<V>, now: Instant) -> Vec<client::Intent> {
    let mut intents = Vec::new();
    while let Some(transmit) = client.poll_transmit() {
        intents.push(transmit.intent);
        client.handle_sent(now, transmit.sent);
    }
    assert_eq!(client.check_invariants(), Ok(()));
    intents
}

/// Returns the nonces of the requests that are due.
fn answers(client: &mut Client<Delta>, now: Instant) -> Vec<(String, bool)> {
    let mut nonces = Vec::new();
    while let Some(transmit) = client.poll_transmit() {
        nonces.push((transmit.request.nonce.as_str().to_owned(), transmit.request.error.is_some()));
        client.handle_sent(now, transmit.sent);
    }
    nonces
}

/// Takes the actions, of which all must be updates.
fn updates<V: Variant>(client: &mut Client<V>) -> Vec<Update> {
    let actions = std::iter::from_fn(|| client.poll_action());
    let update = |action| if let Action::Apply(update) = action { update } else { panic!("{action:?}") };
    let updates = actions.map(update).collect();
    assert_eq!(client.check_invariants(), Ok(()));
    updates
}

fn update<V: Variant>(client: &mut Client<V>) -> Update {
    let mut all = updates(client);
    assert_eq!(all.len(), 1, "one update");
    all.remove(0)
}

/// Returns the names of an update, each with its content's last byte; and the names that it removes.
fn shown(update: &Update) -> Vec<String> {
    let resources = update.resources().map(|resource| format!("{}@{}", resource.name(), resource.version()));
    resources.chain(update.removed().iter().map(|name| format!("-{name}"))).collect()
}

#[test]
fn a_paused_type_stops_no_other() {
    let (cds, eds) = (clusters(), endpoints());
    let mut client = client::<Delta>(spec(), &[(&cds, "*")]);
    client.resources_mut(&cds).pause();
    for n in 0..2_000 {
        assert!(client.wants_response(), "after {n} responses");
        client
            .handle_response(at(n), response(&cds, n, vec![resource(&cds, "w", &n.to_string(), None)]))
            .expect("read");
        let verdict = update(&mut client).accept();
        client.handle_verdict(at(n), verdict).expect("it is out");
        if n == 0 {
            client.resources_mut(&eds).subscribe(["w"]).expect("a name");
            assert_eq!(send(&mut client, at(n)), [client::Intent::Initial]);
        }
    }
    client.handle_response(at(2_000), response(&eds, 1, vec![resource(&eds, "w", "1", None)])).expect("read");
    assert_eq!(shown(&update(&mut client)), ["w@1"]);
    client.resources_mut(&cds).resume().expect("it is paused");
    let sent = answers(&mut client, at(2_001));
    assert_eq!(sent.len(), client.config().limits().waiting_responses, "the oldest ACKs are left out");
    assert_eq!(sent.last(), Some(&("n1999".to_owned(), false)));
}

#[test]
fn a_verdict_that_waits_for_another_type_comes() {
    let (cds, eds) = (clusters(), endpoints());
    for dialect in [Dialect::Spec, Dialect::Grpc] {
        let mut client = client::<Delta>(spec().with_dialect(dialect), &[(&cds, "*")]);
        let mut slow = Vec::new();
        let mut now = 0;
        for n in 0..9 {
            while !client.wants_response() {
                let due = client.poll_timeout().expect("reading waits for a clock");
                now = due.since_epoch().as_millis() as u64;
                client.handle_timeout(due);
                assert_eq!(client.poll_action(), None);
            }
            let cluster = resource(&cds, "w", &n.to_string(), None);
            client.handle_response(at(now), response(&cds, n, vec![cluster])).expect("read");
            slow.extend(updates(&mut client));
            if n == 0 {
                client.resources_mut(&eds).subscribe(["w"]).expect("a name");
                send(&mut client, at(now));
            }
        }
        assert_eq!(slow.len(), 1, "one update of a type is out");
        while !client.wants_response() {
            now = client.poll_timeout().expect("reading waits for a clock").since_epoch().as_millis() as u64;
            client.handle_timeout(at(now));
            assert_eq!(client.poll_action(), None, "{dialect}");
        }
        client.handle_response(at(now), response(&eds, 100, vec![resource(&eds, "w", "1", None)])).expect("read");
        let fast = update(&mut client);
        client.handle_verdict(at(now), fast.accept()).expect("it is out");
        client.handle_verdict(at(now), slow.remove(0).accept()).expect("it is out");
        // What waited is one update, and each response has its answer, in order.
        let merged = update(&mut client);
        assert_eq!(shown(&merged), ["w@8"]);
        client.handle_verdict(at(now), merged.accept()).expect("it is out");
        let mut sent: Vec<String> = answers(&mut client, at(now)).into_iter().map(|(nonce, _)| nonce).collect();
        sent.retain(|nonce| nonce != "n100");
        assert_eq!(sent, (0..9).map(|n| format!("n{n}")).collect::<Vec<_>>(), "{dialect}");
    }
}

#[test]
fn no_name_is_missing_while_its_answer_can_not_be_read() {
    let (cds, eds) = (clusters(), endpoints());
    let mut client = client::<Delta>(spec().with_dialect(Dialect::Grpc), &[(&cds, "a")]);
    client.handle_response(at(1), response(&cds, 1, vec![resource(&cds, "a", "1", None)])).expect("read");
    let slow = update(&mut client);
    client.resources_mut(&eds).subscribe(["e"]).expect("a name");
    send(&mut client, at(2));
    assert!(!client.wants_response());
    for ms in (500..=20_000).step_by(500) {
        client.handle_timeout(at(ms));
        // The driver does not look at its socket again before the verdict.
        if !client.wants_response() {
            assert_eq!(client.poll_action(), None, "at {ms} ms");
        }
    }
    client.handle_verdict(at(20_000), slow.accept()).expect("it is out");
}

/// A server that waits for the ACK answers the name after it.
#[test]
fn no_name_is_missing_while_a_response_of_its_type_is_unanswered() {
    let eds = endpoints();
    let mut client = client::<Delta>(spec(), &[(&eds, "a")]);
    client.handle_response(at(0), response(&eds, 1, vec![resource(&eds, "a", "1", None)])).expect("read");
    let slow = update(&mut client);
    client.resources_mut(&eds).subscribe(["b"]).expect("a name");
    send(&mut client, at(1_000));
    assert_eq!(client.poll_timeout(), None, "time stands still");
    client.handle_timeout(at(30_000));
    assert_eq!(client.poll_action(), None);
    client.handle_verdict(at(30_000), slow.accept()).expect("it is out");
    // The transport takes the ACK late: until then the server can't have read it.
    let ack = client.poll_transmit().expect("an ACK");
    client.handle_timeout(at(60_000));
    assert_eq!(client.poll_action(), None);
    client.handle_sent(at(60_000), ack.sent);
    assert_eq!(client.poll_timeout(), Some(at(75_000)), "all 15 s are left");
    // What had passed before a pause counts.
    client.handle_response(at(70_000), response(&eds, 2, vec![resource(&eds, "a", "2", None)])).expect("read");
    let verdict = update(&mut client).accept();
    client.resources_mut(&eds).pause();
    client.handle_verdict(at(70_000), verdict).expect("it is out");
    client.handle_timeout(at(80_000));
    client.resources_mut(&eds).resume().expect("it is paused");
    send(&mut client, at(80_000));
    assert_eq!(client.poll_timeout(), Some(at(85_000)));
    client.handle_timeout(at(85_000));
    assert_eq!(
        client.poll_action(),
        Some(Action::DoesNotExist { type_url: eds, names: vec![ResourceName::from("b")] })
    );
}

#[test]
fn a_heartbeat_that_is_read_renews_at_once() {
    let eds = endpoints();
    let mut client = client::<Delta>(spec(), &[(&eds, "a"), (&eds, "b")]);
    client.handle_response(at(0), response(&eds, 1, vec![resource(&eds, "a", "1", Some(3_000))])).expect("read");
    let first = update(&mut client).accept();
    client.handle_verdict(at(0), first).expect("it is out");
    client.handle_response(at(10), response(&eds, 2, vec![resource(&eds, "b", "1", None)])).expect("read");
    let slow = update(&mut client);
    for n in 1..=5 {
        let now = at(n * 1_000);
        client.handle_response(now, response(&eds, 2 + n, vec![beat(&eds, "a", "1", 3_000)])).expect("read");
        client.handle_timeout(now);
        assert_eq!(client.poll_action(), None, "after {n} s");
        assert_eq!(client.poll_timeout(), Some(at(n * 1_000 + 3_000)));
    }
    client.handle_verdict(at(6_000), slow.accept()).expect("it is out");
    let nonces: Vec<_> = answers(&mut client, at(6_000));
    assert_eq!(nonces, (1..=7).map(|n| (format!("n{n}"), false)).collect::<Vec<_>>());
    assert_eq!(client.poll_timeout(), Some(at(8_000)), "the last heartbeat was read at 5 s");
    client.handle_timeout(at(8_000));
    assert_eq!(client.poll_action(), Some(Action::Expired { type_url: eds, names: vec![ResourceName::from("a")] }));
}

/// Newer content of a resource shows that it lives, and so do heartbeats of that content, though the verdict is slow.
#[test]
fn newer_content_that_waits_keeps_the_held_content_alive() {
    let eds = endpoints();
    let name = || vec![ResourceName::from("a")];
    for (accepts, ttl) in [(true, Some(3_000)), (false, Some(3_000)), (true, None), (false, None)] {
        let mut client = client::<Delta>(spec(), &[(&eds, "a")]);
        client.handle_response(at(0), response(&eds, 1, vec![resource(&eds, "a", "1", Some(3_000))])).expect("read");
        let first = update(&mut client).accept();
        client.handle_verdict(at(0), first).expect("it is out");
        client.handle_response(at(2_000), response(&eds, 2, vec![resource(&eds, "a", "2", ttl)])).expect("read");
        let slow = update(&mut client);
        let until = ttl.is_some().then(|| at(5_000));
        assert_eq!(client.poll_timeout(), until);
        client.handle_timeout(at(3_000));
        assert_eq!(client.poll_action(), None);
        if let Some(ttl) = ttl {
            client.handle_response(at(4_000), response(&eds, 3, vec![beat(&eds, "a", "2", ttl)])).expect("read");
            assert_eq!(client.poll_timeout(), Some(at(7_000)));
        }
        client.handle_timeout(at(6_000));
        assert_eq!(client.poll_action(), None);
        if accepts {
            client.handle_verdict(at(6_000), slow.accept()).expect("it is out");
            assert_eq!(client.poll_timeout(), ttl.map(|ttl| at(6_000 + ttl)), "counted from the verdict");
        } else {
            client.handle_verdict(at(6_000), slow.reject_all("bad")).expect("it is out");
            // A NACK changes no TTL: that of the held content has run out (C-TTL-10).
            assert_eq!(client.poll_timeout(), Some(at(3_000)));
            client.handle_timeout(at(6_000));
            let expired = Action::Expired { type_url: eds.clone(), names: name() };
            assert!(std::iter::from_fn(|| client.poll_action()).any(|action| action == expired));
        }
    }
}

#[test]
fn a_newer_full_state_response_replaces_the_one_that_waits() {
    let (cds, eds) = (clusters(), endpoints());
    for paused in [false, true] {
        let mut client = client::<Sotw>(spec(), &[(&cds, "*")]);
        if paused {
            client.resources_mut(&cds).pause();
        }
        let mut slow = None;
        for n in 0..2_000 {
            assert!(client.wants_response(), "after {n} responses");
            let names: &[&str] = if n == 5 { &["w", "x"] } else { &["w"] };
            client.handle_response(at(n), listing(&cds, n, names)).expect("read");
            for update in updates(&mut client) {
                if paused {
                    client.handle_verdict(at(n), update.accept()).expect("it is out");
                    updates(&mut client).into_iter().for_each(|update| {
                        client.handle_verdict(at(n), update.accept()).expect("it is out");
                    });
                } else {
                    slow = Some(update);
                }
            }
            if n == 0 {
                client.resources_mut(&eds).subscribe(["w"]).expect("a name");
                send(&mut client, at(0));
            }
        }
        client.handle_response(at(2_000), listing(&eds, 1, &["w"])).expect("read");
        let fast = update(&mut client);
        assert_eq!(shown(&fast), ["w@1"]);
        client.handle_verdict(at(2_000), fast.accept()).expect("it is out");
        if let Some(slow) = slow {
            client.handle_verdict(at(2_000), slow.accept()).expect("it is out");
            let last = update(&mut client);
            assert_eq!(last.version().as_str(), "1999");
            client.handle_verdict(at(2_000), last.accept()).expect("it is out");
            let mut cds_answers = Vec::new();
            while let Some(transmit) = client.poll_transmit() {
                if transmit.request.type_url == cds {
                    cds_answers.push(transmit.request.nonce.as_str().to_owned());
                }
            }
            assert_eq!(cds_answers, ["n0", "n1999"], "the answer to the newest stands for those before");
        }
    }
}

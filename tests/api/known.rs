//! The queries of a client: awaited, missing and held resources, and the state of each.

use bytes::Bytes;
use xds_machine::client::{Action, Client, Config, Rejection, ResourceStatus, Update, Variant};
use xds_machine::message::{Any, Node, Resource, ResourceError, delta, sotw};
use xds_machine::{Code, Delta, Instant, Misuse, ResourceName, Sotw, Status, TypeUrl, Version, server, type_url};

const NOW: Instant = Instant::EPOCH;
const GLOB: &str = "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/dir/*";
const MEMBER: &str = "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/dir/x";

fn endpoints() -> TypeUrl {
    type_url::ENDPOINT.into()
}

fn client<V: Variant>() -> Client<V> {
    Client::new(Config::new(Node::new("n")))
}

fn states<V: Variant>(client: &Client<V>) -> Vec<(String, ResourceStatus)> {
    client.states().map(|(_, name, state)| (name.to_string(), state.status)).collect()
}

fn resource(name: &str) -> Resource {
    Resource {
        name: name.into(),
        version: "1".into(),
        body: Some(Any { type_url: endpoints(), value: Bytes::new() }),
        ttl: None,
        aliases: Vec::new(),
    }
}

fn response(resources: &[&str], removed: &[&str]) -> delta::Response {
    delta::Response {
        system_version: Version::default(),
        resources: resources.iter().map(|&name| resource(name)).collect(),
        removed: removed.iter().map(|&name| ResourceName::from(name)).collect(),
        type_url: endpoints(),
        nonce: "1".into(),
        control_plane: String::new(),
        errors: Vec::new(),
    }
}

/// Returns a client that has announced these subscriptions to its server.
fn asked(names: &[&str]) -> Client<Delta> {
    let mut client = client();
    client.resources_mut(&endpoints()).subscribe(names.iter().copied()).expect("names");
    client.handle_open();
    assert!(client.poll_transmit().is_some());
    client
}

/// Receives a response, without a verdict yet.
fn hear(client: &mut Client<Delta>, resources: &[&str], removed: &[&str]) -> Vec<Action> {
    hear_response(client, response(resources, removed))
}

fn hear_response(client: &mut Client<Delta>, response: delta::Response) -> Vec<Action> {
    client.handle_response(NOW, response).expect("a response");
    std::iter::from_fn(|| client.poll_action()).collect()
}

fn accept(client: &mut Client<Delta>, actions: Vec<Action>) {
    for action in actions {
        if let Action::Apply(update) = action {
            client.handle_verdict(NOW, update.accept()).expect("it is out");
        }
    }
}

fn update<V: Variant>(client: &mut Client<V>) -> Update {
    match client.poll_action() {
        Some(Action::Apply(update)) => update,
        other => panic!("{other:?} is no update"),
    }
}

/// Subscribed names are visible at once, without a call that processes them.
#[test]
fn newly_subscribed_names_are_visible_at_once() {
    let mut client = asked(&["b"]);
    let actions = hear(&mut client, &["b"], &[]);
    accept(&mut client, actions);
    client.resources_mut(&endpoints()).subscribe(["c", "a", "b"]).expect("names");
    assert!(client.wants_transmit());
    let (acked, requested) = (ResourceStatus::Acked, ResourceStatus::Requested);
    assert_eq!(client.resources(&endpoints()).state("stranger"), None);
    assert_eq!(states(&client), [("a".into(), requested), ("b".into(), acked), ("c".into(), requested)]);
    assert!(client.layer(&endpoints()).is_awaited("a"));
    assert!(!client.layer(&endpoints()).is_awaited("d"));
    assert!(client.poll_transmit().is_some());
    client.resources_mut(&endpoints()).subscribe(["a", "d"]).expect("names");
    let expected = [("a", requested), ("b", acked), ("c", requested), ("d", requested)];
    assert_eq!(states(&client), expected.map(|(name, status)| (name.into(), status)));
}

/// A collection is awaited until one of its members has arrived, even if that member was removed since.
#[test]
fn a_collection_is_awaited_until_a_member_arrives() {
    let mut client = asked(&["b", GLOB]);
    assert_eq!(states(&client), [("b".into(), ResourceStatus::Requested), (GLOB.into(), ResourceStatus::Requested)]);
    assert!(client.layer(&endpoints()).is_awaited(GLOB));
    let actions = hear(&mut client, &["b", MEMBER], &[]);
    assert!(!client.layer(&endpoints()).is_awaited(GLOB), "it is in the update");
    assert!(!client.layer(&endpoints()).is_awaited("b"));
    accept(&mut client, actions);
    assert!(!client.layer(&endpoints()).is_awaited(GLOB));
    let actions = hear(&mut client, &[], &[MEMBER]);
    accept(&mut client, actions);
    assert!(!client.layer(&endpoints()).is_awaited(GLOB), "it was there");
    assert!(!client.layer(&endpoints()).does_not_exist(GLOB));
    hear(&mut client, &[], &[GLOB]);
    assert!(client.layer(&endpoints()).does_not_exist(GLOB));
    let actions = hear(&mut client, &[MEMBER], &[]);
    assert!(client.layer(&endpoints()).does_not_exist(GLOB), "nobody has accepted it");
    accept(&mut client, actions);
    assert!(!client.layer(&endpoints()).does_not_exist(GLOB));
}

/// The wildcard is awaited until the server answers it: with no resource, or with resources that may be removed since.
#[test]
fn the_wildcard_is_awaited_until_the_server_answers_it() {
    let mut client = asked(&["*"]);
    assert!(client.layer(&endpoints()).is_awaited("*"));
    assert!(matches!(hear(&mut client, &[], &[])[..], [Action::Synced { .. }]));
    assert!(!client.layer(&endpoints()).is_awaited("*"));

    let mut client = asked(&["*", "b"]);
    let actions = hear(&mut client, &["b"], &[]);
    assert!(!client.layer(&endpoints()).is_awaited("*"), "it is in the update");
    accept(&mut client, actions);
    let actions = hear(&mut client, &[], &["b"]);
    assert!(!client.layer(&endpoints()).is_awaited("*"));
    accept(&mut client, actions);
    assert!(!client.layer(&endpoints()).is_awaited("*"), "it was there");
    client.resources_mut(&endpoints()).unsubscribe(["*"]);
    client.resources_mut(&endpoints()).subscribe(["*"]).expect("a name");
    assert!(client.layer(&endpoints()).is_awaited("*"), "it is asked for again");
    client.handle_open();
    assert!(client.poll_transmit().is_some());
    hear(&mut client, &[], &["b"]);
    assert!(!client.layer(&endpoints()).is_awaited("*"));
}

/// If the client subscribed to names first, only a response that is more than an answer to those names answers the
/// wildcard.
#[test]
fn an_answer_to_earlier_names_alone_does_not_answer_the_wildcard() {
    let answered = |resources: &[&str], removed: &[&str]| {
        let mut client = asked(&["b"]);
        client.resources_mut(&endpoints()).subscribe(["*"]).expect("a name");
        let early = hear(&mut client, &[], &[]);
        assert!(matches!(early[..], [Action::Synced { .. }]));
        assert!(client.layer(&endpoints()).is_awaited("*"), "the server has not heard of it");
        assert!(client.poll_transmit().is_some() && client.poll_transmit().is_some());
        let actions = hear(&mut client, resources, removed);
        accept(&mut client, actions);
        if !resources.is_empty() {
            let actions = hear(&mut client, &[], resources);
            accept(&mut client, actions);
        }
        !client.layer(&endpoints()).is_awaited("*")
    };
    assert!(!answered(&[], &["b"]));
    assert!(!answered(&["b"], &[]));
    assert!(answered(&["b", "a"], &[]));
    assert!(answered(&["a"], &[]));
    assert!(answered(&[], &["a"]));
    assert!(answered(&[], &[]));
}

/// The same if the wildcard was sent first, and then unsubscribed and subscribed again; but not if only a name was. An
/// error of a name answers that name.
#[test]
fn an_answer_to_names_alone_does_not_answer_a_resubscribed_wildcard() {
    let error = ResourceError { name: "b".into(), status: Some(Status::new(Code::Unavailable, "no")) };
    let of_names = [response(&[], &["b"]), delta::Response { errors: vec![error], ..response(&[], &[]) }];
    for (leaves, answered) in [("*", false), ("c", true)] {
        for of_names in &of_names {
            let mut client = asked(&["*", "b", "c"]);
            client.resources_mut(&endpoints()).unsubscribe([leaves]);
            assert!(client.poll_transmit().is_some());
            client.resources_mut(&endpoints()).subscribe([leaves]).expect("a name");
            assert!(client.poll_transmit().is_some());
            let actions = hear_response(&mut client, of_names.clone());
            accept(&mut client, actions);
            assert_eq!(client.layer(&endpoints()).is_awaited("*"), !answered, "{leaves}");
        }
    }
}

/// A resource that is removed because it cannot be served may exist.
#[test]
fn a_resource_removed_with_another_error_than_not_found_may_exist() {
    for (code, exists) in [(Code::Unavailable, true), (Code::NotFound, false)] {
        let mut client = asked(&["a"]);
        let actions = hear(&mut client, &["a"], &[]);
        accept(&mut client, actions);
        let error = ResourceError { name: "a".into(), status: Some(Status::new(code, "no")) };
        let actions = hear_response(&mut client, delta::Response { errors: vec![error], ..response(&[], &["a"]) });
        accept(&mut client, actions);
        assert_eq!(client.layer(&endpoints()).does_not_exist("a"), !exists);
    }
}

/// In SotW the client distinguishes an answer to the wildcard from an answer to names.
#[test]
fn the_sotw_wildcard_is_answered_only_by_a_response_after_its_request() {
    let empty = |nonce: &str| xds_machine::message::sotw::Response {
        version: "1".into(),
        resources: Vec::new(),
        type_url: endpoints(),
        nonce: nonce.into(),
        control_plane: String::new(),
        errors: Vec::new(),
    };
    let mut client = client::<Sotw>();
    client.resources_mut(&endpoints()).subscribe(["a"]).expect("a name");
    client.handle_open();
    assert!(client.poll_transmit().is_some());
    client.resources_mut(&endpoints()).subscribe(["*"]).expect("a name");
    client.handle_response(NOW, empty("1")).expect("a response");
    assert!(client.layer(&endpoints()).is_awaited("*"), "the server has not heard of it");

    let mut client = self::client::<Sotw>();
    client.resources_mut(&endpoints()).subscribe(["*"]).expect("a name");
    client.handle_open();
    assert!(client.poll_transmit().is_some());
    client.handle_response(NOW, empty("1")).expect("a response");
    assert!(!client.layer(&endpoints()).is_awaited("*"));
}

/// A resource that was unsubscribed for a while is held at its version, which the client does not claim.
#[test]
fn a_resource_resubscribed_before_the_verdict_is_held_at_its_version() {
    let clusters = TypeUrl::from(type_url::CLUSTER);
    let mut client = client::<Sotw>();
    client.resources_mut(&clusters).subscribe(["a", "b"]).expect("names");
    client.handle_open();
    assert!(client.poll_transmit().is_some());
    let any = |body: &'static [u8]| sotw::Item::Bare(Any { type_url: clusters.clone(), value: body.into() });
    let response = sotw::Response {
        version: "7".into(),
        resources: vec![any(b"\x0a\x01a"), any(b"\x0a\x01b")],
        type_url: clusters.clone(),
        nonce: "1".into(),
        control_plane: String::new(),
        errors: Vec::new(),
    };
    client.handle_response(NOW, response).expect("a response");
    client.resources_mut(&clusters).unsubscribe(["a"]);
    client.resources_mut(&clusters).subscribe(["a"]).expect("a name");
    let Some(Action::Apply(update)) = client.poll_action() else { panic!("no update") };
    client.handle_verdict(NOW, update.accept()).expect("it is out");
    let versions: Vec<_> = client.states().map(|(_, name, state)| (name.as_str(), state.version)).collect();
    assert_eq!(versions, [("a", Some(&"7".into())), ("b", Some(&"7".into()))]);
}

/// A resource with a reported error counts as known.
#[test]
fn a_resource_with_an_error_is_not_awaited() {
    let mut client = asked(&["a", "b"]);
    let error =
        |name: &str, code| ResourceError { name: name.into(), status: Some(Status { code, message: String::new() }) };
    let errors = vec![error("b", 14)];
    client.handle_response(NOW, delta::Response { errors, ..response(&[], &[]) }).expect("a response");
    assert!(client.layer(&endpoints()).is_awaited("a"));
    assert!(!client.layer(&endpoints()).is_awaited("b"));
}

/// A verdict belongs to one update, even if another update of the type is out.
#[test]
fn a_verdict_on_an_earlier_update_is_refused() {
    let mut client = asked(&["a"]);
    let first = hear(&mut client, &["a"], &[]);
    accept(&mut client, first.clone());
    let second = hear(&mut client, &["a"], &[]);
    let Action::Apply(update) = first.into_iter().next().expect("an update") else { panic!("no update") };
    let misuse = Misuse::UnknownUpdate { type_url: endpoints() };
    assert_eq!(client.handle_verdict(NOW, update.accept()), Err(misuse));
    accept(&mut client, second);
}

/// An update has the id of its client, for a caller with several. Configurations with the same settings are equal.
#[test]
fn an_update_has_the_id_of_its_client() {
    let config = |id| Config::new(Node::new("n")).with_id(id);
    assert_eq!(config(7), config(7));
    assert_eq!(server::Config::ads(), server::Config::ads());
    assert_ne!(server::Config::ads(), server::Config::ads().with_node_required());
    assert_ne!(config(7), config(8));
    for id in [7, 8] {
        let mut client = Client::<Delta>::new(config(id));
        client.resources_mut(&endpoints()).subscribe(["a"]).expect("a name");
        client.handle_open();
        assert!(client.poll_transmit().is_some());
        let actions = hear(&mut client, &["a"], &[]);
        let [Action::Apply(update)] = &actions[..] else { panic!("no update") };
        assert_eq!(update.client_id(), id);
    }
}

/// An unrequested response is dropped, and reported with its nonce.
#[test]
fn an_unrequested_response_is_dropped_and_reported_with_its_nonce() {
    let mut client = client::<Delta>();
    client.handle_open();
    let actions = hear(&mut client, &["a"], &[]);
    assert!(matches!(&actions[..], [Action::DropStale { nonce, count: 1, .. }] if *nonce == "1"), "{actions:?}");
}

#[test]
fn an_adopted_resource_is_not_claimed_as_nonexistent() {
    let mut client = asked(&["a"]);
    let mut not_found = response(&["a"], &[]);
    not_found.resources[0].body = None;
    not_found.resources[0].aliases = vec!["another".into()];
    client.handle_response(NOW, not_found).expect("a response");
    client.layer_mut(&endpoints()).adopt([("a", None)]);
    client.check_invariants().expect("a sound machine");
    client.handle_open();
    let first = client.poll_transmit().expect("a first request").request;
    assert_eq!(first.initial_versions, [("a", "")].into());
}

/// An alias of a rejected resource is not awaited, because the resource has arrived. A verdict lists its rejections.
#[test]
fn an_alias_of_a_rejected_resource_is_not_awaited() {
    let mut client = asked(&["alias"]);
    let resources = vec![Resource { aliases: vec!["alias".into()], ..resource("a") }];
    client.handle_response(NOW, delta::Response { resources, ..response(&[], &[]) }).expect("a response");
    let rejections = [Rejection::new("a", "no")];
    let verdict = update(&mut client).reject(rejections.clone());
    assert_eq!(verdict.rejections(), rejections);
    client.handle_verdict(NOW, verdict).expect("it is out");
    assert!(!client.layer(&endpoints()).is_awaited("alias"));
}

/// A resource is no alias of itself, and in SotW no resource has an alias.
#[test]
fn a_resource_is_no_alias_of_itself_and_sotw_has_no_aliases() {
    let of_itself = |name: &str, alias: &str| Resource { aliases: vec![alias.into()], ..resource(name) };
    let mut client = asked(&["a"]);
    let resources = vec![of_itself("a", "a")];
    client.handle_response(NOW, delta::Response { resources, ..response(&[], &[]) }).expect("a response");
    let verdict = update(&mut client).accept();
    client.handle_verdict(NOW, verdict).expect("it is out");
    assert_eq!(client.layer(&endpoints()).aliases(&"a".into()).count(), 0);

    let mut client = asked(&["alias"]);
    let resources = vec![of_itself("a", "alias")];
    client.handle_response(NOW, delta::Response { resources, ..response(&[], &[]) }).expect("a response");
    let verdict = update(&mut client).accept();
    client.handle_verdict(NOW, verdict).expect("it is out");
    assert_eq!(client.layer(&endpoints()).aliases(&"a".into()).collect::<Vec<_>>(), ["alias"], "but this is one");
    assert_eq!(client.layer(&"another".into()).aliases(&"a".into()).count(), 0);

    let mut client = self::client::<Sotw>();
    client.resources_mut(&endpoints()).subscribe(["a", "alias"]).expect("names");
    client.handle_open();
    assert!(client.poll_transmit().is_some());
    let response = sotw::Response {
        version: "1".into(),
        resources: vec![sotw::Item::Wrapped(Box::new(of_itself("a", "alias")))],
        type_url: endpoints(),
        nonce: "1".into(),
        control_plane: String::new(),
        errors: Vec::new(),
    };
    client.handle_response(NOW, response).expect("a response");
    let verdict = update(&mut client).accept();
    client.handle_verdict(NOW, verdict).expect("it is out");
    assert_eq!(client.layer(&endpoints()).aliases(&"a".into()).count(), 0);
    assert!(client.layer(&endpoints()).is_awaited("alias"));
}

/// A layer can mark a name as missing, but neither a held resource nor the wildcard.
#[test]
fn mark_does_not_exist_skips_held_resources_and_the_wildcard() {
    let mut client = asked(&["*", "a", "b"]);
    let actions = hear(&mut client, &["a"], &[]);
    accept(&mut client, actions);
    client.layer_mut(&endpoints()).mark_does_not_exist(["a", "b", "*"]);
    let missing = |name: &str| client.layer(&endpoints()).does_not_exist(name);
    assert_eq!(["a", "b", "*"].map(missing), [false, true, false]);
}

/// A waiting response is compared with the resources that are held when its turn comes, not when it arrived.
#[test]
fn a_waiting_response_is_compared_with_the_resources_held_at_its_turn() {
    let clusters = TypeUrl::from(type_url::CLUSTER);
    let mut client = client::<Sotw>();
    client.resources_mut(&clusters).subscribe(["*"]).expect("a name");
    client.handle_open();
    assert!(client.poll_transmit().is_some());
    let response = |nonce: &str| sotw::Response {
        version: "1".into(),
        resources: vec![sotw::Item::Bare(Any { type_url: clusters.clone(), value: Bytes::from_static(b"\x0a\x01a") })],
        type_url: clusters.clone(),
        nonce: nonce.into(),
        control_plane: String::new(),
        errors: Vec::new(),
    };
    client.handle_response(NOW, response("1")).expect("a response");
    let verdict = update(&mut client).accept();
    client.handle_verdict(NOW, verdict).expect("it is out");
    client.layer_mut(&clusters).block_updates();
    client.handle_response(NOW, response("2")).expect("a response");
    client.layer_mut(&clusters).forget(["a"]);
    client.layer_mut(&clusters).adopt([("b", None)]);
    client.layer_mut(&clusters).unblock_updates(NOW);
    assert_eq!(update(&mut client).removed(), [ResourceName::from("b")]);
}

/// Resources may be wrapped although they have neither a version, a TTL nor an alias: they are held all the same.
#[test]
fn wrapped_resources_of_a_full_state_type_are_removed_if_a_response_lacks_them() {
    let clusters = TypeUrl::from(type_url::CLUSTER);
    let mut client = client::<Sotw>();
    client.resources_mut(&clusters).subscribe(["*"]).expect("a name");
    client.handle_open();
    assert!(client.poll_transmit().is_some());
    let mut removed = Vec::new();
    for names in [&["a", "b"][..], &["b"], &[]] {
        let bare = |name: &str| Resource {
            version: Version::default(),
            body: Some(Any { type_url: clusters.clone(), value: Bytes::new() }),
            ..resource(name)
        };
        let response = sotw::Response {
            version: "1".into(),
            resources: names.iter().map(|name| sotw::Item::Wrapped(Box::new(bare(name)))).collect(),
            type_url: clusters.clone(),
            nonce: "1".into(),
            control_plane: String::new(),
            errors: Vec::new(),
        };
        client.handle_response(NOW, response).expect("a response");
        let update = update(&mut client);
        removed.extend(update.removed().iter().map(ToString::to_string));
        client.handle_verdict(NOW, update.accept()).expect("it is out");
    }
    assert_eq!(removed, ["a", "b"]);
}

/// A resource that the server removes by an error (NOT_FOUND) does not exist.
#[test]
fn a_resource_removed_by_a_not_found_error_does_not_exist() {
    let mut client = asked(&["a"]);
    let actions = hear(&mut client, &["a"], &[]);
    accept(&mut client, actions);
    let errors = vec![ResourceError { name: "a".into(), status: Some(Status { code: 5, message: String::new() }) }];
    client.handle_response(NOW, delta::Response { errors, ..response(&[], &[]) }).expect("a response");
    let actions = std::iter::from_fn(|| client.poll_action()).collect();
    accept(&mut client, actions);
    assert!(client.layer(&endpoints()).does_not_exist("a"));
}

/// The mark of a layer that a held name or the wildcard does not exist is ignored: the error of each stays.
#[test]
fn mark_does_not_exist_keeps_the_errors_of_held_names_and_the_wildcard() {
    let mut client = asked(&["*", "a"]);
    let actions = hear(&mut client, &["a"], &[]);
    accept(&mut client, actions);
    client.handle_response(NOW, response(&["a"], &[])).expect("a response");
    let rejected = update(&mut client).reject_all("no");
    client.handle_verdict(NOW, rejected).expect("it is out");
    let error = ResourceError { name: "*".into(), status: Some(Status::new(Code::Unavailable, "later")) };
    hear_response(&mut client, delta::Response { errors: vec![error], ..response(&[], &[]) });
    let before = client.clone();
    client.layer_mut(&endpoints()).mark_does_not_exist(["a", "*"]);
    assert_eq!(client, before);
    let state = client.resources(&endpoints()).state("a").map(|state| state.status);
    assert_eq!(state, Some(ResourceStatus::Nacked));
}

/// An alias stands for no resource any more, and its former resource stays by its own name.
#[test]
fn the_removal_of_an_alias_keeps_its_former_resource() {
    let mut client = asked(&["a", "x", "y"]);
    let mut first = response(&["a"], &[]);
    first.resources[0].aliases = vec!["x".into(), "y".into()];
    let actions = hear_response(&mut client, first);
    accept(&mut client, actions);
    let aliases = |client: &Client<Delta>| -> Vec<String> {
        client.layer(&endpoints()).aliases(&"a".into()).map(ToString::to_string).collect()
    };
    assert_eq!(aliases(&client), ["x", "y"]);
    let names = vec![ResourceName::from("x")];
    let missing = Action::DoesNotExist { type_url: endpoints(), names };
    assert_eq!(
        hear(&mut client, &[], &["x"]),
        [missing, Action::Synced { type_url: endpoints(), answers_wildcard: false }]
    );
    assert_eq!(aliases(&client), ["y"]);
}

/// Names are removed, and one is reported as nonexistent besides: an alias of that one stays until the verdict on its
/// removal, even if the report comes after names that sort behind it.
#[test]
fn an_alias_stays_until_the_verdict_on_the_removal_of_its_resource() {
    let mut client = asked(&["a", "b", "c", "x"]);
    let mut first = response(&["a", "b", "c"], &[]);
    first.resources[0].aliases = vec!["x".into()];
    let actions = hear_response(&mut client, first);
    accept(&mut client, actions);
    let mut second = response(&["nowhere"], &["b", "c", "x"]);
    second.resources[0].body = None;
    second.resources[0].aliases = vec!["a".into()];
    let actions = hear_response(&mut client, second);
    let aliases = |client: &Client<Delta>| client.layer(&endpoints()).aliases(&"a".into()).count();
    assert_eq!(aliases(&client), 1);
    accept(&mut client, actions);
    assert_eq!(aliases(&client), 0);
    assert_eq!(client.layer(&endpoints()).held().count(), 0);
}

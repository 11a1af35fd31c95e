//! The referee is silent about this project's machines, and complains of each seeded defect that the wire shows.

use xds_conformance::message::{Item, Node, Request, Response, Variant};
use xds_conformance::referee::{ClientReferee, Merit, Rule, ServerReferee, World};
use xds_machine::{Delta, Sotw};
use xds_machine_testing::world::Bug;

use crate::walker::{Judged, Walk};

mod client;
mod server;

/// The number of walks of a variant, and of steps of a walk.
const WALKS: u64 = 3_000;
const STEPS: usize = 120;

fn is_silent<V: Judged>() {
    for seed in 0..WALKS {
        let walk = Walk::<V>::new(seed, None).run(STEPS);
        let complaint = walk.complaints.first().map(ToString::to_string);
        assert_eq!(complaint, None, "seed {seed}:\n{}", walk.ladder.join("\n"));
    }
}

#[test]
fn the_referees_report_no_violation_in_sotw_walks() {
    is_silent::<Sotw>();
}

#[test]
fn the_referees_report_no_violation_in_delta_walks() {
    is_silent::<Delta>();
}

/// Returns the rules that walks against a defective server break, each from its own first complaint.
fn broken<V: Judged>(bug: Bug) -> Vec<Rule> {
    let mut rules: Vec<Rule> =
        (0..300).filter_map(|seed| Some(Walk::<V>::new(seed, Some(bug)).run(STEPS).complaints.first()?.rule)).collect();
    rules.sort();
    rules.dedup();
    rules
}

#[test]
fn every_visible_defect_of_a_sotw_server_is_reported() {
    for (bug, rule) in [
        (Bug::NeverForgetsNames, Rule::Unwanted),
        (Bug::NotSentAgain, Rule::Owed),
        (Bug::NoEmptyAnswer, Rule::NotRemoved),
        (Bug::OneRequestPerNonce, Rule::Owed),
        (Bug::IgnoresNamesOnNack, Rule::NotSent),
        (Bug::FirstNamesOnly, Rule::Owed),
        (Bug::ConstantNonce, Rule::NonceAgain),
        (Bug::EmptyMeansAll, Rule::Unwanted),
        (Bug::PartOfFullState, Rule::FullState),
    ] {
        let rules = broken::<Sotw>(bug);
        assert!(rules.contains(&rule), "{bug:?}: {rules:?}");
    }
}

#[test]
fn every_visible_defect_of_a_delta_server_is_reported() {
    for (bug, rule) in [
        (Bug::ResendsRejected, Rule::Needless),
        (Bug::NackLoop, Rule::Needless),
        (Bug::NotSentAgain, Rule::Owed),
        (Bug::ForgetsRemovals, Rule::NotRemoved),
        (Bug::ConstantNonce, Rule::NonceAgain),
    ] {
        let rules = broken::<Delta>(bug);
        assert!(rules.contains(&rule), "{bug:?}: {rules:?}");
    }
}

/// A request that crosses a response is stale to the server: the name that it leaves out was never unsubscribed from.
#[test]
fn a_name_resubscribed_after_a_stale_unsubscription_need_not_be_sent_again() {
    let eds = xds_conformance::resource::type_url("eds");
    let judged = |crosses: bool| {
        let mut referee = ServerReferee::new(Variant::Sotw, None, World::controlled(""));
        referee.put(eds, "a", 1);
        let ask = |names: &[&str], nonce: &str| Request {
            type_url: eds.into(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            nonce: nonce.into(),
            ..Request::default()
        };
        let body = Some(xds_conformance::resource::body(eds, "a", 1).into());
        let item = Item { name: "a".into(), any_type: eds.into(), body, revision: Some(1), ..Item::default() };
        let (version, nonce) = ("1".to_owned(), "1".to_owned());
        let response = Response { type_url: eds.into(), version, nonce, resources: vec![item], ..Response::default() };
        referee.request(&ask(&["a"], ""));
        if crosses {
            referee.request(&ask(&[], ""));
            assert_eq!(referee.response(&response), []);
            referee.request(&ask(&["a"], ""));
        } else {
            assert_eq!(referee.response(&response), []);
            referee.request(&ask(&[], "1"));
        }
        referee.request(&ask(&["a"], "1"));
        referee.rest(true).first().map(|complaint| complaint.rule)
    };
    assert_eq!((judged(false), judged(true)), (Some(Rule::Owed), None));
}

/// A client that was told to unsubscribe from a name may have done so before it read the bad resource of that name.
#[test]
fn an_ack_of_a_bad_resource_is_not_reported_while_unsubscribing() {
    let cds = xds_conformance::resource::type_url("cds");
    let judged = |leaves: bool| {
        let mut referee = ClientReferee::new(Variant::Delta);
        let node = Some(Node { id: "n".into(), ..Node::default() });
        let first = Request { type_url: cds.into(), names: vec!["a".into()], node, ..Request::default() };
        assert_eq!(referee.request(&first), []);
        let response = Response { type_url: cds.into(), nonce: "1".into(), ..Response::default() };
        referee.response_with(&response, Merit::Bad);
        if leaves {
            referee.leaves(cds);
        }
        let ack = Request { type_url: cds.into(), nonce: "1".into(), ..Request::default() };
        referee.request(&ack).first().map(|complaint| complaint.rule)
    };
    assert_eq!((judged(false), judged(true)), (Some(Rule::BadAccepted), None));
}

#[test]
fn every_visible_defect_of_a_client_is_reported() {
    for (bug, rule) in [
        (Bug::KeepsNonce, Rule::FirstRequest),
        (Bug::VersionStuck, Rule::AckVersion),
        (Bug::NoAnswerOnceUnwanted, Rule::NotAnswered),
        (Bug::NoNames, Rule::Names),
    ] {
        let rules = broken::<Sotw>(bug);
        assert!(rules.contains(&rule), "{bug:?}: {rules:?}");
    }
    for (bug, rule) in [
        (Bug::AnswersTwice, Rule::AnsweredTwice),
        (Bug::ForgetsUnsubscribe, Rule::NamesUnwanted),
        (Bug::NoAnswerOnceUnwanted, Rule::NotAnswered),
    ] {
        let rules = broken::<Delta>(bug);
        assert!(rules.contains(&rule), "{bug:?}: {rules:?}");
    }
}

/// Returns the rules that the referee of a server complains of in a delta conversation about endpoints.
fn judged(first: &Request, responses: &[Response]) -> Vec<Rule> {
    let mut referee = ServerReferee::new(Variant::Delta, None, World::unknown());
    referee.request(first);
    let mut complaints: Vec<_> = responses.iter().flat_map(|response| referee.response(response)).collect();
    let acks = responses.iter().map(|response| Request { nonce: response.nonce.clone(), ..of_endpoints() });
    acks.for_each(|ack| referee.request(&ack));
    complaints.extend(referee.rest(true));
    complaints.into_iter().map(|complaint| complaint.rule).collect()
}

fn of(type_url: &str) -> Request {
    Request { type_url: type_url.into(), ..Request::default() }
}

fn of_endpoints() -> Request {
    of(xds_conformance::resource::type_url("eds"))
}

fn subscribes(name: &str) -> Request {
    Request { names: vec![name.into()], ..of_endpoints() }
}

/// Returns a response with a resource, or without one if the name is empty.
fn has(nonce: &str, name: &str, alias: Option<&str>) -> Response {
    let type_url = of_endpoints().type_url;
    let aliases = alias.into_iter().map(str::to_owned).collect();
    let body = Some(xds_conformance::resource::body(&type_url, name, 1).into());
    let (any_type, version, revision) = (type_url.clone(), "1".to_owned(), Some(1));
    let item = Item { name: name.into(), version, any_type, body, aliases, revision, ..Item::default() };
    let resources = if name.is_empty() { Vec::new() } else { vec![item] };
    Response { type_url, nonce: nonce.into(), resources, ..Response::default() }
}

fn lacks(nonce: &str, names: &[&str]) -> Response {
    Response { removed: names.iter().map(|&name| name.into()).collect(), ..has(nonce, "", None) }
}

const ALL: &str = "xdstp:///T/*";
const MEMBER: &str = "xdstp:///T/a";

#[test]
fn a_collection_is_answered_by_a_member() {
    assert_eq!(judged(&subscribes(ALL), &[has("1", MEMBER, None)]), []);
    assert_eq!(judged(&subscribes(ALL), &[lacks("1", &[MEMBER])]), []);
    assert_eq!(judged(&subscribes(ALL), &[lacks("1", &[ALL])]), []);
    assert_eq!(judged(&subscribes(ALL), &[has("1", "xdstp:///U/a", None)]), [Rule::Unanswered]);
    assert_eq!(judged(&subscribes(ALL), &[]), [Rule::Unanswered]);
    // Only names of the new form are collections.
    assert_eq!(judged(&subscribes("T/*"), &[has("1", "T/a", None)]), [Rule::Unanswered]);
}

#[test]
fn a_complaint_says_the_rule_the_type_and_what_is_wrong() {
    let mut referee = ServerReferee::new(Variant::Delta, None, World::unknown());
    referee.request(&subscribes("a"));
    let complaints: Vec<String> = referee.rest(true).iter().map(ToString::to_string).collect();
    assert_eq!(complaints, ["unanswered: eds a was subscribed to, and no response mentions it"]);
}

/// A server that believes the claim has nothing to send.
#[test]
fn a_collection_with_a_claimed_member_needs_no_answer() {
    let claims = |name: &str| {
        let initial = [(name.to_owned(), "1".to_owned())].into();
        judged(&Request { initial, ..subscribes(ALL) }, &[has("1", "", None)])
    };
    assert_eq!((claims(MEMBER), claims("xdstp:///U/a")), (vec![], vec![Rule::Unanswered]));
}

/// The member was sent because of its own name, and is sent again because of the collection.
#[test]
fn a_collection_is_a_reason_to_send_its_members() {
    let judged = |then: &str| {
        let mut referee = ServerReferee::new(Variant::Delta, None, World::unknown());
        referee.request(&subscribes(MEMBER));
        let sent = ["1", "2"].map(|nonce| referee.response(&has(nonce, MEMBER, None)));
        assert_eq!(sent, [vec![], vec![]], "once for the name, and once for the first request");
        referee.request(&subscribes(then));
        referee.response(&has("3", MEMBER, None)).first().map(|complaint| complaint.rule)
    };
    assert_eq!((judged(ALL), judged("xdstp:///T/b")), (None, Some(Rule::Needless)));
}

/// A client that asked for an alias receives the removal of the resource under the same name.
#[test]
fn the_removal_of_an_alias_is_a_change_if_its_resource_was_sent() {
    let removal = |times: usize| {
        let gone = ["2", "3", "4"].map(|nonce| lacks(nonce, &[MEMBER, "alias"]));
        judged(&subscribes("alias"), &[&[has("1", MEMBER, Some("alias"))][..], &gone[..times]].concat())
    };
    // The second removal is excused by the first request.
    assert_eq!((removal(1), removal(2), removal(3)), (vec![], vec![], vec![Rule::Needless]));
}

/// SotW, full state: an error may take the place of the removal, for the response is without the resource.
#[test]
fn a_resource_error_in_a_full_state_response_counts_as_its_removal() {
    let cds = xds_conformance::resource::type_url("cds");
    let judged = |answers: bool| {
        let mut referee = ServerReferee::new(Variant::Sotw, None, World::controlled(""));
        let ask = |nonce: &str| Request { names: vec!["a".into()], nonce: nonce.into(), ..of(cds) };
        let say = |nonce: &str| {
            let (version, nonce) = (nonce.to_owned(), nonce.to_owned());
            Response { type_url: cds.into(), version, nonce, ..Response::default() }
        };
        referee.put(cds, "a", 1);
        referee.request(&ask(""));
        let body = Some(xds_conformance::resource::body(cds, "a", 1).into());
        let item = Item { name: "a".into(), any_type: cds.into(), body, revision: Some(1), ..Item::default() };
        assert_eq!(referee.response(&Response { resources: vec![item], ..say("1") }), []);
        referee.request(&ask("1"));
        assert_eq!(referee.rest(true), []);
        referee.delete(cds, "a");
        if answers {
            // Each response of the type has the errors; the second one has news of another kind.
            for nonce in ["2", "3"] {
                assert_eq!(referee.response(&Response { errors: vec!["a".into()], ..say(nonce) }), []);
                referee.request(&ask(nonce));
            }
        }
        referee.rest(true).first().map(|complaint| complaint.rule)
    };
    assert_eq!((judged(true), judged(false)), (None, Some(Rule::NotRemoved)));
}

//! The complaints of the referee of a client about short conversations, each for one of its conditions.

use xds_conformance::message::{Item, Node, Request, Response, Variant};
use xds_conformance::referee::{ClientReferee, Merit, Rule, Wanted};
use xds_machine::type_url::ENDPOINT;

fn node(id: &str) -> Option<Node> {
    Some(Node { id: id.into(), ..Node::default() })
}

/// Returns a request for `a`.
fn asks(nonce: &str, version: &str) -> Request {
    let (nonce, version) = (nonce.into(), version.into());
    Request { type_url: ENDPOINT.into(), names: vec!["a".into()], nonce, version, ..Request::default() }
}

/// Returns the first request for `a` of a stream.
fn begins(version: &str) -> Request {
    Request { node: node("n"), ..asks("", version) }
}

fn rejects(nonce: &str, version: &str) -> Request {
    Request { error: Some((3, "no".into())), ..asks(nonce, version) }
}

/// Returns a response with `a`.
fn has(nonce: &str, version: &str) -> Response {
    let item = Item { name: "a".into(), version: version.into(), ..Item::default() };
    let (type_url, nonce, version) = (ENDPOINT.into(), nonce.into(), version.into());
    Response { type_url, nonce, version, resources: vec![item], ..Response::default() }
}

/// Returns the rules that a request breaks.
fn broken(referee: &mut ClientReferee, request: &Request) -> Vec<Rule> {
    referee.request(request).into_iter().map(|complaint| complaint.rule).collect()
}

/// Returns the referee of a stream whose first request is good.
fn begun(variant: Variant) -> ClientReferee {
    let mut referee = ClientReferee::new(variant);
    assert_eq!(referee.request(&begins("")), []);
    referee
}

#[test]
fn a_different_node_in_a_later_request_is_reported() {
    let judged = |id| broken(&mut begun(Variant::Sotw), &Request { node: node(id), ..asks("", "") });
    assert_eq!((judged("n"), judged("other")), (vec![], vec![Rule::Node]));
}

/// The claims of a client from streams that no referee has seen are not judged.
#[test]
fn a_claim_of_an_unsent_version_is_reported_unless_earlier_streams_are_unknown() {
    let new = broken(&mut ClientReferee::new(Variant::Sotw), &begins("v"));
    let amid = broken(&mut ClientReferee::amid(Variant::Sotw), &begins("v"));
    assert_eq!((new, amid), (vec![Rule::FirstRequest], vec![]));
    let mut next = begun(Variant::Sotw).next();
    assert_eq!(broken(&mut next, &begins("v")), [Rule::FirstRequest]);
}

/// A NACK of the first response has the version that the stream began with, or none.
#[test]
fn a_first_nack_must_have_the_claimed_version_or_none() {
    let judged = |version| {
        let mut referee = ClientReferee::amid(Variant::Sotw);
        assert_eq!(referee.request(&begins("v")), []);
        referee.response(&has("1", "w"));
        broken(&mut referee, &rejects("1", version))
    };
    assert_eq!((judged("v"), judged(""), judged("x")), (vec![], vec![], vec![Rule::NackVersion]));
}

/// The names are judged on the next stream too, as long as what is wanted does not change.
#[test]
fn the_subscription_is_enforced_on_the_next_stream_until_it_changes() {
    let wanted: Wanted = [(ENDPOINT.to_owned(), ["a".to_owned()].into())].into();
    let mut referee = begun(Variant::Sotw);
    assert_eq!(referee.rest(&wanted), []);
    let more = Request { names: vec!["a".into(), "b".into()], ..begins("") };
    assert_eq!(broken(&mut referee.next(), &more), [Rule::NamesUnwanted]);
    referee.unsettle();
    assert_eq!(broken(&mut referee.next(), &more), []);
}

/// After two streams that ended at the same time, the next one may claim the resources of either.
#[test]
fn a_claim_of_a_resource_of_another_ended_stream_is_accepted() {
    let mut other = begun(Variant::Delta);
    other.response(&has("1", "v"));
    let other = other.next();
    let claims = Request { initial: [("a".to_owned(), "v".to_owned())].into(), ..begins("v") };
    let mut alone = begun(Variant::Delta).next();
    assert_eq!(broken(&mut alone.clone(), &claims), [Rule::FirstRequest, Rule::Claims]);
    alone.learn(&other);
    assert_eq!(broken(&mut alone, &claims), []);
    assert_eq!(broken(&mut alone, &asks("1", "")), [Rule::NonceOfOtherStream]);
}

/// A client that is about to unsubscribe from a name may ignore a bad resource of that name, but does not reject a good
/// one.
#[test]
fn a_nack_of_a_good_resource_is_reported_even_while_unsubscribing() {
    let mut referee = begun(Variant::Delta);
    referee.response_with(&has("1", "v"), Merit::Good);
    referee.leaves(ENDPOINT);
    assert_eq!(broken(&mut referee, &rejects("1", "")), [Rule::GoodRejected]);
}

/// Delta: each response has an answer of its own, in any order.
#[test]
fn an_older_nonce_after_a_later_one_is_wrong_in_sotw_alone() {
    let judged = |variant| {
        let mut referee = begun(variant);
        ["1", "2"].iter().for_each(|nonce| referee.response(&has(nonce, "v")));
        ["2", "1"].iter().flat_map(|nonce| broken(&mut referee, &asks(nonce, "v"))).collect::<Vec<_>>()
    };
    assert_eq!((judged(Variant::Sotw), judged(Variant::Delta)), (vec![Rule::NonceLatest], vec![]));
}

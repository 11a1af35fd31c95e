//! The referee is silent about this project's machines, and complains of each seeded defect that the wire shows.

use xds_conformance::message::{Item, Node, Request, Response, Variant};
use xds_conformance::referee::{ClientReferee, Merit, Rule, ServerReferee, World};
use xds_machine::{Delta, Sotw};
use xds_machine_testing::world::Bug;

use crate::walker::{Judged, Walk};

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
fn silent_over_sotw_walks() {
    is_silent::<Sotw>();
}

#[test]
fn silent_over_delta_walks() {
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
fn every_visible_defect_of_a_sotw_server_is_complained_of() {
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
fn every_visible_defect_of_a_delta_server_is_complained_of() {
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

/// A request that crosses a response is stale to the server: the name that it leaves was never left.
#[test]
fn a_name_that_is_left_and_comes_back_across_a_response_is_not_owed() {
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

/// A client that was told to leave a name may have done so before it read what is bad of it.
#[test]
fn what_is_bad_of_a_name_that_is_being_left_may_be_ignored() {
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
fn every_visible_defect_of_a_client_is_complained_of() {
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

//! The complaints of the referee of a server about short conversations, each for one of its conditions.
//!
//! A conversation is a text. `ask` has the names of a request, `-a` one to unsubscribe from, `a=v` a claim, `%v` the
//! version in use; `say` has the resources of a response, `a@2` at revision 2, `a=v` at a version, `^a=v` a heartbeat,
//! `!a` a removal; `#1` is the nonce of either. `put` and `rest` are the calls of the same names. Of a name that begins
//! with `k`, the referee knows whether it exists.

use std::time::Duration;

use xds_conformance::message::{Item, Request, Response, Variant};
use xds_conformance::referee::{Rule, ServerReferee, World};
use xds_conformance::resource;
use xds_machine::type_url;

/// A conversation of one type.
struct Talk {
    referee: ServerReferee,
    variant: Variant,
    type_url: &'static str,
    complaints: Vec<(Rule, String)>,
}

impl Talk {
    fn new(variant: Variant, type_url: &'static str) -> Self {
        let referee = ServerReferee::new(variant, None, World::controlled("k"));
        Self { referee, variant, type_url, complaints: Vec::new() }
    }

    fn goes(mut self, talk: &str) -> Self {
        for step in talk.split(';') {
            let (verb, words) = step.trim().split_once(' ').unwrap_or((step.trim(), ""));
            let mut words = words.split_whitespace();
            let complaints = match verb {
                "ask" => {
                    self.referee.request(&request(self.type_url, words));
                    Vec::new()
                }
                "say" => self.referee.response(&response(self.variant, self.type_url, words)),
                "put" => {
                    let (name, revision) = at_revision(words.next().expect("a name"));
                    self.referee.put(self.type_url, name, revision);
                    Vec::new()
                }
                "rest" => self.referee.rest(true),
                _ => panic!("no step {verb:?}"),
            };
            self.complaints.extend(complaints.into_iter().map(|complaint| (complaint.rule, complaint.what)));
        }
        self
    }

    fn rules(&self) -> Vec<Rule> {
        self.complaints.iter().map(|(rule, _)| *rule).collect()
    }
}

fn request<'a>(type_url: &str, words: impl Iterator<Item = &'a str>) -> Request {
    let mut request = Request { type_url: type_url.into(), ..Request::default() };
    for word in words {
        match (word.split_at(1), word.split_once('=')) {
            (("#", nonce), _) => request.nonce = nonce.into(),
            (("%", version), _) => request.version = version.into(),
            (("-", name), _) => request.unsubscribe.push(name.into()),
            (_, Some((name, version))) => _ = request.initial.insert(name.into(), version.into()),
            _ => request.names.push(word.into()),
        }
    }
    request
}

/// Reads a response. The version of a SotW response is its nonce; the version of a resource in delta is its revision,
/// unless it is given.
fn response<'a>(variant: Variant, type_url: &str, words: impl Iterator<Item = &'a str>) -> Response {
    let mut response = Response { type_url: type_url.into(), ..Response::default() };
    for word in words {
        match word.split_at(1) {
            ("#", nonce) => (response.nonce, response.version) = (nonce.into(), nonce.into()),
            ("!", name) => response.removed.push(name.into()),
            ("^", name) => {
                let ttl = Some(Duration::from_secs(1));
                response.resources.push(Item { body: None, revision: None, ttl, ..item(variant, type_url, name) });
            }
            _ => response.resources.push(item(variant, type_url, word)),
        }
    }
    response
}

fn item(variant: Variant, type_url: &str, word: &str) -> Item {
    let (word, version) = word.split_once('=').map_or((word, None), |(word, version)| (word, Some(version)));
    let (name, revision) = at_revision(word);
    let body = Some(resource::body(type_url, name, revision).into());
    let version = match variant {
        Variant::Sotw => String::new(),
        Variant::Delta => version.map_or(revision.to_string(), str::to_owned),
    };
    let (name, any_type) = (name.into(), type_url.into());
    Item { name, version, any_type, body, revision: Some(revision), ..Item::default() }
}

fn at_revision(word: &str) -> (&str, u64) {
    word.split_once('@').map_or((word, 1), |(name, revision)| (name, revision.parse().expect("a revision")))
}

/// Returns the rules that a SotW conversation breaks: of clusters, which are full state, and of endpoints, which are
/// not.
fn sotw(talk: &str) -> [Vec<Rule>; 2] {
    [type_url::CLUSTER, type_url::ENDPOINT].map(|of| Talk::new(Variant::Sotw, of).goes(talk).rules())
}

/// Returns the same for a delta conversation.
fn delta(talk: &str) -> [Vec<Rule>; 2] {
    [type_url::CLUSTER, type_url::ENDPOINT].map(|of| Talk::new(Variant::Delta, of).goes(talk).rules())
}

#[test]
fn an_empty_first_list_must_be_served_as_wildcard_for_full_state_types_only() {
    let nothing_comes = "put k@1; ask; say #1; ask #1; rest";
    assert_eq!(sotw(nothing_comes), [vec![Rule::NotSent], vec![]]);
    assert_eq!(delta(nothing_comes), [vec![Rule::NotSent], vec![]]);
    // Two sentences differ on a first request that only unsubscribes.
    assert_eq!(delta("put k@1; ask -a; say #1; ask #1; rest"), [vec![], vec![]]);
}

#[test]
fn a_resource_sent_before_its_subscription_must_be_sent_again() {
    let [_, of_endpoints] = sotw("put k@1; ask a; say #1 a k; ask a k #1; rest");
    assert_eq!(of_endpoints, [Rule::Unwanted, Rule::Owed]);
    // A stale request without the name does not change that; but a stale request with the name may be heeded.
    let [_, of_endpoints] = sotw("put k@1; ask a; say #1 a; ask a; say #2 a; say #3 k; ask a k #3; rest");
    assert_eq!(of_endpoints, [Rule::Unwanted, Rule::Owed]);
    let [_, of_endpoints] = sotw("put k@1; ask a; say #1 a; ask a k; say #2 a; say #3 k; ask a; ask a k #3; rest");
    assert_eq!(of_endpoints, []);
}

/// The server may have sent the resource before it read the unsubscription, and then have read no change at all.
#[test]
fn a_resource_that_crosses_its_unsubscription_need_not_be_sent_again() {
    assert_eq!(sotw("put k@1; ask k; ask; say #1 k; ask k #1; rest"), [vec![], vec![]]);
    assert_eq!(sotw("put k@1; ask k; say #1 k; ask #1; ask k #1; rest"), [[Rule::Owed]; 2].map(Vec::from));
}

/// One repetition is excused by the first request, and none by an ACK.
#[test]
fn an_ack_is_no_reason_to_resend_the_same_content() {
    let again = "ask a; say #1 a; ask a #1; say #2 a; ask a #2; say #3 a";
    assert_eq!(sotw(again), [[Rule::Needless]; 2].map(Vec::from));
    let again = "ask *; say #1 a; ask * #1; say #2 a; ask * #2; say #3 a";
    assert_eq!(sotw(again), [[Rule::Needless]; 2].map(Vec::from));
    // Three reasons: the first request, that it has names, and the name.
    let empty = "ask a; say #1 !a; ask #1; say #2; ask #2; say #3; ask #3; say #4; ask #4";
    assert_eq!(delta(empty), [vec![], vec![]]);
    assert_eq!(delta(&format!("{empty}; say #5")), [[Rule::Needless]; 2].map(Vec::from));
}

#[test]
fn a_stale_request_with_the_wildcard_may_be_applied() {
    assert_eq!(sotw("ask a; say #1 a; ask a *; say #2 a b"), [vec![], vec![]]);
    assert_eq!(sotw("ask a; say #1 a; ask a b; say #2 a c"), [[Rule::Unwanted]; 2].map(Vec::from));
}

/// The first request has a version: the server may believe that the client has the resources that the request names,
/// and no others.
#[test]
fn a_claimed_version_excuses_omitting_only_names_of_the_first_request() {
    assert_eq!(sotw("put k@1; ask k %v; say #1; ask k #1; rest"), [vec![], vec![]]);
    assert_eq!(sotw("put k@1; ask a %v; say #1 a; ask a k #1; rest"), [[Rule::Owed]; 2].map(Vec::from));
}

#[test]
fn a_heartbeat_has_the_version_that_was_sent() {
    assert_eq!(delta("ask a; say #1 a=1; ask #1; say #2 ^a=1"), [vec![], vec![]]);
    assert_eq!(delta("ask a; say #1 a=1; ask #1; say #2 ^a=2"), [[Rule::BeatVersion]; 2].map(Vec::from));
}

/// An answer may come in parts, but not that of a full-state type in SotW.
#[test]
fn each_part_of_a_repeated_response_has_the_same_excuse() {
    let in_parts = "ask a b; say #1 a b; ask a b #1; say #2 a; ask a b #2; say #3 b";
    let [_, of_endpoints] = sotw(in_parts);
    assert_eq!(of_endpoints, []);
    // Two reasons: the first request, and the wildcard.
    let in_parts = "ask *; say #1 a b; ask #1; say #2 a; ask #2; say #3 b; ask #3; say #4 a; ask #4; say #5 b; ask #5";
    assert_eq!(delta(in_parts), [vec![], vec![]]);
    assert_eq!(delta(&format!("{in_parts}; say #6 a")), [[Rule::Needless]; 2].map(Vec::from));
}

#[test]
fn content_that_the_server_never_had_is_reported() {
    assert_eq!(sotw("put k@1; ask k; say #1 k@1"), [vec![], vec![]]);
    assert_eq!(sotw("put k@1; ask k; say #1 k@2"), [[Rule::Content]; 2].map(Vec::from));
}

/// A resource that a full-state response leaves out is new information, and only once.
#[test]
fn a_smaller_full_state_response_counts_as_a_change_only_once() {
    let smaller = "ask *; say #1 a b; ask * #1; say #2 a b; ask * #2; say #3 a";
    assert_eq!(sotw(smaller), [vec![], vec![Rule::Needless]]);
    assert_eq!(sotw(&format!("{smaller}; ask * #3; say #4 a"))[0], [Rule::Needless]);
}

#[test]
fn content_that_changes_is_never_needless() {
    let changes = "ask a; say #1 a@1; ask a #1; say #2 a@2; ask a #2; say #3 a@3; ask a #3; say #4 a@4";
    assert_eq!(sotw(changes), [vec![], vec![]]);
    let changes =
        "ask a; say #1 a@1; ask #1; say #2 a@2; ask #2; say #3 a@3; ask #3; say #4 a@4; ask #4; say #5 a@5; ask #5";
    assert_eq!(delta(&format!("{changes}; say #6 !a")), [vec![], vec![]]);
}

/// The name is wanted whether the server heeds the stale list or drops it.
#[test]
fn a_name_in_both_the_current_and_a_stale_list_is_certainly_subscribed() {
    let left_out = "put k@1; put ka@1; ask k ka; say #1 k ka; ask k ka #1; rest; ask k ka; say #2 k";
    assert_eq!(sotw(left_out), [vec![Rule::FullState], vec![Rule::Needless]]);
}

#[test]
fn an_unsent_resource_is_reported_only_after_the_ack() {
    assert_eq!(sotw("put k@1; ask k; say #1; rest"), [vec![], vec![]]);
    assert_eq!(sotw("put k@1; ask k; say #1; ask k #1; rest"), [[Rule::Owed]; 2].map(Vec::from));
}

#[test]
fn a_complaint_about_a_missing_response_names_the_resource_and_the_reason() {
    let words = |variant, talk: &str| {
        let talk = Talk::new(variant, type_url::ENDPOINT).goes(talk);
        talk.complaints.into_iter().map(|(_, what)| what).collect::<Vec<_>>()
    };
    let silence = words(Variant::Sotw, "put k@1; ask k; rest");
    assert_eq!(silence, ["k was newly requested, exists, and is not sent"]);
    let silence = words(Variant::Delta, "put k@1; ask * k; say #1 k; ask #1; ask -k; rest");
    assert_eq!(silence, ["k was unsubscribed, and no response mentions it"]);
}

/// A claim is judged if the server itself sent the content of its version: on the stream before.
#[test]
fn a_claim_of_an_outdated_version_must_be_answered() {
    let judged = |revision: u64| {
        let before = Talk::new(Variant::Delta, type_url::ENDPOINT).goes("put k@1; ask k; say #1 k=v");
        let mut next = Talk::new(Variant::Delta, type_url::ENDPOINT);
        next.referee = next.referee.after(&before.referee);
        next.goes(&format!("put k@{revision}; ask k k=v; rest")).rules()
    };
    assert_eq!((judged(1), judged(2)), (vec![], vec![Rule::NotSent]));
}

/// "Resource warming": a parent is a reason to send its children again.
#[test]
fn a_sent_parent_is_a_reason_to_send_its_children_again() {
    for (parent, child) in [
        (type_url::CLUSTER, type_url::ENDPOINT),
        (type_url::LISTENER, type_url::ROUTE),
        (type_url::ROUTE, type_url::VIRTUAL_HOST),
    ] {
        let judged = |of: &'static str| {
            let mut talk = Talk::new(Variant::Delta, child).goes("ask a; say #1 a; ask #1; say #2 a; ask #2");
            talk.type_url = of;
            talk = talk.goes("ask p; say #1 p; ask #1");
            talk.type_url = child;
            talk.goes("say #3 a; ask #3; say #4 a").rules()
        };
        let other = judged(type_url::SECRET);
        assert_eq!((judged(parent).len() + 1, other.len()), (other.len(), 2), "{parent}: {other:?}");
    }
}

#[test]
fn a_stream_of_one_type_may_omit_the_type_url() {
    let eds = type_url::ENDPOINT;
    let asked = |single: Option<&str>, asked: &str, answered: &'static str| {
        let mut referee = ServerReferee::new(Variant::Sotw, single, World::unknown());
        referee.request(&request(asked, "a".split_whitespace()));
        let response = response(Variant::Sotw, answered, "#1 a".split_whitespace());
        referee.response(&response).first().map(|complaint| complaint.rule)
    };
    assert_eq!(asked(Some(eds), "", eds), None);
    assert_eq!(asked(Some(eds), type_url::CLUSTER, type_url::CLUSTER), None);
    assert_eq!(asked(None, "", eds), Some(Rule::TypeNotAsked));
}

#[test]
fn the_referee_lists_the_unanswered_nonces() {
    let talk = Talk::new(Variant::Delta, type_url::ENDPOINT).goes("ask a; say #1 a; say #2 a@2");
    assert_eq!(talk.referee.unanswered(type_url::ENDPOINT), ["1", "2"]);
    let talk = talk.goes("ask #1");
    assert_eq!(talk.referee.unanswered(type_url::ENDPOINT), ["2"]);
    assert!(talk.referee.unanswered(type_url::CLUSTER).is_empty());
}

//! Regressions: traces that failed in two sketches of the machines before this crate, and traces that the engines found
//! in its own machines since. Each trace is played in the world, which must come to rest in a correct state.
//!
//! The notation: `Sub`/`Uns`: the application subscribes or unsubscribes; `CS`: the client sends; `SR`: the server
//! reads; `SS`: the server sends (`Poll`: the server is polled, with a response or without); `CR`: the client reads;
//! `Acc`/`Rej`: the verdict; `Put`/`Del`/`Fail`: the store; `Cut`/`Open`: the stream; `Tick`/`Beat`: time. A `2` is for
//! the second type, a `3` for the third; a `'` for the second client.

use xds_machine::client::Dialect;
use xds_machine::{Delta, Sotw, TypeUrl, type_url};
use xds_machine_testing::checker;
use xds_machine_testing::world::{Both, Budget, Setup, Step, World};

/// Names by their number in a trace. Where `b` is an alias, it is that of `a`.
const NAMES: [&str; 3] = ["*", "a", "b"];

const FOUR: [&str; 4] = ["*", "a", "b", "c"];

/// The names of a setup by their places, as traces write them.
const LETTERS: [&str; 9] = ["*", "a", "b", "c", "d", "e", "f", "g", "h"];

const ALIAS: [&str; 3] = ["*", "a", "~a"];

fn full_state() -> Setup {
    Setup::full_state(&NAMES, Budget::PLENTY)
}

fn partial() -> Setup {
    Setup::partial(&NAMES, Budget::PLENTY)
}

fn step(word: &str) -> Step {
    let (verb, name) = word.split_once(' ').unwrap_or((word, ""));
    let (verb, c) = verb.strip_suffix('\'').map_or((verb, 0), |verb| (verb, 1));
    let t = ["", "2", "3"].iter().rposition(|number| verb.ends_with(number)).unwrap_or_default();
    let verb = verb.trim_end_matches(char::is_numeric);
    let name = || LETTERS.iter().position(|&known| known == name).expect("a name");
    match verb {
        "Open" => Step::Open { c },
        "Sent" => Step::Sent { c },
        "Cut" => Step::Cut { c },
        "Ref" => Step::Refetch { c, t, n: name() },
        "CS" => Step::ClientSends { c },
        "SR" => Step::ServerReads { c },
        "SS" | "Poll" => Step::ServerSends { c },
        "CR" => Step::ClientReads { c },
        "Pause" => Step::Pause { c, t },
        "Resume" => Step::Resume { c, t },
        "Silence" => Step::Silence { c, t },
        "Acc" => Step::Accept { c, t },
        "Rej" => Step::Reject { c, t },
        "RejOne" => Step::RejectOne { c, t, n: name() },
        "Tick" => Step::Tick,
        "Beat" => Step::Beat,
        "Pass" => Step::Pass,
        "Forget" => Step::Forget { c, t, n: name() },
        "Sub" => Step::Subscribe { c, t, n: name() },
        "Uns" => Step::Unsubscribe { c, t, n: name() },
        "Put" => Step::Put { t, n: name() },
        "Del" => Step::Delete { t, n: name() },
        "Fail" => Step::Fail { t, n: name() },
        "Doubt" => Step::Doubt { t, n: name() },
        _ => panic!("no step {word}"),
    }
}

/// Plays a trace, then brings the world to rest in several ways.
fn play<V: Both>(setup: Setup, trace: &str) {
    let mut world = World::<V>::new(setup.make());
    for word in trace.split(',').map(str::trim) {
        let step = step(word);
        assert!(word.starts_with("Poll") || world.can(step), "{step:?} is not possible in {trace}");
        world.take(step);
    }
    for seed in 0..20 {
        checker::walk::settle(&mut world.clone(), seed);
    }
}

macro_rules! stories {
    ($($(#[doc = $story:literal])+ $name:ident: $variant:ty, $setup:expr, $trace:literal;)+) => {
        $($(#[doc = $story])+ #[test] fn $name() { play::<$variant>($setup, $trace); })+
    };
}

// Traces on which throw-away prototypes of both sides failed.
stories! {
    /// Two updates were out at once: the prototype computed the removal against the accepted resources, not against the
    /// update that was out.
    only_one_update_is_out_at_a_time: Delta, full_state(),
        "Sub a, Open, CS, SR, Put a, SS, CR, Acc, CS, SR, Put a, SS, CR, Del a, Acc, CS, SR, SS, CR, Acc";
    /// Delta: a resource was removed during an outage while its update was out; the removal was never reported.
    a_removal_is_reported_though_its_update_was_out_at_a_reconnect: Delta, full_state(),
        "Put a, Sub *, Open, CS, SR, SS, CR, Del a, Cut, Open, CS, SR, Acc";
    /// The application unsubscribed and resubscribed between two requests: the changes cancelled out, and the resource
    /// never arrived.
    delta_a_resubscription_between_two_requests_brings_the_resource: Delta, full_state(),
        "Put a, Sub a, Open, CS, SR, SS, Uns a, CR, Sub a, CS, CS, CS, SR, SR, SR";
    /// The same in SotW.
    sotw_a_resubscription_between_two_requests_brings_the_resource: Sotw, partial(),
        "Put a, Sub a, Open, CS, SR, SS, Uns a, CR, Sub a, CS, CS, SR, SR";
    /// SotW, partial: the server ignored a request under an old nonce.
    a_name_omitted_from_an_ignored_request_is_requested_again: Sotw, partial().strict_server(),
        "Put a, Sub b, Sub a, Open, CS, SR, SS, CR, Acc, CS, SR, Put b, Uns a, CS, SS, Sub a, SR, CR, Acc, CS, SR";
    /// SotW: every name announced on the stream counts, not only those of the last request.
    a_name_omitted_from_the_last_request_still_counts_as_announced: Sotw, partial().strict_server(),
        "Put a, Sub a, Open, CS, SR, SS, Uns a, CS, SR, Sub a, CR, Acc, Uns a, Sub a";
    /// Delta: the wildcard takes over a name, and the name is unsubscribed.
    a_new_wildcard_is_requested_before_names_are_unsubscribed: Delta, full_state(),
        "Put a, Sub a, Open, CS, SR, SS, CR, Acc, CS, SR, Sub *, Uns a, CS, CS, SR, SR, Del a";
    /// Delta: the application resubscribed to the wildcard, and a removal crossed the response in flight.
    removals_since_the_oldest_unsubscription_are_sent: Delta, full_state(),
        "Put a, Sub *, Open, CS, SR, SS, Uns *, Sub *, CR, Del a, CS, SR, CS, SR, CS, SR";
}

// Errors of single resources.
stories! {
    /// SotW, full state: a resource had an error, was put and was removed. The client received only the error and the
    /// removal, and took the absence of the resource for a part of the error.
    a_removal_after_a_sent_error_is_reported_as_not_found: Sotw, full_state(),
        "Sub a, Open, CS, SR, Put a, SS, CR, Acc, CS, SR, Fail a, SS, CR, CS, SR, Put a, Del a, SS, CR, Acc";
    /// The same over a reconnect: an error that the server reported on another stream does not explain the absence.
    an_error_of_another_stream_does_not_explain_an_absence: Sotw, full_state(),
        "Sub *, Open, CS, SR, Put a, SS, CR, Acc, CS, SR, Fail a, SS, CR, CS, SR, Cut, Del a, Open, CS, SR, SS, CR, Acc";
    /// The same with a store that forgets removals; found by the random walks.
    a_removal_after_a_sent_error_is_reported_though_the_store_forgot_it: Sotw, full_state().tombstones(0),
        "Sub *, Open, CS, SR, Put a, SS, CR, Acc, CS, SR, Fail a, SS, CR, CS, SR, Del a";
    /// The client was subscribed to the wildcard, and knew the error of one resource. When the client subscribed to the
    /// resource by name, the server did not answer, because it had already sent the same error.
    a_new_subscription_is_answered_with_an_error_sent_before: Sotw, full_state(),
        "Sub *, Open, CS, SR, SS, CR, CS, SR, Fail a, SS, CR, CS, SR, Del a, SS, CR, CS, SR, Sub a, CS, SR, SS, CR, CS, SR";
    /// SotW: the client knew the error of a resource, and requested the resource again. A server need not repeat the
    /// error, and after a while the client took the silence for absence.
    a_known_error_stays_when_the_resource_is_requested_again: Sotw, full_state(),
        "Sub a, Open, CS, SR, Fail a, SS, CR, Ref a, CS, SR, SS";
    /// A response with nothing but an error is an answer.
    a_response_with_only_an_error_is_an_answer: Sotw, full_state(), "Sub *, Open, CS, SR, Fail a, SS, CR, CS, SR";
}

// Faults of this crate's own machines: the model check found each within minutes after the code was written.
stories! {
    /// SotW, full state: the existence time-out of a name that was to be relisted passed, then a response settled the
    /// name. Its timer had stopped, and the client did not report that the resource does not exist.
    a_name_settled_after_its_time_out_is_reported_missing: Sotw, full_state(),
        "Sub a, Open, CS, SR, SS, CR, Uns a, CS, SR, Sub a, CS, SR";
    /// Delta: the application was removing a resource when the stream broke. The client claimed the resource at its old
    /// version, the resource came back at just that version, and the server did not send it.
    a_resource_with_a_pending_removal_is_not_claimed_at_its_old_version: Delta, full_state(),
        "Sub a, Open, CS, SR, Put a, SS, CR, Acc, CS, SR, Del a, SS, CR, Cut, Open, CS, SR, Acc, Put a";
    /// Delta: the same with an update: the client claimed the old version, to which the store returned.
    a_resource_with_a_pending_update_is_not_claimed_at_its_old_version: Delta, full_state(),
        "Sub a, Open, CS, SR, Put a, SS, CR, Acc, CS, SR, Put a, SS, CR, Cut, Open, CS, SR, Acc, Put a";
    /// SotW: the client unsubscribed from the wildcard of its first request before the answer, and the server no longer
    /// owed an answer.
    a_first_answer_is_owed_though_the_wildcard_is_unsubscribed: Sotw, full_state(),
        "Sub *, Open, CS, SR, Sub a, Put a, SS, CR, Acc, Cut, Open, CS, SR, Uns *, CS, SR, Del a";
    /// SotW, full state: the server did not answer a new name that does not exist, though the client held the resource
    /// from an update of the previous stream.
    a_new_name_of_a_full_state_type_is_answered: Sotw, full_state(),
        "Sub a, Open, CS, SR, Put a, SS, CR, Cut, Open, CS, SR, Uns a, CS, SR, Sub a, CS, SR, Acc, Del a";
    /// Delta: the client unsubscribed from a name before the first answer, and the server still trusted the version
    /// that the client had claimed for it.
    a_claimed_version_is_not_trusted_after_an_unsubscription: Delta, full_state(),
        "Sub a, Open, CS, SR, Put a, SS, CR, Acc, Cut, Open, CS, SR, Uns a, Sub *, CS, CS, SR, SR, SS, CR";
    /// SotW: the wildcard was to be relisted when it was unsubscribed again, and the client left it out of a list that
    /// was already empty.
    an_unsubscribed_wildcard_is_not_relisted: Sotw, full_state(),
        "Sub *, Open, CS, Uns *, Sub *, Uns *";
    /// SotW: the client took a name that an answer had settled for one that was never announced.
    a_name_settled_by_a_response_still_counts_as_announced: Sotw, partial().no_existence_timeout(),
        "Sub a, Open, CS, SR, Uns a, CS, SR, Sub a, CS, SR, Tick, Put a, CS, SR, CS, SR, SS, CR, Acc, Uns a, Sub a";
    /// SotW: a name was subscribed and unsubscribed again between two requests, and the client forgot that the name had
    /// been listed before.
    a_name_subscribed_and_unsubscribed_between_requests_stays_announced: Sotw, partial().strict_server(),
        "Sub a, Open, CS, SR, Uns a, CS, Sub a, Uns a, Put a, SS, SR, CR, Sub a";
    /// SotW: the application rejected a resource that had arrived by the wildcard, subscribed to it by name, and
    /// unsubscribed from the wildcard. The server had already delivered the resource and stayed silent, and the client
    /// reported the resource as missing.
    a_rejected_resource_of_an_unsubscribed_wildcard_is_requested_by_name: Sotw, partial(),
        "Sub *, Open, CS, SR, Put a, SS, CR, Rej, Sub a, Uns *";
    /// Delta: the application accepted the removal of a resource, and the existence time-out reported the resource as
    /// missing once more.
    a_missing_resource_is_reported_once: Delta, full_state(),
        "Sub a, Open, CS, SR, Put a, SS, CR, Acc, CS, SR, Del a, SS, CR, Cut, Open, Uns a, Sub a, CS, SR, SS, CR, Acc, CS, SR";
    /// Delta: the server did not send endpoints again with a new cluster, because the client had claimed them on
    /// reconnect.
    claimed_endpoints_are_sent_again_with_a_new_cluster: Delta, Setup::warming(&NAMES, Budget::PLENTY),
        "Sub a, Open, CS, SR, Put a, SS, CR, Acc, Sub2 a, Put2 a, Cut, Open, CS, SR, CS, SR, SS";
    /// SotW: the server took an empty list for the legacy wildcard, though it had read a name in a request under an
    /// older nonce.
    an_empty_list_after_a_name_is_not_the_legacy_wildcard: Sotw, full_state(),
        "Sub *, Open, CS, SR, Uns *, CS, CS, SR, Put a, SS, SR, CR, CS, CS, SR, SS, SR, CR, CS, CS, SR, SS, SR, Sub *, CS, SR, SS, CR, CR, Acc, Acc, Forget a, CS, CS, CS, SR, SR, SR, SS, Tick, CS, CS, SR, SR, SS, Tick";
}

// Found by the property tests, whose bytes also stand for TTLs, portions and collections.
stories! {
    /// Delta: the first answer to the wildcard had nothing but a heartbeat of a claimed resource, and the client did
    /// not report to the application that everything had arrived.
    heartbeats_answer_a_wildcard: Delta, full_state().ttl(),
        "Put a, Sub a, Open, CS, SR, SS, CR, Acc, Sub *, Cut, Open, CS, SR, SS, CR";
    /// SotW: the application lost a resource, and the client requested it again. A heartbeat of the resource that
    /// crossed the request counted as the answer.
    a_heartbeat_does_not_answer_a_repeated_request: Sotw, partial().ttl().no_existence_timeout(),
        "Put a, Sub a, Open, CS, SR, SS, CR, Acc, CS, SR, Beat, Forget a, SS";
    /// SotW, partial: the application lost a member of a collection, and the client requested the collection again.
    /// Another member that changed meanwhile counted as the answer.
    a_changed_member_does_not_answer_its_collection: Sotw, some_of_a_collection(),
        "Sub *, Put b, Open, CS, SR, SS, CR, Acc, CS, SR, Forget b, Put a";
    /// Delta: a heartbeat of a cluster made the server send its endpoints again, though the client had rejected them.
    a_heartbeat_of_a_cluster_does_not_resend_its_endpoints: Delta, Setup::warming(&NAMES, Budget::PLENTY).ttl(),
        "Put2 a, Sub *, Open, CS, SR, Sub2 a, CS, SR, SS, CR, Acc2, Put a, Cut, Open, CS, CS, SR, SS, CR, SR, Rej, CS, SR, SS, SS";
    /// Delta: a resource that the client had claimed changed, was sent with the first portion of the answer, and
    /// changed back. With the rest of the answer the server took the resource for the claimed one, and did not send it
    /// again.
    a_claim_ends_when_another_version_is_sent: Delta, full_state().response_limit(1),
        "Sub b, Sub a, Put a, Open, CS, SR, SS, CR, Acc, Cut, Put a, Sub *, Open, CS, SR, SS, Put a";
    /// Delta: like `heartbeats_answer_a_wildcard`, but the wildcard is subscribed after a name.
    heartbeats_answer_a_late_wildcard: Delta, full_state().ttl(),
        "Sub a, Open, CS, SR, Put a, SS, CR, Acc, Cut, Open, CS, SR, Sub *, CS, SR, SS";
    /// Delta, portions: the client may have a resource by an alias that did not exist when the stream began, and whose
    /// target is unknown when its turn comes. The alias has no answer, and the resource was never removed.
    a_resource_claimed_by_an_alias_with_an_unknown_target_is_removed: Delta,
        Setup::partial(&["r0", "r1", "r2", "*", "~"], Budget::PLENTY).tombstones(0).response_limit(1),
        "Sub d, Open, Put a, Put a, CS, SR, SS, CR, Sub b, Del a, Cut, Open, CS, SR, Put b, SS, Put b, Fail b";
    /// Delta: the client unsubscribed from the last resources of an answer in portions. An invariant took that for the
    /// end of the answer, after which the server does not keep what the client had before.
    unsubscribing_the_rest_of_an_answer_in_portions_keeps_the_invariants: Delta, full_state().response_limit(1),
        "Put b, Sub b, Open, CS, SR, SS, CR, Acc, Cut, Sub a, Open, CS, SR, SS, Uns b, CS, SR";
}

// Found by the simulation of many clients for a long time.
stories! {
    /// Delta: the first portion had the error of a claimed resource. The error ended with just the claimed content, and
    /// the server assumed that the client had it.
    an_error_ends_a_claim: Delta, Setup::full_state(&FOUR, Budget::PLENTY).response_limit(1),
        "Sub *, Sub a, Open, CS, SR, Put a, SS, CR, Acc, Cut, Open, CS, SR, Put b, Put c, Fail a, SS, Uns *, Put a";
    /// Delta: the client requested a collection again, and the answer went in portions: the server did not report a
    /// member that had been removed before.
    a_removed_member_is_reported_after_the_answer_to_its_collection: Delta, Setup::collection(&COLLECTION, Budget::PLENTY).response_limit(1),
        "Put a, Put b, Put c, Sub *, Open, CS, SR, SS, CR, Acc, CS, SR, SS, CR, Acc, CS, SR, SS, CR, Acc, CS, Forget a, Del b, SR, CS, SR, SS, CR, Acc, CS, SR";
    /// Delta: the report that a collection is empty did not count towards the limit of its portion.
    an_empty_collection_counts_against_the_response_limit: Delta, Setup::collection(&COLLECTION, Budget::PLENTY).response_limit(2),
        "Sub a, Sub b, Sub *, Open, CS, SR";
    /// SotW, full state: the server kept a removed cluster for a time. The client unsubscribed from the cluster, and
    /// the server reported its error.
    the_error_of_an_unsubscribed_cluster_that_is_kept_is_not_sent: Sotw, Setup::order(&NAMES, Budget::PLENTY).hold(),
        "Sub2 a, Sub2 b, Open, Put2 b, CS, Put2 a, SR, SS, Sub a, CS, Del2 b, SR, CR, Acc2, CS, Uns2 b, SR, SS, Fail2 b, Put2 a, CS, SR";
    /// Delta: the server sent a resource by its name while clusters were out. The resource changed back while
    /// it was subscribed by its alias only, and the server took it for what it had sent by the alias.
    a_resource_sent_by_its_name_counts_as_sent_by_its_alias: Delta, Setup::order(&ALIAS, Budget::PLENTY),
        "Sub b, Open, Put a, Sub2 b, CS, CS, SR, Put2 a, SR, SS, CR, Sub2 a, SS, CR, Sub a, Put a, CS, Acc, CS, CS, Uns a, SR, Uns2 a, SR, SR, SS, Put a";
    /// Delta: the same with a removal: the server reported the removal by the name, which was then unsubscribed. The
    /// resource came back unchanged, and the server assumed that the client had it.
    a_removal_sent_by_name_counts_as_sent_by_the_alias: Delta, Setup::order(&ALIAS, Budget::PLENTY),
        "Sub b, Open, Put a, CS, SR, SS, CR, Acc, CS, SR, Sub2 b, CS, SR, SS, Put2 a, Sub a, CS, Del a, SR, SS, CR, CR, Acc, Uns a, CS, CS, CS, SR, SR, SR, Put a";
    /// Delta: the removal of an alias's target was out. The name of the target was unsubscribed, the alias was known to
    /// stand for nothing, and the target expired.
    a_resource_kept_only_by_a_lost_alias_is_dropped: Delta, Setup::full_state(&["*", "a", "~a", "c"], Budget::PLENTY).ttl(),
        "Sub a, Sub b, Sub c, Open, CS, Put a, Put c, SR, SS, CR, Acc, CS, Del a, SR, SS, CR, Uns a, Beat";
    /// Delta: a server that had forgotten the target of an alias reported the alias as gone. The client, which was
    /// subscribed to the wildcard by then, kept the target, and the answer to the wildcard did not have the target's
    /// removal.
    the_former_target_of_an_alias_reported_as_gone_is_removed: Delta, Setup::full_state(&ALIAS, Budget::PLENTY).tombstones(0).slow_transport(),
        "Sub b, Open, CS, Put a, SR, Sub *, SS, Del a";
    /// SotW, partial: a resource arrived by the wildcard, which was unsubscribed before the name of the resource was
    /// announced. On the next stream the client claimed the version of a response to the other names for all names.
    no_version_covers_a_name_that_the_server_does_not_know: Sotw,
        Setup { legacy_wildcard: false, ..Setup::partial(&NAMES, Budget::PLENTY) },
        "Sub b, Sub *, Put b, Open, Sub a, Put a, CS, Uns a, SR, SS, CR, Acc, Sub a, Uns *, CS, SR, Fail b, Put a, SS, CR, CS, Put b, SR, SS, CR, Acc, Cut, Open";
    /// Delta: a client claimed a resource that it had by an alias, while the store did not know the resource yet. The
    /// server forgot the claim, the resource was deleted, and the wildcard's first answer did not report the removal.
    a_claim_of_an_unknown_resource_is_kept: Delta,
        Setup::full_state(&["*", "a", "~a", "c"], Budget::PLENTY).unknown().slow_transport(),
        "Sub b, Sub c, Open, CS, Put a, SR, SS, CR, Doubt a, Cut, Open, CS, SR, SS, CR, Acc, Sub *, Sent, CS, Del a, Sent";
    /// Delta: the server reported an alias as gone, and the client requested the alias again. For this the client kept
    /// the alias's former target, and claimed it on the next stream, though the name of the target was unsubscribed.
    an_alias_requested_again_does_not_keep_its_former_target: Delta, Setup::full_state(&ALIAS, Budget::PLENTY),
        "Sub a, Open, Sub b, Put a, CS, SR, SS, CR, Acc, Del a, CS, SR, SS, CR, Ref b, Uns a, Cut, Open";
    /// SotW, partial: the client left the wildcard out to list it again, so that a response had subscribed names alone.
    /// The client claimed the version of that response, though a resource that had arrived by the wildcard only was
    /// older, and had been subscribed by name since.
    a_resource_of_the_wildcard_is_not_claimed_by_an_unannounced_name: Sotw, partial(),
        "Put b, Sub *, Open, CS, SR, SS, CR, Acc, Sub b, Forget b, Put a, CS, SR, CS, SR, SS, CR, Acc, CS, SR, Put a, Put b, SS, CR, Sub a, Cut, Uns *, Open, Acc, CS";
    /// Delta: a resource lost an alias while it gained another. The lost alias stayed in the bindings, as unbound,
    /// though the resource stayed. When the resource was removed later, the unsubscription of that alias seemed to
    /// remove the resource.
    a_resource_is_not_bound_to_an_alias_that_it_lost: Delta, Setup::full_state(&["*", "a", "~", "~a"], Budget::PLENTY),
        "Put a, Sub b, Open, CS, SR, Put a, SS, CR, Acc, Put a, Sub c, CS, CS, SR, SR, SS, CR, Acc, Del a, CS, SR, SS, CR, Uns b, Sub a, Acc, CS, CS, SR, SR, SS, CR";
    /// Delta: the server sent clusters while claimed endpoints went in portions. More endpoints had to be sent again
    /// than the limit of names allows, and the new answer to the wildcard left out the claimed endpoints.
    claimed_endpoints_beyond_the_limit_of_names_are_sent_again: Delta,
        Setup::warming(&["*", "a", "b", "c", "d", "e"], Budget::PLENTY).limit(1).response_limit(2),
        "Put d, Put e, Sub *, Open, CS, SR, SS, CR, Acc, CS, SR, Cut, Put a, Put b, Put c, Put2 a, Put2 b, Put2 d, Put2 e, Sub2 *, Open, CS, CS, SR, SR";
    /// Delta: an update was accepted after its stream was lost and another was open. The first request of the new
    /// stream did not claim the resource, which was not subscribed then. The wildcard covered the resource when the
    /// update was accepted, and the resource stayed though it was removed.
    a_resource_accepted_late_and_not_claimed_needs_a_new_stream: Delta, full_state(),
        "Sub a, Sub b, Open, Put b, CS, SR, SS, CR, Cut, Del b, Uns b, Open, CS, Sub *";
    /// Delta, in portions: a collection that was subscribed again did not fit into one portion, and the server never
    /// reported a member that had been removed before.
    a_removed_member_of_a_resubscribed_collection_in_portions_is_reported: Delta, Setup::collection(&COLLECTION, Budget::PLENTY).response_limit(1),
        "Sub a, Open, Sub *, CS, Uns *, SR, Put a, SS, Sub *, CR, Put b, Sub c, Put c, Del a, Uns a, Acc, CS";
    /// Delta: a resource was sent by an alias beside the wildcard, ahead of its turn, and the alias was unsubscribed.
    /// The server did not report the removal of the resource.
    the_removal_of_a_resource_sent_by_an_unsubscribed_alias_is_reported: Delta, Setup::order(&ALIAS, Budget::PLENTY),
        "Sub2 a, Open, Sub *, CS, Sub b, Put2 a, SR, SS, CS, SR, SS, Uns b, CR, Put a, CR, CS, Put2 a, CS, SR, SR, SS, Del a";
    /// Delta: the server did not send endpoints that are subscribed by an alias again with their cluster.
    endpoints_subscribed_by_an_alias_are_sent_again_with_their_cluster: Delta, Setup::warming(&ALIAS, Budget::PLENTY),
        "Sub2 b, Open, Put a, Sub b, CS, SR, SS, Put2 a, CS, SR, SS, CR, CS, SR, SS";
    /// Delta: the endpoints were to be sent by their name, which was unsubscribed before.
    endpoints_are_sent_by_their_alias_after_their_name_is_unsubscribed: Delta, Setup::warming(&ALIAS, Budget::PLENTY),
        "Sub a, Sub b, Open, CS, Sub2 a, Put2 a, CS, Put a, Uns a, CS, SR, SS, CR, Acc, CS, SR, SS";
    /// SotW, partial: the client left the wildcard out, to announce it anew. On the next stream the client claimed the
    /// version of a response to the remaining names for everything.
    the_version_of_a_response_to_names_is_not_claimed_for_the_wildcard: Sotw, Setup::partial(&FOUR, Budget::PLENTY).ttl(),
        "Sub a, Sub *, Open, CS, Put c, SR, SS, CR, Del c, Acc, Cut, Open, Beat, CS, SR, Put b, SS, Put b, CR, Acc, CS, SR, SS, CR, Forget b, Acc, Put c, CS, SR, Put a, SS, CR, Cut, Acc";
    /// SotW: the held resources expired before the first request of a stream. A response was rejected, and on the next
    /// stream the client claimed the version of the expired resources.
    the_version_of_expired_resources_is_not_claimed_after_a_rejection: Sotw, full_state().ttl().slow_transport(),
        "Sub a, Open, Sub *, CS, Put b, Put a, SR, SS, CR, Cut, Open, Acc, Beat, CS, SR, Del a, SS, CR, Rej, Uns a, Cut, Put a, Open";
    /// SotW, partial: the client requested a collection again, and the server sent the heartbeat of a member before the
    /// answer.
    no_heartbeat_is_sent_for_a_member_before_its_collection_is_answered: Sotw, some_of_a_collection().ttl(),
        "Put a, Sub *, Open, CS, SR, SS, CR, Acc, CS, SR, Forget a, CS, CS, Beat, SR, SR";
}

// Found by the stories of `properties`, with more cases than a test run has.
stories! {
    /// SotW: a member that the client subscribed to by name confirmed the subscription to its collection, which the
    /// server had not received. On the next stream the client claimed the version of that response for the collection.
    a_member_subscribed_by_name_does_not_confirm_its_collection: Sotw,
        Setup::collection(&COLLECTION, Budget::PLENTY).slow_transport(),
        "Sub c, Open, Sub a, CS, SR, Sent, Put b, Sub *, Put a, SS, CS, CR, Acc, Cut";
    /// Delta: an alias moved away from a resource that had an error and no other name. The error stayed.
    an_error_is_dropped_with_the_last_name_of_its_resource: Delta, Setup::partial(&MOVING, Budget::PLENTY),
        "Sub a, Open, Sub *, CS, Put b, Put a, SR, Put a, SS, CR, Acc, Fail a, CS, Put b, SR, SS, CR, Uns a, Acc";
    /// Delta: the collection that was requested for a lost resource was unsubscribed, and the wildcard still covered
    /// the resource.
    a_lost_resource_is_requested_by_the_wildcard_too: Delta, everything_and_collection(),
        "Put b, Sub a, Open, CS, SR, SS, CR, Acc, Sub *, Cut, Open, CS, SR, Forget b, CS, Uns a";
    /// SotW: the application rejected a response, except for its removal. On the next stream the client claimed the
    /// version before that response, to which the store had returned.
    no_version_is_claimed_after_only_a_removal_was_accepted: Sotw, full_state(),
        "Sub *, Put b, Put a, Open, CS, SR, SS, CR, Doubt a, Acc, Cut, Open, CS, SR, SS, CR, Rej, Cut, Put a";
    /// SotW: the wildcard was unsubscribed, and a name without a resource was left out of the list with it. On the next
    /// stream the client claimed the version of the response to that list for the name.
    no_version_is_claimed_for_a_name_omitted_from_the_list: Sotw, full_state(),
        "Sub a, Open, Sub b, Sub *, CS, SR, Put b, SS, CR, Acc, Put a, Uns *, CS, Put b, SR, SS, CR, Cut, Acc";
}

// Found by `simulate survey`.
stories! {
    /// Delta: the server reported that an alias stands for nothing, while a wildcard that the server had not received
    /// covered the alias's resource. The resource stayed, because the answer to the wildcard reports no removals.
    a_wildcard_that_the_server_has_not_received_keeps_no_resource: Delta,
        Setup::partial(&["*", "b", "~b", "~a"], Budget::PLENTY).response_limit(1),
        "Sub b, Put a, Open, CS, SR, SS, CR, Cut, Sub c, Open, CS, SR, SS, Sub *, Del a, Acc, CR, CS, SR, SS, CR";
    /// SotW: a strict server ignored that a name was left out and listed again, until the time-outs had passed. The
    /// server's heartbeat of the resource, which the client had dropped, did not make the client request the resource.
    a_heartbeat_of_a_resource_not_held_causes_a_request: Sotw,
        partial().ttl().strict_server(),
        "Sub a, Sub b, Put a, Open, CS, SR, SS, CR, Acc, CS, SR, Put b, SS, CR, Acc, CS, Uns a, Sub a, CS, CS, Pass, CS, CS, Pass, SR, SS, CR";
    /// Delta: a heartbeat left out a resource that was pending by an alias, for which the response had no room. The
    /// alias was unsubscribed, and the next heartbeat came too late.
    a_resource_no_longer_pending_has_a_heartbeat_in_time: Delta,
        Setup::collection(&["xdstp:///T/*", "xdstp:///T/a", "xdstp:///T/b", "~xdstp:///T/b"], Budget::PLENTY)
            .ttl().response_limit(1),
        "Sub *, Put b, Open, Sub c, CS, SR, SS, CR, Acc, Put a, CS, SR, SS, CR, Acc, Pass, Pass, CS, SR, SS, CR, Beat, Cut, Open, CS, Uns c, CS, SR, SS, CR, Acc, CS, SR, SR";
    /// Delta: the server reported that an alias stands for nothing, together with a newer form of its resource by
    /// another alias. That form was rejected, and the client claimed the resource on the next stream.
    after_a_rejection_the_former_content_is_kept_by_the_new_alias: Delta,
        Setup::partial(&["~", "a", "~a"], Budget::PLENTY),
        "Sub *, Put a, Put a, Open, CS, SR, SS, CR, Acc, CS, SR, Sub b, CS, SR, Put a, SS, CR, Rej, Cut, Open, CS";
    /// Delta: a moving alias left a resource that had an error, and the server sent the removal with the new target,
    /// before the listeners.
    the_former_target_of_an_alias_with_an_error_is_removed_with_the_new_target: Delta,
        Setup::order(&["*", "a", "b", "~"], Budget::PLENTY).limit(1),
        "Put2 a, Put2 b, Sub a, Sub2 c, Put2 a, Open, CS, CS, SR, SR, SS, Put a, CR, Acc2, Fail2 a, Put2 b, CS, SR, SS";
    /// Delta: an alias moved to another resource, which was rejected. The alias's former target was subscribed by name,
    /// and stayed with the alias when the name was unsubscribed.
    an_alias_leaves_its_former_target_though_the_new_one_is_rejected: Delta, Setup::order(&["r2", "r4", "~"], Budget::PLENTY).slow_transport(),
        "Sub2 b, Open, Sub2 a, Put2 *, Put2 a, Put2 a, CS, SR, SS, CR, Acc2, Sent, Put2 *, CS, SR, SS, CR, Rej2, Uns2 a, Sent, CS, Sent, SR, CS, Sent, SR, Cut, Open, CS";
    /// Delta: an update ended an alias of a resource, and had the resource by another alias, which was unsubscribed
    /// before the verdict. The former form of the resource stayed, and was removed later.
    a_resource_whose_alias_is_unsubscribed_before_the_verdict_is_dropped: Delta,
        Setup { full_state: false, ..Setup::collection(
            &["xdstp:///T/r0", "xdstp:///T/r2", "xdstp:///T/r4", "*", "~", "~xdstp:///T/r0"], Budget::PLENTY) }
            .slow_transport().dialect(Dialect::Istio),
        "Sub a, Open, Put *, Put b, Sub c, Sub d, CS, Put *, SR, SS, CR, Put *, Acc, Sub e, Uns c, Sent, CS, SR, SS, Put b, CR, Uns e, Sent, Acc, CS, Sent, SR, SS";
    /// Delta: an alias moved with an update that was out. The name of the former target was unsubscribed, and the
    /// client dropped the target before the verdict without a report.
    an_alias_moves_only_with_the_verdict_on_its_update: Delta, Setup::order(&["r4", "r6", "r7", "~"], Budget::PLENTY).ttl(),
        "Sub2 c, Open, CS, Put2 a, Put2 b, Put2 a, SR, SS, CR, Sub2 a, Acc2, CS, CS, SR, SR, Put2 b, SS, CR, Uns2 a, Pass, Pass, Pass, Pass, Pass, Pass";
    /// SotW: a strict server ignored that a name was left out and listed again, because it read both after its next
    /// response; by then the time-outs had passed.
    a_newer_response_causes_another_request_after_the_time_outs: Sotw,
        Setup { full_state: false, ..Setup::order(&["r0", "r2"], Budget::PLENTY) }.strict_server(),
        "Sub2 *, Put2 *, Sub2 a, Open, CS, SR, SS, Put2 *, CR, Acc2, CS, Forget2 *, CS, Pass, Put2 a, CS, Put2 *, CS, Pass, SR, SS, CR, Acc2, CS, SR, SR, SR, SR";
    /// SotW, partial: the server sent an answer ahead of a change that waited for clusters, under the version that has
    /// the change. The client claimed that version on the next stream.
    an_answer_ahead_of_changes_has_a_version_of_its_own: Sotw,
        some_of_three_types(&["r1", "r2", "r4", "r6", "r12"]).unknown().dialect(Dialect::Grpc).no_existence_timeout(),
        "Sub2 a, Sub3 *, Open, Sub b, CS, SR, CS, SR, Fail b, CS, SR, Put3 *, SS, Sub c, CR, CS, SS, SR, CR, Put3 *, Acc3, Del b, SS, Put c, CR, Put3 d, Sub3 d, CS, SR, SS, CR, Cut, Open, CS, SR, Acc3";
    /// SotW: a heartbeat left out a resource that was sent in the last interval, and the next heartbeat left out the
    /// resource because of a change that was not sent yet. The change was reverted, and the TTL ran out.
    a_heartbeat_includes_recently_sent_resources: Sotw,
        Setup { full_state: false, ..Setup::full_state(&["r3", "r4", "r6"], Budget::PLENTY) }.ttl().page(1).response_limit(2),
        "Sub *, Open, Sub b, Put a, Sub a, CS, SR, SS, CR, Acc, CS, SR, Put b, SS, CR, Acc, CS, SR, SS, Pass, Pass, SS, CR, CS, SR, SS, Pass, Put b, Pass, SS, Put b";
    /// Delta: the same, with a change that was rejected and reverted.
    a_heartbeat_includes_resources_recently_sent_by_an_alias: Delta,
        Setup { full_state: false, ..Setup::collection(
            &["xdstp:///T/r0", "xdstp:///T/r1", "xdstp:///T/r2", "xdstp:///T/r3", "xdstp:///T/r7", "~", "~xdstp:///T/r7"],
            Budget::PLENTY) }.ttl().page(2).response_limit(2),
        "Sub e, Sub a, Sub f, Put d, Open, Put *, Put d, Sub c, Put b, CS, SR, SS, Put a, CR, Put *, CS, SR, Pass, SS, CR, Acc, CS, SR, Beat, SS, CR, Acc, CS, SR, SS, Pass, Put b, SS, Put d, CR, Acc, CS, Pass, SR, SS, CR, Rej, Pass, CS, SR, SS, Pass, Put a, SS, Pass";
    /// Delta: the client unsubscribed from an alias to have it answered anew, the alias's resource was removed, and the
    /// wildcard was subscribed together with the alias. No subscription covered the removal at that time, and the
    /// server did not report it later.
    a_removal_while_an_alias_is_refetched_is_reported_to_the_wildcard: Delta,
        Setup { legacy_wildcard: true, ..Setup::collection(
            &["xdstp:///T/r1", "xdstp:///T/r2", "*", "~xdstp:///T/r2"], Budget::PLENTY) }.dialect(Dialect::Istio),
        "Sub *, Open, Sub c, Put a, CS, SR, SS, CR, Acc, Del a, Ref c, CS, CS, SR, Sub b, SR, SS";
    /// Delta, in portions: the removal of an alias's former target had no room beside the new one, and was then sent
    /// before a cluster with a new change.
    a_removal_without_room_waits_for_clusters: Delta, Setup::order(&["~", "a", "b", "c"], Budget::PLENTY).response_limit(1),
        "Sub *, Put b, Put a, Put a, Open, CS, SR, SS, CR, Acc, CS, SR, Sub2 c, Put2 c, CS, SR, SS, CR, Acc2, CS, SR, Fail c, Sub c, CS, SR, SS, CR, CS, SR, Put b, SS, Put2 c, SS, Put2 c, CR, Acc, CS, SR, Poll";
    /// Delta: an alias was subscribed while its resource was in flight, in a response for the resource's own name
    /// alone. The resource was deleted, and the server did not send the removal, because the alias stood for an unknown
    /// resource by then.
    a_deleted_resource_whose_alias_was_subscribed_in_flight_is_removed: Delta, Setup::partial(&["~", "a", "b"], Budget::PLENTY).unknown(),
        "Sub b, Open, CS, Sub *, Put b, Uns b, SR, Put a, Put b, SS, Del b, Put a, Doubt a, CS, SR, CR, Acc, CS, SR, SS";
    /// SotW: the second time-out of a lost name passed while a request left the name out, and the server ignored every
    /// request that crossed a newer response: the client listed the name, and never left it out again.
    a_name_left_out_at_its_last_time_out_is_relisted: Sotw,
        Setup::partial(&["*", "a", "b"], Budget::PLENTY).strict_server().no_existence_timeout().slow_transport(),
        "Sub b, Sub a, Put a, Open, CS, SR, SS, CR, Sent, Acc, CS, Sent, Forget a, CS, Sent, CS, Pass, Sent, CS, Pass, Put b, Sent, SR, SS, CR, Acc, CS, Sent, SR, SR, SR, SR";
    /// Delta: endpoints were due again with their cluster by an alias, which was unsubscribed before the answer.
    /// Another alias moved away and back meanwhile, and the server assumed that the client had the endpoints.
    endpoints_are_sent_again_though_their_alias_is_unsubscribed: Delta, Setup::warming(&["~", "a", "b", "~b"], Budget::PLENTY),
        "Sub c, Sub *, Sub2 *, Open, CS, CS, Put a, SR, Put b, SR, Put2 b, SS, CR, Put b, CS, SR, SS, Put2 b, Put a, SS, Uns c, Put b, CS, SR, CR, Acc, CS, SR, CR, Acc2, CS, SR";
    /// SotW: a server at a limit of one forgot that it had sent an error of a resource that the wildcard covers. The
    /// client left the wildcard out and listed it again, and kept the resource though it was deleted.
    a_sent_error_is_remembered_at_the_limit_of_names: Sotw,
        Setup::full_state(&["*", "r10", "r0", "r8"], Budget::PLENTY).no_existence_timeout().tombstones(0).slow_transport().limit(1),
        "Sub a, Put b, Put c, Open, Sub *, CS, SR, Sent, SS, CR, Acc, CS, SR, Fail c, SS, CR, Forget b, Fail a, Del c";
    /// Delta: the server reported that an alias stands for nothing, while an update with the resource by another alias
    /// was out. That alias was unsubscribed before the verdict, and the client claimed the resource on the next stream,
    /// though nothing was to keep it.
    a_resource_of_an_unsubscribed_alias_is_not_claimed: Delta, Setup::partial(&["~", "a", "~a"], Budget::PLENTY),
        "Sub a, Put a, Put a, Open, CS, SR, SS, Sub *, CR, CS, Acc, Uns a, Put a, Sub b, SR, CS, SR, SS, CR, Cut, Uns b, Open, CS";
    /// SotW: a member was unsubscribed while its resource was in flight, and the request without the member was not
    /// sent yet. The resource counted as an answer to the collection, which the server had not received; the version
    /// claimed the whole collection.
    an_unsubscribed_member_in_flight_does_not_answer_its_collection: Sotw,
        Setup::collection(&COLLECTION[..3], Budget::PLENTY).slow_transport().dialect(Dialect::Istio),
        "Sub a, Open, Put a, Put b, CS, Sent, SR, Sub *, CS, SS, Uns a, CR, Acc, Cut, Open, CS";
    /// Delta: the client kept a resource by an alias that stood for another resource with an error, of which the server
    /// reports nothing. The name of the kept resource was unsubscribed, and the server sent neither its removal nor a
    /// heartbeat.
    a_resource_kept_by_an_unknown_alias_is_removed_with_its_name: Delta,
        Setup::partial(&["r0", "r14", "r15", "*", "~"], Budget::PLENTY).ttl().page(1).unknown(),
        "Put b, Put a, Sub b, Put a, Sub d, Fail a, Put b, Open, CS, SR, SS, CR, Acc, Put b, Sub *, Uns b";
    /// The same after a reconnect: the client claimed the resource, and its name covered it when the server compared
    /// the claims.
    a_resource_kept_by_an_unknown_alias_and_claimed_by_name_is_removed: Delta,
        Setup::full_state(&["r0", "r14", "r15", "*", "~"], Budget::PLENTY).legacy_wildcard(false).ttl().page(1).unknown(),
        "Put b, Put a, Sub b, Put a, Sub d, Fail a, Put b, Open, CS, SR, SS, CR, Cut, Open, Put b, CS, Sub *, Uns b";
    /// The same when no other answer was due.
    a_resource_kept_by_an_unknown_alias_is_removed_without_another_answer: Delta,
        Setup::partial(&MOVING, Budget::PLENTY).ttl(),
        "Put a, Put a, Sub a, Sub *, Open, CS, SR, SS, CR, Acc, CS, SR, Put a, Put b, Put b, Fail b, SS, CR, Acc, CS, SR, Uns a";
    /// Delta: a resource that the client kept by an alias alone was deleted, while the alias stood for a resource with
    /// an error.
    a_resource_kept_by_an_unknown_alias_is_removed_once_deleted: Delta, Setup::partial(&MOVING, Budget::PLENTY),
        "Sub *, Put a, Put a, Open, CS, SR, SS, CR, Acc, CS, SR, Put a, Put b, Put b, Fail b, Del a";
    /// The same after a reconnect to a store that forgets: the client claimed the resource while it had an error.
    a_resource_of_an_unknown_alias_claimed_despite_an_error_is_removed: Delta, Setup::partial(&MOVING, Budget::PLENTY).tombstones(0),
        "Sub *, Put a, Put a, Open, CS, SR, SS, Put b, CR, Put b, Put a, Acc, CS, Fail a, SR, Cut, Open, CS, SR, Poll, Put b, Doubt b, Del a";
    /// The same after a reconnect: the client claimed the resource, the alias moved before its answer, the resource was
    /// deleted, and the new target had an error.
    a_resource_kept_by_an_unknown_alias_is_claimed_and_removed: Delta,
        Setup::partial(&["*", "a", "b", "c", "~"], Budget::PLENTY).response_limit(1),
        "Sub *, Sub d, Put a, Put a, Open, CS, SR, SS, CR, Acc, CS, SR, Uns *, Sub c, CS, Cut, Open, CS, SR, SS, CR, Put b, Put b, Del a, Fail b";
    /// Delta: a resource was removed after its content was rejected, together with the alias that it had arrived by,
    /// while its own name was not sent yet. The client reports once more that the resource does not exist, because that
    /// answers its name.
    a_rejected_and_removed_resource_is_reported_missing_once_more: Delta,
        Setup { full_state: false, ..Setup::collection(
            &["xdstp:///T/r0", "xdstp:///T/r1", "xdstp:///T/r2", "xdstp:///T/*", "*", "~"], Budget::PLENTY) }
            .response_limit(3).page(5).mixed_ttls(),
        "Sub e, Open, Put *, CS, Put b, SR, Sub d, CS, Put *, SS, CR, SR, Acc, Put *, Put a, CS, SR, SS, Pass, CR, Pass, Rej, CS, SR, Sub *, Uns d, SS, CR, Acc, CS, CS, Pass";
    /// SotW, with NACKs that repeat the last list: the response that settled a relisted name was rejected. The timer of
    /// the name was to start again with the next list, and no list was due.
    a_bare_nack_starts_the_timers_of_its_names: Sotw, Setup { unknown: true, ..Setup::order(&["a", "b"], Budget::PLENTY) }.legacy_wildcard(false).hold().dialect(Dialect::Istio),
        "Sub a, Open, Sub2 *, Sub2 a, CS, CS, Uns2 a, SR, Sub2 a, SR, CS, CS, SR, Put2 *, SR, Pass, SS, CR, Rej2, CS, SR";
    /// Delta: a cluster with two aliases was deleted, and one of the aliases moved. The server sent the removal with
    /// the new target, before a listener that was not sent yet.
    a_deleted_former_target_of_an_alias_is_removed_after_the_listeners: Delta,
        Setup { full_state: false, ..Setup::order(&["r1", "r4", "r6", "~", "~r6"], Budget::PLENTY) }.ttl().dialect(Dialect::Envoy),
        "Sub a, Sub2 d, Put2 b, Sub2 c, Put2 *, Put2 b, Open, CS, CS, SR, SR, SS, SS, Put a, Del2 b, Put2 *";
    /// Delta, in portions: a resource changed and changed back while others were sent before it, each after an ACK that
    /// took a while. Heartbeats left it out until its TTL had passed.
    a_resource_that_waits_for_its_portion_does_not_expire: Delta, Setup::partial(&["*", "a", "b", "c", "d"], Budget::PLENTY).ttl().response_limit(1),
        "Sub *, Put d, Open, CS, SR, SS, CR, Acc, CS, SR, SS, Pass, Put a, Put b, Put c, Put d, SS, CR, Acc, Pass, CS, SR, SS, CR, Acc, Pass, CS, SR, SS, CR, Acc, Put a, Put b, Put c, Put d, Pass, CS, SR, SS, CR, Acc, Pass, CS, SR, SS, CR, Acc, Pass, CS, SR, SS, CR, Acc, CS, SR, Pass";
}

/// Makes a setup of clusters and two types that refer to them, whose responses have only changed resources.
fn some_of_three_types(names: &[&str]) -> Setup {
    let types = [type_url::CLUSTER, type_url::LISTENER, type_url::ROUTE].map(TypeUrl::from).to_vec();
    Setup { types, full_state: false, ..Setup::order(names, Budget::PLENTY) }
}

/// A moving alias as the first name.
const MOVING: [&str; 3] = ["~", "a", "b"];

/// The wildcard, a collection (`a`) and its member (`b`).
fn everything_and_collection() -> Setup {
    Setup::collection(&["*", COLLECTION[0], COLLECTION[1]], Budget::PLENTY)
}

const COLLECTION: [&str; 4] = ["xdstp:///T/*", "xdstp:///T/a", "xdstp:///T/b", "xdstp:///T/c"];

fn some_of_a_collection() -> Setup {
    Setup { full_state: false, ..Setup::collection(&COLLECTION[..3], Budget::PLENTY) }
}

/// SotW: a client that had unsubscribed from the legacy wildcard repeated this under each newer response, because the
/// server may not have read it. A server that had read it took the name in the request for a subscription, and
/// answered: the exchange never ended. Only the order of the steps is to blame, so the test tries all orders.
#[test]
fn the_exchange_after_unsubscribing_from_the_legacy_wildcard_ends() {
    for setup in [Setup::full_state(&["*"], Budget::NONE.wishes(2, 1).changes(1, 0)), full_state_slowly()] {
        let report = checker::explore::<Sotw>(&setup.make(), 1_000_000);
        assert!(report.complete && report.fault.is_none(), "{:?}", report.fault);
    }
}

fn full_state_slowly() -> Setup {
    Setup::full_state(&["*", "a"], Budget::NONE.wishes(1, 1).changes(1, 0)).slow_transport()
}

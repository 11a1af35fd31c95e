//! The choice among endpoints: R-EDS-20 to R-EDS-25.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;
use xds_machine::{Instant, message};
use xds_machine_grpc::endpoints::{
    Child, ChildNames, Choice, Drop, Endpoint, Health, Locality, Priority, State, choose, drop_category, pick_locality,
};

const NOW: Instant = Instant::EPOCH;

fn after(seconds: u64) -> Instant {
    NOW + Duration::from_secs(seconds)
}

/// All states of a child that count for the choice, with a letter each: none yet, connecting in time, connecting out of
/// time, ready, idle, failing.
const ALL: &str = "-cCRIF";

fn child(letter: char) -> Option<Child> {
    let mut child = Child::new(NOW);
    match letter {
        '-' => return None,
        'c' => {}
        'C' => child.handle_timeout(after(10)),
        'R' => child.handle_state(NOW, State::Ready),
        'I' => child.handle_state(NOW, State::Idle),
        'F' => child.handle_state(NOW, State::TransientFailure),
        _ => unreachable!(),
    }
    Some(child)
}

fn choice(letters: &str) -> Option<Choice> {
    choose(&letters.chars().map(child).collect::<Vec<_>>())
}

/// R-EDS-20, as gRFC A56 says it, written another way: by letters.
fn by_the_book(letters: &str) -> Option<Choice> {
    let chosen = match letters.find(|letter| "-cRI".contains(letter)) {
        Some(at) => at,
        None => letters.find('C').or(letters.len().checked_sub(1))?,
    };
    let letter = letters.as_bytes()[chosen];
    Some(Choice { priority: chosen, creates: letter == b'-', deactivates_lower: b"RI".contains(&letter) })
}

/// R-EDS-20: Every vector of states of up to three priorities.
#[test]
fn the_choice_matches_grfc_a56_for_all_states() {
    let mut words = vec![String::new()];
    for len in 0..=3 {
        assert_eq!(words.len(), ALL.len().pow(len), "all of a length");
        for word in &words {
            assert_eq!(choice(word), by_the_book(word), "{word:?}");
        }
        words = words.iter().flat_map(|word| ALL.chars().map(move |letter| format!("{word}{letter}"))).collect();
    }
}

/// R-EDS-20, spelled out: the rows that people get wrong.
#[test]
fn the_choice_matches_hand_written_examples() {
    let choice = |letters: &str| choice(letters).map(|choice| (choice.priority, choice.creates));
    assert_eq!(choice(""), None, "calls fail");
    assert_eq!(choice("-"), Some((0, true)));
    assert_eq!(choice("c-"), Some((0, false)), "no lower priority is made while the first has time");
    assert_eq!(choice("cR"), Some((0, false)), "a priority has its time, whatever the lower ones are");
    assert_eq!(choice("CR"), Some((1, false)));
    assert_eq!(choice("F-"), Some((1, true)));
    assert_eq!(choice("FI"), Some((1, false)), "an idle one connects when it is used");
    assert_eq!(choice("RR"), Some((0, false)));
    assert_eq!(choice("FCC"), Some((1, false)), "the first that connects");
    assert_eq!(choice("FFF"), Some((2, false)), "the last");
    assert_eq!(choice("FcR"), Some((1, false)));
}

/// R-EDS-20: The choice is the same again after the driver has carried it out.
#[test]
fn the_choice_is_idempotent() {
    for first in ALL.chars() {
        for second in ALL.chars() {
            let mut children = [child(first), child(second)];
            let choice = choose(&children).expect("two priorities");
            if choice.creates {
                children[choice.priority] = Some(Child::new(NOW));
            }
            let again = choose(&children).expect("two priorities");
            assert_eq!((again.priority, again.creates), (choice.priority, false), "{first}{second}");
        }
    }
}

/// R-EDS-21: The failover timer starts with the child, takes 10 s, and stops when the state is decided.
#[test]
fn the_failover_timer_of_a_new_child_takes_ten_seconds() {
    let mut child = Child::new(after(5));
    assert_eq!((child.state(), child.has_time(), child.poll_timeout()), (State::Connecting, true, Some(after(15))));
    child.handle_state(after(9), State::Connecting);
    assert_eq!(child.poll_timeout(), Some(after(15)), "it does not start again");
    child.handle_timeout(after(14));
    assert!(child.has_time());
    child.handle_timeout(after(15));
    assert_eq!((child.has_time(), child.poll_timeout()), (false, None));
    child.handle_state(after(16), State::Connecting);
    assert_eq!(child.poll_timeout(), None, "a child that still connects has had its time");
    child.handle_state(after(17), State::Ready);
    child.handle_state(after(18), State::Connecting);
    assert_eq!(child.poll_timeout(), Some(after(28)));
    for state in [State::Ready, State::Idle, State::TransientFailure] {
        let mut child = Child::new(NOW);
        child.handle_state(NOW, state);
        assert_eq!((child.state(), child.has_time()), (state, false));
    }
}

/// R-EDS-21: The failover timer starts again when a child connects that worked since its last failure.
#[test]
fn the_failover_timer_restarts_when_a_child_reconnects_after_ready_or_idle() {
    let states = |states: &[State]| {
        let mut child = Child::new(NOW);
        states.iter().for_each(|state| child.handle_state(after(100), *state));
        child.poll_timeout()
    };
    use State::{Connecting, Idle, Ready, TransientFailure};
    assert_eq!(states(&[Ready, Connecting]), Some(after(110)));
    assert_eq!(states(&[Idle, Connecting]), Some(after(110)));
    assert_eq!(states(&[TransientFailure, Connecting]), None);
    assert_eq!(states(&[Ready, TransientFailure, Connecting]), None);
    assert_eq!(states(&[TransientFailure, Ready, Connecting]), Some(after(110)));
    assert_eq!(states(&[TransientFailure, Idle, Connecting, Connecting]), Some(after(110)));
}

/// R-EDS-21: A child that is not used is kept for 15 min.
#[test]
fn an_unused_child_is_kept_for_fifteen_minutes() {
    let mut child = Child::new(NOW);
    child.handle_state(NOW, State::Ready);
    child.deactivate(after(60));
    child.deactivate(after(120));
    assert_eq!(child.poll_timeout(), Some(after(960)), "from the first time on");
    assert!(!child.is_expired(after(959)) && child.is_expired(after(960)));
    child.reactivate();
    assert!(!child.is_expired(after(960)) && child.poll_timeout().is_none());
    let mut connecting = Child::new(NOW);
    connecting.deactivate(NOW);
    assert_eq!(connecting.poll_timeout(), Some(after(10)), "the first of both timers");
}

fn priority(localities: &str) -> Priority {
    let locality = |letter: char| Locality {
        name: message::Locality { region: letter.into(), ..message::Locality::default() },
        weight: NonZeroU32::MIN,
        endpoints: vec![],
    };
    Priority { localities: localities.chars().map(locality).collect() }
}

/// Each row is one configuration after another: the localities of its priorities, and the names.
fn named(rows: &[(&[&str], &[u64])]) {
    let mut names = ChildNames::default();
    for (priorities, expected) in rows {
        names.update(&priorities.iter().map(|localities| priority(localities)).collect::<Vec<_>>());
        assert_eq!(names.names(), *expected, "{priorities:?} of {rows:?}");
    }
}

/// R-EDS-22: A child keeps its name if it keeps a locality, first at its index and then elsewhere; each name is used
/// once, and never again.
#[test]
fn children_keep_their_names() {
    named(&[(&["a", "b"], &[0, 1]), (&["b", "a"], &[1, 0]), (&["b", "a"], &[1, 0])]);
    named(&[(&["a"], &[0]), (&["b", "a"], &[1, 0]), (&["b"], &[1]), (&["a", "b"], &[2, 1])]);
    // The same index comes first, also for a later priority.
    named(&[(&["a", "b"], &[0, 1]), (&["b", "b"], &[2, 1])]);
    // One name for one priority: if an old priority is split in two, the first part keeps the name.
    named(&[(&["ab"], &[0]), (&["b", "a"], &[0, 1])]);
    named(&[(&["x", "ab"], &[0, 1]), (&["b", "y", "a"], &[1, 2, 3])]);
    // Two priorities become one, which takes the first old name that is free.
    named(&[(&["a", "b", "c"], &[0, 1, 2]), (&["z", "cb"], &[3, 1])]);
    named(&[(&["a", "b", "c"], &[0, 1, 2]), (&["cb"], &[1])]);
    // A name that was dropped is never used again.
    named(&[(&["a"], &[0]), (&[], &[]), (&["a"], &[1])]);
}

proptest! {
    /// R-EDS-22, for any changes: names are unique, new ones are greater than all before, and an old one stays only
    /// where the localities overlap.
    #[test]
    fn child_names_are_unique_and_never_reused(steps in prop::collection::vec(prop::collection::vec("[a-d]{1,3}", 0..4), 1..5)) {
        let (mut names, mut next) = (ChildNames::default(), 0);
        let mut old: BTreeMap<u64, String> = BTreeMap::new();
        for step in steps {
            names.update(&step.iter().map(|localities| priority(localities)).collect::<Vec<_>>());
            let new: BTreeMap<u64, String> = names.names().iter().copied().zip(step.iter().cloned()).collect();
            prop_assert_eq!(new.len(), step.len());
            for (name, localities) in &new {
                match old.get(name) {
                    Some(before) => prop_assert!(before.chars().any(|letter| localities.contains(letter))),
                    None => prop_assert!(*name >= next),
                }
            }
            next = new.keys().copied().max().map_or(next, |max| next.max(max + 1));
            old = new;
        }
    }
}

/// R-EDS-22: Names for a large number of priorities are made in a short time.
#[test]
fn child_names_of_fifty_thousand_priorities_are_made_in_a_short_time() {
    let same = vec![priority("a"); 50_000];
    let mut names = ChildNames::default();
    names.update(&same);
    names.update(&same[1..]);
    assert!(names.names().iter().copied().eq(0..49_999));
    let other: Vec<Priority> =
        std::iter::repeat_n(priority("b"), 49_999).chain([priority("a"), priority("a")]).collect();
    names.update(&other);
    assert_eq!(names.names()[49_998..], [99_998, 0, 1]);
}

fn weighted(weights: &[u32]) -> Priority {
    let mut priority = priority(&"abcdefgh"[..weights.len()]);
    for (locality, weight) in priority.localities.iter_mut().zip(weights) {
        locality.weight = NonZeroU32::new(*weight).unwrap();
    }
    priority
}

/// R-EDS-23: Localities are picked by weight, among those that are usable.
#[test]
fn a_locality_is_picked_by_weight() {
    let counts = |weights: &[u32], usable: &[usize]| {
        let mut counts = vec![0; weights.len()];
        let total: u64 = usable.iter().map(|at| u64::from(weights[*at])).sum();
        // One random number in the middle of each share of one.
        for share in 0..total {
            let random = u64::MAX / total * share + u64::MAX / total / 2;
            counts[pick_locality(&weighted(weights), random, |at| usable.contains(&at)).expect("one")] += 1;
        }
        counts
    };
    assert_eq!(counts(&[1, 2, 7], &[0, 1, 2]), [1, 2, 7]);
    assert_eq!(counts(&[1, 2, 7], &[0, 2]), [1, 0, 7]);
    assert_eq!(counts(&[1, 2, 7], &[1]), [0, 2, 0]);
    assert_eq!(pick_locality(&weighted(&[1, 2]), 3, |_| false), None);
    assert_eq!(pick_locality(&weighted(&[u32::MAX, u32::MAX]), u64::MAX, |_| true), Some(1), "no overflow");
    assert_eq!(pick_locality(&weighted(&[u32::MAX, u32::MAX]), 0, |_| true), Some(0));
}

/// R-EDS-24: The categories are checked in order, each with its own random number; the first that hits counts.
#[test]
fn calls_are_dropped_by_category() {
    let drops = [("a", 500_000), ("b", 1_000_000), ("c", 1_000_000)];
    let drops = drops.map(|(category, per_million)| Drop { category: category.into(), per_million });
    let dropped = |drops: &[Drop], randoms: &[u64]| {
        let mut left = randoms.iter().copied();
        let category = drop_category(drops, || left.next().expect("a number each")).map(|drop| drop.category.clone());
        assert_eq!(left.next(), None, "no number more than needed");
        category
    };
    let half = 1 << 63;
    assert_eq!(dropped(&drops, &[half - (1 << 40)]).as_deref(), Some("a"));
    assert_eq!(dropped(&drops, &[half, u64::MAX]).as_deref(), Some("b"), "everything is dropped at a million");
    assert_eq!(dropped(&drops[..1], &[half]), None);
    assert_eq!(dropped(&[Drop { category: "z".into(), per_million: 0 }], &[0]), None, "nothing is dropped at 0");
    assert_eq!(dropped(&[], &[]), None);
}

/// R-EDS-25: The weight of an endpoint among those of all localities is a product of 64 bits.
#[test]
fn flat_weights_are_products() {
    let endpoint = |weight: u32| Endpoint {
        address: "[::1]:1".parse().unwrap(),
        additional: vec![],
        weight: NonZeroU32::new(weight).unwrap(),
        health: Health::Unknown,
    };
    let mut priority = weighted(&[u32::MAX, 3]);
    priority.localities[0].endpoints = vec![endpoint(u32::MAX), endpoint(2)];
    priority.localities[1].endpoints = vec![endpoint(5)];
    let weights: Vec<u64> = priority.flat_weights().map(|(_, weight)| weight).collect();
    assert_eq!(weights, [u64::from(u32::MAX) * u64::from(u32::MAX), u64::from(u32::MAX) * 2, 15]);
}

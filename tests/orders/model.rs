//! The exhaustive check of client x server x wire x application, over the real machines: every order of events, within
//! budgets. The checks after each step are in `testing/src/world/ghost/`, those at rest in `world/settled.rs`. The
//! protocol's own steps must form no cycle.
//!
//! `cargo test --release --test model -- --nocapture` shows the counts; `cargo xtask model-deep` goes further.

use std::collections::BTreeMap;
use std::sync::Mutex;

use xds_machine::{Delta, Sotw};
use xds_machine_testing::checker;
use xds_machine_testing::search::{Sum, explore_all};
use xds_machine_testing::shapes::{self, AB, Shape};
use xds_machine_testing::world::{Budget, Feature, Goal, Goals, Setup, Step, World};

type Ingredients = (fn(Setup) -> Setup, fn(Budget) -> Budget);

/// Returns the requirements of an active feature: the setup of the world, and the events in it.
fn ingredients(feature: Feature) -> Ingredients {
    match feature {
        Feature::ResponseLimit => {
            (|setup| setup.response_limit(1), |budget| Budget { puts: budget.puts + 1, ..budget })
        }
        Feature::Pages => (|setup| setup.page(1), |budget| budget),
        Feature::Ttl => (Setup::ttl, |budget| budget.passes(2)),
        Feature::Hold => (Setup::hold, |budget| Budget { deletes: 1, ..budget }),
        Feature::Error => (|setup| setup, |budget| budget.fails(1)),
        Feature::Limit => (|setup| setup.limit(1), |budget| Budget { unsubscribes: 1, ..budget }),
        Feature::Unknown => (Setup::unknown, |budget| budget.doubts(1)),
        Feature::Claims => (|setup| setup, |budget| budget.cuts(1)),
        Feature::Alias | Feature::Collection | Feature::Wildcard => (|setup| setup, |budget| budget),
        Feature::MovedAlias => (|setup| setup, |budget| Budget { puts: budget.puts + 1, ..budget }),
    }
}

/// Returns a small world in which both features can be active at once, and the steps that it begins with.
fn combination(kind: Kind, one: Feature, other: Feature) -> (Setup, Vec<Step>) {
    let has = |feature: Feature| one == feature || other == feature;
    let (hold, glob) = (has(Feature::Hold), has(Feature::Collection));
    let alias = has(Feature::Alias) || has(Feature::MovedAlias);
    let all = has(Feature::Wildcard) || has(Feature::Pages) || (alias && has(Feature::ResponseLimit));
    // The name that is subscribed from the start comes first.
    let names: &[&str] = match (alias, glob, all) {
        (true, true, _) => &["~", "xdstp:///T/*", "xdstp:///T/a"],
        (true, false, false) => &["~", "a", "b"],
        (true, false, true) => &["~", "*", "a", "b"],
        (false, true, false) => &["xdstp:///T/*", "xdstp:///T/a", "xdstp:///T/b"],
        (false, true, true) => &["xdstp:///T/*", "*", "xdstp:///T/a", "xdstp:///T/b"],
        (false, false, _) if hold && !all => &["a", "b"],
        (false, false, _) if has(Feature::ResponseLimit) => &["*", "a", "b", "c"],
        (false, false, _) => &["a", "*", "b"],
    };
    let setup = if hold { Setup::order(names, Budget::NONE) } else { Setup::collection(names, Budget::NONE) };
    let setup = Setup { full_state: kind != Kind::SotwPartial, ..setup };
    let least = Budget::NONE.wishes(1, 0).changes(1, 0);
    let budget = [one, other].iter().fold(least, |budget, &feature| ingredients(feature).1(budget));
    let setup = [one, other].iter().fold(setup, |setup, &feature| ingredients(feature).0(setup));
    let resources = || (0..names.len()).filter(|&n| !names[n].ends_with('*') && names[n] != "~");
    // The second content has the alias.
    let there = resources().flat_map(|n| vec![Step::Put { t: 0, n }; if alias { 2 } else { 1 }]);
    let clusters = resources().filter(|_| hold).map(|n| Step::Put { t: 1, n });
    let wanted = (0..setup.types.len()).map(|t| Step::Subscribe { c: 0, t, n: 0 });
    let begun = there.chain(clusters).chain(wanted).collect();
    (Setup { budget, ..setup }, begun)
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    SotwFullState,
    SotwPartial,
    Delta,
}

/// The number of states that are explored for a pair of features: those that the fewest steps lead to.
const OF_A_PAIR: usize = 20_000;

/// Every two features at once, in every order of the first steps.
#[test]
fn every_pair_of_features_holds_together() {
    let pairs = |kind| Feature::pairs(kind == Kind::Delta).map(move |(one, other)| (kind, one, other));
    let kinds = [Kind::SotwFullState, Kind::SotwPartial, Kind::Delta];
    let pairs: Vec<(Kind, Feature, Feature)> = kinds.into_iter().flat_map(pairs).collect();
    let budgets: Vec<(&str, &[()])> = pairs.iter().map(|_| ("", &[()][..])).collect();
    let faults = Mutex::new(Vec::new());
    let sums = explore_all(&budgets, |at, ()| {
        let (kind, one, other) = pairs[at];
        let (setup, begun) = combination(kind, one, other);
        let explore = if kind == Kind::Delta { checker::explore_from::<Delta> } else { checker::explore_from::<Sotw> };
        let mut report = explore(&setup.make(), &begun, OF_A_PAIR);
        let fault = report.fault.take().map(|fault| format!("{}\n    {:?}", fault.what, fault.trace));
        let what = fault.or((!Goals(report.goals).has_pair(one, other)).then(|| "never at once".into()));
        let what = what.map(|what| format!("{kind:?}, {one:?} and {other:?}: {what}"));
        faults.lock().expect("no panic").extend(what);
        report
    });
    for ((kind, one, other), sum) in pairs.iter().zip(&sums) {
        let all = if sum.complete { "" } else { ", and more" };
        println!("{kind:?}, {one:?} and {other:?}: {} unique states{all}", sum.states);
    }
    println!("in total: {} states", sums.iter().map(|sum| sum.states).sum::<usize>());
    let faults = faults.into_inner().expect("no panic");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Checks all shapes.
fn check(shapes: &[Shape], limit: usize) -> Vec<Sum> {
    let budgets: Vec<(&str, &[Budget])> = shapes.iter().map(|shape| (shape.name, &shape.budgets[..])).collect();
    explore_all(&budgets, |at, budget| {
        let Shape { delta, setup, names, .. } = shapes[at];
        let setup = setup(names, budget).make();
        if delta { checker::explore::<Delta>(&setup, limit) } else { checker::explore::<Sotw>(&setup, limit) }
    })
}

#[test]
fn the_invariants_hold_in_every_order() {
    let only = std::env::var("ONLY").unwrap_or_default();
    let shapes: Vec<Shape> = shapes::default().into_iter().filter(|shape| shape.name.contains(&only)).collect();
    let sums = check(&shapes, usize::MAX);
    let mut goals = BTreeMap::new();
    for (shape, sum) in shapes.iter().zip(&sums) {
        println!("{}: {} unique states, {} settled, {} steps", shape.name, sum.states, sum.settled, sum.transitions);
        assert!(sum.complete);
        goals.entry(shape.delta).or_insert(Goals::default()).0 |= sum.goals;
    }
    let total: usize = sums.iter().map(|sum| sum.states).sum();
    println!("in total: {total} unique states");
    if !only.is_empty() {
        return;
    }
    assert!(total >= 1_000_000, "{total} states are too few to prove much");

    // A check in which nothing happens finds nothing.
    use Goal::*;
    let both = [
        Nack,
        NackInPart,
        Synced,
        Waited,
        LateVerdict,
        Stale,
        TimedOut,
        Claimed,
        Warmed,
        CameBack,
        Coalesced,
        HeldBack,
        PausedFirst,
        Lost,
        Ambient,
        Failed,
        Beaten,
        Expired,
        ExpiredAway,
    ];
    let of_sotw = [NoClaim, StoodIn, WildcardAndNames];
    let of_delta = [Removed, ClaimedUnjudged, Held, Behind, ResponseLimit];
    for (delta, own) in [(false, &of_sotw[..]), (true, &of_delta[..])] {
        for goal in both.iter().chain(own).filter(|&&goal| !(delta && goal == Stale)) {
            assert!(goals[&delta].has(*goal), "{goal:?} never happened (delta: {delta})");
        }
    }
}

/// Removed clusters stay for a time beside the new ones. This needs two clusters and a listener, which are too many for
/// every order.
#[test]
fn removed_clusters_stay_beside_new_ones_in_random_orders() {
    let budget = Budget::NONE.cuts(1).wishes(4, 1).changes(6, 2);
    let setup = Setup::order(AB, budget).hold().make();
    let mut unions = 0;
    for seed in 0..40_000 {
        let (steps, fault) = checker::walk::walk::<Sotw>(&setup, seed);
        if let Some(what) = fault {
            panic!("{what}\n{:?}", checker::walk::shrink::<Sotw>(&setup, steps));
        }
        let mut world = World::<Sotw>::new(setup.clone());
        steps.into_iter().for_each(|step| world.take(step));
        unions += usize::from(world.pairs[0].goals.has(Goal::Union));
    }
    println!("clusters stayed in {unions} walks");
    assert!(unions > 100, "{unions} are too few to prove much");
}

/// Not part of a test run: `cargo xtask model-deep` runs it.
#[test]
#[ignore = "takes long"]
fn the_invariants_hold_in_deeper_shapes() {
    let limit = std::env::var("LIMIT").map_or(12_000_000, |limit| limit.parse().expect("a number of states"));
    let only = std::env::var("ONLY").unwrap_or_default();
    let mut total = 0;
    let shapes = shapes::deep().into_iter().chain(shapes::default().into_iter().filter(|_| !only.is_empty()));
    for shape in shapes.filter(|shape| shape.name.contains(&only)) {
        let (start, shape) = (std::time::Instant::now(), [shape]);
        let sum = check(&shape, limit)[0];
        let (of, all) = (&shape[0], if sum.complete { "all" } else { "cut off" });
        let names = of.names.join(" ");
        println!(
            "| {} | `{names}` | {} unique states | {} | {all} | {} s |",
            of.name,
            sum.states,
            sum.settled,
            start.elapsed().as_secs()
        );
        total += sum.states;
    }
    println!("in total: {total} unique states");
}

/// The same model under a checker that is not ours.
mod second_checker {
    use std::sync::Arc;

    use stateright::{Checker, Model, Property};

    use super::checker;
    use xds_machine::{Delta, Sotw};
    use xds_machine_testing::shapes::pairs;
    use xds_machine_testing::world::{Both, Budget, Made, Setup, Step, World};

    struct Stateright<V>(Arc<Made>, std::marker::PhantomData<fn() -> V>);

    impl<V: Both> Model for Stateright<V> {
        type State = World<V>;
        type Action = Step;

        fn init_states(&self) -> Vec<World<V>> {
            let mut world = World::new(self.0.clone());
            world.canonicalize();
            vec![world]
        }

        fn actions(&self, world: &World<V>, steps: &mut Vec<Step>) {
            world.steps(steps);
        }

        fn next_state(&self, world: &World<V>, step: Step) -> Option<World<V>> {
            let mut next = world.clone();
            next.take(step);
            next.canonicalize();
            Some(next)
        }

        fn properties(&self) -> Vec<Property<Self>> {
            vec![Property::always("what has settled has converged", |_, world: &World<V>| {
                if world.is_settled() {
                    world.check_settled();
                }
                true
            })]
        }
    }

    fn compare<V: Both>(setup: Setup) {
        let setup = setup.make();
        let ours = checker::explore::<V>(&setup, usize::MAX);
        assert_eq!(ours.fault.map(|fault| fault.what), None);
        let theirs = Stateright::<V>(setup, std::marker::PhantomData).checker().spawn_bfs().join();
        assert_eq!(theirs.unique_state_count(), ours.states);
        println!("both checkers: {} states", ours.states);
    }

    #[test]
    fn two_checkers_count_the_same_states() {
        let budget = Budget::NONE.cuts(1).rejects(1).wishes(2, 1).changes(2, 1);
        compare::<Sotw>(Setup::partial(&["a"], budget));
        compare::<Sotw>(Setup::full_state(&["*", "a"], pairs().next().expect("a pair")));
        compare::<Delta>(Setup::full_state(&["a"], budget));
    }
}

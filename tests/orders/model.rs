//! The exhaustive check of client x server x wire x application, over the real machines: every order of events,
//! within budgets. The checks after each step are in `testing/src/world/ghost/`, those at rest in `world/settled.rs`; and
//! the protocol's own steps never form a cycle.
//!
//! `cargo test --release --test model -- --nocapture` shows the counts; `cargo xtask model-deep` goes further.

use std::collections::BTreeMap;
use std::sync::Mutex;

use xds_machine::client::Dialect;
use xds_machine::{Delta, Sotw};
use xds_machine_testing::checker;
use xds_machine_testing::search::{Sum, explore_all};
use xds_machine_testing::world::{Budget, Bug, Feature, Goal, Goals, Setup, Step, World};

/// A family of checks: one shape of world, with several budgets.
struct Variant {
    name: &'static str,
    delta: bool,
    setup: fn(&[&str], Budget) -> Setup,
    names: &'static [&'static str],
    budgets: Vec<Budget>,
}

fn variant(name: &'static str, setup: fn(&[&str], Budget) -> Setup, names: &'static [&'static str]) -> Variant {
    Variant { name, delta: name.starts_with("delta"), setup, names, budgets: Vec::new() }
}

impl Variant {
    fn with(mut self, budgets: impl IntoIterator<Item = Budget>) -> Self {
        self.budgets.extend(budgets);
        self
    }
}

/// The kinds of environment events, each twice.
const KINDS: [fn(Budget) -> Budget; 7] = [
    |budget| Budget { cuts: 2, ..budget },
    |budget| Budget { rejects: 2, ..budget },
    |budget| Budget { subscribes: 2, ..budget },
    |budget| Budget { unsubscribes: 2, ..budget },
    |budget| Budget { refetches: 2, ..budget },
    |budget| Budget { puts: 2, ..budget },
    |budget| Budget { deletes: 2, ..budget },
];

/// Each pair of kinds, with the events that the pair requires.
fn pairs() -> impl Iterator<Item = Budget> {
    let both = move |(a, b): (usize, usize)| KINDS[a](KINDS[b](Budget::NONE.wishes(1, 0).changes(1, 0)));
    (0..KINDS.len()).flat_map(|a| (0..a).map(move |b| (a, b))).map(both)
}

/// Pauses, twice, with every other kind twice.
fn pauses() -> impl Iterator<Item = Budget> {
    KINDS.into_iter().map(|kind| kind(Budget::NONE.pauses(2).wishes(1, 0).changes(1, 0)))
}

/// Each kind with an application that loses its resources.
fn losses() -> impl Iterator<Item = Budget> {
    KINDS.iter().map(|kind| kind(Budget::NONE.wishes(1, 0).changes(1, 0).forgets(2)))
}

/// Each kind while resources with a TTL are renewed, or expire.
fn lives() -> impl Iterator<Item = Budget> {
    KINDS.iter().map(|kind| kind(Budget::NONE.wishes(1, 0).changes(1, 0).beats(2)))
}

/// Larger budgets for all kinds at once.
const WIDE: [Budget; 4] = [
    Budget::NONE.cuts(2).wishes(2, 1).changes(2, 1),
    Budget::NONE.cuts(1).wishes(2, 2).changes(2, 1),
    Budget::NONE.cuts(1).rejects(2).wishes(1, 1).changes(2, 1),
    Budget::NONE.cuts(1).wishes(2, 1).changes(3, 2),
];

/// Larger budgets still.
const MANY_ERRORS: [Budget; 3] = [
    Budget::NONE.fails(2).wishes(2, 1).changes(1, 1),
    Budget::NONE.fails(1).cuts(1).wishes(1, 1).changes(2, 1),
    Budget::NONE.fails(1).refetches(1).wishes(2, 1).changes(1, 1),
];

/// The same while resources with a TTL are renewed, or expire.
const LASTING: [Budget; 1] = [Budget::NONE.cuts(1).wishes(2, 1).changes(2, 1).beats(2)];

/// With a store that reports errors of single resources.
const ERRORS: [Budget; 4] = [
    Budget::NONE.fails(2).wishes(2, 0).changes(1, 0),
    Budget::NONE.fails(1).cuts(1).wishes(1, 1).changes(1, 1),
    Budget::NONE.fails(1).rejects(1).wishes(1, 0).changes(2, 1),
    Budget::NONE.fails(1).refetches(1).wishes(1, 1).changes(1, 1),
];

fn strict(names: &[&str], budget: Budget) -> Setup {
    Setup::full_state(names, budget).strict_server()
}

fn strict_partial(names: &[&str], budget: Budget) -> Setup {
    Setup::partial(names, budget).strict_server()
}

fn without_timer(names: &[&str], budget: Budget) -> Setup {
    Setup::partial(names, budget).no_existence_timeout()
}

fn slow(names: &[&str], budget: Budget) -> Setup {
    Setup::partial(names, budget).slow_transport()
}

fn collection_partial(names: &[&str], budget: Budget) -> Setup {
    Setup { full_state: false, ..Setup::collection(names, budget) }
}

fn forgetful(names: &[&str], budget: Budget) -> Setup {
    Setup::full_state(names, budget).tombstones(0)
}

fn grpc(names: &[&str], budget: Budget) -> Setup {
    Setup::warming(names, budget).dialect(Dialect::Grpc)
}

/// An istiod, which ignores the names on a NACK.
fn istio(names: &[&str], budget: Budget) -> Setup {
    Setup::partial(names, budget).dialect(Dialect::Istio).bug(Bug::IgnoresNamesOnNack)
}

fn refetch_by_leaving(names: &[&str], budget: Budget) -> Setup {
    Setup::full_state(names, budget).dialect(Dialect::Istio)
}

fn retry(names: &[&str], budget: Budget) -> Setup {
    Setup::full_state(names, budget).retry(1)
}

fn partial_retry(names: &[&str], budget: Budget) -> Setup {
    Setup::partial(names, budget).retry(1)
}

fn portions(names: &[&str], budget: Budget) -> Setup {
    Setup::full_state(names, budget).response_limit(1)
}

fn small_pages(names: &[&str], budget: Budget) -> Setup {
    Setup::full_state(names, budget).response_limit(1).page(1)
}

fn warming_portions(names: &[&str], budget: Budget) -> Setup {
    Setup::warming(names, budget).response_limit(1)
}

fn lasting(names: &[&str], budget: Budget) -> Setup {
    Setup::full_state(names, budget).ttl()
}

fn lasting_partial(names: &[&str], budget: Budget) -> Setup {
    Setup::partial(names, budget).ttl()
}

fn lasting_order(names: &[&str], budget: Budget) -> Setup {
    Setup::order(names, budget).ttl()
}

fn two_clients(names: &[&str], budget: Budget) -> Setup {
    Setup::full_state(names, budget).clients(2)
}

const A: &[&str] = &["a"];
const ALL_A: &[&str] = &["*", "a"];
const AB: &[&str] = &["a", "b"];
const GLOB_A: &[&str] = &["xdstp:///T/*", "xdstp:///T/a"];
const GLOB_AB: &[&str] = &["xdstp:///T/*", "xdstp:///T/a", "xdstp:///T/b"];
const ALIAS_A: &[&str] = &["~a", "a"];
const ALL_AB: &[&str] = &["*", "a", "b"];

/// The checks of every test run.
fn variants() -> Vec<Variant> {
    let two = Budget::NONE.cuts(1).wishes(2, 0).changes(2, 0);
    let part = Budget::NONE.rejects(2).wishes(2, 0).changes(3, 0);
    let order = Budget::NONE.wishes(2, 0).changes(2, 1);
    let fails = Budget::NONE.fails(1).wishes(2, 0).changes(1, 0);
    let rejecting =
        [Budget::NONE.rejects(3).wishes(1, 0).changes(2, 1), Budget::NONE.rejects(2).wishes(2, 1).changes(2, 0)];
    let away = Budget::NONE.cuts(1).wishes(1, 0).changes(1, 0).beats(2);
    let beside = Budget::NONE.wishes(2, 0).changes(2, 0).beats(1);
    // Both are there; then one changes, or goes, while the answer goes on.
    let changing = [
        Budget::NONE.wishes(1, 0).changes(3, 1),
        Budget::NONE.cuts(1).wishes(1, 0).changes(2, 1),
        Budget::NONE.wishes(2, 0).changes(3, 0),
        Budget::NONE.wishes(1, 1).changes(3, 0),
        Budget::NONE.rejects(1).wishes(1, 0).changes(3, 0),
    ];
    vec![
        variant("sotw full-state", Setup::full_state, ALL_A).with(pairs()),
        variant("sotw full-state, named", Setup::full_state, A).with([WIDE[0], WIDE[2]]),
        variant("sotw full-state, two names", Setup::full_state, AB).with([part]),
        variant("sotw full-state, strict server", strict, ALL_A).with(pairs().step_by(2)),
        variant("sotw partial", Setup::partial, ALL_A).with(pairs()),
        variant("sotw partial, named", Setup::partial, A).with([WIDE[0], WIDE[2]]),
        variant("sotw partial, two names", Setup::partial, AB).with([part]),
        variant("sotw partial, strict server", strict_partial, ALL_A).with(pairs().step_by(2)),
        variant("sotw partial, no existence timeout", without_timer, A).with([WIDE[2]]),
        variant("sotw partial, slow transport", slow, A).with(pairs()),
        variant("sotw, clusters and endpoints", Setup::warming, A).with(pairs().step_by(2)),
        variant("sotw, listeners and clusters", Setup::order, A).with([order, two]),
        variant("sotw partial, pauses", Setup::partial, A).with(pauses()),
        variant("sotw, a response of the stream at a time", grpc, A).with([two]),
        variant("sotw partial, an istiod", istio, A).with([WIDE[2]]),
        variant("sotw partial, an istiod and two names", istio, AB).with([part]),
        variant("sotw full-state, retries", retry, A).with(rejecting),
        variant("sotw partial, retries", partial_retry, A).with(rejecting),
        variant("delta, retries", retry, ALL_A).with([rejecting[0]]),
        variant("delta", Setup::full_state, ALL_A).with(pairs()),
        variant("delta, named", Setup::full_state, A).with([WIDE[0], WIDE[2]]),
        variant("delta, two names", Setup::full_state, AB).with([part]),
        variant("delta, pauses", Setup::full_state, A).with(pauses()),
        variant("delta, refetch by leaving", refetch_by_leaving, A).with([Budget::NONE
            .cuts(1)
            .wishes(1, 1)
            .changes(2, 0)
            .refetches(2)]),
        variant("delta, forgetful store", forgetful, ALL_A).with(pairs().step_by(2)),
        variant("delta, clusters and endpoints", Setup::warming, A).with(pairs().step_by(2)),
        variant("delta, listeners and clusters", Setup::order, A).with([order, two]),
        variant("sotw full-state, errors", Setup::full_state, ALL_A).with(ERRORS),
        variant("sotw partial, errors", Setup::partial, ALL_A).with(ERRORS),
        variant("sotw partial, strict server, errors", strict_partial, A).with(ERRORS),
        variant("sotw, listeners and clusters, errors", Setup::order, A).with([fails]),
        variant("delta, errors", Setup::full_state, ALL_A).with(ERRORS),
        variant("delta, listeners and clusters, errors", Setup::order, A).with([fails]),
        variant("delta, portions", portions, ALL_AB).with(changing),
        variant("delta, portions over pages", small_pages, ALL_AB).with(changing[..2].iter().copied()),
        variant("delta, portions of clusters and endpoints", warming_portions, A).with([two]),
        variant("sotw full-state, losses", Setup::full_state, ALL_A)
            .with(losses())
            .with([Budget::NONE.wishes(2, 1).changes(1, 0).forgets(1)]),
        variant("sotw partial, losses", Setup::partial, ALL_A).with(losses()),
        variant("sotw partial, strict server, losses", strict_partial, A).with(losses()),
        variant("delta, losses", Setup::full_state, ALL_A).with(losses()),
        variant("sotw full-state, TTLs", lasting, ALL_A).with(lives()),
        variant("sotw partial, TTLs", lasting_partial, A).with(lives()),
        variant("delta, TTLs", lasting, ALL_A).with(lives()),
        variant("delta, TTLs and an alias", lasting, ALIAS_A).with([away]),
        variant("sotw, TTLs of listeners and clusters", lasting_order, A).with([beside]),
        variant("delta, TTLs of listeners and clusters", lasting_order, A).with([beside]),
        variant("sotw full-state, a collection", Setup::collection, GLOB_A).with(pairs().step_by(2)),
        variant("sotw partial, a collection", collection_partial, GLOB_A).with(pairs().step_by(2)),
        variant("delta, a collection", Setup::collection, GLOB_A).with(pairs().step_by(2)),
        variant("delta, a collection of two", Setup::collection, GLOB_AB).with([part]),
        variant("delta, an alias", Setup::full_state, ALIAS_A).with(pairs().step_by(2)),
        variant("delta, two clients", two_clients, A).with([Budget::NONE.cuts(1).wishes(2, 0).changes(1, 0)]),
    ]
}

/// The checks that take hours on two cores: see `tests/orders/model-deep.md`.
fn deep() -> Vec<Variant> {
    let wide = |name, setup| variant(name, setup, ALL_A).with(WIDE);
    let names = |name, setup, names| variant(name, setup, names).with([WIDE[0], WIDE[2]]);
    vec![
        wide("sotw full-state", Setup::full_state),
        wide("sotw full-state, strict server", strict),
        wide("sotw partial", Setup::partial),
        wide("sotw partial, strict server", strict_partial),
        wide("sotw partial, no existence timeout", without_timer),
        wide("delta", Setup::full_state),
        wide("delta, forgetful store", forgetful),
        names("sotw partial, two names", Setup::partial, AB),
        names("sotw full-state, two names", Setup::full_state, AB),
        names("delta, two names", Setup::full_state, AB),
        names("delta, two names and the wildcard", Setup::full_state, ALL_AB),
        names("sotw, clusters and endpoints", Setup::warming, A),
        names("sotw, listeners and clusters", Setup::order, A),
        names("delta, clusters and endpoints", Setup::warming, A),
        names("delta, listeners and clusters", Setup::order, A),
        variant("delta, a late verdict on what nobody wants", Setup::full_state, ALL_AB)
            .with([Budget::NONE.cuts(1).wishes(3, 1).changes(1, 1)]),
        variant("sotw full-state, errors", Setup::full_state, ALL_A).with(MANY_ERRORS),
        variant("sotw partial, errors", Setup::partial, ALL_A).with(MANY_ERRORS),
        variant("delta, errors", Setup::full_state, ALL_A).with(MANY_ERRORS),
        names("sotw full-state, TTLs", lasting, ALL_A).with(LASTING),
        names("sotw partial, TTLs", lasting_partial, A).with(LASTING),
        names("delta, TTLs", lasting, ALL_A).with(LASTING),
        names("delta, portions", portions, ALL_AB),
        names("delta, portions over pages", small_pages, ALL_AB),
        names("delta, portions of clusters and endpoints", warming_portions, A),
        names("sotw full-state, a collection", Setup::collection, GLOB_AB),
        names("sotw partial, a collection", collection_partial, GLOB_AB),
        names("delta, a collection", Setup::collection, GLOB_AB),
        names("delta, an alias", Setup::full_state, ALIAS_A),
        names("delta, retries", retry, ALL_A),
        names("delta, two clients", two_clients, A),
    ]
}

type Ingredients = (fn(Setup) -> Setup, fn(Budget) -> Budget);

/// The requirements of an active feature: the setup of the world, and the events in it.
fn ingredients(feature: Feature) -> Ingredients {
    match feature {
        Feature::ResponseLimit => {
            (|setup| setup.response_limit(1), |budget| Budget { puts: budget.puts + 1, ..budget })
        }
        Feature::Pages => (|setup| setup.page(1), |budget| budget),
        Feature::Retry => (|setup| setup.retry(1), |budget| budget.rejects(1)),
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

/// A small world in which both features can be active at once, and what happened in it before.
fn combination(kind: Kind, one: Feature, other: Feature) -> (Setup, Vec<Step>) {
    let has = |feature: Feature| one == feature || other == feature;
    let (hold, glob) = (has(Feature::Hold), has(Feature::Collection));
    let alias = has(Feature::Alias) || has(Feature::MovedAlias);
    let all = has(Feature::Wildcard) || has(Feature::Pages) || (alias && has(Feature::ResponseLimit));
    // What is wanted from the start comes first.
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

/// How many states of a pair of features are explored: those that the fewest steps lead to.
const OF_A_PAIR: usize = 20_000;

/// Every two features at once, in every order of the first steps.
#[test]
fn features_hold_together() {
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

/// Checks all variants.
fn check(variants: &[Variant], limit: usize) -> Vec<Sum> {
    let budgets: Vec<(&str, &[Budget])> = variants.iter().map(|variant| (variant.name, &variant.budgets[..])).collect();
    explore_all(&budgets, |at, budget| {
        let Variant { delta, setup, names, .. } = variants[at];
        let setup = setup(names, budget).make();
        if delta { checker::explore::<Delta>(&setup, limit) } else { checker::explore::<Sotw>(&setup, limit) }
    })
}

#[test]
fn everything_holds_in_every_order() {
    let variants = variants();
    let sums = check(&variants, usize::MAX);
    let mut goals = BTreeMap::new();
    for (variant, sum) in variants.iter().zip(&sums) {
        println!("{}: {} unique states, {} settled, {} steps", variant.name, sum.states, sum.settled, sum.transitions);
        assert!(sum.complete);
        goals.entry(variant.delta).or_insert(Goals::default()).0 |= sum.goals;
    }
    let total: usize = sums.iter().map(|sum| sum.states).sum();
    println!("in total: {total} unique states");
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

/// Clusters that are gone stay for a time beside the new ones: it takes two clusters and a listener to see it, which are too
/// many for every order.
#[test]
fn clusters_stay_in_many_orders() {
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
fn deeper() {
    let limit = std::env::var("LIMIT").map_or(12_000_000, |limit| limit.parse().expect("a number of states"));
    let only = std::env::var("ONLY").unwrap_or_default();
    let mut total = 0;
    let variants = deep().into_iter().chain(variants().into_iter().filter(|_| !only.is_empty()));
    for variant in variants.filter(|variant| variant.name.contains(&only)) {
        let (start, variant) = (std::time::Instant::now(), [variant]);
        let sum = check(&variant, limit)[0];
        let (of, all) = (&variant[0], if sum.complete { "all" } else { "cut off" });
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

    use super::{checker, pairs};
    use xds_machine::{Delta, Sotw};
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

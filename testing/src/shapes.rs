//! The shapes of the world that the exhaustive check explores, also together with the referees of the conformance kit.

use xds_machine::client::Dialect;

use crate::world::{Budget, Bug, Setup};

/// One shape of world, with several budgets.
pub struct Shape {
    /// The variant of the protocol, and the special feature.
    pub name: &'static str,
    /// Whether the variant is the incremental one.
    pub delta: bool,
    /// Makes the world of these names and this budget.
    pub setup: fn(&[&str], Budget) -> Setup,
    /// The names.
    pub names: &'static [&'static str],
    /// The events of the environment; each is a check of its own.
    pub budgets: Vec<Budget>,
}

fn shape(name: &'static str, setup: fn(&[&str], Budget) -> Setup, names: &'static [&'static str]) -> Shape {
    Shape { name, delta: name.starts_with("delta"), setup, names, budgets: Vec::new() }
}

impl Shape {
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
pub fn pairs() -> impl Iterator<Item = Budget> {
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

/// Larger budgets, with a store that reports errors of single resources.
const MANY_ERRORS: [Budget; 3] = [
    Budget::NONE.fails(2).wishes(2, 1).changes(1, 1),
    Budget::NONE.fails(1).cuts(1).wishes(1, 1).changes(2, 1),
    Budget::NONE.fails(1).refetches(1).wishes(2, 1).changes(1, 1),
];

/// A larger budget while resources with a TTL are renewed, or expire.
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

/// Makes a setup with an istiod, which ignores the names on a NACK.
fn istio(names: &[&str], budget: Budget) -> Setup {
    Setup::partial(names, budget).dialect(Dialect::Istio).bug(Bug::IgnoresNamesOnNack)
}

fn refetch_by_leaving(names: &[&str], budget: Budget) -> Setup {
    Setup::full_state(names, budget).dialect(Dialect::Istio)
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

fn dependent(names: &[&str], budget: Budget) -> Setup {
    Setup::warming(names, budget).hasty_server().warms()
}

fn one_at_a_time(names: &[&str], budget: Budget) -> Setup {
    Setup::order(names, budget).room()
}

fn warming_one_at_a_time(names: &[&str], budget: Budget) -> Setup {
    Setup::warming(names, budget).room()
}

fn two_clients(names: &[&str], budget: Budget) -> Setup {
    Setup::full_state(names, budget).clients(2)
}

const A: &[&str] = &["a"];
const ALL_A: &[&str] = &["*", "a"];
/// Two names.
pub const AB: &[&str] = &["a", "b"];
const GLOB_A: &[&str] = &["xdstp:///T/*", "xdstp:///T/a"];
const GLOB_AB: &[&str] = &["xdstp:///T/*", "xdstp:///T/a", "xdstp:///T/b"];
const ALIAS_A: &[&str] = &["~a", "a"];
const ALL_AB: &[&str] = &["*", "a", "b"];

/// The checks of every test run.
pub fn default() -> Vec<Shape> {
    let two = Budget::NONE.cuts(1).wishes(2, 0).changes(2, 0);
    let part = Budget::NONE.rejects(2).wishes(2, 0).changes(3, 0);
    let order = Budget::NONE.wishes(2, 0).changes(2, 1);
    let fails = Budget::NONE.fails(1).wishes(2, 0).changes(1, 0);
    let away = Budget::NONE.cuts(1).wishes(1, 0).changes(1, 0).beats(2);
    let two_changes = Budget::NONE.wishes(2, 0).changes(2, 0);
    let beside = two_changes.beats(1);
    // A store forgets a removal once another name came and went.
    let come_and_go = Budget::NONE.cuts(1).wishes(1, 0).changes(2, 2);
    let silence = two_changes.silences(1);
    let few_silent = silence.changes(1, 0);
    let slow_verdicts = two_changes.seconds(20);
    let slow_beats = two_changes.seconds(95);
    // Both resources exist; then one changes or is removed while the answer continues.
    let changing = [
        Budget::NONE.wishes(1, 0).changes(3, 1),
        Budget::NONE.cuts(1).wishes(1, 0).changes(2, 1),
        Budget::NONE.wishes(2, 0).changes(3, 0),
        Budget::NONE.wishes(1, 1).changes(3, 0),
        Budget::NONE.rejects(1).wishes(1, 0).changes(3, 0),
    ];
    vec![
        shape("sotw full-state", Setup::full_state, ALL_A).with(pairs()),
        shape("sotw full-state, named", Setup::full_state, A).with([WIDE[0], WIDE[2]]),
        shape("sotw full-state, two names", Setup::full_state, AB).with([part]),
        shape("sotw full-state, strict server", strict, ALL_A).with(pairs().step_by(2)),
        shape("sotw partial", Setup::partial, ALL_A).with(pairs()),
        shape("sotw partial, named", Setup::partial, A).with([WIDE[0], WIDE[2]]),
        shape("sotw partial, two names", Setup::partial, AB).with([part]),
        shape("sotw partial, strict server", strict_partial, ALL_A).with(pairs().step_by(2)),
        shape("sotw partial, no existence timeout", without_timer, A).with([WIDE[2]]),
        shape("sotw partial, slow transport", slow, A).with(pairs()),
        shape("sotw, clusters and endpoints", Setup::warming, A).with(pairs().step_by(2)),
        shape("sotw, listeners and clusters", Setup::order, A).with([order, two]),
        shape("sotw partial, pauses", Setup::partial, A).with(pauses()),
        shape("sotw, a response of the stream at a time", grpc, A).with([two]),
        shape("sotw partial, an istiod", istio, A).with([WIDE[2]]),
        shape("sotw partial, an istiod and two names", istio, AB).with([part]),
        shape("delta", Setup::full_state, ALL_A).with(pairs()),
        shape("delta, named", Setup::full_state, A).with([WIDE[0], WIDE[2]]),
        shape("delta, two names", Setup::full_state, AB).with([part]),
        shape("delta, pauses", Setup::full_state, A).with(pauses()),
        shape("delta, refetch by leaving", refetch_by_leaving, A).with([Budget::NONE
            .cuts(1)
            .wishes(1, 1)
            .changes(2, 0)
            .refetches(2)]),
        shape("delta, forgetful store", forgetful, ALL_AB).with([come_and_go]),
        shape("delta, clusters and endpoints", Setup::warming, A).with(pairs().step_by(3)),
        shape("delta, listeners and clusters", Setup::order, A).with([order, two]),
        shape("sotw full-state, errors", Setup::full_state, ALL_A).with(ERRORS),
        shape("sotw partial, errors", Setup::partial, ALL_A).with(ERRORS),
        shape("sotw partial, strict server, errors", strict_partial, A).with(ERRORS),
        shape("sotw, listeners and clusters, errors", Setup::order, A).with([fails]),
        shape("delta, errors", Setup::full_state, ALL_A).with(ERRORS),
        shape("delta, listeners and clusters, errors", Setup::order, A).with([fails]),
        shape("delta, portions", portions, ALL_AB).with(changing),
        shape("delta, portions over pages", small_pages, ALL_AB).with(changing[..2].iter().copied()),
        shape("delta, portions of clusters and endpoints", warming_portions, A).with([two]),
        shape("sotw full-state, losses", Setup::full_state, ALL_A)
            .with(losses())
            .with([Budget::NONE.wishes(2, 1).changes(1, 0).forgets(1)]),
        shape("sotw partial, losses", Setup::partial, ALL_A).with(losses()),
        shape("sotw partial, strict server, losses", strict_partial, A).with(losses()),
        shape("delta, losses", Setup::full_state, ALL_A).with(losses()),
        shape("sotw, silence", Setup::order, A).with([silence]),
        shape("sotw partial, silence", Setup::partial, AB).with([few_silent]),
        shape("sotw, silence of clusters or endpoints", Setup::warming, A).with([few_silent]),
        shape("delta, silence", Setup::order, A).with([silence]),
        shape("delta, silence and two names", Setup::full_state, AB).with([few_silent]),
        shape("delta, silence of clusters or endpoints", Setup::warming, A).with([few_silent]),
        shape("sotw, clusters judged after endpoints", dependent, A).with([two_changes]),
        shape("delta, clusters judged after endpoints", dependent, A).with([two_changes]),
        shape("sotw partial, slow verdicts", Setup::partial, AB).with([slow_verdicts]),
        shape("sotw full-state, slow verdicts", Setup::full_state, AB).with([slow_verdicts]),
        shape("sotw, slow verdicts on clusters or endpoints", Setup::warming, A).with([slow_verdicts]),
        shape("delta, slow verdicts", Setup::full_state, AB).with([slow_verdicts]),
        shape("delta, slow verdicts on clusters or endpoints", Setup::warming, A).with([slow_verdicts]),
        shape("delta, slow verdicts and TTLs", lasting, A).with([slow_beats]),
        shape("sotw, room for a response", one_at_a_time, A).with([two_changes]),
        shape("sotw, room for a response of clusters or endpoints", warming_one_at_a_time, A).with([two_changes]),
        shape("delta, room for a response", one_at_a_time, A).with([two_changes]),
        shape("delta, room for a response of clusters or endpoints", warming_one_at_a_time, A).with([two_changes]),
        shape("sotw full-state, TTLs", lasting, ALL_A).with(lives()),
        shape("sotw partial, TTLs", lasting_partial, A).with(lives()),
        shape("delta, TTLs", lasting, ALL_A).with(lives()),
        shape("delta, TTLs and an alias", lasting, ALIAS_A).with([away]),
        shape("sotw, TTLs of listeners and clusters", lasting_order, A).with([beside]),
        shape("delta, TTLs of listeners and clusters", lasting_order, A).with([beside]),
        shape("sotw full-state, a collection", Setup::collection, GLOB_A).with(pairs().step_by(2)),
        shape("sotw partial, a collection", collection_partial, GLOB_A).with(pairs().step_by(2)),
        shape("delta, a collection", Setup::collection, GLOB_A).with(pairs().step_by(2)),
        shape("delta, a collection of two", Setup::collection, GLOB_AB).with([Budget { puts: 2, ..part }]),
        shape("delta, an alias", Setup::full_state, ALIAS_A).with(pairs().step_by(2)),
        shape("delta, two clients", two_clients, A).with([Budget::NONE.cuts(1).wishes(2, 0).changes(1, 0)]),
    ]
}

/// The checks that take hours on two cores (`cargo xtask model-deep`).
pub fn deep() -> Vec<Shape> {
    let wide = |name, setup| shape(name, setup, ALL_A).with(WIDE);
    let names = |name, setup, names| shape(name, setup, names).with([WIDE[0], WIDE[2]]);
    vec![
        wide("sotw full-state", Setup::full_state),
        wide("sotw full-state, strict server", strict),
        wide("sotw partial", Setup::partial),
        wide("sotw partial, strict server", strict_partial),
        wide("sotw partial, no existence timeout", without_timer),
        wide("delta", Setup::full_state),
        shape("delta, forgetful store", forgetful, ALL_AB).with([Budget::NONE.cuts(1).wishes(2, 1).changes(2, 2)]),
        names("sotw partial, two names", Setup::partial, AB),
        names("sotw full-state, two names", Setup::full_state, AB),
        names("delta, two names", Setup::full_state, AB),
        names("delta, two names and the wildcard", Setup::full_state, ALL_AB),
        names("sotw, clusters and endpoints", Setup::warming, A),
        names("sotw, listeners and clusters", Setup::order, A),
        names("delta, clusters and endpoints", Setup::warming, A),
        names("delta, listeners and clusters", Setup::order, A),
        shape("delta, a late verdict on what nobody wants", Setup::full_state, ALL_AB)
            .with([Budget::NONE.cuts(1).wishes(3, 1).changes(1, 1)]),
        shape("sotw full-state, errors", Setup::full_state, ALL_A).with(MANY_ERRORS),
        shape("sotw partial, errors", Setup::partial, ALL_A).with(MANY_ERRORS),
        shape("delta, errors", Setup::full_state, ALL_A).with(MANY_ERRORS),
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
        names("delta, two clients", two_clients, A),
    ]
}

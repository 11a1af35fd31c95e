//! Bytes as steps of the world. A byte means the same step at every position, so that a mutation changes one step and
//! not all that follow.

use std::sync::Arc;

use xds_machine::client::Dialect;

use super::{Both, Budget, Made, Setup, Step, Ttls, World};

/// The number of bytes that determine the shape of a world.
pub const SHAPE: usize = 4;

const NAMES: [&[&str]; 4] = [&["*", "a"], &["a", "b"], &["*", "a", "b"], &["*", "a", "b", "c"]];

/// Names of a collection, its members, and one that is not a member.
const COLLECTIONS: [&[&str]; 4] = [
    &["xdstp:///T/*", "xdstp:///T/a"],
    &["xdstp:///T/a", "xdstp:///T/b"],
    &["*", "xdstp:///T/*", "xdstp:///T/a", "xdstp:///T/b"],
    &["xdstp:///T/*", "xdstp:///T/a", "xdstp:///T/b", "a"],
];

/// Names with aliases: a fixed one, and a moving one. Some sort before the names of resources.
const ALIASES: [&[&str]; 4] = [&["~a", "a"], &["~", "a", "b"], &["*", "~", "~a", "a"], &["*", "!", "a", "b"]];

/// Names with collections and aliases.
const EVERYTHING: [&[&str]; 4] = [
    &["~", "xdstp:///T/*", "xdstp:///T/a"],
    &["*", "~", "xdstp:///T/a", "xdstp:///T/b"],
    &["!", "xdstp:///T/*", "xdstp:///T/a", "xdstp:///T/b"],
    &["~", "!xdstp:///T/a", "xdstp:///T/*", "xdstp:///T/a"],
];

/// Derives the shape of a world from its bytes: types and names, the setup, and each feature separately. Zero selects
/// none.
pub fn setup<V: Both>(data: &[u8]) -> (Arc<Made>, &[u8]) {
    let [shape, flags, names, features, steps @ ..] = data else {
        return (Setup::full_state(&["a"], Budget::PLENTY).make(), &[]);
    };
    let bit = |byte: &u8, at: u32| byte >> at & 1 > 0;
    let of = |byte: &u8, at: u32| usize::from(byte >> at & 3);
    // Only one type has structured names.
    let (aliases, collections) = (bit(names, 2) && !V::LISTS, bit(names, 3) && shape & 3 < 2);
    let choice = of(names, 0);
    let names = match (aliases, collections) {
        (false, false) => NAMES[choice],
        (true, false) => ALIASES[choice],
        (false, true) => COLLECTIONS[choice],
        (true, true) => EVERYTHING[choice],
    };
    let setup = match shape & 3 {
        0 if collections => Setup::collection(names, Budget::PLENTY),
        1 if collections => Setup { full_state: false, ..Setup::collection(names, Budget::PLENTY) },
        0 => Setup::full_state(names, Budget::PLENTY),
        1 => Setup::partial(names, Budget::PLENTY),
        // The endpoints that a cluster needs again are subscribed to by name.
        2 if aliases => Setup::order(names, Budget::PLENTY),
        2 => Setup::warming(names, Budget::PLENTY),
        _ => Setup::order(names, Budget::PLENTY),
    };
    let setup = setup.clients(1 + usize::from(bit(shape, 4))).dialect(DIALECTS[of(shape, 5)]);
    let when = |on: bool, setup: Setup, with: fn(Setup) -> Setup| if on { with(setup) } else { setup };
    let setup = when(bit(flags, 0), setup, Setup::strict_server);
    let setup = when(bit(flags, 1), setup, Setup::no_existence_timeout);
    let setup = when(bit(flags, 2), setup, Setup::slow_transport);
    let setup = when(bit(flags, 3), setup, |setup| setup.tombstones(0));
    let setup = when(bit(flags, 5), setup, Setup::unknown);
    const COUNTS: [Option<usize>; 4] = [None, Some(1), Some(2), Some(3)];
    let setup = Setup {
        page: COUNTS[of(flags, 6)],
        response_limit: COUNTS[of(features, 0)],
        ttl: [Ttls::None, Ttls::All, Ttls::Mixed, Ttls::None][of(features, 2)],
        limit: bit(features, 7).then_some(1 + choice),
        ..setup
    };
    let setup = when(bit(features, 6), setup, Setup::hold);
    let silences = if bit(shape, 2) { 2 } else { 0 };
    let setup = Setup { budget: setup.budget.silences(silences).seconds(if bit(shape, 2) { 0 } else { 600 }), ..setup };
    let warms = bit(shape, 3) && !bit(features, 7);
    let setup = when(warms, setup.recorded(), Setup::warms);
    let legacy = setup.full_state ^ bit(flags, 4);
    (setup.legacy_wildcard(legacy).make(), steps)
}

const DIALECTS: [Dialect; 4] = [Dialect::Spec, Dialect::Envoy, Dialect::Grpc, Dialect::Istio];

/// Returns the step of a byte: its kind, and the client, type and name.
pub fn step(byte: u8, setup: &Setup) -> Step {
    let about = usize::from(byte >> 4);
    let (c, t, n) = (about & 1, about >> 1 & 1, about >> 2);
    let (c, t) = (c % setup.clients, t % setup.types.len());
    // Kinds with fewer parameters leave room for other kinds.
    match (byte & 15, n) {
        (0, 1..) => return Step::Forget { c, t, n: n % setup.names.len() },
        (2, 2) => return Step::Pause { c, t },
        (2, 3) => return Step::Resume { c, t },
        (8, 3) => return Step::Silence { c, t },
        (7, 2) => return Step::Beat,
        (7, 3) => return Step::Pass,
        (14, 3) if t == 1 => return Step::Wait,
        (6, 3) => return Step::Know { t },
        (1, 3) => return Step::Doubt { t, n: 0 },
        (3, 3) => return Step::Doubt { t, n: 1 },
        (4, 3) => return Step::Doubt { t, n: 2 % setup.names.len() },
        (5, 3) => return Step::Doubt { t, n: 3 % setup.names.len() },
        _ => {}
    }
    let n = n % setup.names.len();
    match byte & 15 {
        0 => Step::Open { c },
        1 => Step::ClientSends { c },
        2 => Step::Sent { c },
        3 => Step::ServerReads { c },
        4 => Step::ServerSends { c },
        5 => Step::ClientReads { c },
        6 => Step::Accept { c, t },
        7 => Step::Tick,
        8 => Step::Cut { c },
        9 => Step::Reject { c, t },
        10 => Step::RejectOne { c, t, n },
        11 => Step::Subscribe { c, t, n },
        12 => Step::Unsubscribe { c, t, n },
        13 => Step::Refetch { c, t, n },
        14 => Step::Put { t, n },
        _ if about & 1 == 0 => Step::Delete { t, n },
        _ => Step::Fail { t, n },
    }
}

/// Lets the protocol take up to so many of its own steps, in an order that `choice` determines: at random, or
/// round-robin, which finds cycles that random order soon leaves. Returns whether the protocol settled.
pub fn run<V: Both>(world: &mut World<V>, most: usize, choice: u64) -> bool {
    run_noting(world, most, choice, |_| {})
}

/// Like [`run`], and notes each step before it is taken.
pub fn run_noting<V: Both>(world: &mut World<V>, most: usize, mut choice: u64, mut note: impl FnMut(Step)) -> bool {
    let (in_turn, mut steps) = (choice & 1 > 0, Vec::new());
    for turn in 0..most {
        steps.clear();
        world.protocol_steps(&mut steps);
        if steps.is_empty() {
            return true;
        }
        let step = if in_turn {
            steps[turn % steps.len()]
        } else {
            choice = choice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            steps[(choice >> 33) as usize % steps.len()]
        };
        note(step);
        world.take(step);
    }
    false
}

/// The number of protocol steps within which a world settles.
pub const SETTLES: usize = 3_000;

/// Lets the protocol settle, and checks the settled state.
pub fn settle<V: Both>(world: &mut World<V>, choice: u64) {
    assert!(run(world, SETTLES, choice), "the protocol does not come to rest");
    world.check_settled();
}

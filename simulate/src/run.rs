//! One run: a world and the steps taken in it.

use std::fmt;
use std::ops::AddAssign;
use std::panic::{self, AssertUnwindSafe};

use xds_machine::client::Dialect;
use xds_machine::type_url;
use xds_machine_testing::random::Random;
use xds_machine_testing::world::{Both, Budget, Setup, Step, Ttls, World};

use crate::shrink::shrink;

/// The totals of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub steps: u64,
    pub requests: u64,
    pub responses: u64,
    pub streams: u64,
    pub rests: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.steps += other.steps;
        self.requests += other.requests;
        self.responses += other.responses;
        self.streams += other.streams;
        self.rests += other.rests;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { steps, requests, responses, streams, rests } = self;
        write!(f, "{steps} steps: {requests} requests, {responses} responses, {streams} streams, {rests} times at rest")
    }
}

pub struct Run<V: Both> {
    random: Random,
    world: World<V>,
    tally: Tally,
    /// The steps taken so far, recorded on demand.
    taken: Option<Vec<Step>>,
    /// The probability of a step of the environment, out of 256.
    unrest: usize,
}

/// Sets up a world with a random choice of features. Each feature is off in many worlds, so that some worlds stay
/// simple.
pub fn setup<V: Both>(random: &mut Random) -> Setup {
    let structured = random.below(4) == 0;
    let types: &[&str] = match random.below(6) {
        _ if structured => &["T"],
        5 if !V::LISTS => &[type_url::VIRTUAL_HOST],
        0 => &[type_url::CLUSTER],
        1 => &[type_url::ENDPOINT],
        2 => &[type_url::ENDPOINT, type_url::CLUSTER],
        3 => &[type_url::LISTENER, type_url::CLUSTER],
        _ => &[type_url::CLUSTER, type_url::ENDPOINT, type_url::LISTENER, type_url::ROUTE],
    };
    let full_state = random.below(2) == 0;
    let names = names::<V>(random, structured);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let budget = Budget::PLENTY.silences(random.pick(&[0, 0, 1])).seconds(600);
    let setup = Setup::full_state(&names, budget).clients(random.pick(&[1, 1, 2, 4, 8])).recorded();
    let setup = Setup {
        types: types.iter().map(|&url| url.into()).collect(),
        full_state,
        response_limit: random.some(3).map(|random| 1 + random.below(3)),
        page: random.some(2).map(|random| 1 + random.below(5)),
        limit: random.some(4).map(|random| 1 + random.below(names.len())),
        ttl: random.pick(&[Ttls::None, Ttls::None, Ttls::All, Ttls::Mixed]),
        unknown: random.below(4) == 0,
        ..setup
    };
    let dialects = [Dialect::Spec, Dialect::Spec, Dialect::Envoy, Dialect::Grpc, Dialect::Istio];
    let setup = setup.legacy_wildcard(full_state ^ (random.below(8) == 0)).dialect(random.pick(&dialects));
    let features: [fn(Setup) -> Setup; 7] = [
        Setup::strict_server,
        Setup::no_existence_timeout,
        Setup::slow_transport,
        |setup| setup.tombstones(0),
        Setup::hold,
        Setup::warms,
        Setup::room,
    ];
    features.into_iter().fold(setup, |setup, with| if random.below(4) == 0 { with(setup) } else { setup })
}

/// Returns the names to subscribe to: resources, the wildcard, a collection, fixed aliases, and aliases that move. Aliases
/// sort before the names of resources or after them, and some resources sort before their collection.
fn names<V: Both>(random: &mut Random, structured: bool) -> Vec<String> {
    let count = random.pick(&[2, 3, 5, 8, 16]);
    let early = random.below(2);
    let name = |i: usize| match structured {
        true if i < early => format!("xdstp:///T/!{i}"),
        true => format!("xdstp:///T/r{i}"),
        false => format!("r{i}"),
    };
    let mut names: Vec<String> = (0..count).map(name).collect();
    if structured && random.below(4) > 0 {
        names.push("xdstp:///T/*".into());
    }
    if random.below(3) > 0 {
        names.push("*".into());
    }
    if !V::LISTS {
        names.extend(["~", "!"].into_iter().filter(|_| random.below(6) == 0).map(String::from));
        for mark in ["~", "!"].into_iter().filter(|_| random.below(6) == 0) {
            names.extend((0..count).map(|i| format!("{mark}{}", name(i))));
        }
    }
    names
}

/// The number of steps between two times at rest.
const REST: u64 = 2_500;

impl<V: Both> Run<V> {
    pub fn new(mut random: Random) -> Self {
        let setup = setup::<V>(&mut random);
        let unrest = random.pick(&[8, 32, 96]);
        Self { random, world: World::new(setup.make()), tally: Tally::default(), taken: None, unrest }
    }

    /// Plays a failed run again, and reduces it.
    pub fn explain(mut self, steps: u64) {
        self.taken = Some(Vec::new());
        let setup = self.world.setup.clone();
        let failed = panic::catch_unwind(AssertUnwindSafe(|| self.go(steps))).is_err();
        let taken = self.taken.unwrap_or_default();
        println!("{:?}: {} steps", setup.setup, taken.len());
        if failed {
            println!("{:?}", shrink::<V>(&setup, taken));
        }
    }

    pub fn play(mut self, steps: u64) -> Tally {
        self.go(steps);
        self.tally
    }

    fn go(&mut self, steps: u64) {
        let mut rest = REST;
        while self.tally.steps < steps {
            let step = if self.random.below(256) < self.unrest { self.environment() } else { self.protocol() };
            self.attempt(step);
            if self.tally.steps >= rest {
                self.come_to_rest();
                rest = self.tally.steps + REST;
            }
        }
        self.come_to_rest();
    }

    fn protocol(&mut self) -> Step {
        let random = &mut self.random;
        let c = random.below(self.world.pairs.len());
        match random.below(9) {
            0 => Step::Open { c },
            1 => Step::ClientSends { c },
            2 => Step::Sent { c },
            3 => Step::ServerReads { c },
            4 => Step::ServerSends { c },
            5 => Step::ClientReads { c },
            6 => Step::Resume { c, t: random.below(self.world.setup.types.len()) },
            _ => Step::Accept { c, t: random.below(self.world.setup.types.len()) },
        }
    }

    fn environment(&mut self) -> Step {
        let random = &mut self.random;
        let (c, t) = (random.below(self.world.pairs.len()), random.below(self.world.setup.types.len()));
        let n = random.below(self.world.setup.names.len());
        match random.below(80) {
            0 => Step::Cut { c },
            1..4 => Step::Reject { c, t },
            4..8 => Step::RejectOne { c, t, n },
            8..24 => Step::Subscribe { c, t, n },
            24..36 => Step::Unsubscribe { c, t, n },
            36..38 => Step::Refetch { c, t, n },
            38..54 => Step::Put { t, n },
            54..64 => Step::Delete { t, n },
            64..66 => Step::Fail { t, n },
            66..68 => Step::Forget { c, t, n },
            68 | 69 => Step::Pause { c, t },
            70 if random.one_in(40) => Step::Silence { c, t },
            70 => Step::Doubt { t, n },
            71 => Step::Know { t },
            72..74 => Step::Beat,
            74 => Step::Wait,
            _ => Step::Pass,
        }
    }

    fn attempt(&mut self, step: Step) {
        self.taken.iter_mut().for_each(|taken| taken.push(step)); // before it fails
        let polls = matches!(step, Step::ServerSends { .. });
        if attempt(&mut self.world, step) {
            self.tally.note(step);
        } else if !polls {
            // A poll stays: the time of a poll without a response may be part of the failure.
            self.taken.iter_mut().for_each(|taken| _ = taken.pop());
        }
    }

    /// Lets the protocol take its steps until none is left, and checks the state at rest.
    fn come_to_rest(&mut self) {
        let (tally, taken) = (&mut self.tally, &mut self.taken);
        come_to_rest(&mut self.world, |_, step| {
            tally.note(step);
            taken.iter_mut().for_each(|taken| taken.push(step));
        });
        self.tally.rests += 1;
    }
}

impl Tally {
    fn note(&mut self, step: Step) {
        self.steps += 1;
        match step {
            Step::ClientSends { .. } => self.requests += 1,
            Step::ServerSends { .. } => self.responses += 1,
            Step::Open { .. } => self.streams += 1,
            _ => {}
        }
    }
}

/// Takes a step if it is possible, and returns whether it had an effect.
pub fn attempt<V: Both>(world: &mut World<V>, step: Step) -> bool {
    world.budget = world.setup.budget; // there is no end
    let Step::ServerSends { c } = step else {
        let can = world.can(step);
        if can {
            world.take(step);
        }
        return can;
    };
    // Polling is the only way to find out whether a server has a response.
    if world.pairs[c].server.is_none() {
        return false;
    }
    let before = world.pairs[c].down.len();
    world.take(step);
    world.pairs[c].server.is_none() || world.pairs[c].down.len() > before
}

/// Lets the protocol take its steps until none is left, one client after the other, and checks the state at rest.
pub fn come_to_rest<V: Both>(world: &mut World<V>, mut on: impl FnMut(&World<V>, Step)) {
    // Every client has a turn in each round, and needs only a few rounds.
    for _ in 0..ROUNDS {
        let mut moved = false;
        for c in 0..world.pairs.len() {
            for step in world.steps_of(c) {
                if attempt(world, step) {
                    on(world, step);
                    moved = true;
                }
            }
        }
        if !moved {
            if !attempt(world, Step::Tick) {
                world.check_invariants();
                return world.check_settled();
            }
            on(world, Step::Tick);
        }
    }
    panic!("the protocol does not come to rest");
}

const ROUNDS: usize = 1_000;

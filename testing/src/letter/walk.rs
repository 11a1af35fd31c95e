//! One walk: drawn from a seed, played, and shrunk if it fails.

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};

use xds_machine::{Delta, Sotw};

use super::setup::{Setup, Step};
use super::with_client::WithClient;
use super::with_server::WithServer;
use crate::random::Random;
use crate::shrink::fewest;

/// The number of steps of one walk.
pub const STEPS: usize = 80;

/// A violated rule.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The rule: the same for all walks that violate it.
    pub rule: &'static str,
    pub what: String,
}

pub(super) fn ensure(holds: bool, rule: &'static str, what: impl FnOnce() -> String) -> Result<(), Fault> {
    if holds { Ok(()) } else { Err(Fault { rule, what: what() }) }
}

/// The events line by line, if they are recorded.
#[derive(Default)]
pub(super) struct Story(Option<Vec<String>>);

impl Story {
    pub(super) fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.0 {
            lines.push(line());
        }
    }
}

/// One of this crate's machines beside a naive peer.
pub(super) trait Walk {
    fn new(setup: Setup) -> Self;
    /// Takes a step, if it can be taken.
    fn take(&mut self, step: Step) -> Result<(), Fault>;
    fn story(&mut self) -> &mut Story;
}

/// A walk that failed.
#[derive(Debug)]
pub struct Found {
    pub fault: Fault,
    /// The number of steps before the failure.
    pub steps: usize,
}

/// Takes the steps of a walk, of which the last is a rest. Returns the number of steps, or the fault.
pub fn walk(seed: u64) -> Result<usize, Found> {
    let (side, setup, steps) = draw(seed);
    match side.play(&setup, &steps, &mut Story::default()) {
        None => Ok(steps.len()),
        Some(found) => Err(found),
    }
}

/// Takes many walks. Returns the number of failures by rule, each with the first one.
pub fn survey(seeds: impl Iterator<Item = u64>) -> BTreeMap<&'static str, (u64, u64)> {
    let mut found = BTreeMap::new();
    for seed in seeds {
        if let Err(Found { fault, .. }) = walk(seed) {
            found.entry(fault.rule).or_insert((0, seed)).0 += 1;
        }
    }
    found
}

/// Replays a failing walk without all steps that are not needed for the failure. Returns its events.
pub fn explain(seed: u64) -> String {
    let (side, mut setup, mut steps) = draw(seed);
    let Some(found) = side.play(&setup, &steps, &mut Story::default()) else { return "it does not fail".into() };
    steps.truncate(found.steps);
    let fails = |setup: &Setup, steps: &[Step]| {
        let again = side.play(setup, steps, &mut Story::default())?;
        (again.fault.rule == found.fault.rule).then_some(again.steps)
    };
    for simpler in simpler_setups() {
        let mut other = setup.clone();
        simpler(&mut other);
        if fails(&other, &steps).is_some() {
            setup = other;
        }
    }
    let steps = fewest(steps, |mut fewer| {
        fewer.truncate(fails(&setup, &fewer)?);
        Some(fewer)
    });
    let mut story = Story(Some(Vec::new()));
    let found = side.play(&setup, &steps, &mut story).expect("it fails");
    let lines = story.0.unwrap_or_default().join("\n");
    format!("{side:?}, {setup:?}\n{steps:?}\n{lines}\n{}: {}", found.fault.rule, found.fault.what)
}

/// Setups without features that may be unrelated to a fault.
fn simpler_setups() -> [fn(&mut Setup); 9] {
    use super::setup::Ttls;
    [
        |setup| setup.ttls = Ttls::None,
        |setup| setup.response_limit = None,
        |setup| setup.tombstones = 10_000,
        |setup| setup.page = None,
        |setup| setup.hold = false,
        |setup| setup.unknown = false,
        |setup| setup.limit = 100,
        |setup| setup.types.truncate(1),
        |setup| setup.types.iter_mut().for_each(|kind| *kind = kind.clone().with_legacy_wildcard(false)),
    ]
}

/// The machine of this crate that walks, and its variant.
#[derive(Clone, Copy, Debug)]
enum Side {
    DeltaServer,
    SotwServer,
    DeltaClient,
    SotwClient,
}

fn draw(seed: u64) -> (Side, Setup, Vec<Step>) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let side =
        random.pick(&[Side::DeltaServer, Side::DeltaServer, Side::SotwServer, Side::DeltaClient, Side::SotwClient]);
    let setup = Setup::draw(&mut random, matches!(side, Side::DeltaServer | Side::DeltaClient));
    let steps = setup.steps(&mut random, STEPS);
    (side, setup, steps)
}

impl Side {
    fn play(self, setup: &Setup, steps: &[Step], story: &mut Story) -> Option<Found> {
        match self {
            Self::DeltaServer => play::<WithServer<Delta>>(setup, steps, story),
            Self::SotwServer => play::<WithServer<Sotw>>(setup, steps, story),
            Self::DeltaClient => play::<WithClient<Delta>>(setup, steps, story),
            Self::SotwClient => play::<WithClient<Sotw>>(setup, steps, story),
        }
    }
}

fn play<W: Walk>(setup: &Setup, steps: &[Step], story: &mut Story) -> Option<Found> {
    let mut walk = W::new(setup.clone());
    std::mem::swap(walk.story(), story);
    let mut taken = 0;
    let all = panic::catch_unwind(AssertUnwindSafe(|| {
        for &step in steps {
            taken += 1;
            if step.t().is_none_or(|t| t < setup.types.len()) {
                walk.take(step)?;
            }
        }
        Ok(())
    }));
    std::mem::swap(walk.story(), story);
    let panicked = |_| Err(Fault { rule: "a panic", what: "see above".into() });
    let fault = all.unwrap_or_else(panicked).err()?;
    Some(Found { fault, steps: taken })
}

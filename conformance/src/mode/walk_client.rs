//! The mode `walk client`: walks over sockets, with a start of the client for each walk.

use std::collections::BTreeSet;

use crate::client::ClientPeer;
use crate::client::launch::Launch;
use crate::client::mode::Plan;
use crate::client::sockets::{Port, Sockets};
use crate::client::story::{ClientStory, Step};
use crate::message::Variant;
use crate::report::{Calibration, Report, Row, variant_name};
use crate::run::Trouble;
use crate::walk::{self, Choice, ClientArena, ClientWalks, EveryClientWalk, Limits, Source};

/// The types that a walk is of, and that the barrier may be of, the most useful first.
const TYPES: [&str; 4] = ["cds", "eds", "lds", "rds"];

/// Walks with the client of the plan. Returns the stories of the violations, too.
///
/// # Errors
///
/// If the client does not start, or supports no variant of the plan.
pub fn walk_client(plan: &Plan, limits: Limits, choice: Choice) -> Result<(Report, Vec<String>), Trouble> {
    if plan.reference {
        return Err(Trouble("a client that cannot be told what to ask for cannot be walked with".into()));
    }
    let (mut variants, mut features, mut trouble) = (Vec::new(), BTreeSet::new(), None);
    for (variant, envoy) in &plan.starts {
        match start(plan, *variant, envoy) {
            Ok((_, named)) => {
                if *variant == Variant::Sotw || named.contains(variant_name(*variant)) {
                    variants.push(*variant);
                }
                features.extend(named);
            }
            Err(why) => trouble = Some(why),
        }
    }
    if let (true, Some(why)) = (variants.is_empty(), trouble) {
        return Err(why);
    }
    if variants.is_empty() {
        return Err(Trouble("the client speaks no variant that is to be walked".into()));
    }
    let served = |of: &&str| plan.types.is_empty() || plan.types.iter().any(|own| own == of);
    let mut types: Vec<String> = TYPES.into_iter().filter(served).map(str::to_owned).collect();
    let barrier = types.pop().filter(|_| !types.is_empty());
    let barrier = barrier.ok_or_else(|| Trouble("a walk needs two types: one is for the barrier".into()))?;
    types.truncate(2);
    let has_wildcard = features.contains("wildcard") || plan.features.contains("wildcard");
    let wildcard: Vec<String> = types.iter().filter(|of| has_wildcard && plan.wildcard.contains(of)).cloned().collect();
    let (rows, stories) = match choice {
        Choice::Random(seed) => walk_all(plan, &barrier, &ClientWalks { variants, types, wildcard, seed }, limits),
        Choice::Every(longest) => {
            walk_all(plan, &barrier, &EveryClientWalk::new(&variants, &types, &wildcard, longest), limits)
        }
    };
    Ok((report(plan, "walk client", rows), stories))
}

/// Walks. Returns the rows, and the stories of violations.
fn walk_all(plan: &Plan, barrier: &str, walks: &impl Source<Step = Step>, limits: Limits) -> (Vec<Row>, Vec<String>) {
    enter(plan, barrier, |arena| {
        let (rows, findings) = walk::run(arena, walks, limits);
        (rows, findings.iter().map(|finding| finding.story(arena)).collect())
    })
}

/// Plays the story of a walk once more.
pub fn replay_client(plan: &Plan, variant: Variant, story: &ClientStory) -> Report {
    let row = enter(plan, "rds", |arena| walk::replay(arena, variant, story));
    report(plan, "replay", vec![row])
}

fn enter<T>(plan: &Plan, barrier: &str, walk: impl FnOnce(&ClientArena<'_>) -> T) -> T {
    let begin = |variant| {
        let envoy = plan.starts.iter().find(|(of, _)| *of == variant).map_or("", |(_, envoy)| envoy.as_str());
        start(plan, variant, envoy).map(|(peer, _)| Box::new(peer) as Box<dyn ClientPeer>)
    };
    walk(&ClientArena::new(&begin, barrier))
}

/// Starts the client. Returns the client, and the features that it names.
fn start(plan: &Plan, variant: Variant, envoy: &str) -> Result<(Sockets, BTreeSet<String>), Trouble> {
    let port = Port::open()?;
    let launch =
        Launch::new(&plan.command, port.number(), variant, envoy).map_err(|error| Trouble(error.to_string()))?;
    let (peer, ready) = port.start(launch.command())?;
    Ok((peer, ready.features.into_iter().collect()))
}

fn report(plan: &Plan, mode: &str, rows: Vec<Row>) -> Report {
    Report {
        mode: mode.into(),
        implementation: plan.implementation.clone(),
        calibration: Calibration::default(),
        rows,
        stale: Vec::new(),
        strict: plan.strict,
    }
}

//! Compares the behaviour of C-core and of this project's client.

use std::collections::BTreeSet;
use std::fmt;

use super::answer::{Call, NAMELESS, Seen};
use super::case::{Case, Kind};
use super::core::Played;
use super::known::Known;
use super::odd::UNASKED;
use super::ours::{self, Step};

/// All that differs in a step.
#[derive(Debug)]
pub struct Difference {
    pub step: usize,
    pub parts: Vec<Part>,
    /// Whether the target can't be used at all, in this step.
    pub is_failed: bool,
    /// Whether the target could not be used before the step.
    pub was_failed: bool,
    /// Whether our client requests a cluster that the server does not have.
    pub lacks: bool,
    /// The resources that the server has.
    pub served: BTreeSet<(Kind, String)>,
    /// The clusters that C-core alone waited for in the step before: it waits until these arrive.
    pub awaited: BTreeSet<String>,
}

impl Difference {
    /// Returns the clusters that C-core waits for without need: our client does not request them, or C-core waited
    /// already.
    fn awaits(&self) -> BTreeSet<String> {
        let names = self.parts.iter().filter_map(|part| match part {
            Part::Names { kind: Kind::Cluster, core, ours } => Some((core, ours)),
            _ => None,
        });
        let needless = names.flat_map(|(core, ours)| {
            core.iter().filter(move |name| !ours.contains(*name) || self.awaited.contains(*name))
        });
        needless.filter(|name| !self.served.contains(&(Kind::Cluster, (*name).clone()))).cloned().collect()
    }
}

/// A single difference.
#[derive(Debug)]
pub enum Part {
    Crash,
    /// The names that the clients request, once they are quiet.
    Names {
        kind: Kind,
        core: BTreeSet<String>,
        ours: BTreeSet<String>,
    },
    /// A resource that one client rejects and the other accepts.
    Verdict {
        kind: Kind,
        name: String,
        core_rejects: bool,
    },
    /// The call of a route. `as_core` are the results that this project's client would have with C-core's choice of
    /// leaves.
    Call {
        number: usize,
        core: Call,
        ours: BTreeSet<Call>,
        as_core: BTreeSet<Call>,
    },
}

/// The verdict on a case.
pub enum Compared {
    Equal,
    /// The known differences that explain all differences.
    Known(Vec<&'static Known>),
    Different(Difference),
}

pub fn compare(case: &Case, core: &Played) -> Compared {
    let (mut all, mut before) = (Vec::new(), None);
    for mut difference in differences(core, &ours::play(case)) {
        let last = before.take().filter(|last: &Difference| last.step + 1 == difference.step);
        difference.awaited = last.map(|last| last.awaits()).unwrap_or_default();
        match Known::of(case, &difference) {
            Some(known) => all.extend(known),
            None => return Compared::Different(difference),
        }
        before = Some(difference);
    }
    if all.is_empty() { Compared::Equal } else { Compared::Known(all) }
}

fn differences(core: &Played, ours: &[Step]) -> Vec<Difference> {
    let Some(core) = core else {
        let (step, parts, served) = (ours.len() - 1, vec![Part::Crash], BTreeSet::new());
        let awaited = BTreeSet::new();
        return vec![Difference { step, parts, is_failed: false, was_failed: false, lacks: false, served, awaited }];
    };
    let differing = |(step, (core, ours)): (usize, (&Seen, &Step))| {
        let parts = parts(core, ours);
        let Step { is_failed, was_failed, served, seen, .. } = ours;
        let (is_failed, was_failed, served) = (*is_failed, *was_failed, served.clone());
        let clusters = seen.names.get(&Kind::Cluster);
        let lacks =
            clusters.is_some_and(|names| names.iter().any(|name| !served.contains(&(Kind::Cluster, name.clone()))));
        let awaited = BTreeSet::new(); // known once the step before is compared
        (!parts.is_empty()).then_some(Difference { step, parts, is_failed, was_failed, lacks, served, awaited })
    };
    core.iter().zip(ours).enumerate().filter_map(differing).collect()
}

fn parts(core: &Seen, ours: &Step) -> Vec<Part> {
    let mut parts = Vec::new();
    for kind in Kind::ALL {
        let names = |seen: &Seen| seen.names.get(&kind).cloned().unwrap_or_default();
        let (core, ours) = (names(core), names(&ours.seen));
        if core != ours {
            parts.push(Part::Names { kind, core, ours });
        }
    }
    // A resource that is requested only in between is no difference: the number of requests depends on timing.
    let counts = |seen: &Seen, kind: &Kind, name: &String| {
        name == NAMELESS || seen.names.get(kind).is_some_and(|names| names.contains(name))
    };
    for (kind, name) in core.rejected.symmetric_difference(&ours.seen.rejected) {
        if !counts(core, kind, name) && !counts(&ours.seen, kind, name) && name != UNASKED {
            continue;
        }
        let core_rejects = core.rejected.contains(&(*kind, name.clone()));
        parts.push(Part::Verdict { kind: *kind, name: name.clone(), core_rejects });
    }
    for (number, (core, possible)) in core.calls.iter().zip(&ours.calls).enumerate() {
        if !is_one_of(core, possible) {
            // C-core's choice explains nothing if the chain's own is not that of the rules.
            let is_right = ours.by_rule[number] == *possible;
            let as_core = if is_right { ours.as_core[number].clone() } else { BTreeSet::new() };
            parts.push(Part::Call { number, core: core.clone(), ours: possible.clone(), as_core });
        }
    }
    parts
}

/// Returns whether a result is one of the possible ones: any of several backends may answer.
pub fn is_one_of(core: &Call, ours: &BTreeSet<Call>) -> bool {
    ours.iter().any(|ours| match (core, ours) {
        (Call::Ok(core), Call::Ok(ours)) => core.is_subset(ours),
        (core, ours) => core == ours,
    })
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in step {}:", self.step)?;
        self.parts.iter().try_for_each(|part| match part {
            Part::Crash => write!(f, " C-core crashes;"),
            Part::Names { kind, core, ours } => {
                write!(f, " {}: C-core asks for {core:?}, ours for {ours:?};", kind.short())
            }
            Part::Verdict { kind, name, core_rejects } => {
                let (one, other) = if *core_rejects { ("C-core", "ours") } else { ("ours", "C-core") };
                write!(f, " {} {name}: {one} rejects, {other} takes it;", kind.short())
            }
            Part::Call { number, core, ours, .. } => write!(f, " call {number}: C-core {core:?}, ours {ours:?};"),
        })
    }
}

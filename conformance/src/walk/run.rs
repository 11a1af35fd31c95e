//! Walks until the time is over or the number is reached, and reports the violations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::finding::Finding;
use super::ground::{Ground, Pace};
use crate::message::Variant;
use crate::referee::Rule;
use crate::report::{Row, variant_name};
use crate::run::{Verdict, Walked};
use crate::story::Story;

/// The walks of one side, and how the story of each is made.
pub trait Source: Sync {
    /// A step of a walk.
    type Step;

    /// Returns the variants of the walks.
    fn variants(&self) -> &[Variant];

    /// Describes the walks for reports.
    fn describe(&self) -> String;

    /// Returns the number of walks, if `wanted` walks are asked for.
    fn number(&self, wanted: usize) -> usize {
        wanted
    }

    /// Returns the round of a walk: the walks of one round come before those of the next.
    fn round(&self, number: usize) -> usize {
        let _ = number;
        0
    }

    /// Returns whether a walk sees the resources of other walks, and so must run alone.
    fn is_alone(&self, number: usize) -> bool;

    /// Returns the variant of a walk, and its story.
    fn story(&self, number: usize, steps: usize) -> (Variant, Vec<Self::Step>);

    /// Notes that a walk has failed.
    fn fails(&self, number: usize) {
        let _ = number;
    }

    /// Returns whether a walk would only repeat the result of a walk that failed.
    fn is_needless(&self, number: usize) -> bool {
        let _ = number;
        false
    }
}

/// The choice of walks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Choice {
    /// Random walks with this seed.
    Random(u64),
    /// All walks of up to this many operations.
    Every(usize),
}

/// The limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The number of walks.
    pub walks: usize,
    /// The time of all walks; the violations may be shrunk for as long again.
    pub time: Duration,
    /// The steps of a walk.
    pub steps: usize,
    /// The number of walks at a time, where they do not disturb each other.
    pub workers: usize,
}

/// The results of the walks.
struct Met<S> {
    findings: Vec<Finding<S>>,
    /// How often each rule was broken.
    broken: BTreeMap<(Rule, &'static str), usize>,
    walks: usize,
    /// The walks that were needless.
    needless: usize,
    steps: usize,
    inconclusive: usize,
    /// Why the last inconclusive walk was inconclusive.
    why: String,
}

/// Walks. Returns a row and a finding for each violation, or the row of `walk/all` if there is none.
pub fn run<G: Ground>(
    ground: &G,
    source: &impl Source<Step = G::Step>,
    limits: Limits,
) -> (Vec<Row>, Vec<Finding<G::Step>>) {
    let begun = Instant::now();
    let (findings, broken) = (Vec::new(), BTreeMap::new());
    let met = Met { findings, broken, walks: 0, needless: 0, steps: 0, inconclusive: 0, why: String::new() };
    let met = Mutex::new(met);
    let walk = |number: usize| {
        if source.is_needless(number) {
            met.lock().unwrap_or_else(PoisonError::into_inner).needless += 1;
            return;
        }
        let (variant, steps) = source.story(number, limits.steps);
        let played = ground.play(variant, &steps, Pace::Patient);
        let mut met = met.lock().unwrap_or_else(PoisonError::into_inner);
        met.walks += 1;
        met.steps += steps.len();
        match played.walked {
            Walked::Silent => {}
            Walked::Inconclusive(why) => {
                met.inconclusive += 1;
                met.why = why;
            }
            Walked::Complaint(complaint) => {
                source.fails(number);
                let times = met.broken.entry((complaint.rule, variant_name(variant))).or_default();
                *times += 1;
                if *times <= KEPT {
                    let (before, ladder) = (steps.len(), played.ladder);
                    met.findings.push(Finding { variant, complaint, steps, before, walk: number, ladder });
                }
            }
        }
    };
    let all: Vec<usize> = (0..source.number(limits.walks)).collect();
    for round in all.chunk_by(|before, after| source.round(*before) == source.round(*after)) {
        // Walks that see all resources come first, one after the other, in a part of the time.
        let (alone, beside): (Vec<usize>, Vec<usize>) = round.iter().partition(|number| source.is_alone(**number));
        let left = limits.time.saturating_sub(begun.elapsed());
        let part = begun.elapsed() + if beside.is_empty() { left } else { left / 2 };
        for number in alone {
            if begun.elapsed() >= part {
                break;
            }
            walk(number);
        }
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..limits.workers {
                scope.spawn(|| {
                    while let Some(number) = beside.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if begun.elapsed() >= limits.time {
                            return;
                        }
                        walk(*number);
                    }
                });
            }
        });
    }
    let met = met.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut what = source.describe();
    if met.walks + met.needless < source.number(met.walks) {
        what += &format!(", of which there are {}: the time was over", all.len());
    }
    conclude(ground, source, met, &what, Instant::now() + limits.time, begun)
}

/// The number of stories that are kept of a violation, and tried with the shortest first: a violation that does not
/// come again may be chance.
const KEPT: usize = 3;

fn conclude<G: Ground>(
    ground: &G,
    source: &impl Source<Step = G::Step>,
    met: Met<G::Step>,
    what: &str,
    until: Instant,
    begun: Instant,
) -> (Vec<Row>, Vec<Finding<G::Step>>) {
    let Met { mut findings, broken, walks: number, needless, steps, inconclusive, why } = met;
    findings.sort_by_key(|finding| (finding.complaint.rule, variant_name(finding.variant), finding.steps.len()));
    let (mut rows, mut sure, mut flaky) = (Vec::new(), Vec::new(), BTreeSet::new());
    let mut decided = BTreeSet::new();
    let left = broken.len().max(1);
    for finding in findings {
        let key = (finding.complaint.rule, variant_name(finding.variant));
        if decided.contains(&key) {
            continue;
        }
        let share = until.saturating_duration_since(Instant::now()) / u32::try_from(left).unwrap_or(u32::MAX);
        match finding.confirm(ground, Instant::now() + share) {
            Ok(finding) => {
                let mut row = finding.row(ground, begun.elapsed());
                row.why += &format!("; {} of {number} walks, {what}", broken[&key]);
                if needless > 0 {
                    row.why += &format!(" ({needless} begin as one that failed)");
                }
                rows.push(row);
                sure.push(finding);
                decided.insert(key);
                flaky.remove(&key);
            }
            Err(times) => _ = flaky.insert(key).then_some(times),
        }
    }
    if rows.is_empty() {
        let mut notes = vec![format!("{number} walks, {steps} steps, {what}")];
        if inconclusive > 0 {
            notes.push(format!("{inconclusive} inconclusive: {why}"));
        }
        let names: Vec<String> = flaky.iter().map(|(rule, variant)| format!("{} {variant}", rule.id())).collect();
        if !names.is_empty() {
            notes.push(format!("did not come again three times: {}", names.join(", ")));
        }
        let verdict = if inconclusive >= number { Verdict::Inconclusive } else { Verdict::Pass };
        rows.push(all(source.variants(), verdict, notes.join("; "), begun.elapsed()));
    }
    (rows, sure)
}

fn all(variants: &[Variant], verdict: Verdict, why: String, time: Duration) -> Row {
    let variant = variants.first().copied().unwrap_or(Variant::Sotw);
    Row::of(Rule::NotSent, "walk/all".into(), variant, verdict, why, time)
}

/// Plays a story of a walk once more.
pub fn replay<G: Ground>(ground: &G, variant: Variant, story: &Story<G::Step>) -> Row {
    let begun = Instant::now();
    let steps: Vec<G::Step> = story.steps.iter().map(|(_, step)| step.clone()).collect();
    let played = ground.play(variant, &steps, Pace::Patient);
    let (verdict, why) = match played.walked {
        Walked::Silent => (Verdict::Pass, String::new()),
        Walked::Inconclusive(why) => (Verdict::Inconclusive, why),
        Walked::Complaint(complaint) => {
            let (walk, before, ladder) = (0, steps.len(), played.ladder);
            return Finding { variant, complaint, steps, before, walk, ladder }.row(ground, begun.elapsed());
        }
    };
    Row {
        id: story.id.clone(),
        variant,
        level: story.level,
        rule: story.rule.clone(),
        sentence: story.sentence.clone(),
        verdict,
        why,
        time: begun.elapsed(),
        ladder: played.ladder,
        known: false,
    }
}

//! Walks until the time or the number is over, and reports what was met.

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

/// The walks of one side: what each is made of.
pub trait Source: Sync {
    /// A step of a walk.
    type Step;

    /// The number that all chance comes from.
    fn seed(&self) -> u64;

    /// The variants, in turn.
    fn variants(&self) -> &[Variant];

    /// Returns whether a walk sees what others do, and so must be alone.
    fn is_alone(&self, number: usize) -> bool;

    /// Returns the variant of a walk, and its story.
    fn story(&self, number: usize, steps: usize) -> (Variant, Vec<Self::Step>);
}

/// When to end.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The number of walks.
    pub walks: usize,
    /// The time of all walks; what is met may be made smaller for as long again.
    pub time: Duration,
    /// The steps of a walk.
    pub steps: usize,
    /// The number of walks at a time, where they do not disturb each other.
    pub workers: usize,
}

/// What the walks came to.
struct Met<S> {
    findings: Vec<Finding<S>>,
    /// How often each rule was broken.
    broken: BTreeMap<(Rule, &'static str), usize>,
    walks: usize,
    steps: usize,
    inconclusive: usize,
    /// Why the last one was.
    why: String,
}

/// Walks, and returns a row for each violation, and its story; or the row of `walk/all`.
pub fn run<G: Ground>(
    ground: &G,
    source: &impl Source<Step = G::Step>,
    limits: Limits,
) -> (Vec<Row>, Vec<Finding<G::Step>>) {
    let begun = Instant::now();
    let (findings, broken) = (Vec::new(), BTreeMap::new());
    let met = Mutex::new(Met { findings, broken, walks: 0, steps: 0, inconclusive: 0, why: String::new() });
    let walk = |number: usize| {
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
                let times = met.broken.entry((complaint.rule, variant_name(variant))).or_default();
                *times += 1;
                if *times <= KEPT {
                    let (before, ladder) = (steps.len(), played.ladder);
                    met.findings.push(Finding { variant, complaint, steps, before, walk: number, ladder });
                }
            }
        }
    };
    // Walks that see everything come first, one after the other, in a part of the time.
    let (alone, beside): (Vec<usize>, Vec<usize>) = (0..limits.walks).partition(|number| source.is_alone(*number));
    let part = if beside.is_empty() { limits.time } else { limits.time / 2 };
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
    let met = met.into_inner().unwrap_or_else(PoisonError::into_inner);
    conclude(ground, source, met, Instant::now() + limits.time, begun)
}

/// The stories of a violation that are tried, the shortest first: one that does not come again may be luck.
const KEPT: usize = 3;

fn conclude<G: Ground>(
    ground: &G,
    source: &impl Source<Step = G::Step>,
    met: Met<G::Step>,
    until: Instant,
    begun: Instant,
) -> (Vec<Row>, Vec<Finding<G::Step>>) {
    let Met { mut findings, broken, walks: number, steps, inconclusive, why } = met;
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
                row.why += &format!("; {} of {number} walks, seed {}", broken[&key], source.seed());
                rows.push(row);
                sure.push(finding);
                decided.insert(key);
                flaky.remove(&key);
            }
            Err(times) => _ = flaky.insert(key).then_some(times),
        }
    }
    if rows.is_empty() {
        let mut notes = vec![format!("{number} walks, {steps} steps, seed {}", source.seed())];
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

//! Walks until the time or the number is over, and reports what was met.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::arena::{Arena, Pace};
use super::finding::Finding;
use super::generate::{Shape, generate};
use crate::message::Variant;
use crate::referee::Rule;
use crate::report::{Row, variant_name};
use crate::run::{Verdict, Walked};
use crate::story::{Step, Story};

/// One walk of this many uses wildcards, and so must be alone.
const WILDCARDS: usize = 3;

/// What to walk.
#[derive(Clone, Debug)]
pub struct Walks {
    /// The variants, in turn.
    pub variants: Vec<Variant>,
    /// The types that the server serves, by their short names: a walk has two of them.
    pub types: Vec<String>,
    /// The types that have a wildcard.
    pub wildcard: Vec<String>,
    /// Whether what the server has can be changed, and at once.
    pub has_control: bool,
    /// Whether changes can be made at once.
    pub has_batches: bool,
    /// The number that all chance comes from.
    pub seed: u64,
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
#[derive(Default)]
struct Met {
    findings: Vec<Finding>,
    /// How often each rule was broken.
    broken: BTreeMap<(Rule, &'static str), usize>,
    walks: usize,
    steps: usize,
    inconclusive: usize,
    /// Why the last one was.
    why: String,
}

/// Walks, and returns a row for each violation, and its story; or the row of `walk/all`.
pub fn run(arena: &Arena<'_>, walks: &Walks, limits: Limits) -> (Vec<Row>, Vec<Finding>) {
    let begun = Instant::now();
    let met = Mutex::new(Met::default());
    let walk = |number: usize| {
        let (variant, steps) = walks.story(number, limits.steps);
        let played = arena.play(variant, &steps, Pace::Patient);
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
    let uses_wildcard = |number: &usize| walks.shape(*number, 0).is_alone();
    let (alone, beside): (Vec<usize>, Vec<usize>) = (0..limits.walks).partition(uses_wildcard);
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
    conclude(arena, walks, met, Instant::now() + limits.time, begun)
}

/// The stories of a violation that are tried, the shortest first: one that does not come again may be luck.
const KEPT: usize = 3;

fn conclude(arena: &Arena<'_>, walks: &Walks, met: Met, until: Instant, begun: Instant) -> (Vec<Row>, Vec<Finding>) {
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
        match finding.confirm(arena, Instant::now() + share) {
            Ok(finding) => {
                let mut row = finding.row(begun.elapsed());
                row.why += &format!("; {} of {number} walks, seed {}", broken[&key], walks.seed);
                rows.push(row);
                sure.push(finding);
                decided.insert(key);
                flaky.remove(&key);
            }
            Err(times) => _ = flaky.insert(key).then_some(times),
        }
    }
    if rows.is_empty() {
        let mut notes = vec![format!("{number} walks, {steps} steps, seed {}", walks.seed)];
        if inconclusive > 0 {
            notes.push(format!("{inconclusive} inconclusive: {why}"));
        }
        let names: Vec<String> = flaky.iter().map(|(rule, variant)| format!("{} {variant}", rule.id())).collect();
        if !names.is_empty() {
            notes.push(format!("did not come again three times: {}", names.join(", ")));
        }
        let verdict = if inconclusive >= number { Verdict::Inconclusive } else { Verdict::Pass };
        rows.push(all(walks, verdict, notes.join("; "), begun.elapsed()));
    }
    (rows, sure)
}

fn all(walks: &Walks, verdict: Verdict, why: String, time: Duration) -> Row {
    let rule = Rule::NotSent;
    Row {
        id: "walk/all".into(),
        variant: walks.variants.first().copied().unwrap_or(Variant::Sotw),
        level: rule.level(),
        rule: rule.spec_id().into(),
        sentence: rule.sentence().into(),
        verdict,
        why,
        time,
        ladder: Vec::new(),
        known: false,
    }
}

/// Plays a story of a walk once more.
pub fn replay(arena: &Arena<'_>, variant: Variant, story: &Story) -> Row {
    let begun = Instant::now();
    let steps: Vec<Step> = story.steps.iter().map(|(_, step)| step.clone()).collect();
    let played = arena.play(variant, &steps, Pace::Patient);
    let (verdict, why) = match played.walked {
        Walked::Silent => (Verdict::Pass, String::new()),
        Walked::Inconclusive(why) => (Verdict::Inconclusive, why),
        Walked::Complaint(complaint) => {
            let (walk, before, ladder) = (0, steps.len(), played.ladder);
            return Finding { variant, complaint, steps, before, walk, ladder }.row(begun.elapsed());
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

impl Walks {
    /// Returns the shape of a walk.
    fn shape(&self, number: usize, steps: usize) -> Shape {
        let variant = self.variants[number % self.variants.len()];
        let round = number / self.variants.len();
        let mut rng = Rng::with_seed(self.seed ^ (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let pairs: Vec<Vec<&str>> = [["cds", "eds"], ["cds", "eds"], ["cds", "eds"], ["lds", "rds"]]
            .map(|pair| pair.into_iter().filter(|of| self.types.iter().any(|other| other == of)).collect())
            .into();
        let pair = &pairs[rng.usize(..pairs.len())];
        let types: Vec<String> = match pair[..] {
            [] => self.types.clone(),
            _ => pair.iter().map(|of| (*of).to_owned()).collect(),
        };
        let all = round % WILDCARDS == 0;
        let wildcard = types.iter().filter(|of| all && self.wildcard.contains(of)).cloned().collect();
        let (has_control, has_batches) = (self.has_control, self.has_batches);
        Shape { variant, types, wildcard, has_control, has_batches, streams: 1 + rng.usize(..3), steps }
    }

    /// Returns the story of a walk.
    pub fn story(&self, number: usize, steps: usize) -> (Variant, Vec<Step>) {
        let shape = self.shape(number, steps);
        let mut rng = Rng::with_seed(self.seed.wrapping_add(1 + number as u64));
        (shape.variant, generate(&mut rng, &shape))
    }
}

impl Shape {
    /// Returns whether a walk sees what others do.
    fn is_alone(&self) -> bool {
        !self.wildcard.is_empty()
    }
}

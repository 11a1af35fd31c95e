//! A violation that a walk has met, made as small as it can be, and as sure.

use std::time::{Duration, Instant};

use super::arena::{Arena, Pace};
use super::shrink::shrink;
use crate::memory::{Faultless, Memory};
use crate::message::Variant;
use crate::referee::Complaint;
use crate::report::Row;
use crate::run::{Verdict, Walked};
use crate::story::{Step, Story};

/// How often a violation must come again before it counts.
const REPLAYS: usize = 3;

/// A violation.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The variant.
    pub variant: Variant,
    /// What the referee complains of.
    pub complaint: Complaint,
    /// The steps that lead to it.
    pub steps: Vec<Step>,
    /// The number of steps before they were made fewer.
    pub before: usize,
    /// The number of the walk.
    pub walk: usize,
    /// The conversation.
    pub ladder: Vec<String>,
}

impl Finding {
    /// Leaves out what the violation does not need, and plays the rest three times. Returns how often the violation came
    /// again if not each time.
    ///
    /// # Errors
    ///
    /// The number of times, less than three.
    pub fn confirm(mut self, arena: &Arena<'_>, until: Instant) -> Result<Self, usize> {
        let (variant, rule) = (self.variant, self.complaint.rule);
        let is_same = |walked: &Walked| matches!(walked, Walked::Complaint(complaint) if complaint.rule == rule);
        let all = self.steps.clone();
        let short = shrink(all.clone(), |steps| {
            (Instant::now() < until).then(|| is_same(&arena.play(variant, steps, Pace::Hasty).walked))
        });
        let mut best = 0;
        for steps in [short, all] {
            let mut times = 0;
            for _ in 0..REPLAYS {
                let played = arena.play(variant, &steps, Pace::Patient);
                match &played.walked {
                    Walked::Complaint(complaint) if is_same(&played.walked) => {
                        self.complaint = complaint.clone();
                        self.ladder = played.ladder;
                    }
                    // The walk has ended the server: no replay can be had.
                    _ if !played.is_there => self.complaint.what += "; and then the server was gone",
                    _ => break,
                }
                times += 1;
                if !played.is_there {
                    times = REPLAYS;
                    break;
                }
            }
            if times == REPLAYS {
                self.steps = steps;
                return Ok(self);
            }
            best = best.max(times);
        }
        Err(best)
    }

    /// Returns the story of the violation.
    pub fn story(&self) -> Story {
        let rule = self.complaint.rule;
        Story {
            id: format!("walk/{}", rule.id()),
            level: rule.level(),
            rule: rule.spec_id().into(),
            sentence: rule.sentence().into(),
            ..Story::of_walk(self.variant, &self.steps)
        }
    }

    /// Returns the row of the report.
    pub fn row(&self, time: Duration) -> Row {
        let story = self.story();
        let mut ladder = vec!["-- the story".to_owned()];
        ladder.extend(self.steps.iter().filter_map(|step| step.write(self.variant)).map(|line| format!("   {line}")));
        ladder.push("-- what was said".into());
        ladder.extend(self.ladder.iter().cloned());
        ladder.push("-- xds-machine's server would have said".into());
        ladder.extend(ours(self.variant, &self.steps));
        Row {
            id: story.id,
            variant: self.variant,
            level: story.level,
            rule: story.rule,
            sentence: story.sentence,
            verdict: Verdict::Fail,
            why: format!("{} (walk {}, {} of {} steps)", self.complaint, self.walk, self.steps.len(), self.before),
            time,
            ladder,
            known: false,
        }
    }
}

/// Plays the steps against this project's own server, which explains and does not judge.
fn ours(variant: Variant, steps: &[Step]) -> Vec<String> {
    let connect = |_| Ok(Box::new(Memory::new(Faultless)) as Box<dyn crate::run::Peer>);
    Arena::new(&connect, "ours-", None).play(variant, steps, Pace::Patient).ladder
}

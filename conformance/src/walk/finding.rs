//! A violation that a walk has found, made as small and as certain as possible.

use std::time::{Duration, Instant};

use super::ground::{Ground, Pace};
use super::shrink::shrink;
use crate::message::Variant;
use crate::referee::Complaint;
use crate::report::{Row, variant_name};
use crate::run::{Verdict, Walked};

/// How often a violation must come again before it counts.
const REPLAYS: usize = 3;

/// A violation.
#[derive(Clone, Debug)]
pub struct Finding<S> {
    /// The variant.
    pub variant: Variant,
    /// The complaint of the referee.
    pub complaint: Complaint,
    /// The steps that lead to it.
    pub steps: Vec<S>,
    /// The number of steps before shrinking.
    pub before: usize,
    /// The number of the walk.
    pub walk: usize,
    /// The conversation.
    pub ladder: Vec<String>,
}

impl<S: Clone> Finding<S> {
    /// Leaves out the steps that the violation does not need, and plays the rest three times. Returns the violation if
    /// it came again each time.
    ///
    /// # Errors
    ///
    /// The number of times that the violation came again, less than three.
    pub fn confirm(mut self, ground: &impl Ground<Step = S>, until: Instant) -> Result<Self, usize> {
        let (variant, rule) = (self.variant, self.complaint.rule);
        let is_same = |walked: &Walked| matches!(walked, Walked::Complaint(complaint) if complaint.rule == rule);
        let all = self.steps.clone();
        let short = shrink(all.clone(), |steps| {
            (Instant::now() < until).then(|| is_same(&ground.play(variant, steps, Pace::Hasty).walked))
        });
        let mut best = 0;
        for steps in [short, all] {
            let mut times = 0;
            for _ in 0..REPLAYS {
                let played = ground.play(variant, &steps, Pace::Patient);
                match &played.walked {
                    Walked::Complaint(complaint) if is_same(&played.walked) => {
                        self.complaint = complaint.clone();
                        self.ladder = played.ladder;
                    }
                    // The walk has ended the server: no replay is possible.
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

    /// Returns the violation as a story that can be read again.
    pub fn story(&self, ground: &impl Ground<Step = S>) -> String {
        let rule = self.complaint.rule;
        let (level, variant) = (rule.level().name(), variant_name(self.variant));
        let steps = ground.write(self.variant, &self.steps).join("\n");
        format!(
            "case walk/{}\nlevel {level}\nrule {}\nsentence {}\nvariants {variant}\n\n{steps}\n",
            rule.id(),
            rule.spec_id(),
            rule.sentence()
        )
    }

    /// Returns the row of the report.
    pub fn row(&self, ground: &impl Ground<Step = S>, time: Duration) -> Row {
        let rule = self.complaint.rule;
        let mut ladder = vec!["-- the story".to_owned()];
        ladder.extend(ground.write(self.variant, &self.steps).into_iter().map(|line| format!("   {line}")));
        ladder.push("-- what was said".into());
        ladder.extend(self.ladder.iter().cloned());
        ladder.push("-- what xds-machine would have said".into());
        ladder.extend(ground.ours(self.variant, &self.steps));
        let why = format!("{} (walk {}, {} of {} steps)", self.complaint, self.walk, self.steps.len(), self.before);
        Row { ladder, ..Row::of(rule, format!("walk/{}", rule.id()), self.variant, Verdict::Fail, why, time) }
    }
}

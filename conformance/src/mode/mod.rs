//! The mode `server`: all fixed cases against a server over sockets.

mod calibrate;
mod job;
mod known;
mod plan;
mod walk;
mod walk_client;
mod watch;

use std::time::{Duration, Instant};

use self::calibrate::calibrate;
use self::job::{Job, Ran};
use self::known::{Known, learn};
pub use self::plan::Plan;
pub use self::walk::{replay, walk_server};
pub use self::walk_client::{replay_client, walk_client};
pub use self::watch::watch;
use crate::net::{Patience, SharedControl};
use crate::report::{Report, Row};
use crate::run::{Outcome, Trouble, Verdict};
use crate::story::{Step, Story};
use crate::suite;

/// The time after which no case begins: a case that has not begun by then is inconclusive.
const WHOLE: Duration = Duration::from_secs(45);
/// The time after which no failure is played once more.
const REPEATS: Duration = Duration::from_secs(55);

/// Runs the plan. `on_row` receives the row of each case as soon as the case is decided.
///
/// # Errors
///
/// If the server cannot be reached.
pub fn run(plan: &Plan, control: &SharedControl, on_row: &mut dyn FnMut(&Row)) -> Result<Report, Trouble> {
    let begun = Instant::now();
    let target = plan.target(control);
    let stories = suite::server().map_err(|error| Trouble(error.to_string()))?;
    plan.clear(&target);
    let calibration = calibrate(plan, &target)?;
    let patience = Patience { answer: calibration.patience, quiet: calibration.quiet };
    let known = if plan.has_control { Known::default() } else { learn(plan, &target, patience)? };
    let mut lanes = Lanes::default();
    let mut rows = Vec::new();
    for (number, (variant, story)) in stories.into_iter().enumerate() {
        let filtered = plan.filter.as_ref().is_some_and(|filter| !filter.covers(&story.id, variant));
        if filtered || !plan.variants.contains(&variant) {
            continue;
        }
        match plan.types_of(&story, variant, &known) {
            Err(why) => {
                let row = job::row(&story, variant, Duration::ZERO, unsupported(why));
                on_row(&row);
                rows.push((number, row));
            }
            Ok(types) => {
                let given = (!plan.has_control).then(|| known.names.clone());
                lanes.of(&story).push(Job { story, variant, types, number, given, target: target.clone(), patience });
            }
        }
    }
    lanes.sort();
    let cases_end = begun + WHOLE;
    let mut ran: Vec<Ran> = lanes.alone.into_iter().map(|job| job.alone(cases_end, on_row)).collect();
    let is_quick = |time: Duration| time < Duration::from_millis(100);
    let workers = if calibration.push.or(calibration.answer).is_some_and(is_quick) { 6 } else { 16 };
    ran.extend(job::beside(lanes.beside, workers, cases_end, on_row));
    job::repeat(&mut ran, begun + REPEATS);
    ran.iter_mut().for_each(Ran::tail);
    ran.iter_mut().for_each(Ran::clean);
    // Cases that may end the server, or that end it, run after all other cases.
    for job in lanes.last {
        let mut done = [job.alone(begun + REPEATS, on_row)];
        job::repeat(&mut done, begun + REPEATS);
        ran.extend(done);
    }
    rows.extend(ran.into_iter().map(Ran::finish));
    rows.sort_by_key(|(number, _)| *number);
    Ok(Report {
        mode: "server".into(),
        implementation: plan.implementation.clone(),
        calibration,
        rows: rows.into_iter().map(|(_, row)| row).collect(),
        stale: Vec::new(),
        strict: plan.strict,
    })
}

/// The cases by their effect on each other.
#[derive(Default)]
struct Lanes {
    /// Cases that see all resources: they must not see those of each other.
    alone: Vec<Job>,
    /// Cases with names of their own.
    beside: Vec<Job>,
    /// Cases that a server may not survive, or that restart it.
    last: Vec<Job>,
}

impl Lanes {
    fn of(&mut self, story: &Story) -> &mut Vec<Job> {
        let hurts = |step: &Step| match step {
            Step::Bytes(_) | Step::Restart => true,
            Step::Send(send) => send.fill >= 1_000,
            _ => false,
        };
        match story {
            _ if story.steps.iter().any(|(_, step)| hurts(step)) => &mut self.last,
            _ if story.is_wildcard() => &mut self.alone,
            _ => &mut self.beside,
        }
    }

    /// Puts the cases of the highest level first, in case the time runs out. Restarts come last.
    fn sort(&mut self) {
        for lane in [&mut self.alone, &mut self.beside, &mut self.last] {
            lane.sort_by_key(|job| (job.story.restarts(), std::cmp::Reverse(job.story.level)));
        }
    }
}

fn unsupported(why: String) -> Outcome {
    Outcome { verdict: Verdict::Unsupported, why, ladder: Vec::new() }
}

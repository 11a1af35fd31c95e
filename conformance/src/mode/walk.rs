//! The modes `walk server` and `replay`: walks over sockets.

use std::time::Duration;

use super::calibrate::calibrate;
use super::known::{Known, learn};
use super::plan::Plan;
use crate::message::Variant;
use crate::net::{Connection, Patience, SharedControl, Target};
use crate::report::{Calibration, Report, Row};
use crate::run::{Peer, Trouble};
use crate::story::{Step, Story};
use crate::walk::{self, Arena, Choice, EveryWalk, Limits, Pace, Source, Walks};

/// The least patience of walks that only look for a shorter one.
const LEAST_HASTE: Duration = Duration::from_millis(300);

/// Walks with the server of the plan. Returns the stories of the violations, too.
///
/// # Errors
///
/// If the server cannot be reached, or supports no variant of the plan.
pub fn walk_server(
    plan: &Plan,
    control: &SharedControl,
    limits: Limits,
    choice: Choice,
) -> Result<(Report, Vec<String>), Trouble> {
    let ground = Ground::survey(plan, control)?;
    let variants: Vec<Variant> = plan.variants.iter().copied().filter(|variant| plan.speaks(*variant)).collect();
    if variants.is_empty() {
        return Err(Trouble("the server speaks no variant that is to be walked".into()));
    }
    let all = ["cds", "eds", "lds", "rds"].map(str::to_owned).to_vec();
    let types = match (plan.has_control, plan.types.is_empty()) {
        (false, _) => ground.known.types.clone(),
        (true, true) => all,
        (true, false) => plan.types.clone(),
    };
    if types.is_empty() {
        return Err(Trouble("the server has nothing to walk with, and there is no control".into()));
    }
    let (wildcard, has_control, has_batches) = (plan.wildcard.clone(), plan.has_control, plan.has_batches);
    let (rows, stories) = match choice {
        Choice::Random(seed) => {
            ground.walk(plan, &Walks { variants, types, wildcard, has_control, has_batches, seed }, limits)
        }
        Choice::Every(longest) => {
            // One type of each kind stands for the others, unless the user chooses types.
            let of_a_kind = |of: &String| !plan.types.is_empty() || ["cds", "eds"].contains(&of.as_str());
            let chosen: Vec<String> = types.iter().filter(|of| of_a_kind(of)).cloned().collect();
            let types = if chosen.is_empty() { types } else { chosen };
            ground.walk(plan, &EveryWalk::new(&variants, &types, &wildcard, has_control, longest), limits)
        }
    };
    Ok((ground.report(plan, "walk server", rows), stories))
}

/// Plays the story of a walk once more.
///
/// # Errors
///
/// If the server cannot be reached.
pub fn replay(plan: &Plan, control: &SharedControl, variant: Variant, story: &Story) -> Result<Report, Trouble> {
    let ground = Ground::survey(plan, control)?;
    let row = ground.enter(plan, |arena| walk::replay(arena, variant, story));
    Ok(ground.report(plan, "replay", vec![row]))
}

/// A server that was measured.
struct Ground {
    target: Target,
    calibration: Calibration,
    known: Known,
}

impl Ground {
    fn survey(plan: &Plan, control: &SharedControl) -> Result<Self, Trouble> {
        let target = plan.target(control);
        plan.clear(&target);
        let calibration = calibrate(plan, &target)?;
        let patience = Patience { answer: calibration.patience, quiet: calibration.quiet };
        let known = if plan.has_control { Known::default() } else { learn(plan, &target, patience)? };
        Ok(Self { target, calibration, known })
    }

    /// Walks. Returns the rows, and the stories of violations.
    fn walk(&self, plan: &Plan, walks: &impl Source<Step = Step>, limits: Limits) -> (Vec<Row>, Vec<String>) {
        self.enter(plan, |arena| {
            let (rows, findings) = walk::run(arena, walks, limits);
            (rows, findings.iter().map(|finding| finding.story(arena)).collect())
        })
    }

    fn enter<T>(&self, plan: &Plan, walk: impl FnOnce(&Arena<'_>) -> T) -> T {
        let Calibration { answer, push, patience, quiet } = self.calibration;
        let longest = push.max(answer).unwrap_or(patience);
        let haste = (longest * 10).max(LEAST_HASTE).min(patience);
        let connect = |pace| {
            let answer = if pace == Pace::Hasty { haste } else { patience };
            match Connection::new(&self.target, Patience { answer, quiet }) {
                Ok(connection) => Ok(Box::new(connection) as Box<dyn Peer>),
                Err(error) => Err(Trouble(format!("no connection to {}: {error}", self.target.address()))),
            }
        };
        let given = (!plan.has_control).then(|| self.known.names.clone());
        walk(&Arena::new(&connect, format!("kit-{}-", std::process::id()), given))
    }

    fn report(self, plan: &Plan, mode: &str, rows: Vec<Row>) -> Report {
        Report {
            mode: mode.into(),
            implementation: plan.implementation.clone(),
            calibration: self.calibration,
            rows,
            stale: Vec::new(),
            strict: plan.strict,
        }
    }
}

//! Makes a case that differs smaller: leaves out every step and change that does not matter.

use super::case::Case;
use super::compare::{Compared, Difference, compare};
use super::core::Core;
use super::{PATIENCE, SHARDS};

/// Returns the smallest case found, with its difference.
///
/// # Errors
///
/// If C-core can't be played to, or the case does not differ.
pub fn shrink(core: &Core, case: &Case) -> Result<(Case, Difference), String> {
    let mut best = differing(core, vec![case.clone()])?.ok_or("the difference is gone")?;
    // Each round makes the case smaller.
    while let Some(smaller) = differing(core, parts(&best.0))? {
        best = smaller;
    }
    Ok(best)
}

/// Returns the first of some cases that differs.
fn differing(core: &Core, cases: Vec<Case>) -> Result<Option<(Case, Difference)>, String> {
    let cases: Vec<(u64, Case)> = (0..).zip(cases).collect();
    let mut played = core.play(&cases, SHARDS, PATIENCE)?;
    Ok(cases.into_iter().find_map(|(id, case)| match compare(&case, &played.remove(&id)?) {
        Compared::Different(difference) => Some((case, difference)),
        _ => None,
    }))
}

/// Returns the case without one of its steps, for each step, and without one of its changes, for each change.
fn parts(case: &Case) -> Vec<Case> {
    let mut all = Vec::new();
    for step in 0..case.steps.len() {
        let mut without = case.clone();
        without.steps.remove(step);
        if !without.steps.is_empty() {
            all.push(without);
        }
        for change in 0..case.steps[step].changes.len() {
            let mut without = case.clone();
            without.steps[step].changes.remove(change);
            all.push(without);
        }
    }
    all
}

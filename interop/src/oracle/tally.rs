//! The result of a run: the kinds that were covered, the known differences that were seen, and the number of other
//! differences.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::case::Case;
use super::compare::{Compared, Difference};
use super::kinds;
use super::known::{self, Known};

#[derive(Default)]
pub struct Tally {
    cases: usize,
    steps: usize,
    equal: usize,
    kinds: BTreeMap<&'static str, usize>,
    known: BTreeMap<&'static str, usize>,
    different: usize,
}

impl Tally {
    pub fn add(&mut self, case: &Case, compared: &Compared) {
        self.cases += 1;
        self.steps += case.steps.len();
        case.kinds().into_iter().for_each(|kind| *self.kinds.entry(kind).or_default() += 1);
        match compared {
            Compared::Equal => self.equal += 1,
            Compared::Known(known) => {
                let whats: BTreeSet<&str> = known.iter().map(|known| known.what).collect();
                whats.into_iter().for_each(|what| *self.known.entry(what).or_default() += 1);
            }
            Compared::Different(_) => self.different += 1,
        }
    }

    fn seen(&self, known: &Known) -> usize {
        self.known.get(known.what).copied().unwrap_or_default()
    }

    /// # Errors
    ///
    /// If there is a difference that is not known, a known one is not seen, or a kind is in fewer cases than required.
    /// Without a requirement the differences alone count.
    pub fn verdict(&self, required: usize) -> Result<(), String> {
        let mut faults = Vec::new();
        if self.different > 0 {
            faults.push(format!("{} of {} sets differ", self.different, self.cases));
        }
        if required > 0 {
            let gone = known::ALL.iter().filter(|known| !known.is_rare && self.seen(known) == 0);
            faults.extend(gone.map(|known| format!("{} is not seen any more: {}", known.rule, known.what)));
            let count = |kind: &&str| self.kinds.get(kind).copied().unwrap_or_default();
            let few = kinds::ALL.iter().filter(|kind| count(kind) < required);
            faults.extend(few.map(|kind| format!("only {} of {kind}", count(kind))));
            let none = kinds::RARE.iter().filter(|kind| count(kind) == 0);
            faults.extend(none.map(|kind| format!("none of {kind}")));
        }
        if faults.is_empty() { Ok(()) } else { Err(faults.join("; ")) }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for known in &known::ALL {
            writeln!(f, "oracle: {:20} {:5} sets: {}", known.rule, self.seen(known), known.what)?;
        }
        let least = self.kinds.values().min().copied().unwrap_or_default();
        let Self { cases, steps, equal, different, .. } = self;
        let kinds = self.kinds.len();
        write!(
            f,
            "oracle: {equal} of {cases} sets ({steps} steps) equal, {different} differ; {kinds} kinds, each in {least} or more"
        )
    }
}

/// Describes a difference and its case, for people.
pub fn story(case: &Case, difference: &Difference) -> String {
    let text = serde_json::to_string(case).unwrap_or_default();
    format!("{difference}\n    {text}")
}

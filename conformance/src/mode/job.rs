//! A case in one variant, played over sockets: beside other cases or alone, once more if it fails, and to the end of
//! its tail.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::message::Variant;
use crate::net::{Connection, Patience, Target};
use crate::report::{Row, variant_name};
use crate::run::{Outcome, Verdict};
use crate::story::Story;
use crate::suite::{self, Played};

/// How long the kit waits for the tail of a case: late messages are already there.
const TAIL: Duration = Duration::from_millis(20);
/// The number of failures that are played once more at a time: few enough that they hardly slow each other down.
const REPEATED: usize = 6;

/// A case in one variant that is to run.
#[derive(Clone)]
pub(super) struct Job {
    pub(super) story: Arc<Story>,
    pub(super) variant: Variant,
    pub(super) types: Vec<String>,
    pub(super) number: usize,
    /// Without a control: the names of resources that the server has.
    pub(super) given: Option<Vec<String>>,
    pub(super) target: Target,
    pub(super) patience: Patience,
}

/// A case that has run. Its streams are open, until all others have run too.
pub(super) struct Ran {
    row: Row,
    job: Job,
    live: Option<(Connection, Vec<Played>)>,
    /// Whether no other case ran meanwhile.
    was_alone: bool,
    /// Whether the server was gone when the case was to be played once more.
    is_gone: bool,
}

impl Job {
    /// Runs the case, if there is time left.
    fn run(self, until: Instant) -> Ran {
        let begun = Instant::now();
        let inconclusive = |why| Outcome { verdict: Verdict::Inconclusive, why, ladder: Vec::new() };
        let not_run = |job: Self, why| {
            let row = row(&job.story, job.variant, begun.elapsed(), inconclusive(why));
            Ran { row, job, live: None, was_alone: false, is_gone: false }
        };
        if begun >= until {
            return not_run(self, "the time of the whole run was over: run the case by itself, with --filter".into());
        }
        let mut connection = match Connection::new(&self.target, self.patience) {
            Ok(connection) => connection,
            Err(error) => {
                let why = format!("no connection to {}: {error}", self.target.address());
                return not_run(self, why);
            }
        };
        let prefix = format!("kit-{}-{}-{}-", std::process::id(), self.number, variant_name(self.variant));
        let played =
            suite::play(&self.story, self.variant, &self.types, &prefix, self.given.as_deref(), &mut connection);
        let row = row(&self.story, self.variant, begun.elapsed(), suite::worst(&played));
        Ran { row, job: self, live: Some((connection, played)), was_alone: false, is_gone: false }
    }

    /// Runs the case while no other runs; its streams end at once.
    pub(super) fn alone(self, until: Instant, on_row: &mut dyn FnMut(&Row)) -> Ran {
        let mut done = self.run(until);
        done.clean();
        done.was_alone = true;
        on_row(&done.row);
        done
    }
}

/// Runs cases beside each other: each has names of its own.
pub(super) fn beside(jobs: Vec<Job>, workers: usize, until: Instant, on_row: &mut dyn FnMut(&Row)) -> Vec<Ran> {
    let jobs = Mutex::new(jobs.into_iter());
    let (sender, results) = channel();
    let work = |sender: Sender<Ran>| {
        loop {
            let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(job) = job else { return };
            if sender.send(job.run(until)).is_err() {
                return;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..workers {
            let (sender, work) = (sender.clone(), &work);
            scope.spawn(move || work(sender));
        }
        drop(sender);
        results.iter().inspect(|done| on_row(&done.row)).collect()
    })
}

/// Plays failures once more, almost alone: a peer that was only slow is not at fault.
pub(super) fn repeat(ran: &mut [Ran], until: Instant) {
    let mut failed: Vec<&mut Ran> = ran.iter_mut().filter(|done| done.row.verdict == Verdict::Fail).collect();
    failed.sort_by_key(|done| std::cmp::Reverse(done.row.level));
    let (alone, others): (Vec<_>, Vec<_>) = failed.into_iter().partition(|done| done.was_alone);
    let others = Mutex::new(others.into_iter());
    let work = || {
        loop {
            let done = others.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(done) = done else { return };
            done.repeat(until);
        }
    };
    thread::scope(|scope| {
        for _ in 0..REPEATED {
            scope.spawn(work);
        }
    });
    // These failures count even if no time is left to play them once more.
    alone.into_iter().for_each(|done| done.repeat(until));
    let gone = ran.iter_mut().filter(|done| done.is_gone).map(|done| &mut done.row);
    blame_the_first(gone);
}

/// Handles failures that could not be played once more because the server was gone. The first of them has ended the
/// server, as far as the kit can know; the others may have failed because of that.
fn blame_the_first<'r>(rows: impl Iterator<Item = &'r mut Row>) {
    for (at, row) in rows.enumerate() {
        if at == 0 {
            row.why += "; and then the server was gone";
        } else {
            row.verdict = Verdict::Inconclusive;
            row.why = format!("failed ({}), and then the server was gone", row.why);
        }
    }
}

impl Ran {
    fn repeat(&mut self, until: Instant) {
        let is_late = Instant::now() >= until;
        if is_late && self.was_alone {
            return; // the case ran alone, so only the server can have been slow
        }
        let mut again = Job { number: self.job.number + 10_000, ..self.job.clone() }.run(until);
        self.is_gone = again.live.is_none() && !is_late;
        again.clean();
        match again.row.verdict {
            Verdict::Fail => self.row.ladder = again.row.ladder,
            _ if self.is_gone => {}
            verdict => {
                let before = std::mem::take(&mut self.row.why);
                self.row.verdict = Verdict::Inconclusive;
                self.row.why = match verdict {
                    Verdict::Inconclusive => format!("failed ({before}), and the second time: {}", again.row.why),
                    verdict => format!("failed beside others ({before}), and alone: {}", verdict.name()),
                };
            }
        }
    }

    /// Reads the messages that came after the story: a message that has no reason still fails the case.
    pub(super) fn tail(&mut self) {
        let passed = self.row.verdict == Verdict::Pass;
        let Some((connection, played)) = self.live.as_mut().filter(|_| passed) else { return };
        connection.set_patience(Patience { answer: TAIL, quiet: TAIL });
        for played in played.iter_mut() {
            played.outcome = played.runner.tail(connection);
        }
        let outcome = suite::worst(played);
        if outcome.verdict == Verdict::Fail {
            (self.row.verdict, self.row.why, self.row.ladder) = (outcome.verdict, outcome.why, outcome.ladder);
        }
    }

    /// Removes the resources that the case put, and ends its streams.
    pub(super) fn clean(&mut self) {
        if let Some((mut connection, mut played)) = self.live.take() {
            played.iter_mut().for_each(|played| played.runner.clean(&mut connection));
        }
    }

    /// Returns the number of the case, and its row.
    pub(super) fn finish(self) -> (usize, Row) {
        (self.job.number, self.row)
    }
}

/// Returns the row of a case.
pub(super) fn row(story: &Story, variant: Variant, time: Duration, outcome: Outcome) -> Row {
    let Outcome { verdict, why, ladder } = outcome;
    let (id, level, rule, sentence) = (story.id.clone(), story.level, story.rule.clone(), story.sentence.clone());
    Row { id, variant, level, rule, sentence, verdict, why, time, ladder, known: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite;

    #[test]
    fn the_first_failure_is_blamed_when_the_server_is_gone() {
        let story = &suite::server().expect("stories")[0].1;
        let failed = |why: &str| {
            let outcome = Outcome { verdict: Verdict::Fail, why: why.into(), ladder: Vec::new() };
            row(story, Variant::Sotw, Duration::ZERO, outcome)
        };
        let mut rows = [failed("it ends"), failed("no answer")];
        blame_the_first(rows.iter_mut());
        assert_eq!((rows[0].verdict, rows[0].why.as_str()), (Verdict::Fail, "it ends; and then the server was gone"));
        let why = "failed (no answer), and then the server was gone";
        assert_eq!((rows[1].verdict, rows[1].why.as_str()), (Verdict::Inconclusive, why));
    }
}

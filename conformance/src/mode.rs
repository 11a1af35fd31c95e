//! The mode `server`: all fixed cases against a server over sockets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::message::{Node, Request, Variant};
use crate::net::{Connection, Patience, SharedControl};
use crate::report::{Calibration, Glob, Report, Row, variant_name};
use crate::resource::{self, Put};
use crate::run::{Event, Op, Outcome, Peer, Trouble, Verdict, Wait};
use crate::story::Story;
use crate::suite::{self, Played};

/// The number of cases that run at a time.
const WORKERS: usize = 6;
/// The limits of the patience, unless the user sets it.
const LEAST_PATIENCE: Duration = Duration::from_secs(3);
const MOST_PATIENCE: Duration = Duration::from_secs(30);
/// The limits of the time after which silence is believed.
const LEAST_QUIET: Duration = Duration::from_millis(100);
const MOST_QUIET: Duration = Duration::from_secs(2);

/// How long the tail of a case is waited for: what came late is there already.
const TAIL: Duration = Duration::from_millis(20);

/// What to run, and against what.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The address of the server.
    pub address: String,
    /// What the report calls the server.
    pub implementation: String,
    /// Whether the control can change anything.
    pub has_control: bool,
    /// Whether the control changes several types at once.
    pub has_batches: bool,
    /// The variants to run.
    pub variants: Vec<Variant>,
    /// The features of the server.
    pub features: BTreeSet<String>,
    /// Features that the server does not have, each with the reason.
    pub unsupported: BTreeMap<String, String>,
    /// The types that the server serves, by their short names.
    pub types: Vec<String>,
    /// The types that have a wildcard.
    pub wildcard: Vec<String>,
    /// Which cases to run.
    pub filter: Option<Glob>,
    /// How long to wait for what must come, if the user says.
    pub patience: Option<Duration>,
    /// Whether a failure at level SHOULD counts.
    pub strict: bool,
}

/// A case in one variant that is to run.
#[derive(Clone)]
struct Job {
    story: Arc<Story>,
    variant: Variant,
    types: Vec<String>,
    number: usize,
    /// Without a control: the names of resources that the server has.
    given: Option<Vec<String>>,
}

/// A case that has run. Its streams are open, until all others have run too.
struct Ran {
    row: Row,
    job: Job,
    live: Option<(Connection, Vec<Played>)>,
}

/// Runs the plan. `on_row` is told of each case as soon as it is decided.
///
/// # Errors
///
/// If the server cannot be reached.
pub fn run(plan: &Plan, control: &SharedControl, on_row: &mut dyn FnMut(&Row)) -> Result<Report, Trouble> {
    let stories = suite::server().map_err(|error| Trouble(error.to_string()))?;
    let calibration = calibrate(plan, control)?;
    let patience = Patience { answer: calibration.patience, quiet: calibration.quiet };
    let known = if plan.has_control { Known::default() } else { learn(plan, control, patience)? };
    let (mut rows, mut alone, mut beside) = (Vec::new(), Vec::new(), Vec::new());
    for (number, (variant, story)) in stories.into_iter().enumerate() {
        if plan.filter.as_ref().is_some_and(|filter| !filter.covers(&story.id, variant)) {
            continue;
        }
        if !plan.variants.contains(&variant) {
            continue;
        }
        match plan.types_of(&story, variant, &known) {
            Err(why) => {
                let row = row(&story, variant, Duration::ZERO, unsupported(why));
                on_row(&row);
                rows.push((number, row));
            }
            Ok(types) => {
                let list = if story.is_wildcard() { &mut alone } else { &mut beside };
                let given = (!plan.has_control).then(|| known.names.clone());
                list.push(Job { story, variant, types, number, given });
            }
        }
    }
    let mut ran = Vec::new();
    for job in alone {
        // Cases that see everything must not see each other, so their streams end at once.
        let mut done = job.run(plan, control, patience);
        if let Some((mut connection, mut played)) = done.live.take() {
            played.iter_mut().for_each(|played| played.runner.clean(&mut connection));
        }
        on_row(&done.row);
        ran.push(done);
    }
    ran.extend(run_beside(plan, control, patience, beside, on_row));
    for done in &mut ran {
        repeat(plan, control, patience, done);
    }
    for done in &mut ran {
        tail(done);
    }
    for done in &mut ran {
        if let Some((connection, played)) = &mut done.live {
            played.iter_mut().for_each(|played| played.runner.clean(connection));
        }
    }
    rows.extend(ran.into_iter().map(|done| (done.job.number, done.row)));
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

/// Runs cases beside each other: each has names of its own.
fn run_beside(
    plan: &Plan,
    control: &SharedControl,
    patience: Patience,
    jobs: Vec<Job>,
    on_row: &mut dyn FnMut(&Row),
) -> Vec<Ran> {
    let jobs = Mutex::new(jobs.into_iter());
    let (sender, results) = channel();
    let work = |sender: Sender<Ran>| {
        loop {
            let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(job) = job else { return };
            if sender.send(job.run(plan, control, patience)).is_err() {
                return;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            let (sender, work) = (sender.clone(), &work);
            scope.spawn(move || work(sender));
        }
        drop(sender);
        results.iter().inspect(|done| on_row(&done.row)).collect()
    })
}

/// Plays a failure once more, alone: a peer that was only slow is not at fault.
fn repeat(plan: &Plan, control: &SharedControl, patience: Patience, done: &mut Ran) {
    if done.row.verdict != Verdict::Fail {
        return;
    }
    let job = Job { number: done.job.number + 10_000, ..done.job.clone() };
    let mut again = job.run(plan, control, patience);
    if let Some((mut connection, mut played)) = again.live.take() {
        played.iter_mut().for_each(|played| played.runner.clean(&mut connection));
    }
    match again.row.verdict {
        Verdict::Fail => done.row.ladder = again.row.ladder,
        verdict => {
            let before = std::mem::take(&mut done.row.why);
            done.row.verdict = Verdict::Inconclusive;
            done.row.why = format!("failed beside others ({before}), and alone: {}", verdict.name());
        }
    }
}

/// Reads what came after the story: a message that has no reason fails the case still.
fn tail(done: &mut Ran) {
    let Some((connection, played)) = done.live.as_mut().filter(|_| done.row.verdict == Verdict::Pass) else { return };
    connection.set_patience(Patience { answer: TAIL, quiet: TAIL });
    for played in played.iter_mut() {
        played.outcome = played.runner.tail(connection);
    }
    let outcome = suite::worst(played);
    if outcome.verdict == Verdict::Fail {
        (done.row.verdict, done.row.why, done.row.ladder) = (outcome.verdict, outcome.why, outcome.ladder);
    }
}

impl Job {
    fn run(self, plan: &Plan, control: &SharedControl, patience: Patience) -> Ran {
        let begun = Instant::now();
        let mut connection = match Connection::new(&plan.address, control.clone(), patience) {
            Ok(connection) => connection,
            Err(error) => {
                let why = format!("no connection to {}: {error}", plan.address);
                let outcome = Outcome { verdict: Verdict::Inconclusive, why, ladder: Vec::new() };
                let row = row(&self.story, self.variant, begun.elapsed(), outcome);
                return Ran { row, job: self, live: None };
            }
        };
        let prefix = format!("kit-{}-{}-", std::process::id(), self.number);
        let prefix = format!("{prefix}{}-", variant_name(self.variant));
        let played =
            suite::play(&self.story, self.variant, &self.types, &prefix, self.given.as_deref(), &mut connection);
        let row = row(&self.story, self.variant, begun.elapsed(), suite::worst(&played));
        Ran { row, job: self, live: Some((connection, played)) }
    }
}

impl Plan {
    /// Returns the types that a case runs with, or why it does not run.
    fn types_of(&self, story: &Story, variant: Variant, known: &Known) -> Result<Vec<String>, String> {
        let speaks = |name: &str| self.features.contains(name);
        if (speaks("sotw") || speaks("delta")) && !speaks(variant_name(variant)) {
            return Err(format!("the server does not speak {}", variant_name(variant)));
        }
        for feature in story.features.iter().map(String::as_str).chain([variant_name(variant)]) {
            if let Some(reason) = self.unsupported.get(feature) {
                return Err(format!("{feature}: {reason}"));
            }
        }
        if let Some(feature) = story.features.iter().find(|feature| !self.features.contains(*feature)) {
            return Err(format!("the feature {feature} is not named"));
        }
        if story.needs_control() && !self.has_control && !story.only_reads() {
            return Err("the case needs a control".into());
        }
        if story.needs_batch() && !self.has_batches {
            return Err("the control changes one type at a time".into());
        }
        let served = |of: &&String| {
            let given = self.types.is_empty() || self.types.contains(of) || !resource::is_common(of);
            let has = self.has_control || known.types.contains(of);
            given && has && (!story.is_wildcard() || self.wildcard.contains(of))
        };
        let types: Vec<String> = story.types.iter().filter(served).cloned().collect();
        if types.is_empty() { Err("no type of the case is served".into()) } else { Ok(types) }
    }
}

/// What a server has that the kit does not control.
#[derive(Default)]
struct Known {
    /// The names, those last that have endpoints too.
    names: Vec<String>,
    /// The types that have all these names, by their short names.
    types: Vec<String>,
}

/// Looks for the resources of a server: all clusters, and the endpoints of the same names.
fn learn(plan: &Plan, control: &SharedControl, patience: Patience) -> Result<Known, Trouble> {
    let variant = plan.variants.iter().copied().find(|variant| plan.speaks(*variant)).unwrap_or(Variant::Delta);
    let mut connection = Connection::new(&plan.address, control.clone(), patience)
        .map_err(|error| Trouble(format!("no connection to {}: {error}", plan.address)))?;
    let stream = connection.open(variant, None)?;
    let mut names = Vec::new();
    let mut types = Vec::new();
    for of in ["cds", "eds"] {
        let node = (of == "cds").then(|| Node { id: "kit-look".into(), features: Vec::new() });
        let type_url = resource::type_url(of).to_owned();
        let request = Request { type_url: type_url.clone(), names: names.clone(), node, ..Request::default() };
        connection.send(stream, variant, &request)?;
        let mut has: BTreeSet<String> = BTreeSet::new();
        let mut wait = Wait::Answer;
        while let Some(Event::Response(_, response)) = connection.poll(wait) {
            wait = Wait::Quiet;
            if response.type_url == type_url {
                has.extend(response.resources.into_iter().map(|item| item.name));
                let nonce = response.nonce;
                let names = if variant == Variant::Sotw { names.clone() } else { Vec::new() };
                let version = if variant == Variant::Sotw { response.version } else { String::new() };
                let ack = Request { type_url: type_url.clone(), names, version, nonce, ..Request::default() };
                connection.send(stream, variant, &ack)?;
            }
        }
        let has: Vec<String> = has.into_iter().filter(|name| !name.is_empty()).take(100).collect();
        if !has.is_empty() {
            types.push(of.to_owned());
            names = has;
        } else {
            break;
        }
    }
    connection.close(stream);
    Ok(Known { names, types })
}

fn unsupported(why: String) -> Outcome {
    Outcome { verdict: Verdict::Unsupported, why, ladder: Vec::new() }
}

fn row(story: &Story, variant: Variant, time: Duration, outcome: Outcome) -> Row {
    let Outcome { verdict, why, ladder } = outcome;
    let (id, level, sentence) = (story.id.clone(), story.level, story.sentence.clone());
    Row { id, variant, level, sentence, verdict, why, time, ladder, known: false }
}

/// Measures how fast the server answers and pushes. What never comes is for the cases to say.
fn calibrate(plan: &Plan, control: &SharedControl) -> Result<Calibration, Trouble> {
    let long = Patience { answer: plan.patience.unwrap_or(Duration::from_secs(5)), quiet: LEAST_QUIET };
    let mut connection = Connection::new(&plan.address, control.clone(), long)
        .map_err(|error| Trouble(format!("no connection to {}: {error}", plan.address)))?;
    let mut calibration = Calibration::default();
    if plan.has_control {
        for variant in plan.variants.iter().filter(|variant| plan.speaks(**variant)) {
            measure(*variant, &mut connection, &mut calibration)?;
        }
    }
    let longest = calibration.push.max(calibration.answer);
    let patience = longest.map_or(LEAST_PATIENCE, |longest| (longest * 20).clamp(LEAST_PATIENCE, MOST_PATIENCE));
    calibration.patience = plan.patience.unwrap_or(patience);
    calibration.quiet = longest.map_or(LEAST_QUIET * 3, |longest| (longest * 4).clamp(LEAST_QUIET, MOST_QUIET));
    Ok(calibration)
}

impl Plan {
    fn speaks(&self, variant: Variant) -> bool {
        let named = |name: &str| self.features.contains(name);
        named(variant_name(variant)) || !(named("sotw") || named("delta"))
    }
}

/// Puts a resource a few times, and measures how long a stream waits for it.
fn measure(variant: Variant, connection: &mut Connection, calibration: &mut Calibration) -> Result<(), Trouble> {
    let type_url = resource::type_url("cds").to_owned();
    let name = format!("kit-{}-calibration-{}", std::process::id(), variant_name(variant));
    let put =
        |revision| Op::Put(Put { type_url: type_url.clone(), name: name.clone(), revision, ttl: None, alias: None });
    connection.control(&[put(1)])?;
    let stream = connection.open(variant, None)?;
    let begun = Instant::now();
    let node = Some(Node { id: "kit-calibration".into(), features: Vec::new() });
    let mut request = Request { type_url: type_url.clone(), names: vec![name.clone()], node, ..Request::default() };
    connection.send(stream, variant, &request)?;
    request.node = None;
    for revision in 1..=4 {
        let begun = if revision == 1 {
            begun
        } else {
            let begun = Instant::now();
            connection.control(&[put(revision)])?;
            begun
        };
        if !comes(connection, stream, variant, &mut request, revision)? {
            break;
        }
        let longest = if revision == 1 { &mut calibration.answer } else { &mut calibration.push };
        *longest = (*longest).max(Some(begun.elapsed()));
    }
    connection.close(stream);
    connection.control(&[Op::Delete { type_url, name }])
}

/// Waits for a revision, and answers all responses.
fn comes(
    connection: &mut Connection,
    stream: u64,
    variant: Variant,
    request: &mut Request,
    revision: u64,
) -> Result<bool, Trouble> {
    while let Some(event) = connection.poll(Wait::Answer) {
        let Event::Response(id, response) = event else { return Ok(false) };
        if id != stream {
            continue;
        }
        request.nonce.clone_from(&response.nonce);
        if variant == Variant::Sotw {
            request.version.clone_from(&response.version);
        } else {
            request.names.clear();
        }
        connection.send(stream, variant, request)?;
        if response.resources.iter().any(|item| item.revision == Some(revision)) {
            return Ok(true);
        }
    }
    Ok(false)
}

//! All cases of a variant with one client, and the result of each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::peer::ClientPeer;
use super::player::{Played, Player, Progress};
use super::session::{Session, Timing};
use super::story::ClientStory;
use super::suite::{self, own_case};
use crate::message::Variant;
use crate::referee::{Complaint, Level};
use crate::report::{Calibration, Glob, Row, variant_name};
use crate::resource;
use crate::run::{Outcome, Trouble, Verdict};

/// The limits of the patience, unless the user sets it.
const LEAST_PATIENCE: Duration = Duration::from_secs(3);
const MOST_PATIENCE: Duration = Duration::from_secs(30);
/// The limits of the time after which silence is believed.
const LEAST_QUIET: Duration = Duration::from_millis(100);
const MOST_QUIET: Duration = Duration::from_secs(2);
/// How long a client may take to open its next stream.
const AGAIN: Duration = Duration::from_secs(20);
/// The types that the barrier may be of, the most useful first. Cases are not played with the type of the barrier.
const BARRIERS: [&str; 4] = ["rds", "lds", "eds", "cds"];

/// The facts that are known of the client, and the cases to run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The variant.
    pub variant: Variant,
    /// The types that the client can ask for, by their short names; empty if it can ask for all types.
    pub types: Vec<String>,
    /// The types for which the client can subscribe to the wildcard.
    pub wildcard: Vec<String>,
    /// The features of the client.
    pub features: BTreeSet<String>,
    /// Features that the client does not have, each with the reason.
    pub unsupported: BTreeMap<String, String>,
    /// Which cases to run.
    pub filter: Option<Glob>,
    /// How long to wait for a message that must come, if the user sets it.
    pub patience: Option<Duration>,
    /// Whether the client cannot be told what to ask for.
    pub reference: bool,
    /// Whether a client that cannot be told has a stream for each type.
    pub separate: bool,
}

/// A case that was played.
struct Ran {
    row: Row,
    complaints: Vec<Complaint>,
}

/// Plays all cases. `on_row` receives the row of each case as soon as the case is played; a row may still change.
///
/// # Errors
///
/// If the client asks for nothing at all.
pub fn run(
    peer: &mut dyn ClientPeer,
    settings: &Settings,
    on_row: &mut dyn FnMut(&Row),
) -> Result<(Vec<Row>, Calibration), Trouble> {
    let stories = suite::client(settings.variant).map_err(|error| Trouble(error.to_string()))?;
    let patience = settings.patience.unwrap_or(LEAST_PATIENCE);
    let timing = Timing { answer: patience.max(LEAST_PATIENCE), quiet: LEAST_QUIET, again: AGAIN };
    let mut session = Session::new(peer, settings.variant, timing);
    if let Err(trouble) = settings.begin(&mut session) {
        if !session.is_of_other_variant() {
            return Err(trouble);
        }
        let why = format!("the client does not speak {}", variant_name(settings.variant));
        return Ok((unsupported(settings, &why, on_row)?, Calibration::default()));
    }
    let slowest = session.slowest();
    let answer = settings.patience.unwrap_or((slowest * 20).clamp(LEAST_PATIENCE, MOST_PATIENCE));
    let quiet = (slowest * 4).clamp(LEAST_QUIET, MOST_QUIET);
    session.set_timing(Timing { answer, quiet, again: AGAIN.max(answer) });
    let (mut ran, mut long): (Vec<Ran>, _) = (Vec::new(), Vec::new());
    let covers = |story: &&Arc<ClientStory>| {
        settings.filter.as_ref().is_none_or(|filter| filter.covers(&story.id, settings.variant))
    };
    for (number, story) in stories.iter().filter(covers).enumerate() {
        match settings.types_of(story, &session) {
            Ok(types) if story.is_long() => {
                long.push((number, story.clone(), types));
                continue;
            }
            result => {
                for done in play_long(&mut session, std::mem::take(&mut long)) {
                    on_row(&done.row);
                    ran.push(done);
                }
                let done = match result {
                    Ok(types) => play(&mut session, story, &types, number),
                    Err(why) => {
                        let outcome = Outcome { verdict: Verdict::Unsupported, why, ladder: Vec::new() };
                        Ran { row: row(story, settings.variant, Duration::ZERO, outcome), complaints: Vec::new() }
                    }
                };
                on_row(&done.row);
                ran.push(done);
            }
        }
    }
    for done in play_long(&mut session, long) {
        on_row(&done.row);
        ran.push(done);
    }
    attribute(&mut ran);
    let calibration = Calibration { answer: Some(slowest), push: None, patience: answer, quiet };
    Ok((ran.into_iter().map(|ran| ran.row).collect(), calibration))
}

/// Returns the rows of all cases of a variant that the client does not support.
///
/// # Errors
///
/// If a case is wrong: a defect of the kit.
pub(super) fn unsupported(settings: &Settings, why: &str, on_row: &mut dyn FnMut(&Row)) -> Result<Vec<Row>, Trouble> {
    let stories = suite::client(settings.variant).map_err(|error| Trouble(error.to_string()))?;
    let covers = |id: &str| settings.filter.as_ref().is_none_or(|filter| filter.covers(id, settings.variant));
    let of = |story: Arc<ClientStory>| {
        let outcome = Outcome { verdict: Verdict::Unsupported, why: why.to_owned(), ladder: Vec::new() };
        row(&story, settings.variant, Duration::ZERO, outcome)
    };
    let rows: Vec<Row> = stories.into_iter().filter(|story| covers(&story.id)).map(of).collect();
    rows.iter().for_each(on_row);
    Ok(rows)
}

/// Plays a case with each of its types, up to the first failure. A failure that may only be lateness is played once
/// more.
fn play(session: &mut Session<'_>, story: &Arc<ClientStory>, types: &[String], number: usize) -> Ran {
    let (begun, variant) = (session.peer.now(), session.variant);
    let (mut worst, mut complaints, mut notes): (Option<Outcome>, _, Vec<String>) = (None, Vec::new(), Vec::new());
    for (at, of) in types.iter().enumerate() {
        let mut played = play_once(session, story, of, &format!("kit-{number}-{at}-"));
        complaints.append(&mut played.complaints);
        if played.late && played.outcome.verdict == Verdict::Fail && session.gone.is_none() {
            let mut again = play_once(session, story, of, &format!("kit-{number}-{at}-again-"));
            complaints.append(&mut again.complaints);
            let verdict = again.outcome.verdict;
            if verdict != Verdict::Fail {
                let why = format!("failed ({}), and then: {}", played.outcome.why, verdict.name());
                played.outcome = Outcome { verdict: Verdict::Inconclusive, why, ladder: played.outcome.ladder };
            }
        }
        if played.outcome.verdict == Verdict::Pass {
            notes.push(played.outcome.why.clone());
        }
        let failed = played.outcome.verdict == Verdict::Fail;
        if worst.as_ref().is_none_or(|worst| played.outcome.verdict > worst.verdict) {
            worst = Some(played.outcome);
        }
        if failed {
            break;
        }
    }
    let mut outcome = worst.unwrap_or_else(|| Outcome {
        verdict: Verdict::Unsupported,
        why: "no type of the case is served".into(),
        ladder: Vec::new(),
    });
    if outcome.verdict == Verdict::Pass {
        notes.dedup();
        outcome.why = notes.into_iter().filter(|note| !note.is_empty()).collect::<Vec<_>>().join("; ");
    }
    Ran { row: row(story, variant, session.peer.now().saturating_sub(begun), outcome), complaints }
}

fn play_once(session: &mut Session<'_>, story: &Arc<ClientStory>, of: &str, prefix: &str) -> Played {
    match &session.gone {
        Some(why) => gone(why),
        None => Player::new(story.clone(), resource::type_url(of), prefix).play(session),
    }
}

fn gone(why: &str) -> Played {
    let outcome = Outcome { verdict: Verdict::Inconclusive, why: why.to_owned(), ladder: Vec::new() };
    Played { outcome, late: false, complaints: Vec::new() }
}

/// Plays the cases that wait long, all at the same time.
fn play_long(session: &mut Session<'_>, stories: Vec<(usize, Arc<ClientStory>, Vec<String>)>) -> Vec<Ran> {
    let begun = session.peer.now();
    let mut players: Vec<(Arc<ClientStory>, Player, Option<Played>)> = Vec::new();
    for (number, story, types) in stories {
        for of in types.iter().take(1) {
            let player = Player::new(story.clone(), resource::type_url(of), &format!("kit-{number}-long-"));
            players.push((story.clone(), player, None));
        }
    }
    while players.iter().any(|(.., played)| played.is_none()) {
        let mut waits = Duration::ZERO;
        for (_, player, played) in players.iter_mut().filter(|(.., played)| played.is_none()) {
            if let Some(why) = &session.gone {
                *played = Some(gone(why));
                continue;
            }
            match player.go(session) {
                Progress::Done(done) => *played = Some(*done),
                Progress::Waits(time) => waits = waits.max(time),
            }
        }
        if !waits.is_zero() {
            session.pass(waits);
        }
    }
    let (variant, time) = (session.variant, session.peer.now().saturating_sub(begun));
    let done = players.into_iter().filter_map(|(story, _, played)| Some((story, played?)));
    done.map(|(story, played)| Ran { row: row(&story, variant, time, played.outcome), complaints: played.complaints })
        .collect()
}

/// Gives each complaint to the case that it belongs to, wherever it was seen.
fn attribute(ran: &mut [Ran]) {
    let mut found: Vec<(usize, Complaint)> = Vec::new();
    for (at, done) in ran.iter_mut().enumerate() {
        found.extend(std::mem::take(&mut done.complaints).into_iter().map(|complaint| (at, complaint)));
    }
    for (seen, complaint) in found {
        let variant = ran[seen].row.variant;
        let own = own_case(complaint.rule, variant);
        let decided = |row: &Row| matches!(row.verdict, Verdict::Pass | Verdict::Inconclusive);
        let owner = ran.iter().position(|ran| Some(ran.row.id.as_str()) == own);
        let at = match owner {
            Some(at) if ran[at].row.verdict != Verdict::Unsupported => at,
            // The case that it belongs to does not run.
            _ => seen,
        };
        let row = &ran[at].row;
        let strong = complaint.rule.level() == Level::Must || row.level == Level::Should;
        if row.level == Level::May || !strong || !decided(row) {
            continue;
        }
        let (id, ladder) = (ran[seen].row.id.clone(), ran[seen].row.ladder.clone());
        let row = &mut ran[at].row;
        row.verdict = Verdict::Fail;
        row.why = if at == seen { complaint.to_string() } else { format!("{complaint} (seen in {id})") };
        row.ladder = ladder;
    }
}

impl Settings {
    /// Lets the client ask for the barrier.
    fn begin(&self, session: &mut Session<'_>) -> Result<(), Trouble> {
        if self.reference {
            let asks = session.calibrate_reference(self.separate);
            let why = || Trouble(session.gone.clone().unwrap_or_else(|| "the client asks for no listeners".into()));
            return if asks { Ok(()) } else { Err(why()) };
        }
        let served = |of: &&&str| self.types.is_empty() || self.types.iter().any(|own| own == **of);
        let mut refused = None;
        for of in BARRIERS.iter().filter(served) {
            let name = if self.has("names") {
                "kit-barrier"
            } else if self.wildcard.iter().any(|own| own == of) {
                "*"
            } else {
                continue;
            };
            match session.calibrate(resource::type_url(of), name) {
                Ok(true) => return Ok(()),
                Ok(false) => refused = Some(Trouble(format!("the client does not ask for {of}"))),
                Err(trouble) => refused = Some(trouble),
            }
            if let Some(why) = &session.gone {
                return Err(Trouble(why.clone()));
            }
        }
        Err(refused.unwrap_or_else(|| Trouble("the client can ask for nothing that the kit knows".into())))
    }

    /// Returns whether the client has a feature. A client that names neither `wildcard` nor `names` can be told names.
    fn has(&self, feature: &str) -> bool {
        let named = |name: &str| self.features.contains(name);
        named(feature) || (feature == "names" && !named("wildcard"))
    }

    /// Returns the types that a case runs with, or why it does not run.
    fn types_of(&self, story: &ClientStory, session: &Session<'_>) -> Result<Vec<String>, String> {
        let induced = story.induced();
        let features = story.features.iter().map(String::as_str).chain(induced.iter().copied());
        for feature in features {
            if let Some(reason) = self.unsupported.get(feature) {
                return Err(format!("{feature}: {reason}"));
            }
            if !self.has(feature) {
                return Err(format!("the feature {feature} is not named"));
            }
        }
        let has_all = induced.contains(&"wildcard");
        let served = |of: &&String| {
            (self.types.is_empty() || self.types.contains(of))
                && (!self.reference || *of == "eds")
                && (!has_all || self.wildcard.contains(of))
                && !session.is_barrier(resource::type_url(of))
        };
        let types: Vec<String> = story.types.iter().filter(served).cloned().collect();
        if types.is_empty() { Err("no type of the case is served".into()) } else { Ok(types) }
    }
}

fn row(story: &ClientStory, variant: Variant, time: Duration, outcome: Outcome) -> Row {
    let Outcome { verdict, why, ladder } = outcome;
    let (id, level, rule, sentence) = (story.id.clone(), story.level, story.rule.clone(), story.sentence.clone());
    Row { id, variant, level, rule, sentence, verdict, why, time, ladder, known: false }
}

//! C-core as an oracle: random resource sets, played to a real channel and to this project's own client.

mod answer;
mod calls;
mod case;
mod compare;
mod core;
mod encode;
mod endpoint_kinds;
mod generate;
mod kinds;
mod known;
mod odd;
mod ours;
mod recording;
mod server;
mod shrink;
mod tally;

use std::path::{Path, PathBuf};
use std::time::Instant;

use self::case::Case;
use self::compare::{Compared, compare};
use self::core::{Core, Played};
use self::recording::Recorded;
use self::tally::Tally;
use crate::{Line, report};

/// The first of the cases that CI plays. They are always the same: a check that fails on a day of its own choice says
/// nothing of a change. `cargo xtask interop oracle-from-NUMBER` plays others.
const SETS: u64 = 20_784 << 16;
/// The number of cases of a run, which take a minute.
const CASES: u64 = 2000;
/// The number of recorded cases.
const RECORDED: u64 = 800;
const SHARDS: usize = 2;
/// The factor of the waits for C-core when a case is played again, because a difference may be one of timing.
const PATIENCE: f64 = 2.0;

/// Plays the cases of CI.
pub fn play(python: &Path, lines: &mut Vec<Line>) {
    let result = play_sets(&core(python), SETS);
    report(
        Line { peer: "gRPC C-core 1.85.1", mode: "oracle", dialect: "grpc", scenario: "random resource sets", result },
        lines,
    );
}

/// Plays cases from a given number on.
pub fn play_from(python: &Path, seed: u64) -> Result<(), String> {
    play_sets(&core(python), seed)
}

/// Records the behaviour of C-core in the first cases.
pub fn record(python: &Path) -> Result<(), String> {
    let core = core(python);
    let cases: Vec<(u64, Case)> = (0..RECORDED).map(|seed| (seed, generate::case(seed))).collect();
    let mut played = core.play(&cases, SHARDS, PATIENCE)?;
    let take = |(id, case): (u64, Case)| Some(Recorded { core: played.remove(&id)?, case });
    recording::write(&cases.into_iter().filter_map(take).collect::<Vec<_>>())
}

fn core(python: &Path) -> Core {
    let script = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/grpc_oracle.py"));
    Core { python: python.to_owned(), script }
}

fn play_sets(core: &Core, first: u64) -> Result<(), String> {
    let start = Instant::now();
    let cases: Vec<(u64, Case)> = (first..first + CASES).map(|seed| (seed, generate::case(seed))).collect();
    let mut played = core.play(&cases, SHARDS, 1.0)?;
    // A difference may be one of timing: then it disappears when C-core has more time.
    for _ in 0..2 {
        let differs = |(id, case): &&(u64, Case)| {
            let core = played.get(id).unwrap_or(&Played::None);
            matches!(compare(case, core), Compared::Different(_))
        };
        let again: Vec<(u64, Case)> = cases.iter().filter(differs).take(200).cloned().collect();
        if again.is_empty() {
            break;
        }
        println!("oracle: {} again", again.len());
        played.extend(core.play(&again, SHARDS, PATIENCE)?);
    }
    let mut tally = Tally::default();
    let mut shown = 0;
    for (id, case) in &cases {
        let compared = compare(case, played.get(id).unwrap_or(&Played::None));
        if let (Compared::Different(_), 0..5) = (&compared, shown) {
            shown += 1;
            let smallest = shrink::shrink(core, case)?;
            println!("oracle: set {id}: {}", tally::story(&smallest.0, &smallest.1));
        }
        tally.add(case, &compared);
    }
    println!("{tally}\noracle: {CASES} sets from {first} in {:.0?}", start.elapsed());
    tally.verdict(5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_behaves_like_the_recorded_c_core() {
        let recorded = recording::read().expect("the recordings");
        let mut tally = Tally::default();
        for Recorded { case, core } in &recorded {
            let compared = compare(case, core);
            if let Compared::Different(difference) = &compared {
                println!("{}", tally::story(case, difference));
            }
            tally.add(case, &compared);
        }
        assert_eq!(tally.verdict(2), Ok(()), "{tally}");
    }

    #[test]
    fn cases_are_deterministic_and_survive_a_json_round_trip() {
        for seed in 0..500 {
            let case = generate::case(seed);
            assert_eq!(case, generate::case(seed));
            let text = serde_json::to_string(&case).expect("JSON");
            assert_eq!(serde_json::from_str::<Case>(&text).expect("a case"), case);
        }
    }
}

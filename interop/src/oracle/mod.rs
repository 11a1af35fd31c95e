//! C-core as an oracle: random resource sets, played to a real channel and to this project's own client.

mod answer;
mod case;
mod core;
mod encode;
mod generate;
mod kinds;
mod odd;

use std::collections::BTreeMap;
use std::time::Instant;

use self::case::Case;
use self::core::Core;
use std::path::{Path, PathBuf};

pub fn try_out(python: &Path, from: u64, count: u64) -> Result<(), String> {
    let core = Core { python: python.to_owned(), script: PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/grpc_oracle.py")) };
    let cases: Vec<(u64, Case)> = (from..from + count).map(|seed| (seed, generate::case(seed))).collect();
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, case) in &cases {
        case.kinds().into_iter().for_each(|kind| *kinds.entry(kind).or_default() += 1);
    }
    for kind in kinds::ALL.iter().chain(&kinds::RARE) {
        let n = kinds.remove(kind).unwrap_or(0);
        if n < 5 { println!("{kind}: {n}"); }
    }
    println!("unknown {kinds:?}");
    let start = Instant::now();
    let played = core.play(&cases, 2, 1.0)?;
    println!("{} in {:?}", played.len(), start.elapsed());
    for (id, case) in &cases {
        println!("{} {}", serde_json::to_string(case).unwrap(), serde_json::to_string(&played[id]).unwrap());
    }
    Ok(())
}

//! The outcomes of the mutants, kept in a file, so that the next run continues with the remaining ones. A mutant whose
//! file has changed since counts as new.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::{fmt, fs};

use serde_json::{Value, json};

use super::list::Mutant;
use crate::run::{Result, root};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    Caught,
    TimedOut,
    Survived,
    /// The mutant does not compile.
    Unviable,
    /// The mutant may compile, but can't have a switch.
    NoSwitch,
}

const ALL: [Outcome; 5] = [Outcome::Caught, Outcome::TimedOut, Outcome::Survived, Outcome::Unviable, Outcome::NoSwitch];

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

pub struct Results {
    path: PathBuf,
    sources: HashMap<String, u64>,
    known: Mutex<HashMap<String, Outcome>>,
    /// The mutants that had no switch at first.
    left: HashMap<String, Outcome>,
}

impl Results {
    pub fn load(mutants: &[Mutant]) -> Result<Self> {
        let mut sources = HashMap::new();
        for mutant in mutants {
            if !sources.contains_key(&mutant.file) {
                let mut hasher = DefaultHasher::new();
                fs::read(root().join(&mutant.file))?.hash(&mut hasher);
                sources.insert(mutant.file.clone(), hasher.finish());
            }
        }
        let path = root().join("target/mutants/results.jsonl");
        let (mut known, mut left) = (HashMap::new(), HashMap::new());
        for line in fs::read_to_string(&path).unwrap_or_default().lines() {
            let row: Value = serde_json::from_str(line)?;
            let outcome = ALL.into_iter().find(|outcome| row["outcome"] == outcome.to_string());
            let current = row["file"].as_str().and_then(|file| sources.get(file));
            if let (Some(name), Some(outcome), true) =
                (row["name"].as_str(), outcome, current.is_some_and(|hash| row["hash"] == *hash))
            {
                known.insert(name.to_owned(), outcome);
                if matches!(outcome, Outcome::Unviable | Outcome::NoSwitch) {
                    left.entry(name.to_owned()).or_insert(outcome);
                }
            }
        }
        Ok(Results { path, sources, known: Mutex::new(known), left })
    }

    pub fn of(&self, mutant: &Mutant) -> Option<Outcome> {
        self.known.lock().expect("no other panicked").get(&mutant.name).copied()
    }

    /// Returns the mutants without a switch whose files have not changed, so that they need no new attempt.
    pub fn left(&self, mutants: &[Mutant]) -> HashMap<usize, Outcome> {
        let left = |mutant: &Mutant| self.left.get(&mutant.name).map(|&outcome| (mutant.id, outcome));
        mutants.iter().filter_map(left).collect()
    }

    pub fn keep_unless_known(&self, mutant: &Mutant, outcome: Outcome) -> Result {
        if self.of(mutant).is_none() { self.keep(mutant, outcome, "") } else { Ok(()) }
    }

    pub fn keep(&self, mutant: &Mutant, outcome: Outcome, by: &str) -> Result {
        let row = json!({
            "name": mutant.name, "file": mutant.file, "hash": self.sources[&mutant.file],
            "outcome": outcome.to_string(), "by": by,
        });
        let mut known = self.known.lock().expect("no other panicked");
        known.insert(mutant.name.clone(), outcome);
        fs::create_dir_all(self.path.parent().expect("it is in a folder"))?;
        let mut file = fs::OpenOptions::new().create(true).append(true).open(&self.path)?;
        Ok(writeln!(file, "{row}")?)
    }

    /// Prints the survivors, and a row for each file.
    pub fn print<'a>(&self, mutants: impl Iterator<Item = &'a Mutant>) {
        let mut files = BTreeMap::<&str, [usize; 6]>::new();
        let mut survivors = Vec::new();
        for mutant in mutants {
            let outcome = self.of(mutant);
            let at = outcome.and_then(|outcome| ALL.iter().position(|&other| other == outcome)).unwrap_or(5);
            for row in [&*mutant.file, "all"] {
                files.entry(row).or_default()[at] += 1;
            }
            if outcome == Some(Outcome::Survived) {
                survivors.push(&mutant.name);
            }
        }
        survivors.iter().for_each(|name| println!("{name}"));
        println!("\n| file | caught | timed out | survived | unviable | no switch | not run | score |");
        println!("|---|---|---|---|---|---|---|---|");
        for (file, counts @ [caught, late, survived, ..]) in files {
            let viable = caught + late + survived;
            let score = (caught + late) as f64 * 100. / viable.max(1) as f64;
            let counts = counts.map(|count| count.to_string()).join(" | ");
            println!("| `{file}` | {counts} | {score:.1} % |");
        }
    }
}

//! A copy of the project that contains all mutants.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::edit::{Edited, edit};
use super::list::{Genre, Mutant};
use super::results::Outcome;
use super::subject::Subject;
use crate::run::{Result, cargo, root};

pub struct Tree {
    pub root: PathBuf,
    subject: &'static Subject,
    /// The mutants that the copy does not contain.
    pub left: HashMap<usize, Outcome>,
}

/// Returns a cargo command in the copy: with the checks that tests have, but optimized; the crate itself, which is
/// built most often, with less optimization.
pub fn cargo_in(subject: &Subject, tree: &Path, arguments: &[&str]) -> Command {
    let mut command = cargo(&["--config", &format!("profile.release.package.{}.opt-level=1", subject.package)]);
    command.args(arguments).current_dir(tree).env("CARGO_TARGET_DIR", root().join("target/mutants/target"));
    command.env("RUSTFLAGS", "--cap-lints=allow").env("CARGO_PROFILE_RELEASE_DEBUG", "0");
    command.env("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true");
    command.env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true").stderr(Stdio::inherit());
    command
}

/// Copies the files of the project, with or without its sources. Identical files stay untouched, so that cargo need not
/// rebuild them.
pub fn copy(subject: &Subject, name: &str, sources: bool) -> Result<PathBuf> {
    let tree = root().join("target/mutants").join(name);
    let listed = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let files = Command::new("git").args(listed).current_dir(root()).output()?.stdout;
    let files = String::from_utf8(files)?;
    let wanted =
        |file: &&str| (sources || !Path::new(file).starts_with(subject.sources)) && root().join(file).is_file();
    for file in files.split_terminator('\0').filter(wanted) {
        write(&tree.join(file), &fs::read(root().join(file))?)?;
    }
    Ok(tree)
}

pub fn write(path: &Path, text: &[u8]) -> Result {
    if fs::read(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().ok_or("no folder")?)?;
    Ok(fs::write(path, text)?)
}

/// Makes the copy with all switches. The switches use the standard library, though the crate does without.
pub fn switched(subject: &'static Subject, mutants: &[Mutant], left: HashMap<usize, Outcome>) -> Result<Tree> {
    let mut tree = Tree { root: copy(subject, subject.tree, false)?, subject, left };
    loop {
        let edited = tree.write(mutants)?;
        let mut errors = tree.errors("--lib")?;
        if errors.is_empty() {
            errors = tree.errors("--tests")?;
        }
        let broken: HashSet<usize> = errors.iter().flat_map(|error| blame(&edited, error)).collect();
        if broken.is_empty() {
            let first = errors.first().map(|error| format!("nobody is to blame: {}", error["rendered"]));
            return first.map_or(Ok(tree), |error| Err(error.into()));
        }
        println!("{} mutants do not compile", broken.len());
        let opaque: HashSet<usize> = edited.values().flat_map(|file| file.opaque.iter().copied()).collect();
        for id in broken {
            let sure = mutants[id - 1].genre == Genre::Function && !opaque.contains(&id);
            tree.left.insert(id, if sure { Outcome::Unviable } else { Outcome::NoSwitch });
        }
    }
}

impl Tree {
    fn write(&mut self, mutants: &[Mutant]) -> Result<BTreeMap<String, Edited>> {
        let mut edited = BTreeMap::new();
        for path in files(&root().join(self.subject.sources))? {
            let name = path.strip_prefix(root())?.to_str().ok_or("no text")?.to_owned();
            let Ok(source) = fs::read_to_string(&path) else { continue };
            let inside = |mutant: &&Mutant| mutant.file == name && !self.left.contains_key(&mutant.id);
            let mut file = if name.ends_with(".rs") {
                edit(&source, &mutants.iter().filter(inside).collect::<Vec<_>>())?
            } else {
                Edited { text: source, ..Edited::default() }
            };
            self.left.extend(file.homeless.iter().map(|&id| (id, Outcome::NoSwitch)));
            if name == format!("{}/lib.rs", self.subject.sources) {
                file.text = file.text.replace("#![no_std]", "") + "\nmod mutants;\n";
            }
            write(&self.root.join(&name), file.text.as_bytes())?;
            edited.insert(name, file);
        }
        write(&self.root.join(self.subject.sources).join("mutants.rs"), include_bytes!("switch.rs"))?;
        Ok(edited)
    }

    /// Returns the errors of the compiler.
    fn errors(&self, of: &str) -> Result<Vec<Value>> {
        let package = self.subject.package;
        let check = ["check", "--quiet", of, "--all-features", "--package", package, "--message-format=json"];
        let output = cargo_in(self.subject, &self.root, &check).output()?;
        let mut errors = Vec::new();
        for line in String::from_utf8(output.stdout)?.lines() {
            let message = serde_json::from_str::<Value>(line)?["message"].take();
            let spans = message["spans"].as_array().is_some_and(|spans| !spans.is_empty());
            if message["level"] == "error" && spans {
                errors.push(message);
            }
        }
        if errors.is_empty() && !output.status.success() {
            return Err("it does not compile, and nobody says why".into());
        }
        Ok(errors)
    }
}

/// Returns the mutants that an error is about: those at its place or, if there are none, those of the host around it.
/// An error about a returned iterator points to the signature, before the body: then the last mutant of the body is to
/// blame.
fn blame(edited: &BTreeMap<String, Edited>, message: &Value) -> Vec<usize> {
    let mut blamed = Vec::new();
    if message["code"]["code"] == "E0015" {
        for span in
            message["children"].as_array().into_iter().flatten().flat_map(|note| note["spans"].as_array()).flatten()
        {
            let Some(file) = span["file_name"].as_str().and_then(|name| edited.get(name)) else { continue };
            let at = |end: &str| span[end].as_u64().unwrap_or_default() as usize;
            let here = file.constants.iter().filter(|(word, _)| (at("byte_start")..at("byte_end")).contains(word));
            blamed.extend(here.flat_map(|(_, ids)| ids));
        }
        return blamed;
    }
    for span in message["spans"].as_array().into_iter().flatten() {
        let Some(file) = span["file_name"].as_str().and_then(|name| edited.get(name)) else { continue };
        let at = |end: &str| span[end].as_u64().unwrap_or_default() as usize;
        let around = |range: &Range<usize>| range.start <= at("byte_start") && at("byte_end") <= range.end;
        let places = file.places.iter().filter(|(_, range)| around(range));
        if let Some((id, _)) = places.min_by_key(|(_, range)| range.len()) {
            return vec![*id];
        }
        let hosts = file.hosts.iter().filter(|(range, _)| around(range));
        if let (Some((_, ids)), true) = (hosts.min_by_key(|(range, _)| range.len()), span["is_primary"] == true) {
            blamed.clone_from(ids);
        }
        let bodies =
            file.hosts.iter().filter(|(range, ids)| range.start >= at("byte_end") && file.opaque.contains(&ids[0]));
        if let (true, Some((_, ids))) = (blamed.is_empty(), bodies.min_by_key(|(range, _)| range.start)) {
            blamed.extend(ids.last());
        }
    }
    blamed
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { all.extend(files(&path)?) } else { all.push(path) }
    }
    Ok(all)
}

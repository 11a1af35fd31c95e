//! Checks that the files of a crate do not depend on each other in circles, so that each file can be read, and
//! rewritten, with no knowledge but that of the files below it.
//!
//! An arrow leads from the file that names an item, by `use` or by a path, to the file that defines the item. Imports
//! and re-exports are followed to the definition. No arrows come from `mod x;`, from a re-export itself (`pub use`),
//! from a method call (it has no path), or from code in `cfg(test)`, in attributes (doc comments are attributes) and in
//! generated files.
//!
//! The arguments of a macro are read as expressions or as statements. In other arguments, and in the body of a
//! `macro_rules`, the check finds paths of two names or more, and single names that begin with a capital. It does not
//! find names in format strings, macros used without an import, and the variants that a glob import of an enum brings
//! into scope (the import itself is found). A local variable with the name of a re-exported function counts as the
//! function. A `#[path]` is an error, and so is a path into the crate that leads to nothing.

mod arrows;
mod graph;
mod modules;
#[cfg(test)]
mod tests;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use self::arrows::Arrows;
use self::modules::Tree;
use crate::run::{Result, root};

/// The crates: the folder of the sources, and the generated file in there.
const CRATES: [(&str, &str); 2] = [("src", "proto/generated.rs"), ("grpc/src", "resources/generated.rs")];

/// The file that lists the arrows of the circles that still exist. Arrows may be deleted from the list, but not added.
const ALLOWED: &str = "xtask/circles.txt";

pub fn check() -> Result {
    let mut found = BTreeSet::new();
    for (folder, generated) in CRATES {
        let mut sources = BTreeMap::new();
        read(&root().join(folder), "", &mut sources)?;
        let arrows = arrows::all(&Tree::read(&sources, &[generated])?)?;
        let circles = graph::circles(&arrows);
        print!("{folder}: {}", report(&arrows, &circles));
        found.extend(inside(&arrows, &circles));
    }
    compare(&found, &allowed(&fs::read_to_string(root().join(ALLOWED))?))
}

/// Reads the files of a folder, by their paths relative to the outermost folder.
fn read(folder: &Path, prefix: &str, sources: &mut BTreeMap<String, String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = format!("{prefix}{}", path.file_name().unwrap_or_default().to_string_lossy());
        if path.is_dir() {
            read(&path, &format!("{name}/"), sources)?;
        } else if name.ends_with(".rs") {
            sources.insert(name, fs::read_to_string(path)?);
        }
    }
    Ok(())
}

/// Describes each circle: its files, its arrows with an item each, and the totals.
fn report(arrows: &Arrows, circles: &[BTreeSet<String>]) -> String {
    let mut text = String::new();
    for circle in circles {
        let files: Vec<&str> = circle.iter().map(String::as_str).collect();
        _ = writeln!(text, "a circle of {} files: {}", files.len(), files.join(", "));
        for ((from, to), items) in arrows.iter().filter(|((from, to), _)| circle.contains(from) && circle.contains(to))
        {
            let item = items.first().map_or("", String::as_str);
            _ = writeln!(text, "  {from} -> {to} ({item})");
        }
    }
    let files: usize = circles.iter().map(BTreeSet::len).sum();
    let count = inside(arrows, circles).len();
    _ = writeln!(text, "{} circles, {files} files and {count} of {} arrows in them", circles.len(), arrows.len());
    text
}

/// Returns the arrows between files of one circle.
fn inside(arrows: &Arrows, circles: &[BTreeSet<String>]) -> BTreeSet<String> {
    let within = |from: &String, to: &String| circles.iter().any(|circle| circle.contains(from) && circle.contains(to));
    arrows.keys().filter(|(from, to)| within(from, to)).map(|(from, to)| format!("{from} -> {to}")).collect()
}

/// Parses the list: one arrow per line; `#` starts a comment.
fn allowed(text: &str) -> BTreeSet<String> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

fn compare(found: &BTreeSet<String>, allowed: &BTreeSet<String>) -> Result {
    let mut wrong = String::new();
    for arrow in found.difference(allowed) {
        _ = writeln!(wrong, "not in {ALLOWED}, and on a circle: {arrow}");
    }
    for arrow in allowed.difference(found) {
        _ = writeln!(wrong, "on no circle any more, delete it from {ALLOWED}: {arrow}");
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.trim_end().into()) }
}

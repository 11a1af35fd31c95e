//! The check that the files of `src/` do not depend on each other in circles, so that each can be read, and rewritten, with
//! no more than what stands below it.
//!
//! An arrow goes from the file that names an item, by `use` or by a path, to the file that defines the item. Imports and
//! re-exports are looked through. These are no arrows: `mod x;`, a re-export itself (`pub use`), a method call (it has no
//! path), whatever stands in `cfg(test)`, in attributes (doc comments are attributes) or in generated code.
//!
//! The arguments of a macro are read as expressions or as statements. Of other arguments, and of the body of a
//! `macro_rules`, the check sees paths of two names or more, and single names that begin with a capital. It does not see
//! names in format strings, macros that are used without an import, and the variants that a glob import of an enum brings
//! (the import itself is seen). A local variable that has the name of a re-exported function counts as the function. A
//! `#[path]` is an error, and so is a path into the crate that leads to nothing.

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

/// Generated files, by their paths in `src/`.
const GENERATED: [&str; 1] = ["proto/generated.rs"];

/// The arrows of the circles that still exist. Arrows may leave the list, and none may join it.
const ALLOWED: &str = "xtask/circles.txt";

pub fn check() -> Result {
    let mut sources = BTreeMap::new();
    read(&root().join("src"), "", &mut sources)?;
    let arrows = arrows::all(&Tree::read(&sources, &GENERATED)?)?;
    let circles = graph::circles(&arrows);
    print!("{}", report(&arrows, &circles));
    compare(&inside(&arrows, &circles), &allowed(&fs::read_to_string(root().join(ALLOWED))?))
}

/// Reads the files of a folder, by their paths in the outermost folder.
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

/// Each circle: its files, its arrows with an item each, and the totals.
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

/// The arrows between files of one circle.
fn inside(arrows: &Arrows, circles: &[BTreeSet<String>]) -> BTreeSet<String> {
    let within = |from: &String, to: &String| circles.iter().any(|circle| circle.contains(from) && circle.contains(to));
    arrows.keys().filter(|(from, to)| within(from, to)).map(|(from, to)| format!("{from} -> {to}")).collect()
}

/// An arrow a line; `#` begins a comment.
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

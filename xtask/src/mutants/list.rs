//! The mutants that cargo-mutants would make.

use std::ops::Range;
use std::{collections::HashMap, fs};

use serde_json::Value;

use super::subject::Subject;
use crate::run::{Result, cargo, root};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Genre {
    Function,
    Binary,
    Unary,
    Guard,
    Arm,
    Field,
}

pub struct Mutant {
    /// The number of the mutant, counted from 1.
    pub id: usize,
    pub file: String,
    /// The mutant as cargo-mutants prints it, with its line and column.
    pub name: String,
    pub genre: Genre,
    /// The byte range of the file that is replaced.
    pub span: Range<usize>,
    pub replacement: String,
}

pub fn mutants(subject: &Subject) -> Result<Vec<Mutant>> {
    let output = cargo(&["mutants", "--list", "--json", "--package", subject.package]).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let list: Value = serde_json::from_slice(&output.stdout)?;
    let mut sources = HashMap::new();
    let mut mutants = Vec::new();
    for row in list.as_array().ok_or("no list")? {
        let text = |key: &str| row[key].as_str().map(str::to_owned).ok_or_else(|| format!("no {key} in {row}"));
        let file = text("file")?;
        if !file.starts_with(subject.mutated) {
            continue;
        }
        if !sources.contains_key(&file) {
            sources.insert(file.clone(), fs::read_to_string(root().join(&file))?);
        }
        let genre = match &*text("genre")? {
            "FnValue" => Genre::Function,
            "BinaryOperator" => Genre::Binary,
            "UnaryOperator" => Genre::Unary,
            "MatchArmGuard" => Genre::Guard,
            "MatchArm" => Genre::Arm,
            "StructField" => Genre::Field,
            other => return Err(format!("an unknown genre: {other}").into()),
        };
        let place = |end: &str| offset(&sources[&file], &row["span"][end]).ok_or_else(|| format!("no {end} in {row}"));
        let span = place("start")?..place("end")?;
        mutants.push(Mutant {
            id: mutants.len() + 1,
            file,
            name: text("name")?,
            genre,
            span,
            replacement: text("replacement")?,
        });
    }
    Ok(mutants)
}

/// Returns a byte offset. Lines and columns count from 1, columns in characters.
fn offset(source: &str, place: &Value) -> Option<usize> {
    let (line, column) = (place["line"].as_u64()? as usize, place["column"].as_u64()? as usize);
    let start: usize = source.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let mut chars = source[start..].char_indices().map(|(at, _)| at).chain([source.len() - start]);
    Some(start + chars.nth(column - 1)?)
}

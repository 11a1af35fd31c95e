//! Helpers for checks of tables of rules in Markdown, whose cells name functions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A prefix of ids, and the first and last number of each range of them.
pub type Ids = (&'static str, &'static [(u32, u32)]);

/// Returns the ids of all ranges: `PREFIX-07`.
pub fn ids(ranges: &[Ids]) -> BTreeSet<String> {
    let each = |&(prefix, ranges): &Ids| {
        let numbers = ranges.iter().flat_map(|&(first, last)| first..=last);
        numbers.map(move |number| format!("{prefix}-{number:02}"))
    };
    ranges.iter().flat_map(each).collect()
}

/// Returns the rows of a table: the id, and the other cells.
///
/// # Panics
///
/// A row has an unknown id, an id is there twice, or not at all.
pub fn rows(file: &Path, ids: &BTreeSet<String>) -> BTreeMap<String, Vec<String>> {
    let (text, file) = (fs::read_to_string(file).expect("a table"), file.display());
    let mut rows = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("| ")) {
        let mut cells = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned());
        let id = cells.next().expect("a cell");
        if id.contains('-') {
            assert!(ids.contains(&id), "{file}: {id} is no id");
            assert!(rows.insert(id.clone(), cells.collect()).is_none(), "{file}: {id} is there twice");
        }
    }
    let missing: Vec<&String> = ids.iter().filter(|id| !rows.contains_key(*id)).collect();
    assert!(missing.is_empty(), "{file}: not there: {missing:?}");
    rows
}

/// Returns the comma-separated items in backticks; `None` for any other cell.
pub fn names(cell: &str) -> Option<Vec<&str>> {
    cell.split(", ").map(|name| name.strip_prefix('`')?.strip_suffix('`')).collect()
}

/// Returns whether a file defines a function.
pub fn has_function(file: &Path, name: &str) -> bool {
    let text = fs::read_to_string(file).unwrap_or_default();
    [format!("fn {name}("), format!("fn {name}<")].iter().any(|start| text.contains(start))
}

/// Returns the kind and the faults of a row that says where a rule is decided and which tests show it. The kind is
/// `decided`, or one of `kinds` with the reason why nothing here decides the rule.
///
/// # Panics
///
/// The row has other cells than a summary, a place and tests.
pub fn decided<'a>(
    id: &str,
    cells: &[String],
    kinds: &[&'a str],
    is_place: impl Fn(&str) -> bool,
    is_test: impl Fn(&str) -> bool,
) -> (&'a str, Vec<String>) {
    let [short, place, shown] = cells else { panic!("{id}: {} cells", cells.len()) };
    assert!(!short.is_empty(), "{id}: what is it?");
    match names(place).as_deref() {
        Some([place]) => {
            let tests = names(shown).unwrap_or_else(|| panic!("{id}: {shown} is no list of tests"));
            let place = (!is_place(place)).then_some(*place);
            let absent = place.into_iter().chain(tests.into_iter().filter(|test| !is_test(test)));
            ("decided", absent.map(|name| format!("{id}: there is no {name}")).collect())
        }
        Some(places) => panic!("{id}: {} places", places.len()),
        None => {
            let (kind, why) = place.split_once(": ").unwrap_or_default();
            assert!(!why.is_empty() && shown.is_empty(), "{id}: {place}");
            (kinds.iter().find(|known| **known == kind).unwrap_or_else(|| panic!("{id}: {place}")), Vec::new())
        }
    }
}

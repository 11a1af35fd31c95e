//! Checks `rules.md`: every rule is in the table once, and every name in the table exists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The ids of the rules and of the bugs: a prefix, and the first and last number.
const IDS: [(&str, &[(u32, u32)]); 7] = [
    ("R-BOOT", &[(1, 40)]),
    ("R-SRV", &[(9, 10)]),
    ("R-LIS", &[(1, 12)]),
    ("R-RTE", &[(1, 23)]),
    ("R-CLU", &[(1, 16)]),
    ("R-EDS", &[(1, 25)]),
    ("GB", &[(5, 13)]),
];

/// Why nothing here decides a rule.
const KINDS: [&str; 4] = ["data path", "transport", "caller", "open"];

fn ids() -> BTreeSet<String> {
    let each = |&(prefix, ranges): &(&str, &[(u32, u32)])| {
        let numbers = ranges.iter().flat_map(|&(first, last)| first..=last);
        numbers.map(|number| format!("{prefix}-{number:02}")).collect::<Vec<_>>()
    };
    IDS.iter().flat_map(each).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).into()
}

/// The rows of the table: the id, and the other cells.
fn rows() -> BTreeMap<String, Vec<String>> {
    let text = fs::read_to_string(root().join("tests/rules.md")).expect("a table");
    let (ids, mut rows) = (ids(), BTreeMap::new());
    for line in text.lines().filter(|line| line.starts_with("| ")) {
        let mut cells = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned());
        let id = cells.next().expect("a cell");
        if id.contains('-') {
            assert!(ids.contains(&id), "{id} is no id");
            assert!(rows.insert(id.clone(), cells.collect()).is_none(), "{id} is there twice");
        }
    }
    let missing: Vec<&String> = ids.iter().filter(|id| !rows.contains_key(*id)).collect();
    assert!(missing.is_empty(), "not there: {missing:?}");
    rows
}

/// The comma-separated items in backticks; `None` for any other cell.
fn names(cell: &str) -> Option<Vec<&str>> {
    cell.split(", ").map(|name| name.strip_prefix('`')?.strip_suffix('`')).collect()
}

/// Returns whether a file has a function: `file.rs::function` or `file::test`.
fn exists(folder: &str, extension: &str, name: &str) -> bool {
    let Some((file, function)) = name.split_once("::") else { return false };
    let text = fs::read_to_string(root().join(folder).join(format!("{file}{extension}"))).unwrap_or_default();
    [format!("fn {function}("), format!("fn {function}<")].iter().any(|start| text.contains(start))
}

fn is_place(name: &str) -> bool {
    exists("src", "", name)
}

fn is_test(name: &str) -> bool {
    exists("tests/grpc", ".rs", name)
}

#[test]
fn every_rule_is_decided_and_shown() {
    let (mut wrong, mut kinds) = (Vec::new(), BTreeMap::new());
    for (id, cells) in rows() {
        let [short, place, shown] = &cells[..] else { panic!("{id}: {} cells", cells.len()) };
        assert!(!short.is_empty(), "{id}: what is it?");
        let kind = match names(place).as_deref() {
            Some([place]) => {
                wrong.extend((!is_place(place)).then(|| format!("{id}: there is no {place}")));
                let tests = names(shown).unwrap_or_else(|| panic!("{id}: {shown} is no list of tests"));
                wrong
                    .extend(tests.iter().filter(|test| !is_test(test)).map(|test| format!("{id}: there is no {test}")));
                "decided"
            }
            Some(places) => panic!("{id}: {} places", places.len()),
            None => {
                let (kind, why) = place.split_once(": ").unwrap_or_default();
                assert!(!why.is_empty() && shown.is_empty(), "{id}: {place}");
                KINDS.into_iter().find(|known| *known == kind).unwrap_or_else(|| panic!("{id}: {place}"))
            }
        };
        *kinds.entry(kind).or_insert(0) += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    kinds.iter().for_each(|(kind, count)| println!("{kind}: {count}"));
}

/// A table with a name that does not exist is refused.
#[test]
fn what_is_not_there_is_found_out() {
    assert!(is_place("domains.rs::best_host") && !is_place("domains.rs::nothing") && !is_place("nothing"));
    assert!(
        is_test("rules::what_is_not_there_is_found_out") && !is_test("rules::nothing") && !is_test("nothing::rows")
    );
    assert_eq!(names("`a`, `b`"), Some(vec!["a", "b"]));
    assert_eq!(names("`a`, b"), None);
}

//! Checks `rules.md`, `specification.md` and `real-bugs.md`: every item is in them once, and every name in them exists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use xds_machine_testing::tables::{self, Ids, decided, has_function, ids, names};

/// The ids of the rules: a prefix, and the first and last number.
const RULES: [Ids; 28] = [
    ("C-STREAM", &[(1, 11)]),
    ("C-SUB", &[(1, 26)]),
    ("C-SOTW", &[(1, 25)]),
    ("C-DELTA", &[(1, 29)]),
    ("C-RES", &[(1, 24)]),
    ("C-ERR", &[(1, 13)]),
    ("C-TIMER", &[(1, 18)]),
    ("C-TTL", &[(1, 14)]),
    ("C-ADS", &[(1, 16), (20, 27)]),
    ("C-RECON", &[(1, 16)]),
    ("C-FB", &[(1, 11)]),
    ("C-NAME", &[(1, 16)]),
    ("C-WARM", &[(1, 4)]),
    ("S-COM", &[(1, 18)]),
    ("S-SOTW", &[(1, 8), (10, 23), (30, 40), (50, 57), (60, 68)]),
    ("S-DELTA", &[(1, 13), (20, 28), (30, 45), (50, 57)]),
    ("S-ADS", &[(1, 8), (10, 11), (20, 25)]),
    ("S-REST", &[(1, 11)]),
    ("R-REST", &[(1, 20), (22, 22), (24, 25), (27, 27), (30, 38), (40, 41), (50, 54)]),
    ("R-FS", &[(1, 4), (6, 16)]),
    ("S-TTL", &[(1, 6)]),
    ("S-ERR", &[(1, 1)]),
    ("S-VER", &[(1, 4)]),
    ("S-FLOW", &[(1, 7)]),
    ("S-MEM", &[(1, 3)]),
    ("S-NACK", &[(1, 2)]),
    ("R-LRS", &[(1, 31), (50, 55), (57, 59), (61, 62)]),
    ("R-CSDS", &[(1, 12), (14, 17), (19, 19), (30, 36)]),
];

/// Rules that were inferred or remembered, and have to be compared with their source.
#[rustfmt::skip]
const INFERRED: [&str; 28] = [
    "C-SUB-03", "C-SUB-05", "C-SUB-08", "C-SOTW-08", "C-SOTW-15", "C-SOTW-16", "C-SOTW-17", "C-SOTW-20", "C-DELTA-07",
    "C-DELTA-25", "C-DELTA-29", "C-RES-02", "C-RES-10", "C-ERR-01", "C-ERR-08", "C-TIMER-14", "C-TTL-07", "C-TTL-11",
    "C-TTL-13", "C-TTL-14", "C-ADS-22", "C-ADS-26", "C-RECON-09", "S-COM-02", "S-SOTW-54", "S-DELTA-09", "S-DELTA-38",
    "S-TTL-06",
];

/// Bugs of real clients, bugs of clients found by reading, bugs of real servers, and bugs of the other layers.
const BUGS: [Ids; 4] = [("R", &[(1, 47)]), ("D", &[(1, 5)]), ("B", &[(1, 42)]), ("L", &[(1, 30)])];

/// The sections of the specification, and the number of sentences in each.
#[rustfmt::skip]
const SENTENCES: [Ids; 28] = [
    ("VARIANT", &[(1, 7)]), ("API", &[(1, 1)]), ("BASIC", &[(1, 13)]), ("VERSION", &[(1, 16)]), ("ACK", &[(1, 5)]),
    ("UPDATE", &[(1, 5)]), ("NAMES", &[(1, 15)]), ("GROUP", &[(1, 4)]), ("TWICE", &[(1, 2)]), ("DELETE", &[(1, 7)]),
    ("ABSENT", &[(1, 7)]), ("UNSUBSCRIBE", &[(1, 3)]), ("SEVERAL", &[(1, 2)]), ("RACE", &[(1, 9)]), ("WARM", &[(1, 5)]),
    ("ORDER", &[(1, 9)]), ("TTL", &[(1, 12)]), ("ADS", &[(1, 4)]), ("DELTA", &[(1, 12)]), ("ALIAS", &[(1, 9)]),
    ("NONE", &[(1, 2)]), ("REQUEST", &[(1, 11)]), ("RESPONSE", &[(1, 8)]), ("DREQUEST", &[(1, 14)]), ("DRESPONSE", &[(1, 6)]),
    ("RESOURCE", &[(1, 8)]), ("FILE", &[(1, 6)]), ("REST", &[(1, 9)]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).into()
}

fn rows(file: &str, ids: &BTreeSet<String>) -> BTreeMap<String, Vec<String>> {
    tables::rows(&root().join("tests/protocol").join(file), ids)
}

/// Returns whether a name is a function of `src/`: `file::function`.
fn is_place(name: &str) -> bool {
    let found = name.split_once("::");
    found.is_some_and(|(file, function)| has_function(&root().join("src").join(file), function))
}

/// Returns whether a name is a story (`client/..`, `server/..`), a unit test (`src/..::test`), or a test
/// (`file::test`).
fn is_test(name: &str) -> bool {
    let Some((file, test)) = name.split_once("::") else {
        return root().join("tests/protocol/scripts").join(format!("{name}.txt")).is_file();
    };
    if file.starts_with("src/") {
        return has_function(&root().join(file), test);
    }
    ["protocol", "api", "orders", "layers"].iter().any(|folder| {
        let path = root().join("tests").join(folder).join(format!("{file}.rs"));
        // A macro makes the tests of regressions.rs.
        let made = fs::read_to_string(&path).unwrap_or_default().contains(&format!("    {test}: "));
        has_function(&path, test) || (file == "regressions" && made)
    })
}

#[test]
fn every_rule_is_decided_and_shown() {
    let (mut wrong, mut kinds) = (Vec::new(), BTreeMap::new());
    for (id, cells) in rows("rules.md", &ids(&RULES)) {
        let (kind, faults) = decided(&id, &cells, &["caller", "driver", "open", "refused"], is_place, is_test);
        wrong.extend(faults);
        *kinds.entry((id[..1].to_string(), kind)).or_insert(0) += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for ((side, kind), count) in kinds {
        let side = match &*side {
            "C" => "client",
            "S" => "server",
            _ => "layers",
        };
        println!("{side} {kind}: {count}");
    }
}

#[test]
fn every_sentence_of_the_specification_is_decided() {
    let (rules, mut wrong) = (rows("rules.md", &ids(&RULES)), Vec::new());
    for (id, cells) in rows("specification.md", &ids(&SENTENCES)) {
        let [says, decided_by, places, shown] = &cells[..] else { panic!("{id}: {} cells", cells.len()) };
        assert!(!says.is_empty(), "{id}: what does it say?");
        if decided_by.is_empty() {
            let (whose, why) = places.split_once(": ").unwrap_or_default();
            assert!(
                ["caller", "driver", "refused"].contains(&whose) && !why.is_empty() && shown.is_empty(),
                "{id}: {places}"
            );
            continue;
        }
        let decided_by: Vec<&Vec<String>> =
            decided_by.split(", ").map(|rule| rules.get(rule).unwrap_or_else(|| panic!("{id}: {rule}?"))).collect();
        let column =
            |at: usize| -> BTreeSet<&str> { decided_by.iter().flat_map(|rule| rule[at].split(", ")).collect() };
        let (of_rules, tests): (BTreeSet<&str>, _) = (column(1), column(2));
        if places.split(", ").collect::<BTreeSet<_>>() != of_rules {
            wrong.push(format!("{id}: decided by {places}, and its rules by {of_rules:?}"));
        }
        let strange = shown.split(", ").find(|test| test.is_empty() || !tests.contains(test));
        wrong.extend(strange.map(|test| format!("{id}: {test:?} shows none of its rules")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_real_bug_has_a_test_or_a_reason_without_one() {
    let (mut wrong, mut played, mut impossible, mut open) = (Vec::new(), 0, 0, 0);
    for (id, cells) in rows("real-bugs.md", &ids(&BUGS)) {
        let [what, here] = &cells[..] else { panic!("{id}: {} cells", cells.len()) };
        assert!(!what.is_empty(), "{id}: what was it?");
        match names(here) {
            Some(tests) => {
                wrong
                    .extend(tests.iter().filter(|test| !is_test(test)).map(|test| format!("{id}: there is no {test}")));
                played += 1;
            }
            None if here.starts_with("open: ") => open += 1,
            None => {
                assert!(here.starts_with("can't: ") && here.len() > 15, "{id}: {here}");
                impossible += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("played: {played}, impossible: {impossible}, open: {open}");
}

#[test]
fn every_inferred_rule_was_checked() {
    let text = fs::read_to_string(root().join("tests/protocol/rules.md")).expect("a table");
    let (_, checked) = text.split_once("## What was inferred").expect("a section");
    let missing: Vec<&&str> = INFERRED.iter().filter(|id| !checked.contains(**id)).collect();
    assert!(missing.is_empty(), "not checked: {missing:?}");
}

/// A table with a name that does not exist is refused.
#[test]
fn names_that_do_not_exist_are_detected() {
    assert!(is_place("client/mod.rs::poll_transmit") && !is_place("client/mod.rs::nothing") && !is_place("nothing"));
    assert!(is_test("client/sotw-node") && !is_test("client/nothing") && !is_test("server/sotw-node"));
    assert!(
        is_test("regressions::a_name_omitted_from_an_ignored_request_is_requested_again")
            && !is_test("regressions::nothing")
            && !is_test("nothing::a_name_omitted_from_an_ignored_request_is_requested_again")
    );
    assert_eq!(names("`a`, `b`"), Some(vec!["a", "b"]));
    assert_eq!(names("`a`, b"), None);
    assert_eq!((ids(&RULES).len(), ids(&SENTENCES).len()), (516, 211));
}

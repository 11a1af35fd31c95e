//! Checks `rules.md`: every rule is in the table once, and every name in the table exists.

use std::collections::BTreeMap;
use std::path::Path;

use xds_machine_testing::tables::{Ids, decided, has_function, ids, rows};

/// The ids of the rules and of the bugs: a prefix, and the first and last number.
const IDS: [Ids; 8] = [
    ("R-BOOT", &[(1, 40)]),
    ("R-CHAIN", &[(1, 49)]),
    ("R-SRV", &[(1, 10)]),
    ("R-LIS", &[(1, 12)]),
    ("R-RTE", &[(1, 23)]),
    ("R-CLU", &[(1, 16)]),
    ("R-EDS", &[(1, 25)]),
    ("GB", &[(1, 15)]),
];

/// The reasons why no function of this crate decides a rule.
const KINDS: [&str; 4] = ["data path", "transport", "caller", "open"];

/// Returns whether a file has a function: `file.rs::function` or `file::test`.
fn exists(folder: &str, extension: &str, name: &str) -> bool {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let found = name.split_once("::");
    found.is_some_and(|(file, function)| has_function(&folder.join(format!("{file}{extension}")), function))
}

fn is_place(name: &str) -> bool {
    exists("src", "", name)
}

fn is_test(name: &str) -> bool {
    exists("tests/grpc", ".rs", name)
}

#[test]
fn every_rule_is_in_the_table_once_and_every_name_in_it_exists() {
    let (mut wrong, mut kinds) = (Vec::new(), BTreeMap::new());
    for (id, cells) in rows(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules.md"), &ids(&IDS)) {
        let (kind, faults) = decided(&id, &cells, &KINDS, is_place, is_test);
        wrong.extend(faults);
        *kinds.entry(kind).or_insert(0) += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    kinds.iter().for_each(|(kind, count)| println!("{kind}: {count}"));
}

/// A table with a name that does not exist is refused.
#[test]
fn a_missing_function_or_test_is_detected() {
    assert!(is_place("domains.rs::best_host") && !is_place("domains.rs::nothing") && !is_place("nothing"));
    assert!(
        is_test("rules::a_missing_function_or_test_is_detected")
            && !is_test("rules::nothing")
            && !is_test("nothing::is_test")
    );
}

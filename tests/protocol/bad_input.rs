//! The tables of `src/bad_input.md`, row by row.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use xds_machine_testing::input::{self, Row};

/// Returns the rows of one of the tables.
fn table(heading: &str) -> BTreeMap<(String, String), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bad_input.md");
    let text = fs::read_to_string(path).expect("the tables");
    let (_, text) = text.split_once(heading).expect("a heading");
    let text = text.split("\n## ").next().unwrap_or_default();
    let mut rows = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [field, input, outcome] = cells[..] else { panic!("{line} is no row") };
        let key = (field.replace('`', ""), input.to_string());
        assert!(rows.insert(key, outcome.to_string()).is_none(), "{line} is there twice");
    }
    rows
}

/// Compares the machines' results with a table: each row is tested, and each test is a row.
fn compare(heading: &str, rows: Vec<Row>) {
    let mut table = table(heading);
    for ((field, input), actual, variant) in &rows {
        let key = (field.to_string(), input.to_string());
        let expected = table.get(&key).unwrap_or_else(|| panic!("{field}, {input}: not in the table"));
        assert_eq!(actual, expected, "{field}, {input} ({variant})");
    }
    for ((field, input), _, _) in &rows {
        table.remove(&(field.to_string(), input.to_string()));
    }
    assert!(table.is_empty(), "not tested: {:?}", table.keys());
}

#[test]
fn requests_have_the_outcomes_of_the_table() {
    compare("## To a server", input::request::rows());
}

#[test]
fn responses_have_the_outcomes_of_the_table() {
    compare("## To a client", input::response::rows());
}

#[test]
fn load_reports_have_the_outcomes_of_the_table() {
    compare("## Load reports, to a collector", input::loads::reports());
}

#[test]
fn responses_to_load_reports_have_the_outcomes_of_the_table() {
    compare("## Answers to load reports, to a reporter", input::loads::answers());
}

/// Checks the messages for the sender and its operator.
#[test]
fn refusal_messages_describe_the_error() {
    let said: Vec<String> = input::request::messages();
    let expected = [
        "peer misbehaved: the first request on a stream must carry a node with an id",
        "peer misbehaved: type_url is required on an aggregated stream",
        "peer misbehaved: request for b on a stream of a",
        "peer misbehaved: type_url of 9 bytes, limit 8",
        "peer misbehaved: more than 2 resource types on one stream",
        "peer misbehaved: empty resource name in a request for a",
        "peer misbehaved: resource name of 9 bytes in a request for a, limit 8",
        "peer misbehaved: 4 subscribed names of a, limit 3",
        "peer misbehaved: 5 subscribed names on one stream, limit 4",
        "peer misbehaved: subscribed names of 17 bytes on one stream, limit 16",
        "peer misbehaved: 3 initial_resource_versions for a, limit 2",
        "peer misbehaved: version of 9 bytes in a message for a, limit 8",
    ];
    assert_eq!(said, expected);
    assert_eq!(input::response::message(), "peer misbehaved: nonce of 9 bytes in a response for a, limit 8");
}

//! Each defect of a shipped implementation is found, by a shortest trace: `seeded_bugs.txt`.

use std::fmt::Write;
use std::path::Path;

use xds_machine_testing::search::explore;

use super::naive::Bug;
use super::world::{Budget, World};

/// `BLESS=1` writes the file. Read it as if you had to repair the bugs with its help.
#[test]
fn each_bug_is_found_by_a_shortest_trace() {
    let n = Budget { listeners: 2, routes: 2, clusters: 3, endpoints: 1, references: 0, late: 1, notes: 2 };
    let rows = [
        ("GB-01", Bug::LeavesShared),
        ("GB-02", Bug::Tears),
        ("GB-03", Bug::ChildFailsAggregate),
        ("GB-14", Bug::DropsErrors),
        ("GB-14", Bug::AllHosts),
        ("GB-15", Bug::TakesLateRoutes),
        ("R-CHAIN-33", Bug::NotesAreErrors),
        ("R-CHAIN-33", Bug::NotesStay),
    ];
    let mut text = String::new();
    for (id, bug) in rows {
        let report = explore(World::new(Some(bug), n), 4_000_000);
        let fault = report.fault.unwrap_or_else(|| panic!("{bug:?} is not found in {} states", report.states));
        let what = fault.what.lines().next().unwrap_or_default();
        let what = what.split(" (").next().unwrap_or_default();
        writeln!(text, "{id} {bug:?}: {what}\n  {} steps: {:?}", fault.trace.len(), fault.trace).expect("room");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/model/seeded_bugs.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).expect("room on the disk");
    }
    assert_eq!(text, std::fs::read_to_string(path).expect("a file"));
}

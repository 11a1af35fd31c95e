//! Each defect of a shipped implementation is found, by a shortest trace.

use xds_machine_testing::search::explore;

use super::naive::Bug;
use super::world::{Budget, World};

#[test]
fn each_bug_is_found_by_a_shortest_trace() {
    let n = Budget { listeners: 2, routes: 2, clusters: 3, endpoints: 1, references: 0, late: 1 };
    let rows = [
        (Bug::LeavesShared, n, 0, ""),        // GB-01
        (Bug::Tears, n, 0, ""),               // GB-02
        (Bug::ChildFailsAggregate, n, 0, ""), // GB-03
        (Bug::DropsErrors, n, 0, ""),         // GB-14
        (Bug::AllHosts, n, 0, ""),            // GB-14
        (Bug::TakesLateRoutes, n, 0, ""),     // GB-15
    ];
    for (bug, budget, steps, what) in rows {
        let report = explore(World::new(Some(bug), budget), 4_000_000);
        let fault = report.fault.unwrap_or_else(|| panic!("{bug:?} is not found in {} states", report.states));
        println!("{bug:?} {} {:?} {}", fault.what, fault.trace, fault.trace.len());
        assert!(fault.what.contains(what), "{bug:?}: {}", fault.what);
        assert_eq!(fault.trace.len(), steps, "{bug:?}: {:?}", fault.trace);
    }
}

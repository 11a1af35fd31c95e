//! The chain in every order of events, within bounds: no fault is found in it, each seeded bug is found by a shortest
//! trace, and two checkers count the same states.

mod model {
    mod cost;
    #[path = "../grpc/chain/naive.rs"]
    mod naive;
    mod play;
    mod random;
    mod second_checker;
    mod seeded_bugs;
    mod subject;
    mod world;

    use std::time::Instant;

    use xds_machine_testing::search::explore;

    use self::world::{Budget, World};

    /// The bounds that CI explores completely.
    const DEFAULT: &[Budget] = &[
        // Two changes of each kind, and the clusters of a small aggregate.
        Budget { listeners: 2, routes: 2, clusters: 2, endpoints: 2, references: 0, late: 1 },
        Budget { listeners: 1, routes: 1, clusters: 4, endpoints: 2, references: 0, late: 0 },
        Budget { listeners: 1, routes: 2, clusters: 2, endpoints: 1, references: 1, late: 0 },
    ];

    #[test]
    fn no_order_of_events_leads_to_a_fault() {
        let goals = explore_all(DEFAULT, true);
        let missed = world::GOALS.iter().enumerate().filter(|(bit, _)| goals & 1 << bit == 0);
        assert_eq!(missed.map(|(_, goal)| goal).collect::<Vec<_>>(), [&""; 0], "not reached");
    }

    /// The deep check: `cargo test --release -p xds-machine-grpc --test model -- --ignored --nocapture`.
    #[test]
    #[ignore = "takes minutes"]
    fn deep() {
        let budgets = [
            Budget { listeners: 2, routes: 3, clusters: 4, endpoints: 2, references: 0, late: 1 },
            Budget { listeners: 1, routes: 2, clusters: 4, endpoints: 3, references: 1, late: 0 },
            Budget { listeners: 3, routes: 3, clusters: 2, endpoints: 2, references: 1, late: 1 },
        ];
        explore_all(&budgets, false);
    }

    /// Explores each budget, completely or up to four million states. Returns the goals that were reached.
    fn explore_all(budgets: &[Budget], completely: bool) -> u128 {
        let mut goals = 0;
        for &budget in budgets {
            let start = Instant::now();
            let report = explore(World::new(None, budget), 4_000_000);
            let (states, settled, time) = (report.states, report.settled, start.elapsed());
            println!("{budget:?}: {states} states, {settled} settled, complete: {}, {time:?}", report.complete);
            if let Some(fault) = report.fault {
                panic!("{}\n{:#?}", fault.what, fault.trace);
            }
            assert!(report.complete || !completely, "cut off");
            goals |= report.goals;
        }
        goals
    }
}

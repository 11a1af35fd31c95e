//! Random walks of our machines beside peers that follow the specification literally. `simulate letter` continues the
//! walks.

use xds_machine_testing::letter;

#[test]
fn random_walks_with_naive_peers_find_no_fault() {
    for seed in 0..WALKS {
        if let Err(found) = letter::walk(seed) {
            panic!("walk {seed}: {:?}\n{}", found.fault, letter::explain(seed));
        }
    }
}

/// The seeds differ from those of a long run.
const WALKS: u64 = 50_000;

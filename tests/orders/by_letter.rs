//! Our machines beside peers that take the specification by the letter, at random. `simulate letter` walks on.

use xds_machine_testing::letter;

#[test]
fn walks_beside_naive_peers() {
    for seed in 0..WALKS {
        if let Err(found) = letter::walk(seed) {
            panic!("walk {seed}: {:?}\n{}", found.fault, letter::explain(seed));
        }
    }
}

/// With other seeds than those of a long run.
const WALKS: u64 = 5_000;

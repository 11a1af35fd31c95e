//! Properties of any sequence of steps. `PROPTEST_CASES=10000 cargo test --release --test worlds properties` goes
//! deeper.
//!
//! A failing case is shrunk, and printed as steps or bytes; described in words it belongs in `regressions.rs`.

mod story;
mod streams;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use xds_machine::{Delta, Sotw};

use xds_machine_testing::hostile;

/// The default number of cases, which is that of proptest.
const CASES: u32 = 256;

/// Returns a configuration. A run with the default number of cases has a fixed seed, so that the tests of one commit
/// have one result; a deeper run has a new seed each time, or the one that `PROPTEST_RNG_SEED` names.
fn config(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let rng_seed = if default.cases == CASES { RngSeed::Fixed(1) } else { default.rng_seed };
    let cases = default.cases * cases / CASES;
    ProptestConfig { cases, rng_seed, failure_persistence: None, max_shrink_iters: 20_000, ..default }
}

/// Returns the configuration for stories. A story shrinks itself, because proptest would shrink the bytes of its steps.
fn stories() -> ProptestConfig {
    ProptestConfig { max_shrink_iters: 0, ..config(64) }
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..1500)
}

proptest! {
    #![proptest_config(stories())]

    /// Checks the world after each of 100 to 1,000 steps, and at rest.
    #[test]
    fn worlds_converge_over_sotw(story in story::story::<Sotw>()) {
        story.play();
    }

    #[test]
    fn worlds_converge_over_delta(story in story::story::<Delta>()) {
        story.play();
    }

    /// The same inputs make the same outputs, to the byte; the seed of a hash table is no input.
    #[test]
    fn worlds_are_deterministic_over_sotw(story in story::story::<Sotw>(), seed in any::<u64>()) {
        story.play_twice(seed);
    }

    #[test]
    fn worlds_are_deterministic_over_delta(story in story::story::<Delta>(), seed in any::<u64>()) {
        story.play_twice(seed);
    }
}

proptest! {
    #![proptest_config(config(256))]

    /// A refused input changes nothing (`hostile` compares with a copy after each), and nothing panics.
    #[test]
    fn a_client_survives_a_hostile_sotw_server(data in bytes()) {
        hostile::client::play::<Sotw>(&data);
    }

    #[test]
    fn a_client_survives_a_hostile_delta_server(data in bytes()) {
        hostile::client::play::<Delta>(&data);
    }

    #[test]
    fn a_server_survives_a_hostile_sotw_client(data in bytes()) {
        hostile::server::play::<Sotw>(&data);
    }

    #[test]
    fn a_server_survives_a_hostile_delta_client(data in bytes()) {
        hostile::server::play::<Delta>(&data);
    }

    /// Streams of one store do not affect each other.
    #[test]
    fn two_sotw_streams_do_not_affect_each_other(data in bytes()) {
        streams::check::<Sotw>(&data);
    }

    #[test]
    fn two_delta_streams_do_not_affect_each_other(data in bytes()) {
        streams::check::<Delta>(&data);
    }
}

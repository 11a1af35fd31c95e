//! Properties of any sequence of steps. `PROPTEST_CASES=10000 cargo test --release --test worlds properties` goes deeper.
//!
//! A failing case is shrunk, and printed as steps or bytes; described in words it belongs in `regressions.rs`.

mod story;
mod streams;

use proptest::collection::vec;
use proptest::prelude::*;
use xds_machine::{Delta, Sotw};

use xds_machine_testing::hostile;

fn config(cases: u32) -> ProptestConfig {
    let cases = ProptestConfig::default().cases * cases / 256; // the default is 256, or what PROPTEST_CASES says
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 20_000, ..ProptestConfig::default() }
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..1500)
}

proptest! {
    #![proptest_config(config(64))]

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
    fn a_hostile_sotw_server(data in bytes()) {
        hostile::client::play::<Sotw>(&data);
    }

    #[test]
    fn a_hostile_delta_server(data in bytes()) {
        hostile::client::play::<Delta>(&data);
    }

    #[test]
    fn a_hostile_sotw_client(data in bytes()) {
        hostile::server::play::<Sotw>(&data);
    }

    #[test]
    fn a_hostile_delta_client(data in bytes()) {
        hostile::server::play::<Delta>(&data);
    }

    /// Streams of one store do not affect each other.
    #[test]
    fn two_sotw_streams_are_as_two_alone(data in bytes()) {
        streams::check::<Sotw>(&data);
    }

    #[test]
    fn two_delta_streams_are_as_two_alone(data in bytes()) {
        streams::check::<Delta>(&data);
    }
}

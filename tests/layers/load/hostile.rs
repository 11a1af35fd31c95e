//! Peers without rules.

use proptest::prelude::*;
use xds_machine_testing::hostile::load;

proptest! {
    #[test]
    fn a_reporter_survives_any_server(data in proptest::collection::vec(any::<u8>(), 0..400)) {
        load::reporter(&data);
    }

    #[test]
    fn a_collector_survives_any_client(data in proptest::collection::vec(any::<u8>(), 0..400)) {
        load::collector(&data);
    }
}

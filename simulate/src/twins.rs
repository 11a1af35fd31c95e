//! Runs of twins: a world, and the same world without other types or names.

use xds_machine::{ResourceName, type_url};
use xds_machine_testing::random::Random;
use xds_machine_testing::world::apart::{self, Kept};
use xds_machine_testing::world::{Both, Budget, Setup};

use crate::run;

/// The number of turns of one run.
const TURNS: usize = 300;

/// Draws a world in which something can be left out. Clusters wait for nothing but for their removal, so they are not
/// removed beside other types.
fn draw<V: Both>(random: &mut Random) -> (Setup, Kept) {
    let setup = run::setup::<V>(random);
    let selects = |name: &str| name.ends_with('*') || name.starts_with(['~', '!']);
    let plain = |name: &ResourceName| name.is_wildcard() || !selects(name.as_str());
    let names = setup.names.iter().filter(|name| plain(name)).cloned().collect();
    let budget = Budget { seconds: 0, passes: 250, ..setup.budget };
    let setup = Setup { clients: 1, limit: None, tombstones: 10_000, hold: false, warms: false, room: false, ..setup };
    let setup = Setup { recorded: false, names, slow_transport: false, unknown: false, ..setup };
    match setup.types.iter().position(|url| *url == type_url::CLUSTER) {
        Some(t) if setup.types.len() > 1 => (Setup { budget: Budget { deletes: 0, ..budget }, ..setup }, Kept::Type(t)),
        _ => {
            let names = setup.names.iter().map(|name| name.as_str()).collect::<Vec<_>>();
            let make = if setup.full_state { Setup::full_state } else { Setup::partial };
            let response_limit = setup.response_limit;
            (Setup { response_limit, ..make(&names, budget) }, Kept::Name(0))
        }
    }
}

/// Plays a run. Panics if something that is left out makes a difference.
pub fn play<V: Both>(mut random: Random) {
    let (setup, kept) = draw::<V>(&mut random);
    if let Some((_, what)) = apart::walk::<V>(&setup.make(), kept, random.0, TURNS) {
        panic!("{what}");
    }
}

/// Plays a failed run again, and prints the turns that its difference needs.
pub fn explain<V: Both>(mut random: Random) {
    let (setup, kept) = draw::<V>(&mut random);
    let setup = setup.make();
    if let Some((turns, what)) = apart::walk::<V>(&setup, kept, random.0, TURNS) {
        println!("{:?}\n{what}\n{:?}", setup.setup, apart::shrink::<V>(&setup, kept, turns));
    }
}

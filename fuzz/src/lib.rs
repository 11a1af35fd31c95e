//! The bodies of the fuzz targets, as plain functions: a panic is a find. The alphabet is that of all engines,
//! `xds_machine_testing::world`; hostile peers are in `xds_machine_testing::hostile`.

mod chain;
mod csds;
mod grpc;
mod variants;
mod wire;
mod worlds;

use std::hint::black_box;

use benches::alloc;
use xds_machine::{Delta, Sotw};
use xds_machine_testing::hostile;

pub use self::chain::chain;
pub use self::csds::csds;
pub use self::grpc::{bootstrap, resources};
pub use self::variants::variants;
pub use self::wire::wire;
pub use self::worlds::world;

#[global_allocator]
static COUNTING: alloc::Counting = alloc::Counting;

/// Accepts any bytes, and panics on a find.
pub type Target = fn(&[u8]);

/// The targets by name. A corpus has the name of its target.
pub const TARGETS: [(&str, Target); 11] = [
    ("world", world),
    ("client", client),
    ("server", server),
    ("wire", wire),
    ("variants", variants),
    ("csds", csds),
    ("poll", poll),
    ("load", load),
    ("bootstrap", bootstrap),
    ("resources", resources),
    ("chain", chain),
];

/// Plays a server that follows no rule against a client machine.
pub fn client(data: &[u8]) {
    let Some((&which, data)) = data.split_first() else { return };
    if which % 2 == 0 {
        bounded(CLIENT_BYTES, || hostile::client::play::<Sotw>(data));
    } else {
        bounded(CLIENT_BYTES, || hostile::client::play::<Delta>(data));
    }
}

/// Plays a client that follows no rule against a server machine.
pub fn server(data: &[u8]) {
    let Some((&which, data)) = data.split_first() else { return };
    if which % 2 == 0 {
        bounded(SERVER_BYTES, || hostile::server::play::<Sotw>(data));
    } else {
        bounded(SERVER_BYTES, || hostile::server::play::<Delta>(data));
    }
}

/// Plays a server without rules against a poll and a file, and polls without rules against a source.
pub fn poll(data: &[u8]) {
    bounded(CLIENT_BYTES, || hostile::poll::play(data));
}

/// Plays load reports: bytes as messages, a reporter against any server, and a collector against any client.
pub fn load(data: &[u8]) {
    let Some((&which, data)) = data.split_first() else { return };
    match which % 4 {
        0 => wire::load_request(data),
        1 => wire::load_response(data),
        2 => bounded(SERVER_BYTES, || hostile::load::reporter(data)),
        _ => bounded(SERVER_BYTES, || hostile::load::collector(data)),
    }
}

/// The bytes that a machine may hold at the end, with the small limits of the hostile plays: a few times the maximum of
/// all runs, and far less than a leak of a few bytes per message adds up to in a long run.
const CLIENT_BYTES: u64 = 128 << 10;
const SERVER_BYTES: u64 = 64 << 10;

fn bounded<T>(most: u64, play: impl FnOnce() -> T) {
    let before = alloc::live();
    let machine = black_box(play());
    let held = alloc::live().saturating_sub(before);
    drop(machine);
    if std::env::var_os("SHOW_HELD").is_some() {
        println!("{held} bytes held");
    }
    assert!(held <= most, "{held} bytes are held at the end, limit {most}");
}

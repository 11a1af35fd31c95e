//! The peers, and the work that each does.

use crate::cell::Cell;

/// The peer that all others are compared with.
pub const OURS: &str = "xds-machine";

/// A peer: its name here, the crates that it consists of, its program in this workspace, and what it does.
#[derive(Debug)]
pub struct Peer {
    pub name: &'static str,
    pub crates: &'static [&'static str],
    pub program: &'static str,
    works: &'static [&'static str],
}

/// The work of servers and of clients.
const SERVER: &[&str] = &["sync", "push", "full", "idle", "probe"];
const CLIENT: &[&str] = &["all", "named", "names", "turns", "client probe"];

pub const PEERS: &[Peer] = &[
    Peer { name: OURS, crates: &["xds-machine"], program: "ours", works: SERVER },
    Peer { name: OURS, crates: &["xds-machine"], program: "ours-client", works: CLIENT },
    Peer { name: "bare transport", crates: &[], program: "bare-client", works: &["all"] },
    Peer { name: "rime-xds", crates: &["rime-xds"], program: "peer-rime", works: SERVER },
    Peer { name: "nebucloud", crates: &["xds-server", "xds-cache"], program: "peer-nebucloud", works: SERVER },
    Peer { name: "quilkin-xds", crates: &["quilkin-xds"], program: "peer-quilkin", works: SERVER },
    Peer { name: "xds-client", crates: &["xds-client"], program: "peer-xds-client", works: CLIENT },
];

impl Peer {
    pub fn does(&self, cell: &Cell) -> bool {
        self.works.contains(&cell.work)
    }
}

/// Returns the names of all work.
pub fn works() -> Vec<&'static str> {
    [SERVER, CLIENT].concat()
}

const RESOURCES: [usize; 3] = [1000, 10_000, 100_000];
const STREAMS: [usize; 3] = [1, 100, 1000];

/// Returns all pieces of work, the small ones first.
pub fn cells(small: bool) -> Vec<Cell> {
    let sizes = if small { &RESOURCES[..2] } else { &RESOURCES };
    let streams = if small { &STREAMS[..2] } else { &STREAMS };
    let mut cells = vec![Cell { work: "probe", shown: "probe", n: 0, s: 0 }];
    let each = |work, shown, s| sizes.iter().map(move |&n| Cell { work, shown, n, s });
    let many = |work, shown| sizes.iter().flat_map(move |&n| streams.iter().map(move |&s| Cell { work, shown, n, s }));
    cells.extend(each("sync", "first sync", 1));
    cells.extend(many("push", "delta change"));
    cells.extend(many("full", "SotW change"));
    cells.extend(each("idle", "idle stream", 100));
    cells.push(Cell { work: "client probe", shown: "probe", n: 0, s: 0 });
    cells.extend(each("all", "response, wildcard", 1));
    cells.extend(each("named", "response, all named", 1));
    cells.extend(each("names", "names, one by one", 1));
    cells.extend(each("turns", "names, a turn each", 1));
    cells
}

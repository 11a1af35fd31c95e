//! The figures F1 to F12; P1, polls over REST; H1, the worst requests of a client; L1 and L2, load reports; C1, the
//! status of clients; G1, the configuration of a gRPC target; E1 to E9, the whole program; and the limits that they
//! must keep.

use xds_machine::{Delta, Sotw};

use crate::data::{cache, clusters, delta_response, sotw_response};
use crate::e2e;
use crate::floor::{Decode, Encode, EncodeNew};
use crate::measure::{Cold, Nothing, Row, Work};
use crate::work::{
    Add, Change, DecodeEndpoints, EVENTS, Endpoint, FirstSync, FullResponse, FullState, FurtherSync, Hostile, LookUp,
    LookUps, NAMES, Named, NamedPoll, NotModified, OneByOne, OneChange, Poll, Reconnect, Stale, Status, Timeout, all,
    all_names, idle_entry, idle_stream, names, store,
};

/// A limit and the measured value.
#[derive(Clone, Debug)]
pub struct Check {
    pub what: String,
    pub value: f64,
    pub limit: f64,
    /// The limit is a minimum instead of a maximum.
    pub least: bool,
}

impl Check {
    pub(crate) fn most(what: impl Into<String>, value: f64, limit: f64) -> Self {
        Self { what: what.into(), value, limit, least: false }
    }

    fn least(what: impl Into<String>, value: f64, limit: f64) -> Self {
        Self { least: true, ..Self::most(what, value, limit) }
    }

    pub fn holds(&self) -> bool {
        if self.least { self.value >= self.limit } else { self.value <= self.limit }
    }
}

/// The measurements of a figure, and their limits.
pub type Figure = (Vec<Row>, Vec<Check>);

/// Measures one figure.
pub type Measure = fn() -> Figure;

/// All figures.
pub const FIGURES: [(&str, Measure); 27] = [
    ("F1", f1),
    ("F2", f2),
    ("F3", f3),
    ("F4", f4),
    ("F5", f5),
    ("F6", f6),
    ("F7", f7),
    ("F8", f8),
    ("F9", f9),
    ("F10", f10),
    ("F11", f11),
    ("F12", f12),
    ("P1", p1),
    ("H1", h1),
    ("C1", c1),
    ("G1", g1),
    ("L1", l1),
    ("L2", l2),
    ("E1", e2e::e1),
    ("E2", e2e::e2),
    ("E3", e2e::e3),
    ("E4", e2e::e4),
    ("E5", e2e::e5),
    ("E6", e2e::e6),
    ("E7", e2e::e7),
    ("E8", e2e::e8),
    ("E9", e2e::e9),
];

const N: usize = 100_000;

/// Measures one change of N resources that S streams receive, beside one encoding of all resources.
pub fn one_change(workload: &'static str, n: usize, s: usize, floor: &mut impl Work) -> Row {
    let times = (1000 / s).max(1);
    let mut work = OneChange::repeated(n, s, times);
    let changes = work.prepare();
    let bytes = work.run(changes) as f64 / times as f64;
    Row { bytes, ..Row::new(workload, n, s, 1).timed_each(15, times, &mut work, floor) }
}

/// Returns the floor of a response with all resources.
pub fn encode_all(n: usize) -> Encode<crate::floor::DeltaResponse> {
    let types = clusters();
    Encode::new(delta_response(&cache(&types, n), &types))
}

fn f1() -> Figure {
    let mut floor = encode_all(N);
    let rows = [N, N / 10].map(|n| one_change("F1", n, 1000, &mut floor));
    let checks = [
        Check::most("F1: of one encoding of all", rows[0].ratio, 0.1),
        Check::least("F1: N = 10k takes so much of N = 100k", rows[1].ns / rows[0].ns, 0.7),
    ];
    (rows.into(), checks.into())
}

fn f2() -> Figure {
    let row = one_change("F2", N, 1, &mut encode_all(N));
    let check = Check::most("F2: of one encoding of all", row.ratio, 0.0005);
    ([row].into(), [check].into())
}

fn f3() -> Figure {
    let rows = [N, N / 100].map(|n| idle_stream(n, 1000));
    let checks = [
        Check::most("F3: bytes of an idle stream", rows[0].bytes, 900.0),
        Check::most("F3: bytes more than at N = 1k", rows[0].bytes - rows[1].bytes, 0.0),
    ];
    (rows.into(), checks.into())
}

fn f4() -> Figure {
    let row = names(N / 10);
    let check = Check::most("F4: bytes a name", row.bytes, 32.0);
    ([row].into(), [check].into())
}

/// Measures F5 of any size.
pub fn first_sync(n: usize, rounds: usize) -> [Row; 2] {
    let mut further = FurtherSync::new(n);
    let stored = cache(&clusters(), n);
    let floor = EncodeNew(|| delta_response(&stored, &clusters()));
    // Both start cold, because their preparations differ in size and would leave different amounts in a cache.
    let first = Row::new("F5 first", n, 1, 0).timed(rounds, &mut Cold::new(FirstSync::new(n)), &mut Cold::new(floor));
    let bytes = further.run(()) as f64;
    let further = Row::new("F5 further", n, 1, 0).timed(101, &mut further, &mut encode_all(n));
    [Row { bytes, ..first }, Row { bytes, ..further }]
}

fn f5() -> Figure {
    let rows = first_sync(N, 15);
    let checks = [
        Check::most("F5: the first stream, of one encoding", rows[0].ratio, 1.0),
        Check::most("F5: each further stream, of one encoding", rows[1].ratio, 0.01),
    ];
    (rows.into(), checks.into())
}

fn f6() -> Figure {
    let mut work = Reconnect::new(N);
    let mut floor = Decode::new(&work.floor());
    let row = Row::new("F6", N, 1, 0).timed(9, &mut work, &mut floor);
    let check = Check::most("F6: of decoding the request", row.ratio, 0.5);
    ([row].into(), [check].into())
}

fn f7() -> Figure {
    const S: usize = 100;
    let mut first = FullState::new(N, S, false);
    let mut floor = Encode::new(sotw_response(first.cache(), &clusters()));
    let first = Row::new("F7 first", N, S, 1).timed(15, &mut first, &mut floor);
    let mut further = FullState::new(N, S, true);
    let further = Row::new("F7 further", N, S, 1).timed_each(15, S - 1, &mut further, &mut floor);
    let checks = [
        Check::most("F7: the first stream, of one encoding", first.ratio, 1.0),
        Check::most("F7: each further stream, of one encoding", further.ratio, 0.01),
    ];
    ([first, further].into(), checks.into())
}

fn f8() -> Figure {
    let measure = |names: usize| {
        let mut floor = Decode::new(&all_names(names));
        let row = |workload| Row::new(workload, names, 1, 1);
        [
            row("F8 delta +1").timed_each(15, EVENTS, &mut Named::<Delta>::new(names, Change::Name), &mut floor),
            row("F8 delta change").timed_each(
                15,
                EVENTS,
                &mut Named::<Delta>::new(names, Change::Resource),
                &mut floor,
            ),
            row("F8 sotw +1").timed_each(15, EVENTS, &mut Named::<Sotw>::new(names, Change::Name), &mut floor),
            row("F8 sotw change").timed_each(15, EVENTS, &mut Named::<Sotw>::new(names, Change::Resource), &mut floor),
        ]
    };
    let (few, many) = (measure(N / 100), measure(N / 10));
    // Deeper trees and colder caches add some cost: ten times as many names may take twice as long, but not ten times.
    let checks = [
        Check::most("F8: delta, +1 name: of the time at 1k names", many[0].ns / few[0].ns, 2.0),
        Check::most("F8: delta, 1 changed: of the time at 1k names", many[1].ns / few[1].ns, 2.0),
        Check::most("F8: SotW, +1 name: of decoding the request", many[2].ratio, 5.0),
        Check::most("F8: SotW, 1 changed: of decoding the request", many[3].ratio, 5.0),
    ];
    (few.into_iter().chain(many).collect(), checks.into())
}

fn f9() -> Figure {
    let mut work = FullResponse::from_message(N);
    let mut floor = Decode::new(&all(N, 0));
    let machine = Row::new("F9", N, 1, 1).timed(15, &mut work, &mut floor);
    let all = Row::new("F9 with decoding", N, 1, 1).timed(15, &mut FullResponse::from_bytes(N), &mut floor);
    let checks = [
        Check::most("F9: of decoding the response, on top of that", machine.ratio, 1.0),
        Check::most("F9: from bytes to ACK, of decoding", all.ratio, 2.0),
    ];
    ([machine, all].into(), checks.into())
}

fn f10() -> Figure {
    let rows = [N / 10, N / 100].map(|names| {
        let mut work = OneByOne::new(names);
        let mut floor = Encode::new(work.floor());
        Row::new("F10", names, 1, 0).timed(21, &mut work, &mut floor)
    });
    let checks = [
        Check::most("F10: of encoding the one request", rows[0].ratio, 10.0),
        Check::most("F10: of the time for a tenth of the names", rows[0].ns / rows[1].ns, 15.0),
    ];
    (rows.into(), checks.into())
}

fn f11() -> Figure {
    let measure = |names: usize| {
        let mut floor = Decode::new(&all_names(names));
        let times = crate::work::TIMES;
        let row = |workload| Row::new(workload, names, 1, 0);
        [
            row("F11 poll").timed_each(9, times, &mut Poll::new(names), &mut floor),
            row("F11 timeout").timed_each(9, times, &mut Timeout::new(names), &mut floor),
            row("F11 stale").timed(99, &mut Stale::new(names), &mut floor),
        ]
    };
    let (few, many) = (measure(N / 100), measure(N / 10));
    let checks = [
        Check::most("F11: allocations with nothing to say", many[0].allocs, 0.0),
        Check::most("F11: allocations of a time-out that is not due", many[1].allocs, 0.0),
        Check::most("F11: allocations of a stale request", many[2].allocs, 0.0),
        Check::most("F11: nothing to say: of the time at 1k names", many[0].ns / few[0].ns, 2.0),
        Check::most("F11: a stale request: of the time at 1k names", many[2].ns / few[2].ns, 15.0),
    ];
    (few.into_iter().chain(many).collect(), checks.into())
}

fn l1() -> Figure {
    let n = N / 10;
    let row = Row::new("L1", n, 0, 0).timed(99, &mut Add::new(n), &mut LookUp::new(n));
    let check = Check::most("L1: a call among 10k entries, of a look-up in a map of as many", row.ratio, 3.0);
    ([row].into(), [check].into())
}

fn l2() -> Figure {
    let row = idle_entry(N / 10);
    let check = Check::most("L2: bytes of an idle entry with one locality, without names", row.bytes, 400.0);
    ([row].into(), [check].into())
}

/// Polls over REST: one for all resources that is answered "not modified", and one for ten thousand names.
fn p1() -> Figure {
    let times = crate::work::TIMES;
    let all = |n: usize| {
        Row::new("P1 not modified, all", n, 1, 0).timed_each(9, times, &mut NotModified::new(n), &mut Nothing)
    };
    let (few, many) = (all(N / 100), all(N));
    let row = Row::new("P1 not modified, 10k names", N, 1, 0);
    let named = row.timed(99, &mut NamedPoll::new(N, N / 10), &mut LookUps::new(N, N / 10));
    let checks = [
        Check::most("P1: a poll for all: of the time at 1k resources", many.ns / few.ns, 1.5),
        Check::most("P1: a poll for 10k names: of looking them up", named.ratio, 1.5),
    ];
    (vec![few, many, named], checks.into())
}

fn f12() -> Figure {
    let rows = store(N);
    let checks = [
        Check::most("F12: of the bytes of names and bodies", rows[0].ratio, 3.0),
        Check::most("F12: what is memoised, of the encodings", rows[1].ratio, 2.0),
    ];
    (rows.into(), checks.into())
}

fn c1() -> Figure {
    let row = |workload, status: fn(usize) -> Status| {
        let message = status(N).floor();
        Row::new(workload, N, 1, 0).timed(15, &mut status(N), &mut EncodeNew(|| message.clone()))
    };
    let rows = [row("C1 dump", Status::dump), row("C1 view", Status::view)];
    let checks = [
        Check::most("C1: the dump of a client and its bytes, of encoding it", rows[0].ratio, 1.5),
        // The items of the view are copies: the streams of one node are compared after their machines are unlocked.
        Check::most("C1: the view of a stream and its bytes, of encoding it", rows[1].ratio, 3.5),
    ];
    (rows.into(), checks.into())
}

fn g1() -> Figure {
    let row = |n| Row::new("G1", n, 1, 1).timed(4000, &mut Endpoint::new(n), &mut DecodeEndpoints);
    let rows = [10_000, 10].map(row);
    let check = Check::most("G1: endpoints change among 10k clusters: of decoding them", rows[0].ratio, 20.0);
    (rows.into(), [check].into())
}

/// Measures H1: four times the names may take four times as long, and a little more for the depth of trees, but not
/// sixteen times.
fn h1() -> Figure {
    fn pair<W: Work>(workload: &'static str, work: impl Fn(usize) -> W) -> ([Row; 2], Check) {
        // Cold, because a cache could hold a small request since its preparation, but not a large one.
        let timed = |n| Row::new(workload, n, 1, 0).timed(6, &mut Cold::new(work(n)), &mut Nothing);
        let [quarter, all] = [NAMES / 4, NAMES].map(timed);
        let growth = all.ns / quarter.ns;
        let rows =
            [Row { floor_ns: 0.0, ratio: 0.0, ..quarter.clone() }, Row { floor_ns: quarter.ns, ratio: growth, ..all }];
        (rows, Check::most(format!("{workload}: of the time for a quarter of the names"), growth, 8.0))
    }
    let pairs = [
        pair("H1 sotw, new names", Hostile::new_names),
        pair("H1 sotw, other names", Hostile::other_names),
        pair("H1 delta, new names", Hostile::new_names_delta),
        pair("H1 delta, claims", Hostile::claims),
        pair("H1 delta, come and go", Hostile::come_and_go),
    ];
    let (rows, checks): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    (rows.into_iter().flatten().collect(), checks)
}

//! Cost against the number of resources and of streams: `cargo xtask scaling` makes a table and a plot of it.

use benches::alloc;
use benches::figures::{first_sync, one_change};
use benches::measure::{Nothing, Row, Work};
use benches::work::{FirstSync, FurtherSync, idle_stream};

#[global_allocator]
static COUNTING: alloc::Counting = alloc::Counting;

const RESOURCES: [usize; 7] = [1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000];
const STREAMS: [usize; 9] = [1, 3, 10, 30, 100, 300, 1000, 3000, 10_000];

/// The value of one number while the other varies.
const N: usize = 100_000;
const S: usize = 1000;

fn main() {
    alloc::keep();
    let sizes = || RESOURCES.map(|n| (n, S)).into_iter().chain(STREAMS.map(|s| (N, s)));
    for (n, s) in sizes() {
        print(one_change("F1", n, s, &mut Nothing));
    }
    for (n, s) in sizes() {
        print(idle_stream(n, s));
    }
    for n in RESOURCES {
        let rounds = if n > N { 3 } else { 9 };
        first_sync(n, rounds).into_iter().for_each(print);
    }
    for s in STREAMS {
        let mut work = Sync { first: FirstSync::new(N), further: FurtherSync::new(N), s };
        print(Row::new("F5 all", N, s, 0).timed(3, &mut work, &mut Nothing));
    }
}

fn print(row: Row) {
    println!("{}", row.json());
}

/// F5 with all streams: the first one, which pays for the encoding, and the others.
struct Sync {
    first: FirstSync,
    further: FurtherSync,
    s: usize,
}

impl Work for Sync {
    type Input = <FirstSync as Work>::Input;
    type Output = <FirstSync as Work>::Output;

    fn prepare(&mut self) -> Self::Input {
        self.first.prepare()
    }

    fn run(&mut self, cache: Self::Input) -> Self::Output {
        let all = self.first.run(cache);
        (1..self.s).for_each(|_| _ = self.further.run(()));
        all
    }
}

//! The workloads of F1 to F11 and their floors, for people: `cargo bench -p benches [FILTER]`.
//! (`cargo xtask bench-json` measures the memory of F3, F4 and F12.)

use benches::data::{cache, clusters, delta_response, sotw_response};
use benches::floor::{Decode, Encode, EncodeNew};
use benches::measure::Work;
use benches::work::{
    Change, FirstSync, FullResponse, FullState, FurtherSync, Named, OneByOne, OneChange, Poll, Reconnect, Stale,
    Timeout, all, all_names,
};
use divan::Bencher;
use xds_machine::{Delta, Sotw};

const N: usize = 100_000;

fn main() {
    divan::main();
}

fn run<W: Work>(bencher: Bencher<'_, '_>, work: W) {
    let work = std::cell::RefCell::new(work);
    bencher.with_inputs(|| work.borrow_mut().prepare()).bench_local_values(|input| work.borrow_mut().run(input));
}

/// Declares a group: its workloads, and the floor last.
macro_rules! figure {
    ($figure:ident: $($name:ident = $work:expr),+) => {
        #[divan::bench_group(sample_size = 1, sample_count = 20)]
        mod $figure {
            use super::*;
            $(
                #[divan::bench]
                fn $name(bencher: Bencher<'_, '_>) {
                    run(bencher, $work);
                }
            )+
        }
    };
}

fn encode_delta() -> impl Work {
    Encode::new(delta_response(&cache(&clusters(), N), &clusters()))
}

fn encode_sotw() -> impl Work {
    Encode::new(sotw_response(&cache(&clusters(), N), &clusters()))
}

figure!(f1: of_100k = OneChange::new(N, 1000), of_10k = OneChange::new(N / 10, 1000), floor = encode_delta());
figure!(f2: one_stream = OneChange::new(N, 1), floor = encode_delta());
figure!(f5: first = FirstSync::new(N), further = FurtherSync::new(N), floor = {
    let stored = cache(&clusters(), N);
    EncodeNew(move || delta_response(&stored, &clusters()))
});
figure!(f6: reconnect = Reconnect::new(N), floor = Decode::new(&Reconnect::new(N).floor()));
figure!(f7: first = FullState::new(N, 100, false), others = FullState::new(N, 100, true), floor = encode_sotw());
figure!(f8:
    delta_ten_names = Named::<Delta>::new(N / 10, Change::Name),
    delta_ten_changes = Named::<Delta>::new(N / 10, Change::Resource),
    sotw_ten_names = Named::<Sotw>::new(N / 10, Change::Name),
    sotw_ten_changes = Named::<Sotw>::new(N / 10, Change::Resource),
    floor = Decode::new(&all_names(N / 10))
);
figure!(f9:
    from_message = FullResponse::from_message(N), from_bytes = FullResponse::from_bytes(N),
    floor = Decode::new(&all(N, 0))
);
figure!(f10: one_by_one = OneByOne::new(N / 10), floor = Encode::new(OneByOne::new(N / 10).floor()));
figure!(f11:
    poll_a_thousand_times = Poll::new(N / 10), timeout_a_thousand_times = Timeout::new(N / 10),
    stale = Stale::new(N / 10)
);

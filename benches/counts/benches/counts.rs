//! The workloads, once each, and their floors. The workloads are small, because the counts are exact and valgrind is
//! slow.

use std::hint::black_box;

use benches::data::{cache, clusters, delta_response};
use benches::floor::{Decode, DeltaResponse, Encode, SotwRequest, SotwResponse};
use benches::measure::Work;
use benches::work::{Change, FirstSync, FullResponse, Named, OneChange, Poll, Stale, Timeout, all, all_names};
use gungraun::{library_benchmark, library_benchmark_group, main};
use xds_machine::Delta;

const N: usize = 10_000;

/// Returns work after its first round, and the input of the next.
fn warm<W: Work>(mut work: W) -> (W, W::Input) {
    let input = work.prepare();
    work.run(input);
    let input = work.prepare();
    (work, input)
}

/// Runs a round. The returned values are dropped when counting has ended.
fn round<W: Work>((mut work, input): (W, W::Input)) -> (W, W::Output) {
    let output = black_box(work.run(black_box(input)));
    (work, output)
}

fn encode_all() -> Encode<DeltaResponse> {
    let types = clusters();
    Encode::new(delta_response(&cache(&types, N), &types))
}

fn decode_all() -> Decode<SotwResponse> {
    Decode::new(&all(N, 0))
}

/// Declares a workload: its name, its type, and how it is made.
macro_rules! counted {
    ($($name:ident: $work:ty = $new:expr;)*) => {
        $(
            #[library_benchmark]
            #[bench::once(warm($new))]
            fn $name(work: ($work, <$work as Work>::Input)) -> ($work, <$work as Work>::Output) {
                round(work)
            }
        )*
        library_benchmark_group!(name = counts, benchmarks = [$($name),*]);
    };
}

counted! {
    encode_delta: Encode<DeltaResponse> = encode_all();
    decode_sotw: Decode<SotwResponse> = decode_all();
    decode_names: Decode<SotwRequest> = Decode::new(&all_names(N));
    f1: OneChange = OneChange::new(N, 100);
    f2: OneChange = OneChange::new(N, 1);
    f5_first: FirstSync = FirstSync::new(N);
    f8_delta_change: Named<Delta> = Named::new(N, Change::Resource);
    f8_delta_change_1k: Named<Delta> = Named::new(N / 10, Change::Resource);
    f8_delta_name: Named<Delta> = Named::new(N, Change::Name);
    f8_delta_name_1k: Named<Delta> = Named::new(N / 10, Change::Name);
    f9: FullResponse = FullResponse::from_message(N);
    f9_with_decoding: FullResponse = FullResponse::from_bytes(N);
    f11_poll: Poll = Poll::new(N);
    f11_timeout: Timeout = Timeout::new(N);
    f11_stale: Stale = Stale::new(N);
}

main!(library_benchmark_groups = counts);

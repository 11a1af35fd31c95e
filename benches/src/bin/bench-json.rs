//! Runs the workloads and prints one JSON object a line: `bench-json [WORKLOAD ..]`.

use benches::workload::{self, Row};
use benches::{alloc, workload as w};
use xds_machine::{Delta, Sotw};

#[global_allocator]
static COUNTING: alloc::Counting = alloc::Counting;

fn main() {
    let only: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |workload: &str| only.is_empty() || only.iter().any(|only| only == workload);
    let print = |rows: &[Row]| rows.iter().for_each(|row| println!("{}", row.json()));
    let delta_floor = |n| w::floor_encode(&w::delta_response(&w::cache(&w::clusters(), n), &w::clusters()));
    if wanted("F1") {
        let floor = delta_floor(100_000);
        print(&[w::one_change("F1", 100_000, 1000, floor), w::one_change("F1", 10_000, 1000, floor)]);
    }
    if wanted("F2") {
        print(&[w::one_change("F2", 100_000, 1, delta_floor(100_000))]);
    }
    if wanted("F3") {
        print(&[w::idle_memory(100_000, 1000), w::idle_memory(1000, 1000)]);
    }
    if wanted("F4") {
        print(&[w::names_memory(10_000)]);
    }
    if wanted("F5") {
        print(&w::first_sync(100_000));
    }
    if wanted("F6") {
        print(&[w::reconnect(100_000)]);
    }
    if wanted("F7") {
        print(&w::full_state(100_000, 100));
    }
    if wanted("F8") {
        for names in [10, 10_000] {
            print(&workload::named::<Delta>(["F8 delta +1", "F8 delta change"], names));
            print(&workload::named::<Sotw>(["F8 sotw +1", "F8 sotw change"], names));
        }
    }
    if wanted("F9") {
        print(&w::client_full_state(100_000));
    }
    if wanted("F10") {
        print(&[w::subscribe_one_by_one(10_000), w::subscribe_one_by_one(1000)]);
    }
    if wanted("F11") {
        print(&w::nothing(10_000));
    }
    if wanted("F12") {
        print(&w::store_memory(100_000));
    }
    if wanted("H1") {
        print(&w::worst_requests());
    }
}

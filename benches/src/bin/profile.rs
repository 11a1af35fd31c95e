//! One workload in a loop, for a profiler: `profile WORKLOAD N S ROUNDS`.
use benches::workload as w;

fn main() {
    let a: Vec<String> = std::env::args().collect();
    let num = |i: usize| a.get(i).map_or(1000, |x: &String| x.parse().expect("a number"));
    match a[1].as_str() {
        "F1" => _ = w::one_change("F1", num(2), num(3), 1.0),
        "F5" => _ = w::first_sync(num(2)),
        "F9" => _ = w::client_full_state(num(2)),
        "F10" => _ = w::subscribe_one_by_one(num(2)),
        other => panic!("no {other}"),
    }
}

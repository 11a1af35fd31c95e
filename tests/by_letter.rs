//! Our machines beside peers that take the specification by the letter, at random. `simulate letter` walks on.

mod letter;

#[test]
fn walks_beside_naive_peers() {
    for seed in 0..20_000 {
        if let Err(found) = letter::walk(seed) {
            panic!("walk {seed}: {:?}\n{}", found.fault, letter::explain(seed));
        }
    }
}

#[test]
#[ignore]
fn dev() {
    let n: u64 = std::env::var("N").map_or(20_000, |n| n.parse().unwrap());
    let from: u64 = std::env::var("FROM").map_or(0, |n| n.parse().unwrap());
    let start = std::time::Instant::now();
    let found = letter::survey(from..from + n);
    println!("{n} walks in {:?}", start.elapsed());
    for (rule, (count, first)) in &found {
        println!("{count} {rule}: first {first}");
    }
    for (_, (_, first)) in found {
        println!("---- {first}\n{}", letter::explain(first));
    }
}

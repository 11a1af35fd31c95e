//! Replays the committed corpus: deterministic, on stable, without a fuzzer.

use std::fs;
use std::path::Path;

/// One test only, because the targets count the allocations of the process.
#[test]
fn the_corpus_finds_no_fault() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (name, target) in xds_machine_fuzz::TARGETS {
        let folder = corpus.join(name);
        let mut inputs: Vec<_> = fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{name} has no corpus: {error}"))
            .map(|entry| entry.expect("a file of the corpus").path())
            .collect();
        inputs.sort();
        assert!(inputs.len() >= 20, "{name} has a corpus of {}", inputs.len());
        for input in &inputs {
            let data = fs::read(input).expect("a file of the corpus");
            if std::panic::catch_unwind(|| target(&data)).is_err() {
                panic!("{name} fails with {}", input.display());
            }
        }
        println!("{name}: {} inputs", inputs.len());
    }
}

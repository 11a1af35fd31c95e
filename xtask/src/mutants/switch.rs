//! Selects the active mutant. This file is part of the mutated copy of the crate, not of this program.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{env, fs, io::Write};

enum Mode {
    One(usize),
    /// No mutant is active; records the mutants that are reached.
    Watch(String),
}

/// Returns whether this mutant is active.
pub(crate) fn on(id: usize) -> bool {
    static MODE: OnceLock<Mode> = OnceLock::new();
    let read = || match (env::var("MUTANT"), env::var("MUTANTS_REACHED")) {
        (Ok(id), _) => Mode::One(id.parse().expect("a number")),
        (_, Ok(path)) => Mode::Watch(path),
        _ => Mode::One(0),
    };
    match MODE.get_or_init(read) {
        Mode::One(one) => *one == id,
        Mode::Watch(path) => {
            static REACHED: [AtomicBool; 8192] = [const { AtomicBool::new(false) }; 8192];
            if !REACHED[id].swap(true, Ordering::Relaxed) {
                let file = fs::OpenOptions::new().create(true).append(true).open(path);
                file.and_then(|mut file| file.write_all(format!("{id}\n").as_bytes())).expect("writable");
            }
            false
        }
    }
}

/// One of two iterators.
#[derive(Clone)]
pub(crate) enum Either<A, B> {
    A(A),
    B(B),
}

impl<A: Iterator, B: Iterator<Item = A::Item>> Iterator for Either<A, B> {
    type Item = A::Item;

    fn next(&mut self) -> Option<A::Item> {
        match self {
            Either::A(a) => a.next(),
            Either::B(b) => b.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Either::A(a) => a.size_hint(),
            Either::B(b) => b.size_hint(),
        }
    }
}

impl<A: ExactSizeIterator, B: ExactSizeIterator<Item = A::Item>> ExactSizeIterator for Either<A, B> {}

//! Peers without rules: bytes become arbitrary messages and calls in any order, for one machine.
//!
//! The fuzz targets and proptest drive these. They check that nothing panics, that the invariants hold, that a refused
//! input changes nothing, and that the machine's queries are consistent.

pub mod client;
mod message;
pub mod poll;
pub mod server;

use xds_machine::{ResourceName, TypeUrl, type_url};

pub use self::message::Hostile;

/// Bytes that are read as choices. After the last byte every choice is the first.
#[derive(Clone, Debug)]
pub struct Input<'a>(pub &'a [u8]);

impl Input<'_> {
    /// Returns whether no byte is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the next byte; zero at the end.
    pub fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        byte
    }

    /// Returns a number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    /// Returns one of the values.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    /// Returns up to `most` items, usually few.
    pub fn some<T>(&mut self, most: usize, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = self.below(most + 1);
        (0..count).map(|_| one(self)).collect()
    }

    /// Returns a name that other calls return too; occasionally a wildcard or collection, a long name, or an empty one.
    pub fn name(&mut self) -> ResourceName {
        match self.byte() {
            at @ 0..200 => ["a", "b", "c", "*", "a!", "d"][usize::from(at) % 6].into(),
            at @ 200..240 => format!("n{}", u32::from(at) * 256 + u32::from(self.byte())).into(),
            at @ 240..250 => "x".repeat(usize::from(at) - 200).into(),
            _ => "".into(),
        }
    }

    /// Returns a type; every kind of type occurs.
    pub fn type_url(&mut self) -> TypeUrl {
        const TYPES: [&str; 8] = [
            type_url::CLUSTER,
            type_url::ENDPOINT,
            type_url::LISTENER,
            type_url::ROUTE,
            type_url::VIRTUAL_HOST,
            "own",
            "",
            "a type that is longer than any configuration should let pass, one would think",
        ];
        match self.byte() {
            at @ 0..248 => TYPES[usize::from(at) % 6].into(),
            at => TYPES[usize::from(at) % 8].into(),
        }
    }

    /// Returns a version or a nonce.
    pub fn word(&mut self) -> &'static str {
        match self.byte() {
            at @ 0..240 => ["", "1", "2", "3", "4", "5"][usize::from(at) % 6],
            _ => "a word that is longer than any configuration should let pass",
        }
    }
}

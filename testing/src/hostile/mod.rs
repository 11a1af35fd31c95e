//! Peers that keep no rule: bytes become messages of all kinds and calls in any order, straight into one machine.
//!
//! The fuzz targets and proptest drive these. What must hold: no panic, the invariants, a refused input changes nothing,
//! and what the machine says of itself is true.

pub mod client;
mod message;
pub mod server;

use xds_machine::{ResourceName, TypeUrl, type_url};

pub use self::message::Hostile;

/// Bytes, read as choices. At the end all choices are the first.
#[derive(Clone, Debug)]
pub struct Input<'a>(pub &'a [u8]);

impl Input<'_> {
    /// Returns whether nothing is left.
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

    /// Up to `most` of something, mostly few.
    pub fn some<T>(&mut self, most: usize, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = self.below(most + 1);
        (0..count).map(|_| one(self)).collect()
    }

    /// A name that others have too; now and then one of many, a long one, or none.
    pub fn name(&mut self) -> ResourceName {
        match self.byte() {
            at @ 0..200 => ["a", "b", "c", "*", "a!", "d"][usize::from(at) % 6].into(),
            at @ 200..240 => format!("n{}", u32::from(at) * 256 + u32::from(self.byte())).into(),
            at @ 240..250 => "x".repeat(usize::from(at) - 200).into(),
            _ => "".into(),
        }
    }

    /// A type of each kind that there is.
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

    /// A version or a nonce.
    pub fn word(&mut self) -> &'static str {
        match self.byte() {
            at @ 0..240 => ["", "1", "2", "3", "4", "5"][usize::from(at) % 6],
            _ => "a word that is longer than any configuration should let pass",
        }
    }
}

//! Every short walk: all sequences of a few operations up to a length, the shortest first.
//!
//! Equivalent sequences are walked only once: a sequence that amounts to a shorter or an earlier one is left out. A
//! sequence that begins as one that failed is not walked, because it would repeat the failure and take its time.

use std::sync::{Mutex, PoisonError};

use crate::message::Variant;

/// The operations of one side, of which sequences are made.
pub(super) trait Alphabet {
    /// An operation.
    type Letter: Copy + Eq;

    /// Returns the operations that may follow a sequence.
    fn next(&self, so_far: &[Self::Letter]) -> Vec<Self::Letter>;

    /// Returns whether a sequence shows no more than a shorter one.
    fn is_idle(letters: &[Self::Letter]) -> bool;
}

/// A walk: the variant, the type, and the operations.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Word<L> {
    pub(super) variant: Variant,
    pub(super) type_name: String,
    pub(super) letters: Vec<L>,
}

impl<L: Copy + Eq> Word<L> {
    fn begins_as(&self, other: &Self) -> bool {
        (self.variant, &self.type_name) == (other.variant, &other.type_name) && self.letters.starts_with(&other.letters)
    }
}

/// All words up to a length, in the order of their lengths.
#[derive(Debug)]
pub(super) struct Words<L> {
    words: Vec<Word<L>>,
    failed: Mutex<Vec<Word<L>>>,
    longest: usize,
}

impl<L: Copy + Eq> Words<L> {
    /// Makes the words of alphabets, each of a variant and a type.
    pub(super) fn new<A: Alphabet<Letter = L>>(
        alphabets: impl IntoIterator<Item = (Variant, String, A)>,
        longest: usize,
    ) -> Self {
        let mut words = Vec::new();
        for (variant, type_name, alphabet) in alphabets {
            let mut of_length = vec![Vec::new()];
            for _ in 0..longest {
                let longer = |letters: &Vec<L>| {
                    let with = |letter| [letters.as_slice(), &[letter]].concat();
                    alphabet.next(letters).into_iter().map(with).collect::<Vec<_>>()
                };
                of_length = of_length.iter().flat_map(longer).collect();
                let said = of_length.iter().filter(|letters| !A::is_idle(letters));
                let word = |letters: &Vec<L>| Word { variant, type_name: type_name.clone(), letters: letters.clone() };
                words.extend(said.map(word));
            }
        }
        words.sort_by_key(|word| word.letters.len());
        Self { words, failed: Mutex::default(), longest }
    }

    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// Returns a word.
    pub(super) fn word(&self, number: usize) -> &Word<L> {
        &self.words[number]
    }

    /// Returns the length of a word.
    pub(super) fn round(&self, number: usize) -> usize {
        self.words[number].letters.len()
    }

    /// Notes that a walk has failed.
    pub(super) fn fails(&self, number: usize) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).push(self.words[number].clone());
    }

    /// Returns whether a word begins as one that failed.
    pub(super) fn is_needless(&self, number: usize) -> bool {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.iter().any(|failed| self.words[number].begins_as(failed))
    }

    /// Describes the walks.
    pub(super) fn describe(&self) -> String {
        format!("all sequences of up to {} operations", self.longest)
    }
}

//! Merges two iterators in the order of names into one.

use core::cmp::Ordering;
use core::iter::Peekable;

use crate::name::ResourceName;

/// Yields the items of both iterators in the order of their names. Of a name that both have, the item of the first is
/// kept. Names of one machine are shared, so that equal ones are seldom compared byte for byte.
pub(super) struct Merge<A: Iterator, B: Iterator> {
    first: Peekable<A>,
    second: Peekable<B>,
}

impl<A: Iterator, B: Iterator> Merge<A, B> {
    pub(super) fn new(first: A, second: B) -> Self {
        Self { first: first.peekable(), second: second.peekable() }
    }
}

impl<'a, A, B, T> Iterator for Merge<A, B>
where
    A: Iterator<Item = (&'a ResourceName, T)>,
    B: Iterator<Item = (&'a ResourceName, T)>,
{
    type Item = (&'a ResourceName, T);

    fn next(&mut self) -> Option<Self::Item> {
        let Some((other, _)) = self.second.peek() else { return self.first.next() };
        match self.first.peek().map_or(Ordering::Greater, |(name, _)| name.cmp(other)) {
            Ordering::Less => self.first.next(),
            Ordering::Greater => self.second.next(),
            Ordering::Equal => {
                self.second.next();
                self.first.next()
            }
        }
    }
}

//! A queue that is mostly empty or has one element: that element is stored in place, so that an idle machine allocates
//! no memory.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Queue<T> {
    first: Option<T>,
    /// Never an empty queue, and always `None` without a first element.
    #[allow(clippy::box_collection)] // rarely present
    rest: Option<Box<VecDeque<T>>>,
}

impl<T> Queue<T> {
    pub(crate) const fn new() -> Self {
        Self { first: None, rest: None }
    }

    pub(crate) fn push(&mut self, item: T) {
        if self.first.is_none() {
            self.first = Some(item);
        } else {
            self.rest.get_or_insert_default().push_back(item);
        }
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let item = self.first.take();
        if self.rest.is_some() {
            self.refill();
        }
        item
    }

    /// Moves the first of the rest to its place.
    #[cold]
    fn refill(&mut self) {
        if let Some(rest) = &mut self.rest {
            self.first = rest.pop_front();
            if rest.is_empty() {
                self.rest = None;
            }
        }
    }

    pub(crate) fn last_mut(&mut self) -> Option<&mut T> {
        self.rest.as_mut().and_then(|rest| rest.back_mut()).or(self.first.as_mut())
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.first.iter_mut().chain(self.rest.iter_mut().flat_map(|rest| rest.iter_mut()))
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.as_ref().map_or(0, |rest| rest.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_in_first_out() {
        let mut queue = Queue::new();
        assert_eq!((queue.pop(), queue.len()), (None::<u8>, 0));
        for round in 0..3 {
            (0..3).for_each(|item| queue.push(item));
            assert_eq!(queue.len(), 3);
            *queue.last_mut().expect("an item") += 10;
            assert_eq!([queue.pop(), queue.pop()], [Some(0), Some(1)], "round {round}");
            queue.push(3);
            assert_eq!([queue.pop(), queue.pop(), queue.pop()], [Some(12), Some(3), None]);
            queue.push(7);
            *queue.last_mut().expect("an item") += 1;
            assert_eq!(queue.pop(), Some(8));
            assert_eq!(queue.rest, None);
        }
    }
}

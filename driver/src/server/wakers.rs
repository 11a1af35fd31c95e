//! The tasks to wake when something changes that many streams wait for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use slab::Slab;

/// A list of tasks that wait for the same thing. Clones share the list.
///
/// A task stays in the list until its [`Waiter`] is dropped, so a task that waits again after a wake-up changes
/// nothing: with a thousand streams, a change costs a thousand wake-ups and no work on the list.
#[derive(Clone, Debug, Default)]
pub struct Wakers(Arc<Mutex<Slab<Waker>>>);

impl Wakers {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes all tasks of the list. Call it after the change is visible, and while holding no lock that a stream
    /// needs.
    pub fn wake_all(&self) {
        self.lock().iter().for_each(|(_, waker)| waker.wake_by_ref());
    }

    fn lock(&self) -> MutexGuard<'_, Slab<Waker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one task in a list of [`Wakers`]; dropping it removes the task.
#[derive(Debug, Default)]
pub struct Waiter(Option<Entry>);

#[derive(Debug)]
struct Entry {
    wakers: Wakers,
    key: usize,
    /// A copy of the waker in the list, compared without the lock.
    waker: Waker,
}

impl Waiter {
    /// Creates a waiter that is in no list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a task into a list, in place of an earlier task and list. Call it before looking at what the list is
    /// about: a change after the call wakes the task.
    pub fn wait(&mut self, wakers: &Wakers, waker: &Waker) {
        match &mut self.0 {
            Some(entry) if Arc::ptr_eq(&entry.wakers.0, &wakers.0) => {
                if !entry.waker.will_wake(waker) {
                    // The old wakers are dropped outside of the lock: the last one drops its task.
                    let old = entry.wakers.lock().get_mut(entry.key).map(|old| std::mem::replace(old, waker.clone()));
                    entry.waker = waker.clone();
                    drop(old);
                }
            }
            place => {
                let key = wakers.lock().insert(waker.clone());
                *place = Some(Entry { wakers: wakers.clone(), key, waker: waker.clone() });
            }
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let old = self.wakers.lock().try_remove(self.key);
        drop(old); // outside of the lock
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Count {
        fn take(&self) -> usize {
            self.0.swap(0, Ordering::Relaxed)
        }
    }

    #[test]
    fn a_task_is_woken_once_for_each_change_until_its_waiter_is_dropped() {
        let (wakers, [a, b]) = (Wakers::new(), [(); 2].map(|()| Arc::<Count>::default()));
        let (mut first, mut second) = (Waiter::new(), Waiter::new());
        for _ in 0..3 {
            first.wait(&wakers, &a.clone().into());
        }
        second.wait(&wakers, &b.clone().into());
        for _ in 0..2 {
            wakers.wake_all();
            assert_eq!((a.take(), b.take()), (1, 1));
        }
        drop(first);
        wakers.wake_all();
        assert_eq!((a.take(), b.take()), (0, 1));
        drop(second);
        assert!(wakers.lock().is_empty());
    }

    #[test]
    fn a_waiter_that_waits_again_replaces_its_task_and_its_list() {
        let (old, new, [a, b]) = (Wakers::new(), Wakers::new(), [(); 2].map(|()| Arc::<Count>::default()));
        let mut waiter = Waiter::new();
        waiter.wait(&old, &a.clone().into());
        waiter.wait(&old, &b.clone().into());
        old.wake_all();
        assert_eq!((a.take(), b.take()), (0, 1), "the task was replaced");
        waiter.wait(&new, &b.clone().into());
        old.wake_all();
        new.wake_all();
        assert_eq!(b.take(), 1, "the list was replaced");
    }
}

//! What is known of a resource, what happens to it, and what is to be told of it next.

use alloc::collections::BTreeSet;

use super::event::WatchId;
use crate::error::{Code, Status};
use crate::name::ResourceName;

/// What is known of a resource.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Known<T> {
    pub(super) value: Option<T>,
    pub(super) error: Option<Status>,
    /// Who watches it by its name: nobody, of a part of a whole.
    pub(super) watchers: BTreeSet<WatchId>,
    /// How many have something of it before them.
    pub(super) untold: usize,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Fresh<T> {
    /// The content may be another than it was told last, which was this.
    pub(super) changed: Option<Option<T>>,
}

/// What is to be told next of a resource.
pub(super) enum Due {
    Content,
    /// There is none.
    Failure,
    /// The error beside it, or that it is over.
    Error,
}

/// What happened to a resource.
#[derive(Clone)]
pub(super) enum Change<T> {
    Value(T),
    /// There is nothing any more, or still not.
    Gone(Status),
    /// What is there stays.
    Error(Status),
    /// The error is over.
    Fine,
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self { value: None, error: None, watchers: BTreeSet::new(), untold: 0 }
    }
}

impl<T: Clone + PartialEq> Known<T> {
    /// What is known of the same, for others who watch it.
    pub(super) fn copy(&self) -> Self {
        Self { value: self.value.clone(), error: self.error.clone(), ..Self::default() }
    }

    /// Why it goes, if that is known: an error in the place of content, or what it is rejected for, if that drops it.
    pub(super) fn reason(&self, rejected: bool) -> Option<Status> {
        let says = |why: &&Status| self.value.is_none() || (rejected && why.is(Code::InvalidArgument));
        self.error.as_ref().filter(says).cloned()
    }

    /// Takes a change in. What was there before, if there is something else now; `None` if nothing is new.
    pub(super) fn change(&mut self, change: Change<T>) -> Option<Option<Option<T>>> {
        match change {
            // The content that is there: at most an error is over.
            Change::Value(value) if self.value.as_ref() == Some(&value) => self.error.take().map(|_| None),
            Change::Value(value) => {
                self.error = None;
                Some(Some(self.value.replace(value)))
            }
            Change::Gone(status) => {
                if self.value.is_none() && self.error.as_ref() == Some(&status) {
                    return None;
                }
                self.error = Some(status);
                Some(Some(self.value.take()))
            }
            Change::Error(status) if self.error.as_ref() == Some(&status) => None, // C-RES-21
            Change::Error(status) => {
                self.error = Some(status);
                Some(None)
            }
            Change::Fine => self.error.take().map(|_| None),
        }
    }
}

/// Whether the name is of a whole, and not of a resource.
pub(super) fn is_whole(name: &ResourceName) -> bool {
    name.is_wildcard() || name.is_glob()
}

/// What a watcher is to be told next of a resource that has this error, if there is anything. `told` is the error that it
/// was told last.
pub(super) fn due<T: PartialEq>(
    name: &ResourceName,
    known: &Known<T>,
    error: Option<&Status>,
    fresh: &Fresh<T>,
    told: Option<&Status>,
) -> Option<Due> {
    let differs = |value: &T| fresh.changed.as_ref().is_some_and(|before| before.as_ref() != Some(value));
    match &known.value {
        Some(value) if !is_whole(name) && differs(value) => Some(Due::Content),
        None if !is_whole(name) => {
            // Who has nothing is not told that nothing has come yet.
            let had = matches!(fresh.changed, Some(Some(_)));
            (error.is_some() && (had || error != told)).then_some(Due::Failure)
        }
        _ => (error != told).then_some(Due::Error),
    }
}

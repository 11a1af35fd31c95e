//! The known state of a resource, its changes, and the next event for a watcher.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;

use super::event::WatchId;
use crate::error::{Code, Status};
use crate::name::ResourceName;

/// The known state of a resource: small, because a wildcard may cover a hundred thousand.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Known<T> {
    pub(super) value: Option<T>,
    /// Rarely present.
    pub(super) error: Option<Box<Status>>,
    /// The number of watchers with a pending event of the resource.
    pub(super) pending: usize,
}

/// The known state of a watched name.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Named<T> {
    pub(super) known: Known<T>,
    /// The watchers of this name.
    pub(super) watchers: BTreeSet<WatchId>,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Fresh<T> {
    /// Present if the content may differ from the content last sent, which is the value.
    pub(super) changed: Option<Option<T>>,
}

/// The next event about a resource.
pub(super) enum Due {
    Content,
    /// There is no content.
    Failure,
    /// The ambient error is new or cleared.
    Error,
}

/// A change of a resource.
pub(super) enum Change<T> {
    Value(T),
    /// The resource was removed, or still does not exist.
    Gone(Status),
    /// An error; existing content stays.
    Error(Status),
    /// The error is cleared.
    Fine,
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self { value: None, error: None, pending: 0 }
    }
}

impl<T> From<Known<T>> for Named<T> {
    fn from(known: Known<T>) -> Self {
        Self { known, watchers: BTreeSet::new() }
    }
}

impl<T: Clone + PartialEq> Known<T> {
    /// Copies the state for watchers of another name.
    pub(super) fn copy(&self) -> Self {
        Self { value: self.value.clone(), error: self.error.clone(), pending: 0 }
    }

    /// Returns the reason for a removal, if known: the error of a resource without content, or the rejection, if a
    /// rejected resource is dropped.
    pub(super) fn reason(&self, rejected: bool) -> Option<Status> {
        let says = |why: &&Status| self.value.is_none() || (rejected && why.is(Code::InvalidArgument));
        self.error.as_deref().filter(says).cloned()
    }

    /// Applies a change. Returns the previous content if the content changed; `None` if nothing changed.
    pub(super) fn change(&mut self, change: &Change<T>) -> Option<Option<Option<T>>> {
        match change {
            Change::Value(value) => self.put(value.clone()),
            Change::Gone(status) => {
                if self.value.is_none() && self.error.as_deref() == Some(status) {
                    return None;
                }
                self.error = Some(Box::new(status.clone()));
                Some(Some(self.value.take()))
            }
            Change::Error(status) if self.error.as_deref() == Some(status) => None, // C-RES-21
            Change::Error(status) => {
                self.error = Some(Box::new(status.clone()));
                Some(None)
            }
            Change::Fine => self.error.take().map(|_| None),
        }
    }

    /// Applies content. Returns what [`change`](Self::change) does.
    pub(super) fn put(&mut self, value: T) -> Option<Option<Option<T>>> {
        let error = self.error.take();
        if self.value.as_ref() == Some(&value) {
            return error.map(|_| None); // the same content: at most, an error is cleared
        }
        Some(Some(self.value.replace(value)))
    }
}

/// Returns whether the name is the wildcard or a collection (a "whole"), and not a resource (a "part").
pub(super) fn is_whole(name: &ResourceName) -> bool {
    name.is_wildcard() || name.is_glob()
}

/// Returns the next event for a watcher of a resource with this error, if any. `sent` is the error that the watcher
/// received last.
pub(super) fn due<T: PartialEq>(
    name: &ResourceName,
    value: Option<&T>,
    error: Option<&Status>,
    fresh: &Fresh<T>,
    sent: Option<&Status>,
) -> Option<Due> {
    let differs = |value: &T| fresh.changed.as_ref().is_some_and(|before| before.as_ref() != Some(value));
    match value {
        Some(value) if !is_whole(name) && differs(value) => Some(Due::Content),
        None if !is_whole(name) => {
            // As long as there is neither content nor an error, there is no event.
            let had = matches!(fresh.changed, Some(Some(_)));
            (error.is_some() && (had || error != sent)).then_some(Due::Failure)
        }
        _ => (error != sent).then_some(Due::Error),
    }
}

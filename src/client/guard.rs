//! A value of the driver that lives as long as an update.

use alloc::sync::Arc;
use core::any::Any;
use core::fmt;
use core::hash::{Hash, Hasher};

/// The value, if there is one. It is no part of the state of a machine: all guards are equal.
#[derive(Clone, Default)]
pub(super) struct Guard(#[allow(dead_code, reason = "lives as long as the update")] Option<Arc<dyn Any + Send + Sync>>);

impl Guard {
    pub(super) fn new(value: Arc<dyn Any + Send + Sync>) -> Self {
        Self(Some(value))
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guard")
    }
}

impl PartialEq for Guard {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Guard {}

impl Hash for Guard {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

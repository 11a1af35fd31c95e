//! The resources that the nodes of one group see.

use std::sync::{Arc, PoisonError, RwLock};

use xds_machine::server::Cache;
use xds_machine_tonic::server::{Store, Wakers};

use super::held::Held;
use crate::control_plane::news::Change;

/// The resources that the nodes of one group see: those for all nodes, until the group has resources of its own.
///
/// At that moment the view takes a copy of the cache for all nodes: epoch and revisions stay valid, so open streams
/// continue, and are sent the difference. The copy follows all later changes, and the view keeps it even when the group
/// is removed.
#[derive(Clone)]
pub struct View(Arc<Inner>);

pub(super) struct Inner {
    all: Arc<RwLock<Held>>,
    own: RwLock<Option<Held>>,
    wakers: Wakers,
}

impl View {
    pub fn new(all: &Arc<RwLock<Held>>) -> Self {
        Self(Arc::new(Inner { all: all.clone(), own: RwLock::new(None), wakers: Wakers::new() }))
    }

    pub(super) fn inner(&self) -> &Arc<Inner> {
        &self.0
    }

    pub(super) fn of(inner: Arc<Inner>) -> Self {
        Self(inner)
    }

    /// Gives the view a cache of its own, unless it has one. The streams of the view wait meanwhile, so none of them
    /// reads the cache for all nodes later than this.
    pub fn split(&self) {
        let mut own = self.0.own.write().unwrap_or_else(PoisonError::into_inner);
        if own.is_none() {
            *own = Some(self.0.all.read().unwrap_or_else(PoisonError::into_inner).clone());
        }
    }

    /// Changes the view's own cache, if it has one.
    pub fn change(&self, changes: &[Change], is_complete: bool) {
        if let Some(own) = &mut *self.0.own.write().unwrap_or_else(PoisonError::into_inner) {
            own.change(changes, is_complete);
        }
    }

    /// Lets the streams of the view look for changes.
    pub fn wake(&self) {
        self.0.wakers.wake_all();
    }

    pub fn read<T>(&self, read: impl FnOnce(&Held) -> T) -> T {
        match &*self.0.own.read().unwrap_or_else(PoisonError::into_inner) {
            Some(own) => read(own),
            None => read(&self.0.all.read().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}

impl Store for View {
    type Source = Cache;

    fn with<T>(&self, read: impl FnOnce(&Cache) -> T) -> T {
        self.read(|held| read(&held.cache))
    }

    fn wakers(&self) -> &Wakers {
        &self.0.wakers
    }
}

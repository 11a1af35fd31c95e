//! Groups of nodes: what the folder holds for all, and for each sub-folder.

mod held;
mod node;
mod view;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use xds_machine::message::Node;
use xds_machine::server::Cache;
use xds_machine_tonic::server::{Group, next_epoch};

use self::held::Held;
pub use self::view::View;
use super::arguments::GroupBy;
use super::folder::{Folder, News};

/// The views of all groups.
pub struct Groups {
    by: Option<GroupBy>,
    all: Arc<RwLock<Held>>,
    /// The view of nodes of no group.
    rest: Group<View>,
    views: Mutex<Views>,
}

#[derive(Default)]
struct Views {
    /// The views that streams have, and those of sub-folders.
    alive: HashMap<Arc<str>, Weak<view::Inner>>,
    /// The views of sub-folders, which stay without streams.
    folders: BTreeMap<Arc<str>, View>,
}

impl Groups {
    /// Creates the groups, of which nothing is known yet.
    pub fn new(by: Option<GroupBy>) -> Self {
        let all = Arc::new(RwLock::new(Held::new(Cache::unknown(next_epoch()))));
        let rest = Group::with_store("", View::new(&all));
        Self { by, all, rest, views: Mutex::default() }
    }

    /// Returns the group of a node.
    pub fn assign(&self, node: &Node) -> Group<View> {
        match self.by.as_ref().and_then(|by| by.group(node)) {
            // The name need not be that of a sub-folder: one may come.
            Some(name) => Group::with_store(&name, self.lock().view(&name, &self.all)),
            None => self.rest.clone(),
        }
    }

    /// Returns the view of a group by the name that [`Group::name`] has.
    pub fn view(&self, name: &str) -> View {
        match name {
            "" => self.rest.store().clone(),
            _ => self.lock().view(name, &self.all),
        }
    }

    /// Serves what a look at the folder found.
    pub fn take(&self, folder: &Folder, news: &News) {
        let for_all = news.views.get(&None).map(Vec::as_slice).unwrap_or_default();
        for (name, view) in self.follow(folder) {
            // Without a sub-folder the view of a group is that of all.
            let group = Some(name).filter(|name| folder.groups().any(|there| there == name));
            let changes = match news.views.get(&group) {
                Some(changes) if group.is_some() => {
                    view.split();
                    changes
                }
                _ => for_all,
            };
            view.change(changes, news.complete.contains(&group));
        }
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        all.change(for_all);
        if news.complete.contains(&None) {
            all.set_known();
        }
        drop(all);
        self.rest.store().wake();
        // Those that came meanwhile too: they may have read before the change.
        let alive = self.lock().alive();
        alive.iter().for_each(|(_, view)| view.wake());
    }

    /// Makes the sub-folders that there are now views that stay, and returns all views.
    fn follow(&self, folder: &Folder) -> Vec<(Arc<str>, View)> {
        let mut views = self.lock();
        let mut folders = std::mem::take(&mut views.folders);
        for group in folder.groups() {
            let view = folders.remove(group).unwrap_or_else(|| views.view(group, &self.all));
            views.folders.insert(group.clone(), view);
        }
        views.alive()
    }

    fn lock(&self) -> MutexGuard<'_, Views> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Views {
    fn view(&mut self, name: &str, all: &Arc<RwLock<Held>>) -> View {
        if let Some(inner) = self.alive.get(name).and_then(Weak::upgrade) {
            return View::of(inner);
        }
        if self.alive.len() == self.alive.capacity() {
            self.alive.retain(|_, inner| inner.strong_count() > 0); // before the map grows
        }
        let view = View::new(all);
        self.alive.insert(name.into(), Arc::downgrade(view.inner()));
        view
    }

    fn alive(&mut self) -> Vec<(Arc<str>, View)> {
        self.alive.retain(|_, inner| inner.strong_count() > 0);
        self.alive.iter().filter_map(|(name, inner)| Some((name.clone(), View::of(inner.upgrade()?)))).collect()
    }
}

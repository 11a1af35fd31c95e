//! Groups of nodes: the resources that the source holds for all nodes, and for each group.

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
use super::news::{Contents, News};

/// The views of all groups.
pub struct Groups {
    by: Option<GroupBy>,
    all: Arc<RwLock<Held>>,
    /// The view of nodes without a group.
    rest: Group<View>,
    views: Mutex<Views>,
}

#[derive(Default)]
struct Views {
    /// The views that streams use, and those of the source's groups.
    alive: HashMap<Arc<str>, Weak<view::Inner>>,
    /// The views of the source's groups, which stay without streams.
    groups: BTreeMap<Arc<str>, View>,
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
            // The source need not have such a group: it may appear later.
            Some(name) => Group::with_store(&name, self.lock().view(&name, &self.all)),
            None => self.rest.clone(),
        }
    }

    /// Returns the view of a group by its [`Group::name`].
    pub fn view(&self, name: &str) -> View {
        match name {
            "" => self.rest.store().clone(),
            _ => self.lock().view(name, &self.all),
        }
    }

    /// Serves the news of a look at the source.
    pub fn take(&self, contents: &impl Contents, news: &News) {
        let for_all = news.views.get(&None).map(Vec::as_slice).unwrap_or_default();
        for (name, view) in self.follow(contents) {
            // A group that the source does not have sees the resources for all nodes.
            let group = Some(name).filter(|name| contents.groups().any(|there| there == name));
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
        all.change(for_all, news.complete.contains(&None));
        drop(all);
        self.rest.store().wake();
        // Views that were added meanwhile are woken too: their streams may have read before the change.
        let alive = self.lock().alive();
        alive.iter().for_each(|(_, view)| view.wake());
    }

    /// Keeps the views of the source's current groups, and returns all views.
    fn follow(&self, contents: &impl Contents) -> Vec<(Arc<str>, View)> {
        let mut views = self.lock();
        let mut stay = std::mem::take(&mut views.groups);
        for group in contents.groups() {
            let view = stay.remove(group).unwrap_or_else(|| views.view(group, &self.all));
            views.groups.insert(group.clone(), view);
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

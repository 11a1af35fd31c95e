//! The existing resources, as the judge understands them: a plain map.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use xds_machine::ResourceName;

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct There {
    pub content: u8,
    pub aliases: BTreeSet<ResourceName>,
    pub ttl: Option<Duration>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum State {
    Present(There),
    Absent,
    /// The existence is unknown; with the code of an error if there is one.
    Unknown(i32),
}

/// The state of one type.
#[derive(Clone, Debug)]
pub(super) struct Truth {
    resources: BTreeMap<ResourceName, State>,
    /// Whether anything is known of the type.
    pub known: bool,
    /// The number of changes of each resource.
    touched: BTreeMap<ResourceName, u64>,
    /// Every target that each alias ever had.
    former: BTreeSet<(ResourceName, ResourceName)>,
}

impl Truth {
    pub(super) fn new(known: bool) -> Self {
        Self { resources: BTreeMap::new(), known, touched: BTreeMap::new(), former: BTreeSet::new() }
    }

    pub(super) fn state(&self, name: &ResourceName) -> State {
        let unmentioned = if self.known { State::Absent } else { State::Unknown(0) };
        self.resources.get(name).cloned().unwrap_or(unmentioned)
    }

    pub(super) fn there(&self, name: &ResourceName) -> Option<&There> {
        match self.resources.get(name)? {
            State::Present(there) => Some(there),
            State::Absent | State::Unknown(_) => None,
        }
    }

    pub(super) fn present(&self) -> impl Iterator<Item = (&ResourceName, &There)> {
        self.resources.keys().filter_map(|name| Some((name, self.there(name)?)))
    }

    pub(super) fn touched(&self, name: &ResourceName) -> u64 {
        self.touched.get(name).copied().unwrap_or_default()
    }

    /// Puts a resource; the previous owner of one of its aliases loses that first. Returns the existing resources, in
    /// order.
    pub(super) fn put(&mut self, name: &ResourceName, there: There) -> Vec<(ResourceName, There)> {
        let mut changed = Vec::new();
        for (other, mut had) in self.present().map(|(other, had)| (other.clone(), had.clone())).collect::<Vec<_>>() {
            let count = had.aliases.len();
            had.aliases.retain(|alias| other == *name || !there.aliases.contains(alias));
            if had.aliases.len() < count {
                changed.push((other, had));
            }
        }
        changed.push((name.clone(), there));
        for (name, there) in &changed {
            self.former.extend(there.aliases.iter().map(|alias| (alias.clone(), name.clone())));
            self.set(name, State::Present(there.clone()));
        }
        changed
    }

    /// Sets the state of a resource. Returns whether that is a change.
    pub(super) fn set(&mut self, name: &ResourceName, state: State) -> bool {
        let changed = self.state(name) != state;
        if changed {
            *self.touched.entry(name.clone()).or_default() += 1;
        }
        self.known = true;
        self.resources.insert(name.clone(), state);
        changed
    }

    /// Returns whether a subscribed name selects a resource.
    pub(super) fn is_asked_by(&self, wish: &ResourceName, name: &ResourceName) -> bool {
        covers(wish, name) || self.there(name).is_some_and(|there| there.aliases.contains(wish))
    }

    pub(super) fn is_wanted(&self, wanted: &BTreeSet<ResourceName>, name: &ResourceName) -> bool {
        wanted.iter().any(|wish| self.is_asked_by(wish, name))
    }

    /// Returns whether the target of an alias may be of unknown state.
    pub(super) fn is_doubtful(&self, alias: &ResourceName) -> bool {
        !self.known || self.former.iter().any(|(of, name)| of == alias && matches!(self.state(name), State::Unknown(_)))
    }

    /// Returns whether a resource ever had any alias.
    pub(super) fn had_alias(&self, name: &ResourceName) -> bool {
        self.former.iter().any(|(_, of)| of == name)
    }

    /// Returns the number of resources that an alias ever stood for.
    pub(super) fn targets(&self, alias: &ResourceName) -> usize {
        self.former.iter().filter(|(of, _)| of == alias).count()
    }

    /// Returns whether a subscribed name selects a resource, or ever did by an alias.
    pub(super) fn ever_asked_by(&self, wish: &ResourceName, name: &ResourceName) -> bool {
        covers(wish, name) || self.was_asked_by(wish, name)
    }

    /// Returns whether a resource ever had the alias.
    pub(super) fn was_asked_by(&self, alias: &ResourceName, name: &ResourceName) -> bool {
        self.former.contains(&(alias.clone(), name.clone()))
    }
}

/// Returns whether a subscribed name selects a name without aliases.
pub(super) fn covers(wish: &ResourceName, name: &ResourceName) -> bool {
    wish == name || wish.as_str().strip_suffix('*').is_some_and(|start| name.as_str().starts_with(start))
}

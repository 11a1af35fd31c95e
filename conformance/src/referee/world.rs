//! The resources of the server, as far as the kit can know them: the server may take a change of the control late, so a
//! resource may have several states.

use std::collections::{BTreeMap, BTreeSet};

/// The resources of a server, each with the states that it may have now.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct World {
    /// The states by type and name, in the order of the changes: revisions, or `None` for a resource that does not
    /// exist. Never empty.
    states: BTreeMap<(String, String), Vec<Option<u64>>>,
    /// Names with this prefix exist only if the kit put them. `None`: nothing is known of a name that was not changed.
    own: Option<String>,
    /// Resources of which nothing is known in spite of their prefix.
    forgotten: BTreeSet<(String, String)>,
}

impl World {
    /// Makes the world of a server that the kit controls: names with this prefix belong to the kit alone.
    pub fn controlled(prefix: &str) -> Self {
        Self { own: Some(prefix.to_owned()), ..Self::default() }
    }

    /// Makes a world of which nothing is known.
    pub fn unknown() -> Self {
        Self::default()
    }

    /// Records that the control was told to put a resource.
    pub fn put(&mut self, type_url: &str, name: &str, revision: u64) {
        self.change(type_url, name, Some(revision));
    }

    /// Records that the control was told to delete a resource.
    pub fn delete(&mut self, type_url: &str, name: &str) {
        self.change(type_url, name, None);
    }

    /// Records that nothing is known of a resource any more.
    pub fn forget(&mut self, type_url: &str, name: &str) {
        self.states.remove(&(type_url.to_owned(), name.to_owned()));
        self.forgotten.insert((type_url.to_owned(), name.to_owned()));
    }

    fn change(&mut self, type_url: &str, name: &str, state: Option<u64>) {
        let key = (type_url.to_owned(), name.to_owned());
        // A forgotten resource may have any state before this one: the state is certain once it is settled.
        let before = if self.forgotten.remove(&key) { &[None] } else { self.initial(name) };
        self.states.entry(key).or_insert_with(|| before.to_vec()).push(state);
    }

    /// Returns the states of a name that was never changed.
    fn initial(&self, name: &str) -> &'static [Option<u64>] {
        if self.own.as_ref().is_some_and(|own| name.starts_with(own.as_str())) { &[None] } else { &[] }
    }

    /// Records that the server has taken all changes: earlier states are over.
    pub fn settle(&mut self) {
        for states in self.states.values_mut() {
            states.drain(..states.len() - 1);
        }
    }

    /// Returns the states that a resource may have; none if nothing is known.
    pub fn states(&self, type_url: &str, name: &str) -> &[Option<u64>] {
        let key = (type_url.to_owned(), name.to_owned());
        let initial = || if self.forgotten.contains(&key) { &[] } else { self.initial(name) };
        self.states.get(&key).map_or_else(initial, Vec::as_slice)
    }

    /// Returns the state that a resource has for certain.
    pub fn certain(&self, type_url: &str, name: &str) -> Option<Option<u64>> {
        match self.states(type_url, name) {
            [state] => Some(*state),
            _ => None,
        }
    }

    /// Returns the names of a type that were ever changed.
    pub fn names<'a>(&'a self, type_url: &'a str) -> impl Iterator<Item = &'a str> {
        self.states.keys().filter(move |(of, _)| of == type_url).map(|(_, name)| name.as_str())
    }
}

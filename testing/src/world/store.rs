//! The store of a world: the crate's cache, and the operations of the environment.

use xds_machine::model::{Label, Relabel};
use xds_machine::server::{Cache, Resource, Source, State};
use xds_machine::{Code, ResourceName, Status};

use super::Made;

/// The first characters of aliases: one sorts after the names of resources, one before them.
const MARKS: [char; 2] = ['~', '!'];

/// The store of a world.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Store {
    /// The cache that servers serve from.
    pub cache: Cache,
    /// For each type, whether anything is known of it.
    known: Vec<bool>,
}

impl Store {
    /// Makes an empty store.
    pub fn new(setup: &Made) -> Self {
        Self::with_cache(setup, if setup.unknown { Cache::unknown(1) } else { Cache::new(1) })
    }

    /// Makes an empty store with a seed for its hash table.
    pub fn with_seed(setup: &Made, seed: u64) -> Self {
        let Self { cache, .. } = Self::new(setup);
        Self::with_cache(setup, cache.with_seed(seed))
    }

    fn with_cache(setup: &Made, cache: Cache) -> Self {
        let cache = cache.with_tombstones(setup.tombstones);
        let cache = setup.page.into_iter().fold(cache, Cache::with_page);
        Self { cache, known: vec![!setup.unknown; setup.types.len()] }
    }

    /// Returns whether anything is known of a type.
    pub fn is_known(&self, t: usize) -> bool {
        self.known[t]
    }

    /// Records that absent resources of a type do not exist from now on.
    pub fn know(&mut self, setup: &Made, t: usize) {
        self.cache.set_known(&setup.types[t]);
        self.known[t] = true;
    }

    /// Puts a resource with new content. The previous target of the moving aliases loses them first. Returns the
    /// changed resources with their new content.
    pub fn put(&mut self, setup: &Made, t: usize, name: &ResourceName) -> Vec<(ResourceName, u8)> {
        let content = self.content(setup, t, name).map_or(0, |content| 1 - content);
        let moves = content == 1 && setup.names.iter().any(is_shared);
        let had_alias = |other: &&ResourceName| *other != name && self.content(setup, t, other) == Some(1);
        let others = setup.names.iter().filter(|_| moves).filter(|other| is_resource(other)).filter(had_alias);
        let mut changed: Vec<_> = others.map(|other| (other.clone(), 0)).collect();
        changed.push((name.clone(), content));
        for (name, content) in &changed {
            assert!(self.cache.insert(&setup.types[t], resource(setup, name, *content)));
        }
        self.known[t] = true;
        changed
    }

    /// Removes an existing resource.
    pub fn delete(&mut self, setup: &Made, t: usize, name: &ResourceName) {
        assert!(self.cache.remove(&setup.types[t], name.as_str()));
    }

    /// Sets an error for a resource.
    pub fn fail(&mut self, setup: &Made, t: usize, name: &ResourceName) {
        let status = Status::new(Code::Unavailable, "no");
        self.cache.set_error(&setup.types[t], name.clone(), status);
        self.known[t] = true;
    }

    /// Records that the store no longer knows whether a resource exists.
    pub fn doubt(&mut self, setup: &Made, t: usize, name: &ResourceName) {
        self.cache.set_unknown(&setup.types[t], name.clone());
        self.known[t] = true;
    }

    /// Returns the content of an existing resource.
    pub fn content(&self, setup: &Made, t: usize, name: &ResourceName) -> Option<u8> {
        match self.state(setup, t, name) {
            State::Present(resource) => resource.body().last().copied(),
            State::Absent | State::Unknown => None,
        }
    }

    /// Returns the store's state of a name.
    pub fn state(&self, setup: &Made, t: usize, name: &ResourceName) -> State<'_> {
        self.cache.get(&setup.types[t], name).state
    }

    /// Returns the error of a resource.
    pub fn error(&self, setup: &Made, t: usize, name: &ResourceName) -> Option<&Status> {
        self.cache.error(&setup.types[t], name)
    }
}

impl Relabel for Store {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.cache.relabel(by);
    }
}

/// Returns whether a subscription to one name covers another: the wildcard, a collection and an alias select others.
/// The content of a resource determines whether it has the moving aliases.
pub(crate) fn stands_for(wanted: &ResourceName, name: &ResourceName, content: Option<u8>) -> bool {
    let (wanted, name) = (wanted.as_str(), name.as_str());
    let by_alias = |of: &str| of == name || (of.is_empty() && content == Some(1));
    wanted == name
        || wanted.strip_suffix('*').is_some_and(|start| name.starts_with(start))
        || wanted.strip_prefix(MARKS).is_some_and(by_alias)
}

/// Returns whether a name is that of a resource, and selects no other.
pub(crate) fn is_resource(name: &ResourceName) -> bool {
    !name.as_str().ends_with('*') && !is_alias(name)
}

pub(crate) fn is_alias(name: &ResourceName) -> bool {
    name.as_str().starts_with(MARKS)
}

/// Returns whether a name is an alias that any resource may have, one at a time: the alias moves.
pub(crate) fn is_shared(name: &ResourceName) -> bool {
    name.as_str().strip_prefix(MARKS) == Some("")
}

/// Makes a resource of the store, with its aliases if the world has any for it.
pub(crate) fn resource(setup: &Made, name: &ResourceName, content: u8) -> Resource {
    let resource = Resource::new(name.clone(), body(name, content));
    let resource = setup.ttl_of(name, content).into_iter().fold(resource, Resource::with_ttl);
    let aliases = setup.names.iter().filter(|alias| is_alias(alias));
    let mut aliases = aliases.filter(|alias| stands_for(alias, name, Some(content))).cloned().peekable();
    if aliases.peek().is_some() { resource.with_aliases(aliases) } else { resource }
}

/// Encodes a resource: its name in field 1, its content in field 15.
pub(crate) fn body(name: &ResourceName, content: u8) -> Vec<u8> {
    let mut body = vec![0x0a, name.as_str().len() as u8];
    body.extend_from_slice(name.as_str().as_bytes());
    body.extend_from_slice(&[0x78, content]);
    body
}

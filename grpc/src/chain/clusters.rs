//! The clusters of a configuration: a sorted map that shares its parts with the maps that were made of it.
//!
//! The user receives a configuration at each change, and still has the last one. With one change among ten thousand
//! clusters, a copy of the map would cost ten thousand times the change; a list of changes beside the map would make
//! each user keep a map of its own. So the map is a tree: a changed entry copies its path, and two maps are compared by
//! looking at the parts that they do not share.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::hash::{Hash, Hasher};

use xds_machine::ResourceName;

use super::cluster::Entry;

/// The number of entries of a leaf, and of branches of a node.
const WIDTH: usize = 16;

/// The clusters of a [`Config`](super::Config) by name, in the order of names. A clone costs nothing.
#[derive(Eq, Hash, PartialEq)]
pub struct Clusters<T> {
    names: Shared<[ResourceName]>,
    root: Node<T>,
}

#[derive(Debug, Eq, Hash, PartialEq)]
enum Node<T> {
    Branch(Shared<[Node<T>]>),
    Leaf(Shared<[Entry<T>]>),
}

/// An `Arc` that is compared by address first: equal parts of a large map are mostly the same part. (`Arc` does so itself
/// only where its content is known to be `Eq`.)
#[derive(Debug)]
struct Shared<N: ?Sized>(Arc<N>);

impl<N: ?Sized + Hash> Hash for Shared<N> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.0.hash(hasher);
    }
}

impl<N: ?Sized + PartialEq> PartialEq for Shared<N> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl<N: ?Sized + Eq> Eq for Shared<N> {}

impl<T> Clone for Clusters<T> {
    fn clone(&self) -> Self {
        Self { names: Shared(self.names.0.clone()), root: self.root.clone() }
    }
}

impl<T> Clone for Node<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Branch(nodes) => Self::Branch(Shared(nodes.0.clone())),
            Self::Leaf(entries) => Self::Leaf(Shared(entries.0.clone())),
        }
    }
}

impl<T> Clusters<T> {
    /// Makes the map of sorted names and their entries.
    pub(super) fn new(names: Arc<[ResourceName]>, entries: Vec<Entry<T>>) -> Self {
        let mut entries = entries.into_iter().peekable();
        let mut nodes = Vec::new();
        while entries.peek().is_some() {
            nodes.push(Node::Leaf(Shared(entries.by_ref().take(WIDTH).collect())));
        }
        while nodes.len() > 1 {
            let mut below = nodes.into_iter().peekable();
            nodes = Vec::new();
            while below.peek().is_some() {
                nodes.push(Node::Branch(Shared(below.by_ref().take(WIDTH).collect())));
            }
        }
        Self { names: Shared(names), root: nodes.pop().unwrap_or_else(|| Node::Leaf(Shared(Arc::new([])))) }
    }

    /// Returns a cluster, or why the cluster can't be used; `None` if the cluster is not part of the configuration.
    pub fn get(&self, name: &ResourceName) -> Option<&Entry<T>> {
        self.root.get(self.names.0.binary_search(name).ok()?, self.names.0.len())
    }

    /// Returns all clusters, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&ResourceName, &Entry<T>)> {
        let len = self.names.0.len();
        self.names.0.iter().enumerate().filter_map(move |(index, name)| Some((name, self.root.get(index, len)?)))
    }

    /// Returns the number of clusters.
    pub fn len(&self) -> usize {
        self.names.0.len()
    }

    /// Returns whether there is no cluster.
    pub fn is_empty(&self) -> bool {
        self.names.0.is_empty()
    }
}

impl<T: Clone + Eq> Clusters<T> {
    /// Replaces an entry, unless the new one is equal; other maps keep theirs.
    pub(super) fn replace(&mut self, index: usize, make: impl FnOnce(&ResourceName) -> Entry<T>) {
        let len = self.names.0.len();
        let Some(entry) = self.names.0.get(index).map(make) else { return };
        if self.root.get(index, len).is_some_and(|before| *before != entry) {
            self.root.set(index, len, entry);
        }
    }
}

/// Returns the number of entries below each branch of a node that has `len` entries below it.
fn stride(len: usize) -> usize {
    let mut stride = WIDTH;
    while stride.saturating_mul(WIDTH) < len {
        stride *= WIDTH;
    }
    stride
}

impl<T> Node<T> {
    /// Returns an entry. `len`: the number of entries below this node, or a greater one with the same number of levels.
    fn get(&self, index: usize, len: usize) -> Option<&Entry<T>> {
        match self {
            Self::Leaf(entries) => entries.0.get(index),
            Self::Branch(nodes) => {
                let stride = stride(len);
                nodes.0.get(index / stride)?.get(index % stride, stride)
            }
        }
    }
}

impl<T: Clone> Node<T> {
    fn set(&mut self, index: usize, len: usize, entry: Entry<T>) {
        match self {
            Self::Leaf(entries) => {
                if let Some(place) = Arc::make_mut(&mut entries.0).get_mut(index) {
                    *place = entry;
                }
            }
            Self::Branch(nodes) => {
                let stride = stride(len);
                if let Some(node) = Arc::make_mut(&mut nodes.0).get_mut(index / stride) {
                    node.set(index % stride, stride, entry);
                }
            }
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Clusters<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

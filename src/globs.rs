//! Sets of glob collections and of their members.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use core::borrow::Borrow;
use core::cmp::Ordering;
use core::hash::{Hash, Hasher};

use crate::name::ResourceName;
use crate::xdstp::{Parts, is_glob};

/// The names of collections, looked up by the names of their members without allocating.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
#[allow(clippy::box_collection)] // rarely present, and one word in every subscription
pub(crate) struct Globs(Option<Box<BTreeSet<Glob>>>);

/// The name of a collection, ordered by directory and parameters.
#[derive(Clone, Debug)]
pub(crate) struct Glob(pub(crate) ResourceName);

impl Globs {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Adds the name if it is the name of a collection. Returns whether it is one.
    pub(crate) fn insert(&mut self, name: &ResourceName) -> bool {
        let is = is_glob(name.as_str());
        if is {
            self.0.get_or_insert_default().insert(Glob(name.clone()));
        }
        is
    }

    /// Removes the name. Returns whether it was present.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        let (Some(globs), Some(parts)) = (&mut self.0, Parts::of(name)) else { return false };
        let was = parts.leaf == "*" && globs.remove(&parts as &dyn Collection);
        if globs.is_empty() {
            self.0 = None;
        }
        was
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        let Some(globs) = &self.0 else { return false };
        Parts::of(name).is_some_and(|parts| parts.leaf == "*" && globs.contains(&parts as &dyn Collection))
    }

    /// Returns the collection in this set that a name belongs to.
    pub(crate) fn of(&self, name: &str) -> Option<&ResourceName> {
        let globs = self.0.as_ref()?;
        let parts = Parts::of(name).filter(|parts| parts.leaf != "*")?;
        globs.get(&parts as &dyn Collection).map(|glob| &glob.0)
    }

    pub(crate) fn cover(&self, name: &str) -> bool {
        self.of(name).is_some()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ResourceName> {
        self.0.iter().flat_map(|globs| globs.iter().map(|glob| &glob.0))
    }
}

/// Returns whether one name is that of a collection and the other that of a member.
pub(crate) fn is_member(glob: &str, name: &str) -> bool {
    let (glob, name) = (Parts::of(glob).filter(|parts| parts.leaf == "*"), Parts::of(name));
    let name = name.filter(|parts| parts.leaf != "*");
    name.zip(glob).is_some_and(|(name, glob)| name.key() == glob.key())
}

/// The members of each collection that has any.
#[derive(Clone, Debug)]
pub(crate) struct Collections<T>(BTreeMap<Glob, BTreeSet<T>>);

impl<T> Default for Collections<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Ord> Collections<T> {
    pub(crate) fn insert(&mut self, name: &ResourceName, member: T) {
        let Some(parts) = Parts::of(name.as_str()).filter(|parts| parts.leaf != "*") else { return };
        if let Some(members) = self.0.get_mut(&parts as &dyn Collection) {
            members.insert(member);
        } else {
            self.0.insert(Glob(parts.glob().into()), BTreeSet::from([member]));
        }
    }

    pub(crate) fn remove(&mut self, name: &ResourceName, member: T) {
        if self.0.is_empty() {
            return;
        }
        let Some(parts) = Parts::of(name.as_str()) else { return };
        let Some(members) = self.0.get_mut(&parts as &dyn Collection) else { return };
        members.remove(&member);
        if members.is_empty() {
            self.0.remove(&parts as &dyn Collection);
        }
    }

    pub(crate) fn members<'a>(&'a self, glob: &str) -> impl Iterator<Item = &'a T> + use<'a, T> {
        let parts = Parts::of(glob).filter(|parts| parts.leaf == "*");
        parts.and_then(|parts| self.0.get(&parts as &dyn Collection)).into_iter().flatten()
    }

    /// Returns the number of members of all collections.
    pub(crate) fn len(&self) -> usize {
        self.0.values().map(BTreeSet::len).sum()
    }
}

/// The part that is common to a collection and its members: directory and parameters.
pub(crate) trait Collection {
    fn key(&self) -> (&str, &str);
}

impl Collection for Glob {
    fn key(&self) -> (&str, &str) {
        Parts::of(self.0.as_str()).map_or((self.0.as_str(), ""), |parts| (parts.directory, parts.query))
    }
}

impl Collection for Parts<'_> {
    fn key(&self) -> (&str, &str) {
        (self.directory, self.query)
    }
}

impl<'a> Borrow<dyn Collection + 'a> for Glob {
    fn borrow(&self) -> &(dyn Collection + 'a) {
        self
    }
}

impl PartialEq for dyn Collection + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for dyn Collection + '_ {}

impl PartialOrd for dyn Collection + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn Collection + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialEq for Glob {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Glob {}

impl PartialOrd for Glob {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Glob {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Hash for Glob {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hash that suffices for three names.
    struct Written(u64);

    impl Hasher for Written {
        fn write(&mut self, bytes: &[u8]) {
            self.0 = bytes.iter().fold(self.0, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        }

        fn finish(&self) -> u64 {
            self.0
        }
    }

    #[test]
    fn collections_are_compared_by_directory_and_then_parameters() {
        let names = ["xdstp://a/T/d/*", "xdstp://a/T/d/*?x=1", "xdstp://a/T/d/e/*"];
        let globs = names.map(|name| Glob(name.into()));
        let hash = |glob: &Glob| {
            let mut written = Written(0);
            glob.hash(&mut written);
            written.finish()
        };
        for (at, one) in globs.iter().enumerate() {
            for (other_at, other) in globs.iter().enumerate() {
                assert_eq!((one == other, one.partial_cmp(other)), (at == other_at, Some(at.cmp(&other_at))));
                assert_eq!(hash(one) == hash(other), at == other_at);
                let [one, other]: [&dyn Collection; 2] = [one, other];
                assert_eq!((one == other, one.partial_cmp(other)), (at == other_at, Some(at.cmp(&other_at))));
            }
        }
    }

    #[test]
    fn a_collection_is_found_by_the_names_of_its_members() {
        let mut globs = Globs::default();
        for glob in ["xdstp://a/T/foo/*", "xdstp://a/T/foo/*?x=1", "xdstp:///T/*"] {
            assert!(globs.insert(&glob.into()), "{glob}");
        }
        assert!(!globs.insert(&"xdstp://a/T/foo/b".into()) && !globs.insert(&"*".into()));
        let of = |name: &str| globs.of(name).map(ResourceName::as_str);
        assert_eq!(of("xdstp://a/T/foo/b"), Some("xdstp://a/T/foo/*"));
        assert_eq!(of("xdstp://a/T/foo/b?x=1"), Some("xdstp://a/T/foo/*?x=1"));
        assert_eq!(of("xdstp:///T/b"), Some("xdstp:///T/*"));
        let none = [
            "xdstp://a/T/foo/b?x=2",
            "xdstp://a/T/foo/deep/b",
            "xdstp://a/T/foo",
            "xdstp://a/T/foo/*",
            "xdstp://b/T/foo/b",
            "xdstp://a/T/foo/b#entry=c",
            "xdstp://T",
            "foo/b",
            "*",
        ];
        for name in none {
            assert_eq!(of(name), None, "{name}");
        }
        let here =
            ["xdstp://a/T/foo/*", "xdstp://a/T/foo/b", "xdstp://a/T/bar/*", "*"].map(|name| globs.contains(name));
        assert_eq!(here, [true, false, false, false]);
        for glob in ["xdstp://a/T/foo/*", "xdstp://a/T/foo/*?x=1", "xdstp:///T/*"] {
            assert!(globs.remove(glob) && !globs.remove(glob), "{glob}");
        }
        assert!(globs.is_empty());
    }

    #[test]
    fn a_member_has_the_directory_and_parameters_of_its_collection() {
        let glob = "xdstp://a/T/foo/*?x=1";
        assert!(is_member(glob, "xdstp://a/T/foo/b?x=1"));
        for name in ["xdstp://a/T/foo/b", "xdstp://a/T/bar/b?x=1", glob, "b"] {
            assert!(!is_member(glob, name), "{name}");
        }
        assert!(!is_member("xdstp://a/T/foo/b?x=1", "xdstp://a/T/foo/b?x=1"), "no collection");
    }
}

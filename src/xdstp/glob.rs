//! Glob collections: all resources of one directory with exactly these parameters (TP1, "Glob"; one level only, as its
//! authors say in cncf/xds issue 91).

use alloc::borrow::ToOwned;
use alloc::string::String;

use super::is_structured;

/// A structured name in its normal form, split in three.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Parts<'a> {
    /// The part up to and including the last slash of the path.
    pub(crate) directory: &'a str,
    pub(crate) leaf: &'a str,
    /// The query with its question mark; empty if there is none.
    pub(crate) query: &'a str,
}

impl<'a> Parts<'a> {
    /// Splits a name. Returns `None` for names that are not structured.
    pub(crate) fn of(name: &'a str) -> Option<Self> {
        let rest = name.strip_prefix("xdstp://")?;
        if rest.contains('#') {
            return None;
        }
        let path = rest.find('?').unwrap_or(rest.len());
        // Authority, type and id are separated by at least two slashes.
        let slash = rest[..path].rfind('/').filter(|&last| rest[..last].contains('/'))?;
        let offset = name.len() - rest.len();
        let (directory, after) = name.split_at(offset + slash + 1);
        let (leaf, query) = after.split_at(path - slash - 1);
        Some(Self { directory, leaf, query })
    }

    /// Returns the name of the collection that the name belongs to.
    pub(crate) fn glob(&self) -> String {
        let mut glob = self.directory.to_owned();
        glob.push('*');
        glob.push_str(self.query);
        glob
    }

    /// Returns whether a name is a member of this collection.
    pub(crate) fn has(&self, name: &str) -> bool {
        Parts::of(name).is_some_and(|of| of.leaf != "*" && (of.directory, of.query) == (self.directory, self.query))
    }
}

/// Returns whether a name is the name of a collection.
pub(crate) fn is_glob(name: &str) -> bool {
    is_structured(name) && Parts::of(name).is_some_and(|parts| parts.leaf == "*")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collection_has_the_members_of_one_level_with_its_parameters() {
        let foo = Parts::of("xdstp://a/T/foo/*?x=1").expect("a name");
        assert!(foo.has("xdstp://a/T/foo/b?x=1"));
        for leaf in ["*?x=1", "b", "b?x=2", "deep/b?x=1"] {
            assert!(!foo.has(&["xdstp://a/T/foo/", leaf].concat()), "{leaf}");
        }
    }

    #[test]
    fn a_slash_in_a_parameter_does_not_split_the_path() {
        let parts = Parts::of("xdstp://a/T/foo/b?x=1/2").expect("a name");
        assert_eq!((parts.directory, parts.leaf, parts.query), ("xdstp://a/T/foo/", "b", "?x=1/2"));
        assert_eq!(parts.glob(), "xdstp://a/T/foo/*?x=1/2");
        assert!(Parts::of(&parts.glob()).is_some_and(|glob| glob.has("xdstp://a/T/foo/c?x=1/2")));
    }
}

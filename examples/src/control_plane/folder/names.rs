//! The owners of names: which file's resource counts if several files hold a resource of the same type and name.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use xds_machine::TypeUrl;

use crate::control_plane::news::Key;

/// The files of one folder that hold each name. The first file in the order of file names wins: the outcome is the same
/// after a restart, whichever file was there first.
#[derive(Debug, Default)]
pub struct Names {
    holders: BTreeMap<Key, Vec<OsString>>,
    /// The number of names of each type.
    counts: BTreeMap<TypeUrl, usize>,
}

impl Names {
    pub fn add(&mut self, key: &Key, file: &OsStr) {
        let holders = self.holders.entry(key.clone()).or_default();
        if holders.is_empty() {
            *self.counts.entry(key.0.clone()).or_default() += 1;
        }
        if let Err(at) = holders.binary_search_by(|holder| holder.as_os_str().cmp(file)) {
            holders.insert(at, file.to_owned());
        }
    }

    pub fn remove(&mut self, key: &Key, file: &OsStr) {
        let Some(holders) = self.holders.get_mut(key) else { return };
        holders.retain(|holder| holder != file);
        if holders.is_empty() {
            self.holders.remove(key);
            self.counts.entry(key.0.clone()).and_modify(|count| *count -= 1);
        }
    }

    /// Returns the file whose resource counts.
    pub fn winner(&self, key: &Key) -> Option<&OsStr> {
        self.holders.get(key)?.first().map(OsString::as_os_str)
    }

    /// Returns the file whose resource counts, and the files whose resource does not, if there are any.
    pub fn conflict(&self, key: &Key) -> Option<(&OsStr, &[OsString])> {
        match self.holders.get(key)?.split_first() {
            Some((winner, others)) if !others.is_empty() => Some((winner, others)),
            _ => None,
        }
    }

    pub fn counts(&self) -> impl Iterator<Item = (&TypeUrl, usize)> {
        self.counts.iter().map(|(type_url, count)| (type_url, *count))
    }

    pub fn is_empty(&self) -> bool {
        self.holders.is_empty()
    }
}

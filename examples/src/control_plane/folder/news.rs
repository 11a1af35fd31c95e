//! What a look at a folder finds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use xds_machine::server::Resource;
use xds_machine::{ResourceName, TypeUrl};

use super::listing::Group;
use super::names::Key;

/// A name, and its resource if there is one now.
pub type Change = (Key, Option<Resource>);

/// What a look at a folder finds.
#[derive(Debug, Default)]
pub struct News {
    /// What changes for whom: for the nodes of a group, and under `None` for those of no group. A view is listed, with
    /// no change, when its sub-folder appears.
    pub views: BTreeMap<Group, Vec<Change>>,
    /// The views of which each file could be read, now or earlier; for others it is unknown which resources do not
    /// exist. Counts only where files were read.
    pub complete: BTreeSet<Group>,
    /// What changed in each file.
    pub files: Vec<FileNews>,
    /// One line per fault, each reported once.
    pub complaints: Vec<String>,
    /// Whether the folder itself is there.
    pub is_there: bool,
}

/// What changed in a file, for one type.
#[derive(Debug, Eq, PartialEq)]
pub struct FileNews {
    pub source: PathBuf,
    pub type_url: TypeUrl,
    /// The resources that are new in the file, or changed.
    pub names: Vec<ResourceName>,
    pub removed: Vec<ResourceName>,
}

impl News {
    /// Notes what changed in a file, by type.
    pub(super) fn note_file<'a>(
        &mut self,
        source: PathBuf,
        changed: impl Iterator<Item = &'a Key>,
        gone: impl Iterator<Item = &'a Key>,
    ) {
        let mut types: BTreeMap<&TypeUrl, (Vec<ResourceName>, Vec<ResourceName>)> = BTreeMap::new();
        changed.for_each(|(type_url, name)| types.entry(type_url).or_default().0.push(name.clone()));
        gone.for_each(|(type_url, name)| types.entry(type_url).or_default().1.push(name.clone()));
        self.files.extend(types.into_iter().map(|(type_url, (names, removed))| FileNews {
            source: source.clone(),
            type_url: type_url.clone(),
            names,
            removed,
        }));
    }
}

//! What a source of resources finds: what changed for whom.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use xds_machine::server::Resource;
use xds_machine::{ResourceName, TypeUrl};

/// The name of a group; `None` for what all see.
pub type Group = Option<Arc<str>>;

/// The type and the name of a resource.
pub type Key = (TypeUrl, ResourceName);

/// A name, and what is known of its resource now.
pub type Change = (Key, Known);

/// What is known of a name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Known {
    /// The resource.
    Present(Resource),
    /// There is none.
    Absent,
    /// Whether there is one is not known yet.
    Unknown,
}

impl From<Option<Resource>> for Known {
    fn from(resource: Option<Resource>) -> Self {
        resource.map_or(Self::Absent, Self::Present)
    }
}

/// What a source holds besides its news.
pub trait Contents {
    /// Returns the groups that there are.
    fn groups(&self) -> impl Iterator<Item = &Arc<str>>;

    /// Returns the number of resources of each type, of all groups together.
    fn counts(&self) -> BTreeMap<&TypeUrl, usize>;
}

/// What a look at a source finds.
#[derive(Debug, Default)]
pub struct News {
    /// What changes for whom: for the nodes of a group, and under `None` for those of no group. A view is listed, with
    /// no change, when its group appears.
    pub views: BTreeMap<Group, Vec<Change>>,
    /// The views of which all was read, now or earlier; for others it is unknown which resources do not exist. Counts
    /// only where something was read.
    pub complete: BTreeSet<Group>,
    /// What changed in each file, or under each key.
    pub files: Vec<FileNews>,
    /// One line per fault, each reported once.
    pub complaints: Vec<String>,
    /// Whether the source itself is there.
    pub is_there: bool,
}

/// What changed in a file or under a key, for one type.
#[derive(Debug, Eq, PartialEq)]
pub struct FileNews {
    pub source: PathBuf,
    pub type_url: TypeUrl,
    /// The resources that are new, or changed.
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

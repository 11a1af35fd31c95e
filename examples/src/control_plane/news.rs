//! The news of a source of resources: the changes for each group.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use xds_machine::server::Resource;
use xds_machine::{ResourceName, TypeUrl};

/// The name of a group; `None` for the resources for all nodes.
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
    /// There is no resource.
    Absent,
    /// Whether there is a resource is not known yet.
    Unknown,
}

impl From<Option<Resource>> for Known {
    fn from(resource: Option<Resource>) -> Self {
        resource.map_or(Self::Absent, Self::Present)
    }
}

/// What a source holds besides its news.
pub trait Contents {
    /// Returns the groups of the source.
    fn groups(&self) -> impl Iterator<Item = &Arc<str>>;

    /// Returns the number of resources of each type, of all groups together.
    fn counts(&self) -> BTreeMap<&TypeUrl, usize>;
}

/// The result of a look at a source.
#[derive(Debug, Default)]
pub struct News {
    /// The changes for the nodes of each group, and under `None` for nodes without a group. A view is listed, with no
    /// change, when its group appears.
    pub views: BTreeMap<Group, Vec<Change>>,
    /// The views that were read completely, now or earlier; for other views it is unknown which resources do not exist.
    /// Valid only if something was read.
    pub complete: BTreeSet<Group>,
    /// The sources that were never read, by view, for people. Valid only if something was read.
    pub unread: BTreeMap<Group, Vec<String>>,
    /// The changes in each file, or under each key.
    pub files: Vec<FileNews>,
    /// One line per fault, each reported once.
    pub complaints: Vec<String>,
    /// Whether the source itself is there.
    pub is_there: bool,
}

/// The changes in a file or under a key, for one type.
#[derive(Debug, Eq, PartialEq)]
pub struct FileNews {
    pub source: PathBuf,
    pub type_url: TypeUrl,
    /// The resources that are new, or changed.
    pub names: Vec<ResourceName>,
    pub removed: Vec<ResourceName>,
}

impl News {
    /// Notes the changes in a file, by type.
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

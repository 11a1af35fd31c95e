//! A folder of [`discovery_file`]s, watched by looking at it again and again.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::path::PathBuf;

use xds_machine::TypeUrl;
use xds_machine::server::Resource;

use crate::discovery_file::{self, Resources};

/// A folder, and what was last good in it.
pub struct Folder {
    path: PathBuf,
    /// The files as they were when they were last read.
    taken: Listing,
    /// The files as they were at the last look, if that was not taken, and for how many looks it was so.
    restless: Option<(Listing, u32)>,
    files: BTreeMap<OsString, Option<Resources>>,
    /// What was said already of the folder as a whole.
    said: BTreeSet<String>,
}

/// What a look at the folder brought.
#[derive(Debug, Default)]
pub struct News {
    /// Everything there is to serve, by type, if something changed.
    pub resources: Option<BTreeMap<TypeUrl, Vec<Resource>>>,
    /// Whether every file could be read, now or earlier. Otherwise nobody knows what does not exist.
    pub complete: bool,
    /// A line for each thing that is wrong, said once.
    pub complaints: Vec<String>,
}

type Listing = BTreeMap<OsString, Stamp>;

/// Another one means another content.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Stamp {
    len: u64,
    modified: Option<std::time::SystemTime>,
    /// A file that was moved here can have the length and the time of the one before.
    file: (u64, i64, i64),
}

/// After so many looks a folder that never rests is read as it is.
const RESTLESS: u32 = 20;

impl Folder {
    /// Reads a folder for the first time.
    ///
    /// # Errors
    ///
    /// If it is no folder that can be read. What is wrong with its files is among the news.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<(Self, News)> {
        let (taken, restless, files, said) = Default::default();
        let mut folder = Self { path: path.into(), taken, restless, files, said };
        let listing = folder.list()?;
        let news = folder.take(listing);
        Ok((folder, news))
    }

    /// Looks whether something changed. What did is read at the second look that finds it so: several files that
    /// change together are then one change, and none is read while it is written.
    pub fn look(&mut self) -> News {
        let listing = match self.list() {
            Ok(listing) => listing,
            Err(error) => return self.news(None, [format!("{}: {error}", self.path.display())].into()),
        };
        if listing == self.taken {
            self.restless = None;
            return News::default();
        }
        let looks = match &self.restless {
            Some((last, _)) if *last == listing => RESTLESS,
            Some((_, looks)) => looks + 1,
            None => 0,
        };
        if looks < RESTLESS {
            self.restless = Some((listing, looks));
            return News::default();
        }
        self.take(listing)
    }

    fn list(&self) -> io::Result<Listing> {
        let mut listing = Listing::new();
        for entry in fs::read_dir(&self.path)? {
            let path = entry?.path();
            if !discovery_file::is_one(&path) {
                continue;
            }
            // What can't be looked at is read, for the reason; what is gone since, is gone.
            let stamp = match fs::metadata(&path) {
                Ok(metadata) if metadata.is_dir() => continue,
                Ok(metadata) => Stamp::of(&metadata),
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(_) => Stamp { len: 0, modified: None, file: (0, 0, 0) },
            };
            listing.extend(path.file_name().map(|name| (name.to_owned(), stamp)));
        }
        Ok(listing)
    }

    /// Reads what changed.
    fn take(&mut self, listing: Listing) -> News {
        let mut complaints = Vec::new();
        self.files.retain(|name, _| listing.contains_key(name));
        for (name, stamp) in &listing {
            if self.taken.get(name) == Some(stamp) {
                continue;
            }
            let path = self.path.join(name);
            let content = fs::read(&path).map_err(|error| error.to_string());
            match content.and_then(|content| discovery_file::read(&path, content)) {
                Ok(resources) => drop(self.files.insert(name.clone(), Some(resources))),
                Err(error) => {
                    let kept = self.files.entry(name.clone()).or_default().is_some();
                    let kept = if kept { " (what it held before is still served)" } else { "" };
                    complaints.push(format!("{}: {}{kept}", path.display(), one_line(&error)));
                }
            }
        }
        self.taken = listing;
        self.restless = None;
        let (resources, conflicts) = self.merge();
        let mut news = self.news(Some(resources), conflicts);
        news.complaints.splice(0..0, complaints);
        news
    }

    /// Of two resources of one type and name, that of the first file counts, in the order of the files' names: the
    /// same after a restart, whichever was there first.
    fn merge(&self) -> (BTreeMap<TypeUrl, Vec<Resource>>, BTreeSet<String>) {
        let (mut owners, mut conflicts) = (BTreeMap::new(), BTreeSet::new());
        let mut all: BTreeMap<TypeUrl, Vec<Resource>> = BTreeMap::new();
        for (file, resources) in &self.files {
            for (key, resource) in resources.iter().flatten() {
                let owner = *owners.entry(key).or_insert(file);
                if owner == file {
                    all.entry(key.0.clone()).or_default().push(resource.clone());
                } else {
                    let (path, owner) = (self.path.join(file), owner.display());
                    conflicts.insert(format!("{}: {} {} is in {owner} already", path.display(), key.0, key.1));
                }
            }
        }
        (all, conflicts)
    }

    fn news(&mut self, resources: Option<BTreeMap<TypeUrl, Vec<Resource>>>, wrong: BTreeSet<String>) -> News {
        let complaints = wrong.difference(&self.said).cloned().collect();
        self.said = wrong;
        News { resources, complete: self.files.values().all(Option::is_some), complaints }
    }
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let file = {
            use std::os::unix::fs::MetadataExt;
            (metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
        };
        #[cfg(not(unix))]
        let file = (0, 0, 0);
        Self { len: metadata.len(), modified: metadata.modified().ok(), file }
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

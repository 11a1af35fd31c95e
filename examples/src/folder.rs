//! A folder of [`discovery_file`]s, watched by polling.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::path::PathBuf;

use xds_machine::TypeUrl;
use xds_machine::server::Resource;

use crate::discovery_file::{self, Resources};

/// A watched folder, and the last valid content of each of its files.
pub struct Folder {
    path: PathBuf,
    /// The files as of the last read.
    taken: Listing,
    /// The files as of the last poll, if they were not read yet, and the number of polls since they differ from
    /// `taken`.
    restless: Option<(Listing, u32)>,
    files: BTreeMap<OsString, Option<Resources>>,
    /// Faults of the folder as a whole that were reported already.
    said: BTreeSet<String>,
}

/// The result of a poll.
#[derive(Debug, Default)]
pub struct News {
    /// The complete set of resources to serve, by type, if anything changed.
    pub resources: Option<BTreeMap<TypeUrl, Vec<Resource>>>,
    /// Whether every file could be read, now or earlier. Otherwise it is unknown which resources do not exist.
    pub complete: bool,
    /// One line per fault, each reported once.
    pub complaints: Vec<String>,
}

type Listing = BTreeMap<OsString, Stamp>;

/// A fingerprint of a file: a different stamp means different content.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Stamp {
    len: u64,
    modified: Option<std::time::SystemTime>,
    /// Identifies the file: a file moved here can have the length and the time of its predecessor.
    file: (u64, i64, i64),
}

/// The number of polls after which a folder that keeps changing is read as it is.
const RESTLESS: u32 = 20;

impl Folder {
    /// Reads a folder for the first time.
    ///
    /// # Errors
    ///
    /// If the folder can't be read. Faults of its files are part of the news.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<(Self, News)> {
        let (taken, restless, files, said) = Default::default();
        let mut folder = Self { path: path.into(), taken, restless, files, said };
        let listing = folder.list()?;
        let news = folder.take(listing);
        Ok((folder, news))
    }

    /// Polls the folder for changes. A change is read when two polls in a row find the same state, so that several
    /// files that change together are one change, and no file is read while it is written.
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
            // Unreadable metadata still lists the file, so that reading it reports the reason; files removed since are
            // skipped.
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

    /// Reads the files that changed.
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

    /// Merges the resources of all files. If two files hold a resource of the same type and name, the first file in the
    /// order of file names wins: the outcome is the same after a restart, whichever file was there first.
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

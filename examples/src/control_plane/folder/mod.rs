//! A folder of [`discovery_file`]s and its sub-folders, read piece by piece: only the files that changed are read
//! again, and only the resources that changed are reported.

mod listing;
mod names;
mod settling;
pub mod watch;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File as OpenFile;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use xds_machine::TypeUrl;

use self::listing::{FileId, Listing, Stamp, is_hidden, stamp};
use self::names::Names;
use self::settling::Settling;
pub use self::settling::Touch;
use super::news::{Contents, Group, Key, News};
use crate::discovery_file::{self, Resources};

/// A watched folder, and the last valid content of each of its files.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    options: Options,
    files: BTreeMap<FileId, File>,
    /// The names of the folder itself, and of each sub-folder.
    scopes: BTreeMap<Group, Names>,
    settling: Settling,
    /// Conflicts that were reported already, by group and name.
    conflicts: BTreeMap<(Group, Key), Vec<String>>,
    /// Faults of folders as a whole that were reported already.
    said: BTreeSet<String>,
    /// Whether the folder itself could be listed at the last look at everything.
    is_there: bool,
}

#[derive(Debug)]
struct File {
    stamp: Stamp,
    /// The last valid content; `None` if there was none yet.
    content: Option<Resources>,
    /// Whether it is larger than a file may be: nothing waits for it.
    is_large: bool,
}

/// How a folder is read.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether sub-folders are read, as groups.
    pub grouped: bool,
    /// The size of the largest file that is read, in bytes.
    pub max_file_bytes: u64,
}

/// The scope of a look.
#[derive(Debug, Default)]
pub struct Touched {
    /// Everything is looked at, because it is not known which files were touched.
    pub all: bool,
    /// Notifications were lost: the end of a write may have been one of them.
    pub lost: bool,
    /// Every file is read again, changed or not.
    pub anew: bool,
    /// Files and folders that were touched.
    pub paths: BTreeMap<PathBuf, Touch>,
}

impl Touched {
    /// Returns the scope of everything.
    pub fn all() -> Self {
        Self { all: true, ..Self::default() }
    }
}

impl Folder {
    /// Reads a folder for the first time. Files that have changed within the second before `now` are left for later:
    /// they may be written.
    ///
    /// # Errors
    ///
    /// If the folder can't be read. Faults of its files are part of the news.
    pub fn open(root: impl Into<PathBuf>, options: Options, now: SystemTime) -> io::Result<(Self, News)> {
        let (files, settling, conflicts, said) = Default::default();
        let scopes = BTreeMap::from([(None, Names::default())]);
        let root = root.into();
        let mut folder = Self { root, options, files, scopes, settling, conflicts, said, is_there: true };
        let mut listing = Listing::read(&folder.root, options.grouped)?;
        let files = std::mem::take(&mut listing.files);
        let mut news = News { is_there: true, ..News::default() };
        folder.take_folders(listing, &mut news);
        let (young, still): (BTreeMap<_, _>, _) =
            files.into_iter().partition(|(_, stamp): &(FileId, Stamp)| stamp.is_young(now));
        let still: BTreeMap<FileId, Stamp> = still;
        for (file, _) in young {
            folder.settling.touch(file.clone(), Touch::Seen);
            folder.files.insert(file, File { stamp: Stamp::NEVER, content: None, is_large: false });
        }
        folder.take_files(still.into_iter().map(|(file, stamp)| (file, Some(stamp))).collect(), &mut news);
        Ok((folder, news))
    }

    /// Looks at the touched files, and reads those that have changed and settled.
    pub fn look(&mut self, touched: Touched, now: Instant) -> News {
        let mut news = News::default();
        if touched.lost {
            self.settling.forget_writers();
        }
        if touched.anew {
            for (file, known) in &mut self.files {
                known.stamp = Stamp::NEVER;
                self.settling.touch(file.clone(), Touch::Seen);
            }
            self.said.clear();
        }
        let mut all = None;
        for (path, touch) in touched.paths {
            all = all.max(self.touch(&path, touch));
        }
        if touched.all || touched.lost || touched.anew {
            all = all.max(Some(Touch::Seen));
        }
        if let Some(touch) = all {
            self.look_at_all(touch, &mut news);
        }
        let files = &self.files;
        let ready = self.settling.look(now, |file| stamp(&file.path(&self.root)));
        let changed = |(file, now): &(FileId, Option<Stamp>)| files.get(file).map(|file| &file.stamp) != now.as_ref();
        let ready: Vec<_> = ready.into_iter().filter(changed).collect();
        if !ready.is_empty() {
            self.take_files(ready, &mut news);
        }
        for file in self.settling.held_open(now) {
            let path = file.path(&self.root);
            let line = format!("{}: its writer has it open for 30 s (it is read when it is closed)", path.display());
            news.complaints.push(line);
        }
        news.is_there = self.is_there;
        news
    }

    /// Returns whether another look is due soon, because files have not settled.
    pub fn is_restless(&self) -> bool {
        !self.settling.is_empty()
    }

    /// Returns the folders to watch: those in which a file can appear.
    pub fn watched(&self) -> impl Iterator<Item = PathBuf> {
        let path = |group: &Group| match group {
            Some(group) => self.root.join(&**group),
            None => self.root.clone(),
        };
        self.scopes.keys().map(path)
    }

    /// Notes a path that was touched. Returns how all other files are touched, if a look at everything is necessary.
    fn touch(&mut self, path: &Path, touch: Touch) -> Option<Touch> {
        let Some(name) = path.file_name() else { return Some(Touch::Seen) };
        let group = match path.strip_prefix(&self.root).ok().and_then(Path::parent) {
            Some(parent) if parent.as_os_str().is_empty() => None,
            Some(parent) => parent.to_str().map(Arc::from),
            None => return Some(Touch::Seen),
        };
        if !self.scopes.contains_key(&group) {
            return Some(Touch::Seen); // in a folder that is not known yet
        }
        if discovery_file::is_one(path) {
            let is_folder = self.options.grouped && group.is_none() && path.is_dir();
            self.settling.touch(FileId { group, name: name.to_owned() }, touch);
            return is_folder.then_some(Touch::Seen);
        }
        if is_hidden(path) {
            // Kubernetes swaps a link `..data` on the path to the files, which are untouched themselves, and complete.
            return name.as_encoded_bytes().starts_with(b"..").then_some(Touch::Done);
        }
        let was_folder = name.to_str().is_some_and(|name| self.scopes.contains_key(&Some(name.into())));
        let is_folder = group.is_none() && self.options.grouped && (was_folder || path.is_dir());
        is_folder.then_some(Touch::Seen)
    }

    fn look_at_all(&mut self, touch: Touch, news: &mut News) {
        let mut listing = match Listing::read(&self.root, self.options.grouped) {
            Ok(listing) => listing,
            Err(error) => {
                self.is_there = false;
                let line = format!("{}: {error} (what it held before is still served)", self.root.display());
                return self.say([line].into(), news);
            }
        };
        self.is_there = true;
        let files = std::mem::take(&mut listing.files);
        let unreadable =
            |file: &FileId| file.group.as_ref().is_some_and(|group| listing.unreadable.contains_key(group));
        for file in self.files.keys().filter(|file| !files.contains_key(file) && !unreadable(file)) {
            self.settling.touch(file.clone(), Touch::Done);
        }
        for (file, stamp) in files {
            if self.files.get(&file).is_none_or(|known| known.stamp != stamp) {
                self.settling.touch(file, touch);
            }
        }
        self.take_folders(listing, news);
    }

    /// Takes the current sub-folders. A removed sub-folder is dropped with its last file.
    fn take_folders(&mut self, listing: Listing, news: &mut News) {
        for group in &listing.groups {
            if let Entry::Vacant(scope) = self.scopes.entry(Some(group.clone())) {
                scope.insert(Names::default());
                news.views.entry(Some(group.clone())).or_default();
            }
        }
        let files = &self.files;
        self.scopes.retain(|group, names| match group {
            Some(name) if names.is_empty() && !listing.groups.contains(name) => {
                files.keys().any(|file| file.group == *group) // broken files, about to go
            }
            _ => true,
        });
        let line = |(group, error): (&Arc<str>, &String)| {
            let path = self.root.join(&**group);
            format!("{}: {error} (what it held before is still served)", path.display())
        };
        let odd = listing.odd.iter().map(|(path, why)| format!("{}: {why} (it is left out)", path.display()));
        let lines = listing.unreadable.iter().map(line).chain(odd).collect();
        self.say(lines, news);
    }

    /// Reports faults of folders that were not reported yet.
    fn say(&mut self, wrong: BTreeSet<String>, news: &mut News) {
        news.complaints.extend(wrong.difference(&self.said).cloned());
        self.said = wrong;
    }

    /// Reads files that changed.
    fn take_files(&mut self, changed: Vec<(FileId, Option<Stamp>)>, news: &mut News) {
        let mut touched = BTreeSet::new();
        for (file, stamp) in changed {
            let path = file.path(&self.root);
            let old = self.files.remove(&file);
            let Some(stamp) = stamp else {
                let old = old.and_then(|old| old.content).unwrap_or_default();
                self.exchange(&file, &old, &Resources::new(), &mut touched, news);
                continue;
            };
            let is_large = stamp.size() > self.options.max_file_bytes;
            let content = match self.read(&path).and_then(|content| discovery_file::read(&path, content)) {
                Ok(new) => {
                    let old = old.and_then(|old| old.content).unwrap_or_default();
                    self.exchange(&file, &old, &new, &mut touched, news);
                    Some(new)
                }
                Err(error) => {
                    let kept = old.and_then(|old| old.content);
                    let meaning = match kept {
                        Some(_) => "what it held before is still served",
                        None if is_large => "it is left out",
                        None => "until it can be read, nothing is said to be removed, and no first answer is given",
                    };
                    news.complaints.push(format!("{}: {} ({meaning})", path.display(), one_line(&error)));
                    kept
                }
            };
            self.files.insert(file, File { stamp, content, is_large });
        }
        self.resolve(touched, news);
        self.complete(news);
    }

    /// Reads a file that is not too large.
    fn read(&self, path: &Path) -> Result<Vec<u8>, String> {
        let (max, mut content) = (self.options.max_file_bytes, Vec::new());
        let open = OpenFile::open(path).and_then(|file| file.take(max.saturating_add(1)).read_to_end(&mut content));
        open.map_err(|error| error.to_string())?;
        let is_large = content.len() as u64 > max;
        if is_large { Err(format!("it has more than --max-file-bytes {max}")) } else { Ok(content) }
    }

    /// Exchanges the content of a file.
    fn exchange(
        &mut self,
        file: &FileId,
        old: &Resources,
        new: &Resources,
        touched: &mut BTreeSet<(Group, Key)>,
        news: &mut News,
    ) {
        let names = self.scopes.entry(file.group.clone()).or_default();
        let gone = old.keys().filter(|key| !new.contains_key(*key));
        gone.clone().for_each(|key| names.remove(key, &file.name));
        let changed = new.iter().filter(|(key, resource)| old.get(*key) != Some(resource)).map(|(key, _)| key);
        changed.clone().for_each(|key| names.add(key, &file.name));
        touched.extend(gone.clone().chain(changed.clone()).map(|key| (file.group.clone(), key.clone())));
        news.note_file(file.path(&self.root), changed, gone);
    }

    /// Adds the touched names to the news of the views, and reports conflicts about them.
    fn resolve(&mut self, touched: BTreeSet<(Group, Key)>, news: &mut News) {
        for (group, key) in touched {
            self.note_conflict(&group, &key, news);
            match group {
                Some(_) => self.tell(group, key, news),
                // A resource of the folder itself is part of every view.
                None => self.scopes.keys().for_each(|group| self.tell(group.clone(), key.clone(), news)),
            }
        }
    }

    fn tell(&self, group: Group, key: Key, news: &mut News) {
        let resource = self.resource(&group, &key).or_else(|| self.resource(&None, &key)).cloned();
        news.views.entry(group).or_default().push((key, resource.into()));
    }

    /// Returns the resource that counts for a name, in the folder itself or in a sub-folder.
    fn resource(&self, group: &Group, key: &Key) -> Option<&xds_machine::server::Resource> {
        let name = self.scopes.get(group)?.winner(key)?.to_owned();
        self.files.get(&FileId { group: group.clone(), name })?.content.as_ref()?.get(key)
    }

    fn note_conflict(&mut self, group: &Group, key: &Key, news: &mut News) {
        let place = (group.clone(), key.clone());
        let conflict = self.scopes.get(group).and_then(|names| names.conflict(key));
        let Some((winner, others)) = conflict else {
            self.conflicts.remove(&place);
            return;
        };
        let line = |other: &std::ffi::OsString| {
            let path = FileId { group: group.clone(), name: other.clone() }.path(&self.root);
            format!("{}: {} {} is in {} already", path.display(), key.0, key.1, winner.display())
        };
        let lines: Vec<String> = others.iter().map(line).collect();
        let said = self.conflicts.get(&place);
        news.complaints.extend(lines.iter().filter(|line| said.is_none_or(|said| !said.contains(line))).cloned());
        self.conflicts.insert(place, lines);
    }

    /// Notes which views are complete: each of their files could be read, now or earlier.
    fn complete(&self, news: &mut News) {
        news.unread = BTreeMap::new();
        for (file, _) in self.files.iter().filter(|(_, file)| file.content.is_none() && !file.is_large) {
            let unread = news.unread.entry(file.group.clone()).or_default();
            unread.push(file.path(&self.root).display().to_string());
        }
        let groups = self.scopes.keys().filter(|_| !news.unread.contains_key(&None));
        news.complete = groups.filter(|group| !news.unread.contains_key(*group)).cloned().collect();
    }
}

impl Contents for Folder {
    /// The sub-folders are groups.
    fn groups(&self) -> impl Iterator<Item = &Arc<str>> {
        self.scopes.keys().flatten()
    }

    fn counts(&self) -> BTreeMap<&TypeUrl, usize> {
        let mut counts = BTreeMap::new();
        for (type_url, count) in self.scopes.values().flat_map(Names::counts) {
            *counts.entry(type_url).or_default() += count;
        }
        counts
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

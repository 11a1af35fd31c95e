//! A folder of [`discovery_file`]s and its sub-folders, read piece by piece: only the files that changed are read
//! again, and only the resources that changed are reported.

mod listing;
mod names;
mod settling;
pub mod watch;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use xds_machine::TypeUrl;

use self::listing::{FileId, Listing, Stamp, is_hidden, stamp};
use self::names::Names;
use self::settling::Settling;
use super::news::{Contents, Group, Key, News};
use crate::discovery_file::{self, Resources};

/// A watched folder, and the last valid content of each of its files.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    /// Whether sub-folders are read, as groups.
    grouped: bool,
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
}

/// The scope of a look.
#[derive(Debug)]
pub enum Touched {
    /// Everything, because it is not known which files were touched.
    All,
    /// Files and folders that were touched.
    Paths(BTreeSet<PathBuf>),
}

impl Folder {
    /// Reads a folder for the first time.
    ///
    /// # Errors
    ///
    /// If the folder can't be read. Faults of its files are part of the news.
    pub fn open(root: impl Into<PathBuf>, grouped: bool) -> io::Result<(Self, News)> {
        let (files, settling, conflicts, said) = Default::default();
        let scopes = BTreeMap::from([(None, Names::default())]);
        let root = root.into();
        let mut folder = Self { root, grouped, files, scopes, settling, conflicts, said, is_there: true };
        let mut listing = Listing::read(&folder.root, grouped)?;
        let files = std::mem::take(&mut listing.files);
        let mut news = News { is_there: true, ..News::default() };
        folder.take_folders(listing, &mut news);
        folder.take_files(files.into_iter().map(|(file, stamp)| (file, Some(stamp))).collect(), &mut news);
        Ok((folder, news))
    }

    /// Looks at the touched files, and reads those that have changed and settled.
    pub fn look(&mut self, touched: Touched) -> News {
        let mut news = News::default();
        let mut all = false;
        match touched {
            Touched::All => all = true,
            Touched::Paths(paths) => paths.iter().for_each(|path| all |= self.touch(path)),
        }
        if all {
            self.look_at_all(&mut news);
        }
        let files = &self.files;
        let ready = self.settling.look(|file| stamp(&file.path(&self.root)));
        let changed = |(file, now): &(FileId, Option<Stamp>)| files.get(file).map(|file| &file.stamp) != now.as_ref();
        let ready: Vec<_> = ready.into_iter().filter(changed).collect();
        if !ready.is_empty() {
            self.take_files(ready, &mut news);
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

    /// Notes a path that was touched. Returns whether a look at everything is necessary.
    fn touch(&mut self, path: &Path) -> bool {
        let Some(name) = path.file_name() else { return true };
        let group = match path.strip_prefix(&self.root).ok().and_then(Path::parent) {
            Some(parent) if parent.as_os_str().is_empty() => None,
            Some(parent) => parent.to_str().map(Arc::from),
            None => return true,
        };
        if !self.scopes.contains_key(&group) {
            return true; // in a folder that is not known yet
        }
        if discovery_file::is_one(path) {
            let is_folder = self.grouped && group.is_none() && path.is_dir();
            self.settling.touch(FileId { group, name: name.to_owned() });
            return is_folder;
        }
        if is_hidden(path) {
            // Kubernetes swaps a link `..data` on the path to the files, which are untouched themselves.
            return name.as_encoded_bytes().starts_with(b"..");
        }
        let was_folder = name.to_str().is_some_and(|name| self.scopes.contains_key(&Some(name.into())));
        group.is_none() && self.grouped && (was_folder || path.is_dir())
    }

    fn look_at_all(&mut self, news: &mut News) {
        let mut listing = match Listing::read(&self.root, self.grouped) {
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
            self.settling.touch(file.clone());
        }
        for (file, stamp) in files {
            if self.files.get(&file).is_none_or(|known| known.stamp != stamp) {
                self.settling.touch(file);
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
        let lines = listing.unreadable.iter().map(line).collect();
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
            let content = fs::read(&path).map_err(|error| error.to_string());
            let content = match content.and_then(|content| discovery_file::read(&path, content)) {
                Ok(new) => {
                    let old = old.and_then(|old| old.content).unwrap_or_default();
                    self.exchange(&file, &old, &new, &mut touched, news);
                    Some(new)
                }
                Err(error) => {
                    let kept = old.and_then(|old| old.content);
                    let meaning = match kept {
                        Some(_) => "what it held before is still served",
                        None => "until it can be read, nothing is said to be removed, and no first answer is given",
                    };
                    news.complaints.push(format!("{}: {} ({meaning})", path.display(), one_line(&error)));
                    kept
                }
            };
            self.files.insert(file, File { stamp, content });
        }
        self.resolve(touched, news);
        self.complete(news);
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
        for (file, _) in self.files.iter().filter(|(_, file)| file.content.is_none()) {
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

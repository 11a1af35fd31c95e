//! The files of a folder and of its sub-folders, each with a stamp that changes when the content does.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::settling::STILL;
use crate::control_plane::news::Group;
use crate::discovery_file;

/// A file, by the sub-folder and the name in it.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct FileId {
    pub group: Group,
    pub name: OsString,
}

impl FileId {
    pub fn path(&self, root: &Path) -> PathBuf {
        match &self.group {
            Some(group) => root.join(&**group).join(&self.name),
            None => root.join(&self.name),
        }
    }
}

/// A fingerprint of a file: different content has a different stamp.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
    /// Identifies the file: a file moved here can have the length and the time of its predecessor.
    file: (u64, i64, i64),
}

impl Stamp {
    /// The stamp of no file.
    pub const NEVER: Self = Self { len: 0, modified: None, file: (0, 0, 0) };

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

    /// Returns the size of the file, in bytes.
    pub fn size(&self) -> u64 {
        self.len
    }

    /// Returns whether the file has changed within the last second before `now`, or after it.
    pub fn is_young(&self, now: SystemTime) -> bool {
        let is_old = |time: SystemTime| now.duration_since(time).is_ok_and(|age| age >= STILL);
        // A move, or a tool that sets the time of the content, leaves only the time of the status.
        let (_, seconds, nanos) = self.file;
        let changed = Duration::new(seconds.try_into().unwrap_or_default(), nanos.try_into().unwrap_or_default());
        !self.modified.is_some_and(is_old) || !is_old(SystemTime::UNIX_EPOCH + changed)
    }
}

/// What is at the place of a file.
pub enum Found {
    File(Stamp),
    /// Nothing, or a folder.
    Nothing,
    /// Something that can't be read as a file is, and why.
    Odd(String),
}

/// Looks at the place of a file.
pub fn find(path: &Path) -> Found {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Found::File(Stamp::of(&metadata)),
        Ok(metadata) if metadata.is_dir() => Found::Nothing,
        Ok(_) => Found::Odd("it is no regular file".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Found::Nothing,
        // The file counts as present, so that reading it reports the reason.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Found::File(Stamp::NEVER),
        Err(error) => Found::Odd(error.to_string()), // a loop of links
    }
}

/// Returns the stamp of a file, or `None` if there is no file.
pub fn stamp(path: &Path) -> Option<Stamp> {
    match find(path) {
        Found::File(stamp) => Some(stamp),
        Found::Nothing | Found::Odd(_) => None,
    }
}

/// All files, and the sub-folders.
#[derive(Debug, Default)]
pub struct Listing {
    pub files: BTreeMap<FileId, Stamp>,
    pub groups: BTreeSet<Arc<str>>,
    /// Sub-folders that exist and can't be read, each with the reason.
    pub unreadable: BTreeMap<Arc<str>, String>,
    /// Entries with the name of a file that are none, each with the reason.
    pub odd: BTreeMap<PathBuf, String>,
}

impl Listing {
    /// Lists the folder, and its sub-folders if they are groups.
    ///
    /// # Errors
    ///
    /// If the folder itself can't be read.
    pub fn read(root: &Path, grouped: bool) -> io::Result<Self> {
        let mut listing = Self::default();
        for name in listing.add(root, &None)? {
            let Some(group) = name.to_str().filter(|_| grouped).map(Arc::<str>::from) else { continue };
            let path = root.join(&name);
            if !fs::metadata(&path).is_ok_and(|metadata| metadata.is_dir()) {
                continue;
            }
            match listing.add(&path, &Some(group.clone())) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue, // removed since
                Err(error) => drop(listing.unreadable.insert(group.clone(), error.to_string())),
            }
            listing.groups.insert(group);
        }
        Ok(listing)
    }

    /// Adds the files of a folder, and returns the names that may be sub-folders.
    fn add(&mut self, path: &Path, group: &Group) -> io::Result<Vec<OsString>> {
        let mut others = Vec::new();
        for entry in fs::read_dir(path)? {
            let name = entry?.file_name();
            let path = path.join(&name);
            match discovery_file::is_one(&path).then(|| find(&path)) {
                Some(Found::File(stamp)) => drop(self.files.insert(FileId { group: group.clone(), name }, stamp)),
                Some(Found::Odd(why)) => drop(self.odd.insert(path, why)),
                _ if is_hidden(&path) => {}
                None if fs::metadata(&path).is_ok_and(|metadata| metadata.is_file()) => {
                    let why = "its name ends with none of .json, .yaml, .yml, .pb and .pb_text";
                    self.odd.insert(path, why.to_owned());
                }
                Some(Found::Nothing) | None if group.is_none() => others.push(name),
                Some(Found::Nothing) | None => {}
            }
        }
        Ok(others)
    }
}

/// Returns whether the name begins with a dot, as those of temporary files and of files of tools do.
pub fn is_hidden(path: &Path) -> bool {
    path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// Distinguishes a folder from another that takes its place.
pub type FolderId = (u64, u64);

/// Returns the identity of a folder, or `None` if there is no folder.
pub fn folder_id(path: &Path) -> Option<FolderId> {
    let metadata = fs::metadata(path).ok().filter(Metadata::is_dir)?;
    #[cfg(unix)]
    return {
        use std::os::unix::fs::MetadataExt;
        Some((metadata.dev(), metadata.ino()))
    };
    #[cfg(not(unix))]
    return metadata.modified().ok().map(|_| (0, 0));
}

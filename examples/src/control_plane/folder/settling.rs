//! Files that were touched and are not read yet.

use std::collections::BTreeMap;

use super::listing::{FileId, Stamp};

/// Files that were touched, held until two looks in a row find each unchanged: several files that change together are
/// one change, and no file is read while it is written.
#[derive(Debug, Default)]
pub struct Settling {
    files: BTreeMap<FileId, Touched>,
    /// The number of looks since the first file was touched.
    looks: u32,
}

#[derive(Debug, Default)]
struct Touched {
    /// The stamp at the last look; the outer `None` before the first.
    last: Option<Option<Stamp>>,
    is_settled: bool,
    looks: u32,
}

/// The number of looks after which the settled files no longer wait for the others.
const PATIENCE: u32 = 3;

/// The number of looks after which a file that keeps changing is read as it is.
const RESTLESS: u32 = 20;

impl Settling {
    pub fn touch(&mut self, file: FileId) {
        self.files.entry(file).or_default();
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Looks at all files with `stamp`, and returns those that are to be read now.
    pub fn look(&mut self, stamp: impl Fn(&FileId) -> Option<Stamp>) -> Vec<(FileId, Option<Stamp>)> {
        self.looks += 1;
        for (file, touched) in &mut self.files {
            let now = Some(stamp(file));
            touched.looks += 1;
            touched.is_settled = touched.last == now || touched.looks > RESTLESS;
            touched.last = now;
        }
        let all = self.files.values().all(|touched| touched.is_settled);
        if !all && self.looks < PATIENCE {
            return Vec::new();
        }
        self.looks = 0;
        let mut settled = Vec::new();
        self.files.retain(|file, touched| {
            if touched.is_settled {
                settled.push((file.clone(), touched.last.take().flatten()));
            }
            !touched.is_settled
        });
        settled
    }
}

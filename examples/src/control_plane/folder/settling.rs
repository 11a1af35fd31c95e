//! Files that were touched and are not read yet.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::listing::{FileId, Stamp};

/// Files that were touched, held until their writers are done: several files that change together are one change, and
/// no file is read while it is written.
#[derive(Debug, Default)]
pub struct Settling {
    files: BTreeMap<FileId, Touched>,
    /// The number of looks since the first file was touched.
    looks: u32,
}

/// How a file was touched.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Touch {
    /// It may have changed, and nothing is known of a writer.
    Seen,
    /// Its writer closed it, it was moved to its place, or it has gone.
    Done,
    /// Somebody has it open, and wrote to it.
    Written,
}

#[derive(Debug)]
struct Touched {
    /// The stamp at the last look, and since when it is the same; `None` before the first look.
    last: Option<(Option<Stamp>, Instant)>,
    touch: Touch,
    /// The time of the first touch by a writer that has the file open.
    open: Option<Instant>,
    is_settled: bool,
    is_said: bool,
}

/// The number of looks after which the settled files no longer wait for the others.
const PATIENCE: u32 = 3;

/// The time for which a file has to stand still if nothing is known of its writer.
pub const STILL: Duration = Duration::from_secs(1);

/// The time after which a file that is held open is worth a line.
const LONG: Duration = Duration::from_secs(30);

impl Settling {
    pub fn touch(&mut self, file: FileId, touch: Touch) {
        let new = Touched { last: None, touch, open: None, is_settled: false, is_said: false };
        let touched = self.files.entry(file).or_insert(new);
        // What merely may have changed says nothing new of a writer.
        if touch != Touch::Seen {
            touched.touch = touch;
        }
        if touched.touch != Touch::Written {
            touched.open = None;
        }
    }

    /// Notes that the ends of writes may have been missed: only time tells now.
    pub fn forget_writers(&mut self) {
        self.files.values_mut().for_each(|touched| touched.touch = Touch::Seen);
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Looks at all files with `stamp`, and returns those that are to be read now.
    pub fn look(&mut self, now: Instant, stamp: impl Fn(&FileId) -> Option<Stamp>) -> Vec<(FileId, Option<Stamp>)> {
        self.looks += 1;
        for (file, touched) in &mut self.files {
            let stamp = stamp(file);
            let since = match &touched.last {
                Some((last, since)) if *last == stamp => Some(*since),
                _ => None,
            };
            touched.is_settled = match (touched.touch, since) {
                (_, None) => false,
                (_, Some(_)) if stamp.is_none() => true,
                (Touch::Done, Some(_)) => true,
                (Touch::Seen, Some(since)) => now.saturating_duration_since(since) >= STILL,
                (Touch::Written, _) => false,
            };
            touched.last = Some((stamp, since.unwrap_or(now)));
            if touched.touch == Touch::Written {
                touched.open.get_or_insert(now);
            }
        }
        let all = self.files.values().all(|touched| touched.is_settled);
        if !all && self.looks < PATIENCE {
            return Vec::new();
        }
        self.looks = 0;
        let mut settled = Vec::new();
        self.files.retain(|file, touched| {
            if touched.is_settled {
                settled.push((file.clone(), touched.last.take().and_then(|(stamp, _)| stamp)));
            }
            !touched.is_settled
        });
        settled
    }

    /// Returns the files that their writers have held open for long, each once.
    pub fn held_open(&mut self, now: Instant) -> Vec<FileId> {
        let mut held = Vec::new();
        for (file, touched) in &mut self.files {
            let is_long = touched.open.is_some_and(|since| now.saturating_duration_since(since) > LONG);
            if is_long && !std::mem::replace(&mut touched.is_said, true) {
                held.push(file.clone());
            }
        }
        held
    }
}

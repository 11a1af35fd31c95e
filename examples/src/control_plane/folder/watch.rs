//! Watches a folder by the system's notifications, and by periodic looks.

use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};

use super::listing::{FolderId, folder_id};
use super::{Folder, Touch, Touched};
use crate::control_plane::news::News;

/// The time between two looks at files that were touched.
const SETTLE: Duration = Duration::from_millis(20);

/// What a watch waits for.
enum Happened {
    /// A notification of the system.
    Event(notify::Result<Event>),
    /// Somebody wants every file to be read again.
    Anew,
}

/// Lets every file be read again.
#[derive(Clone)]
pub struct Anew(Sender<Happened>);

impl Anew {
    /// Asks the watch to read every file again. Does nothing if the watch has ended.
    pub fn ask(&self) {
        let _ = self.0.send(Happened::Anew);
    }
}

/// The notifications of a folder and its sub-folders.
pub struct Watch {
    watcher: Option<RecommendedWatcher>,
    events: Receiver<Happened>,
    /// Keeps the channel open if there is no watcher.
    sender: Sender<Happened>,
    /// The watched folders, each with its identity when the watch began: another folder may have taken its place.
    watched: BTreeMap<PathBuf, FolderId>,
    /// Folders without notifications.
    unwatched: BTreeSet<PathBuf>,
}

impl Watch {
    /// Begins to watch. Without notifications, only looks find changes.
    pub fn begin() -> Self {
        let (sender, events) = channel();
        let handler = sender.clone();
        let watcher = match notify::recommended_watcher(move |event| {
            let _ = handler.send(Happened::Event(event));
        }) {
            Ok(watcher) => Some(watcher),
            Err(error) => {
                tracing::warn!("no notifications of changed files, so the folder is polled: {error}");
                None
            }
        };
        let (watched, unwatched) = Default::default();
        Self { watcher, events, sender, watched, unwatched }
    }

    /// Returns what lets every file be read again.
    pub fn anew(&self) -> Anew {
        Anew(self.sender.clone())
    }

    /// Watches a folder forever, and passes its news to `take`.
    pub fn run(mut self, mut folder: Folder, mut take: impl FnMut(&Folder, News)) {
        // The look that follows finds the changes between the first read and the first watch.
        let mut next = Instant::now();
        self.follow(&folder);
        loop {
            let touched = self.wait(&folder, next);
            let all = touched.all;
            let start = Instant::now();
            let news = folder.look(touched, start);
            take(&folder, news);
            if all {
                next = Instant::now() + self.pause(start.elapsed());
            }
            if self.follow(&folder) {
                next = Instant::now(); // files may have appeared before the watch began
            }
        }
    }

    /// Waits until a look is due, and returns its scope.
    fn wait(&self, folder: &Folder, next: Instant) -> Touched {
        let due = if folder.is_restless() { next.min(Instant::now() + SETTLE) } else { next };
        let mut touched = Touched::default();
        loop {
            let left = due.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(happened) => note(happened, &mut touched),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
            if Instant::now() >= due {
                break; // though events keep coming
            }
            if !folder.is_restless() {
                self.events.try_iter().for_each(|happened| note(happened, &mut touched));
                if touched.lost || touched.anew || !touched.paths.is_empty() {
                    break;
                }
            }
        }
        touched.all = Instant::now() >= next;
        touched
    }

    /// Returns the time until the next look at everything. With notifications, looks find only the changes that these
    /// miss, such as the swap of a link elsewhere, and take a hundredth of the time; otherwise looks alone find all
    /// changes.
    fn pause(&self, cost: Duration) -> Duration {
        match self.watcher {
            Some(_) if self.unwatched.is_empty() => Duration::from_millis(200).max(cost * 100),
            _ => Duration::from_millis(50).max(cost * 10),
        }
    }

    /// Watches the current folders. Returns whether one was added.
    fn follow(&mut self, folder: &Folder) -> bool {
        let Some(watcher) = &mut self.watcher else { return false };
        let now: BTreeMap<PathBuf, FolderId> =
            folder.watched().filter_map(|path| folder_id(&path).map(|id| (path, id))).collect();
        let gone = self.watched.iter().filter(|(path, id)| now.get(*path) != Some(id));
        for (path, _) in gone {
            let _ = watcher.unwatch(path); // an error means that it is not watched
        }
        self.watched.retain(|path, id| now.get(path) == Some(id));
        let mut added = false;
        self.unwatched.retain(|path| now.contains_key(path));
        for (path, id) in now {
            if self.watched.contains_key(&path) {
                continue;
            }
            match watcher.watch(&path, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.unwatched.remove(&path);
                    self.watched.insert(path, id);
                    added = true;
                }
                // The limit of the system, for example.
                Err(error) => {
                    if self.unwatched.insert(path.clone()) {
                        tracing::warn!("{}: no notifications, so the folder is polled: {error}", path.display());
                    }
                }
            }
        }
        added
    }
}

/// Adds what has happened to the scope of the next look.
fn note(happened: Happened, touched: &mut Touched) {
    let event = match happened {
        Happened::Anew => return touched.anew = true,
        Happened::Event(Err(_)) => return touched.lost = true,
        Happened::Event(Ok(event)) => event,
    };
    let touch = match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => Touch::Done,
        // Reading is no change; otherwise a file that this program reads would be read for ever.
        EventKind::Access(_) => return,
        EventKind::Modify(ModifyKind::Name(_)) | EventKind::Remove(_) => Touch::Done,
        // Where the system does not tell of the end of writes, only time tells.
        EventKind::Modify(ModifyKind::Data(_)) if cfg!(target_os = "linux") => Touch::Written,
        _ => Touch::Seen,
    };
    touched.lost |= event.need_rescan();
    for path in event.paths {
        match touched.paths.entry(path) {
            // What merely may have changed says nothing new of a writer.
            btree_map::Entry::Occupied(mut known) if touch != Touch::Seen => drop(known.insert(touch)),
            btree_map::Entry::Occupied(_) => {}
            btree_map::Entry::Vacant(new) => drop(new.insert(touch)),
        }
    }
}

//! `--variant file`: reads each type from a file of a folder, and again each time that an entry is moved into the
//! folder.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::task::Poll;
use std::time::SystemTime;

use examples::element::names;
use examples::references::{Follower, Target};
use examples::{json, printable};
use notify::event::{EventKind, ModifyKind, RenameMode};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::sleep_until;
use xds_machine::client::{self, Client, Rejection};
use xds_machine::csds::Clock;
use xds_machine::file::{Action, Files};
use xds_machine::message::sotw;
use xds_machine::{Instant, Sotw, TypeUrl, proto};

use super::arguments::{Arguments, short};
use super::judge::{Judged, judge};
use super::status::{self, Status};
use super::{by_type, print, print_rejected};

/// The formats, by suffix.
const SUFFIXES: [&str; 5] = ["json", "yaml", "yml", "pb", "pb_text"];

/// Reads files until the program ends.
pub(crate) async fn run(arguments: &Arguments) -> Result<(), String> {
    let folder = PathBuf::from(&arguments.server);
    let wrong = |error: &dyn std::fmt::Display| format!("the folder {}: {error}", folder.display());
    if !fs::metadata(&folder).map_err(|error| wrong(&error))?.is_dir() {
        return Err(wrong(&"it is no folder"));
    }
    // The watch begins first: an entry that is moved while the files are read makes the program read them again.
    let (_watcher, moves) = watch(&folder).map_err(|error| wrong(&error))?;
    let targets = arguments.targets();
    let mut program = Program {
        start: tokio::time::Instant::now(),
        files: Vec::new(),
        folder,
        follower: arguments.follow.then(|| Follower::new(targets.clone())),
        opened: 0,
        clock: status::clock(Instant::EPOCH),
        status: Status::open(arguments.csds.as_ref()).await?,
    };
    for (at, (type_url, names)) in by_type(targets).into_iter().enumerate() {
        let Some(short) = short(&type_url) else { return Err(format!("{type_url} has no short name")) };
        let mut files = Files::new(arguments.config().with_id(at as u64), type_url);
        files.subscribe(names).map_err(|error| error.to_string())?;
        program.files.push(OfType { files, short, path: None, last: None, is_open: false, said: None });
    }
    program.run(moves).await
}

/// Receives the entries that are moved into a folder; `None` stands for any number of them.
type Moves = UnboundedReceiver<Option<PathBuf>>;

fn watch(folder: &Path) -> notify::Result<(RecommendedWatcher, Moves)> {
    let (sender, moves) = unbounded_channel();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let moved = match event {
            // Events were lost (R-FS-15).
            Ok(event) if event.need_rescan() => Some(None),
            Ok(event) if event.kind == EventKind::Modify(ModifyKind::Name(RenameMode::To)) => {
                Some(event.paths.into_iter().next())
            }
            Ok(_) => None,
            Err(_) => Some(None),
        };
        if let Some(moved) = moved {
            let _ = sender.send(moved);
        }
    })?;
    watcher.watch(folder, RecursiveMode::NonRecursive)?;
    Ok((watcher, moves))
}

/// The file of one type.
struct OfType {
    files: Files,
    short: &'static str,
    /// The file that was moved last.
    path: Option<PathBuf>,
    /// The content that was read last, and its path.
    last: Option<(PathBuf, Vec<u8>)>,
    is_open: bool,
    /// The last message about a missing file, or about more than one file.
    said: Option<String>,
}

struct Program {
    start: tokio::time::Instant,
    folder: PathBuf,
    files: Vec<OfType>,
    follower: Option<Follower>,
    opened: u64,
    clock: Clock,
    status: Option<Status>,
}

impl Program {
    async fn run(&mut self, mut moves: Moves) -> Result<(), String> {
        self.act()?;
        loop {
            let due = self.files.iter().filter_map(|of| of.files.poll_timeout()).min();
            let due = due.map(|due| self.start + due.since_epoch());
            let (files, status, clock) = (&self.files, &mut self.status, self.clock);
            let answered = poll_fn(|cx| match status {
                Some(status) => status.poll_answer(cx, || clients(files, clock)),
                None => Poll::Pending,
            });
            tokio::select! {
                () = answered => {}
                moved = moves.recv() => {
                    let mut moved = vec![moved.ok_or("the watch of the folder ended")?];
                    while let Ok(more) = moves.try_recv() {
                        moved.push(more);
                    }
                    self.note(&moved);
                }
                () = async { sleep_until(due.unwrap_or(self.start)).await }, if due.is_some() => {
                    let now = self.now();
                    self.files.iter_mut().for_each(|of| of.files.handle_timeout(now));
                }
            }
            self.act()?;
        }
    }

    fn now(&self) -> Instant {
        Instant::from_epoch(self.start.elapsed())
    }

    fn note(&mut self, moved: &[Option<PathBuf>]) {
        for of in &mut self.files {
            for path in moved.iter().flatten() {
                let is_its = SUFFIXES.iter().any(|suffix| is_named(path, of.short, suffix));
                if is_its {
                    of.path = Some(path.clone());
                }
            }
            of.files.handle_moved();
        }
    }

    /// Carries out the actions of the files until none is left.
    fn act(&mut self) -> Result<(), String> {
        for at in 0..self.files.len() {
            let mut actions = VecDeque::new();
            loop {
                while let Some(action) = self.files[at].files.poll_action() {
                    actions.push_back(action);
                }
                match actions.pop_front() {
                    None => break,
                    Some(Action::Read) => self.read(at)?,
                    Some(Action::Client(client::Action::Rejected { type_url, faults, .. })) => {
                        // One line for a file, with the faults found by the machine and by this program.
                        match actions.pop_front() {
                            Some(Action::Client(client::Action::Apply(update))) => self.apply(at, update, faults)?,
                            other => {
                                print_rejected(&type_url, &faults);
                                other.into_iter().for_each(|other| actions.push_front(other));
                            }
                        }
                    }
                    Some(Action::Client(client::Action::Apply(update))) => self.apply(at, update, Vec::new())?,
                    Some(Action::Client(client::Action::DoesNotExist { type_url, names })) => {
                        names.iter().for_each(|name| {
                            print(json!({ "missing": { "type_url": type_url.as_str(), "name": name.as_str() } }));
                        });
                    }
                    Some(Action::Client(client::Action::Expired { type_url, names: gone })) => {
                        print(json!({ "expired": { "type_url": type_url.as_str(), "names": names(&gone) } }));
                        self.follow(gone.into_iter().map(|name| ((type_url.clone(), name), None)).collect())?;
                    }
                    Some(_) => {}
                }
            }
        }
        Ok(())
    }

    /// Reads the file of a type.
    fn read(&mut self, at: usize) -> Result<(), String> {
        let (now, of) = (self.now(), &mut self.files[at]);
        let Some(path) = of.choose(&self.folder) else {
            of.say(format!("no file {}.json, .yaml, .yml, .pb or .pb_text in {}", of.short, self.folder.display()));
            // The resources of the file stay: nothing is read.
            of.files.handle_unchanged();
            return Ok(());
        };
        let read = fs::read(&path);
        if matches!((&read, &of.last), (Ok(content), Some((last, old))) if *last == path && old == content) {
            of.files.handle_unchanged(); // no output for the same content, be it good or bad
            return Ok(());
        }
        let content = match read {
            Ok(content) => {
                if !std::mem::replace(&mut of.is_open, true) {
                    self.opened += 1;
                    print(json!({ "open": { "stream": self.opened, "server": self.folder.display().to_string() } }));
                }
                let decoded = decode(&path, &content);
                of.last = Some((path, content));
                decoded
            }
            Err(error) => {
                of.last = None;
                Err(format!("{}: {error}", path.display()))
            }
        };
        of.files.handle_content(now, content).map_err(|error| error.to_string())
    }

    fn apply(&mut self, at: usize, update: client::Update, faults: Vec<Rejection>) -> Result<(), String> {
        let type_url = update.type_url().clone();
        let Judged { line, changes, rejections } = judge(&update);
        line.into_iter().for_each(print);
        let all: Vec<Rejection> = faults.into_iter().chain(rejections.iter().cloned()).collect();
        print_rejected(&type_url, &all);
        let now = self.now();
        if let Some(status) = &mut self.status {
            status.note_update(&update);
        }
        let id = update.client_id();
        let judged = self.files[at].files.handle_verdict(now, update.reject(rejections.clone()));
        judged.map_err(|error| error.to_string())?;
        if let Some(status) = &mut self.status {
            status.note_verdict((id, &type_url), &rejections, &clients(&self.files, self.clock));
        }
        self.follow(changes)
    }

    /// Subscribes to resources that are now referred to, if their type has a file, and unsubscribes from those that no
    /// longer are.
    fn follow(&mut self, changes: Vec<(Target, Option<BTreeSet<Target>>)>) -> Result<(), String> {
        let Some(follower) = &mut self.follower else { return Ok(()) };
        let (more, less) = follower.follow(changes);
        for (type_url, names) in by_type(more) {
            if let Some(of) = self.of_type(&type_url) {
                of.last = None; // the same content has more resources for the new names
                of.files.subscribe(names).map_err(|error| error.to_string())?;
            }
        }
        for (type_url, names) in by_type(less) {
            if let Some(of) = self.of_type(&type_url) {
                of.files.unsubscribe(names);
            }
        }
        Ok(())
    }

    fn of_type(&mut self, type_url: &TypeUrl) -> Option<&mut OfType> {
        self.files.iter_mut().find(|of| of.files.type_url() == type_url)
    }
}

/// Returns the machines of the files.
fn clients(files: &[OfType], clock: Clock) -> Vec<(&Client<Sotw>, Clock)> {
    files.iter().map(|of| (of.files.client(), clock)).collect()
}

impl OfType {
    /// Returns the file to read: the file that was moved last, and at first the file that changed last.
    fn choose(&mut self, folder: &Path) -> Option<PathBuf> {
        let paths = SUFFIXES.map(|suffix| folder.join(format!("{}.{suffix}", self.short)));
        let mut there: Vec<PathBuf> = paths.into_iter().filter(|path| path.symlink_metadata().is_ok()).collect();
        let is_last = |path: &PathBuf| self.path.as_ref().is_some_and(|last| last.file_name() == path.file_name());
        there.sort_by_key(|path| (is_last(path), changed(path)));
        let chosen = there.last().cloned();
        if let (Some(chosen), 2..) = (&chosen, there.len()) {
            let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let all: Vec<String> = there.iter().map(name).collect();
            self.say(format!(
                "{} are files of one type: {} counts, which was moved last",
                all.join(", "),
                name(chosen)
            ));
        } else if chosen.is_some() {
            self.said = None;
        }
        self.path.clone_from(&chosen);
        chosen
    }

    fn say(&mut self, what: String) {
        if self.said.as_ref() != Some(&what) {
            eprintln!("xds_client: {}", printable::text(&what));
            self.said = Some(what);
        }
    }
}

/// Returns when an entry came to its place: a move changes the time of its status.
fn changed(path: &Path) -> (i64, i64, Option<SystemTime>) {
    let Ok(metadata) = path.symlink_metadata() else { return (0, 0, None) };
    #[cfg(unix)]
    let (seconds, nanos) =
        (std::os::unix::fs::MetadataExt::ctime(&metadata), std::os::unix::fs::MetadataExt::ctime_nsec(&metadata));
    #[cfg(not(unix))]
    let (seconds, nanos) = (0, 0);
    (seconds, nanos, metadata.modified().ok())
}

fn is_named(path: &Path, short: &str, suffix: &str) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name == format!("{short}.{suffix}"))
}

fn decode(path: &Path, content: &[u8]) -> Result<sotw::Response, String> {
    if content.is_empty() {
        return Err("the file is empty".into());
    }
    match path.extension().and_then(|suffix| suffix.to_str()) {
        Some("yaml" | "yml") => json::read_yaml_response(content),
        Some("pb") => proto::sotw::decode_response(content.to_vec().into()).map_err(|error| error.to_string()),
        Some("pb_text") => json::read_text_response(content),
        _ => json::read_json_file(content),
    }
}

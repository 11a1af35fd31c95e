//! The resources that a folder serves while its files and sub-folders appear, change and disappear.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use std::{env, fs};

use examples::control_plane::folder::{Folder, Options, Touch, Touched};
use examples::control_plane::news::{Known, News};

/// A separate folder for each test.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn write(&self, name: &str, clusters: &[(&str, u32)]) {
        let cluster = |(name, timeout): &(&str, u32)| {
            format!(
                r#"{{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster",
                     "name": "{name}", "connectTimeout": "{timeout}s"}}"#
            )
        };
        let clusters: Vec<String> = clusters.iter().map(cluster).collect();
        self.put(name, &format!(r#"{{"resources": [{}]}}"#, clusters.join(",")));
    }

    /// Replaces the file atomically, so that no two contents have the same stamp.
    fn put(&self, name: &str, content: &str) {
        let path = self.0.join(name);
        let temporary = path.with_file_name(".temporary");
        fs::write(&temporary, content).expect("a file");
        fs::rename(temporary, path).expect("a file");
    }

    fn line(&self, name: &str, error: &str) -> String {
        format!("{}: {error}", self.0.join(name).display())
    }
}

const MAX: u64 = 1000;

/// Opens a folder long after its files were written.
fn open(path: impl Into<PathBuf>, grouped: bool) -> std::io::Result<(Folder, News)> {
    let later = SystemTime::now() + Duration::from_secs(10);
    Folder::open(path, Options { grouped, max_file_bytes: MAX }, later)
}

fn touched(paths: &[&Path], touch: Touch) -> Touched {
    Touched { paths: paths.iter().map(|path| (path.to_path_buf(), touch)).collect(), ..Touched::default() }
}

/// A folder, and the content of its views after the news so far.
struct Reader {
    folder: Folder,
    /// The time of the next look.
    now: Instant,
    served: BTreeMap<(Option<String>, String), u8>,
}

impl Reader {
    fn open(dir: &Dir) -> (Self, News) {
        let (folder, news) = open(&dir.0, true).expect("a folder");
        let mut reader = Self { folder, now: Instant::now(), served: BTreeMap::new() };
        reader.take(&news);
        (reader, news)
    }

    fn take(&mut self, news: &News) {
        for (group, changes) in &news.views {
            let group = group.as_deref().map(str::to_owned);
            for ((_, name), known) in changes {
                let place = (group.clone(), name.to_string());
                match known {
                    Known::Present(resource) => {
                        _ = self.served.insert(place, *resource.body().last().expect("seconds"));
                    }
                    Known::Absent => drop(self.served.remove(&place)),
                    Known::Unknown => panic!("a folder knows: {place:?}"),
                }
            }
        }
    }

    fn look_once(&mut self, touched: Touched) -> News {
        self.now += Duration::from_secs(1);
        let news = self.folder.look(touched, self.now);
        self.take(&news);
        news
    }

    /// Looks twice, with a second between: the first look finds a change, the second finds it settled.
    fn look(&mut self) -> News {
        let mut first = self.look_once(Touched::all());
        assert!(first.files.is_empty(), "{first:?}");
        let mut second = self.look_once(Touched::all());
        first.complaints.append(&mut second.complaints);
        News { complaints: first.complaints, ..second }
    }

    /// Asserts what is served to nodes without a group.
    fn serves(&self, expected: &[(&str, u8)]) {
        self.serves_to(None, expected);
    }

    fn serves_to(&self, group: Option<&str>, expected: &[(&str, u8)]) {
        let served = self.served.iter().filter(|((of, _), _)| of.as_deref() == group);
        let served: Vec<_> = served.map(|((_, name), seconds)| (name.as_str(), *seconds)).collect();
        assert_eq!(served, expected, "{group:?}");
    }
}

/// Returns the news about files: names and removed names.
fn told(news: &News) -> Vec<(String, Vec<String>, Vec<String>)> {
    let text = |names: &[xds_machine::ResourceName]| names.iter().map(ToString::to_string).collect();
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    news.files.iter().map(|file| (name(&file.source), text(&file.names), text(&file.removed))).collect()
}

fn row(file: &str, names: &[&str], removed: &[&str]) -> (String, Vec<String>, Vec<String>) {
    let text = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    (file.into(), text(names), text(removed))
}

#[test]
fn the_demo_folder_is_read_without_complaints() {
    let (_, news) = Folder::open(
        concat!(env!("CARGO_MANIFEST_DIR"), "/resources"),
        Options { grouped: false, max_file_bytes: 1 << 20 },
        SystemTime::now() + Duration::from_secs(10),
    )
    .expect("a folder");
    assert_eq!(news.complaints, Vec::<String>::new());
    assert!(news.complete.contains(&None));
    assert_eq!(news.files.len(), 4);
}

#[test]
fn a_missing_folder_is_an_error() {
    let error = open("no/such/folder", false).expect_err("an error");
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn added_changed_and_removed_files_change_the_served_resources() {
    let dir = Dir::new("come-and-go");
    dir.write("a.json", &[("c1", 1), ("c2", 1)]);
    let (mut reader, news) = Reader::open(&dir);
    reader.serves(&[("c1", 1), ("c2", 1)]);
    assert_eq!(told(&news), [row("a.json", &["c1", "c2"], &[])]);
    assert!(reader.look().views.is_empty());

    dir.write("a.json", &[("c1", 2)]);
    dir.write("b.json", &[("c3", 1)]);
    let news = reader.look();
    assert_eq!(told(&news), [row("a.json", &["c1"], &["c2"]), row("b.json", &["c3"], &[])]);
    reader.serves(&[("c1", 2), ("c3", 1)]);
    assert!(reader.look().views.is_empty());

    fs::rename(dir.0.join("a.json"), dir.0.join("c.json")).expect("moved");
    reader.look();
    reader.serves(&[("c1", 2), ("c3", 1)]);
    fs::remove_file(dir.0.join("b.json")).expect("removed");
    assert_eq!(told(&reader.look()), [row("b.json", &[], &["c3"])]);
    reader.serves(&[("c1", 2)]);
}

#[test]
fn only_touched_files_are_read_and_only_changed_resources_are_reported() {
    let dir = Dir::new("touched");
    dir.write("a.json", &[("c1", 1), ("c2", 1)]);
    dir.write("b.json", &[("c3", 1)]);
    let (mut reader, _) = Reader::open(&dir);

    dir.write("a.json", &[("c1", 1), ("c2", 2)]);
    dir.write("b.json", &[("c3", 2)]);
    let paths = || touched(&[&dir.0.join("a.json"), &dir.0.join(".temporary")], Touch::Done);
    assert!(reader.look_once(paths()).views.is_empty());
    assert!(reader.folder.is_restless());
    let news = reader.look_once(paths());
    assert_eq!(told(&news), [row("a.json", &["c2"], &[])]);
    assert_eq!(news.views[&None].len(), 1);
    reader.serves(&[("c1", 1), ("c2", 2), ("c3", 1)]);
    assert!(!reader.folder.is_restless());
}

#[test]
fn a_malformed_file_keeps_its_served_resources() {
    let dir = Dir::new("broken");
    dir.write("a.json", &[("c1", 1)]);
    let (mut reader, _) = Reader::open(&dir);

    dir.put("a.json", "{\n \"resources\": 1}");
    let news = reader.look();
    reader.serves(&[("c1", 1)]);
    let error = "resources: Any is an object, not a number (what it held before is still served)";
    assert_eq!(news.complaints, [dir.line("a.json", error)]);
    assert!(news.complete.contains(&None), "what it held is known");
    assert!(reader.look().complaints.is_empty(), "said once");

    dir.write("a.json", &[("c1", 3)]);
    let news = reader.look();
    reader.serves(&[("c1", 3)]);
    assert!(news.complaints.is_empty());
}

#[test]
fn a_file_that_was_never_valid_leaves_the_resources_incomplete() {
    let dir = Dir::new("never-good");
    dir.put("a.yaml", "");
    dir.write("b.json", &[("c1", 1)]);
    let (mut reader, news) = Reader::open(&dir);
    reader.serves(&[("c1", 1)]);
    let error = "the file is empty (until it can be read, nothing is said to be removed, and no first answer is given)";
    assert_eq!(news.complaints, [dir.line("a.yaml", error)]);
    assert!(!news.complete.contains(&None));
    dir.put("a.yaml", "resources: []");
    assert!(reader.look().complete.contains(&None));
}

#[test]
fn a_resource_in_two_files_is_served_from_the_first_file() {
    let dir = Dir::new("twice");
    dir.write("b.json", &[("c1", 1), ("c2", 1)]);
    let (mut reader, _) = Reader::open(&dir);

    dir.write("a.json", &[("c1", 2)]);
    let news = reader.look();
    reader.serves(&[("c1", 2), ("c2", 1)]);
    let line = dir.line("b.json", "type.googleapis.com/envoy.config.cluster.v3.Cluster c1 is in a.json already");
    assert_eq!(news.complaints, std::slice::from_ref(&line));

    dir.write("a.json", &[("c1", 3)]);
    let news = reader.look();
    reader.serves(&[("c1", 3), ("c2", 1)]);
    assert!(news.complaints.is_empty(), "said once");
    fs::remove_file(dir.0.join("a.json")).expect("removed");
    reader.look();
    reader.serves(&[("c1", 1), ("c2", 1)]);
    dir.write("a.json", &[("c1", 2)]);
    assert_eq!(reader.look().complaints, [line], "again wrong, said again");
}

#[test]
fn a_constantly_changing_file_delays_no_other_file() {
    let dir = Dir::new("restless");
    let (mut reader, _) = Reader::open(&dir);
    dir.write("b.json", &[("c2", 1)]);
    for looks in 1..=40 {
        dir.write("a.json", &[("c1", looks)]);
        let read = told(&reader.look_once(Touched::all()));
        assert_eq!(read.len(), usize::from(looks == 3), "{read:?}");
    }
    reader.serves(&[("c2", 1)]);
    reader.look_once(Touched::all());
    reader.look_once(Touched::all());
    reader.serves(&[("c1", 40), ("c2", 1)]);
}

#[test]
fn a_file_is_read_when_its_writer_has_closed_it() {
    let dir = Dir::new("in-place");
    dir.write("a.json", &[("c1", 1)]);
    let (mut reader, _) = Reader::open(&dir);
    let path = dir.0.join("a.json");

    // Half of the file, and then a long pause.
    fs::write(&path, "{}").expect("a file");
    let mut said = Vec::new();
    said.extend(reader.look_once(touched(&[&path], Touch::Written)).complaints);
    for _ in 0..40 {
        let news = reader.look_once(Touched::all());
        assert!(news.files.is_empty(), "{news:?}");
        said.extend(news.complaints);
    }
    let line = "its writer has it open for 30 s (it is read when it is closed)";
    assert_eq!(said, [dir.line("a.json", line)], "once");
    reader.serves(&[("c1", 1)]);

    dir.write("other.json", &[("c1", 2), ("c2", 1)]);
    fs::write(&path, fs::read(dir.0.join("other.json")).expect("a file")).expect("the rest");
    fs::remove_file(dir.0.join("other.json")).expect("removed");
    reader.look_once(touched(&[&path], Touch::Done));
    let news = reader.look_once(Touched::default());
    assert_eq!(told(&news), [row("a.json", &["c1", "c2"], &[])]);
    reader.serves(&[("c1", 2), ("c2", 1)]);
}

#[test]
fn lost_notifications_leave_no_file_unread_for_ever() {
    let dir = Dir::new("lost");
    dir.write("a.json", &[("c1", 1)]);
    let (mut reader, _) = Reader::open(&dir);
    dir.write("a.json", &[("c1", 2)]);
    reader.look_once(touched(&[&dir.0.join("a.json")], Touch::Written));
    reader.look_once(Touched { lost: true, ..Touched::default() });
    reader.look_once(Touched::default());
    reader.serves(&[("c1", 2)]);
}

#[test]
fn a_file_that_is_young_at_the_start_is_read_after_a_second() {
    let dir = Dir::new("young");
    dir.write("a.json", &[("c1", 1)]);
    let options = Options { grouped: true, max_file_bytes: MAX };
    let (folder, news) = Folder::open(&dir.0, options, SystemTime::now()).expect("a folder");
    assert_eq!((news.files.len(), news.complete.len()), (0, 0), "{news:?}");
    assert!(folder.is_restless());
    let mut reader = Reader { folder, now: Instant::now(), served: BTreeMap::new() };
    let news = reader.look();
    assert_eq!(told(&news), [row("a.json", &["c1"], &[])]);
    assert!(news.complete.contains(&None));
}

#[test]
fn an_odd_entry_is_one_line_and_stops_nothing() {
    let dir = Dir::new("odd");
    dir.write("a.json", &[("c1", 1)]);
    dir.put("large.yaml", &"# and nothing else\n".repeat(100));
    let made = std::process::Command::new("mkfifo").arg(dir.0.join("pipe.yaml")).status().expect("a program");
    assert!(made.success());
    let _socket = std::os::unix::net::UnixListener::bind(dir.0.join("socket.json")).expect("a socket");
    std::os::unix::fs::symlink("loop.json", dir.0.join("loop.json")).expect("a link");
    std::os::unix::fs::symlink("/dev/zero", dir.0.join("zero.pb")).expect("a link");
    let (mut reader, news) = Reader::open(&dir);
    reader.serves(&[("c1", 1)]);
    assert!(news.complete.contains(&None));
    let odd = fs::metadata(dir.0.join("loop.json")).expect_err("a loop");
    assert_eq!(
        news.complaints,
        [
            dir.line("loop.json", &format!("{odd} (it is left out)")),
            dir.line("pipe.yaml", "it is no regular file (it is left out)"),
            dir.line("socket.json", "it is no regular file (it is left out)"),
            dir.line("zero.pb", "it is no regular file (it is left out)"),
            dir.line("large.yaml", "it has more than --max-file-bytes 1000 (it is left out)"),
        ]
    );
    assert!(reader.look().complaints.is_empty(), "said once");

    // What a file held before it was too large is still served.
    dir.put("a.json", &" ".repeat(1001));
    let news = reader.look();
    let line = "it has more than --max-file-bytes 1000 (what it held before is still served)";
    assert_eq!(news.complaints, [dir.line("a.json", line)]);
    reader.serves(&[("c1", 1)]);
}

#[test]
fn every_file_is_read_again_on_request() {
    let dir = Dir::new("anew");
    dir.write("a.json", &[("c1", 1)]);
    dir.put("b.json", "{");
    let (mut reader, news) = Reader::open(&dir);
    assert_eq!(news.complaints.len(), 1);
    assert!(reader.look().complaints.is_empty());
    reader.look_once(Touched { anew: true, ..Touched::default() });
    let news = reader.look_once(Touched::default());
    assert_eq!(news.complaints.len(), 1, "what is wrong is said again");
    assert!(news.files.is_empty(), "and equal content is no news: {news:?}");
    reader.serves(&[("c1", 1)]);
}

#[test]
fn a_swapped_symbolic_link_is_detected_as_a_change() {
    let dir = Dir::new("links");
    for (version, timeout) in [("..1", 1), ("..2", 2)] {
        fs::create_dir(dir.0.join(version)).expect("a folder");
        dir.write(&format!("{version}/a.json"), &[("c1", timeout)]);
    }
    let link = |to: &str| {
        std::os::unix::fs::symlink(to, dir.0.join("..new")).expect("a link");
        fs::rename(dir.0.join("..new"), dir.0.join("..data")).expect("moved");
    };
    link("..1");
    std::os::unix::fs::symlink("..data/a.json", dir.0.join("a.json")).expect("a link");
    let (mut reader, _) = Reader::open(&dir);
    reader.serves(&[("c1", 1)]);
    link("..2");
    let data = || touched(&[&dir.0.join("..data")], Touch::Done);
    reader.look_once(data());
    reader.look_once(data());
    reader.serves(&[("c1", 2)]);
}

#[test]
fn resources_of_a_sub_folder_are_for_its_group_and_override_those_for_all() {
    let dir = Dir::new("groups");
    dir.write("all.json", &[("c1", 1), ("c2", 1)]);
    fs::create_dir_all(dir.0.join("edge/deeper")).expect("a folder");
    dir.write("edge/own.json", &[("c2", 5), ("c3", 5)]);
    dir.write("edge/deeper/never.json", &[("c9", 9)]);
    let (mut reader, news) = Reader::open(&dir);
    assert!(news.complete.contains(&None) && news.complete.contains(&Some("edge".into())));
    reader.serves(&[("c1", 1), ("c2", 1)]);
    reader.serves_to(Some("edge"), &[("c1", 1), ("c2", 5), ("c3", 5)]);

    dir.write("all.json", &[("c1", 2), ("c2", 2)]);
    reader.look();
    reader.serves_to(Some("edge"), &[("c1", 2), ("c2", 5), ("c3", 5)]);
    dir.write("edge/own.json", &[("c3", 6)]);
    reader.look();
    reader.serves_to(Some("edge"), &[("c1", 2), ("c2", 2), ("c3", 6)]);

    // A broken file of a group concerns that group alone.
    dir.put("edge/own.json", "{");
    dir.put("edge/other.json", "{");
    let news = reader.look();
    assert_eq!(news.complaints.len(), 2);
    assert_eq!(news.complete, [None].into());
    reader.serves_to(Some("edge"), &[("c1", 2), ("c2", 2), ("c3", 6)]);

    // Folders come and go.
    fs::create_dir(dir.0.join("late")).expect("a folder");
    dir.write("late/own.json", &[("c1", 7)]);
    fs::remove_dir_all(dir.0.join("edge")).expect("removed");
    reader.look();
    reader.serves_to(Some("late"), &[("c1", 7)]); // on top of the resources for all nodes
    reader.serves_to(Some("edge"), &[("c1", 2), ("c2", 2)]);
    reader.look();
    assert_eq!(reader.folder.watched().count(), 2, "the folder itself, and the late one");
}

#[test]
fn a_folder_that_disappears_keeps_its_served_resources() {
    let dir = Dir::new("away");
    dir.write("a.json", &[("c1", 1)]);
    let (mut reader, _) = Reader::open(&dir);
    let aside = dir.0.with_file_name("away-aside");
    let _ = fs::remove_dir_all(&aside);
    fs::rename(&dir.0, &aside).expect("moved");
    let news = reader.look();
    assert!(!news.is_there);
    let error = fs::read_dir(&dir.0).expect_err("away");
    assert_eq!(news.complaints, [format!("{}: {error} (what it held before is still served)", dir.0.display())]);
    reader.serves(&[("c1", 1)]);
    fs::rename(&aside, &dir.0).expect("moved");
    dir.write("a.json", &[("c1", 2)]);
    assert!(reader.look().is_there);
    reader.serves(&[("c1", 2)]);
}

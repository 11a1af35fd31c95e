//! The resources that a folder serves while its files appear, change and disappear.

use std::path::{Path, PathBuf};
use std::{env, fs};

use examples::folder::{Folder, News};

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
        let temporary = self.0.join(format!(".{name}"));
        fs::write(&temporary, content).expect("a file");
        fs::rename(temporary, self.0.join(name)).expect("a file");
    }

    fn open(&self) -> (Folder, News) {
        Folder::open(&self.0).expect("a folder")
    }

    fn line(&self, name: &str, error: &str) -> String {
        format!("{}: {error}", self.0.join(name).display())
    }
}

/// Returns the names and timeouts of the served clusters; `None` if nothing changed.
fn clusters(news: &News) -> Option<Vec<(String, u8)>> {
    let resources = news.resources.as_ref()?.values().flatten();
    Some(resources.map(|resource| (resource.name().to_string(), *resource.body().last().expect("seconds"))).collect())
}

fn served(news: &News, expected: &[(&str, u8)]) {
    let expected = expected.iter().map(|(name, timeout)| ((*name).to_owned(), *timeout)).collect();
    assert_eq!(clusters(news), Some(expected));
}

/// Polls twice: the first poll finds a change, the second finds it settled.
fn look(folder: &mut Folder) -> News {
    let news = folder.look();
    assert!(news.resources.is_none() && news.complaints.is_empty(), "{news:?}");
    folder.look()
}

#[test]
fn the_demo_is_good() {
    let (_, news) = Folder::open(concat!(env!("CARGO_MANIFEST_DIR"), "/resources")).expect("a folder");
    assert_eq!(news.complaints, Vec::<String>::new());
    assert!(news.complete);
    assert_eq!(news.resources.expect("resources").len(), 4);
}

#[test]
fn a_folder_that_is_not_there() {
    let error = Folder::open("no/such/folder").err().expect("an error");
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn files_come_change_and_go() {
    let dir = Dir::new("come-and-go");
    dir.write("a.json", &[("c1", 1), ("c2", 1)]);
    let (mut folder, news) = dir.open();
    served(&news, &[("c1", 1), ("c2", 1)]);
    assert!(clusters(&folder.look()).is_none());

    dir.write("a.json", &[("c1", 2)]);
    dir.write("b.json", &[("c3", 1)]);
    served(&look(&mut folder), &[("c1", 2), ("c3", 1)]);
    assert!(clusters(&folder.look()).is_none());

    fs::rename(dir.0.join("a.json"), dir.0.join("c.json")).expect("moved");
    served(&look(&mut folder), &[("c3", 1), ("c1", 2)]);
    fs::remove_file(dir.0.join("b.json")).expect("removed");
    served(&look(&mut folder), &[("c1", 2)]);
}

#[test]
fn a_file_that_cant_be_read_changes_nothing() {
    let dir = Dir::new("broken");
    dir.write("a.json", &[("c1", 1)]);
    let (mut folder, _) = dir.open();

    dir.put("a.json", "{\n \"resources\": 1}");
    let news = look(&mut folder);
    served(&news, &[("c1", 1)]);
    let error = "invalid type: integer `1`, expected a list at line 2 column 15 \
                 (what it held before is still served)";
    assert_eq!(news.complaints, [dir.line("a.json", error)]);
    assert!(news.complete, "what it held is known");
    assert!(folder.look().complaints.is_empty(), "said once");

    dir.write("a.json", &[("c1", 3)]);
    let news = look(&mut folder);
    served(&news, &[("c1", 3)]);
    assert!(news.complaints.is_empty());
}

#[test]
fn a_file_that_never_was_good_leaves_open_what_does_not_exist() {
    let dir = Dir::new("never-good");
    dir.put("a.yaml", "");
    dir.write("b.json", &[("c1", 1)]);
    let (mut folder, news) = dir.open();
    served(&news, &[("c1", 1)]);
    assert_eq!(news.complaints, [dir.line("a.yaml", "the file is empty")]);
    assert!(!news.complete);
    dir.put("a.yaml", "resources: []");
    assert!(look(&mut folder).complete);
}

#[test]
fn of_a_name_in_two_files_the_first_file_counts() {
    let dir = Dir::new("twice");
    dir.write("b.json", &[("c1", 1), ("c2", 1)]);
    let (mut folder, _) = dir.open();

    dir.write("a.json", &[("c1", 2)]);
    let news = look(&mut folder);
    served(&news, &[("c1", 2), ("c2", 1)]);
    let line = dir.line("b.json", "type.googleapis.com/envoy.config.cluster.v3.Cluster c1 is in a.json already");
    assert_eq!(news.complaints, std::slice::from_ref(&line));

    dir.write("a.json", &[("c1", 3)]);
    let news = look(&mut folder);
    served(&news, &[("c1", 3), ("c2", 1)]);
    assert!(news.complaints.is_empty(), "said once");
    fs::remove_file(dir.0.join("a.json")).expect("removed");
    served(&look(&mut folder), &[("c1", 1), ("c2", 1)]);
    dir.write("a.json", &[("c1", 2)]);
    assert_eq!(look(&mut folder).complaints, [line], "again wrong, said again");
}

#[test]
fn a_folder_that_never_rests_is_read_after_a_while() {
    let dir = Dir::new("restless");
    let (mut folder, _) = dir.open();
    let mut looks = 0;
    let news = loop {
        looks += 1;
        dir.write("a.json", &[("c1", looks)]);
        let news = folder.look();
        if news.resources.is_some() {
            break news;
        }
    };
    assert_eq!(looks, 21);
    served(&news, &[("c1", 21)]);
}

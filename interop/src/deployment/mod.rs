//! A deployment on one machine: three members of etcd, two replicas of `control_plane`, and two Envoys with traffic. A
//! replica and then the leader of etcd are killed while traffic flows and changes go on; not one request may be lost.

mod cast;
mod story;
mod summary;
mod timeline;
mod traffic;

use std::fs;
use std::path::Path;

use crate::install::{self, Installed};
use crate::{Line, report};

/// The picture in the repository, beside the sources.
const PICTURE: &str = "deployment.svg";

/// Runs the deployment. The picture and the table go into its folder, and into the repository if `keep`.
pub fn play(installed: &Installed, dir: &Path, keep: bool, lines: &mut Vec<Line>) {
    let result = install::etcd().and_then(|etcd| run(installed, etcd, dir, keep));
    let scenario = "a replica and the leader killed";
    report(Line { peer: "Envoy 1.40.0", mode: "deployment", dialect: "spec", scenario, result }, lines);
}

fn run(installed: &Installed, etcd: std::path::PathBuf, dir: &Path, keep: bool) -> Result<(), String> {
    let told = story::play(installed, etcd, dir)?;
    let summary = summary::of(&told)?;
    println!("{}", summary.table);
    let picture = timeline::draw(&told);
    let mut folders = vec![dir];
    folders.extend(keep.then_some(installed.sources.as_path()));
    for folder in folders {
        let path = folder.join(PICTURE);
        fs::write(&path, &picture).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("{}", path.display());
    }
    summary.check()
}

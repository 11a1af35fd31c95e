//! Clients that wait for something, beside changes of everything else: nothing waits for them without a bound. All
//! clients run at the same time, because most of that is time that has to pass.

mod arrivals;
mod cast;
mod checked;
mod grpc;
mod hold;
mod shelf;
mod ttl;

use std::path::Path;
use std::thread;

use self::cast::Cast;
use crate::install::{self, Installed};
use crate::{Line, folder, report};

/// The modes of Envoy on an aggregated stream.
const MODES: [&str; 4] = ["ads-sotw", "ads-sotw-unified", "ads-delta", "ads-delta-unified"];

/// A story of one client.
struct Story {
    peer: &'static str,
    mode: &'static str,
    scenario: &'static str,
    /// The name of its folder.
    run: String,
    play: fn(&Installed, &Path, &str) -> Result<(), String>,
}

pub fn play(installed: &Installed, wanted: impl Fn(&str) -> bool, lines: &mut Vec<Line>) {
    let stories: Vec<Story> = stories().into_iter().filter(|story| wanted(&story.run)).collect();
    let run = |story: &Story| {
        let dir = folder(installed, &story.run)?;
        (story.play)(installed, &dir, story.mode)
    };
    let results: Vec<Result<(), String>> = thread::scope(|scope| {
        let running: Vec<_> = stories.iter().map(|story| scope.spawn(move || run(story))).collect();
        running.into_iter().map(|story| story.join().unwrap_or_else(|_| Err("it panicked".into()))).collect()
    });
    for (Story { peer, mode, scenario, .. }, result) in stories.into_iter().zip(results) {
        report(Line { peer, mode, dialect: "spec", scenario, result }, lines);
    }
}

fn stories() -> Vec<Story> {
    let mut stories = Vec::new();
    for mode in MODES {
        let mut story = |scenario, run: &str, play| {
            stories.push(Story { peer: "Envoy 1.40.0", mode, scenario, run: format!("warming-{run}-{mode}"), play });
        };
        story("changes beside a cluster that warms for ever", "hold", |installed, dir, mode| {
            hold::play(&mut Cast::start(installed, dir, mode, false)?, mode.contains("delta"))
        });
        story("the same, and Envoy waits without end", "endless", |installed, dir, mode| {
            hold::play(&mut Cast::start(installed, dir, mode, true)?, mode.contains("delta"))
        });
        story("a TTL beside a slow health check", "ttl", |installed, dir, mode| {
            ttl::play(&mut Cast::start(installed, dir, mode, false)?)
        });
    }
    let (mode, scenario) = ("ads-sotw", "changes beside endpoints that never come");
    let run = "warming-grpc".to_owned();
    let play = |installed: &Installed, dir: &Path, _: &str| grpc::c_core(installed, dir);
    stories.push(Story { peer: "gRPC C-core 1.85.1", mode, scenario, run, play });
    if install::has_npm() {
        let run = "warming-grpc-js".to_owned();
        let play = |installed: &Installed, dir: &Path, _: &str| grpc::js(installed, dir);
        stories.push(Story { peer: "grpc-js-xds 1.14.1", mode, scenario, run, play });
    }
    stories
}

//! Two replicas of `control_plane` on a real etcd of three members, with `xds_client` as their clients.

mod members;
mod own;
mod play;
pub mod resources;
mod switch;

use std::path::Path;

use crate::control_plane::{ControlPlane, Event};
use crate::install::{self, Installed};
use crate::wait::{self, so};
use crate::{Line, net, report};

pub use self::members::{Members, Op};
use self::own::Own;
use self::resources::{KINDS, key, service};
use self::switch::Switch;

/// The members, and what stands on them.
struct Stage {
    members: Members,
    /// The ways of the second replica to the members.
    links: Vec<Switch>,
    replicas: [Replica; 2],
    /// A client in delta, of the first replica at first.
    delta: Own,
    /// A client in SotW, of the second replica at first.
    sotw: Own,
    program: std::path::PathBuf,
    dir: std::path::PathBuf,
}

struct Replica {
    plane: ControlPlane,
    metrics: u16,
}

/// What the clients subscribe to.
const ALL: [&str; 5] = ["--subscribe", "cds", "--subscribe", "lds", "--follow"];

pub fn play(installed: &Installed, dir: &Path, lines: &mut Vec<Line>) {
    let mut stage = install::etcd().and_then(|etcd| Stage::start(installed, etcd, dir));
    for (scenario, play) in play::ALL {
        let result = stage.as_mut().map_err(|error| error.clone()).and_then(play);
        if let Err(error) = &result {
            stage = Err(if stage.is_ok() { "not tried".into() } else { error.clone() });
        }
        report(Line { peer: "etcd", mode: "two replicas", dialect: "spec", scenario, result }, lines);
    }
}

impl Stage {
    fn start(installed: &Installed, etcd: std::path::PathBuf, dir: &Path) -> Result<Self, String> {
        let members = Members::start(etcd, dir)?;
        for number in 1..=3 {
            members.change(&service(number, number, 1))?;
        }
        let links: Vec<Switch> = (0..3).map(|number| Switch::new(members.port(number))).collect::<Result<_, _>>()?;
        let ways: Vec<String> = links.iter().map(|link| format!("http://127.0.0.1:{}", link.port)).collect();
        let replicas = [
            Replica::start(installed, dir, "one", &members.urls())?,
            Replica::start(installed, dir, "two", &ways.join(","))?,
        ];
        let program = installed.programs.join("xds_client");
        let delta = Own::start(&program, dir, "delta", "delta", replicas[0].plane.port(), &ALL)?;
        let sotw = Own::start(&program, dir, "sotw", "sotw", replicas[1].plane.port(), &ALL)?;
        Ok(Self { members, links, replicas, delta, sotw, program, dir: dir.to_owned() })
    }

    /// Starts another client in delta.
    fn client(&self, node: &str, replica: usize, more: &[&str]) -> Result<Own, String> {
        Own::start(&self.program, &self.dir, node, "delta", self.replicas[replica].plane.port(), more)
    }
}

impl Replica {
    fn start(installed: &Installed, dir: &Path, name: &str, etcd: &str) -> Result<Self, String> {
        let dir = dir.join(name);
        std::fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        let metrics = net::free_port()?;
        let address = format!("127.0.0.1:{metrics}");
        let arguments = ["--etcd", etcd, "--group-by", "cluster", "--metrics", &address].map(str::to_owned).into();
        let plane = ControlPlane::start_of(installed.programs.join("control_plane"), &dir, arguments)?;
        let replica = Self { plane, metrics };
        replica.until_ready("ready\n")?;
        Ok(replica)
    }

    /// Waits until its page says that it is ready, in words that begin so.
    fn until_ready(&self, words: &str) -> Result<(), String> {
        wait::until(|| {
            let (status, said) = net::get(self.metrics, "/readyz")?;
            so(status == 200 && said.starts_with(words), || format!("{status} {said}"))
        })
    }

    /// Returns what was sent to a node since a mark: the type, the resources, and what was removed. What is empty is
    /// left out.
    fn sent(&self, node: &str, mark: usize) -> Result<Vec<Sent>, String> {
        let events = self.plane.since(mark)?;
        let sent = events.iter().filter(|event| event.is_any("send") && event.text("node") == node);
        Ok(sent.map(Sent::of).filter(|sent| !sent.resources.is_empty() || !sent.removed.is_empty()).collect())
    }

    fn mark(&self) -> Result<usize, String> {
        self.plane.mark()
    }
}

/// A response to a client.
#[derive(Debug)]
struct Sent {
    of: String,
    version: String,
    resources: Vec<String>,
    removed: Vec<String>,
}

impl Sent {
    fn of(event: &Event) -> Self {
        let names = |key| event.names(key).into_iter().map(str::to_owned).collect();
        let of = event.text("type_url").rsplit('.').next().unwrap_or_default().to_owned();
        Self { of, version: event.text("version").into(), resources: names("resources"), removed: names("removed") }
    }
}

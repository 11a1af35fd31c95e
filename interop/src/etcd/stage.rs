//! Two replicas on an etcd, and their clients.

use std::fs;
use std::path::{Path, PathBuf};

use super::members::Members;
use super::own::Own;
use super::resources::service;
use super::switch::Switch;
use crate::control_plane::{ControlPlane, Event};
use crate::install::Installed;
use crate::net;
use crate::wait::{self, so};

/// The members, and the replicas and clients on them.
pub struct Stage {
    pub members: Members,
    /// The ways of the second replica to the members.
    pub links: Vec<Switch>,
    pub replicas: [Replica; 2],
    /// A client in delta, of the first replica at first.
    pub delta: Own,
    /// A client in SotW, of the second replica at first.
    pub sotw: Own,
    program: PathBuf,
    dir: PathBuf,
}

pub struct Replica {
    pub plane: ControlPlane,
    metrics: u16,
}

/// The subscriptions of the clients.
pub const EVERYTHING: [&str; 5] = ["--subscribe", "cds", "--subscribe", "lds", "--follow"];

impl Stage {
    pub fn start(installed: &Installed, etcd: PathBuf, dir: &Path) -> Result<Self, String> {
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
        let delta = Own::start(&program, dir, "delta", "delta", replicas[0].plane.port(), &EVERYTHING)?;
        let sotw = Own::start(&program, dir, "sotw", "sotw", replicas[1].plane.port(), &EVERYTHING)?;
        Ok(Self { members, links, replicas, delta, sotw, program, dir: dir.to_owned() })
    }

    /// Starts another client in delta.
    pub fn client(&self, node: &str, replica: usize, more: &[&str]) -> Result<Own, String> {
        Own::start(&self.program, &self.dir, node, "delta", self.replicas[replica].plane.port(), more)
    }
}

impl Replica {
    pub fn start(installed: &Installed, dir: &Path, name: &str, etcd: &str) -> Result<Self, String> {
        let dir = dir.join(name);
        fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        let metrics = net::free_port()?;
        let address = format!("127.0.0.1:{metrics}");
        let arguments = ["--etcd", etcd, "--group-by", "cluster", "--metrics", &address].map(str::to_owned).into();
        let plane = ControlPlane::start_of(installed.programs.join("control_plane"), &dir, arguments)?;
        let replica = Self { plane, metrics };
        replica.until_ready("ready\n")?;
        Ok(replica)
    }

    /// Waits until the page of the replica reports that it is ready, in a text that begins with `words`.
    pub fn until_ready(&self, words: &str) -> Result<(), String> {
        wait::until(|| {
            let (status, said) = net::get(self.metrics, "/readyz")?;
            so(status == 200 && said.starts_with(words), || format!("{status} {said}"))
        })
    }

    /// Returns the responses to a node since a mark: the type, the resources, and the removed names. Empty responses
    /// are left out.
    pub fn sent(&self, node: &str, mark: usize) -> Result<Vec<Sent>, String> {
        let events = self.plane.since(mark)?;
        let sent = events.iter().filter(|event| event.is_any("send") && event.text("node") == node);
        Ok(sent.map(Sent::of).filter(|sent| !sent.resources.is_empty() || !sent.removed.is_empty()).collect())
    }

    pub fn mark(&self) -> Result<usize, String> {
        self.plane.mark()
    }
}

/// A response to a client.
#[derive(Debug)]
pub struct Sent {
    pub of: String,
    pub version: String,
    pub resources: Vec<String>,
    pub removed: Vec<String>,
}

impl Sent {
    fn of(event: &Event) -> Self {
        let names = |key| event.names(key).into_iter().map(str::to_owned).collect();
        let of = event.text("type_url").rsplit('.').next().unwrap_or_default().to_owned();
        Self { of, version: event.text("version").into(), resources: names("resources"), removed: names("removed") }
    }
}

//! The participants: the etcd, the replicas of the control plane, the Envoys, and the backends.

use std::fs;
use std::path::{Path, PathBuf};

use crate::control_plane::ControlPlane;
use crate::envoy::Envoy;
use crate::etcd::Members;
use crate::etcd::resources::{key, listener, service};
use crate::install::Installed;
use crate::net;

pub const ENVOYS: [&str; 2] = ["envoy-1", "envoy-2"];
pub const REPLICAS: [&str; 2] = ["replica-1", "replica-2"];

pub struct Cast {
    pub members: Members,
    pub replicas: Vec<ControlPlane>,
    /// Kept, because they end when dropped.
    _envoys: Vec<Envoy>,
    /// The port of the listener of each Envoy.
    pub ports: [u16; 2],
    pub backends: [u16; 2],
}

impl Cast {
    pub fn start(installed: &Installed, etcd: PathBuf, dir: &Path) -> Result<Self, String> {
        let members = Members::start(etcd, dir)?;
        let backends = [net::backend("a")?, net::backend("b")?];
        let ports = [net::free_port()?, net::free_port()?];
        let mut all = service(1, 1, backends[0]);
        all.retain(|(key, _)| !key.ends_with("/l1"));
        // Each Envoy is a group with a listener of its own, because both are on this machine.
        let listeners = ENVOYS.iter().zip(ports).map(|(node, port)| (key(node, "l1"), listener(1, Some(port)).1));
        all.extend(listeners);
        members.change(&all)?;
        let mut replicas = Vec::new();
        for name in REPLICAS {
            let dir = dir.join(name);
            fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
            let arguments = ["--etcd", &members.urls(), "--group-by", "id"].map(str::to_owned).into();
            replicas.push(ControlPlane::start_of(installed.programs.join("control_plane"), &dir, arguments)?);
        }
        let mut envoys = Vec::new();
        for (node, port) in ENVOYS.into_iter().zip(ports) {
            let dir = dir.join(node);
            fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
            let file = dir.join("bootstrap.yaml");
            fs::write(&file, bootstrap(installed, node, replicas[1].port())?).map_err(|error| error.to_string())?;
            envoys.push(Envoy::start(&installed.envoy, &file, &dir, replicas[0].port(), vec![(1, port)])?);
        }
        Ok(Self { members, replicas, _envoys: envoys, ports, backends })
    }
}

/// Returns the bootstrap for ADS in delta, with a second server.
fn bootstrap(installed: &Installed, node: &str, second: u16) -> Result<String, String> {
    let path = installed.sources.join("envoy/ads-delta.yaml");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let (begin, port) = ("        - endpoint:\n", "port_value: 18000\n");
    let block = text.find(begin).zip(text.find(port).map(|at| at + port.len()));
    let (from, to) = block.ok_or_else(|| format!("{}: no server", path.display()))?;
    let other = text[from..to].replace(port, &format!("port_value: {second}\n"));
    let text = format!("{}{other}{}", &text[..to], &text[to..]);
    Ok(text.replace("id: interop", &format!("id: {node}")))
}

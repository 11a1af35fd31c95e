//! Drives Envoy.

use std::fs;
use std::path::Path;

use crate::net;
use crate::peer::Peer;
use crate::process::Process;
use crate::wait::{self, so};

pub struct Envoy {
    /// The port of the listener of each service.
    ports: Vec<(u32, u16)>,
    admin: u16,
    _process: Process,
}

impl Envoy {
    pub fn start(
        program: &Path,
        bootstrap: &Path,
        dir: &Path,
        xds: u16,
        ports: Vec<(u32, u16)>,
    ) -> Result<Self, String> {
        let config = fs::read_to_string(bootstrap).map_err(|error| format!("{}: {error}", bootstrap.display()))?;
        let config = config.replace("port_value: 18000", &format!("port_value: {xds}"));
        let config = config.replace("port_value: 18001", "port_value: 0");
        let (file, admin) = (dir.join("envoy.yaml"), dir.join("envoy.admin"));
        fs::write(&file, config).map_err(|error| error.to_string())?;
        let _ = fs::remove_file(&admin);
        let (file, admin_path) = (file.to_string_lossy(), admin.to_string_lossy());
        let mut arguments = vec!["-c", &file, "--admin-address-path", &admin_path];
        arguments.extend(["--use-dynamic-base-id", "--disable-hot-restart", "--concurrency", "1"]);
        arguments.extend(["--log-level", "info", "--component-log-level", "config:debug,upstream:debug"]);
        let err = dir.join("envoy.err");
        let process = Process::start(program, &arguments, &dir.join("envoy.out"), &err)?;
        let admin = wait::until(|| {
            let address = fs::read_to_string(&admin).unwrap_or_default();
            let port = address.trim().rsplit(':').next().and_then(|port| port.parse().ok());
            port.ok_or_else(|| format!("Envoy doesn't start, see {}", err.display()))
        })?;
        Ok(Self { ports, admin, _process: process })
    }
}

impl Envoy {
    /// Returns a page of the administration interface.
    pub fn admin(&self, path: &str) -> Result<String, String> {
        net::get(self.admin, path).map(|(_, page)| page)
    }

    /// Returns a counter.
    pub fn stat(&self, name: &str) -> Result<u64, String> {
        let stats = self.admin(&format!("/stats?filter=^{name}$"))?;
        let value = stats.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.trim().parse().ok());
        value.ok_or_else(|| format!("no statistics of {name}: {stats}"))
    }
}

impl Peer for Envoy {
    fn request(&mut self, service: u32) -> Result<String, String> {
        let port = self.ports.iter().find(|(number, _)| *number == service).ok_or("no such service")?.1;
        match net::get(port, "/")? {
            (200, body) => Ok(body),
            (status, body) => Err(format!("{status} {body}")),
        }
    }

    fn is_gone(&mut self, service: u32) -> Result<(), String> {
        let answer = self.request(service);
        so(answer.is_err(), || format!("l{service} still answers {answer:?}"))?;
        let clusters = self.admin("/clusters")?;
        let cluster = format!("c{service}::");
        so(!clusters.contains(&cluster), || format!("{cluster} is still there"))
    }
}

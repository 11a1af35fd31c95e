//! A control plane over one file, and an Envoy with two listeners, each of which leads to a cluster.

use std::fs;
use std::path::Path;

use super::shelf::Shelf;
use crate::control_plane::ControlPlane;
use crate::envoy::Envoy;
use crate::etcd::resources::{listener, service};
use crate::install::Installed;
use crate::net;
use crate::peer::Peer;
use crate::wait::{self, so};

/// What Envoy supports, and does not announce by itself.
const FEATURES: [&str; 2] = ["xds.config.supports-resource-ttl", "xds.config.supports-resource-in-sotw"];

pub struct Cast {
    pub control_plane: ControlPlane,
    pub shelf: Shelf,
    pub envoy: Envoy,
    /// The ports of the listeners.
    pub ports: [u16; 2],
    pub backends: [u16; 2],
}

impl Cast {
    /// Starts the programs, and waits until the listeners serve. `endless` is whether Envoy waits without end for what
    /// its resources refer to; otherwise it waits for 15 s, its default.
    pub fn start(installed: &Installed, dir: &Path, mode: &str, endless: bool) -> Result<Self, String> {
        let ports = [net::free_port()?, net::free_port()?];
        let backends = [net::backend("a")?, net::backend("b")?];
        let mut shelf = Shelf::new(dir, endless);
        for (number, port) in (1..).zip(ports) {
            // The later listener takes the place of the one for gRPC.
            shelf.put(service(number, number, backends[0]).into_iter().chain([listener(number, Some(port))]))?;
        }
        let control_plane = ControlPlane::start(installed.programs.join("control_plane"), "spec", dir)?;
        let path = installed.sources.join("envoy").join(format!("{mode}.yaml"));
        let mut text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        text = text.replace("  id: interop\n", &format!("  id: interop\n  client_features: {FEATURES:?}\n"));
        if endless {
            text = text.replace("    ads: {}\n", "    ads: {}\n    initial_fetch_timeout: 0s\n");
        }
        let bootstrap = dir.join("bootstrap.yaml");
        fs::write(&bootstrap, text).map_err(|error| format!("{}: {error}", bootstrap.display()))?;
        let envoy = Envoy::start(&installed.envoy, &bootstrap, dir, control_plane.port(), (1..).zip(ports).collect())?;
        let mut cast = Self { control_plane, shelf, envoy, ports, backends };
        wait::until(|| cast.serve("a"))?;
        Ok(cast)
    }

    /// Waits until a cluster warms, and so Envoy holds the answer to the response that has it.
    pub fn warms(&self, cluster: &str) -> Result<(), String> {
        let name = format!(r#""name": "{cluster}""#);
        wait::until(|| {
            let warming = self.envoy.admin("/config_dump?resource=dynamic_warming_clusters")?;
            so(warming.contains(&name), || format!("{cluster} does not warm"))
        })
    }

    /// Checks that a backend serves the requests to both listeners.
    pub fn serve(&mut self, backend: &str) -> Result<(), String> {
        (1..=2).try_for_each(|number| {
            let answer = self.envoy.request(number)?;
            so(answer == backend, || format!("{answer} answers, not {backend}"))
        })
    }
}

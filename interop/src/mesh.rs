//! The resources that the control plane serves: services, each with a listener `l`, a route `r`, a cluster `c` and
//! endpoints `e` of its number.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// The streams on which a client requests its resources.
#[derive(Clone, Copy, Eq, PartialEq)]
pub enum Scope {
    Ads,
    /// A stream for each resource, of this API type.
    Each(&'static str),
    /// Polls for each resource.
    Rest,
    /// A file for each type.
    Files,
}

pub struct Mesh {
    dir: PathBuf,
    scope: Scope,
    /// Whether gRPC clients are to report the loads of the clusters.
    pub lrs: bool,
    /// Whether clients are to drop all calls.
    pub drops: bool,
    /// The number of times that the files were written.
    version: u32,
    pub services: BTreeMap<u32, Service>,
}

#[derive(Clone, Copy)]
pub struct Service {
    /// The port on which Envoy listens; without a port the listener is one for gRPC.
    pub listener: Option<u16>,
    pub backend: u16,
    pub cluster: Cluster,
    /// The connect timeout of the cluster, in seconds.
    pub timeout: u32,
}

impl Service {
    pub fn new(listener: Option<u16>, backend: u16) -> Self {
        Self { listener, backend, cluster: Cluster::Good, timeout: 1 }
    }
}

#[derive(Clone, Copy, Eq, PartialEq)]
pub enum Cluster {
    Good,
    /// A cluster that is invalid.
    Invalid,
    /// A cluster that can't be decoded beyond its name.
    Malformed,
}

const HTTP: &str = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3";

impl Mesh {
    pub fn new(dir: &Path, scope: Scope) -> Self {
        Self { dir: dir.join("resources"), scope, lrs: false, drops: false, version: 0, services: BTreeMap::new() }
    }

    pub fn service(&mut self, number: u32) -> Result<&mut Service, String> {
        self.services.get_mut(&number).ok_or_else(|| format!("no service {number}"))
    }

    /// Writes the files into a new folder and swaps the link through which all are reached, as Kubernetes does for a
    /// `ConfigMap`: whatever the machine's pace, the control plane sees the files change at once.
    pub fn write(&mut self) -> Result<(), String> {
        let all = |kind: &str, one: fn(&Self, u32, &Service) -> Option<Value>| {
            let one = |(number, service): (&u32, &Service)| {
                let mut resource = one(self, *number, service)?;
                resource["@type"] = format!("type.googleapis.com/envoy.config.{kind}").into();
                Some(resource)
            };
            json!({"resources": self.services.iter().filter_map(one).collect::<Vec<_>>()}).to_string() // YAML too
        };
        let malformed = self.services.iter().filter(|(_, service)| service.cluster == Cluster::Malformed);
        let files: [(&str, Vec<u8>); 5] = [
            ("clusters.json", all("cluster.v3.Cluster", Self::cluster).into()),
            ("endpoints.yaml", all("endpoint.v3.ClusterLoadAssignment", Self::endpoints).into()),
            ("listeners.json", all("listener.v3.Listener", Self::listener).into()),
            ("routes.yaml", all("route.v3.RouteConfiguration", Self::route).into()),
            ("malformed.pb", malformed.flat_map(|(number, _)| malformed_cluster(*number)).collect()),
        ];
        self.version += 1;
        self.put(&files).map_err(|error| format!("{}: {error}", self.dir.display()))
    }

    fn put(&self, files: &[(&str, Vec<u8>)]) -> io::Result<()> {
        let version = |number: u32| format!("..{number}");
        let folder = self.dir.join(version(self.version));
        fs::create_dir_all(&folder)?;
        for (name, content) in files.iter().filter(|(_, content)| !content.is_empty()) {
            fs::write(folder.join(name), content)?;
        }
        symlink(version(self.version), self.dir.join("..new"))?;
        fs::rename(self.dir.join("..new"), self.dir.join("..data"))?;
        if self.version > 1 {
            return fs::remove_dir_all(self.dir.join(version(self.version - 1)));
        }
        files.iter().try_for_each(|(name, _)| symlink(Path::new("..data").join(name), self.dir.join(name)))
    }

    fn cluster(&self, number: u32, service: &Service) -> Option<Value> {
        let mut cluster = json!({
            "name": format!("c{number}"), "type": "EDS", "connectTimeout": format!("{}s", service.timeout),
            "edsClusterConfig": {"serviceName": format!("e{number}"), "edsConfig": self.source("endpoints.yaml")},
        });
        if self.lrs {
            cluster["lrsServer"] = json!({"self": {}});
        }
        match service.cluster {
            Cluster::Good => {}
            Cluster::Invalid => cluster["edsClusterConfig"] = Value::Null,
            Cluster::Malformed => return None,
        }
        Some(cluster)
    }

    fn endpoints(&self, number: u32, service: &Service) -> Option<Value> {
        let mut endpoints = json!({"clusterName": format!("e{number}"), "endpoints": [{
            "locality": {"region": "r", "zone": "z"},
            "loadBalancingWeight": 1,
            "lbEndpoints": [{"endpoint": {"address": address(service.backend)}}],
        }]});
        if self.drops {
            let all = json!({"category": "all", "dropPercentage": {"numerator": 100}});
            endpoints["policy"] = json!({"dropOverloads": [all]});
        }
        Some(endpoints)
    }

    fn listener(&self, number: u32, service: &Service) -> Option<Value> {
        let manager = json!({
            "@type": format!("{HTTP}.HttpConnectionManager"),
            "statPrefix": format!("l{number}"),
            "rds": {"routeConfigName": format!("r{number}"), "configSource": self.source("routes.yaml")},
            "httpFilters": [{
                "name": "router",
                "typedConfig": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
            }],
        });
        let name = format!("l{number}");
        Some(match service.listener {
            Some(port) => json!({"name": name, "address": address(port), "filterChains": [{
                "filters": [{"name": "http", "typedConfig": manager}],
            }]}),
            None => json!({"name": name, "apiListener": {"apiListener": manager}}),
        })
    }

    fn route(&self, number: u32, _: &Service) -> Option<Value> {
        Some(json!({"name": format!("r{number}"), "virtualHosts": [{
            "name": "all", "domains": ["*"],
            "routes": [{"match": {"prefix": ""}, "route": {"cluster": format!("c{number}")}}],
        }]}))
    }

    /// Returns the config source of a resource in this file.
    fn source(&self, file: &str) -> Value {
        match self.scope {
            Scope::Ads => json!({"ads": {}, "resourceApiVersion": "V3"}),
            Scope::Each(api) => json!({"resourceApiVersion": "V3", "apiConfigSource": {
                "apiType": api, "transportApiVersion": "V3",
                "grpcServices": [{"envoyGrpc": {"clusterName": "xds"}}],
            }}),
            Scope::Rest => json!({"resourceApiVersion": "V3", "apiConfigSource": {
                "apiType": "REST", "transportApiVersion": "V3", "clusterNames": ["xds"],
                "refreshDelay": "0.2s", "requestTimeout": "2s",
            }}),
            Scope::Files => json!({"resourceApiVersion": "V3", "pathConfigSource": {
                "path": self.dir.join(file), "watchedDirectory": {"path": self.dir},
            }}),
        }
    }
}

fn address(port: u16) -> Value {
    json!({"socketAddress": {"address": "127.0.0.1", "portValue": port}})
}

/// Returns a response with a cluster that has only a name and broken bytes.
fn malformed_cluster(number: u32) -> Vec<u8> {
    let field = |number: u8, content: &[u8]| [&[number << 3 | 2, content.len() as u8], content].concat(); // short ones
    let cluster = [field(1, format!("c{number}").as_bytes()), field(4, &[0xff, 0xff])].concat();
    let type_url = b"type.googleapis.com/envoy.config.cluster.v3.Cluster";
    field(2, &[field(1, type_url), field(2, &cluster)].concat())
}

//! What the control plane serves: services, each with a listener `l`, a route `r`, a cluster `c` and endpoints `e` of its
//! number.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// Where a client finds its resources.
#[derive(Clone, Copy, Eq, PartialEq)]
pub enum Scope {
    Ads,
    /// A stream for each, of this API type.
    Each(&'static str),
}

pub struct Mesh {
    dir: PathBuf,
    scope: Scope,
    pub services: BTreeMap<u32, Service>,
}

#[derive(Clone, Copy)]
pub struct Service {
    /// Where Envoy listens; without it the listener is one for gRPC.
    pub listener: Option<u16>,
    pub backend: u16,
    /// Whether clients reject the cluster.
    pub broken: bool,
}

const HTTP: &str = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3";

impl Mesh {
    pub fn new(dir: &Path, scope: Scope) -> Self {
        Self { dir: dir.join("resources"), scope, services: BTreeMap::new() }
    }

    pub fn service(&mut self, number: u32) -> Result<&mut Service, String> {
        self.services.get_mut(&number).ok_or_else(|| format!("no service {number}"))
    }

    /// Writes the files, each as a whole.
    pub fn write(&self) -> Result<(), String> {
        let all = |kind: &str, one: fn(&Self, u32, &Service) -> Value| {
            let one = |(number, service): (&u32, &Service)| {
                let mut resource = one(self, *number, service);
                resource["@type"] = format!("type.googleapis.com/envoy.config.{kind}").into();
                resource
            };
            json!({"resources": self.services.iter().map(one).collect::<Vec<_>>()})
        };
        self.put("clusters.json", &all("cluster.v3.Cluster", Self::cluster))?;
        self.put("endpoints.yaml", &all("endpoint.v3.ClusterLoadAssignment", Self::endpoints))?;
        self.put("listeners.json", &all("listener.v3.Listener", Self::listener))?;
        self.put("routes.yaml", &all("route.v3.RouteConfiguration", Self::route))
    }

    fn put(&self, name: &str, content: &Value) -> Result<(), String> {
        let put = || -> io::Result<()> {
            fs::create_dir_all(&self.dir)?;
            let temporary = self.dir.join(format!(".{name}"));
            fs::write(&temporary, content.to_string())?; // JSON is YAML too
            fs::rename(temporary, self.dir.join(name))
        };
        put().map_err(|error| format!("{name}: {error}"))
    }

    fn cluster(&self, number: u32, service: &Service) -> Value {
        let mut cluster = json!({
            "name": format!("c{number}"), "type": "EDS", "connectTimeout": "1s",
            "edsClusterConfig": {"serviceName": format!("e{number}"), "edsConfig": self.source()},
        });
        if service.broken {
            cluster["edsClusterConfig"] = Value::Null;
        }
        cluster
    }

    fn endpoints(&self, number: u32, service: &Service) -> Value {
        json!({"clusterName": format!("e{number}"), "endpoints": [{
            "locality": {"region": "r", "zone": "z"},
            "loadBalancingWeight": 1,
            "lbEndpoints": [{"endpoint": {"address": address(service.backend)}}],
        }]})
    }

    fn listener(&self, number: u32, service: &Service) -> Value {
        let manager = json!({
            "@type": format!("{HTTP}.HttpConnectionManager"),
            "statPrefix": format!("l{number}"),
            "rds": {"routeConfigName": format!("r{number}"), "configSource": self.source()},
            "httpFilters": [{
                "name": "router",
                "typedConfig": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
            }],
        });
        let name = format!("l{number}");
        match service.listener {
            Some(port) => json!({"name": name, "address": address(port), "filterChains": [{
                "filters": [{"name": "http", "typedConfig": manager}],
            }]}),
            None => json!({"name": name, "apiListener": {"apiListener": manager}}),
        }
    }

    fn route(&self, number: u32, _: &Service) -> Value {
        json!({"name": format!("r{number}"), "virtualHosts": [{
            "name": "all", "domains": ["*"],
            "routes": [{"match": {"prefix": ""}, "route": {"cluster": format!("c{number}")}}],
        }]})
    }

    fn source(&self) -> Value {
        match self.scope {
            Scope::Ads => json!({"ads": {}, "resourceApiVersion": "V3"}),
            Scope::Each(api) => json!({"resourceApiVersion": "V3", "apiConfigSource": {
                "apiType": api, "transportApiVersion": "V3",
                "grpcServices": [{"envoyGrpc": {"clusterName": "xds"}}],
            }}),
        }
    }
}

fn address(port: u16) -> Value {
    json!({"socketAddress": {"address": "127.0.0.1", "portValue": port}})
}

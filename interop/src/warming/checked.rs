//! Clusters of one address, with a health check or without.

use std::net::TcpListener;

use serde_json::json;

use crate::etcd::Op;

/// A server that accepts connections and never answers: a health check of it takes its whole time.
pub struct Mute {
    pub port: u16,
    _listener: TcpListener,
}

impl Mute {
    pub fn start() -> Result<Self, String> {
        let start = || {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            Ok(Self { port: listener.local_addr()?.port(), _listener: listener })
        };
        start().map_err(|error: std::io::Error| error.to_string())
    }
}

/// Returns a put of a cluster. With a health check, which has so much time, Envoy warms the cluster until the first
/// check is over.
pub fn cluster(name: &str, port: u16, check: Option<&str>) -> Op {
    let address = json!({"socketAddress": {"address": "127.0.0.1", "portValue": port}});
    let check = check.map(|time| {
        json!({
            "timeout": time, "interval": time, "unhealthyThreshold": 1, "healthyThreshold": 1,
            "httpHealthCheck": {"path": "/"},
        })
    });
    let content = json!({
        "name": name, "type": "STATIC", "connectTimeout": "1s", "healthChecks": Vec::from_iter(check),
        "loadAssignment": {"clusterName": name, "endpoints": [{
            "lbEndpoints": [{"endpoint": {"address": address}}],
        }]},
    });
    (format!("/xds/_/envoy.config.cluster.v3.Cluster/{name}"), Some(content.to_string()))
}

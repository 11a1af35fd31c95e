//! How a client is started: the values of `{port}`, `{bootstrap}`, `{envoy}` and `{variant}` in its command.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;

use crate::message::Variant;
use crate::report::variant_name;

/// The bootstraps of Envoy: the name, and the text with the port 18000.
const ENVOYS: [(&str, &str); 6] = [
    ("ads-sotw", include_str!("envoy/ads-sotw.yaml")),
    ("ads-delta", include_str!("envoy/ads-delta.yaml")),
    ("sotw", include_str!("envoy/sotw.yaml")),
    ("delta", include_str!("envoy/delta.yaml")),
    ("ads-sotw-unified", include_str!("envoy/ads-sotw-unified.yaml")),
    ("ads-delta-unified", include_str!("envoy/ads-delta-unified.yaml")),
];

/// Returns the names of the bootstraps of Envoy.
pub fn envoys() -> impl Iterator<Item = &'static str> {
    ENVOYS.iter().map(|(name, _)| *name)
}

/// Returns the variant that an Envoy with this bootstrap uses; `None` if there is no such bootstrap.
pub fn variant_of_envoy(name: &str) -> Option<Variant> {
    ENVOYS.iter().find(|(known, _)| *known == name)?;
    Some(if name.contains("delta") { Variant::Delta } else { Variant::Sotw })
}

/// The command of a client with everything filled in. Its files are removed when the value is dropped.
#[derive(Debug)]
pub struct Launch {
    command: Vec<String>,
    folder: PathBuf,
}

impl Launch {
    /// Fills in a command. `envoy` is the name of a bootstrap.
    ///
    /// # Errors
    ///
    /// If the files cannot be written.
    pub fn new(command: &[String], port: u16, variant: Variant, envoy: &str) -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("xds-conformance-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let mut launch = Self { command: Vec::new(), folder };
        let (grpc, proxy) = (launch.folder.join("bootstrap.json"), launch.folder.join("envoy.yaml"));
        std::fs::write(&grpc, grpc_bootstrap(port))?;
        let text = ENVOYS.iter().find(|(name, _)| *name == envoy).map(|(_, text)| *text).unwrap_or_default();
        let text = text.replace("port_value: 18000", &format!("port_value: {port}"));
        std::fs::write(&proxy, text.replace("port_value: 18001", "port_value: 0"))?;
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let fill = |word: &String| {
            word.replace("{port}", &port.to_string())
                .replace("{bootstrap}", &path(&grpc))
                .replace("{envoy}", &path(&proxy))
                .replace("{variant}", variant_name(variant))
        };
        launch.command = command.iter().map(fill).collect();
        Ok(launch)
    }

    /// Returns the command.
    pub fn command(&self) -> &[String] {
        &self.command
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.folder); // a folder that stays is only untidy
    }
}

/// Returns the bootstrap of a gRPC client.
fn grpc_bootstrap(port: u16) -> String {
    json!({
        "xds_servers": [{
            "server_uri": format!("127.0.0.1:{port}"),
            "channel_creds": [{"type": "insecure"}],
            "server_features": ["xds_v3"],
        }],
        // One implementation rejects a bootstrap without a locality.
        "node": {"id": "xds-conformance", "cluster": "kit", "locality": {"region": "r", "zone": "z"}},
    })
    .to_string()
}

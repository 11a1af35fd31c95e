//! The adapter of tonic's `xds-client` 0.1.0-alpha.4, which uses SotW:
//! `xds-conformance client --variants sotw -- tonic-xds-client-adapter {port}`.

use std::collections::HashMap;
use std::io::{BufRead, Write, stdin, stdout};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinHandle;
use xds_client::resource::TypeUrl;
use xds_client::{ClientConfig, Error, Node, ProstCodec, Resource, ResourceEvent};
use xds_client::{TokioRuntime, TonicTransportBuilder, XdsClient};

#[tokio::main]
async fn main() {
    let port = std::env::args().nth(1).expect("the port");
    let node = Node::new("xds-conformance", "0").with_id("kit");
    let config = ClientConfig::new(node, format!("http://127.0.0.1:{port}"));
    let client = XdsClient::builder(config, TonicTransportBuilder::new(), ProstCodec, TokioRuntime).build();
    say(&json!({"ready": {"features": ["sotw", "wildcard", "names"]}}));
    let (sender, mut lines) = unbounded_channel();
    std::thread::spawn(move || {
        for line in stdin().lock().lines().map_while(Result::ok) {
            _ = sender.send(line);
        }
    });
    let mut watchers: HashMap<(String, String), JoinHandle<()>> = HashMap::new();
    while let Some(line) = lines.recv().await {
        let op: Value = serde_json::from_str(&line).expect("JSON");
        let of = op["type"].as_str().unwrap_or_default().to_owned();
        for name in op["names"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let key = (of.clone(), name.to_owned());
            if op["op"] == "unsubscribe" {
                watchers.remove(&key).into_iter().for_each(|watcher| watcher.abort());
            } else if let Some(watcher) = watch(&client, &of, name) {
                watchers.insert(key, watcher);
            }
        }
        say(&json!({}));
    }
}

fn watch(client: &XdsClient, of: &str, name: &str) -> Option<JoinHandle<()>> {
    let (client, name) = (client.clone(), name.to_owned());
    Some(match of.rsplit('.').next()? {
        "Cluster" => tokio::spawn(follow::<Cluster>(client, name)),
        "ClusterLoadAssignment" => tokio::spawn(follow::<Endpoint>(client, name)),
        "Listener" => tokio::spawn(follow::<Listener>(client, name)),
        "RouteConfiguration" => tokio::spawn(follow::<Route>(client, name)),
        _ => return None,
    })
}

/// Reports the events of a name, until the watcher is dropped.
async fn follow<T: Resource + Named>(client: XdsClient, name: String) {
    let wildcard = name == "*";
    let mut watcher = client.watch::<T>(if wildcard { String::new() } else { name.clone() }).await;
    while let Some(event) = watcher.next().await {
        let ResourceEvent::ResourceChanged { result, .. } = event else { continue };
        let of = T::TYPE_URL.as_str();
        match result {
            Ok(resource) => say(&json!({"event": "apply", "type": of, "names": [resource.name()], "removed": []})),
            Err(Error::ResourceDoesNotExist) => say(&json!({"event": "missing", "type": of, "name": name})),
            Err(_) => {}
        }
    }
}

trait Named {
    fn name(&self) -> &str;
}

macro_rules! resource {
    ($name:ident, $full_state:literal, $url:literal) => {
        struct $name(String);

        impl Named for $name {
            fn name(&self) -> &str {
                &self.0
            }
        }

        impl Resource for $name {
            type Message = String;

            const TYPE_URL: TypeUrl = TypeUrl::new($url);
            const ALL_RESOURCES_REQUIRED_IN_SOTW: bool = $full_state;

            fn deserialize(bytes: Bytes) -> Result<String, Error> {
                name_of(&bytes).ok_or_else(|| Error::Validation("the bytes are no resource".into()))
            }

            fn name(message: &String) -> &str {
                message
            }

            fn validate(message: String) -> Result<Self, Error> {
                Ok(Self(message))
            }
        }
    };
}

resource!(Cluster, true, "type.googleapis.com/envoy.config.cluster.v3.Cluster");
resource!(Endpoint, false, "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment");
resource!(Listener, true, "type.googleapis.com/envoy.config.listener.v3.Listener");
resource!(Route, false, "type.googleapis.com/envoy.config.route.v3.RouteConfiguration");

/// Returns the string in field 1, the name of every resource of these types.
fn name_of(bytes: &[u8]) -> Option<String> {
    let (&len, rest) = bytes.strip_prefix(&[0x0a])?.split_first()?;
    let name = rest.get(..usize::from(len)).filter(|_| len < 0x80)?;
    String::from_utf8(name.to_vec()).ok()
}

fn say(line: &Value) {
    let mut out = stdout().lock();
    _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

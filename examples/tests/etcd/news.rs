//! News as lines, and the keys and values of a test.

use examples::control_plane::etcd::generated::event::EventType;
use examples::control_plane::etcd::generated::{Event, KeyValue};
use examples::control_plane::news::{Known, News};

/// Returns the key of a cluster for all nodes, or for the nodes of a group.
pub fn key(group: &str, name: &str) -> String {
    format!("/xds/{group}/envoy.config.cluster.v3.Cluster/{name}")
}

/// Returns a cluster with a time-out, which tells its contents apart.
pub fn cluster(name: &str, seconds: u8) -> String {
    format!(r#"{{"name":"{name}","connect_timeout":"{seconds}s"}}"#)
}

pub fn kv(group: &str, name: &str, value: impl Into<String>, mod_revision: i64) -> KeyValue {
    let (key, value) = (key(group, name).into(), value.into().into());
    KeyValue { key, value, mod_revision, ..KeyValue::default() }
}

pub fn put(group: &str, name: &str, value: impl Into<String>, revision: i64) -> Event {
    Event { r#type: EventType::Put as i32, kv: Some(kv(group, name, value, revision)) }
}

pub fn delete(group: &str, name: &str, revision: i64) -> Event {
    Event { r#type: EventType::Delete as i32, kv: Some(kv(group, name, "", revision)) }
}

/// Returns the changes for each group: `group name=seconds`, `group name gone` or `group name unknown`.
pub fn views(news: &News) -> Vec<String> {
    let mut lines = Vec::new();
    for (group, changes) in &news.views {
        let group = group.as_deref().unwrap_or("_");
        for ((_, name), known) in changes {
            lines.push(match known {
                Known::Present(resource) => format!("{group} {name}={}", resource.body().last().expect("seconds")),
                Known::Absent => format!("{group} {name} gone"),
                Known::Unknown => format!("{group} {name} unknown"),
            });
        }
    }
    lines
}

//! Resources in one file of the control plane's folder. The file is replaced by renaming, so that it changes at once.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::etcd::Op;

const TYPE: &str = "type.googleapis.com/";

pub struct Shelf {
    dir: PathBuf,
    /// By the key that the resource would have in etcd.
    resources: BTreeMap<String, Value>,
    /// Whether clients wait without end for what the config sources of the resources name.
    endless: bool,
}

impl Shelf {
    pub fn new(dir: &Path, endless: bool) -> Self {
        Self { dir: dir.to_owned(), resources: BTreeMap::new(), endless }
    }

    /// Puts resources, or removes them, and replaces the file.
    pub fn put(&mut self, ops: impl IntoIterator<Item = Op>) -> Result<(), String> {
        for op in ops {
            self.take(op, None)?;
        }
        self.write()
    }

    /// Puts a resource with a TTL, and replaces the file.
    pub fn put_for(&mut self, op: Op, ttl: &str) -> Result<(), String> {
        self.take(op, Some(ttl))?;
        self.write()
    }

    fn take(&mut self, (key, content): Op, ttl: Option<&str>) -> Result<(), String> {
        let Some(mut content) = content else {
            self.resources.remove(&key);
            return Ok(());
        };
        if self.endless {
            content = content.replace(r#""ads":{}"#, r#""ads":{},"initialFetchTimeout":"0s""#);
        }
        let mut resource: Value = serde_json::from_str(&content).map_err(|error| format!("{key}: {error}"))?;
        let (kind, name) = key.trim_start_matches("/xds/_/").split_once('/').ok_or("a key without a name")?;
        resource["@type"] = format!("{TYPE}{kind}").into();
        if let Some(ttl) = ttl {
            let of = format!("{TYPE}envoy.service.discovery.v3.Resource");
            resource = json!({"@type": of, "name": name, "ttl": ttl, "resource": resource});
        }
        self.resources.insert(key, resource);
        Ok(())
    }

    fn write(&self) -> Result<(), String> {
        let (new, folder) = (self.dir.join("all.json"), self.dir.join("resources"));
        let all = json!({"resources": self.resources.values().collect::<Vec<_>>()}).to_string();
        let write = || {
            fs::create_dir_all(&folder)?;
            fs::write(&new, all)?;
            fs::rename(&new, folder.join("all.json"))
        };
        write().map_err(|error| format!("{}: {error}", folder.display()))
    }
}

//! A folder that the server watches: one DiscoveryResponse in JSON for each type, replaced by renaming.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde_json::{Value, json};

use super::Control;
use crate::resource::{self, Put};
use crate::run::{Op, Trouble};

/// The files of the kit in a folder, `xds-conformance-TYPE.json`. Other files are left alone.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    resources: BTreeMap<String, BTreeMap<String, Put>>,
    writes: u64,
}

impl Directory {
    /// Begins with empty files for all types.
    ///
    /// # Errors
    ///
    /// If the path is no folder, or cannot be written to.
    pub fn new(path: impl Into<PathBuf>) -> io::Result<Self> {
        let mut directory = Self { path: path.into(), resources: BTreeMap::new(), writes: 0 };
        for (_, type_url) in resource::TYPES {
            directory.write(type_url)?;
        }
        Ok(directory)
    }

    fn file(&self, type_url: &str) -> PathBuf {
        self.path.join(format!("xds-conformance-{}.json", resource::short(type_url).replace(['/', '.'], "-")))
    }

    fn write(&mut self, type_url: &str) -> io::Result<()> {
        self.writes += 1;
        let of_type = self.resources.get(type_url);
        let with_type = |put: &Put| {
            let mut json = put.json();
            if let Value::Object(fields) = &mut json {
                fields.insert("@type".into(), type_url.into());
            }
            json
        };
        let resources: Vec<Value> = of_type.into_iter().flat_map(BTreeMap::values).map(with_type).collect();
        let response = json!({"versionInfo": self.writes.to_string(), "typeUrl": type_url, "resources": resources});
        let file = self.file(type_url);
        let draft = hidden(&file);
        fs::write(&draft, response.to_string())?;
        fs::rename(draft, file)
    }
}

/// Returns the name under which a file is written before it is renamed.
fn hidden(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    file.with_file_name(format!(".{name}.draft"))
}

impl Control for Directory {
    fn apply(&mut self, ops: &[Op]) -> Result<(), Trouble> {
        let mut types: Vec<&str> = Vec::new();
        for op in ops {
            let type_url = match op {
                Op::Put(put) if put.ttl.is_some() || put.alias.is_some() => {
                    return Err(Trouble("a folder has neither TTLs nor aliases".into()));
                }
                Op::Put(put) => {
                    let of_type = self.resources.entry(put.type_url.clone()).or_default();
                    of_type.insert(put.name.clone(), put.clone());
                    &put.type_url
                }
                Op::Delete { type_url, name } => {
                    self.resources.entry(type_url.clone()).or_default().remove(name);
                    type_url
                }
                Op::Clear => {
                    self.resources.clear();
                    types = resource::TYPES.map(|(_, type_url)| type_url).to_vec();
                    continue;
                }
                Op::Error { .. } => return Err(Trouble("a folder has no errors".into())),
                Op::Unknown { .. } => return Err(Trouble("a folder has what it has".into())),
                Op::Restart => return Err(Trouble("a folder restarts no server".into())),
            };
            if !types.contains(&type_url.as_str()) {
                types.push(type_url);
            }
        }
        for type_url in types {
            self.write(type_url).map_err(|error| Trouble(format!("{}: {error}", self.path.display())))?;
        }
        Ok(())
    }

    /// Returns `false`: a file has one type, and a server may read between the writes of two files.
    fn is_atomic(&self) -> bool {
        false
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        for (_, type_url) in resource::TYPES {
            _ = fs::remove_file(self.file(type_url)); // a folder that is gone is clean
        }
    }
}

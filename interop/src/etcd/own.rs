//! An `xds_client`, whose connection leads to one replica or the other.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::switch::Switch;
use crate::process::Process;
use crate::wait::{self, so};

/// The versions of held resources by type, without `type.googleapis.com/`, and name.
pub type Held = BTreeMap<(String, String), String>;

pub struct Own {
    pub way: Switch,
    /// The name of the client in the logs of the replicas.
    pub node: String,
    log: PathBuf,
    _process: Process,
}

impl Own {
    pub fn start(
        program: &Path,
        dir: &Path,
        node: &str,
        variant: &str,
        port: u16,
        more: &[&str],
    ) -> Result<Self, String> {
        let way = Switch::new(port)?;
        let (server, log) = (format!("http://127.0.0.1:{}", way.port), dir.join(format!("{node}.jsonl")));
        let mut arguments = vec!["--server", &server, "--variant", variant, "--node", node, "--for", "600"];
        arguments.extend(more);
        let process = Process::start(program, &arguments, &log, &dir.join(format!("{node}.err")))?;
        Ok(Self { way, node: node.into(), log, _process: process })
    }

    pub fn lines(&self) -> Result<Vec<Value>, String> {
        let log = fs::read_to_string(&self.log).map_err(|error| error.to_string())?;
        let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(|line| serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))).collect()
    }

    /// Returns the lines of one kind.
    pub fn of(&self, kind: &str) -> Result<Vec<Value>, String> {
        let lines = self.lines()?.into_iter().map(|mut line| line[kind].take());
        Ok(lines.filter(Value::is_object).collect())
    }

    /// Returns the held resources. In SotW the version is that of the type.
    pub fn held(&self) -> Result<Held, String> {
        let mut held = Held::new();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for apply in self.of("apply")? {
            let of = text(&apply["type_url"]).replace("type.googleapis.com/", "");
            for resource in apply["resources"].as_array().into_iter().flatten() {
                held.insert((of.clone(), text(&resource["name"])), text(&resource["version"]));
            }
            for name in apply["removed"].as_array().into_iter().flatten() {
                held.remove(&(of.clone(), text(name)));
            }
        }
        Ok(held)
    }

    /// Waits until the client holds a number of resources.
    pub fn holds(&self, count: usize) -> Result<Held, String> {
        wait::until(|| {
            let held = self.held()?;
            so(held.len() == count, || format!("{}: {} of {count} resources", self.node, held.len()))?;
            Ok(held)
        })
    }
}

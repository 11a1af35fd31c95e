//! Commands of the server's owner, run for each change: `kubectl apply -f "$XC_FILE"`, for example.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use super::Control;
use crate::resource::Put;
use crate::run::{Op, Trouble};

/// Two commands of a shell. The environment of a command describes the change: `XC_TYPE` (a type URL), `XC_NAME`,
/// `XC_REV`, and for a put `XC_FILE`, a file with the resource as JSON.
#[derive(Debug)]
pub struct Exec {
    put: String,
    delete: String,
    folder: PathBuf,
    /// The resources that were put and not deleted: type and name.
    there: Vec<(String, String)>,
}

impl Exec {
    /// Makes the control.
    ///
    /// # Errors
    ///
    /// If there is no folder for the files.
    pub fn new(put: impl Into<String>, delete: impl Into<String>) -> std::io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("xds-conformance-exec-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder)?;
        Ok(Self { put: put.into(), delete: delete.into(), folder, there: Vec::new() })
    }

    fn put(&mut self, put: &Put) -> Result<(), Trouble> {
        if put.ttl.is_some() || put.alias.is_some() {
            return Err(Trouble("a command has neither TTLs nor aliases".into()));
        }
        let mut json = put.json();
        if let Value::Object(fields) = &mut json {
            fields.insert("@type".into(), put.type_url.as_str().into());
        }
        let file = self.folder.join(format!("{}.json", put.name.replace(['/', ':', '*'], "-")));
        fs::write(&file, json.to_string()).map_err(|error| Trouble(format!("{}: {error}", file.display())))?;
        let revision = put.revision.to_string();
        let file = file.to_string_lossy().into_owned();
        run(
            &self.put,
            &[("XC_TYPE", &put.type_url), ("XC_NAME", &put.name), ("XC_REV", &revision), ("XC_FILE", &file)],
        )?;
        let key = (put.type_url.clone(), put.name.clone());
        if !self.there.contains(&key) {
            self.there.push(key);
        }
        Ok(())
    }

    fn delete(&mut self, type_url: &str, name: &str) -> Result<(), Trouble> {
        self.there.retain(|(other, known)| (other.as_str(), known.as_str()) != (type_url, name));
        run(&self.delete, &[("XC_TYPE", type_url), ("XC_NAME", name), ("XC_REV", "")])
    }
}

/// Runs a command of a shell to its end.
fn run(command: &str, environment: &[(&str, &str)]) -> Result<(), Trouble> {
    let output = Command::new("sh").arg("-c").arg(command).envs(environment.iter().copied()).output();
    let output = output.map_err(|error| Trouble(format!("{command}: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(Trouble(format!("{command}: {}: {}", output.status, why.trim())))
}

impl Control for Exec {
    fn apply(&mut self, ops: &[Op]) -> Result<(), Trouble> {
        for op in ops {
            match op {
                Op::Put(put) => self.put(put)?,
                Op::Delete { type_url, name } => self.delete(type_url, name)?,
                Op::Clear => {
                    for (type_url, name) in self.there.clone() {
                        self.delete(&type_url, &name)?;
                    }
                }
                Op::Error { .. } | Op::Unknown { .. } | Op::Restart => {
                    return Err(Trouble("there are commands for put and delete only".into()));
                }
            }
        }
        Ok(())
    }

    fn is_atomic(&self) -> bool {
        false
    }
}

impl Drop for Exec {
    /// Removes the kit's resources and files.
    fn drop(&mut self) {
        _ = self.apply(&[Op::Clear]); // a server that is gone has nothing left
        _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource;

    fn op(revision: u64) -> Op {
        let type_url = resource::type_url("cds").to_owned();
        Op::Put(Put { type_url, name: "kit-a".into(), revision, ttl: None, alias: None })
    }

    #[test]
    fn commands_receive_each_change_in_environment_variables() {
        let log = std::env::temp_dir().join(format!("xds-conformance-exec-test-{}", std::process::id()));
        let (put, delete) = (
            format!("echo put $XC_NAME $XC_REV >> {0}; grep -c connectTimeout $XC_FILE >> {0}", log.display()),
            format!("echo delete ${{XC_TYPE##*.}} $XC_NAME >> {}", log.display()),
        );
        let mut exec = Exec::new(put, delete).expect("a folder");
        assert_eq!(exec.apply(&[op(1), op(2)]), Ok(()));
        assert!(exec.apply(&[Op::Restart]).is_err());
        drop(exec);
        assert_eq!(
            fs::read_to_string(&log).expect("the log"),
            "put kit-a 1\n1\nput kit-a 2\n1\ndelete Cluster kit-a\n"
        );
        fs::remove_file(log).expect("the log");
    }

    #[test]
    fn a_failed_command_is_reported_with_its_status_and_stderr() {
        let mut exec = Exec::new("echo no cluster >&2; exit 3", "true").expect("a folder");
        let why = exec.apply(&[op(1)]).expect_err("a failure").0;
        assert_eq!(why, "echo no cluster >&2; exit 3: exit status: 3: no cluster");
    }
}

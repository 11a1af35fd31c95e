//! The members of an etcd.

use std::path::{Path, PathBuf};

use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};

use crate::net;
use crate::process::Process;
use crate::wait::{self, so};

/// Three members, which may be killed and started again.
pub struct Members {
    program: PathBuf,
    dir: PathBuf,
    /// The port for clients and that for peers, of each.
    ports: Vec<(u16, u16)>,
    processes: Vec<Option<Process>>,
    lives: u32,
}

/// A change of a transaction: a key, and its new value; a key without one is deleted.
pub type Op = (String, Option<String>);

impl Members {
    pub fn start(program: PathBuf, dir: &Path) -> Result<Self, String> {
        let dir = dir.to_owned();
        let ports = (0..3).map(|_| Ok((net::free_port()?, net::free_port()?))).collect::<Result<_, String>>()?;
        let mut members = Self { program, dir, ports, processes: vec![None, None, None], lives: 0 };
        (0..3).try_for_each(|number| members.restart(number))?;
        members.settle()?;
        Ok(members)
    }

    /// Returns the URLs of all members, for `--etcd`.
    pub fn urls(&self) -> String {
        self.ports.iter().map(|(port, _)| format!("http://127.0.0.1:{port}")).collect::<Vec<_>>().join(",")
    }

    pub fn port(&self, number: usize) -> u16 {
        self.ports[number].0
    }

    pub fn kill(&mut self, number: usize) {
        self.processes[number] = None;
    }

    pub fn restart(&mut self, number: usize) -> Result<(), String> {
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let (client, peer) = self.ports[number];
        let (client, peer, name) = (url(client), url(peer), format!("m{number}"));
        let peers = self.ports.iter().enumerate().map(|(number, (_, peer))| format!("m{number}={}", url(*peer)));
        let (all, data) = (peers.collect::<Vec<_>>().join(","), self.dir.join(&name));
        let data = data.to_string_lossy();
        let mut arguments = vec!["--name", &name, "--data-dir", &data, "--initial-cluster", &all];
        arguments.extend(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        arguments.extend(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer, "--logger", "zap"]);
        self.lives += 1;
        let (out, err) = (self.dir.join(format!("{name}.out")), self.dir.join(format!("{name}.{}.err", self.lives)));
        self.processes[number] = Some(Process::start(&self.program, &arguments, &out, &err)?);
        Ok(())
    }

    /// Waits until each running member has a leader, and one of them is it. Returns the number of that member.
    pub fn settle(&self) -> Result<usize, String> {
        wait::until(|| {
            let mut leader = None;
            for number in (0..3).filter(|number| self.processes[*number].is_some()) {
                let status = self.status(number)?;
                let says = status["leader"].as_str().filter(|leader| *leader != "0").ok_or("no leader")?;
                let id = status["header"]["member_id"].as_str().unwrap_or_default();
                leader = if says == id { Some(number) } else { leader };
            }
            leader.ok_or_else(|| "the leader does not live".to_owned())
        })
    }

    /// Makes another member the leader.
    pub fn move_leader(&self) -> Result<usize, String> {
        let leader = self.settle()?;
        let next = (leader + 1) % 3;
        let id = self.status(next)?["header"]["member_id"].clone();
        self.ask(leader, "maintenance/transfer-leadership", &json!({"targetID": id}))?;
        wait::until(|| {
            let now = self.settle()?;
            so(now == next, || format!("{now} leads, not {next}"))
        })?;
        Ok(next)
    }

    pub fn put(&self, key: &str, value: &str) -> Result<(), String> {
        self.change(&[(key.to_owned(), Some(value.to_owned()))]).map(drop)
    }

    pub fn delete(&self, key: &str) -> Result<(), String> {
        self.change(&[(key.to_owned(), None)]).map(drop)
    }

    /// Changes keys in one transaction. Returns its revision.
    pub fn change(&self, ops: &[Op]) -> Result<u64, String> {
        let op = |(key, value): &Op| match value {
            Some(value) => json!({"requestPut": {"key": encoded(key), "value": encoded(value)}}),
            None => json!({"requestDeleteRange": {"key": encoded(key)}}),
        };
        let body = json!({"success": ops.iter().map(op).collect::<Vec<_>>()});
        revision(&self.ask_any("kv/txn", &body)?)
    }

    /// Puts a key that lasts no longer than its lease, of this many seconds.
    pub fn put_for(&self, key: &str, value: &str, seconds: u32) -> Result<(), String> {
        let lease = self.ask_any("lease/grant", &json!({"TTL": seconds}))?["ID"].clone();
        self.ask_any("kv/put", &json!({"key": encoded(key), "value": encoded(value), "lease": lease})).map(drop)
    }

    /// Compacts the history before a revision.
    pub fn compact(&self, revision: u64) -> Result<(), String> {
        self.ask_any("kv/compaction", &json!({"revision": revision, "physical": true})).map(drop)
    }

    fn status(&self, number: usize) -> Result<Value, String> {
        self.ask(number, "maintenance/status", &json!({}))
    }

    /// Asks the running members, until one answers.
    fn ask_any(&self, call: &str, body: &Value) -> Result<Value, String> {
        wait::until(|| {
            let mut error = "no member lives".to_owned();
            for number in (0..3).filter(|number| self.processes[*number].is_some()) {
                match self.ask(number, call, body) {
                    Ok(answer) => return Ok(answer),
                    Err(other) => error = other,
                }
            }
            Err(error)
        })
    }

    fn ask(&self, number: usize, call: &str, body: &Value) -> Result<Value, String> {
        let (status, answer) = net::post(self.ports[number].0, &format!("/v3/{call}"), &body.to_string())?;
        so(status == 200, || format!("{call}: {status} {answer}"))?;
        serde_json::from_str(&answer).map_err(|error| format!("{call}: {error}: {answer}"))
    }
}

fn revision(answer: &Value) -> Result<u64, String> {
    let revision = answer["header"]["revision"].as_str().and_then(|revision| revision.parse().ok());
    revision.ok_or_else(|| format!("no revision: {answer}"))
}

fn encoded(text: &str) -> String {
    BASE64_STANDARD.encode(text)
}

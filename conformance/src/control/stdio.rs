//! An adapter: a command of the server's owner, told over its standard input, a JSON object a line each way.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Control;
use crate::run::{Op, Trouble};

/// How long an adapter may take to start, and to answer.
const START: Duration = Duration::from_secs(60);
const ANSWER: Duration = Duration::from_secs(30);
/// The number of lines of standard error that are kept.
const KEPT: usize = 40;

/// What an adapter says when it is ready.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Ready {
    /// Where the server listens.
    #[serde(default)]
    pub address: String,
    /// The features of the server.
    #[serde(default)]
    pub features: Vec<String>,
}

/// A line of an adapter.
#[derive(Debug, Default, Deserialize)]
struct Line {
    ready: Option<Ready>,
    error: Option<String>,
}

/// A running adapter. Ends with the value.
pub struct Adapter {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Arc<Mutex<VecDeque<String>>>,
    ready: Ready,
}

impl Adapter {
    /// Starts the command, and waits until it says that it is ready.
    ///
    /// # Errors
    ///
    /// If the command cannot be started, ends, or says something else.
    pub fn start(command: &[String]) -> Result<Self, Trouble> {
        let (program, arguments) = command.split_first().ok_or_else(|| Trouble("no command".into()))?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| Trouble(format!("{program}: {error}")))?;
        let (sender, lines) = channel();
        let output = child.stdout.take().map(BufReader::new);
        thread::spawn(move || {
            for line in output.into_iter().flat_map(BufRead::lines).map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let errors = Arc::new(Mutex::new(VecDeque::new()));
        let (kept, output) = (errors.clone(), child.stderr.take().map(BufReader::new));
        thread::spawn(move || {
            for line in output.into_iter().flat_map(BufRead::lines).map_while(Result::ok) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() == KEPT {
                    kept.pop_front();
                }
                kept.push_back(line);
            }
        });
        let input = child.stdin.take();
        let mut adapter = Self { child, input, lines, errors, ready: Ready::default() };
        let line = adapter.line(START)?;
        match line.ready {
            Some(ready) if ready.address.is_empty() => Err(adapter.trouble("the adapter is ready without an address")),
            Some(ready) => {
                adapter.ready = ready;
                Ok(adapter)
            }
            None => Err(adapter.trouble(&format!("the adapter does not start: {}", line.error.unwrap_or_default()))),
        }
    }

    /// Returns what the adapter said when it was ready.
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// Sends an operation, and waits for the answer.
    fn ask(&mut self, op: &Value) -> Result<(), Trouble> {
        let line = format!("{op}\n");
        let written = self.input.as_mut().map(|input| input.write_all(line.as_bytes()).and_then(|()| input.flush()));
        if !matches!(written, Some(Ok(()))) {
            return Err(self.trouble("the adapter takes no more operations"));
        }
        match self.line(ANSWER)?.error {
            None => Ok(()),
            Some(why) => Err(Trouble(format!("the adapter refuses {}: {why}", op["op"]))),
        }
    }

    fn line(&mut self, wait: Duration) -> Result<Line, Trouble> {
        let line = self.lines.recv_timeout(wait).map_err(|error| {
            self.trouble(match error {
                RecvTimeoutError::Timeout => "the adapter does not answer",
                RecvTimeoutError::Disconnected => "the adapter has ended",
            })
        })?;
        serde_json::from_str(&line).map_err(|error| self.trouble(&format!("the adapter says {line:?}: {error}")))
    }

    /// Adds what the adapter printed on standard error.
    fn trouble(&self, what: &str) -> Trouble {
        thread::sleep(Duration::from_millis(100)); // the last words may still be on their way
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<&str> = errors.iter().map(String::as_str).collect();
        Trouble(if lines.is_empty() { what.to_owned() } else { format!("{what}:\n{}", lines.join("\n")) })
    }
}

/// Returns the lines that an operation takes.
fn lines(op: &Op) -> Vec<Value> {
    match op {
        Op::Put(put) => {
            let (type_url, name) = (&put.type_url, &put.name);
            let any = STANDARD.encode(put.body());
            let mut lines = vec![json!({
                "op": "put", "type": type_url, "name": name, "rev": put.revision, "any": any, "json": put.json(),
            })];
            if let Some(alias) = &put.alias {
                lines.push(json!({"op": "alias", "type": type_url, "name": name, "alias": alias}));
            }
            if let Some(ttl) = put.ttl {
                let ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
                lines.push(json!({"op": "ttl", "type": type_url, "name": name, "ms": ms}));
            }
            lines
        }
        Op::Delete { type_url, name } => vec![json!({"op": "delete", "type": type_url, "name": name})],
        Op::Error { type_url, name, code } => {
            vec![json!({"op": "error", "type": type_url, "name": name, "code": code, "message": "the kit says so"})]
        }
        Op::Unknown { type_url, name } => vec![json!({"op": "unknown", "type": type_url, "name": name})],
        Op::Clear => vec![json!({"op": "clear"})],
        Op::Restart => vec![json!({"op": "restart"})],
    }
}

impl Control for Adapter {
    fn apply(&mut self, ops: &[Op]) -> Result<(), Trouble> {
        let mut lines: Vec<Value> = ops.iter().flat_map(lines).collect();
        if ops.len() > 1 {
            lines = vec![json!({"op": "batch", "ops": lines})];
        }
        lines.iter().try_for_each(|line| self.ask(line))
    }

    fn is_atomic(&self) -> bool {
        true
    }

    fn is_confirmed(&self) -> bool {
        true
    }
}

impl Drop for Adapter {
    /// The end of its input ends the adapter; one that stays is killed.
    fn drop(&mut self) {
        drop(self.input.take());
        let end = Instant::now() + Duration::from_secs(3);
        while Instant::now() < end {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        _ = self.child.kill(); // it has ended meanwhile
        _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::Put;

    fn shell(script: &str) -> Result<Adapter, Trouble> {
        Adapter::start(&["sh".into(), "-c".into(), script.into()])
    }

    fn put() -> Op {
        let type_url = xds_machine::type_url::CLUSTER.to_owned();
        Op::Put(Put { type_url, name: "a".into(), revision: 1, ttl: None, alias: None })
    }

    #[test]
    fn an_adapter_answers_each_operation() {
        let script = r#"echo '{"ready":{"address":"127.0.0.1:1","features":["ttl"]}}'; read l; echo '{}'; read l;
            echo '{"error":"no room"}'"#;
        let mut adapter = shell(script).expect("an adapter");
        assert_eq!((adapter.ready().address.as_str(), adapter.ready().features.len()), ("127.0.0.1:1", 1));
        assert_eq!(adapter.apply(&[put()]), Ok(()));
        assert_eq!(adapter.apply(&[put()]), Err(Trouble("the adapter refuses \"put\": no room".into())));
        let gone = adapter.apply(&[put()]).expect_err("the adapter has ended").0;
        assert!(gone.starts_with("the adapter"), "{gone}");
    }

    #[test]
    fn an_adapter_that_does_not_start_says_why() {
        assert_eq!(shell("echo sorry >&2; exit 1").map(|_| ()), Err(Trouble("the adapter has ended:\nsorry".into())));
        let other = shell("echo hello").map(|_| ()).expect_err("not ready").0;
        assert!(other.starts_with("the adapter says \"hello\""), "{other}");
        let none = Adapter::start(&["/no/such/command".into()]).map(|_| ()).expect_err("no command").0;
        assert!(none.starts_with("/no/such/command: "), "{none}");
    }

    #[test]
    fn several_changes_are_a_batch() {
        let ops = [put(), Op::Delete { type_url: "t".into(), name: "b".into() }];
        let all: Vec<Value> = ops.iter().flat_map(lines).collect();
        assert_eq!(all[0]["any"], STANDARD.encode(crate::resource::body(xds_machine::type_url::CLUSTER, "a", 1)));
        assert_eq!(all[1], json!({"op": "delete", "type": "t", "name": "b"}));
        let unknown = Op::Unknown { type_url: "t".into(), name: "b".into() };
        assert_eq!(lines(&unknown), [json!({"op": "unknown", "type": "t", "name": "b"})]);
        let simple: Vec<Value> = [Op::Clear, Op::Restart].iter().flat_map(lines).collect();
        assert_eq!(simple, [json!({"op": "clear"}), json!({"op": "restart"})]);
    }
}

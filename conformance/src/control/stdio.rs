//! An adapter: a command of the server's owner, which reads operations from its standard input and writes answers to
//! its standard output, a JSON object a line.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Control;
use crate::dialogue::{Dialogue, Ready};
use crate::run::{Op, Trouble};

/// A running adapter, which ends when the value is dropped.
pub struct Adapter {
    dialogue: Dialogue,
    ready: Ready,
}

impl Adapter {
    /// Starts the command, and waits until the adapter reports that it is ready.
    ///
    /// # Errors
    ///
    /// If the command cannot be started, ends, or says something else.
    pub fn start(command: &[String]) -> Result<Self, Trouble> {
        let (mut dialogue, ready) = Dialogue::start(command, |line, answers| answers.send(line).is_ok())?;
        if ready.address.is_empty() {
            return Err(dialogue.program().trouble("the adapter is ready without an address"));
        }
        Ok(Self { dialogue, ready })
    }

    /// Returns the message of the adapter when it was ready.
    pub fn ready(&self) -> &Ready {
        &self.ready
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
        lines.iter().try_for_each(|line| self.dialogue.ask(line, &line["op"]))
    }

    fn is_atomic(&self) -> bool {
        true
    }

    fn is_confirmed(&self) -> bool {
        true
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
    fn a_failed_adapter_start_is_reported_with_its_cause() {
        assert_eq!(shell("echo sorry >&2; exit 1").map(|_| ()), Err(Trouble("the adapter has ended:\nsorry".into())));
        let other = shell("echo hello").map(|_| ()).expect_err("not ready").0;
        assert!(other.starts_with("the adapter says \"hello\""), "{other}");
        let none = Adapter::start(&["/no/such/command".into()]).map(|_| ()).expect_err("no command").0;
        assert!(none.starts_with("/no/such/command: "), "{none}");
    }

    #[test]
    fn each_operation_is_encoded_as_a_json_object() {
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

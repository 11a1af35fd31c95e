//! The contract with adapters of servers and of clients: an adapter reports once that it is ready, and answers each
//! operation.

use std::fmt::Display;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::program::Program;
use crate::run::Trouble;

/// How long an adapter may take to start, and to answer.
const START: Duration = Duration::from_secs(60);
const ANSWER: Duration = Duration::from_secs(30);

/// The message of an adapter that is ready.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
pub struct Ready {
    /// Where the server listens; empty for a client.
    #[serde(default)]
    pub address: String,
    /// The features of the server or of the client.
    #[serde(default)]
    pub features: Vec<String>,
}

/// A line of an adapter.
#[derive(Debug, Default, Deserialize)]
struct Line {
    ready: Option<Ready>,
    error: Option<String>,
}

/// A running adapter, which ends when the value is dropped.
pub(crate) struct Dialogue {
    program: Program,
    answers: Receiver<String>,
}

impl Dialogue {
    /// Starts the command, and waits until the adapter reports that it is ready. `sort` passes on the lines that are
    /// answers, until it returns `false`.
    pub(crate) fn start(
        command: &[String],
        sort: impl Fn(String, &Sender<String>) -> bool + Send + 'static,
    ) -> Result<(Self, Ready), Trouble> {
        let (sender, answers) = channel();
        let program = Program::start(command, move |line| sort(line, &sender))?;
        let mut dialogue = Self { program, answers };
        let line = dialogue.line(START)?;
        match line.ready {
            Some(ready) => Ok((dialogue, ready)),
            None => {
                let why = line.error.unwrap_or_default();
                Err(dialogue.program.trouble(&format!("the adapter does not start: {why}")))
            }
        }
    }

    /// Sends an operation, and waits for the answer. `name` is the name of the operation in the message of a refusal.
    pub(crate) fn ask(&mut self, op: &Value, name: impl Display) -> Result<(), Trouble> {
        if !self.program.say(op) {
            return Err(self.program.trouble("the adapter takes no more operations"));
        }
        match self.line(ANSWER)?.error {
            None => Ok(()),
            Some(why) => Err(Trouble(format!("the adapter refuses {name}: {why}"))),
        }
    }

    pub(crate) fn program(&mut self) -> &mut Program {
        &mut self.program
    }

    fn line(&mut self, wait: Duration) -> Result<Line, Trouble> {
        let line = self.answers.recv_timeout(wait).map_err(|error| {
            self.program.trouble(match error {
                RecvTimeoutError::Timeout => "the adapter does not answer",
                RecvTimeoutError::Disconnected => "the adapter has ended",
            })
        })?;
        serde_json::from_str(&line)
            .map_err(|error| self.program.trouble(&format!("the adapter says {line:?}: {error}")))
    }
}

//! An adapter of a client: a command of its owner, told over its standard input what to ask for.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::peer::{Event, Tell};
use crate::program::Program;
use crate::run::Trouble;

/// How long an adapter may take to start, and to answer.
const START: Duration = Duration::from_secs(60);
const ANSWER: Duration = Duration::from_secs(30);

/// What an adapter says when it is ready.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
pub struct Ready {
    /// The features of the client.
    #[serde(default)]
    pub features: Vec<String>,
}

/// A line of an adapter.
#[derive(Debug, Default, Deserialize)]
struct Line {
    ready: Option<Ready>,
    error: Option<String>,
    event: Option<String>,
    #[serde(default, rename = "type")]
    type_url: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    removed: Vec<String>,
}

/// A running adapter. Ends with the value.
pub struct Adapter {
    program: Program,
    answers: Receiver<String>,
}

impl Adapter {
    /// Starts the command, and waits until it says that it is ready. Events go into `events`.
    ///
    /// # Errors
    ///
    /// If the command cannot be started, ends, or says something else.
    pub fn start(command: &[String], events: Sender<Event>) -> Result<(Self, Ready), Trouble> {
        let (sender, answers) = channel();
        let program = Program::start(command, move |line| sort(line, &events, &sender))?;
        let mut adapter = Self { program, answers };
        let line = adapter.line(START)?;
        match line.ready {
            Some(ready) => Ok((adapter, ready)),
            None => {
                let why = line.error.unwrap_or_default();
                Err(adapter.program.trouble(&format!("the adapter does not start: {why}")))
            }
        }
    }

    /// Tells the client what to ask for, and waits for the answer.
    ///
    /// # Errors
    ///
    /// If the adapter refuses, or is gone.
    pub fn tell(&mut self, tell: &Tell) -> Result<(), Trouble> {
        let op = if tell.leave { "unsubscribe" } else { "subscribe" };
        if !self.program.say(&json!({"op": op, "type": tell.type_url, "names": tell.names})) {
            return Err(self.program.trouble("the adapter takes no more operations"));
        }
        match self.line(ANSWER)?.error {
            None => Ok(()),
            Some(why) => Err(Trouble(format!("the adapter refuses {op}: {why}"))),
        }
    }

    /// Returns the last words of an adapter that has ended.
    pub fn last_words(&mut self) -> Option<String> {
        self.program.has_ended().then(|| self.program.trouble("the adapter has ended").0)
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

/// Sends an event to those who wait for events, and anything else to those who wait for an answer.
fn sort(line: String, events: &Sender<Event>, answers: &Sender<String>) -> bool {
    let Ok(Line { event: Some(event), type_url, name, names, removed, .. }) = serde_json::from_str::<Line>(&line)
    else {
        return line.trim().is_empty() || answers.send(line).is_ok();
    };
    match event.as_str() {
        "apply" => events.send(Event::Apply { type_url, names, removed }).is_ok(),
        "missing" => events.send(Event::Missing { type_url, name }).is_ok(),
        _ => true, // of a later version of the contract
    }
}

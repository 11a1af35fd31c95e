//! An adapter of a client: a command of the client's owner, which is told on its standard input what to ask for.

use std::sync::mpsc::Sender;

use serde::Deserialize;
use serde_json::json;

use super::peer::{Event, Tell};
use crate::dialogue::{Dialogue, Ready};
use crate::run::Trouble;

/// A line of an adapter that may be an event.
#[derive(Debug, Default, Deserialize)]
struct Line {
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

/// A running adapter, which ends when the value is dropped.
pub struct Adapter(Dialogue);

impl Adapter {
    /// Starts the command, and waits until the adapter reports that it is ready. `events` receives the events.
    ///
    /// # Errors
    ///
    /// If the command cannot be started, ends, or says something else.
    pub fn start(command: &[String], events: Sender<Event>) -> Result<(Self, Ready), Trouble> {
        let (dialogue, ready) = Dialogue::start(command, move |line, answers| sort(line, &events, answers))?;
        Ok((Self(dialogue), ready))
    }

    /// Tells the client what to ask for, and waits for the answer.
    ///
    /// # Errors
    ///
    /// If the adapter refuses, or is gone.
    pub fn tell(&mut self, tell: &Tell) -> Result<(), Trouble> {
        let op = if tell.leave { "unsubscribe" } else { "subscribe" };
        self.0.ask(&json!({"op": op, "type": tell.type_url, "names": tell.names}), op)
    }

    /// Returns the last output of an adapter that has ended.
    pub fn last_words(&mut self) -> Option<String> {
        let program = self.0.program();
        program.has_ended().then(|| program.trouble("the adapter has ended").0)
    }
}

/// Sends an event to `events`, and any other line to `answers`. Returns whether the receiver is still there.
fn sort(line: String, events: &Sender<Event>, answers: &Sender<String>) -> bool {
    let Ok(Line { event: Some(event), type_url, name, names, removed, .. }) = serde_json::from_str::<Line>(&line)
    else {
        return line.trim().is_empty() || answers.send(line).is_ok();
    };
    match event.as_str() {
        "apply" => events.send(Event::Apply { type_url, names, removed }).is_ok(),
        "missing" => events.send(Event::Missing { type_url, name }).is_ok(),
        _ => true, // an event of a later version of the contract
    }
}

//! A program under test, whose output is a JSON object a line.

use std::future::Future;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// The time limit for any step.
const LIMIT: Duration = Duration::from_secs(40);

pub async fn soon<T>(what: &str, event: impl Future<Output = T>) -> T {
    timeout(LIMIT, event).await.unwrap_or_else(|_| panic!("{what} did not come"))
}

pub struct Program {
    pub child: Child,
    pub lines: mpsc::UnboundedReceiver<Value>,
}

impl Program {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, lines) = mpsc::unbounded_channel();
        thread::spawn(move || {
            for line in output.lines() {
                let line = serde_json::from_str(&line.expect("text")).expect("JSON");
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    /// Returns the next line of output.
    pub async fn line(&mut self) -> Value {
        soon("a line", self.lines.recv()).await.expect("the program runs")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

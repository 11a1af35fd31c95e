//! A command that the kit starts: its lines of output, its input, and its last errors.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::run::Trouble;

/// The number of lines of standard error that are kept.
const KEPT: usize = 40;
/// How long a command may take to end, once its input has ended.
const END: Duration = Duration::from_secs(3);

/// A running command, which ends when the value is dropped.
pub(crate) struct Program {
    child: Child,
    input: Option<ChildStdin>,
    errors: Arc<Mutex<VecDeque<String>>>,
    /// How long the command may take to end, once its input has ended.
    patience: Duration,
}

impl Program {
    /// Starts the command. `on_line` takes each line of its output, until it returns `false`.
    pub(crate) fn start(
        command: &[String],
        mut on_line: impl FnMut(String) -> bool + Send + 'static,
    ) -> Result<Self, Trouble> {
        let (program, arguments) = command.split_first().ok_or_else(|| Trouble("no command".into()))?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| Trouble(format!("{program}: {error}")))?;
        let output = child.stdout.take().map(BufReader::new);
        thread::spawn(move || {
            for line in output.into_iter().flat_map(BufRead::lines).map_while(Result::ok) {
                if !on_line(line) {
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
        Ok(Self { child, input, errors, patience: END })
    }

    /// Writes a line. Returns whether the command takes it.
    pub(crate) fn say(&mut self, line: &Value) -> bool {
        let line = format!("{line}\n");
        let written = self.input.as_mut().map(|input| input.write_all(line.as_bytes()).and_then(|()| input.flush()));
        matches!(written, Some(Ok(())))
    }

    /// Lets the command be killed as soon as the value is dropped, because it does not read its input.
    pub(crate) fn end_at_once(&mut self) {
        self.patience = Duration::ZERO;
    }

    /// Returns whether the command has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns the trouble, with the last lines that the command printed on standard error.
    pub(crate) fn trouble(&self, what: &str) -> Trouble {
        thread::sleep(Duration::from_millis(100)); // the last lines may still be on their way
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<&str> = errors.iter().map(String::as_str).collect();
        Trouble(if lines.is_empty() { what.to_owned() } else { format!("{what}:\n{}", lines.join("\n")) })
    }
}

impl Drop for Program {
    /// Closes the input of the command, which ends the command; kills a command that does not end in time.
    fn drop(&mut self) {
        drop(self.input.take());
        let end = Instant::now() + self.patience;
        while Instant::now() < end {
            if self.has_ended() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        _ = self.child.kill(); // an error means that it has ended meanwhile
        _ = self.child.wait();
    }
}

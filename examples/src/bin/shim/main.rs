//! The machines over standard input and output, with one JSON object per line in both directions, so that any language
//! can drive a machine, replay a log, or test its own xDS peer. `tests/shim` holds example conversations.

mod client;
mod config;
mod server;

use std::io::{self, BufRead, Write};
use std::time::Duration;

use examples::line::{Fault, Line};
use serde_json::{Map, Value, json};
use xds_machine::Instant;

type Out = Vec<Value>;

fn main() -> io::Result<()> {
    let mut shim = Shim::default();
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().split(b'\n') {
        let answer = shim.answer(&line?);
        match writeln!(out, "{answer}").and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
            written => written?,
        }
    }
    Ok(())
}

/// A machine that lines of input drive.
trait Machine {
    fn run(&mut self, op: &str, line: Line<'_>, now: Instant, out: &mut Out) -> Result<(), Fault>;
    /// Polls until nothing more is pending.
    fn drain(&mut self, now: Instant, out: &mut Out);
    fn due(&self) -> Option<Instant>;
    fn timeout(&mut self, now: Instant);
}

#[derive(Default)]
struct Shim {
    machine: Option<Box<dyn Machine>>,
    auto: bool,
    now: Instant,
}

impl Shim {
    fn answer(&mut self, line: &[u8]) -> Value {
        let mut out = Vec::new();
        if let Err(fault) = self.run(line, &mut out) {
            out.push(fault.element());
        }
        self.drain(&mut out);
        let wait = self.due().map(|due| milliseconds(due.saturating_since(self.now)));
        json!({ "out": out, "timeout_ms": wait })
    }

    fn run(&mut self, line: &[u8], out: &mut Out) -> Result<(), Fault> {
        let line = serde_json::from_slice::<Map<String, Value>>(line);
        let line = line.map_err(|error| Fault::line(format!("not a JSON object: {error}")))?;
        let line = Line(&line);
        match (line.text("op")?, &mut self.machine) {
            ("new", None) => {
                let auto = line.get("auto", "true or false", Value::as_bool)?.unwrap_or(true);
                (self.machine, self.auto) = (Some(config::machine(line)?), auto);
            }
            ("new", Some(_)) => return Err(Fault::line("there is a machine already")),
            (op, None) => return Err(Fault::line(format!("op {op:?} before op \"new\""))),
            ("advance", Some(_)) => {
                let until = self.now + Duration::from_millis(line.number("ms")?);
                // Stops at every time-out on the way, like a driver that wakes up for each.
                while let Some(due) = self.due().filter(|&due| self.now < due && due < until) {
                    self.pass(due, out);
                }
                self.pass(until, out);
            }
            (op, Some(machine)) => machine.run(op, line, self.now, out)?,
        }
        Ok(())
    }

    fn due(&self) -> Option<Instant> {
        self.machine.as_ref()?.due()
    }

    fn pass(&mut self, until: Instant, out: &mut Out) {
        self.now = until;
        self.machine.iter_mut().for_each(|machine| machine.timeout(until));
        self.drain(out);
    }

    fn drain(&mut self, out: &mut Out) {
        if let Some(machine) = self.machine.as_mut().filter(|_| self.auto) {
            machine.drain(self.now, out);
        }
    }
}

/// Converts to milliseconds. Rounds up, so that the time-out is due once they have passed.
fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

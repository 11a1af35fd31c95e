//! The lines that wait for the reader of an output: bounded by number and by bytes.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::fmt::MakeWriter;

use crate::printable;

/// The number of lines that wait for the reader of the output. Further lines are dropped, and counted.
const LINES: usize = 16_384;

/// The number of bytes of the lines that wait. A line that does not fit beside them is dropped, and counted.
const BYTES: usize = 16 << 20;

/// Passes lines to a thread that writes them, and never waits for it. Cheap to clone.
#[derive(Clone)]
pub struct Queue {
    thread: NonBlocking,
    state: Arc<State>,
}

/// The lines that wait, their bytes, and the lines that were dropped.
#[derive(Default)]
struct State {
    lines: AtomicUsize,
    bytes: AtomicUsize,
    lost: AtomicUsize,
}

/// The output. Notes the lines that are written, or that can't be.
struct Output<W> {
    to: W,
    state: Arc<State>,
}

impl Queue {
    /// Starts the thread that writes. Dropping the guard writes the waiting lines.
    pub fn new(to: impl Write + Send + 'static) -> (Self, WorkerGuard) {
        let state = Arc::<State>::default();
        let output = Output { to, state: state.clone() };
        // Room for all lines that are let in, so that the thread's own queue drops none.
        let (thread, guard) = NonBlockingBuilder::default().lossy(true).buffered_lines_limit(LINES).finish(output);
        (Self { thread, state }, guard)
    }

    /// Adds a line, which ends with a line break; or counts it as lost if the queue is full.
    fn add(&self, line: &str) {
        let State { lines, bytes, lost } = &*self.state;
        let (before, waiting) = (lines.fetch_add(1, Ordering::Relaxed), bytes.fetch_add(line.len(), Ordering::Relaxed));
        if before < LINES && waiting.saturating_add(line.len()) <= BYTES {
            let _ = self.thread.clone().write_all(line.as_bytes()); // the thread's queue has room
        } else {
            self.state.leave(line.len());
            lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Adds a line of JSON.
    pub fn json(&self, line: &str) {
        self.add(&(printable::json(line).into_owned() + "\n"));
    }

    /// Adds a line for people.
    pub fn text(&self, line: &str) {
        self.add(&(printable::text(line).into_owned() + "\n"));
    }

    /// Returns the count of lines that were dropped because no program read the output.
    pub fn lost(&self) -> usize {
        self.state.lost.load(Ordering::Relaxed)
    }
}

impl State {
    fn leave(&self, len: usize) {
        self.lines.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(len, Ordering::Relaxed);
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    /// The thread calls this once for each line.
    fn write_all(&mut self, line: &[u8]) -> io::Result<()> {
        let written = self.to.write_all(line);
        self.state.leave(line.len());
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Takes the lines of `tracing`, each of which comes in one call, with its line break.
impl Write for Queue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        self.text(text.strip_suffix('\n').unwrap_or(&text));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Queue {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// An output that says when it is written to, and then waits for the test.
    struct Slow(Sender<usize>, Receiver<()>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(bytes.len()).map_err(io::Error::other)?;
            let _ = self.1.recv(); // the test may have ended
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_beyond_the_bytes_or_the_number_are_lost_and_counted() {
        let (began, begins) = channel();
        let (go, goes) = channel();
        let (queue, _guard) = Queue::new(Slow(began, goes));
        let line = "a".repeat(BYTES / 4 - 1);
        for _ in 0..4 {
            queue.text(&line);
        }
        assert_eq!((queue.lost(), begins.recv()), (0, Ok(BYTES / 4)));
        queue.text("one more");
        assert_eq!(queue.lost(), 1, "the bytes are used up");
        go.send(()).expect("it waits");
        begins.recv().expect("the second line");
        (0..LINES).for_each(|_| queue.text(""));
        assert_eq!(queue.lost(), 4, "three long lines have places too");
    }
}

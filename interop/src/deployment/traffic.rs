//! Requests that flow all the time, each on a connection of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::net;

/// The time between two requests of one Envoy.
const PAUSE: Duration = Duration::from_millis(10);

/// A request, and the backend that answered, or an error.
pub struct Request {
    pub at: Timestamp,
    pub took: Duration,
    pub answer: Result<String, String>,
}

/// Traffic through one Envoy, until it is stopped.
pub struct Traffic {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Request>>,
}

impl Traffic {
    pub fn start(port: u16) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            let mut requests = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let (at, start) = (Timestamp::now(), Instant::now());
                let answer = net::get(port, "/").and_then(|(status, body)| match status {
                    200 => Ok(body),
                    _ => Err(format!("{status} {body}")),
                });
                requests.push(Request { at, took: start.elapsed(), answer });
                thread::sleep(PAUSE);
            }
            requests
        });
        Self { stop, thread }
    }

    pub fn end(self) -> Result<Vec<Request>, String> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the traffic broke off".to_owned())
    }
}

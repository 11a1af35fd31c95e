//! Waits, with a time limit.

use std::thread;
use std::time::{Duration, Instant};

/// The time limit of any wait: a machine may be slow, and waiting costs only runs that fail.
const LIMIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

/// Retries until an attempt succeeds.
///
/// # Errors
///
/// The last error, once the time limit has passed.
pub fn until<T>(mut attempt: impl FnMut() -> Result<T, String>) -> Result<T, String> {
    let end = Instant::now() + LIMIT;
    loop {
        match attempt() {
            Err(error) if Instant::now() > end => return Err(format!("after {LIMIT:?}: {error}")),
            Err(_) => thread::sleep(PAUSE),
            Ok(value) => return Ok(value),
        }
    }
}

/// Checks repeatedly that a condition holds for a period of time.
///
/// # Errors
///
/// The first error.
pub fn throughout(time: Duration, mut check: impl FnMut() -> Result<(), String>) -> Result<(), String> {
    let end = Instant::now() + time;
    while Instant::now() < end {
        check()?;
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Returns `Ok` if the condition holds.
pub fn so(is: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if is { Ok(()) } else { Err(otherwise()) }
}

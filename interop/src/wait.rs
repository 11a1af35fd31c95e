//! What takes a while, but not for ever.

use std::thread;
use std::time::{Duration, Instant};

/// The longest that anything may take.
const LIMIT: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(20);

/// Tries again and again until it is so.
///
/// # Errors
///
/// The last error, after a while.
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

/// Makes sure that it is so all the time.
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

/// `Ok` if it is so.
pub fn so(is: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if is { Ok(()) } else { Err(otherwise()) }
}
